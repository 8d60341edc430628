//! The details of an answer, and their names in addresses.

/// A panel; the register in `panels/mod.rs` defines what each shows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PanelId {
    Overview,
    Advice,
    Memory,
    Time,
    Schedule,
    Communication,
    Map,
    Layers,
    Gemms,
    Search,
    Settings,
    Compare,
    Tool,
}

/// All of them with their names in addresses, which are the ids of their sections too, in the order of their tabs.
const NAMES: [(PanelId, &str); 13] = [
    (PanelId::Overview, "overview"),
    (PanelId::Advice, "suggestions"),
    (PanelId::Memory, "memory"),
    (PanelId::Time, "time"),
    (PanelId::Schedule, "schedule"),
    (PanelId::Communication, "communication"),
    (PanelId::Map, "map"),
    (PanelId::Layers, "layers"),
    (PanelId::Gemms, "gemms"),
    (PanelId::Search, "search"),
    (PanelId::Settings, "settings"),
    (PanelId::Compare, "comparison"),
    (PanelId::Tool, "analysis-tool"),
];

impl PanelId {
    /// Every panel, in the order of the tabs.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        NAMES.into_iter().map(|(id, _)| id)
    }

    /// Name in addresses.
    pub(crate) fn name(self) -> &'static str {
        NAMES.iter().find(|(id, _)| *id == self).map_or("", |(_, name)| name)
    }

    /// The panel with this name in addresses.
    pub(crate) fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|(_, known)| *known == name).map(|(id, _)| *id)
    }
}
