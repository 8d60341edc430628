//! The beginning of panels, and figures with a name.

use yew::prelude::*;

/// A panel with its name and a sentence about it.
pub(crate) fn section(
    id: &'static str,
    class: &'static str,
    title: &'static str,
    about: Html,
    inside: Html,
) -> Html {
    let title_id = format!("{id}-title");
    html! {
        <section {id} class={classes!("panel", class)} aria-labelledby={title_id.clone()}>
            <header>
                <h2 id={title_id}>{ title }</h2>
                // An empty fragment would leave an empty paragraph with its margins.
                if about != Html::default() {
                    <p>{ about }</p>
                }
            </header>
            { inside }
        </section>
    }
}

/// A figure with its name above and more about it below, in a `dl`.
pub(crate) fn stat(name: Html, figure: String, also: Html) -> Html {
    html! {
        <div>
            <dt>{ name }</dt>
            <dd>{ figure }<span class="also">{ also }</span></dd>
        </div>
    }
}

#[derive(Properties, PartialEq)]
pub(crate) struct OptionsProps {
    pub names: Vec<AttrValue>,
    pub chosen: AttrValue,
    pub onchange: Callback<String>,
    #[prop_or_default]
    pub id: Option<AttrValue>,
    #[prop_or_default]
    pub label: Option<AttrValue>,
}

/// A list to choose one name from.
#[component(Options)]
pub(crate) fn options(props: &OptionsProps) -> Html {
    let heard = props.onchange.clone();
    html! {
        <select
            id={props.id.clone()}
            class="field"
            aria-label={props.label.clone()}
            onchange={move |event: Event| heard.emit(crate::app::browser::value_of(&event))}
        >
            { for props.names.iter().map(|name| html! {
                // Marked on the option: the value of a select can only be set once its options exist.
                <option value={name.clone()} selected={*name == props.chosen}>{ name }</option>
            }) }
        </select>
    }
}
