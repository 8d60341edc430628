//! What a user does: clicks, keys, typing, pasting. Everything waits until it can be done.
use std::path::Path;

use serde_json::json;
use thirtyfour::prelude::*;
use thirtyfour::{TypingData, WebElement};

use crate::page::Page;

const MODIFIERS: [Key; 4] = [Key::Shift, Key::Control, Key::Alt, Key::Meta];

impl Page {
    /// Clicks the first element that matches `css`, where a mouse would hit it.
    #[track_caller]
    pub fn click(&self, css: &str) {
        self.click_on(css, || self.element(css));
    }

    /// Clicks the first element that matches `css` and whose text is `text`, as on a button.
    #[track_caller]
    pub fn click_text(&self, css: &str, text: &str) {
        let script = "return [...document.querySelectorAll(arguments[0])]
            .find(e => e.innerText.trim() === arguments[1])";
        self.click_on(&format!("{css} {text:?}"), || self.element_by(script, &[json!(css), json!(text)]));
    }

    /// Types `text` into the field that matches `css`, key by key, after its existing content.
    #[track_caller]
    pub fn type_into(&self, css: &str, text: &str) {
        let field = self.until(css, || self.element(css));
        self.wait(css, field.send_keys(text));
    }

    /// Replaces the content of the field that matches `css` at once, like pasting over everything.
    #[track_caller]
    pub fn fill(&self, css: &str, text: &str) {
        self.wait_for(css);
        self.js(
            "const e = document.querySelector(arguments[0]);
             e.focus();
             e.value = arguments[1];
             e.dispatchEvent(new InputEvent('input', { bubbles: true, inputType: 'insertFromPaste' }))",
            &[json!(css), json!(text)],
        );
    }

    /// Presses keys on whatever has the focus: `Key::Tab`, `"abc"`. A modifier is held until the end:
    /// `Key::Shift + Key::Tab`, `Key::Control + "a"`.
    #[track_caller]
    pub fn press(&self, keys: impl Into<TypingData>) {
        let mut chain = self.session().action_chain();
        let mut held = Vec::new();
        for key in keys.into().as_vec() {
            if MODIFIERS.iter().any(|m| m.value() == key) {
                held.push(key);
                chain = chain.key_down(key);
            } else {
                chain = chain.key_down(key).key_up(key);
            }
        }
        let chain = held.into_iter().fold(chain, |chain, key| chain.key_up(key));
        self.wait("keys", chain.perform());
    }

    /// Chooses the option of the `<select>` that matches `css` by its value, with its events.
    #[track_caller]
    pub fn choose(&self, css: &str, value: &str) {
        self.wait_for(&format!("{css} option[value={value:?}]"));
        self.js(
            "const e = document.querySelector(arguments[0]); e.value = arguments[1];
             for (const kind of ['input', 'change']) e.dispatchEvent(new Event(kind, { bubbles: true }))",
            &[json!(css), json!(value)],
        );
    }

    /// Drops the file on the element that matches `css`, as from a file manager.
    #[track_caller]
    pub fn drop_file(&self, css: &str, file: &Path) {
        self.drop_files(css, &[file]);
    }

    /// Drops several files at once.
    #[track_caller]
    pub fn drop_files(&self, css: &str, files: &[&Path]) {
        let (x, y) = self.middle(css);
        let data = json!({ "items": [], "files": files, "dragOperationsMask": 1 });
        for kind in ["dragEnter", "dragOver", "drop"] {
            let event = json!({ "type": kind, "x": x, "y": y, "data": data });
            self.devtools("Input.dispatchDragEvent", event);
        }
    }

    /// Chooses the file in the file field that matches `css`.
    #[track_caller]
    pub fn choose_file(&self, css: &str, file: &Path) {
        let field = self.until(css, || self.element(css));
        self.wait(css, field.send_keys(file.to_string_lossy()));
    }

    /// Drags the element that matches `css` by its middle, sideways by `distance` CSS pixels.
    #[track_caller]
    pub fn drag(&self, css: &str, distance: f64) {
        let (x, y) = self.middle(css);
        let mouse = |kind: &str, x: f64, buttons: u32| {
            let event = json!({ "type": kind, "x": x, "y": y, "button": "left", "buttons": buttons, "clickCount": 1 });
            self.devtools("Input.dispatchMouseEvent", event);
        };
        mouse("mouseMoved", x, 0);
        mouse("mousePressed", x, 1);
        for step in 1..=4 {
            mouse("mouseMoved", x + distance * f64::from(step) / 4.0, 1);
        }
        mouse("mouseReleased", x + distance, 0);
    }

    /// The middle of the first element that matches `css`, scrolled into view. Unit: CSS pixel of the window.
    #[track_caller]
    fn middle(&self, css: &str) -> (f64, f64) {
        self.wait_for(css);
        let place = self.js(
            "const e = document.querySelector(arguments[0]);
             e.scrollIntoView({ block: 'center', behavior: 'instant' });
             const box = e.getBoundingClientRect();
             return [box.x + box.width / 2, box.y + box.height / 2]",
            &[json!(css)],
        );
        let at = |i: usize| place[i].as_f64().expect("a length");
        (at(0), at(1))
    }

    /// The element that has the focus, as a short description: `textarea#script`, `button "Copy"`.
    #[track_caller]
    pub fn focused(&self) -> String {
        let described = self.js(
            "const e = document.activeElement;
             const name = e.getAttribute('aria-label') || (e.matches('textarea,input,select') ? '' : e.innerText.trim().slice(0, 40));
             return e.localName + (e.id ? '#' + e.id : '') + (name ? ' ' + JSON.stringify(name) : '')",
            &[],
        );
        described.as_str().unwrap_or_default().to_owned()
    }

    /// A page that redraws may replace the element between finding and clicking it: so both are retried together.
    #[track_caller]
    fn click_on(&self, what: &str, find: impl Fn() -> Option<WebElement>) {
        self.until(&format!("a click on {what}"), || {
            let element = find()?;
            if !self.is_still(&element) {
                return None;
            }
            self.attempt(element.click()).ok()
        });
    }

    /// Whether the element stands where it stood two frames ago. The driver looks up a place and then clicks there: rows that
    /// a search adds above in between let it click beside the element, without an error.
    fn is_still(&self, element: &WebElement) -> bool {
        let script = "const [e, done] = arguments;
            const place = () => { const r = e.getBoundingClientRect(); return `${r.x} ${r.y}` };
            const before = place();
            requestAnimationFrame(() => requestAnimationFrame(() => done(place() === before)))";
        let Ok(element) = element.to_json() else { return false };
        let told = self.attempt(self.session().execute_async(script, vec![element]));
        told.is_ok_and(|told| told.convert().unwrap_or_default())
    }

    pub(crate) fn element(&self, css: &str) -> Option<WebElement> {
        self.element_by("return document.querySelector(arguments[0])", &[json!(css)])
    }

    fn element_by(&self, script: &str, arguments: &[serde_json::Value]) -> Option<WebElement> {
        let found = self.attempt(self.session().execute(script, arguments.to_vec())).ok()?;
        found.element().ok()
    }
}
