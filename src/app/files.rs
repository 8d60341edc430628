//! The files as which a plan can be downloaded, named after it. They are written by the search module, which is
//! loaded when the first one is requested.

use std::cell::RefCell;
use std::rc::Rc;

use shardscope::session::beside::PlanFile;
use shardscope::session::{Shown, UserInput, file_stem};
use yew::Callback;

use super::{beside, browser};
use crate::soon::soon;

/// A file.
pub(crate) struct Offered {
    /// Text of the button.
    pub label: &'static str,
    /// What follows the plan's name in the file name.
    ending: &'static str,
    kind: &'static str,
    /// Its content; for a raster image, the drawing that it is made from.
    holds: PlanFile,
}

const POINTS: &str = "image/png";
const DRAWING: &str = "image/svg+xml";

/// Files that the share sheet offers.
pub(crate) static FILES: [Offered; 10] = [
    Offered { label: "Report, JSON", ending: "report.json", kind: "application/json", holds: PlanFile::Json },
    Offered { label: "Report, text", ending: "report.txt", kind: "text/plain", holds: PlanFile::Text },
    Offered {
        label: "Report, Markdown",
        ending: "report.md",
        kind: "text/markdown",
        holds: PlanFile::Markdown,
    },
    Offered { label: "Memory, CSV", ending: "memory.csv", kind: "text/csv", holds: PlanFile::MemoryCsv },
    Offered {
        label: "Communication, CSV",
        ending: "communication.csv",
        kind: "text/csv",
        holds: PlanFile::CommunicationCsv,
    },
    Offered {
        label: "Settings, CSV",
        ending: "settings.csv",
        kind: "text/csv",
        holds: PlanFile::SettingsCsv,
    },
    Offered { label: "Memory bars, SVG", ending: "memory.svg", kind: DRAWING, holds: PlanFile::MemoryBars },
    Offered { label: "Memory bars, PNG", ending: "memory.png", kind: POINTS, holds: PlanFile::MemoryBars },
    Offered { label: "Cluster map, SVG", ending: "map.svg", kind: DRAWING, holds: PlanFile::Map },
    Offered { label: "Cluster map, PNG", ending: "map.png", kind: POINTS, holds: PlanFile::Map },
];

impl Offered {
    /// Offers the file of `shown`, the plan of `input`; `written` is told whether it could be written.
    pub(crate) fn give(&'static self, shown: &Shown, input: &UserInput, written: Callback<bool>) {
        let name = format!("{}-{}", file_stem(shown), self.ending);
        // Keeps itself alive: otherwise the work would end with this function, and nothing else holds it.
        let held = Rc::new(RefCell::new(None));
        let end = held.clone();
        let work = beside::file(input, self.holds, move |text| {
            match &text {
                Some(text) if self.kind == POINTS => browser::download_png(&name, text),
                Some(text) => browser::download(&name, self.kind, text),
                None => {}
            }
            written.emit(text.is_some());
            // The work owns the closure that is running here, so drop it afterwards.
            let end = end.clone();
            soon(move || drop(end.take()));
        });
        held.replace(Some(work));
    }
}
