//! TOML: tables, arrays of tables, and values, which but for triple quotes are those of the flow style.
//! A dotted key stays one key with dots in it.

use super::cursor::{Cursor, Tree};
use super::node::{Entry, Node, Value};
use shardscope_source::Span;

/// Most table headings read; real files have under 30.
const MAX_TABLES: usize = 1_000;

/// A heading with what stands under it.
struct Table {
    path: Vec<(String, Span)>,
    repeated: bool,
    node: Node,
}

/// Reads TOML; `base` is where `text` starts in its source.
pub fn read_toml(text: &str, base: u32) -> Tree {
    let mut cursor = Cursor::new(text, base, "toml-form");
    let start = cursor.at;
    let entries = cursor.table_entries();
    let mut root = cursor.map(entries, start);
    let mut tables = Vec::new();
    while !cursor.done() && tables.len() < MAX_TABLES {
        tables.push(cursor.table());
    }
    for table in tables {
        if let Value::Map(entries) = &mut root.value {
            root.span = root.span.to(table.node.span);
            place(entries, &table.path, table.repeated, table.node);
        }
    }
    cursor.finish(vec![root])
}

/// Puts a table where its path says.
fn place(entries: &mut Vec<Entry>, path: &[(String, Span)], repeated: bool, table: Node) {
    let Some(((key, key_span), rest)) = path.split_first() else { return };
    let at = entries.iter().position(|entry| entry.key == *key).unwrap_or_else(|| {
        let node = Node { span: table.span, value: Value::Map(Vec::new()) };
        entries.push(Entry { key: key.clone(), key_span: *key_span, node });
        entries.len() - 1
    });
    let node = &mut entries[at].node;
    node.span = node.span.to(table.span);
    match &mut node.value {
        Value::Map(inner) if !rest.is_empty() => place(inner, rest, repeated, table),
        Value::List(items) if !rest.is_empty() => {
            if let Some(Value::Map(inner)) = items.last_mut().map(|item| &mut item.value) {
                place(inner, rest, repeated, table);
            }
        }
        Value::List(items) => items.push(table),
        Value::Map(inner) if repeated && inner.is_empty() => node.value = Value::List(vec![table]),
        Value::Map(inner) => {
            if let Value::Map(new) = table.value {
                inner.extend(new);
            }
        }
        Value::Scalar(_) => {}
    }
}

impl Cursor<'_> {
    fn table(&mut self) -> Table {
        let from = self.at;
        let repeated = self.looks_at("[[");
        let (mut at, end) = (from + if repeated { 2 } else { 1 }, self.line_end(from));
        let close = self.slice(at, end).find(']').map_or(end, |offset| at + offset);
        let mut path = Vec::new();
        for part in self.slice(at, close).split('.') {
            let key = part.trim().trim_matches(['"', '\'']);
            path.push((key.to_owned(), self.span(at, at + part.len())));
            at += part.len() + 1;
        }
        self.skip_line();
        let entries = self.table_entries();
        Table { path, repeated, node: self.map(entries, from) }
    }

    /// The lines `key = value` up to the next heading.
    fn table_entries(&mut self) -> Vec<Entry> {
        let mut entries = Vec::new();
        loop {
            self.skip_blanks();
            match self.peek() {
                _ if self.done() => break,
                b'[' => break,
                b'\n' | b'#' => self.skip_line(),
                _ => {
                    if let Some(pair) = self.pair() {
                        entries.push(pair);
                    }
                }
            }
        }
        entries
    }

    fn pair(&mut self) -> Option<Entry> {
        let (from, end) = (self.at, self.line_end(self.at));
        let key = match self.peek() {
            b'"' | b'\'' => self.quoted(),
            _ => self.slice(from, end).split('=').next().unwrap_or("").trim_end().to_owned(),
        };
        let key_span = self.span(from, self.at.max(from + key.len()));
        self.at = self.at.max(from + key.len());
        self.skip_blanks();
        if self.peek() != b'=' {
            self.complain("this line is no 'key = value' and is not read", from, end);
            self.at = end;
            self.skip_line();
            return None;
        }
        self.at += 1;
        self.skip_blanks();
        let node = self.triple_quoted().unwrap_or_else(|| self.flow(b'='));
        self.skip_blanks();
        if !matches!(self.peek(), b'\n' | b'#' | 0) {
            self.complain("text after the value is not read", self.at, self.line_end(self.at));
        }
        self.skip_line();
        Some(Entry { key, key_span, node })
    }

    fn triple_quoted(&mut self) -> Option<Node> {
        let quote = ["\"\"\"", "'''"].into_iter().find(|quote| self.looks_at(quote))?;
        let from = self.at;
        let start = from + quote.len();
        let rest = self.rest(start);
        let length = rest.find(quote).unwrap_or(rest.len());
        let text = rest.get(..length).unwrap_or("");
        self.at = (start + length + quote.len()).min(start + rest.len());
        let text = text.strip_prefix('\n').unwrap_or(text).to_owned();
        Some(self.scalar(text, true, from))
    }
}
