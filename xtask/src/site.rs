//! A static file server for one folder on 127.0.0.1: for one user, and for the browser tests.
//!
//! It can serve the directory below a path and allow other origins, as GitHub Pages does, and sends `NAME.br` next to
//! a file if the browser accepts brotli.
use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::{
    ACCEPT_ENCODING, ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_LENGTH, HeaderValue, LAST_MODIFIED,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::middleware::{Next, from_fn};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tower_http::services::ServeDir;

/// A folder to serve, with its path and headers.
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

/// A server running in a separate thread; stops when dropped.
#[derive(Debug)]
pub struct Running {
    url: String,
    stop: Mutex<Option<oneshot::Sender<Infallible>>>,
    stopped: Mutex<Option<thread::JoinHandle<()>>>,
    asked: Asked,
    instead: Instead,
}

/// What a server sends instead of every answer.
#[derive(Debug, Clone)]
pub enum Fault {
    /// Somebody else's page, as sent by a network's captive portal.
    Page(String),
    /// The same, at another address.
    Redirect(String),
    /// A status such as 503, with a page that says so.
    Status(u16),
    /// Nothing at all, for this long.
    Silence(Duration),
    /// Half of what was asked for, sent as if it were the whole: an upload that broke off.
    Half,
}

/// The current fault.
type Instead = Arc<Mutex<Option<Fault>>>;

/// The requested paths, in order of arrival.
type Asked = Arc<Mutex<Vec<String>>>;

impl Server {
    /// Binds 127.0.0.1 at `port` (0: any free one) or, if that is taken, at the next free one of the `tries` ports
    /// from there.
    pub fn bind(site: Site, port: u16, tries: u16) -> io::Result<Self> {
        // No port follows 65,535.
        let last = port.saturating_add(tries.saturating_sub(1));
        for candidate in port..=last {
            match TcpListener::bind((Ipv4Addr::LOCALHOST, candidate)) {
                Ok(listener) => {
                    // tokio only accepts a listener in this mode.
                    listener.set_nonblocking(true)?;
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
    pub fn run(self) -> Result<()> {
        let routes = routes(&self.site, &Asked::default(), &Instead::default());
        Ok(runtime()?.block_on(serve(self.listener, routes))?)
    }

    /// Serves in the background.
    pub fn start(self) -> io::Result<Running> {
        let (url, asked, instead) = (self.url(), Asked::default(), Instead::default());
        let routes = routes(&self.site, &asked, &instead);
        let (stop, stopping) = oneshot::channel();
        let runtime = runtime()?;
        let stopped = thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = serve(self.listener, routes) => {}
                    // ends when the sender is dropped
                    _ = stopping => {}
                }
            });
            // connections that are still open end with the runtime
            runtime.shutdown_background();
        });
        let (stop, stopped) = (Mutex::new(Some(stop)), Mutex::new(Some(stopped)));
        Ok(Running { url, stop, stopped, asked, instead })
    }
}

impl Running {
    /// The address of the folder's index page.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Every path requested so far, without its query.
    pub fn asked(&self) -> Vec<String> {
        // Values behind these locks are set in one step, so a value poisoned by a panic is still consistent.
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on every answer is `fault`; `None` restores normal answers.
    pub fn misbehave(&self, fault: Option<Fault>) {
        *self.instead.lock().unwrap_or_else(PoisonError::into_inner) = fault;
    }

    /// Stops answering, like a machine that went away.
    pub fn stop(&self) {
        drop(self.stop.lock().unwrap_or_else(PoisonError::into_inner).take());
        // Joined, so that the port is free once this returns.
        let stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner).take();
        // a thread that panicked does not serve either
        drop(stopped.map(thread::JoinHandle::join));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

async fn serve(listener: TcpListener, routes: Router) -> io::Result<()> {
    axum::serve(tokio::net::TcpListener::from_std(listener)?, routes).await
}

fn routes(site: &Site, asked: &Asked, instead: &Instead) -> Router {
    let files = ServeDir::new(&site.folder).precompressed_br();
    let routes = match site.path.strip_suffix('/') {
        // axum nests nothing at the root.
        None | Some("") => Router::new().fallback_service(files),
        // its own name without the last slash leads there
        Some(name) => {
            let there = site.path.clone();
            let redirect = move || async move { Redirect::permanent(&there) };
            Router::new().nest_service(&site.path, files).route(name, get(redirect))
        }
    };
    let (asked, instead, cross_origin) = (Arc::clone(asked), Arc::clone(instead), site.cross_origin);
    routes.layer(from_fn(move |request: Request, next: Next| {
        asked.lock().unwrap_or_else(PoisonError::into_inner).push(request.uri().path().to_owned());
        let fault = instead.lock().unwrap_or_else(PoisonError::into_inner).clone();
        async move {
            match fault {
                None => with_headers(next.run(request).await, cross_origin),
                Some(Fault::Page(page)) => Html(page).into_response(),
                Some(Fault::Redirect(there)) => Redirect::temporary(&there).into_response(),
                Some(Fault::Status(status)) => {
                    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                    (status, Html(status.to_string())).into_response()
                }
                Some(Fault::Half) => halved(request, next).await,
                Some(Fault::Silence(long)) => {
                    tokio::time::sleep(long).await;
                    StatusCode::GATEWAY_TIMEOUT.into_response()
                }
            }
        }
    }))
}

/// The first half of the answer.
async fn halved(mut request: Request, next: Next) -> Response {
    // Half of a compressed file would not unpack.
    request.headers_mut().remove(ACCEPT_ENCODING);
    let (mut head, body) = with_headers(next.run(request).await, false).into_parts();
    let Ok(body) = to_bytes(body, usize::MAX).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    head.headers.remove(CONTENT_LENGTH);
    Response::from_parts(head, Body::from(body.slice(..body.len() / 2)))
}

fn with_headers(mut response: Response, cross_origin: bool) -> Response {
    let headers = response.headers_mut();
    // A rebuilt page must never be mixed with an older one. Modification times are in seconds, and two builds may be
    // closer than that.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.remove(LAST_MODIFIED);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if cross_origin {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    }
    response
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    /// The full response to a request with these headers.
    fn answer(running: &Running, request: &str, headers: &str) -> String {
        let address = running.url().strip_prefix("http://").unwrap().split('/').next().unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "{request} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\r\n")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn site() -> (tempfile::TempDir, Running) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("site")).unwrap();
        for (name, text) in [
            ("site/index.html", "<p>page"),
            ("site/engine.wasm", "engine"),
            ("site/engine.wasm.br", "small"),
            ("site/a b.js", "0"),
            ("secret", "not served"),
        ] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let site =
            Site { folder: folder.path().join("site"), path: "/be/low/".to_owned(), cross_origin: true };
        let running = Server::bind(site, 0, 1).unwrap().start().unwrap();
        (folder, running)
    }

