//! Accessibility rules of axe-core, run in the page. They find perhaps a third of possible problems.
use std::fs;

use serde_json::{Value, json};

use crate::driver::browser;
use crate::page::Page;

/// A rule of axe-core that the page breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Such as `color-contrast`.
    pub rule: String,
    /// `minor`, `moderate`, `serious` or `critical`.
    pub impact: String,
    /// What the rule requires.
    pub help: String,
    /// The elements at fault, as CSS selectors.
    pub elements: Vec<String>,
}

impl Page {
    /// Every rule of WCAG 2.0, 2.1 and 2.2 A and AA, and of good practice, that the page breaks in its current state.
    #[track_caller]
    pub fn axe(&self) -> Vec<Violation> {
        if self.js("return typeof window.axe", &[]) == "undefined" {
            let source = fs::read_to_string(&browser().axe).expect("axe-core is installed");
            // a script from the driver is not bound by the page's content security policy
            self.js(&format!("{source}; window.axe = axe"), &[]);
        }
        let result = self.js_async(
            "const done = arguments[1];
             axe.run(document, { runOnly: arguments[0] }).then(r => done(r), e => done({ error: String(e) }))",
            &[json!(["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"])],
        );
        assert!(
            result.get("passes").and_then(Value::as_array).is_some_and(|p| !p.is_empty()),
            "axe-core: {result}"
        );
        list(&result["violations"]).map(violation).collect()
    }
}

fn violation(rule: &Value) -> Violation {
    let text = |name: &str| rule[name].as_str().unwrap_or_default().to_owned();
    let elements = list(&rule["nodes"]).map(|node| {
        let path: Vec<_> = list(&node["target"]).filter_map(Value::as_str).collect();
        path.join(" ")
    });
    Violation { rule: text("id"), impact: text("impact"), help: text("help"), elements: elements.collect() }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
