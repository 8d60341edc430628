//! The three-way switch between the system's colours, light and dark.

use super::{Sign, Tag, tag};
use crate::app::act::Act;
use crate::app::desk::Desk;
use crate::app::dom;

const CHOICES: [(&str, &str, Sign); 3] =
    [("auto", "As the system", Sign::Half), ("light", "Light", Sign::Sun), ("dark", "Dark", Sign::Moon)];

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
    let choice = |&(value, label, sign): &(&'static str, &'static str, Sign)| {
        let radio = tag("input")
            .set("type", "radio")
            .set("name", "theme")
            .set("value", value)
            .checked(desk.look.theme == value)
            .set("aria-label", label)
            .on(desk, "change", Act::Theme(value));
        tag("label").set("title", label).child(radio).child(tag("span").child(sign.icon()))
    };
    tag("fieldset.switch").with("legend.hidden", "Colours").each(&CHOICES, choice)
}
