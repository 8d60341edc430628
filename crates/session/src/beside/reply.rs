//! What is known of the answer to a question, in a serialisable form.

use serde::{Deserialize, Serialize};

use super::layout::Layout;
use crate::asked::{AskedLine, Asking};

/// An answer so far, and what was evaluated for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Whether more is being evaluated.
    pub goes_on: bool,
    /// The answer, or what is missing to ask.
    pub sentence: String,
    /// What was evaluated, in order; only the last `TOLD_LINES` if there were more.
    pub lines: Vec<ReplyLine>,
}

/// One size, kind or model that was evaluated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplyLine {
    /// A number of accelerators, a length, a batch, a kind or a model.
    pub name: String,
    /// Whether it is the answer.
    pub is_answer: bool,
    /// What was found; `None` if nothing fits.
    pub reached: Option<Reached>,
}

/// The best layout found there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reached {
    /// Accelerators.
    pub gpus: u64,
    /// The layout.
    pub layout: Layout,
    /// Tokens per second of all accelerators together.
    pub tokens_per_second: f64,
    /// Days for the tokens asked about; `None` if no tokens were stated.
    pub days: Option<f64>,
    /// Cost of those tokens, in the currency of the price given.
    pub cost: Option<f64>,
}

/// Maximum number of lines reported.
const TOLD_LINES: usize = 40;

impl ReplyLine {
    fn new(line: AskedLine) -> Self {
        let reached = line.reached.and_then(|reached| {
            Some(Reached {
                gpus: reached.gpus,
                // If nothing fits, the line stays, without figures.
                layout: Layout::from_outcome(reached.outcome.as_ref()?),
                tokens_per_second: reached.tokens_per_second,
                days: reached.days,
                cost: reached.cost,
            })
        });
        Self { name: line.name, is_answer: line.chosen, reached }
    }
}

impl Reply {
    pub(super) fn new(asking: &Asking, goes_on: bool) -> Self {
        let lines = asking.lines();
        // If many models do not fit, the last ones are informative enough. Sizes and models are evaluated towards the
        // answer, so the last lines are the ones to keep.
        let untold = lines.len().saturating_sub(TOLD_LINES);
        let lines = lines.into_iter().skip(untold).map(ReplyLine::new).collect();
        Self { goes_on, sentence: asking.answer(), lines }
    }

    pub(super) fn refused(why: &str) -> Self {
        Self { goes_on: false, sentence: why.to_owned(), lines: Vec::new() }
    }
}
