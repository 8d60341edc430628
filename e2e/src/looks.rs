//! How the page is viewed: window, phone, dark mode, screenshots.
use std::path::PathBuf;

use serde_json::json;

use crate::driver::Kind;
use crate::page::{Page, screenshots};
use crate::window::Window;

/// Maximum window height for a picture of the whole page, in CSS pixels; Chromium's own limit is 16,384.
const HIGHEST: u32 = 12_000;

impl Page {
    /// Sets the viewport size, in CSS pixels. Narrower than a desktop window can be is fine.
    #[track_caller]
    pub fn set_window(&self, width: u32, height: u32) {
        self.show(Window { width, height, scale: 1, mobile: false });
    }

    /// A phone held upright: 390 x 844 CSS pixels, touch. In Firefox, whose driver does not support phones, the
    /// narrowest possible window.
    #[track_caller]
    pub fn phone(&self) {
        if self.kind == Kind::Firefox {
            return self.set_window(450, 844);
        }
        self.show(Window { width: 390, height: 844, scale: 2, mobile: true });
        self.devtools("Emulation.setTouchEmulationEnabled", json!({ "enabled": true }));
    }

    /// Makes the system prefer dark or light colours.
    #[track_caller]
    pub fn prefer_dark(&self, dark: bool) {
        self.prefer("prefers-color-scheme", if dark { "dark" } else { "light" });
    }

    /// Sets one feature of the media queries: `prefers-reduced-motion`, `forced-colors`, …
    #[track_caller]
    pub fn prefer(&self, feature: &str, value: &str) {
        self.devtools(
            "Emulation.setEmulatedMedia",
            json!({ "features": [{ "name": feature, "value": value }] }),
        );
    }

    /// A picture of what the window shows: `target/screenshots/NAME.png`.
    #[track_caller]
    pub fn screenshot(&self, name: &str) -> PathBuf {
        let file = screenshots().join(format!("{name}.png"));
        self.wait("a screenshot", self.session().screenshot(&file));
        file
    }

    /// A picture of the full page, whatever its length.
    #[track_caller]
    pub fn screenshot_whole(&self, name: &str) -> PathBuf {
        let window = self.window.get();
        let height = self.js("return document.documentElement.scrollHeight", &[]).as_u64();
        let height = height.and_then(|h| u32::try_from(h).ok()).unwrap_or(window.height);
        self.show(Window { height: height.min(HIGHEST), ..window });
        let file = self.screenshot(name);
        self.show(window);
        file
    }

    /// By how many CSS pixels the page is wider than the window; above 0 the user must scroll sideways.
    #[track_caller]
    pub fn overflow(&self) -> i64 {
        let wider = self.js("const e = document.documentElement; return e.scrollWidth - e.clientWidth", &[]);
        wider.as_i64().expect("a difference")
    }

    #[track_caller]
    pub(crate) fn show(&self, window: Window) {
        self.window.set(window);
        let Window { width, height, scale, mobile } = window;
        if self.kind == Kind::Firefox {
            // Its driver sets the whole window, which includes a frame around the page.
            let around = self.js("return [outerWidth - innerWidth, outerHeight - innerHeight]", &[]);
            let around = |at: usize| around[at].as_u64().and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
            let size = (width + around(0), height + around(1));
            return self.wait("a window", self.session().set_window_rect(0, 0, size.0, size.1));
        }
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            json!({ "width": width, "height": height, "deviceScaleFactor": scale, "mobile": mobile }),
        );
    }
}
