//! The bar above the page, and the notice about a link that could not be opened.

use shardscope::session::{EXAMPLE, Event, UserInput};
use yew::prelude::*;

use super::action::Action;
use super::context::{AppContext, send, use_dispatch};
use super::tour::TourButton;
use super::ui::Theme;
use super::widgets::{Sign, icon};

#[component(Header)]
pub(crate) fn header() -> Html {
    let dispatch = use_dispatch();
    html! {
        <header class="top">
            <h1>
                <svg class="mark" width="20" height="20" viewBox="0 0 20 20" aria-hidden="true">
                    <rect class="mark-0" x="1" y="1" width="8" height="8" rx="2" />
                    <rect class="mark-1" x="11" y="1" width="8" height="8" rx="2" />
                    <rect class="mark-2" x="1" y="11" width="8" height="8" rx="2" />
                    <rect class="mark-3" x="11" y="11" width="8" height="8" rx="2" />
                </svg>
                { "Shardscope" }
            </h1>
            <p class="tagline">{ "Will it fit? How fast? Know before you queue." }</p>
            <nav class="site" aria-label="Site">
                <a href="guide.html">{ "Guide" }</a>
                <a href="evidence.html">{ "Evidence" }</a>
                <TourButton class="link" label="Tour" />
            </nav>
            <ThemeMenu />
            <button type="button" class="button main share" onclick={send(&dispatch, || Action::Share(true))}>
                { icon(Sign::Share) }
                <span class="roomy">{ "Share" }</span>
            </button>
        </header>
    }
}

const CHOICES: [(Theme, Sign, &str); 3] = [
    (Theme::Auto, Sign::Half, "System colors"),
    (Theme::Light, Sign::Sun, "Light"),
    (Theme::Dark, Sign::Moon, "Dark"),
];

/// One button that cycles through the system's colours, light and dark.
#[component(ThemeMenu)]
fn theme_menu() -> Html {
    let dispatch = use_dispatch();
    let Some(app) = use_context::<AppContext>() else { return html!() };
    let now = CHOICES.iter().position(|(theme, ..)| *theme == app.ui.theme).unwrap_or(0);
    let (_, sign, name) = CHOICES[now];
    let (next, _, then) = CHOICES[(now + 1) % CHOICES.len()];
    html! {
        <button
            type="button"
            class="button only-icon quiet theme"
            aria-label={format!("Colors: {name}. Switch to {then}")}
            title={format!("Colors: {name}")}
            onclick={send(&dispatch, move || Action::Theme(next))}
        >
            { icon(sign) }
        </button>
    }
}

/// Why a link could not be opened, or which part of its view does not exist.
#[component(BrokenLink)]
pub(crate) fn broken_link() -> Html {
    let dispatch = use_dispatch();
    let Some(app) = use_context::<AppContext>() else { return html!() };
    let remark = |text: String, dismiss: fn() -> Action| {
        html! {
            <div class="broken-link" role="alert">
                { icon(Sign::Tight) }
                <p>{ text }</p>
                <button type="button" class="button quiet" aria-label="Dismiss" onclick={send(&dispatch, dismiss)}>
                    { icon(Sign::Close) }
                </button>
            </div>
        }
    };
    let session = &app.session;
    // At a first visit a broken link falls back to the sample.
    let what = if session.input == UserInput::from_text(EXAMPLE) {
        "The answer shown is the sample's."
    } else {
        "What you had is still here."
    };
    let broken = session.broken_link.as_ref();
    html! {
        <>
            { broken.map(|reason| remark(format!("The link could not be opened: {reason}. {what}"), || Event::Dismiss.into())) }
            { app.ui.unknown.clone().map(|text| remark(text, || Action::DismissUnknown)) }
        </>
    }
}
