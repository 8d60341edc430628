//! What the user can do, as data. [`AppState`](super::state::AppState) reduces it.

use std::rc::Rc;

use shardscope::session::beside::{Found, Measurement, Reply};
use shardscope::session::{Asked, Choice, Event, File, UserInput, Varied};

use super::measuring::Batch;
use super::panel_id::PanelId;
use super::ui::{Explained, InputTab, Theme};

/// One action of the user, or a reply from a worker.
#[derive(Clone)]
pub(crate) enum Action {
    /// Something that the session decides: an edit, a setting, undo.
    Session(Event),
    /// The same for the last edit, once the page has announced that a long text is being read.
    Settle,
    /// A long text is being read: paint the message before the page blocks.
    Reading,
    /// Shows a detail of the answer.
    Panel(PanelId),
    /// Switches between the ways to describe the run.
    Input(InputTab),
    /// Replaces the plan; the detail shown goes back to the overview.
    Begin(Box<UserInput>),
    /// A model and GPUs were chosen; the plan follows in a separate event.
    Choose(Choice),
    /// The share sheet opens or closes.
    Share(bool),
    /// The colours of the page.
    Theme(Theme),
    /// The stage whose memory is broken down; `None` means the fullest.
    Stage(Option<u64>),
    /// Explains a number or a term in the card.
    Explain(Explained),
    /// A step of the tour, counted from 0; `None`: it is over.
    Tour(Option<usize>),
    /// The search for other layouts starts or stops.
    Search(bool),
    /// How far future searches vary each dimension.
    Vary(Varied),
    /// What the search found so far.
    Found(Rc<Found>),
    /// The module of searches did not arrive.
    SearchLost,
    /// Shows a layout that it found, as changes to the plan it began with; the list stays.
    Look(Vec<(String, String)>),
    /// Asks a question about the plan shown; `None` cancels it.
    Ask(Option<Box<Asked>>),
    /// Its answer so far.
    Reply(Rc<Reply>),
    /// Shows the layout of a line of the answer, as changes to the input of the question; the answer stays.
    Answered(Vec<(String, String)>),
    /// Compares the layout shown with the plan that the search began with, or with the previously shown layout.
    CompareFound(bool),
    /// Files replace the run, or are added to it if they only complete it.
    Files(Vec<File>),
    /// Files of which some may be from the run's own tools.
    Measure(Batch),
    /// What became of the first file that is being read; `None` if the module that reads it did not arrive.
    Measured(Option<Measurement>),
    /// The files that are still to be read are not wanted.
    StopMeasuring,
    /// The launch texts among such files were passed on.
    PassedTexts,
    /// The messages about files that could not be read were seen.
    DismissUnread,
    /// The input with those files.
    Taken(Box<UserInput>),
    /// The texts that an action waited for were read.
    Read,
    /// The program that reads texts did not arrive, or broke.
    ReaderLost,
    /// The verdict is on screen: now draw the rest, and compute advice.
    Whole,
    /// The message about the address was read.
    DismissUnknown,
    /// Paper needs every panel at once.
    Print(bool),
}

impl Action {
    /// Whether it depends on the session, so that it is queued behind actions that wait for a text to be read.
    pub(super) fn has_turn(&self) -> bool {
        matches!(
            self,
            Self::Session(_)
                | Self::Settle
                | Self::Begin(_)
                | Self::Files(_)
                | Self::Measured(_)
                | Self::Search(_)
                | Self::Look(_)
                | Self::Ask(_)
                | Self::Answered(_)
                | Self::CompareFound(_)
        )
    }

    /// Whether it answers the current text, so that an edit makes it pointless.
    pub(super) fn is_settling(&self) -> bool {
        matches!(self, Self::Settle | Self::Session(Event::Settle))
    }
}

impl From<Event> for Action {
    fn from(event: Event) -> Self {
        Self::Session(event)
    }
}
