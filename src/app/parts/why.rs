//! A number that says why: pressing it opens the tree of what it is made of, with formulas and sources.

use shardscope::session::{Branch, Shown};
use yew::prelude::*;

use super::{Sign, icon, tree};
use crate::app::desk::Desk;

/// Works out what a number is made of.
pub(crate) type Why = Box<dyn Fn(&Shown) -> Option<Branch>>;

/// `text` as a button that opens the card; `why` is worked out only then.
pub(crate) fn number(desk: &Desk, text: String, why: Why) -> Html {
    let desk = desk.clone();
    let onclick = Callback::from(move |_: MouseEvent| desk.explain.emit(why(&desk.shown)));
    html! { <button type="button" class="number-button" popovertarget="why" {onclick}>{ text }</button> }
}

/// The one card in which numbers are explained.
pub(crate) fn card(told: Option<&Branch>) -> Html {
    html! {
        <div id="why" popover="auto" class="why" role="dialog" aria-labelledby="why-title">
            if let Some(branch) = told {
                <div class="why-head">
                    <h2 id="why-title">{ format!("{}: {}", branch.label, branch.value) }</h2>
                    <button type="button" class="button quiet" popovertarget="why" popovertargetaction="hide" aria-label="Close">{ icon(Sign::Close) }</button>
                </div>
                { tree(branch, 1) }
            }
        </div>
    }
}
