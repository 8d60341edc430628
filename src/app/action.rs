//! What the reader can do, as data. [`AppState`](super::state::AppState) reduces it.

use std::rc::Rc;

use shardscope::session::beside::{Found, Reply};
use shardscope::session::{Asked, Choice, Event, UserInput};

use super::panel_id::PanelId;
use super::ui::{Explained, InputTab, Theme};

/// What happened.
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
    /// What the search found so far.
    Found(Rc<Found>),
    /// The module of searches did not arrive.
    SearchLost,
    /// A layout that it found, as changes of the plan it began with, is shown; the list stays.
    Look(Vec<(String, String)>),
    /// A question is asked of the plan shown; none: it is given up.
    Ask(Option<Box<Asked>>),
    /// What is known of its answer.
    Reply(Rc<Reply>),
    /// What holds the run there, as changes of what the question was asked of, is shown; the answer stays.
    Answered(Vec<(String, String)>),
    /// The layout shown is compared with the plan that the search began with.
    CompareFound,
    /// The remark about the address was read.
    DismissUnknown,
    /// Paper needs every panel at once.
    Print(bool),
}

impl From<Event> for Action {
    fn from(event: Event) -> Self {
        Self::Session(event)
    }
}
