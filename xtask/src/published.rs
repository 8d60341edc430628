//! The directory that is published: the built page with its guide, evidence and gallery, plus the API documentation
//! of the crates, the links of every version that must stay readable forever, a picture for each worked example, and
//! files for search engines.
//!
//! Its address is one variable, `SITE_URL`, at the build of the page (which names itself by it) and here. Without one
//! everything exists except what needs an address: canonical links, `sitemap.xml`, absolute addresses of pictures.
mod cards;
pub(crate) mod smoke;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::fingerprint::{ADDRESS, files_below};
use crate::process::{cargo, note, root, run, say, target_folder};
use crate::publish;

/// The path at which the smoke test serves it, since project pages are below a path.
const BELOW: &str = "/project/below/";

/// The address, with a slash at its end; `None` if none is given.
#[must_use]
pub fn address() -> Option<String> {
    let given = env::var(ADDRESS).ok().map(|address| address.trim().trim_end_matches('/').to_owned());
    given.filter(|address| !address.is_empty()).map(|address| address + "/")
}

/// Assembles `target/site` from `dist/`, and checks it below a path.
///
/// # Errors
/// If there is no built page, no browser for the pictures, or if something that the directory references is missing.
pub fn assemble(without_api: bool) -> Result<()> {
    let (dist, site) = (root().join("dist"), root().join("target/site"));
    if !dist.join("index.html").is_file() {
        bail!("there is no page in dist/; tools/serve --build makes it");
    }
    if site.exists() {
        fs::remove_dir_all(&site).context("the older target/site cannot be removed")?;
    }
    copy(&dist, &site)?;
    let address = address();
    if let Some(address) = &address {
        // Checked first, since the cards and the documentation take minutes.
        names_itself(&fs::read_to_string(dist.join("index.html"))?, address)?;
    }
    say("drawing the cards of the gallery");
    note(&format!("{} cards", cards::draw(&site, address.as_deref())?));
    if !without_api {
        document(&site.join("api"))?;
        let leading = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>API · Shardscope</title>\
                       <meta http-equiv=\"refresh\" content=\"0; url=shardscope/index.html\"><a href=\"shardscope/index.html\">API</a></html>\n";
        fs::write(site.join("api/index.html"), leading)?;
    }
    link_versions(&site)?;
    for_search_engines(&site, address.as_deref())?;
    say(&format!("looking at everything below {BELOW}"));
    note(&format!("{} addresses answer", smoke::check(&site, BELOW, address.as_deref())?));
    Ok(())
}

/// Checks that the built page states `address`.
fn names_itself(html: &str, address: &str) -> Result<()> {
    if !html.contains(&format!("<link rel=\"canonical\" href=\"{address}\">")) {
        bail!(
            "the page in dist/ does not say that it is at {address}: build it with {ADDRESS}={address} too"
        );
    }
    Ok(())
}

/// Builds the documentation of the published crates; tools that build, measure and test them are not an interface.
fn document(to: &Path) -> Result<()> {
    say("documenting the crates");
    // The usual directory may contain other documentation from before.
    let folder = target_folder().join("published");
    if folder.join("doc").exists() {
        fs::remove_dir_all(folder.join("doc"))?;
    }
    let mut doc = cargo(["doc", "--locked", "--no-deps", "--lib", "--target-dir"]);
    doc.arg(&folder);
    for package in publish::libraries()? {
        doc.args(["--package", &package]);
    }
    run(&mut doc)?;
    copy(&folder.join("doc"), to)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    for file in files_below(from)? {
        let target = to.join(file.strip_prefix(from)?);
        fs::create_dir_all(target.parent().unwrap_or(to))?;
        fs::copy(&file, &target).with_context(|| file.display().to_string())?;
    }
    Ok(())
}

/// `link-format/1.txt`: links of that version, each of which every later page must open; and a page that leads to them.
fn link_versions(site: &Path) -> Result<()> {
    let golden = fs::read_to_string(root().join("tests/data/links/golden.txt"))?;
    let folder = site.join("link-format");
    fs::create_dir_all(&folder)?;
    let versions = by_version(&golden);
    for (version, links) in &versions {
        fs::write(folder.join(format!("{version}.txt")), links)?;
    }
    let documented = site.join("api/shardscope_link/index.html").is_file();
    fs::write(folder.join("index.html"), versions_page(&versions, documented))?;
    Ok(())
}

/// The page that leads to the links of each version, and to the description of their form where that is published too.
fn versions_page(versions: &[(u32, String)], documented: bool) -> String {
    let mut page =
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>Links of every version · Shardscope</title><h1>Links of every version</h1>\
         <p>A link carries its plan behind <code>#</code>, which no server sees. What a version wrote opens in every later one: \
         these links of each do, and the tests of every change hold it.</p><ul>"
            .to_owned();
    for (version, links) in versions {
        page += &format!(
            "<li><a href=\"{version}.txt\">Version {version}</a>, {} links</li>",
            links.lines().count()
        );
    }
    page += "</ul>";
    if documented {
        page += "<p><a href=\"../api/shardscope_link/index.html\">How a link is written and read</a></p>";
    }
    page + "<p><a href=\"../\">Shardscope</a></p></html>\n"
}

