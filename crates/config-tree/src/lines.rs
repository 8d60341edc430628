//! YAML's block scalars after `|` and `>`.

use super::block::Behind;
use super::cursor::Cursor;
use super::node::Node;

impl<'a> Cursor<'a> {
    /// A block scalar after `|` or `>`; `None` if what follows is not such a header.
    pub(super) fn text_block(&mut self, column: usize, behind: Behind) -> Option<Node> {
        let end = self.line_end(self.at);
        let header = self.slice(self.at + 1, end);
        let header = header.split_once('#').map_or(header, |(head, _)| head).trim();
        // `|-`, `>+`, `|2-`: anything longer is a plain scalar that begins with that character.
        if header.len() > 2 || !header.bytes().all(|byte| matches!(byte, b'+' | b'-' | b'1'..=b'9')) {
            return None;
        }
        let folded = self.peek() == b'>';
        self.skip_line();
        let from = self.at;
        // A block must be indented deeper than its key; otherwise its first line is the next key.
        let least = if behind == Behind::Marker { 0 } else { column + 1 };
        let given = header
            .bytes()
            .find(u8::is_ascii_digit)
            .map(|digit| least.saturating_sub(1) + usize::from(digit - b'0'));
        let lines = self.block_lines(least, given);
        let text = if folded { fold_lines(&lines) } else { lines.join("\n") };
        // Chomping: `-` drops trailing newlines, `+` keeps all of them, and without either one is kept.
        let text = match (header.contains('-'), header.contains('+')) {
            (true, _) => text.trim_end_matches('\n').to_owned(),
            (_, true) => text + "\n",
            _ if text.trim_end_matches('\n').is_empty() => String::new(),
            _ => text.trim_end_matches('\n').to_owned() + "\n",
        };
        Some(self.scalar(text, true, from))
    }

    /// The lines of a text block without their common indentation.
    fn block_lines(&mut self, least: usize, mut indent: Option<usize>) -> Vec<&'a str> {
        let mut lines = Vec::new();
        while !self.done() {
            let (start, end) = (self.at, self.line_end(self.at));
            let line = self.slice(start, end);
            let line = line.strip_suffix('\r').unwrap_or(line);
            let depth = line.len() - line.trim_start_matches(' ').len();
            // An empty line does not end the block, however much whitespace it has.
            if depth == line.len() {
                lines.push(line.get(indent.unwrap_or(depth)..).unwrap_or(""));
            } else {
                let wanted = *indent.get_or_insert(depth);
                if depth < wanted || depth < least || (depth == 0 && self.at_marker()) {
                    break;
                }
                lines.push(line.get(wanted..).unwrap_or(""));
            }
            self.skip_line();
        }
        lines
    }
}

/// Joins the lines of a `>` block: adjacent lines by a space; empty and deeper lines keep their breaks.
fn fold_lines(lines: &[&str]) -> String {
    let mut text = String::new();
    let (mut breaks, mut before) = (0, None);
    for line in lines {
        if line.is_empty() {
            breaks += 1;
            continue;
        }
        // YAML's folding leaves lines alone that are indented further.
        let deeper = line.starts_with([' ', '\t']);
        match before {
            Some(was_deeper) if was_deeper || deeper => breaks += 1,
            Some(_) if breaks == 0 => text.push(' '),
            _ => {}
        }
        text.extend(std::iter::repeat_n('\n', breaks));
        text.push_str(line);
        (breaks, before) = (0, Some(deeper));
    }
    text.extend(std::iter::repeat_n('\n', breaks));
    text
}
