//! What each act does.

use std::cell::RefCell;
use std::rc::Rc;

use shardscope::estimate::traffic::Operation;
use shardscope::search::Walk;
use shardscope::session::knobs::recompute_as;
use shardscope::session::map::all_groups;
use shardscope::session::schedule::{Alternative, Window, alternatives};
use shardscope::session::{
    Event, File, Hand, Held, Shown, apply, explain_memory, explain_message, explain_wire, utf16_offset,
    with_log, written_groups,
};
use shardscope::text::Span;
use shardscope::topology::Rank;

use super::act::{Act, Copied, Glance, Heard, Why, tell};
use super::desk::{Place, Told};
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
    pub(super) fn perform(&mut self, Heard { act, event }: &Heard) -> bool {
        let event = event.as_ref();
        if self.perform_in_browser(act, event) {
            return false;
        }
        let value = event.map(dom::heard).unwrap_or_default();
        match self.session_event(act, &value) {
            Some(event) => self.apply(event),
            None => self.perform_on_look(act, event, &value),
        }
        true
    }

    /// What the session is to make of `act`, where it is for the session.
    fn session_event(&mut self, act: &Rc<Act>, value: &str) -> Option<Event> {
        let set = |name: &str| Event::Set { name: name.to_owned(), value: value.to_owned() };
        Some(match &**act {
            Act::Do(event) => event.clone(),
            Act::Step { forth } => {
                self.before = dom::script_box().map(|area| area.value());
                if *forth { Event::Redo } else { Event::Undo }
            }
            Act::Set(name) => set(name),
            Act::Answer(name) => set(name),
            Act::Recompute => Event::Try(recompute_as(value)),
            Act::Type => Event::Edit(value.to_owned()),
            Act::Pause => {
                let bytes = self.desk.state.hand.text.len();
                if self.says_first(act, bytes) {
                    return None;
                }
                Event::Settle
            }
            Act::Travel => address::travelled(),
            Act::Log => Event::Open(Box::new(with_log(&self.desk.state.hand, value))),
            Act::Take(files) => {
                if self.says_first(act, files.iter().map(|(_, text)| text.len()).sum()) {
                    return None;
                }
                let file =
                    |(name, text): &(String, String)| File { name: name.clone(), text: text.as_str().into() };
                let files = files.iter().map(file).collect();
                Event::Open(Box::new(self.desk.state.hand.with_files(files)))
            }
            Act::Begin(hand) => begun((**hand).clone()),
            Act::Start => begun(views::started()?),
            Act::Paint => Event::Paint(views::painted(&self.desk, value)),
            _ => return None,
        })
    }

    /// Whether `act` asked something of the browser alone, which is done then.
    fn perform_in_browser(&mut self, act: &Act, event: Option<&web_sys::Event>) -> bool {
        match act {
            Act::Scroll => dom::scroll_along(),
            Act::Show(span) => self.show(*span),
            Act::Pickup => {
                let hear = self.desk.hear.clone();
                let files = event.and_then(dom::chosen);
                dom::read_files(files, Box::new(move |files| tell(&hear, Act::Take(files))));
            }
            Act::Write => address::write(&self.desk.state, false),
            Act::Give(file) => {
                if let Some(shown) = &self.desk.state.shown {
                    file.give(shown);
                }
            }
            Act::Copy(copied) => self.copy(*copied),
            Act::Close => dom::close_dialog(),
            Act::Beside => {
                if event.is_some_and(dom::is_dialog) {
                    dom::close_dialog();
                }
            }
            _ => return false,
        }
        true
    }

    /// What changes nothing but the look of the page.
    fn perform_on_look(&mut self, act: &Act, event: Option<&web_sys::Event>, value: &str) {
        match act {
            Act::Slice => return self.slice(),
            Act::Draw => return self.turn(),
            Act::Search => return self.search(),
            Act::Find => return self.find(value),
            Act::Point => return self.point(event),
            Act::Move => return self.walk_map(event),
            Act::Widen(width) => {
                self.look().map.width = *width;
                return self.draw_map();
            }
            _ => {}
        }
        let told = match act {
            Act::Explain(why) => self.desk.state.shown.as_ref().and_then(|shown| explain(shown, why)),
            _ => None,
        };
        let tried = match act {
            Act::Toggle(Place::Schedule) if !value.is_empty() => self.alternatives(),
            _ => None,
        };
        self.opens |= matches!(act, Act::Open(_));
        self.leads |= matches!(act, Act::Tour(_));
        let look = self.look();
        match *act {
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
            Act::Tour(at) => look.tour = at,
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
            look.walk = Some(Rc::new(RefCell::new(Walk::new(&shown.plan))));
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

    fn point(&mut self, event: Option<&web_sys::Event>) {
        let picture = self.desk.look.map.picture.clone();
        let gpu = event.zip(picture).and_then(|(event, picture)| views::gpu_under(event, &picture));
        gpu.into_iter().for_each(|gpu| self.pick(gpu));
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

/// What the session hears of a plan to start from; the sheet that it was chosen on is done.
fn begun(hand: Hand) -> Event {
    dom::close_dialog();
    Event::Open(Box::new(hand))
}

/// Where it is said that something was copied.
const fn place_of(copied: Copied) -> Place {
    match copied {
        Copied::Groups(_) => Place::Communication,
        Copied::AllGroups => Place::Map,
        Copied::Field(_) => Place::Sheet,
    }
}

fn explain(shown: &Shown, why: &Why) -> Option<Rc<Told>> {
    let branch = match *why {
        Why::Memory(stage, kind) => explain_memory(&shown.report.memory, stage, kind),
        Why::Message(dimension, place) => {
            operation(shown, dimension, place).map(|operation| explain_message(&shown.plan, operation))
        }
        Why::Wire(dimension, place) => operation(shown, dimension, place).map(explain_wire),
        Why::Term(ref name) => return Some(Rc::new(Told::Term(name.clone()))),
    };
    Some(Rc::new(Told::Number(branch?)))
}

fn operation(shown: &Shown, dimension: usize, place: usize) -> Option<&Operation> {
    shown.report.traffic.dimensions.get(dimension)?.operations.get(place)
}
