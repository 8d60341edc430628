//! The three-way switch between the system's colours, light and dark.

use super::{Sign, Tag, tag};
use crate::app::act::Act;
use crate::app::desk::Desk;
use crate::app::dom;
use crate::app::words::toolbar as words;

const CHOICES: [(&str, Sign); 3] = [("auto", Sign::Half), ("light", Sign::Sun), ("dark", Sign::Moon)];

/// What the reader chose when they were here last.
pub(crate) fn chosen() -> &'static str {
    match dom::kept(dom::THEME).as_deref() {
        Some("light") => "light",
        Some("dark") => "dark",
        _ => "auto",
    }
}

/// Takes up `theme` and keeps it for the next visit.
pub(crate) fn choose(theme: &str) {
    dom::set_theme(theme);
    dom::keep(dom::THEME, theme);
}

pub(crate) fn switch(desk: &Desk) -> Tag {
    let choice = |(value, sign): (&'static str, Sign), label: &'static str| {
        let radio = tag("input")
            .set("type", "radio")
            .set("name", "theme")
            .set("value", value)
            .checked(desk.look.theme == value)
            .set("aria-label", label)
            .on(desk, "change", Act::Theme(value));
        tag("label").set("title", label).child(radio).child(tag("span").child(sign.icon()))
    };
    let switch = tag("fieldset.switch").with("legend.hidden", words::COLOURS);
    CHOICES
        .into_iter()
        .zip(words::THEMES)
        .fold(switch, |switch, (one, label)| switch.child(choice(one, label)))
}
