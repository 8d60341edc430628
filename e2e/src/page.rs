//! Opening the page in its own browser, and closing it however the test ends.
use std::cell::{Cell, OnceCell, RefCell};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use serde_json::{Value, json};
use thirtyfour::common::capabilities::firefox::FirefoxPreferences;
use thirtyfour::prelude::*;
use thirtyfour::{Capabilities, ChromiumLikeCapabilities, LoggingPrefsLogLevel};
use tokio::runtime::{Builder, Runtime};
use xtask::site::{Fault, Running, Server, Site};

use crate::driver::{Driver, Kind, browser, firefox};
use crate::scratch::Scratch;
use crate::watch::Watch;
use crate::window::{DESKTOP, Window};

/// How long anything may take: generous for a loaded machine, not for a slow page.
pub const PATIENCE: Duration = Duration::from_secs(40);
/// How long a browser has to shut down; one that hangs never does.
const FAREWELL: Duration = Duration::from_secs(15);
/// Time between two checks of a page that is not yet as expected.
pub(crate) const GLANCE: Duration = Duration::from_millis(40);
/// Below the root, as for project pages on a host; this also tests relative addresses.
const SUB_PATH: &str = "/repo/sub/";

/// The built page in a headless browser, served by its own server.
pub struct Page {
    // dropped in this order: the driver ends before its directory is removed
    session: OnceCell<WebDriver>,
    pub(crate) driver: Driver,
    pub(crate) kind: Kind,
    runtime: Runtime,
    site: Running,
    scratch: Scratch,
    pub(crate) watch: RefCell<Watch>,
    pub(crate) window: Cell<Window>,
}

impl Page {
    /// Opens `dist/` at `path`, which is relative to the page (`""`, `"?embed=1"`, `"#/1?tp=8"`), and waits until the
    /// engine has replaced the static shell.
    #[track_caller]
    pub fn open(path: &str) -> Self {
        let page = Self::blank();
        page.goto(path);
        page
    }

    /// The same in another browser.
    #[track_caller]
    pub fn open_in(kind: Kind, path: &str) -> Self {
        let page = Self::blank_in(kind);
        page.goto(path);
        page
    }

    /// A browser with nothing in it yet, for what must be set before the page loads.
    #[track_caller]
    pub fn blank() -> Self {
        Self::blank_of(&dist())
    }

    /// The same in another browser.
    #[track_caller]
    pub fn blank_in(kind: Kind) -> Self {
        Self::blank_in_of(kind, &dist())
    }

    /// The same for another folder than `dist/`, as after the next release.
    #[track_caller]
    pub fn blank_of(folder: &Path) -> Self {
        Self::blank_in_of(Kind::Chromium, folder)
    }

    /// The same in either browser for any directory.
    #[track_caller]
    pub fn blank_in_of(kind: Kind, folder: &Path) -> Self {
        let site = Site { folder: folder.to_owned(), path: SUB_PATH.to_owned(), cross_origin: true };
        let site = Server::bind(site, 0, 1).and_then(Server::start).expect("a free port on 127.0.0.1");
        let scratch = Scratch::new();
        let page = Self {
            session: OnceCell::new(),
            driver: Driver::start(kind, scratch.path()),
            kind,
            scratch,
            runtime: Builder::new_current_thread().enable_all().build().expect("a runtime"),
            site,
            watch: RefCell::default(),
            window: Cell::new(DESKTOP),
        };
        let capabilities = match kind {
            Kind::Chromium => page.chromium(),
            Kind::Firefox => gecko(),
        };
        let session = page.wait("a browser", WebDriver::new(page.driver.url(), capabilities));
        page.session.set(session).unwrap_or_else(|_| unreachable!("set once"));
        page.show(DESKTOP);
        page
    }

    /// Goes to another address of the page; one that only differs in the fragment does not reload it.
    #[track_caller]
    pub fn goto(&self, path: &str) {
        self.goto_shell(path);
        self.wait_for_engine();
    }

    /// The same without waiting for the engine, which may never come.
    #[track_caller]
    pub fn goto_shell(&self, path: &str) {
        let url = format!("{}{path}", self.site.url());
        self.wait(&url, self.session().goto(&url));
    }

    /// Reloads the page, as with the reload button.
    #[track_caller]
    pub fn reload(&self) {
        self.wait("a reload", self.session().refresh());
        self.wait_for_engine();
    }

    /// `#loading` only exists in the static shell; the parts of the answer appear one after another.
    #[track_caller]
    fn wait_for_engine(&self) {
        self.until("the engine in the place of #loading", || {
            (self.count("#app") == 1 && self.count("#loading, [aria-busy=true]") == 0).then_some(())
        });
    }

    /// The address that the browser shows.
    #[track_caller]
    pub fn url(&self) -> String {
        self.wait("the address", self.session().current_url()).to_string()
    }

    /// Goes to somebody else's page, which they serve.
    #[track_caller]
    pub fn visit(&self, url: &str) {
        self.wait(url, self.session().goto(url));
    }

    /// The page's address without file, query and fragment.
    pub fn base(&self) -> &str {
        self.site.url()
    }

    /// Every path requested from the server, by the page and its workers.
    pub fn served(&self) -> Vec<String> {
        self.site.asked()
    }

    /// Stops the server, as if the network were gone.
    pub fn cut_off(&self) {
        self.site.stop();
    }

    /// Makes the server answer everything with `fault`; `None` restores normal answers.
    pub fn misbehave(&self, fault: Option<Fault>) {
        self.site.misbehave(fault);
    }

    /// Runs the body of a function in the page, with `arguments[0]`…, and returns its result.
    #[track_caller]
    pub fn js(&self, body: &str, arguments: &[Value]) -> Value {
        self.wait(body, self.session().execute(body, arguments.to_vec())).json().clone()
    }

