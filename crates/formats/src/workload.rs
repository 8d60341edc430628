//! A settings file that starts its own script.

use crate::{Effect, Found, NotModelled, Origin, Reading};
use shardscope_catalog as catalog;
use shardscope_plan::Field;
use shardscope_source::Span;

/// The content of such a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// The machines.
    pub reading: Reading,
    /// Variables of the container, and those that the operator sets.
    pub variables: Vec<(String, String)>,
    /// The text with everything except the command blanked out, with the same length in bytes: read as a script, every
    /// position in it is the position in the original.
    pub script: String,
    /// Settings files that the job passes to the program in its image (from a ConfigMap).
    pub settings: Vec<String>,
}

impl Workload {
    /// Takes a number of machines or accelerators if it is positive.
    pub fn count(&mut self, field: Field, count: u64, path: &str, span: Option<Span>) {
        if count > 0 {
            self.reading.take(Found::new(field, count.to_string(), Origin::Script).by(path, span));
        }
    }
}

/// Names that clouds use for other accelerators than schedulers do (`sky show-gpus`, modal.com/docs/guide/gpu).
const NAMES: [(&str, &str); 2] = [("A100", "A100-SXM-40GB"), ("V100", "V100-SXM2-16GB")];

/// Takes the accelerator that a cloud calls `name`, stated by `path`; an unknown one stops the verdict, which would
/// apply to a different accelerator.
pub fn accelerator(reading: &mut Reading, name: &str, path: &str, span: Option<Span>) {
    let own =
        NAMES.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, known)| (*known).to_owned());
    let known = own.or_else(|| catalog::accelerator_in(name).map(|known| known.name));
    match known {
        Some(known) => {
            reading.take(Found::new(Field::Accelerator, known, Origin::Script).by(path, span));
        }
        None => {
            let item = NotModelled::new(path, name, Effect::Memory, "an unknown accelerator");
            reading.not_modelled.push(item.at_some(span));
        }
    }
}

/// A text of the same length with everything but these spans blanked out; quotes around a span are omitted.
/// Several spans become one line.
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
