//! A static file server for one folder on 127.0.0.1: enough for one reader and for the tests.
//!
//! It answers GET and HEAD, one request a connection, sends `application/wasm` for the engine, and
//! can put the folder below a path and allow other origins, as GitHub Pages does.

mod request;
mod response;

use std::io::{self, ErrorKind, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a silent connection is kept; browsers open some that they never use.
const PATIENCE: Duration = Duration::from_secs(20);

/// What is served, and how.
#[derive(Debug, Clone)]
pub struct Site {
    /// The folder.
    pub folder: PathBuf,
    /// Where it appears: begins and ends with a slash.
    pub path: String,
    /// Whether pages of other origins (and sandboxed frames) may load it.
    pub cross_origin: bool,
}

/// A bound address on which a [`Site`] can be served.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    site: Site,
}

/// A server running in threads of its own; stops when dropped.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    url: String,
    stop: Arc<AtomicBool>,
    asked: Asked,
}

/// The paths asked for, in the order in which they came.
type Asked = Arc<Mutex<Vec<String>>>;

impl Server {
    /// Binds 127.0.0.1 at `port` (0: any free one) or, where that is taken, at the next free of the `tries` ports from there.
    pub fn bind(site: Site, port: u16, tries: u16) -> io::Result<Self> {
        let last = port.saturating_add(tries.saturating_sub(1));
        for candidate in port..=last {
            match TcpListener::bind((Ipv4Addr::LOCALHOST, candidate)) {
                Ok(listener) => {
                    let address = listener.local_addr()?;
                    return Ok(Self { listener, address, site });
                }
                Err(e) if e.kind() == ErrorKind::AddrInUse => {}
                Err(e) => return Err(e),
            }
        }
        let taken = format!("ports {port} to {last} are all taken");
        Err(io::Error::new(ErrorKind::AddrInUse, taken))
    }

    /// The address of the folder's index page.
    pub fn url(&self) -> String {
        format!("http://{}{}", self.address, self.site.path)
    }

    /// Serves until the process ends.
    pub fn run(self) -> io::Result<()> {
        self.accept(&AtomicBool::new(false), None)
    }

    /// Serves in the background.
    pub fn start(self) -> Running {
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Asked::default();
        let running = Running {
            address: self.address,
            url: self.url(),
            stop: Arc::clone(&stop),
            asked: Arc::clone(&asked),
        };
        thread::spawn(move || self.accept(&stop, Some(&asked)));
        running
    }

    fn accept(&self, stop: &AtomicBool, asked: Option<&Asked>) -> io::Result<()> {
        for stream in self.listener.incoming() {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            // a connection that broke before it was accepted is no reason to stop
            let Ok(stream) = stream else { continue };
            let site = self.site.clone();
            let asked = asked.cloned();
            thread::spawn(move || answer(stream, &site, asked));
        }
        Ok(())
    }
}

impl Running {
    /// The address of the folder's index page.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Every path asked for so far, without its query.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Answers nobody any more, as a machine that went away.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        // wakes the accepting thread, which then sees the flag; if it is gone already, so much the better
        drop(TcpStream::connect(self.address));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

fn answer(mut stream: TcpStream, site: &Site, asked: Option<Asked>) {
    let sent =
        stream.set_read_timeout(Some(PATIENCE)).and_then(|()| request::read(&stream)).and_then(|request| {
            if let Some(asked) = asked {
                asked.lock().unwrap_or_else(PoisonError::into_inner).push(request.path.clone());
            }
            let response = response::respond(&request, site);
            stream.write_all(&response)
        });
    // a reader who has gone away needs no answer
    drop(sent);
}
