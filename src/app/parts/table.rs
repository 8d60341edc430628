//! Tables of figures: views give the cells, this draws them.

use yew::prelude::*;

/// What stands in a cell.
pub(crate) enum Cell {
    /// Words.
    Text(String),
    /// A figure, to the right.
    Number(String),
    /// A figure that matters.
    Strong(String),
    /// Words above, smaller words below.
    Two(String, String),
    /// Anything else.
    Drawn(Html),
    /// Anything else, to the right.
    DrawnNumber(Html),
}

/// One row.
pub(crate) struct Row {
    pub cells: Vec<Cell>,
    /// A remark below it.
    pub note: Option<String>,
    pub class: &'static str,
}

impl Row {
    pub(crate) fn of(cells: Vec<Cell>) -> Self {
        Self { cells, note: None, class: "" }
    }
}

/// A heading: words for a column of words, `>` before those of a column of figures.
pub(crate) type Heading = &'static str;

/// A table named `label` for screen readers, which scrolls sideways when it must and is then reachable by keyboard.
pub(crate) fn table(label: &str, class: &'static str, headings: &[Heading], rows: Vec<Row>) -> Html {
    let columns = headings.len();
    wide(
        label,
        html! {
            <table class={classes!("figures", class)}>
                <thead><tr>{ for headings.iter().map(|heading| head(heading)) }</tr></thead>
                <tbody>{ for rows.into_iter().map(|one| row(one, columns)) }</tbody>
            </table>
        },
    )
}

/// A region that scrolls sideways when it must.
pub(crate) fn wide(label: &str, inside: Html) -> Html {
    html! { <div class="wide" tabindex="0" role="region" aria-label={label.to_owned()}>{ inside }</div> }
}

/// One heading of a column.
pub(crate) fn head(heading: &'static str) -> Html {
    match heading.strip_prefix('>') {
        Some(words) => html! { <th scope="col" class="number">{ words }</th> },
        None => html! { <th scope="col">{ heading }</th> },
    }
}

/// The row, with its remark over all columns.
pub(crate) fn row(row: Row, columns: usize) -> Html {
    let cells = row.cells.into_iter().enumerate().map(|(place, one)| cell(one, place == 0));
    html! {
        <>
            <tr class={row.class}>{ for cells }</tr>
            if let Some(note) = row.note {
                <tr class="remark"><td colspan={columns.to_string()}>{ note }</td></tr>
            }
        </>
    }
}

fn cell(cell: Cell, heads: bool) -> Html {
    let (class, inside) = match cell {
        Cell::Text(words) => ("", html! { { words } }),
        Cell::Number(words) => ("number", html! { { words } }),
        Cell::Strong(words) => ("number strong", html! { { words } }),
        Cell::Two(above, below) => ("", html! { <>{ above }<span class="before">{ below }</span></> }),
        Cell::Drawn(inside) => ("", inside),
        Cell::DrawnNumber(inside) => ("number", inside),
    };
    if heads {
        html! { <th scope="row" {class}>{ inside }</th> }
    } else {
        html! { <td {class}>{ inside }</td> }
    }
}
