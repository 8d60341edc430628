//! A question about other machines, lengths, batches or models that the reader asked.

use std::rc::Rc;

use shardscope::session::beside::Reply;
use shardscope::session::{Asked, PtrEq, UserInput};

/// A question, and what is known of its answer.
#[derive(Clone, PartialEq)]
pub(crate) struct Inquired {
    /// Input that the question was asked of.
    pub base: PtrEq<UserInput>,
    pub asked: Asked,
    pub going: bool,
    pub reply: Option<Rc<Reply>>,
    /// The changes of the line that is shown.
    pub chosen: Option<Vec<(String, String)>>,
}
