//! Formulas as HTML, and what their letters mean.

use maud::{Markup, html};
use shardscope::operators::LETTERS;

use super::write::{Chapter, prose};

/// What every letter means.
pub(super) fn chapter() -> Chapter {
    let about = "Sizes are those of one rank. 2, 4 and 8 without a letter are bytes of an element. Weights, buffers, the wire and \
                 time have letters of their own (`P`, `D`, `w`, `n`, `S`, `m`, `t`), which are explained under each formula: there they \
                 are not the ones below.";
    let letters = html! {
        (prose(about))
        dl.letters {
            @for (name, meaning) in LETTERS {
                div id={ "letter-" (name) } { dt { (expression(name)) } dd { (meaning) } }
            }
        }
    };
    Chapter::new("letters", "Letters", letters)
}

/// Splits `expression`: `each` is called with its names and with whatever is between them.
pub(super) fn words(expression: &str, each: &mut dyn FnMut(&str, bool)) {
    let is_inside = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut rest = expression;
    // Runs of letters, digits and `_` alternate with runs of everything else.
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| is_inside(c) != is_inside(first)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        each(word, first.is_ascii_alphabetic());
        rest = behind;
    }
}

/// `expression` with its letters typeset: `Br` becomes a B with the subscript r.
pub(super) fn expression(expression: &str) -> Markup {
    let mut parts = Vec::new();
    words(expression, &mut |word, is_name| {
        // `topk` is top with the subscript k, `fan` a single word; otherwise the first letter is the name.
        let split = match word {
            "topk" => 3,
            "fan" => word.len(),
            _ => 1,
        };
        let known = is_name && LETTERS.iter().any(|(name, _)| *name == word);
        parts.push(match word.split_at_checked(split) {
            Some((letter, below)) if known && !below.is_empty() => html! { var { (letter) } sub { (below) } },
            _ if known => html! { var { (word) } },
            _ => html! { (word) },
        });
    });
    html! { code { @for part in &parts { (part) } } }
}
