//! The browser, and a chromedriver process that does not outlive its test.
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;

use xtask::browser::{Browser, locate};

/// The browser of this machine, its driver and axe-core.
pub(crate) fn browser() -> &'static Browser {
    static FOUND: OnceLock<Browser> = OnceLock::new();
    FOUND.get_or_init(|| {
        locate().unwrap_or_else(|error| {
            panic!("no browser to test with (`cargo xtask install tests` gets one): {error:#}")
        })
    })
}

/// How often a chromedriver is started that finds no port.
const TRIES: u32 = 5;

/// A chromedriver on a port of its own; killed when dropped.
pub(crate) struct Chromedriver {
    process: Child,
    port: u16,
}

impl Chromedriver {
    /// `temporary` is where it and its browser put their temporary files.
    pub(crate) fn start(temporary: &Path) -> Self {
        (0..TRIES).find_map(|_| Self::try_start(temporary)).expect("chromedriver finds a port")
    }

    /// None where it ends at once: it picks a free port of IPv4 and wants the same of IPv6, which another may have.
    fn try_start(temporary: &Path) -> Option<Self> {
        let mut process = Command::new(&browser().chromedriver)
            .args(["--port=0", "--log-level=SEVERE"])
            .env("TMPDIR", temporary)
            .stdout(Stdio::piped())
            .spawn()
            .expect("chromedriver can be run");
        let mut lines =
            BufReader::new(process.stdout.take().expect("stdout is piped")).lines().map_while(Result::ok);
        let port = lines
            .find_map(|line| line.split_once("successfully on port ")?.1.trim_end_matches('.').parse().ok());
        // nobody reads on, but the pipe must not fill up
        thread::spawn(move || lines.for_each(drop));
        let mut started = Self { process, port: 0 };
        started.port = port?;
        Some(started)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn kill(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl Drop for Chromedriver {
    fn drop(&mut self) {
        self.kill();
    }
}
