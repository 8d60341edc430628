//! What the page shows: the session, and what of the page itself the reader opened, picked or pinned open.

use std::cell::RefCell;
use std::rc::Rc;

use shardscope::search::Walk;
use shardscope::session::map::Picture;
use shardscope::session::schedule::{Alternative, Film, Window};
use shardscope::session::{Branch, Held, Shown, State};

use super::act::{Copied, Hear};
use super::parts::{Tag, group};

/// Handed to every view.
#[derive(Clone)]
pub(crate) struct Desk {
    pub state: Rc<State>,
    pub look: Rc<Look>,
    pub hear: Hear,
}

/// What is open, chosen and said on the page, none of which belongs to the plan.
#[derive(Clone)]
pub(crate) struct Look {
    pub sheet: Option<Sheet>,
    pub theme: &'static str,
    /// Whether files lie over the script box.
    pub hovered: bool,
    /// Whether a long text is being read.
    pub reading: bool,
    /// What is being explained.
    pub told: Option<Rc<Told>>,
    /// Whether there is room to begin with the settings open.
    pub wide: bool,
    pub all_settings: bool,
    pub all_compared: bool,
    /// The stage whose memory is taken apart; the fullest where none was chosen.
    pub stage: Option<u64>,
    pub tool_open: bool,
    /// What was copied last, and whether that was allowed.
    pub copied: Option<(Copied, bool)>,
    pub map: MapLook,
    /// The schedule laid out, and the part of it that is seen.
    pub film: Option<Held<Film>>,
    pub window: Window,
    /// The other schedules, while they are open.
    pub alternatives: Option<Held<Vec<Alternative>>>,
    /// The search for other layouts, and whether it goes on.
    pub walk: Option<Rc<RefCell<Walk>>>,
    pub searching: bool,
    /// The step of the tour, counted from 0, while the reader takes it.
    pub tour: Option<usize>,
    /// The part whose turn it is to be drawn for a new answer; [`TURNS`] when all are.
    due: usize,
    stamps: [u32; PLACES],
}

/// The same of the map.
#[derive(Clone, Default)]
pub(crate) struct MapLook {
    /// What is drawn; nothing before the width is known, or when there are too many GPUs.
    pub picture: Option<Held<Picture>>,
    /// Unit: CSS pixel; 0 before it is known.
    pub width: u32,
    /// The GPU whose cell takes the focus.
    pub cursor: u64,
    /// Whether no GPU is called as the reader wrote.
    pub unknown: bool,
    pub table_open: bool,
    pub page: u64,
}

/// What the card explains.
pub(crate) enum Told {
    /// A number, by what it is made of.
    Number(Branch),
    /// A term, by its name.
    Term(String),
}

/// Which sheet lies over the page.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Sheet {
    Gallery,
    Share,
}

/// Parts of the page that are drawn anew only when something in them changed. Those behind the verdict take turns, in
/// this order.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Place {
    Script,
    Questions,
    Sheet,
    Verdict,
    Settings,
    Compare,
    Advice,
    Memory,
    Time,
    Schedule,
    Communication,
    Map,
    Layers,
    Matmuls,
    Search,
    Tool,
    Cells,
    Captions,
}

/// All of them.
const PLACES: usize = Place::Captions as usize + 1;
/// Those that take turns, and the cells of the map, which are drawn with it.
const TURNS: usize = Place::Cells as usize;

impl Look {
    pub(crate) fn new(theme: &'static str, wide: bool) -> Self {
        Self {
            sheet: None,
            theme,
            hovered: false,
            reading: false,
            told: None,
            wide,
            all_settings: false,
            all_compared: false,
            stage: None,
            tool_open: false,
            copied: None,
            map: MapLook::default(),
            film: None,
            window: Window::WHOLE,
            alternatives: None,
            walk: None,
            searching: false,
            tour: None,
            due: TURNS,
            stamps: [0; PLACES],
        }
    }

    /// `place` is to be drawn anew.
    pub(crate) fn touch(&mut self, place: Place) {
        self.stamps[place as usize] += 1;
    }

    /// The answer is another: what is seen first is to be drawn anew, and all else in its turn.
    pub(crate) fn answer(&mut self) {
        self.touch(Place::Verdict);
        self.due = Place::Verdict as usize + 1;
        self.film = None;
        self.map.picture = None;
    }

    /// Whether parts of the page wait for their turn.
    pub(crate) fn is_busy(&self) -> bool {
        self.due < TURNS
    }

    /// Whether it is the turn of `place`.
    pub(crate) fn is_due(&self, place: Place) -> bool {
        self.due == place as usize
    }

    /// The part whose turn it is is to be drawn anew; the turn goes on.
    pub(crate) fn take_turn(&mut self) {
        if let Some(stamp) = self.stamps[..TURNS].get_mut(self.due) {
            *stamp += 1;
            self.due += 1;
        }
    }

    /// Differs whenever `place` is to be drawn anew; 0 before its first turn.
    pub(crate) fn stamp(&self, place: Place) -> u32 {
        self.stamps[place as usize]
    }
}

/// Draws a part of the answer.
pub(crate) type Draw = fn(&Desk, &Shown) -> Tag;

impl Desk {
    /// What `draw` draws of the plan shown; nothing before there is one.
    pub(crate) fn of_plan(&self, draw: Draw) -> Tag {
        self.state.shown.as_ref().map_or_else(group, |shown| draw(self, shown))
    }
}
