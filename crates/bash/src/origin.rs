//! Where the pieces of a value come from.

use shardscope_source::Span;

/// Which hole of [`Script::holes`](super::Script::holes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HoleId(pub u32);

/// Where a piece of a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The literal text where it was written, or the expression that computed it.
    pub span: Span,
    /// The place of the last expansion (`$NUM_LAYERS`) that put it into a longer text, next to its flag.
    pub via: Option<Span>,
    /// Whether the piece is the text under `span`, byte for byte.
    pub exact: bool,
    /// Whether it came from outside: the environment or the call line; in which case it has no place in the text.
    pub given: bool,
    /// Index of the undecided branch that could have given another value.
    pub doubt: Option<u16>,
}

impl Origin {
    /// Text that is written at `span`, byte for byte.
    pub const fn written(span: Span) -> Self {
        Self { span, via: None, exact: true, given: false, doubt: None }
    }

    /// Text computed from what is written at `span`.
    pub const fn computed(span: Span) -> Self {
        Self { span, via: None, exact: false, given: false, doubt: None }
    }

    /// Text from the environment or the call line, without a place of its own.
    pub const fn given() -> Self {
        Self { span: Span::new(0, 0), via: None, exact: false, given: true, doubt: None }
    }
}

/// Where one piece of a value's text ends and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) end: u32,
    pub(crate) origin: Origin,
    pub(crate) hole: Option<HoleId>,
}

/// Whether a piece continues the one before it in the source.
pub(crate) fn joins(last: &Mark, next: Origin) -> bool {
    // Only text that is contiguous in the source may be joined, so that its bytes are those under the joined span.
    last.hole.is_none()
        && last.origin.exact
        && next.exact
        && last.origin.span.end == next.span.start
        && last.origin.via == next.via
        && last.origin.doubt == next.doubt
        && !next.given
}
