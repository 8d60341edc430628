//! What is open and chosen on the page, apart from the plan.

use std::rc::Rc;

use shardscope::estimate::PhaseKind;
use shardscope::session::beside::Found;
use shardscope::session::{Choice, Pinned, PtrEq, Shown, Use, Varied};
use yew::AttrValue;

use super::browser;
use super::measuring::Measuring;
use super::panel_id::PanelId;
use super::question::Inquired;

/// State of the page in addition to the session's.
#[derive(Clone, PartialEq)]
pub(crate) struct UiState {
    pub input: InputTab,
    /// The model and GPUs to start from.
    pub choice: Choice,
    /// Whether the plan was made from them.
    pub chosen: bool,
    /// Whether the fastest layout of them is shown once it is found: until the user changes the plan.
    pub follows: bool,
    pub panel: PanelId,
    pub sharing: bool,
    pub theme: Theme,
    /// Whether a long text is being read.
    pub reading: bool,
    /// The stage whose memory is broken down; the fullest if none was chosen.
    pub stage: Option<u64>,
    pub why: Option<Explained>,
    /// The step of the tour, counted from 0, while the user takes it.
    pub tour: Option<usize>,
    /// The search for other layouts, from its start until the plan changes by anything but its results.
    pub search: Option<Search>,
    /// How far searches vary each dimension.
    pub vary: Varied,
    /// The question that was asked, until the plan changes by anything but its answers.
    pub inquiry: Option<Inquired>,
    /// The plan before the last change of it, for the differences next to the verdict.
    pub before: Option<PtrEq<Shown>>,
    pub printing: bool,
    /// Whether the text reader was unavailable for the last request.
    pub reader_lost: bool,
    /// Whether more than the verdict is drawn and advice is computed: after the first paint.
    pub all_drawn: bool,
    /// The part of the address that is unknown, in words.
    pub unknown: Option<String>,
    /// Files that may be from the run's own tools.
    pub measuring: Measuring,
}

/// The ways to describe the run.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum InputTab {
    Script,
    Model,
    Examples,
}

/// The colours of the page.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Theme {
    Auto,
    Light,
    Dark,
}

/// Subject of the card.
#[derive(Clone, PartialEq)]
pub(crate) enum Explained {
    /// The memory of a stage, of one use or all of it.
    Memory(u64, Option<Use>),
    /// The memory of a phase of reinforcement learning.
    Phase(PhaseKind),
    /// A message: its dimension, and its index in it.
    Payload(usize, usize),
    /// What it puts on the wire.
    Wire(usize, usize),
    /// A term of the glossary, by its name.
    Term(AttrValue),
}

/// A search for other layouts, and which of them the user looks at.
#[derive(Clone, PartialEq)]
pub(crate) struct Search {
    /// The plan it began with.
    pub base: PtrEq<Pinned>,
    /// How far it varies each dimension.
    pub vary: Varied,
    pub going: bool,
    /// Whether its module failed to load.
    pub is_lost: bool,
    pub found: Option<Rc<Found>>,
    /// The changes of the layout that is shown; empty means the plan it began with.
    pub chosen: Vec<(String, String)>,
    /// The previously shown layout; `None` before the second one.
    pub before: Option<PtrEq<Pinned>>,
}

impl Theme {
    pub(crate) const ALL: [Self; 3] = [Self::Auto, Self::Light, Self::Dark];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// The user's choice from their last visit.
    pub(crate) fn stored() -> Self {
        let stored = browser::stored(browser::THEME);
        // An unknown word, perhaps from another version, follows the system.
        Self::ALL.into_iter().find(|theme| Some(theme.name()) == stored.as_deref()).unwrap_or(Self::Auto)
    }

    pub(crate) fn keep(self) {
        browser::set_theme((self != Self::Auto).then(|| self.name()));
        browser::keep(browser::THEME, self.name());
    }
}
