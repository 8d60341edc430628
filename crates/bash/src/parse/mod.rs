//! Bash grammar by recursive descent over text that may carry marks from an earlier expansion.

mod bare;
mod braced;
mod compound;
mod cursor;
mod expansion;
mod list;
mod redirect;
mod word;

use super::notes::Notes;
use super::tree::List;
use super::value::Mark;

pub(crate) use cursor::Parser;
pub(crate) use list::{DECLARATIONS, literal};

/// Reads a whole text; what cannot be read is reported and left out.
pub(crate) fn parse(text: &str, marks: &[Mark], depth: u32, notes: &mut Notes) -> List {
    let mut parser = Parser::new(text, marks, depth, notes);
    let mut list = List::new();
    while !parser.failed() {
        let more = parser.list();
        if !parser.failed() {
            list.extend(more);
            if parser.at_end() {
                return list;
            }
            // A `done` or `}` too many ends the list of the top level early; what follows is still the script.
            parser.skip_stray_closer();
        }
    }
    if let Some(failure) = parser.failure {
        parser.report(failure);
    }
    list
}
