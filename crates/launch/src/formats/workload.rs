//! A settings file that starts a script of its own.

use crate::{Found, Origin, Reading};
use shardscope_plan::Field;
use shardscope_source::Span;

/// What such a file states.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// The machines.
    pub reading: Reading,
    /// Variables of the container, and those that the operator sets.
    pub variables: Vec<(String, String)>,
    /// The text with everything but the command blanked out, byte for byte as long: read as a script,
    /// every place in it is the place in the original.
    pub script: String,
    /// Files of settings that the job hands to what its image starts (a ConfigMap's).
    pub settings: Vec<String>,
}

impl Workload {
    /// Takes so many machines or accelerators, where there are any.
    pub(super) fn count(&mut self, field: Field, count: u64, path: &str, span: Option<Span>) {
        if count > 0 {
            self.reading.take(Found::new(field, count.to_string(), Origin::Script).by(path, span));
        }
    }
}

/// A text of the same length with everything but these places blank; quotes around a place are left out.
/// Several places become one line.
pub(super) fn blank(text: &str, kept: &[Span], base: u32) -> String {
    let mut out = vec![b' '; text.len()];
    for span in kept {
        let at = |byte: u32| byte.saturating_sub(base) as usize;
        let (mut from, mut to) = (at(span.start), at(span.end));
        let Some(inner) = text.get(from..to) else { continue };
        let quoted = inner.len() > 1
            && inner.starts_with(['"', '\''])
            && inner.ends_with(inner.get(..1).unwrap_or(" "));
        if quoted {
            (from, to) = (from + 1, to - 1);
        }
        if let (Some(room), Some(inner)) = (out.get_mut(from..to), text.as_bytes().get(from..to)) {
            room.copy_from_slice(inner);
        }
    }
    if let Some(last) = out.last_mut().filter(|_| text.ends_with('\n')) {
        *last = b'\n';
    }
    String::from_utf8(out).unwrap_or_default()
}
