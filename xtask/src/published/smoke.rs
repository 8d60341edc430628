//! Checks that everything that the published directory references is in it, as a browser would request it: over HTTP,
//! below a path.
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use anyhow::{Context, Result, bail};
use regex::Regex;
use serde_json::Value;

use super::{pages, place};
use crate::site::{Server, Site};

/// What a directory should serve, and which references are malformed.
#[derive(Default)]
pub(crate) struct Named {
    /// Files from the top of the folder.
    pub(crate) files: BTreeSet<String>,
    wrong: Vec<String>,
}

/// Requests every page, what it references, and what the worker, the manifest and the sitemap reference; returns how
/// many addresses answered.
pub(super) fn check(folder: &Path, below: &str, address: Option<&str>) -> Result<usize> {
    let mut named = named(folder, address)?;
    // No page references these.
    named.files.extend(["robots.txt", "link-format/", "link-format/1.txt"].map(str::to_owned));
    // The documentation of the crates may be left out; what leads to it is asked for where it is there.
    let api = ["api/", "api/shardscope/index.html", "api/shardscope_link/index.html"];
    named.files.extend(api.map(str::to_owned).into_iter().filter(|_| folder.join("api").is_dir()));
    if let Some(address) = address {
        let map = fs::read_to_string(folder.join("sitemap.xml"))?;
        let places = map.split("<loc>").skip(1).filter_map(|rest| rest.split('<').next());
        named.files.extend(places.filter_map(|place| Some(place.strip_prefix(address)?.to_owned())));
    }
    let site = Site { folder: folder.to_owned(), path: below.to_owned(), cross_origin: true };
    let running = Server::bind(site, 0, 1)?.start()?;
    answered(running.url(), named)
}

/// What the pages at the top of `folder`, its worker and its manifest reference.
pub(crate) fn named(folder: &Path, address: Option<&str>) -> Result<Named> {
    let mut found = Named::default();
    for page in pages(folder)? {
        let name = page.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let html = fs::read_to_string(&page)?;
        found.files.insert(name.clone());
        for named in references(&html)? {
            match local(&named) {
                Ok(Some(file)) => drop(found.files.insert(file)),
                Ok(None) => {}
                Err(why) => found.wrong.push(format!("{name}: {why}")),
            }
        }
        if let Some(address) = address {
            let canonical = format!("<link rel=\"canonical\" href=\"{}\">", place(address, &name));
            if !html.contains(&canonical) {
                found.wrong.push(format!("{name} has no {canonical}"));
            }
        }
    }
    found.files.extend(cached(&fs::read_to_string(folder.join("sw.js")).context("there is no sw.js")?)?);
    let manifest: Value = serde_json::from_str(&fs::read_to_string(folder.join("manifest.webmanifest"))?)?;
    let icons = manifest["icons"].as_array().into_iter().flatten();
    found.files.extend(icons.filter_map(|icon| Some(icon["src"].as_str()?.to_owned())));
    // Other sites reference it, no page here does.
    found.files.insert("embed.js".to_owned());
    Ok(found)
}

/// Requests everything that was referenced, below `base`; returns how many there are.
///
/// # Errors
/// What is malformed and what does not answer.
pub(crate) fn answered(base: &str, named: Named) -> Result<usize> {
    let Named { files, mut wrong } = named;
    for file in &files {
        let head = head(base, file)?;
        let status = head.split(' ').nth(1).unwrap_or_default();
        if status != "200" {
            wrong.push(format!("{file} answers {status}"));
        }
    }
    if wrong.is_empty() {
        Ok(files.len())
    } else {
        bail!("the published folder is broken:\n{}", wrong.join("\n"))
    }
}

