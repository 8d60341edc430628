//! JSON, written straight into text and read into a small tree: what links, the browser's store, the report's
//! document and the JavaScript package need, at a fraction of a general library's size.

mod reader;
mod writer;

pub use reader::Json;
pub use writer::Writer;
