//! Tables of figures.

use yew::prelude::*;

/// A heading of a column: words for a column of words, `>` before those of a column of figures.
pub(crate) type Heading = &'static str;

/// A region that scrolls sideways if necessary, and is then reachable by keyboard; `label` is its name for screen
/// readers.
pub(crate) fn wide(label: impl Into<AttrValue>, inside: Html) -> Html {
    html! { <div class="wide" tabindex="0" role="region" aria-label={label.into()}>{ inside }</div> }
}

/// A row of headings.
pub(crate) fn heads(headings: &[Heading]) -> Html {
    html! { <tr>{ for headings.iter().map(|heading| head(heading)) }</tr> }
}

/// One heading of a column.
pub(crate) fn head(heading: Heading) -> Html {
    match heading.strip_prefix('>') {
        Some(words) => html! { <th class="number" scope="col">{ words }</th> },
        None => html! { <th scope="col">{ heading }</th> },
    }
}

/// A remark over all `columns` below a row.
pub(crate) fn remark(columns: usize, remark: impl Into<Html>) -> Html {
    html! { <tr class="remark"><td colspan={columns.to_string()}><span>{ remark.into() }</span></td></tr> }
}

/// A cell of two lines: `above`, and `below` in smaller print.
pub(crate) fn pair(above: impl Into<Html>, below: impl Into<Html>) -> Html {
    html! { <>{ above.into() }<span class="before">{ below.into() }</span></> }
}
