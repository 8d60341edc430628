//! The files that a plan can be taken away in.

use shardscope::report::{communication_csv, memory_csv, settings_csv, text};
use shardscope::session::{Shown, bars_svg, map_svg};

use super::act::Act;
use super::desk::Desk;
use super::dom;
use super::parts::{Sign, Tag, button};

/// A file.
pub(crate) struct File {
    name: &'static str,
    kind: &'static str,
    /// What it holds; the drawing of a picture of points.
    make: fn(&Shown) -> String,
}

const POINTS: &str = "image/png";
const DRAWING: &str = "image/svg+xml";

/// What the sheet has; their names stand in `words::share::FILE_NAMES`.
pub(crate) static FILES: [File; 10] = [
    File { name: "shardscope-report.json", kind: "application/json", make: Shown::json },
    File { name: "shardscope-report.txt", kind: "text/plain", make: Shown::text },
    File {
        name: "shardscope-report.md",
        kind: "text/markdown",
        make: |shown| text::markdown(&shown.plan, &shown.report),
    },
    File { name: "shardscope-memory.csv", kind: "text/csv", make: |shown| memory_csv(&shown.report) },
    File {
        name: "shardscope-communication.csv",
        kind: "text/csv",
        make: |shown| communication_csv(&shown.report),
    },
    File {
        name: "shardscope-settings.csv",
        kind: "text/csv",
        make: |shown| settings_csv(&shown.answer.resolution.settings),
    },
    File { name: "shardscope-memory.svg", kind: DRAWING, make: bars_svg },
    File { name: "shardscope-memory.png", kind: POINTS, make: bars_svg },
    File { name: "shardscope-map.svg", kind: DRAWING, make: map_svg },
    File { name: "shardscope-map.png", kind: POINTS, make: map_svg },
];

/// What the verdict has; their names stand in `words::verdict::REPORTS`.
pub(crate) static REPORTS: [File; 2] = [
    File { name: "shardscope.json", kind: "application/json", make: Shown::json },
    File { name: "shardscope.txt", kind: "text/plain", make: Shown::text },
];

impl File {
    /// A button that gives it, called `label`.
    pub(crate) fn button(&'static self, desk: &Desk, label: &'static str) -> Tag {
        button(desk, "button.button", Act::Give(self)).child(Sign::Download.icon()).text(label)
    }

    /// Gives the reader the file of `shown`.
    pub(crate) fn give(&self, shown: &Shown) {
        let text = (self.make)(shown);
        if self.kind == POINTS {
            dom::download_png(self.name, &text);
        } else {
            dom::download(self.name, self.kind, &text);
        }
    }
}