/// The links of each version: `#/1?…` and `#z1:…` are of the first.
fn by_version(golden: &str) -> Vec<(u32, String)> {
    let mut versions: Vec<(u32, String)> = Vec::new();
    for line in golden.lines().filter(|line| line.starts_with('#')) {
        // The version follows `#/` or `#z`.
        let digits: String = line.chars().skip(2).take_while(char::is_ascii_digit).collect();
        let Ok(version) = digits.parse() else { continue };
        let line = format!("{line}\n");
        match versions.iter_mut().find(|(known, _)| *known == version) {
            Some((_, links)) => links.push_str(&line),
            None => versions.push((version, line)),
        }
    }
    versions
}

/// The pages at the top of the directory, in order.
fn pages(site: &Path) -> Result<Vec<PathBuf>> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(site)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "html") {
            pages.push(path);
        }
    }
    pages.sort();
    Ok(pages)
}

/// `robots.txt`, and `sitemap.xml` if the address is known.
fn for_search_engines(site: &Path, address: Option<&str>) -> Result<()> {
    let mut robots = "User-agent: *\nAllow: /\n".to_owned();
    if let Some(address) = address {
        robots += &format!("Sitemap: {address}sitemap.xml\n");
        let mut map = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n".to_owned();
        for page in pages(site)? {
            let name = page.file_name().unwrap_or_default().to_string_lossy().into_owned();
            map += &format!("  <url><loc>{}</loc></url>\n", place(address, &name));
        }
        if site.join("api/shardscope/index.html").is_file() {
            map += &format!("  <url><loc>{address}api/shardscope/index.html</loc></url>\n");
        }
        fs::write(site.join("sitemap.xml"), map + "</urlset>\n")?;
    }
    fs::write(site.join("robots.txt"), robots)?;
    Ok(())
}

/// The address of a page of the site; for the main page that of the directory itself.
pub(crate) fn place(address: &str, file: &str) -> String {
    let address = address.trim_end_matches('/');
    if file == "index.html" { format!("{address}/") } else { format!("{address}/{file}") }
}

#[cfg(test)]
mod tests {
    use super::{by_version, for_search_engines, names_itself, place, versions_page};
    use std::fs;

    #[test]
    fn links_are_distinguished_by_version() {
        let golden = "// words\n#/1?a=1\n#z1:AAAA\n#/2?b=2\nnothing\n#/1?c!/1?d\n";
        let expected = [(1, "#/1?a=1\n#z1:AAAA\n#/1?c!/1?d\n".to_owned()), (2, "#/2?b=2\n".to_owned())];
        assert_eq!(by_version(golden), expected);
        let real = include_str!("../../tests/data/links/golden.txt");
        assert_eq!(by_version(real).len(), 1);
        let page = versions_page(&expected, true);
        assert!(
            page.contains("<a href=\"1.txt\">Version 1</a>, 3 links") && page.contains("2.txt"),
            "{page}"
        );
        assert!(page.contains("api/shardscope_link") && !versions_page(&expected, false).contains("api/"));
    }

    #[test]
    fn a_page_that_was_built_without_the_address_is_reported_before_anything_is_drawn() {
        let built = r#"<link rel="canonical" href="https://example.org/x/">"#;
        names_itself(built, "https://example.org/x/").unwrap();
        for other in ["", r#"<link rel="canonical" href="https://example.org/y/">"#] {
            let fault = names_itself(other, "https://example.org/x/").unwrap_err().to_string();
            assert!(fault.ends_with("build it with SITE_URL=https://example.org/x/ too"), "{fault}");
        }
    }

    #[test]
    fn search_engines_are_reported_every_page_where_the_address_is_known() {
        let site = tempfile::tempdir().unwrap();
        for name in ["index.html", "guide.html", "x.js"] {
            fs::write(site.path().join(name), "").unwrap();
        }
        for_search_engines(site.path(), None).unwrap();
        assert!(!site.path().join("sitemap.xml").exists());
        for_search_engines(site.path(), Some("https://example.org/x/")).unwrap();
        let read = |name: &str| fs::read_to_string(site.path().join(name)).unwrap();
        assert!(read("robots.txt").ends_with("Sitemap: https://example.org/x/sitemap.xml\n"));
        let map = read("sitemap.xml");
        let places: Vec<&str> =
            map.split("<loc>").skip(1).map(|rest| rest.split('<').next().unwrap()).collect();
        assert_eq!(places, ["https://example.org/x/guide.html", "https://example.org/x/"]);
        assert_eq!(place("https://example.org", "a.html"), "https://example.org/a.html");
    }
}
