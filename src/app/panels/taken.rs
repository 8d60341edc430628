//! Exports of a search's results: the list as a table, a layout as a link and in the user's script.

use std::rc::Rc;

use shardscope::plan::Field;
use shardscope::session::beside::Found;
use shardscope::session::changed_link;
use yew::prelude::*;

use crate::app::address;
use crate::app::patched::PatchedScript;
use crate::app::ui::Search;
use crate::app::widgets::CopyButton;

#[derive(Properties, PartialEq)]
pub(super) struct Props {
    pub search: Search,
    pub found: Rc<Found>,
}

/// The list, and the selected layout or, if none is selected, the fastest.
#[component(Taken)]
pub(super) fn taken(Props { search, found }: &Props) -> Html {
    let is_looking = !search.chosen.is_empty();
    let changes = match found.best.first() {
        Some(best) if !is_looking => best.changes.clone(),
        _ => search.chosen.clone(),
    };
    let table = {
        let found = found.clone();
        Callback::from(move |()| found.markdown())
    };
    let link = {
        let (base, changes) = (search.base.clone(), changes.clone());
        Callback::from(move |()| {
            // Its texts were read for the plan searched.
            let fragment = changed_link(&base.input, &changes);
            format!("{}#{fragment}", address::base())
        })
    };
    let field = |(name, value): &(String, String)| Some((Field::named(name)?, value.clone()));
    let change: Vec<(Field, String)> = changes.iter().filter_map(field).collect();
    html! {
        <div class="taken">
            <CopyButton label="Copy as table" text={table} />
            <CopyButton label={if is_looking { "Copy link to the layout shown" } else { "Copy link to the fastest" }} text={link} />
            <PatchedScript input={search.base.input.clone()} {change} />
        </div>
    }
}
