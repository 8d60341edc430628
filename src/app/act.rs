//! What the reader can do on the page, as data: elements carry it, [`Page`](super::page::Page) performs it.

use std::rc::Rc;

use shardscope::session::{Event, Hand, Use};
use shardscope::text::Span;
use shardscope::topology::GroupKind;
use yew::Callback;
use yew::virtual_dom::{Listener, ListenerKind};

use super::desk::{Desk, Place, Sheet};
use super::dom;
use super::files::File;
use super::views::{self, is_move};

/// What is to be done.
pub(crate) enum Act {
    /// Something that the session knows by itself.
    Do(Event),
    /// One step back, or forth again; the caret goes where the text changes.
    Step { forth: bool },
    /// The field heard gives a setting its value.
    Set(&'static str),
    /// The form heard answers a question.
    Answer(String),
    /// The list heard says what is recomputed.
    Recompute,
    /// The script box was edited.
    Type,
    /// The reader paused: the answer may follow.
    Pause,
    /// The script box was scrolled.
    Scroll,
    /// The field heard holds log lines of the run.
    Log,
    /// A place of the text is to be shown.
    Show(Span),
    /// Files lie over the script box, or no longer.
    Hover(bool),
    /// Files were chosen in the field heard.
    Pickup,
    /// Files were opened or dropped.
    Take(Vec<(String, String)>),
    /// A sheet is to lie over the page.
    Open(Sheet),
    /// The sheet is to be closed.
    Close,
    /// The sheet was pressed, perhaps beside what is on it.
    Beside,
    /// The sheet is closed.
    Closed,
    /// An example or a plan to start from; the sheet is done.
    Begin(Box<Hand>),
    /// The form heard says what to start from.
    Start,
    /// A number or a term is to be explained.
    Explain(Why),
    /// A file is wanted.
    Give(&'static File),
    /// Something is to be copied.
    Copy(Copied),
    /// It was, or the browser did not let it.
    Said(Copied, Option<bool>),
    /// The colours of the page.
    Theme(&'static str),
    /// Everything is to be shown at a place, or only what matters.
    All(Place),
    /// Details were opened or closed.
    Toggle(Place),
    /// The list heard says which stage's memory is taken apart.
    Stage,
    /// The list heard says what colours tell on the map.
    Paint,
    /// The form heard says which GPU to find.
    Find,
    /// The map was pressed.
    Point,
    /// A key was pressed on the map.
    Move,
    /// Another page of the map's table.
    Turn(u64),
    /// The map is so wide. Unit: CSS pixel.
    Widen(u32),
    /// Another part of the schedule is to be seen.
    Glance(Glance),
    /// The lanes of the schedule heard a key, the wheel or a drag: a glance, if it means one.
    Lanes,
    /// Other layouts are to be searched, or no longer.
    Search,
    /// The search goes on.
    Slice,
    /// The next part of the answer is to be drawn.
    Draw,
    /// A step of the tour, counted from 0; or nothing, when it is over.
    Tour(Option<usize>),
    /// The browser went to another entry of its history.
    Travel,
    /// The address is to follow the plan.
    Write,
}

/// How the window on the schedule moves.
#[derive(Clone, Copy)]
pub(crate) enum Glance {
    /// So many times longer, around a place of it from 0 to 1.
    Zoom(f64, f64),
    /// By so many of its lengths.
    Shift(f64),
    /// To the whole step.
    Whole,
}

/// What can be explained.
pub(crate) enum Why {
    /// The memory of a stage, of one use or all of it.
    Memory(u64, Option<Use>),
    /// A message: its dimension, and its place in it.
    Message(usize, usize),
    /// What it puts on the wire.
    Wire(usize, usize),
    /// A term, by its name.
    Term(String),
}

/// What can be copied.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Copied {
    /// The groups of a kind.
    Groups(GroupKind),
    /// All groups of the map.
    AllGroups,
    /// What a field holds, by its id.
    Field(&'static str),
}

/// An act with what the browser said, where it did.
pub(crate) struct Heard {
    pub act: Rc<Act>,
    pub event: Option<web_sys::Event>,
}

/// Takes what was heard to the page.
pub(crate) type Hear = Callback<Heard>;

/// Hears one kind of event on one element.
pub(crate) struct On {
    event: &'static str,
    act: Rc<Act>,
    hear: Hear,
}

impl On {
    pub(crate) fn hear(desk: &Desk, event: &'static str, act: Act) -> Rc<dyn Listener> {
        Rc::new(Self { event, act: Rc::new(act), hear: desk.hear.clone() })
    }
}

impl Listener for On {
    fn kind(&self) -> ListenerKind {
        ListenerKind::other(self.event.into())
    }

    fn passive(&self) -> bool {
        false
    }

    /// What the browser must know at once is done here; the page follows.
    fn handle(&self, event: web_sys::Event) {
        if matches!(*self.act, Act::Lanes) {
            // Keys and turns of the wheel that mean nothing here are the browser's.
            let Some(glance) = views::glance(&event) else { return };
            event.prevent_default();
            return tell(&self.hear, Act::Glance(glance));
        }
        if let (Act::Tour(Some(at)), "keydown") = (&*self.act, self.event) {
            let key = dom::property(&event, "key").unwrap_or_default();
            let Some(to) = views::turned(&key, *at) else { return };
            event.prevent_default();
            return tell(&self.hear, Act::Tour(to));
        }
        match self.event {
            "submit" | "dragover" => event.prevent_default(),
            "keydown" => {
                let key = dom::property(&event, "key").unwrap_or_default();
                if matches!(*self.act, Act::Move) && is_move(&key) {
                    event.prevent_default();
                } else if matches!(*self.act, Act::Move) || key != "Enter" {
                    return;
                }
            }
            "drop" => {
                let hear = self.hear.clone();
                if dom::dropped(&event, move |files| tell(&hear, Act::Take(files))) {
                    event.prevent_default();
                }
            }
            _ => {}
        }
        self.hear.emit(Heard { act: self.act.clone(), event: Some(event) });
    }
}

/// Performs `act`, which nobody did on an element.
pub(crate) fn tell(hear: &Hear, act: Act) {
    hear.emit(Heard { act: Rc::new(act), event: None });
}
