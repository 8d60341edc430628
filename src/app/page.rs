//! The page: the plan on one side, its answer on the other. It alone holds state; what the reader does comes here.

use std::rc::Rc;

use gloo::events::EventListener;
use gloo::timers::callback::Timeout;
use shardscope::session::schedule::Film;
use shardscope::session::{Held, State, title};
use yew::prelude::*;

use super::act::{Act, Hear, Heard};
use super::desk::{Desk, Look, MapLook, Place, Sheet};
use super::panel::{Drawn, panel};
use super::parts::{Sign, Tag, Width, card, group, tag, theme};
use super::toolbar::{broken_link, toolbar};
use super::words::{self, fill};
use super::{address, dom, embed, keys, views};

/// How long the reader must pause before the answer follows. Unit: millisecond.
const PAUSE: u32 = 150;
/// The text that makes it a millisecond longer. Unit: byte.
const MORE: usize = 4_096;
/// A text that takes so long to read that it is said before. Unit: byte.
const LONG: usize = 60_000;
/// How long the address stays behind the plan, so that not every key is an entry. Unit: millisecond.
const BEHIND: u32 = 300;
/// How long the first of an answer has to be painted before the rest is drawn: two frames. Unit: millisecond.
const FIRST: u32 = 33;
/// How long a button says that it copied. Unit: millisecond.
const SAID: u32 = 2_500;

/// The parts of the answer, in their order.
const SECTIONS: [&str; 9] = [
    "#memory",
    "#time",
    "#schedule",
    "#communication",
    "#map",
    "#layers",
    "#matmuls",
    "#search",
    "#analysis-tool",
];

/// The component.
pub(crate) struct Page {
    pub(super) desk: Desk,
    /// Timers: each drops the one before.
    pause: Option<Timeout>,
    behind: Option<Timeout>,
    said: Option<Timeout>,
    slice: Option<Timeout>,
    draw: Option<Timeout>,
    /// The script before a step back or forth, when the caret is to go where it changed.
    pub(super) before: Option<String>,
    /// Whether a sheet is to be opened that was not there before.
    pub(super) opens: bool,
    /// Whether the map's cursor is to take the focus.
    pub(super) focus: bool,
    /// Whether the tour went on.
    pub(super) leads: bool,
    width: Option<Width>,
    _listeners: Vec<Option<EventListener>>,
}

/// Performs `act` in `milliseconds`, unless it is dropped before.
fn later(hear: &Hear, milliseconds: u32, act: impl Into<Rc<Act>>) -> Option<Timeout> {
    timer(hear.clone(), milliseconds, act.into())
}

fn timer(hear: Hear, milliseconds: u32, act: Rc<Act>) -> Option<Timeout> {
    Some(Timeout::new(milliseconds, move || hear.emit(Heard { act, event: None })))
}

impl Component for Page {
    type Message = Heard;
    type Properties = ();

    fn create(context: &Context<Self>) -> Self {
        let hear = context.link().callback(|heard: Heard| heard);
        let state = Rc::new(address::first());
        let listeners = ["popstate", "pagehide", "click", "keydown"];
        let mut page = Self {
            _listeners: listeners.iter().map(|name| keys::listen(name, &hear)).collect(),
            behind: if state.revision > 0 { later(&hear, BEHIND, Act::Write) } else { None },
            desk: Desk { state, look: Rc::new(Look::new(theme::chosen(), dom::is_wide())), hear },
            pause: None,
            said: None,
            slice: None,
            draw: None,
            before: None,
            opens: false,
            focus: false,
            leads: false,
            width: None,
        };
        page.answer();
        page
    }

    fn update(&mut self, _: &Context<Self>, heard: Heard) -> bool {
        let before = self.desk.state.clone();
        let drawn = self.perform(&heard);
        let changed = before.revision != self.desk.state.revision;
        if changed {
            self.follow(&before);
        }
        drawn || changed
    }

