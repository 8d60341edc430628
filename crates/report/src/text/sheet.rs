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
        self.out += text;
        self.out.push('\n');
    }

    /// A list of equal lines: groups, for example.
    pub(super) fn items(&mut self, items: &[String]) {
        for item in items {
            self.out += if self.markdown { "- " } else { "  " };
            self.line(item);
        }
    }

    /// A table; the first column is left, the others right, columns as wide as their widest cell.
    pub(super) fn table(&mut self, header: &[&str], rows: &[Vec<String>]) {
        if self.markdown {
            self.markdown_table(header, rows);
        } else {
            self.plain_table(header, rows);
        }
    }

    fn markdown_table(&mut self, header: &[&str], rows: &[Vec<String>]) {
        self.out += &format!(
            "\n| {} |\n|---|{}\n",
            header.join(" | "),
            "---:|".repeat(header.len().saturating_sub(1))
        );
        for row in rows {
            self.out.push('|');
            for cell in row {
                self.out.push(' ');
                self.out += &cell.replace('|', "\\|");
                self.out += " |";
            }
            self.out.push('\n');
        }
        self.out.push('\n');
    }

    fn plain_table(&mut self, header: &[&str], rows: &[Vec<String>]) {
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
            self.out += line.trim_end();
            self.out.push('\n');
        };
        if header.iter().any(|title| !title.is_empty()) {
            print(&mut header.iter().copied());
        }
        for row in rows {
            print(&mut row.iter().map(String::as_str));
        }
    }
}
