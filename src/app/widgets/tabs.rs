//! A row of tabs, one tab stop, moved along by the arrow keys.

use yew::prelude::*;

use crate::app::browser;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    /// The row's name for screen readers.
    pub label: &'static str,
    /// The names of the tabs; `{id}-tab` and `{id}` are the ids of a tab and what it shows.
    pub tabs: Vec<Tab>,
    pub chosen: &'static str,
    pub onchoose: Callback<&'static str>,
}

/// One tab.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Tab {
    pub id: &'static str,
    pub name: &'static str,
}

#[component(Tabs)]
pub(crate) fn tabs(props: &Props) -> Html {
    let ids: Vec<&'static str> = props.tabs.iter().map(|tab| tab.id).collect();
    let at = ids.iter().position(|id| *id == props.chosen).unwrap_or(0);
    let choose = props.onchoose.clone();
    let onkeydown = move |event: KeyboardEvent| {
        let last = ids.len().saturating_sub(1);
        let to = match event.key().as_str() {
            "ArrowLeft" => at.checked_sub(1).unwrap_or(last),
            "ArrowRight" => {
                if at == last {
                    0
                } else {
                    at + 1
                }
            }
            "Home" => 0,
            "End" => last,
            _ => return,
        };
        event.prevent_default();
        if let Some(id) = ids.get(to) {
            // Selected at once, since tabs show what already exists.
            choose.emit(id);
            if let Some(tab) = browser::element(&format!("{id}-tab")) {
                browser::focus(&tab);
            }
        }
    };
    html! {
        <div class="tabs" role="tablist" aria-label={props.label} {onkeydown}>
            { for props.tabs.iter().map(|tab| {
                let (choose, id, chosen) = (props.onchoose.clone(), tab.id, tab.id == props.chosen);
                html! {
                    <button
                        key={id}
                        type="button"
                        role="tab"
                        id={format!("{id}-tab")}
                        aria-selected={chosen.to_string()}
                        // Only the chosen tab's panel is in the page.
                        aria-controls={chosen.then_some(id)}
                        tabindex={if chosen { "0" } else { "-1" }}
                        onclick={move |_| choose.emit(id)}
                    >{ tab.name }</button>
                }
            }) }
        </div>
    }
}