    #[test]
    fn files_below_the_path_are_served_and_nothing_else() {
        let (_folder, running) = site();
        let status = |request| answer(&running, request, "").split(' ').nth(1).unwrap().to_owned();
        assert_eq!(status("GET /be/low/"), "200");
        assert_eq!(status("GET /be/low/?x#y"), "200");
        assert_eq!(status("GET /be/low/index.html"), "200");
        assert_eq!(status("HEAD /be/low/a%20b.js"), "200");
        assert_eq!(status("GET /be/low"), "308");
        assert_eq!(status("GET /index.html"), "404");
        assert_eq!(status("GET /be/low/missing"), "404");
        assert_eq!(status("GET /be/low/../secret"), "404");
        assert_eq!(status("GET /be/low/%2e%2e/secret"), "404");
        assert_eq!(status("GET /be/low//etc/passwd"), "404");
        assert_eq!(status("POST /be/low/index.html"), "405");
        let asked = running.asked();
        assert_eq!(asked[..3], ["/be/low/", "/be/low/", "/be/low/index.html"]);
    }

    #[test]
    fn answers_say_what_they_are_and_are_asked_for_anew_each_time() {
        let (_folder, running) = site();
        let page = answer(&running, "GET /be/low/", "");
        assert!(page.ends_with("\r\n\r\n<p>page"), "{page}");
        let page = page.to_ascii_lowercase();
        for header in [
            "content-type: text/html",
            "cache-control: no-cache",
            "nosniff",
            "access-control-allow-origin: *",
        ] {
            assert!(page.contains(header), "{header} is not in {page}");
        }
        assert!(!page.contains("last-modified"), "{page}");
        let engine = answer(&running, "GET /be/low/engine.wasm", "");
        assert!(engine.contains("application/wasm") && engine.ends_with("engine"), "{engine}");
        let engine = answer(&running, "GET /be/low/engine.wasm", "Accept-Encoding: gzip, br\r\n");
        assert!(engine.contains("content-encoding: br") && engine.ends_with("small"), "{engine}");
    }

    #[test]
    fn it_misbehaves_as_long_as_it_is_asked_to() {
        let (_folder, running) = site();
        let status = || answer(&running, "GET /be/low/", "").split(' ').nth(1).unwrap().to_owned();
        running.misbehave(Some(Fault::Status(503)));
        assert_eq!(status(), "503");
        running.misbehave(Some(Fault::Redirect("http://127.0.0.1:1/".to_owned())));
        assert_eq!(status(), "307");
        running.misbehave(Some(Fault::Page("<p>Sign in".to_owned())));
        assert!(answer(&running, "GET /be/low/engine.wasm", "").ends_with("\r\n\r\n<p>Sign in"));
        running.misbehave(Some(Fault::Half));
        let half =
            answer(&running, "GET /be/low/engine.wasm", "Accept-Encoding: br\r\n").to_ascii_lowercase();
        assert!(half.contains("content-length: 3\r\n") && half.ends_with("\r\n\r\neng"), "{half}");
        running.misbehave(None);
        assert!(answer(&running, "GET /be/low/", "").ends_with("<p>page"));
    }

    #[test]
    fn a_stopped_server_answers_nobody_and_leaves_its_port() {
        let (_folder, running) = site();
        running.stop();
        let address = running.url().strip_prefix("http://").unwrap().split('/').next().unwrap();
        assert!(TcpStream::connect(address).is_err());
    }
}
