//! What happens behind the page: the console, and every address it requests.
use std::collections::BTreeSet;

use crate::driver::Kind;
use crate::page::Page;
use crate::watch::requested;

impl Page {
    /// Everything written to the console so far, each line with its level before it.
    #[track_caller]
    pub fn console(&self) -> Vec<String> {
        self.listen();
        self.watch.borrow().console.iter().map(|(level, text)| format!("{level}: {text}")).collect()
    }

    /// Errors of the console so far: uncaught ones, missing files, what the content security policy stopped.
    #[track_caller]
    pub fn console_errors(&self) -> Vec<String> {
        self.listen();
        let watch = self.watch.borrow();
        watch.console.iter().filter(|(level, _)| level == "SEVERE").map(|(_, text)| text.clone()).collect()
    }

    /// Every address requested since the browser started, including refused ones.
    #[track_caller]
    pub fn requests(&self) -> BTreeSet<String> {
        self.listen();
        self.watch.borrow().requests.clone()
    }

    /// Addresses requested outside of the page's own directory.
    #[track_caller]
    pub fn foreign_requests(&self) -> Vec<String> {
        let own = [self.base(), "data:", "blob:", "about:"];
        let requests = self.requests();
        requests.into_iter().filter(|url| !own.iter().any(|start| url.starts_with(start))).collect()
    }

    /// Fails if the console contains an error, or if the page requested anything from anyone but itself.
    #[track_caller]
    pub fn assert_quiet(&self) {
        assert_eq!(self.console_errors(), [""; 0], "errors in the console");
        assert_eq!(self.foreign_requests(), [""; 0], "requests to others");
    }

    #[track_caller]
    fn listen(&self) {
        if self.kind == Kind::Firefox {
            return self.listen_to_firefox();
        }
        let console = self.wait("the console", self.session().get_log("browser"));
        let network = self.wait("the network log", self.session().get_log("performance"));
        let mut watch = self.watch.borrow_mut();
        watch.console.extend(console.into_iter().map(|entry| (entry.level, entry.message)));
        watch.requests.extend(network.iter().filter_map(|entry| requested(&entry.message)));
    }

    /// Its driver has no logs to query: errors are among what it writes, requests are those that the page itself
    /// knows.
    #[track_caller]
    fn listen_to_firefox(&self) {
        let asked = self.js("return performance.getEntriesByType('resource').map(entry => entry.name)", &[]);
        let asked = asked.as_array().into_iter().flatten().filter_map(|url| url.as_str());
        let errors = self.driver.said().into_iter().filter(|line| {
            // Messages from Firefox's own parts, which find no network, are not the page's; nor are those without a
            // file, as from a worker that was terminated while busy.
            let own = ["resource://", "chrome://", "console.error: RSLoader"]
                .iter()
                .any(|part| line.contains(part));
            !own && (line.starts_with("JavaScript error: http") || line.starts_with("console.error: "))
        });
        let mut watch = self.watch.borrow_mut();
        watch.console = errors.map(|line| ("SEVERE".to_owned(), line)).collect();
        watch.requests.extend(asked.map(str::to_owned));
    }
}
