//! What places in a launch say about its machines, and what they leave open.

use shardscope_bash::{HoleId, Value, Word};
use shardscope_source::Span;

/// A number, with the place that states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The number.
    pub value: u64,
    /// Where it is written.
    pub span: Option<Span>,
    /// The option, line or variable that states it.
    pub by: String,
    /// How it was stated, in words.
    pub how: &'static str,
    /// Whether it came from outside the text.
    pub given: bool,
    /// What it counts.
    pub counts: Counted,
}

/// What a number of a node's accelerators counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counted {
    /// Processes, each with an accelerator of its own.
    #[default]
    Processes,
    /// Devices that can be seen, whatever number of processes there is.
    Devices,
}

impl Fact {
    /// The processes of a node: one if nothing but the devices is stated.
    pub fn processes(&self) -> u64 {
        match self.counts {
            Counted::Processes => self.value,
            Counted::Devices => 1,
        }
    }
}

/// A number that a place should state but leaves open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The hole it depends on; none if the text there is not a number.
    pub hole: Option<HoleId>,
    /// Where it is left open.
    pub span: Option<Span>,
    /// The option, line or variable that leaves it open.
    pub by: String,
}

/// One number of the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// It is known.
    Known(Fact),
    /// It is left open.
    Open(Missing),
}

/// The machines that a training runs on, as far as its launch says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct World {
    /// Nodes.
    pub nodes: Option<Said>,
    /// Accelerators per node.
    pub gpus_per_node: Option<Said>,
    /// Accelerators in total.
    pub world_size: Option<Said>,
    /// Devices that a trainer's own command can see, if stated.
    pub visible: Option<u64>,
    /// Maximum pixels of an image, which Qwen's processors under ms-swift take from the command's environment.
    pub pixels: Option<Said>,
}

/// A word that is only a name.
pub(super) fn named(name: &str, span: Span) -> Word {
    Word { value: Value::computed(name, span), span }
}

/// Takes what a place says, unless one with higher precedence has already given it.
pub(super) fn offer(slot: &mut Option<Said>, found: Option<(Value, Word)>, how: &'static str) {
    let Some((value, by)) = found else { return };
    let number = value.known().and_then(|text| text.trim().trim_matches(['"', '\'']).parse::<u64>().ok());
    if slot.is_none() {
        *slot = Some(said(number.filter(|number| *number > 0), &value, &by, how));
    }
}

/// Takes a number that follows from a place.
pub(super) fn offer_number(
    slot: &mut Option<Said>,
    number: u64,
    place: &Value,
    by: &Word,
    how: &'static str,
) {
    if slot.is_none() && number > 0 {
        let mut said = said(Some(number), place, by, how);
        if let Said::Known(fact) = &mut said {
            fact.given = false;
        }
        *slot = Some(said);
    }
}

pub(super) fn said(number: Option<u64>, place: &Value, by: &Word, how: &'static str) -> Said {
    let text = by.text();
    let flag = text.find('=').and_then(|end| text.get(..end)).unwrap_or(text).to_owned();
    let span = place.origin().or(Some(by.span)).filter(|span| !span.is_empty());
    match number {
        Some(value) => Said::Known(Fact {
            value,
            span,
            by: flag,
            how,
            given: place.is_given(),
            counts: Counted::Processes,
        }),
        None => Said::Open(Missing { hole: place.first_hole(), span, by: flag }),
    }
}
