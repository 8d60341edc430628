//! `evidence.html`.

use super::compared;
use crate::Page;
use crate::html::escape;

/// Every measured row, predicted beside measured.
#[must_use]
pub fn page() -> Page {
    Page {
        file: "evidence.html",
        name: "Evidence",
        about: "Published training runs, each as a plan: what was measured, and what the engine says.",
        scripts: &["evidence.js"],
        body,
    }
}

fn body() -> String {
    let mut out = String::from(
        "<div class=\"wide\" role=\"region\" aria-label=\"Runs\" tabindex=\"0\">\n<table class=\"figures\">\n<thead><tr><th scope=\"col\">Run</th>\
         <th scope=\"col\" class=\"number\">Measured s</th><th scope=\"col\" class=\"number\">Predicted s</th>\
         <th scope=\"col\" class=\"number\">Error %</th></tr></thead>\n<tbody>\n",
    );
    for one in compared() {
        out += &format!(
            "<tr><th scope=\"row\">{}</th><td class=\"number\">{}</td><td class=\"number\">{:.3}</td><td class=\"number\">{:+.1}</td></tr>\n",
            escape(one.row.text("id")),
            one.row.measured(),
            one.predicted,
            100.0 * one.error
        );
    }
    out + "</tbody>\n</table>\n</div>\n"
}