    /// The same for a body that ends by calling its last argument with the result.
    #[track_caller]
    pub fn js_async(&self, body: &str, arguments: &[Value]) -> Value {
        self.wait(body, self.session().execute_async(body, arguments.to_vec())).json().clone()
    }

    /// A command of the Chrome DevTools Protocol.
    #[track_caller]
    pub fn devtools(&self, method: &str, parameters: Value) -> Value {
        self.wait(method, self.session().cdp().send_raw(method, parameters))
    }

    /// The bytes of the file `name` that the page gave for download.
    #[track_caller]
    pub fn downloaded(&self, name: &str) -> Vec<u8> {
        let file = self.scratch.path().join(name);
        // A browser writes a file piece by piece: it is complete once a later check finds it unchanged.
        let mut before = Vec::new();
        self.until(&format!("the download {name}"), || {
            let now = fs::read(&file).ok()?;
            let whole = !now.is_empty() && now == before;
            before.clone_from(&now);
            whole.then_some(now)
        })
    }

    pub(crate) fn session(&self) -> &WebDriver {
        self.session.get().expect("the session lives as long as the page")
    }

    #[track_caller]
    pub(crate) fn wait<T>(&self, what: &str, work: impl Future<Output = WebDriverResult<T>>) -> T {
        self.attempt(work).unwrap_or_else(|error| panic!("{what}: {error}"))
    }

    /// One attempt at something that the page may temporarily refuse.
    pub(crate) fn attempt<T>(&self, work: impl Future<Output = WebDriverResult<T>>) -> Result<T, String> {
        match self.limited(PATIENCE, work) {
            Some(done) => done.map_err(|error| error.to_string()),
            None => Err(format!("not in {} s", PATIENCE.as_secs())),
        }
    }

    /// `None` if it takes longer than `limit`.
    fn limited<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
        self.runtime.block_on(async { tokio::time::timeout(limit, work).await.ok() })
    }

    /// Polls until there is something.
    #[track_caller]
    pub fn until<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            if let Some(seen) = look() {
                return seen;
            }
            assert!(start.elapsed() < PATIENCE, "{what}: not in {} s", PATIENCE.as_secs());
            thread::sleep(GLANCE);
        }
    }

    fn chromium(&self) -> Capabilities {
        let mut chrome = DesiredCapabilities::chrome();
        let preferences = json!({ "download.default_directory": self.scratch.path() });
        let set = || -> WebDriverResult<()> {
            chrome.set_binary(&browser().chrome.to_string_lossy())?;
            for flag in flags() {
                chrome.add_arg(flag)?;
            }
            chrome.add_experimental_option("prefs", preferences)?;
            chrome.set_logging_prefs("browser".to_owned(), LoggingPrefsLogLevel::All)?;
            chrome.set_logging_prefs("performance".to_owned(), LoggingPrefsLogLevel::All)
        };
        set().expect("capabilities are JSON");
        chrome.into()
    }

    /// What a failed test leaves: a picture and the console. Must not panic: it may run while another panic unwinds.
    fn leave_traces(&self, session: &WebDriver) {
        let name = thread::current().name().unwrap_or("page").replace("::", "-");
        let picture = screenshots().join(format!("failed-{name}.png"));
        let traces = async {
            drop(session.screenshot(&picture).await);
            // Firefox's driver has no such log, and says so.
            session.browser_log().await.unwrap_or_default()
        };
        let log = self.limited(FAREWELL, traces);
        eprintln!("screenshot: {}", picture.display());
        for entry in log.unwrap_or_default() {
            eprintln!("console: {} {}", entry.level, entry.message);
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            if thread::panicking() {
                self.leave_traces(&session);
            }
            // the browser ends with its session, or otherwise with its driver and its directory
            let mut quit = Box::pin(session.quit());
            if self.limited(FAREWELL, &mut quit).is_none() {
                self.driver.kill();
            }
        }
    }
}

fn gecko() -> Capabilities {
    let mut gecko = DesiredCapabilities::firefox();
    let mut set = || -> WebDriverResult<()> {
        gecko.set_firefox_binary(&firefox().firefox.to_string_lossy())?;
        gecko.add_arg("-headless")?;
        let mut preferences = FirefoxPreferences::new();
        // The page's console output and errors appear among the driver's lines.
        preferences.set("devtools.console.stdout.content", true)?;
        preferences.set("ui.prefersReducedMotion", 1)?;
        gecko.set_preferences(preferences)
    };
    set().expect("capabilities are JSON");
    gecko.into()
}

fn flags() -> Vec<&'static str> {
    let mut flags = vec![
        "--headless=new",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-component-update",
        "--no-first-run",
        "--no-default-browser-check",
        "--force-color-profile=srgb",
        // Smooth scrolling is a race with every click; a journey about motion requests it explicitly.
        "--force-prefers-reduced-motion",
        "--lang=en-US",
    ];
    if env::var_os("CHROME_NO_SANDBOX").is_some() || is_root() {
        flags.push("--no-sandbox");
    }
    flags
}

/// Chromium refuses its own sandbox to root, as in most containers.
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// The repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this crate lies in the repository")
}

/// The built page.
pub fn dist() -> PathBuf {
    let dist = root().join("dist");
    assert!(dist.join("index.html").is_file(), "there is no page in dist/; tools/serve --build makes it");
    dist
}

/// `target/screenshots/`, created if it does not exist.
pub(crate) fn screenshots() -> PathBuf {
    let folder = root().join("target/screenshots");
    drop(fs::create_dir_all(&folder));
    folder
}
