//! The examples for documentation tools, built by the tools themselves and looked at in the browser.
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use e2e::{Kind, Page, Scratch, root};
use serde_json::json;
use xtask::docs_tools::{DOCUSAURUS, docusaurus_packages};
use xtask::site::{Running, Server, Site};

/// Copies the example in `from` with the address of Shardscope written into it.
fn copy(from: &Path, to: &Path, address: &str) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("an example") {
        let (file, name) = entry.map(|entry| (entry.path(), entry.file_name())).expect("a file");
        if file.is_dir() {
            copy(&file, &to.join(name), address);
        } else {
            let text = fs::read_to_string(&file).expect("a text");
            fs::write(to.join(name), text.replace("SHARDSCOPE/", address)).expect("a copy");
        }
    }
}

/// The example built by `tool` into a site of its own; nothing, said aloud, where the tool is not there.
fn built(page: &Page, tool: &str, folder: &Scratch) -> Option<Running> {
    let Some(program) = xtask::docs_tools::locate(tool) else {
        // past the capture of the test's output
        let said = format!("NOT CHECKED: the example for {tool}, which is not installed\n");
        std::io::stderr().write_all(said.as_bytes()).expect("standard error");
        return None;
    };
    let example = tool.trim_end_matches("-build");
    let (source, site) = (folder.path().join("source"), folder.path().join("site"));
    copy(&root().join("examples/embedding").join(example), &source, page.base());
    let mut command = Command::new(program);
    match example {
        "mdbook" => command.arg("build").arg(&source).arg("--dest-dir").arg(&site),
        "mkdocs" => command
            .arg("build")
            .arg("--strict")
            .arg("--config-file")
            .arg(source.join("mkdocs.yml"))
            .arg("--site-dir")
            .arg(&site),
        DOCUSAURUS => {
            std::os::unix::fs::symlink(docusaurus_packages(), source.join("node_modules")).expect("a link");
            // Its bundler keeps a cache in the directory it is called from, which is otherwise this crate's.
            command.current_dir(&source).arg("build").arg(&source).arg("--out-dir").arg(&site)
        }
        _ => command.arg("-W").arg("-q").arg(&source).arg(&site),
    };
    let output = command.output().expect("the tool runs");
    assert!(
        output.status.success(),
        "{tool}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let site = Site { folder: site, path: "/".to_owned(), cross_origin: false };
    Some(Server::bind(site, 0, 1).and_then(Server::start).expect("a free port"))
}

/// Waits until the element is as high as its panel, and gives the address of its frame.
fn shown(page: &Page) -> String {
    page.until("the height of the panel", || {
        let height = page.attribute("shard-scope iframe", "height")?;
        (height != "520" && height.parse::<u32>().is_ok_and(|height| height > 300)).then_some(())
    });
    page.attribute("shard-scope iframe", "src").expect("an address")
}

/// Waits until the frame is asked for in that theme.
fn turns(page: &Page, theme: &str) {
    page.until(theme, || {
        page.attribute("shard-scope iframe", "src")?.contains(&format!("theme={theme}")).then_some(())
    });
}

#[test]
fn a_chapter_of_mdbook_shows_a_panel() {
    a_chapter_of_mdbook_shows_a_panel_in_its_own_theme(Kind::Chromium);
}

#[test]
fn in_firefox_a_chapter_of_mdbook_shows_a_panel() {
    a_chapter_of_mdbook_shows_a_panel_in_its_own_theme(Kind::Firefox);
}

#[test]
fn a_page_of_mkdocs_shows_a_panel() {
    a_page_of_mkdocs_shows_a_panel_in_its_own_theme(Kind::Chromium);
}

#[test]
fn in_firefox_a_page_of_mkdocs_shows_a_panel() {
    a_page_of_mkdocs_shows_a_panel_in_its_own_theme(Kind::Firefox);
}

fn a_chapter_of_mdbook_shows_a_panel_in_its_own_theme(kind: Kind) {
    let (page, folder) = (Page::blank_in(kind), Scratch::new());
    let Some(site) = built(&page, "mdbook", &folder) else { return };
    page.visit(&format!("{}memory.html", site.url()));
    assert!(shown(&page).contains("theme=light"));
    page.screenshot("docs-mdbook");
    page.js("document.documentElement.classList.replace('light', 'coal')", &[]);
    turns(&page, "dark");
    shown(&page);
    page.screenshot("docs-mdbook-dark");
}

fn a_page_of_mkdocs_shows_a_panel_in_its_own_theme(kind: Kind) {
    let (page, folder) = (Page::blank_in(kind), Scratch::new());
    let Some(site) = built(&page, "mkdocs", &folder) else { return };
    page.visit(site.url());
    assert!(shown(&page).contains("theme=light"));
    page.screenshot("docs-mkdocs");
    page.js("document.documentElement.setAttribute('data-bs-theme', arguments[0])", &[json!("dark")]);
    turns(&page, "dark");
}

#[test]
fn a_page_of_sphinx_shows_a_panel() {
    let (page, folder) = (Page::blank(), Scratch::new());
    let Some(site) = built(&page, "sphinx-build", &folder) else { return };
    page.prefer_dark(true);
    page.visit(site.url());
    assert!(shown(&page).contains("theme=light"), "the theme of the example is light whatever the system is");
    page.screenshot("docs-sphinx");
}

/// Its pages are written beforehand and taken over by React, which must find nothing that it did not write.
#[test]
fn a_page_of_docusaurus_shows_a_panel() {
    let (page, folder) = (Page::blank(), Scratch::new());
    let Some(site) = built(&page, DOCUSAURUS, &folder) else { return };
    page.prefer_dark(true);
    page.visit(site.url());
    assert!(shown(&page).contains("theme=light"), "the theme of the example is light whatever the system is");
    page.screenshot("docs-docusaurus");
    page.js("document.documentElement.setAttribute('data-theme', arguments[0])", &[json!("dark")]);
    turns(&page, "dark");
    let said = page.console_errors();
    assert!(!said.iter().any(|said| said.contains("React")), "{said:?}");
}
