//! What each act does.

use std::cell::RefCell;
use std::rc::Rc;

use shardscope::estimate::compute::Measured;
use shardscope::estimate::traffic::Operation;
use shardscope::search::Walk;
use shardscope::session::knobs::recompute_as;
use shardscope::session::map::all_groups;
use shardscope::session::schedule::{Alternative, Window, alternatives};
use shardscope::session::{
    Event, File, Hand, Held, Shown, apply, explain_memory, explain_message, explain_wire, utf16_offset,
    written_groups,
};
use shardscope::text::Span;
use shardscope::topology::Rank;

use super::act::{Act, Copied, Glance, Heard, Why, tell};
use super::desk::Place;
use super::page::Page;
use super::parts::theme;
use super::{address, dom, views};

/// Groups that a copy holds at most.
const COPIED: usize = 20_000;
/// Longest time spent searching at once. Unit: millisecond.
const SLICE: f64 = 12.0;
/// Combinations tried between two looks at the clock.
const AT_ONCE: u64 = 16;

impl Page {
    /// Performs what was heard; whether the page itself is to be drawn anew for it. What the session makes of it
    /// is seen by whoever asks.
    pub(super) fn perform(&mut self, heard: Heard) -> bool {
        let Heard { act, event } = heard;
        let value = || event.as_ref().map(dom::heard).unwrap_or_default();
        match act {
            Act::Do(event) => self.apply(event),
            Act::Step { forth } => {
                self.before = dom::script_box().map(|area| area.value());
                self.apply(if forth { Event::Redo } else { Event::Undo });
            }
            Act::Set(name) => self.apply(Event::Set { name: name.to_owned(), value: value() }),
            Act::Answer(name) => self.apply(Event::Set { name, value: value() }),
            Act::Recompute => self.apply(Event::Try(recompute_as(&value()))),
            Act::Type => self.apply(Event::Edit(value())),
            Act::Travel => self.apply(address::travelled()),
            Act::Take(files) => {
                let file = |(name, text): (String, String)| File { name, text: text.into() };
                let hand = self.desk.state.hand.with_files(files.into_iter().map(file).collect());
                self.apply(Event::Open(Box::new(hand)));
            }
            Act::Begin(hand) => self.begin(*hand),
            Act::Start => {
                if let Some(hand) = views::started() {
                    self.begin(hand);
                }
            }
            Act::Paint => self.apply(Event::Paint(views::painted(&self.desk, &value()))),
            Act::Slice => self.slice(),
            Act::Search => self.search(),
            Act::Find => self.find(&value()),
            Act::Point => {
                let picture = self.desk.look.map.picture.clone();
                let gpu = event.zip(picture).and_then(|(event, picture)| views::gpu_under(&event, &picture));
                gpu.into_iter().for_each(|gpu| self.pick(gpu));
            }
            Act::Move => self.walk_map(event.as_ref()),
            Act::Widen(width) => {
                self.look().map.width = width;
                self.draw_map();
            }
            Act::Scroll => {
                dom::scroll_along();
                return false;
            }
            Act::Show(span) => {
                self.show(span);
                return false;
            }
            Act::Pickup => {
                let hear = self.desk.hear.clone();
                let files = event.as_ref().and_then(dom::chosen);
                dom::read_files(files, Box::new(move |files| tell(&hear, Act::Take(files))));
                return false;
            }
            Act::Write => {
                address::write(&self.desk.state, false);
                return false;
            }
            Act::Give(file) => {
                if let Some(shown) = &self.desk.state.shown {
                    file.give(shown);
                }
                return false;
            }
            Act::Copy(copied) => {
                self.copy(copied);
                return false;
            }
            Act::Close => {
                dom::dialog().into_iter().for_each(|dialog| dialog.close());
                return false;
            }
            Act::Beside => {
                let target = event.and_then(|event| event.target());
                let pressed = target.and_then(|target| dom::property(&target, "localName"));
                return pressed.as_deref() == Some("dialog") && self.perform(Act::Close.into());
            }
            act => self.look_otherwise(act, &value()),
        }
        true
    }

    /// What changes nothing but the look of the page.
    fn look_otherwise(&mut self, act: Act, value: &str) {
        let told = match &act {
            Act::Explain(why) => self.desk.state.shown.as_ref().and_then(|shown| explain(shown, *why)),
            _ => None,
        };
        let tried = match &act {
            Act::Toggle(Place::Schedule) if !value.is_empty() => self.alternatives(),
            _ => None,
        };
        self.opens |= matches!(act, Act::Open(_));
        let look = self.look();
        match act {
            Act::Hover(hovered) => {
                if hovered == look.hovered {
                    return;
                }
                look.hovered = hovered;
                look.touch(Place::Script);
            }
            Act::Open(sheet) => {
                look.sheet = Some(sheet);
                look.copied = None;
                look.touch(Place::Sheet);
            }
            Act::Closed => {
                look.sheet = None;
                look.touch(Place::Sheet);
            }
            Act::Explain(_) => look.told = told,
            Act::Theme(theme) => {
                look.theme = theme;
                theme::choose(theme);
            }
            Act::All(place) => {
                let all =
                    if place == Place::Compare { &mut look.all_compared } else { &mut look.all_settings };
                *all = !*all;
                look.touch(place);
            }
            Act::Toggle(place) => {
                let open = !value.is_empty();
                match place {
                    Place::Map => look.map.table_open = open,
                    Place::Schedule => look.alternatives = tried.filter(|_| open),
                    _ => look.tool_open = open,
                }
                look.touch(place);
            }
            Act::Stage => {
                look.stage = value.parse().ok();
                look.touch(Place::Memory);
                look.touch(Place::Schedule);
            }
            Act::Glance(glance) => {
                look.window = match glance {
                    Glance::Zoom(factor, at) => look.window.zoomed(factor, at),
                    Glance::Shift(share) => look.window.moved(share),
                    Glance::Whole => Window::WHOLE,
                };
                look.touch(Place::Schedule);
            }
            Act::Turn(page) => {
                look.map.page = page;
                look.touch(Place::Map);
            }
            Act::Said(copied, said) => {
                look.copied = said.map(|said| (copied, said));
                look.touch(place_of(copied));
                self.forget_said();
            }
            _ => {}
        }
    }

