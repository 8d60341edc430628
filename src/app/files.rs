//! The files that a plan can be taken away in, named after it.

use shardscope::report::{communication_csv, memory_csv, settings_csv, text};
use shardscope::session::{Shown, bars_svg, file_stem, map_svg};

use super::browser;

/// A file.
pub(crate) struct PlanFile {
    /// What the button says.
    pub label: &'static str,
    /// What follows the plan's name in the file's.
    ending: &'static str,
    kind: &'static str,
    /// What it holds; the drawing of a picture of points.
    make: fn(&Shown) -> String,
}

const POINTS: &str = "image/png";
const DRAWING: &str = "image/svg+xml";

/// What the share sheet has.
pub(crate) static FILES: [PlanFile; 10] = [
    PlanFile { label: "Report, JSON", ending: "report.json", kind: "application/json", make: Shown::json },
    PlanFile { label: "Report, text", ending: "report.txt", kind: "text/plain", make: Shown::text },
    PlanFile {
        label: "Report, Markdown",
        ending: "report.md",
        kind: "text/markdown",
        make: |shown| text::markdown(&shown.plan, &shown.report),
    },
    PlanFile {
        label: "Memory, CSV",
        ending: "memory.csv",
        kind: "text/csv",
        make: |shown| memory_csv(&shown.report),
    },
    PlanFile {
        label: "Communication, CSV",
        ending: "communication.csv",
        kind: "text/csv",
        make: |shown| communication_csv(&shown.report),
    },
    PlanFile {
        label: "Settings, CSV",
        ending: "settings.csv",
        kind: "text/csv",
        make: |shown| settings_csv(&shown.answer.resolution.settings),
    },
    PlanFile { label: "Memory bars, SVG", ending: "memory.svg", kind: DRAWING, make: bars_svg },
    PlanFile { label: "Memory bars, PNG", ending: "memory.png", kind: POINTS, make: bars_svg },
    PlanFile { label: "Cluster map, SVG", ending: "map.svg", kind: DRAWING, make: map_svg },
    PlanFile { label: "Cluster map, PNG", ending: "map.png", kind: POINTS, make: map_svg },
];

impl PlanFile {
    /// Gives the reader the file of `shown`.
    pub(crate) fn give(&self, shown: &Shown) {
        let text = (self.make)(shown);
        let name = format!("{}-{}", file_stem(shown), self.ending);
        if self.kind == POINTS {
            browser::download_png(&name, &text);
        } else {
            browser::download(&name, self.kind, &text);
        }
    }
}
