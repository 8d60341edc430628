//! The layouts that the search found for a model and GPUs, in the space next to their form.

use yew::prelude::*;

use crate::app::beside::LOST;
use crate::app::panels::{Front, Layouts, none_fits};
use crate::app::ui::Search;

/// Layouts shown.
const SHOWN: usize = 5;

/// The best layouts, and a plot of all layouts on the Pareto front.
pub(super) fn best(search: &Search) -> Html {
    if search.is_lost {
        return html! { <p role="alert">{ LOST }</p> };
    }
    let Some(found) = &search.found else {
        return html! { <p class="small soft" role="status">{ "Searching for the fastest layouts…" }</p> };
    };
    html! {
        <section class="best" aria-labelledby="best-title">
            <h3 id="best-title">
                { if search.going { "Fastest layouts so far" } else { "Fastest layouts that fit" } }
            </h3>
            // While the search is running, an empty list is not a result.
            if found.best.is_empty() && !search.going {
                <p>{ none_fits(search) }</p>
            } else {
                <Layouts search={search.clone()} layouts={found.best.iter().take(SHOWN).cloned().collect::<Vec<_>>()} compact=true />
            }
            <Front search={search.clone()} found={found.clone()} />
        </section>
    }
}
