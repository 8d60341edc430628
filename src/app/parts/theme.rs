//! The three-way switch between the system's colours, light and dark.

use yew::prelude::*;

use super::{Sign, icon};
use crate::app::dom;

const CHOICES: [(&str, &str, Sign); 3] =
    [("auto", "As the system", Sign::Half), ("light", "Light", Sign::Sun), ("dark", "Dark", Sign::Moon)];

#[component]
pub(crate) fn Theme() -> Html {
    let chosen = use_state(|| match dom::kept(dom::THEME).as_deref() {
        Some("light") => "light",
        Some("dark") => "dark",
        _ => "auto",
    });
    let choice = |&(value, label, sign): &(&'static str, &'static str, Sign)| {
        let onchange = {
            let chosen = chosen.clone();
            move |_| {
                dom::set_theme(value);
                dom::keep(dom::THEME, value);
                chosen.set(value);
            }
        };
        html! {
            <label title={label}>
                <input type="radio" name="theme" {value} checked={*chosen == value} {onchange} aria-label={label} />
                <span>{ icon(sign) }</span>
            </label>
        }
    };
    html! {
        <fieldset class="switch">
            <legend class="hidden">{ "Colours" }</legend>
            { for CHOICES.iter().map(choice) }
        </fieldset>
    }
}
