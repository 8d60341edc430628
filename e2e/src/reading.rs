//! What a user sees: texts, values, counts. Everything waits until it exists.
use serde_json::json;

use crate::page::Page;

impl Page {
    /// The visible text of the first element that matches `css`.
    #[track_caller]
    pub fn text(&self, css: &str) -> String {
        self.until(css, || self.property(css, "innerText"))
    }

    /// The visible texts of all that match `css` now.
    #[track_caller]
    pub fn texts(&self, css: &str) -> Vec<String> {
        let texts = self
            .js("return [...document.querySelectorAll(arguments[0])].map(e => e.innerText)", &[json!(css)]);
        texts.as_array().into_iter().flatten().filter_map(|t| t.as_str().map(str::to_owned)).collect()
    }

    /// Waits until the first element that matches `css` shows `part`, and returns its full text.
    #[track_caller]
    pub fn wait_text(&self, css: &str, part: &str) -> String {
        let seen = std::cell::RefCell::new(String::new());
        let what = format!("{css} with the text {part:?}");
        self.until(&what, || {
            let text = self.property(css, "innerText")?;
            if text.contains(part) {
                return Some(text);
            }
            if *seen.borrow() != text {
                eprintln!("waiting for {part:?}; {css} shows {text:?}");
                seen.replace(text);
            }
            None
        })
    }

    /// Waits until something matches `css`.
    #[track_caller]
    pub fn wait_for(&self, css: &str) {
        self.until(css, || (self.count(css) > 0).then_some(()));
    }

    /// Waits until nothing matches `css` any more.
    #[track_caller]
    pub fn wait_gone(&self, css: &str) {
        self.until(&format!("{css} gone"), || (self.count(css) == 0).then_some(()));
    }

    /// The visible text of the first element that matches `css` in the frame that matches `frame`.
    #[track_caller]
    pub fn inside(&self, frame: &str, css: &str) -> String {
        let element = self.until(frame, || self.element(frame));
        self.wait(frame, element.enter_frame());
        let text = self.text(css);
        self.wait("the page around the frame", self.session().enter_default_frame());
        text
    }

    /// How many elements match `css` now.
    #[track_caller]
    pub fn count(&self, css: &str) -> u64 {
        let count = self.js("return document.querySelectorAll(arguments[0]).length", &[json!(css)]);
        count.as_u64().expect("a length")
    }

    /// The value of the field that matches `css`.
    #[track_caller]
    pub fn value(&self, css: &str) -> String {
        self.until(css, || self.property(css, "value"))
    }

    /// An attribute of the first element that matches `css`; `None` if it has none.
    #[track_caller]
    pub fn attribute(&self, css: &str, name: &str) -> Option<String> {
        self.wait_for(css);
        let value = self.js(
            "return document.querySelector(arguments[0])?.getAttribute(arguments[1])",
            &[json!(css), json!(name)],
        );
        value.as_str().map(str::to_owned)
    }

    /// The text on the clipboard.
    #[track_caller]
    pub fn clipboard(&self) -> String {
        // permissions that are not named are refused from then on
        let both = ["clipboardReadWrite", "clipboardSanitizedWrite"];
        self.devtools("Browser.grantPermissions", json!({ "permissions": both }));
        let text =
            self.js_async("navigator.clipboard.readText().then(arguments[0], e => arguments[0](null))", &[]);
        text.as_str().expect("the clipboard can be read").to_owned()
    }

    fn property(&self, css: &str, name: &str) -> Option<String> {
        let value = self
            .js("return document.querySelector(arguments[0])?.[arguments[1]]", &[json!(css), json!(name)]);
        value.as_str().map(str::to_owned)
    }
}
