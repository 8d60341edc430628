//! The mini-language of `--pipeline-model-parallel-layout`: `|` between stages, `E` embedding, `t` layer, `m` MTP
//! layer, `L` loss, `x*N` and `(...)*N` repetition.

use super::limits::MAX_LAYERS;
use std::error::Error;
use std::fmt::{self, Display, Formatter};

/// What is wrong with a pipeline layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadStages {
    /// More symbols than the limit.
    TooLong,
    /// A symbol that the language does not have.
    UnknownSymbol(char),
    /// A group inside a group.
    NestedGroup,
    /// A `)` without its `(`.
    NotOpened,
    /// A `(` without its `)`.
    NotClosed,
    /// A `*` without a symbol before it or a number after it.
    BareRepetition,
}

impl Display for BadStages {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let of = "in the pipeline layout";
        match self {
            Self::TooLong => write!(formatter, "the pipeline layout is longer than {LONGEST} symbols"),
            Self::UnknownSymbol(symbol) => {
                write!(formatter, "the pipeline layout knows E, t, m, L, | and no '{symbol}'")
            }
            Self::NestedGroup => write!(formatter, "a group inside a group {of}"),
            Self::NotOpened => write!(formatter, "a ) without its ( {of}"),
            Self::NotClosed => write!(formatter, "a ( without its ) {of}"),
            Self::BareRepetition => {
                write!(formatter, "a * needs a symbol before it and a number after it {of}")
            }
        }
    }
}

impl Error for BadStages {}

/// What a stage may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Embedding,
    Layer,
    Mtp,
    Loss,
}

/// One stage, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WrittenStage(Vec<Mark>);

impl WrittenStage {
    pub(super) fn count(&self, mark: Mark) -> u64 {
        self.0.iter().filter(|held| **held == mark).count() as u64
    }
    pub(super) fn starts_with(&self, mark: Mark) -> bool {
        self.0.first() == Some(&mark)
    }
    pub(super) fn ends_with(&self, mark: Mark) -> bool {
        self.0.last() == Some(&mark)
    }
}

/// Longest layout with repetitions expanded, in symbols.
const LONGEST: usize = 16_384;
const _: () = assert!(LONGEST as u64 == 4 * MAX_LAYERS);

/// The stages of a layout, or what is wrong with it.
pub(super) fn parse_stages(text: &str) -> Result<Vec<WrittenStage>, BadStages> {
    let mut stages = vec![WrittenStage::default()];
    let mut symbols = 0;
    for symbol in written_out(text)? {
        symbols += 1;
        if symbols > LONGEST {
            return Err(BadStages::TooLong);
        }
        let mark = match symbol {
            b'E' => Mark::Embedding,
            b't' => Mark::Layer,
            b'm' => Mark::Mtp,
            b'L' => Mark::Loss,
            b'|' => {
                stages.push(WrittenStage::default());
                continue;
            }
            other => return Err(BadStages::UnknownSymbol(char::from(other))),
        };
        if let Some(stage) = stages.last_mut() {
            stage.0.push(mark);
        }
    }
    Ok(stages)
}

/// The text with every repetition expanded; commas and whitespace are only separators.
fn written_out(text: &str) -> Result<Vec<u8>, BadStages> {
    let mut out: Vec<u8> = Vec::new();
    // Megatron ignores commas as cosmetic.
    let mut rest = text.bytes().filter(|byte| !b", \t\n".contains(byte)).peekable();
    let mut group: Option<usize> = None;
    // Where the last symbol or group begins in `out`.
    let mut last = 0;
    while let Some(byte) = rest.next() {
        match byte {
            b'(' if group.is_none() => group = Some(out.len()),
            b'(' => return Err(BadStages::NestedGroup),
            b')' => last = group.take().ok_or(BadStages::NotOpened)?,
            b'*' => {
                let mut times = 0_usize;
                let mut digits = 0;
                while let Some(digit) = rest.peek().copied().filter(u8::is_ascii_digit) {
                    // Saturating: `t*99999999999999999999` is then refused by its length.
                    times = times.saturating_mul(10).saturating_add(usize::from(digit - b'0'));
                    digits += 1;
                    rest.next();
                }
                let unit = out.get(last..).unwrap_or_default().to_vec();
                if digits == 0 || unit.is_empty() {
                    return Err(BadStages::BareRepetition);
                }
                out.truncate(last);
                // Checked before anything is expanded: a few characters may stand for gigabytes.
                if unit.len().saturating_mul(times).saturating_add(out.len()) > LONGEST {
                    return Err(BadStages::TooLong);
                }
                (0..times).for_each(|_| out.extend_from_slice(&unit));
                // A repetition cannot itself be repeated: `t*2*3` is refused, as in Megatron's parser.
                last = out.len();
            }
            symbol => {
                last = out.len();
                out.push(symbol);
            }
        }
    }
    if group.is_some() {
        return Err(BadStages::NotClosed);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::parse_stages;

    #[track_caller]
    fn check(text: &str, expected: Result<&[u64], &str>) {
        let sizes = parse_stages(text)
            .map(|stages| stages.iter().map(|stage| stage.count(super::Mark::Layer)).collect())
            .map_err(|why| why.to_string());
        assert_eq!(sizes, expected.map(<[u64]>::to_vec).map_err(str::to_owned), "{text}");
    }

    #[test]
    fn layouts_are_written_out() {
        check("Et*3|(tt|)*2tL", Ok(&[3, 2, 2, 1]));
        check("E,t | (t*2|)*2 mL", Ok(&[1, 2, 2, 0]));
        check("Et|x", Err("the pipeline layout knows E, t, m, L, | and no 'x'"));
        check("(t", Err("a ( without its ) in the pipeline layout"));
        check("t*99999999999999999999", Err("the pipeline layout is longer than 16384 symbols"));
        check("*3", Err("a * needs a symbol before it and a number after it in the pipeline layout"));
    }
}
