//! What a program leaves to values and conditions that its text does not decide, and which is asked for.

use crate::{Found, Origin, Reading};
use shardscope_plan::Field;
use shardscope_source::Span;

/// Settings that the program computes, instead of defaults.
pub(super) fn open(reading: &mut Reading, open: Vec<(Field, String, Span)>) {
    for (field, value, span) in open {
        let stated = |found: &Found| {
            found.field == field && !matches!(found.origin, Origin::Default | Origin::Derived)
        };
        if !reading.found.iter().any(stated) {
            reading.keep(&|found| found.field != field);
            let mut found = Found::new(field, String::new(), Origin::Script).by(field.name(), Some(span));
            found.hole = Some(value);
            reading.take(found);
        }
    }
}

/// Asks whether a call under a condition that the text does not decide checkpoints layers; it does so whatever a trainer's arguments
/// leave off, and changes nothing where they do so too.
pub(super) fn checkpointing(reading: &mut Reading, at: usize, base: u32) {
    if reading.value(Field::GradientCheckpointing) == Some("true") {
        return;
    }
    reading.keep(&|found| found.field != Field::GradientCheckpointing);
    let at = u32::try_from(at).unwrap_or(u32::MAX).saturating_add(base);
    let span = Span::new(at, at.saturating_add(1));
    let name = Field::GradientCheckpointing.name();
    let mut found =
        Found::new(Field::GradientCheckpointing, String::new(), Origin::Script).by(name, Some(span));
    found.hole = Some("the condition of gradient_checkpointing_enable()".to_owned());
    reading.take(found);
}
