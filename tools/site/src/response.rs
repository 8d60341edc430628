//! From a request to the bytes of its answer.
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::Site;
use crate::request::Request;

pub(crate) fn respond(request: &Request, site: &Site) -> Vec<u8> {
    if request.method != "GET" && request.method != "HEAD" {
        return plain("405 Method Not Allowed", "only GET and HEAD");
    }
    let Some(inside) = request.path.strip_prefix(&site.path) else {
        return outside(&request.path, site);
    };
    let Some(file) = locate(&site.folder, inside) else {
        return plain("404 Not Found", "no such file");
    };
    // what lies beside it as NAME.br is the same, compressed
    let compressed = request.brotli.then(|| fs::read(beside(&file)).ok()).flatten();
    let encoded = compressed.is_some();
    let Some(body) = compressed.or_else(|| fs::read(&file).ok()) else {
        return plain("404 Not Found", "no such file");
    };
    let mut headers = vec![
        ("Content-Type", content_type(&file)),
        // a rebuilt page must never be mixed with an older one
        ("Cache-Control", "no-cache"),
        ("X-Content-Type-Options", "nosniff"),
    ];
    if site.cross_origin {
        headers.push(("Access-Control-Allow-Origin", "*"));
    }
    if encoded {
        headers.push(("Content-Encoding", "br"));
    }
    let mut answer = head("200 OK", &headers, body.len());
    if request.method == "GET" {
        answer.extend(body);
    }
    answer
}

/// Above the site's path: its own name without the last slash leads there, nothing else exists.
fn outside(path: &str, site: &Site) -> Vec<u8> {
    if site.path.strip_suffix('/') == Some(path) {
        return head("301 Moved Permanently", &[("Location", &site.path)], 0);
    }
    plain("404 Not Found", &format!("the page is at {}", site.path))
}

/// The file for a path inside the site; never one outside the folder.
fn locate(folder: &Path, inside: &str) -> Option<PathBuf> {
    let inside = Path::new(inside);
    let tame = inside.components().all(|part| matches!(part, Component::Normal(_)));
    let found = folder.join(inside);
    match tame {
        true if found.is_dir() => Some(found.join("index.html")),
        true => Some(found),
        false => None,
    }
}

fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".br");
    name.into()
}

fn content_type(file: &Path) -> &'static str {
    match file.extension().and_then(|e| e.to_str()).unwrap_or_default() {
        "css" => "text/css; charset=utf-8",
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "json" => "application/json",
        "webmanifest" => "application/manifest+json",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        "txt" | "md" => "text/plain; charset=utf-8",
        "wasm" => "application/wasm",
        _ => "application/octet-stream",
    }
}

fn plain(status: &str, text: &str) -> Vec<u8> {
    let mut answer = head(status, &[("Content-Type", "text/plain; charset=utf-8")], text.len());
    answer.extend(text.as_bytes());
    answer
}

fn head(status: &str, headers: &[(&str, &str)], length: usize) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(method: &str, path: &str) -> String {
        let site = Site {
            folder: Path::new(env!("CARGO_MANIFEST_DIR")).to_owned(),
            path: "/below/".to_owned(),
            cross_origin: false,
        };
        let request = Request { method: method.to_owned(), path: path.to_owned(), brotli: false };
        let answer = String::from_utf8(respond(&request, &site)).unwrap();
        answer.lines().next().unwrap_or_default().to_owned()
    }

    #[test]
    fn files_below_the_path_are_served_and_nothing_else() {
        assert_eq!(status("GET", "/below/Cargo.toml"), "HTTP/1.1 200 OK");
        assert_eq!(status("HEAD", "/below/src/lib.rs"), "HTTP/1.1 200 OK");
        assert_eq!(status("GET", "/below"), "HTTP/1.1 301 Moved Permanently");
        assert_eq!(status("GET", "/Cargo.toml"), "HTTP/1.1 404 Not Found");
        assert_eq!(status("GET", "/below/missing"), "HTTP/1.1 404 Not Found");
        assert_eq!(status("GET", "/below/../site/Cargo.toml"), "HTTP/1.1 404 Not Found");
        assert_eq!(status("GET", "/below//etc/passwd"), "HTTP/1.1 404 Not Found");
        assert_eq!(status("POST", "/below/Cargo.toml"), "HTTP/1.1 405 Method Not Allowed");
    }
}
