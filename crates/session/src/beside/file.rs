//! The files as which a plan can be downloaded.

use serde::{Deserialize, Serialize};
use shardscope_report::{communication_csv, memory_csv, settings_csv, text};

use crate::answer::Shown;
use crate::picture::{bars_svg, map_svg};

/// Kind of file to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlanFile {
    /// The report as a JSON document.
    Json,
    /// The report as plain text.
    Text,
    /// The report as Markdown.
    Markdown,
    /// Memory of each stage.
    MemoryCsv,
    /// Every collective.
    CommunicationCsv,
    /// Every setting with its origin.
    SettingsCsv,
    /// The bars of memory as a picture.
    MemoryBars,
    /// The map of the cluster as a picture.
    Map,
}

impl PlanFile {
    /// Every kind of file.
    pub const ALL: [Self; 8] = [
        Self::Json,
        Self::Text,
        Self::Markdown,
        Self::MemoryCsv,
        Self::CommunicationCsv,
        Self::SettingsCsv,
        Self::MemoryBars,
        Self::Map,
    ];

    /// The file of `shown`; pictures are SVG.
    #[must_use]
    pub fn written(self, shown: &Shown) -> String {
        match self {
            Self::Json => shown.json(),
            Self::Text => shown.text(),
            Self::Markdown => text::markdown(&shown.plan, &shown.report),
            Self::MemoryCsv => memory_csv(&shown.report),
            Self::CommunicationCsv => communication_csv(&shown.report),
            Self::SettingsCsv => settings_csv(&shown.answer.resolution.settings),
            Self::MemoryBars => bars_svg(shown),
            Self::Map => map_svg(shown),
        }
    }
}
