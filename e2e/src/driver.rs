//! The browsers, and a driver process that does not outlive its test.
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use xtask::browser::{Browser, Firefox, locate, locate_firefox};

/// Which browser a page is opened in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Chromium or Chrome, which every journey uses.
    Chromium,
    /// Firefox, for the readers' journeys.
    Firefox,
}

/// The Chromium of this machine, its driver and axe-core.
pub(crate) fn browser() -> &'static Browser {
    static FOUND: OnceLock<Browser> = OnceLock::new();
    FOUND.get_or_init(|| {
        locate().unwrap_or_else(|error| {
            panic!("no browser to test with (`cargo xtask install tests` gets one): {error:#}")
        })
    })
}

/// The Firefox of this machine and its driver.
pub(crate) fn firefox() -> &'static Firefox {
    static FOUND: OnceLock<Firefox> = OnceLock::new();
    FOUND.get_or_init(|| {
        locate_firefox().unwrap_or_else(|error| {
            panic!("no Firefox to test with (`cargo xtask install tests` gets one): {error:#}")
        })
    })
}

/// How often starting a driver is tried if it finds no port.
const TRIES: u32 = 5;

/// A driver on its own port; killed when dropped.
pub(crate) struct Driver {
    process: Child,
    port: u16,
    /// What it and its browser have written so far.
    said: Arc<Mutex<Vec<String>>>,
}

impl Driver {
    /// `temporary` is where it and its browser put their temporary files.
    pub(crate) fn start(kind: Kind, temporary: &Path) -> Self {
        (0..TRIES).find_map(|_| Self::try_start(kind, temporary)).expect("the driver finds a port")
    }

    /// `None` if it ends at once: chromedriver picks a free IPv4 port and needs the same one for IPv6, which may be
    /// taken.
    fn try_start(kind: Kind, temporary: &Path) -> Option<Self> {
        let (program, arguments, before) = match kind {
            Kind::Chromium => {
                (&browser().chromedriver, ["--port=0", "--log-level=SEVERE"], "successfully on port ")
            }
            Kind::Firefox => (&firefox().geckodriver, ["--port=0", "--log=info"], "Listening on 127.0.0.1:"),
        };
        let mut process = Command::new(program)
            .args(arguments)
            .env("TMPDIR", temporary)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the driver can be run");
        let said = Arc::default();
        let (tell, lines) = channel();
        listen(process.stdout.take().expect("stdout is piped"), &said, tell.clone());
        listen(process.stderr.take().expect("stderr is piped"), &said, tell);
        let mut started = Self { process, port: 0, said };
        started.port = port(&lines, before)?;
        Some(started)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The lines that it and its browser have written so far.
    pub(crate) fn said(&self) -> Vec<String> {
        self.said.lock().expect("nobody panics while it is held").clone()
    }

    pub(crate) fn kill(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Collects every line, so that the pipe does not fill up.
fn listen(pipe: impl Read + Send + 'static, said: &Arc<Mutex<Vec<String>>>, tell: Sender<String>) {
    let said = Arc::clone(said);
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            // There is no receiver once the port is known.
            drop(tell.send(line.clone()));
            said.lock().expect("nobody panics while it is held").push(line);
        }
    });
}

/// The port after the text `before`; `None` if the driver ends without stating it.
fn port(lines: &Receiver<String>, before: &str) -> Option<u16> {
    lines.iter().find_map(|line| {
        let (_, after) = line.split_once(before)?;
        after.split(|sign: char| !sign.is_ascii_digit()).next()?.parse().ok()
    })
}
