//! Pointing into pasted text: sources, spans, diagnostics and spelling suggestions; knows nothing about training.

mod caret;
mod code;
mod diagnostic;
mod later;
mod source;
mod span;
mod suggest;

pub use caret::render;
pub use code::Code;
pub use diagnostic::{Diagnostic, Severity};
pub use later::LaterText;
pub use source::{Part, Position, Source};
pub use span::Span;
pub use suggest::suggest;
