//! Tables of figures: views give the cells, this draws them.

use super::{Tag, group, tag};

/// A heading: words for a column of words, `>` before those of a column of figures.
pub(crate) type Heading = &'static str;

/// A table named `label` for screen readers, which scrolls sideways when it must and is then reachable by keyboard.
/// `shape` is the table's, `rows` its rows.
#[inline(never)]
pub(crate) fn table(label: &str, shape: &'static str, headings: &[Heading], rows: Tag) -> Tag {
    let head = tag("thead").child(heads(headings));
    wide(label, tag(shape).child(head).child(tag("tbody").child(rows)))
}

/// A region that scrolls sideways when it must.
#[inline(never)]
pub(crate) fn wide(label: &str, inside: Tag) -> Tag {
    tag("div.wide")
        .set("tabindex", "0")
        .set("role", "region")
        .attr("aria-label", label.to_owned())
        .child(inside)
}

/// A row of headings.
#[inline(never)]
pub(crate) fn heads(headings: &[Heading]) -> Tag {
    headings.iter().fold(tag("tr"), |row, heading| row.child(head(heading)))
}

/// One heading of a column.
#[inline(never)]
pub(crate) fn head(heading: Heading) -> Tag {
    match heading.strip_prefix('>') {
        Some(words) => tag("th.number").set("scope", "col").text(words),
        None => tag("th").set("scope", "col").text(heading),
    }
}

/// The row, with a remark over all columns below it.
#[inline(never)]
pub(crate) fn with_remark(row: Tag, columns: u64, remark: String) -> Tag {
    group().child(row).child(tag("tr.remark").child(tag("td").count("colspan", columns).say(remark)))
}

/// Cells of a row; the first one heads it.
impl Tag {
    /// Anything.
    #[inline(never)]
    pub(crate) fn cell(self, inside: Tag) -> Self {
        self.cell_of("", inside)
    }

    /// Anything, to the right.
    #[inline(never)]
    pub(crate) fn figure(self, inside: Tag) -> Self {
        self.cell_of("number", inside)
    }

    #[inline(never)]
    fn cell_of(self, class: &'static str, inside: Tag) -> Self {
        let cell = if self.is_empty() { tag("th").set("scope", "row") } else { tag("td") };
        let cell = if class.is_empty() { cell } else { cell.set("class", class) };
        self.child(cell.child(inside))
    }

    /// Words.
    #[inline(never)]
    pub(crate) fn words(self, words: &str) -> Self {
        self.cell(super::text(words.to_owned()))
    }

    /// A figure.
    #[inline(never)]
    pub(crate) fn number(self, figure: String) -> Self {
        self.figure(super::text(figure))
    }

    /// A figure that matters.
    #[inline(never)]
    pub(crate) fn strong(self, figure: String) -> Self {
        self.cell_of("number strong", super::text(figure))
    }

    /// Words above, smaller words below.
    #[inline(never)]
    pub(crate) fn two(self, above: &str, below: &str) -> Self {
        self.cell(pair(above.to_owned(), below.to_owned()))
    }

    /// A figure above, a smaller one below, to the right.
    #[inline(never)]
    pub(crate) fn two_figures(self, above: String, below: String) -> Self {
        self.figure(pair(above, below))
    }
}

fn pair(above: String, below: String) -> Tag {
    super::text(above).saying("span.before", below)
}
