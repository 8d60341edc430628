//! What panels begin with, and figures under a name.

use yew::prelude::*;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub id: &'static str,
    pub title: &'static str,
    /// A sentence about it.
    #[prop_or_default]
    pub about: Html,
    #[prop_or_default]
    pub class: Classes,
    pub children: Html,
}

/// A panel with its name and a sentence about it.
#[component(Section)]
pub(crate) fn section(props: &Props) -> Html {
    let title_id = format!("{}-title", props.id);
    html! {
        <section id={props.id} class={classes!("panel", props.class.clone())} aria-labelledby={title_id.clone()}>
            <header>
                <h2 id={title_id}>{ props.title }</h2>
                if props.about != Html::default() {
                    <p>{ props.about.clone() }</p>
                }
            </header>
            { props.children.clone() }
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
                <option value={name.clone()} selected={*name == props.chosen}>{ name }</option>
            }) }
        </select>
    }
}
