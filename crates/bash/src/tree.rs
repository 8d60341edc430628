//! What the parser produces for a script: commands, words and their parts, nothing expanded yet.

use std::rc::Rc;

use super::value::{HoleId, Origin};
use shardscope_source::Span;

pub(crate) type List = Vec<Statement>;

/// Pipelines joined by `&&` and `||`.
#[derive(Debug)]
pub(crate) struct Statement {
    pub(crate) first: Pipeline,
    pub(crate) rest: Vec<(Joint, Pipeline)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Joint {
    And,
    Or,
}

#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(crate) negated: bool,
    pub(crate) stages: Vec<Command>,
}

#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) span: Span,
    pub(crate) kind: CommandForm,
    pub(crate) redirects: Vec<Redirect>,
}

#[derive(Debug)]
pub(crate) enum CommandForm {
    Simple(Simple),
    If { arms: Vec<Arm>, otherwise: Option<List> },
    Case { subject: Word, arms: Vec<CaseArm> },
    For { name: String, words: Option<Vec<Word>>, body: List },
    ForArithmetic { header: [Vec<Part>; 3], body: List },
    While { condition: List, span: Span, until: bool, body: List },
    // Shared: a call keeps the body even if it redefines the function.
    Function { name: String, body: Rc<Command> },
    Group(List),
    Subshell(List),
    Test(Vec<TestToken>),
    Arithmetic(Vec<Part>),
}

/// A condition, its place, and what it guards.
#[derive(Debug)]
pub(crate) struct Arm {
    pub(crate) condition: List,
    pub(crate) span: Span,
    pub(crate) body: List,
}

#[derive(Debug)]
pub(crate) struct CaseArm {
    pub(crate) patterns: Vec<Word>,
    pub(crate) body: List,
    pub(crate) ending: CaseEnding,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CaseEnding {
    /// `;;`
    Stop,
    /// `;&`
    Fall,
    /// `;;&`
    Test,
}

#[derive(Debug, Default)]
pub(crate) struct Simple {
    pub(crate) assignments: Vec<Assignment>,
    pub(crate) words: Vec<Word>,
    /// Arguments of `export`, `local`, `declare` and the like that have the form of assignments.
    pub(crate) declared: Vec<Assignment>,
}

#[derive(Debug)]
pub(crate) struct Assignment {
    pub(crate) name: String,
    pub(crate) index: Option<Vec<Part>>,
    pub(crate) append: bool,
    pub(crate) value: Assigned,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum Assigned {
    Scalar(Word),
    Array(Vec<Element>),
}

#[derive(Debug)]
pub(crate) struct Element {
    pub(crate) index: Option<Vec<Part>>,
    pub(crate) word: Word,
}

#[derive(Debug, Default)]
pub(crate) struct Word {
    pub(crate) parts: Vec<Part>,
    pub(crate) span: Span,
    /// An unquoted `{` that may start a brace expansion.
    pub(crate) braces: bool,
}

#[derive(Debug)]
pub(crate) enum Part {
    Text {
        text: String,
        origin: Origin,
        quoted: bool,
    },
    Hole {
        id: HoleId,
        text: String,
        origin: Origin,
    },
    Parameter(Box<Parameter>),
    Command {
        body: Rc<List>,
        span: Span,
        quoted: bool,
    },
    Arithmetic {
        expression: Vec<Part>,
        span: Span,
    },
    /// `<(...)` and `>(...)`.
    Process {
        body: Rc<List>,
        span: Span,
    },
}

#[derive(Debug)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) span: Span,
    pub(crate) quoted: bool,
    pub(crate) index: Option<Index>,
    /// `${#x}`
    pub(crate) length: bool,
    /// `${!x}`
    pub(crate) indirect: bool,
    pub(crate) operation: Operation,
}

#[derive(Debug)]
pub(crate) enum Index {
    /// `[@]`
    At,
    /// `[*]`
    Star,
    One(Vec<Part>),
}

#[derive(Debug)]
pub(crate) enum Operation {
    None,
    /// `-`, `=`, `?`, `+`; with a colon an empty value counts as unset.
    Fallback {
        sign: u8,
        colon: bool,
        word: Vec<Part>,
    },
    Trim {
        suffix: bool,
        longest: bool,
        pattern: Vec<Part>,
    },
    Replace {
        mode: ReplaceMode,
        pattern: Vec<Part>,
        with: Vec<Part>,
    },
    Case {
        upper: bool,
        all: bool,
    },
    Slice {
        offset: Vec<Part>,
        length: Option<Vec<Part>>,
    },
    /// `@Q` and the like, by their letter.
    Transform(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplaceMode {
    First,
    All,
    Prefix,
    Suffix,
}

#[derive(Debug)]
pub(crate) struct Redirect {
    pub(crate) descriptor: Option<u8>,
    pub(crate) kind: RedirectKind,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum RedirectKind {
    Read(Word),
    Write(Word),
    Append(Word),
    /// `2>&1`, `<&3`
    Duplicate,
    /// `<<EOF`; the body as parts of one quoted word
    Here(Vec<Part>),
    /// `<<<`
    HereString(Word),
}

#[derive(Debug)]
pub(crate) enum TestToken {
    Word(Word),
    And,
    Or,
    Not,
    Open,
    Close,
    Less,
    Greater,
}