/// What a page loads or links to, and its preview images.
fn references(html: &str) -> Result<Vec<String>> {
    // Minified pages omit quotes where HTML allows that.
    let attribute = Regex::new(r#"(?i)\s(?:href|src)\s*=\s*(?:"([^"]*)"|([^\s">]+))"#)?;
    let picture = Regex::new(r#"(?i)property="?og:image"?\s+content=(?:"([^"]*)"|([^\s">]+))"#)?;
    let either = |found: regex::Captures<'_>| {
        found
            .get(1)
            .or_else(|| found.get(2))
            .map(|text| text.as_str().replace("&amp;", "&"))
            .unwrap_or_default()
    };
    Ok(attribute.captures_iter(html).map(either).chain(picture.captures_iter(html).map(either)).collect())
}

/// The file in the directory that an address refers to; `None` if it leads elsewhere.
fn local(named: &str) -> Result<Option<String>> {
    let file = named.split(['#', '?']).next().unwrap_or_default();
    let elsewhere =
        ["http://", "https://", "mailto:", "data:", "blob:"].iter().any(|scheme| file.starts_with(scheme));
    if elsewhere || file.is_empty() {
        return Ok(None);
    }
    if file.starts_with('/') || file.starts_with("..") {
        bail!("{named} leads out of the folder, which may stand below any path");
    }
    Ok(Some(file.trim_start_matches("./").to_owned()))
}

/// The files that the service worker caches.
fn cached(worker: &str) -> Result<Vec<String>> {
    let (_, files) = worker.split_once("const FILES = ").context("sw.js names no files")?;
    let (files, _) = files.split_once(';').context("sw.js names no files")?;
    Ok(serde_json::from_str(files)?)
}

/// The head of the response for a file: status line and headers.
pub(crate) fn head(base: &str, file: &str) -> Result<String> {
    let (host, path) =
        base.strip_prefix("http://").and_then(|rest| rest.split_once('/')).context("an address")?;
    let mut stream = TcpStream::connect(host)?;
    write!(
        stream,
        "GET /{path}{} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n",
        file.replace(' ', "%20")
    )?;
    let (mut answer, mut part) = (Vec::new(), [0; 4096]);
    // Bodies are not read: the status is in the first line.
    while !answer.windows(4).any(|four| four == b"\r\n\r\n") {
        match stream.read(&mut part)? {
            0 => break,
            read => answer.extend_from_slice(part.get(..read).unwrap_or_default()),
        }
    }
    let text = String::from_utf8_lossy(&answer).into_owned();
    Ok(text.split("\r\n\r\n").next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::check;
    use std::fs;

    fn site(index: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("link-format")).unwrap();
        for (name, text) in [
            ("index.html", index),
            ("guide.html", "<a href=\"./#/1?tp=2\">x</a><meta property=\"og:image\" content=\"a b.png\">"),
            ("a b.png", ""),
            ("x-1.js", ""),
            ("embed.js", ""),
            ("robots.txt", ""),
            ("link-format/1.txt", ""),
            ("link-format/index.html", ""),
            ("sw.js", "const FILES = [\"x-1.js\"];\n"),
            ("manifest.webmanifest", "{\"icons\":[{\"src\":\"x-1.js\"}]}"),
        ] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    #[test]
    fn what_a_page_names_must_be_there_below_any_path() {
        let good = site(
            "<script src=./x-1.js></script><a href=guide.html#top>g</a><a href=\"https://example.org/no\">o</a>",
        );
        assert_eq!(check(good.path(), "/a/b/", None).unwrap(), 9);
        fs::create_dir_all(good.path().join("api/shardscope_link")).unwrap();
        fs::write(good.path().join("api/index.html"), "").unwrap();
        fs::write(good.path().join("api/shardscope_link/index.html"), "").unwrap();
        let error = check(good.path(), "/a/b/", None).unwrap_err().to_string();
        assert!(error.ends_with("\napi/shardscope/index.html answers 404"), "{error}");
        for (index, why) in [
            ("<script src=x-2.js></script>", "x-2.js answers 404"),
            ("<a href=\"/guide.html\">", "leads out of the folder"),
            ("<meta property=og:image content=none.png>", "none.png answers 404"),
        ] {
            let error = check(site(index).path(), "/a/b/", None).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        // With an address every page states its canonical one.
        let named = site("<link rel=\"canonical\" href=\"https://example.org/p/\">");
        fs::write(
            named.path().join("sitemap.xml"),
            "<loc>https://example.org/p/</loc><loc>https://example.org/p/gone.html</loc>",
        )
        .unwrap();
        let error = check(named.path(), "/", Some("https://example.org/p/")).unwrap_err().to_string();
        assert!(
            error.contains("guide.html has no <link") && error.contains("gone.html answers 404"),
            "{error}"
        );
        assert!(!error.contains("index.html has no"), "{error}");
    }
}
