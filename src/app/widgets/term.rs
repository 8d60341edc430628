//! Terms that the user may ask about in place: pressing one opens the card with its meaning.

use shardscope::explain::meaning;
use yew::prelude::*;

use crate::app::action::Action;
use crate::app::context::use_dispatch;
use crate::app::ui::Explained;
use crate::app::words::term_of;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    /// Its name in the glossary.
    pub name: AttrValue,
    /// As written here; its name by default.
    #[prop_or_default]
    pub children: Html,
}

/// A term as a button that shows its meaning; plain text if the glossary does not have it.
#[component(Term)]
pub(crate) fn term(props: &Props) -> Html {
    let dispatch = use_dispatch();
    let name = props.name.clone();
    let shown = if props.children == Html::default() { html!(&name) } else { props.children.clone() };
    // A glossary of another version may lack it.
    let Some(meaning) = meaning(&name) else { return shown };
    html! {
        <button
            type="button"
            class="term"
            // The browser opens and closes the popover by itself.
            popovertarget="why"
            aria-haspopup="dialog"
            title={meaning}
            onclick={move |_| dispatch.emit(Action::Explain(Explained::Term(name.clone())))}
        >{ shown }</button>
    }
}

/// A name used by the engine, as the term that explains it.
pub(crate) fn named(name: &'static str) -> Html {
    html! { <Term name={term_of(name)}>{ name }</Term> }
}