    fn view(&self, _: &Context<Self>) -> Html {
        let desk = &self.desk;
        if let Some(view) = embed::asked() {
            return embed::page(desk, view);
        }
        let state = &desk.state;
        let always = |place, draw| panel(desk, place, Drawn::Always(draw));
        let plan = tag("div.plan-side")
            .component(always(Place::Script, views::script))
            .component(always(Place::Questions, views::questions))
            .component(panel(desk, Place::Settings, Drawn::InTurn(views::settings)));
        let stale = match &state.shown {
            Some(_) if state.stale => Some(words::page::STALE),
            Some(_) => None,
            None => Some(words::page::NO_PLAN),
        };
        let stale = stale.map(|stale| {
            tag("p.stale")
                .set("role", "status")
                .child(Sign::Tight.icon())
                .say(fill(stale, [embed::reason(desk)]))
        });
        let answer =
            tag(if state.stale { "div.answer-side is-stale#answer" } else { "div.answer-side#answer" })
                .says("aria-busy", desk.look.is_busy());
        let page = group()
            .child(tag("a.skip").set("href", "#answer").text(words::page::SKIP))
            .child(
                tag("header.top")
                    .with("h1", "Shardscope")
                    .with("p.tagline", words::page::TAGLINE)
                    .child(toolbar(desk))
                    .child(theme::switch(desk)),
            )
            .child(broken_link(desk))
            .child(tag("main.page").child(plan).child(answer.maybe(stale).child(self.panels())))
            .child(
                tag("footer.foot")
                    .with("p", words::page::PRIVATE)
                    .child(tag("a").set("href", "guide.html").text(words::page::GUIDE))
                    .child(tag("a").set("href", "evidence.html").text(words::page::EVIDENCE))
                    .child(views::take_tour(desk, "button.link", words::tour::TAKE)),
            )
            .child(card(desk))
            .child(views::tour(desk))
            .component(always(Place::Sheet, views::sheet));
        page.into()
    }

    fn rendered(&mut self, _: &Context<Self>, _: bool) {
        if self.draw.is_none() && self.desk.look.is_busy() {
            // The next part waits until the browser has looked after everything else, so that keys are heard between.
            let first = self.desk.look.is_due(Place::Settings);
            self.draw = later(&self.desk.hear, if first { FIRST } else { 0 }, Act::Draw);
        }
        if std::mem::take(&mut self.opens) {
            dom::show_dialog();
        }
        if let Some(before) = self.before.take() {
            keys::show_change(&before);
        }
        if std::mem::take(&mut self.focus) {
            dom::focus_cursor();
        }
        if std::mem::take(&mut self.leads) {
            views::lead(self.desk.look.tour);
        }
        if self.width.is_none() {
            self.width =
                dom::query(".map-frame").and_then(|frame| Width::watch(frame, self.desk.hear.clone()));
        }
    }
}

impl Page {
    fn panels(&self) -> Tag {
        let desk = &self.desk;
        if desk.state.shown.is_none() {
            return group();
        }
        let of_plan = |place, draw| panel(desk, place, Drawn::OfPlan(draw));
        let link = |id: &'static str, name: &'static str| tag("a").set("href", id).text(name);
        let sections = tag("nav.sections")
            .set("aria-label", words::page::PARTS)
            .maybe(desk.state.pinned.is_some().then(|| link("#compare", words::page::COMPARISON)));
        let sections = SECTIONS
            .iter()
            .zip(words::page::SECTIONS)
            .fold(sections, |list, (id, name)| list.child(link(id, name)));
        group()
            .component(of_plan(Place::Verdict, views::verdict))
            .child(sections)
            .component(of_plan(Place::Compare, views::compare))
            .component(of_plan(Place::Advice, views::advice))
            .component(of_plan(Place::Memory, views::memory))
            .component(of_plan(Place::Time, views::time))
            .component(of_plan(Place::Schedule, views::schedule))
            .component(of_plan(Place::Communication, views::communication))
            .component(of_plan(Place::Map, views::map))
            .component(of_plan(Place::Layers, views::layers))
            .component(of_plan(Place::Matmuls, views::utilisation))
            .component(of_plan(Place::Search, views::search))
            .component(of_plan(Place::Tool, views::tool))
    }

