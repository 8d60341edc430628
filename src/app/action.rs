//! What the reader can do, as data. [`AppState`](super::state::AppState) reduces it.

use std::rc::Rc;

use shardscope::session::beside::{Found, Reply};
use shardscope::session::{Asked, Choice, Event, File, UserInput, Varied};

use super::panel_id::PanelId;
use super::ui::{Explained, InputTab, Theme};

/// One action of the reader, or a reply from a worker.
#[derive(Clone)]
pub(crate) enum Action {
    /// Something that the session decides: an edit, a setting, undo.
    Session(Event),
    /// The same for the last edit, once the page has said that a long text is being read.
    Settle,
    /// A long text is being read: paint that before it blocks.
    Reading,
    /// A detail of the answer is to be seen.
    Panel(PanelId),
    /// A way to say what runs.
    Input(InputTab),
    /// Another plan is taken whole; the detail shown goes back to the overview.
    Begin(Box<UserInput>),
    /// A model and GPUs were chosen; the plan follows by an event of its own.
    Choose(Choice),
    /// The share sheet opens or closes.
    Share(bool),
    /// The colours of the page.
    Theme(Theme),
    /// The stage whose memory is taken apart; none: the fullest.
    Stage(Option<u64>),
    /// A number or a term is to be explained in the card.
    Explain(Explained),
    /// A step of the tour, counted from 0; none: it is over.
    Tour(Option<usize>),
    /// The search for other layouts starts or stops.
    Search(bool),
    /// How far searches to come vary each dimension.
    Vary(Varied),
    /// What the search found so far.
    Found(Rc<Found>),
    /// The module of searches did not arrive.
    SearchLost,
    /// A layout that it found, as changes of the plan it began with, is shown; the list stays.
    Look(Vec<(String, String)>),
    /// A question is asked of the plan shown; none: it is given up.
    Ask(Option<Box<Asked>>),
    /// Its answer so far.
    Reply(Rc<Reply>),
    /// What holds the run there, as changes of what the question was asked of, is shown; the answer stays.
    Answered(Vec<(String, String)>),
    /// The layout shown is compared with the plan that the search began with, or with the layout looked at before it.
    CompareFound(bool),
    /// Files take the place of what runs, or lie beside it where they only complete it.
    Files(Vec<File>),
    /// The input with those files.
    Taken(Box<UserInput>),
    /// What an action waited for was read.
    Read,
    /// The program that reads texts did not arrive, or broke.
    ReaderLost,
    /// The verdict is on the screen: now the rest, and advice.
    Whole,
    /// The remark about the address was read.
    DismissUnknown,
    /// Paper needs every panel at once.
    Print(bool),
}

impl Action {
    /// Whether it depends on what the session holds, so that it has its turn behind what waits for a text to be read.
    pub(super) fn has_turn(&self) -> bool {
        matches!(
            self,
            Self::Session(_)
                | Self::Settle
                | Self::Begin(_)
                | Self::Files(_)
                | Self::Search(_)
                | Self::Look(_)
                | Self::Ask(_)
                | Self::Answered(_)
                | Self::CompareFound(_)
        )
    }

    /// Whether it answers the text as it stands, so that an edit makes it pointless.
    pub(super) fn is_settling(&self) -> bool {
        matches!(self, Self::Settle | Self::Session(Event::Settle))
    }
}

impl From<Event> for Action {
    fn from(event: Event) -> Self {
        Self::Session(event)
    }
}
