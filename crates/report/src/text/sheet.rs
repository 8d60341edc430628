//! Headings, lines and tables, plain or as Markdown.

/// A text under construction.
pub(super) struct Sheet {
    out: String,
    markdown: bool,
}

impl Sheet {
    pub(super) fn plain() -> Self {
        Self { out: String::new(), markdown: false }
    }

    pub(super) fn markdown() -> Self {
        Self { out: String::new(), markdown: true }
    }

    pub(super) fn finish(self) -> String {
        self.out.trim_end().to_owned()
    }

    pub(super) fn heading(&mut self, title: &str) {
        // No blank line above the first heading.
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        if self.markdown {
            self.out += &format!("## {title}\n\n");
        } else {
            self.out += &format!("{title}\n{}\n", "=".repeat(title.chars().count()));
        }
    }

    pub(super) fn line(&mut self, text: &str) {
        // Everything that is not markup of this module passes through `inert`.
        if self.markdown {
            self.out += &inert(text);
        } else {
            self.out += text;
        }
        self.out.push('\n');
    }

    /// A list of similar lines, for example groups.
    pub(super) fn items(&mut self, items: &[String]) {
        for item in items {
            self.out += if self.markdown { "- " } else { "  " };
            self.line(item);
        }
    }

    /// A table; the first column is left-aligned, the others right-aligned, and columns are as wide as their widest
    /// cell.
    pub(super) fn table(&mut self, header: &[&str], rows: &[Vec<String>]) {
        if self.markdown {
            self.markdown_table(header, rows);
        } else {
            self.plain_table(header, rows);
        }
    }

    fn markdown_table(&mut self, header: &[&str], rows: &[Vec<String>]) {
        self.out += &format!(
            // First column left, all others right, as in the plain table.
            "\n| {} |\n|---|{}\n",
            header.join(" | "),
            "---:|".repeat(header.len().saturating_sub(1))
        );
        for row in rows {
            self.out.push('|');
            for cell in row {
                self.out.push(' ');
                self.out += &inert(cell);
                self.out += " |";
            }
            self.out.push('\n');
        }
        self.out.push('\n');
    }

    fn plain_table(&mut self, header: &[&str], rows: &[Vec<String>]) {
        // Characters, not bytes: labels have "×" and "–".
        let length = |text: &str| text.chars().count();
        let mut widths: Vec<usize> = header.iter().map(|title| length(title)).collect();
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(length(cell));
            }
        }
        let mut print = |cells: &mut dyn Iterator<Item = &str>| {
            let mut line = String::from("  ");
            for (column, (cell, width)) in cells.zip(&widths).enumerate() {
                let pad = " ".repeat(width - length(cell));
                if column == 0 {
                    line += &format!("{cell}{pad}");
                } else {
                    line += &format!("  {pad}{cell}");
                }
            }
            // Trailing blanks would make diffs of saved reports noisy.
            self.out += line.trim_end();
            self.out.push('\n');
        };
        // A table whose titles are all empty is a list of pairs and has no header line.
        if header.iter().any(|title| !title.is_empty()) {
            print(&mut header.iter().copied());
        }
        for row in rows {
            print(&mut row.iter().map(String::as_str));
        }
    }
}
/// `text` escaped as Markdown that only displays it: no link, image, HTML or table cell. It may come from a
/// stranger's script.
#[must_use]
pub fn inert(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            // A line break would end the table row that contains the text.
            '\n' | '\r' => out.push(' '),
            '[' | ']' | '`' | '|' | '\\' => {
                out.push('\\');
                out.push(character);
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::inert;

    #[test]
    fn what_a_stranger_wrote_is_shown_and_does_nothing() {
        assert_eq!(
            inert("[x](http://a) ![y](b) <img src=x> a|b `c` \\"),
            "\\[x\\](http://a) !\\[y\\](b) &lt;img src=x> a\\|b \\`c\\` \\\\"
        );
        assert_eq!(inert("a\n| b |"), "a \\| b \\|");
        assert_eq!(inert("memory_headroom 4 %"), "memory_headroom 4 %");
    }
}
