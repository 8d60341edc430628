//! What every panel of the answer gets: the plan shown, and the ways to act on it.

use shardscope::session::{Branch, Event, Held, Shown};
use yew::prelude::*;

/// Handed to the panels; two are the same while the same plan is shown.
#[derive(Clone, PartialEq)]
pub(crate) struct Desk {
    pub shown: Held<Shown>,
    pub send: Callback<Event>,
    /// Opens the card in which a number is explained.
    pub explain: Callback<Option<Branch>>,
}

#[derive(Properties)]
pub(crate) struct Props {
    pub desk: Desk,
    /// Draws the panel; the same for the life of the panel.
    pub draw: fn(&Desk) -> Html,
}

impl PartialEq for Props {
    fn eq(&self, other: &Self) -> bool {
        self.desk == other.desk
    }
}

/// A panel that is drawn anew only when another plan is shown.
#[component]
pub(crate) fn Panel(props: &Props) -> Html {
    (props.draw)(&props.desk)
}

#[derive(Properties)]
pub(crate) struct LazyProps {
    pub desk: Desk,
    pub class: &'static str,
    #[prop_or_default]
    pub id: Option<&'static str>,
    pub summary: Html,
    pub draw: fn(&Desk) -> Html,
}

impl PartialEq for LazyProps {
    fn eq(&self, other: &Self) -> bool {
        self.desk == other.desk
    }
}

/// Details that are worked out only when opened.
#[component]
pub(crate) fn Lazy(props: &LazyProps) -> Html {
    let open = use_state(|| false);
    let ontoggle = {
        let open = open.clone();
        move |event: yew::Event| {
            let details = event.target_dyn_into::<web_sys::Element>();
            open.set(details.is_some_and(|details| details.has_attribute("open")));
        }
    };
    html! {
        <details class={props.class} id={props.id} {ontoggle}>
            <summary>{ props.summary.clone() }</summary>
            if *open { { (props.draw)(&props.desk) } }
        </details>
    }
}
