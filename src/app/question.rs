//! A question about other machines, lengths, batches or models that the user asked.

use std::rc::Rc;

use shardscope::session::beside::Reply;
use shardscope::session::{Asked, PtrEq, UserInput};

/// A question, and its answer so far.
#[derive(Clone, PartialEq)]
pub(crate) struct Inquired {
    /// The input that the question is about.
    pub base: PtrEq<UserInput>,
    pub asked: Asked,
    pub going: bool,
    pub reply: Option<Rc<Reply>>,
    /// The changes of the line that is shown.
    pub chosen: Option<Vec<(String, String)>>,
}
