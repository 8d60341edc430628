//! One panel of a plan for somebody else's page: `?embed=memory#/1?…` in a frame.

use shardscope::session::{UserInput, fragment, title};
use yew::prelude::*;

use super::answer::{Missing, Verdict};
use super::context::AppContext;
use super::header::BrokenLink;
use super::panel_id::PanelId;
use super::panels::PanelView;
use super::widgets::Card;
use super::{address, browser};

/// A single view of the plan. `verdict` is the head of the answer; every panel has its own name.
#[derive(Clone, Copy, PartialEq)]
enum View {
    Verdict,
    Panel(PanelId),
}

fn asked() -> Result<View, String> {
    match browser::parameter("embed").unwrap_or_default() {
        name if name == "verdict" => Ok(View::Verdict),
        name => PanelId::named(&name).map(View::Panel).ok_or(name),
    }
}

/// The page with a single view.
#[component(Embedded)]
pub(crate) fn embedded() -> Html {
    let Some(app) = use_context::<AppContext>() else { return html!() };
    let session = &app.session;
    let inside = match (asked(), &session.shown) {
        (Err(name), _) => html! {
            <p class="notice" role="status">
                { format!("There is no view \u{201c}{name}\u{201d}. ") }
                { "Views: verdict, " }{ PanelId::all().map(PanelId::name).collect::<Vec<_>>().join(", ") }{ "." }
            </p>
        },
        // There is nothing to paste into here, and no way to begin.
        (_, None) if session.input == UserInput::from_text("") => html! {
            <p class="notice" role="status">
                { "This frame carries no plan. Under Share, Copy frame gives an address that does." }
            </p>
        },
        (_, None) => html! { <Missing session={session.clone()} reading=false /> },
        // No `before`: nothing changes in a frame.
        (Ok(View::Verdict), Some(shown)) => html! {
            <Verdict shown={shown.clone()} before={None::<_>} big=true waits=false />
        },
        // Only this panel needs a second plan.
        (Ok(View::Panel(PanelId::Compare)), Some(_)) if session.pinned.is_none() => html! {
            <p class="notice" role="status">
                { "This link carries one plan only. Pin a plan, change it and share again to embed the comparison." }
            </p>
        },
        (Ok(View::Panel(panel)), Some(shown)) => html! { <PanelView {panel} shown={shown.clone()} /> },
    };
    let name = session.shown.as_deref().map_or_else(String::new, title);
    let link = format!("{}#{}", address::base(), fragment(session));
    html! {
        <>
            <main class="embedded">
                <h1 class="hidden">{ name }</h1>
                <BrokenLink />
                { inside }
            </main>
            <footer class="foot">
                <a href={link} target="_blank" rel="noopener">{ "Open in Shardscope" }</a>
            </footer>
            <Card />
        </>
    }
}