    fn apply(&mut self, event: Event) {
        self.desk.state = Rc::new(apply((*self.desk.state).clone(), event));
    }

    /// Takes up `hand` and closes the sheet from which it comes.
    fn begin(&mut self, hand: Hand) {
        self.apply(Event::Open(Box::new(hand)));
        self.perform(Act::Close.into());
    }

    /// Selects the place of `span` in the box and brings it into view.
    fn show(&self, span: Span) {
        let Some(area) = dom::script_box() else { return };
        let source = &self.desk.state.answer.source;
        let text = source.text();
        let (start, end) = (utf16_offset(text, span.start), utf16_offset(text, span.end));
        let lines = text.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let lines = u32::try_from(lines).unwrap_or(u32::MAX);
        dom::select(&area, start, end, source.position(span.start).line, lines);
    }

    fn copy(&self, copied: Copied) {
        let field = match copied {
            Copied::Field(id) => dom::element(id),
            _ => None,
        };
        let text = match (copied, &self.desk.state.shown) {
            (Copied::Groups(kind), Some(shown)) => written_groups(&shown.plan, kind, COPIED),
            (Copied::AllGroups, Some(shown)) => all_groups(&shown.plan),
            _ => field.as_ref().map(|field| dom::value_of(field)).unwrap_or_default(),
        };
        let hear = self.desk.hear.clone();
        let done = move |done| {
            if let (false, Some(field)) = (done, &field) {
                dom::select_all(field);
            }
            tell(&hear, Act::Said(copied, Some(done)));
        };
        dom::copy(&text, Box::new(done));
    }

    /// The search begins, or stops where it is.
    fn search(&mut self) {
        let Some(shown) = self.desk.state.shown.clone() else { return };
        let look = self.look();
        look.searching = !look.searching;
        if look.searching {
            look.walk = Some(Rc::new(RefCell::new(Walk::new(&shown.plan, Measured::default()))));
        }
        look.touch(Place::Search);
        self.go_on();
    }

    /// Some more layouts are tried.
    fn slice(&mut self) {
        let look = self.look();
        let Some(walk) = look.walk.clone().filter(|_| look.searching) else { return };
        let until = js_sys::Date::now() + SLICE;
        while walk.borrow_mut().step(AT_ONCE) && js_sys::Date::now() < until {}
        let (tried, all) = walk.borrow().progress();
        look.searching = tried < all;
        look.touch(Place::Search);
        if tried < all {
            self.go_on();
        }
    }

    /// The plan under every schedule.
    pub(super) fn alternatives(&self) -> Option<Held<Vec<Alternative>>> {
        self.desk.state.shown.as_ref().map(|shown| Held::new(alternatives(&shown.plan)))
    }

    fn find(&mut self, wanted: &str) {
        let found = self.desk.state.shown.as_ref().and_then(|shown| views::find(wanted, shown));
        let look = self.look();
        look.map.unknown = found.is_none();
        look.touch(Place::Map);
        found.into_iter().for_each(|gpu| self.pick(gpu));
    }

    fn pick(&mut self, gpu: u64) {
        let look = self.look();
        look.map.cursor = gpu;
        look.touch(Place::Map);
        self.apply(Event::Pick(Some(Rank::new(gpu))));
    }

    fn walk_map(&mut self, event: Option<&web_sys::Event>) {
        let key = event.and_then(|event| dom::property(event, "key")).unwrap_or_default();
        let whole = event.is_some_and(dom::has_command);
        let Some(at) = views::moved(&self.desk, &key, whole) else { return };
        let stays = key == "Enter" || key == " ";
        self.focus = !stays;
        if stays || self.desk.state.picked.is_some() {
            return self.pick(at);
        }
        let look = self.look();
        look.map.cursor = at;
        look.touch(Place::Map);
    }
}

impl From<Act> for Heard {
    fn from(act: Act) -> Self {
        Self { act, event: None }
    }
}

/// Where it is said that something was copied.
const fn place_of(copied: Copied) -> Place {
    match copied {
        Copied::Groups(_) => Place::Communication,
        Copied::AllGroups => Place::Map,
        Copied::Field(_) => Place::Sheet,
    }
}

fn explain(shown: &Shown, why: Why) -> Option<shardscope::session::Branch> {
    match why {
        Why::Memory(stage, kind) => explain_memory(&shown.report.memory, stage, kind),
        Why::Message(dimension, place) => {
            operation(shown, dimension, place).map(|operation| explain_message(&shown.plan, operation))
        }
        Why::Wire(dimension, place) => operation(shown, dimension, place).map(explain_wire),
    }
}

fn operation(shown: &Shown, dimension: usize, place: usize) -> Option<&Operation> {
    shown.report.traffic.dimensions.get(dimension)?.operations.get(place)
}