    pub(super) fn look(&mut self) -> &mut Look {
        Rc::make_mut(&mut self.desk.look)
    }

    /// What follows from a change of the session.
    fn follow(&mut self, before: &State) {
        let state = self.desk.state.clone();
        let (shown, answer) = (before.shown != state.shown, before.answer != state.answer);
        let pinned = before.pinned != state.pinned;
        let hand = before.hand != state.hand;
        let painted = before.colour != state.colour || before.picked != state.picked;
        if shown {
            self.answer();
        }
        let look = self.look();
        if shown {
            look.walk = None;
            look.searching = false;
        }
        if answer || hand {
            look.touch(Place::Script);
        }
        if answer {
            look.touch(Place::Questions);
        }
        if answer && !shown {
            look.touch(Place::Settings);
        }
        if pinned {
            look.touch(Place::Compare);
        }
        if painted {
            look.touch(Place::Map);
        }
        if look.sheet == Some(Sheet::Share) {
            look.touch(Place::Sheet);
        }
        if before.colour != state.colour {
            self.draw_map();
        }
        if before.hand.text != state.hand.text {
            let more = u32::try_from(state.hand.text.len() / MORE).unwrap_or(PAUSE);
            self.pause = later(&self.desk.hear, PAUSE + more, Act::Pause);
        }
        if before.entries != state.entries {
            self.behind = None;
            address::write(before, false);
            address::write(&state, true);
        } else if hand || pinned || answer {
            self.behind = later(&self.desk.hear, BEHIND, Act::Write);
        }
    }

    /// Another answer: its first part is drawn at once, the rest in turns.
    fn answer(&mut self) {
        self.name();
        self.look().answer();
        self.draw = None;
    }

    /// Whether it is now to be said that a text of so many bytes is being read, because that takes a while; `act` comes
    /// again when that is painted.
    pub(super) fn says_first(&mut self, act: &Rc<Act>, bytes: usize) -> bool {
        let first = bytes > LONG && !self.desk.look.reading;
        if first != self.desk.look.reading {
            self.look().reading = first;
            self.look().touch(Place::Script);
        }
        if first {
            self.pause = later(&self.desk.hear, FIRST, act.clone());
        }
        first
    }

    /// The part whose turn it is is to be drawn.
    pub(super) fn turn(&mut self) {
        if self.desk.look.is_due(Place::Schedule) {
            self.lay_out();
            let tried = self.desk.look.alternatives.as_ref().and_then(|_| self.alternatives());
            self.look().alternatives = tried;
        }
        if self.desk.look.is_due(Place::Map) {
            self.draw_map();
        }
        self.look().take_turn();
        self.draw = None;
    }

    /// The title of the page says which plan it shows.
    fn name(&self) {
        let name = self.desk.state.shown.as_deref().map_or_else(String::new, |shown| title(shown) + " · ");
        if let Some(document) = dom::document() {
            document.set_title(&(name + "Shardscope"));
        }
    }

    /// The schedule is laid out anew.
    fn lay_out(&mut self) {
        let film = self.desk.state.shown.as_ref().map(|shown| Held::new(Film::of(shown)));
        self.look().film = film;
    }

    /// The map is drawn anew.
    pub(super) fn draw_map(&mut self) {
        let state = self.desk.state.clone();
        let look = self.look();
        let MapLook { picture, width, .. } = &mut look.map;
        *picture = state.shown.as_ref().and_then(|shown| views::map_picture(shown, state.colour, *width));
        look.touch(Place::Map);
        look.touch(Place::Cells);
        look.touch(Place::Captions);
    }

    /// The button says for a while whether it copied.
    pub(super) fn forget_said(&mut self) {
        if let Some((copied, _)) = self.desk.look.copied {
            self.said = later(&self.desk.hear, SAID, Act::Said(copied, None));
        }
    }

    /// The search goes on as soon as the browser has looked after everything else.
    pub(super) fn go_on(&mut self) {
        self.slice = later(&self.desk.hear, 0, Act::Slice);
    }
}
