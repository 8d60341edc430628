//! What a reader does: clicks, keys, typing, pasting. Everything waits until it can be done.
use serde_json::json;
use thirtyfour::prelude::*;
use thirtyfour::{TypingData, WebElement};

use crate::Page;

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

    /// Types `text` into the field that matches `css`, key by key, after what it holds.
    #[track_caller]
    pub fn type_into(&self, css: &str, text: &str) {
        let field = self.until(css, || self.element(css));
        self.wait(css, field.send_keys(text));
    }

    /// Replaces what the field that matches `css` holds, at once, as a paste over everything does.
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

    /// A page that redraws may replace the element between finding and clicking it: both are tried together.
    #[track_caller]
    fn click_on(&self, what: &str, find: impl Fn() -> Option<WebElement>) {
        self.until(&format!("a click on {what}"), || {
            let element = find()?;
            self.attempt(element.click()).ok()
        });
    }

    fn element(&self, css: &str) -> Option<WebElement> {
        self.element_by("return document.querySelector(arguments[0])", &[json!(css)])
    }

    fn element_by(&self, script: &str, arguments: &[serde_json::Value]) -> Option<WebElement> {
        let found = self.attempt(self.session().execute(script, arguments.to_vec())).ok()?;
        found.element().ok()
    }
}
