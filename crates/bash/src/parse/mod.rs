//! Bash grammar by recursive descent over text that may carry origin marks from an earlier expansion.

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

/// Parses a whole text; what cannot be parsed is reported and skipped.
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
            // A surplus `done` or `}` ends the top-level list early; what follows still belongs to the script.
            parser.skip_stray_closer();
        }
    }
    if let Some(failure) = parser.failure {
        parser.report(failure);
    }
    list
}
