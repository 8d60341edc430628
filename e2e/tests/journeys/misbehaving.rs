//! A server, or a network before it, that answers something else than the site: readers who were here before go on with the
//! copy they have, and no answer of another's is kept.
use std::time::Duration;

use e2e::{Page, Scratch};
use serde_json::json;
use xtask::site::{Fault, Server, Site};

use super::offline::{copy_to, editions, publish, stored};

const GATE: &str = "<!doctype html><title>Sign in</title><h1>Welcome to the network</h1>";

/// The heading of whatever is shown.
fn heading(page: &Page) -> String {
    page.js("return document.querySelector('h1')?.textContent ?? document.body.textContent", &[])
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// The page at its address, offered to whoever was here before.
#[track_caller]
fn works(page: &Page) {
    page.reload();
    page.wait_for(".verdict");
    assert!(heading(page).contains("Shardscope"), "{}", heading(page));
}

#[test]
fn gates_and_broken_servers_leave_the_copy_in_its_place() {
    let gate = Scratch::new();
    std::fs::write(gate.path().join("index.html"), GATE).expect("a page");
    let at = |cross_origin| Site { folder: gate.path().to_owned(), path: "/".to_owned(), cross_origin };
    let start = |site| Server::bind(site, 0, 1).and_then(Server::start).expect("a free port");
    // One that says nothing of other origins, and one that lets them read it.
    let (closed, open) = (start(at(false)), start(at(true)));

    let page = Page::open("");
    let store = stored(&page, "");
    page.goto_shell("evidence.html");
    page.wait_text("h1", "");
    let evidence = heading(&page);
    page.goto("");
    for fault in [
        Fault::Page(GATE.to_owned()),
        Fault::Redirect(closed.url().to_owned()),
        Fault::Redirect(open.url().to_owned()),
        Fault::Status(500),
        Fault::Status(503),
        Fault::Status(404),
        Fault::Status(511),
        Fault::Half,
        Fault::Silence(Duration::from_secs(60)),
    ] {
        println!("{fault:?}");
        let answers = !matches!(fault, Fault::Silence(_));
        page.misbehave(Some(fault));
        works(&page);
        page.goto_shell("evidence.html");
        page.until("the page beside it", || (heading(&page) == evidence).then_some(()));
        page.goto("");
        page.wait_for(".verdict");
        // What the gate says is not taken for a new version of the worker, nor for one of its files.
        if answers {
            let look = "navigator.serviceWorker.getRegistration().then(one => one.update()).then(arguments[0], arguments[0])";
            page.js_async(look, &[]);
        }
        assert_eq!(stored(&page, ""), store);
    }
    page.misbehave(None);
    works(&page);
    // Nothing that a gate said in place of a page never seen before is there later.
    page.misbehave(Some(Fault::Page(GATE.to_owned())));
    page.goto_shell("guide.html");
    page.wait_text("h1", "Welcome to the network");
    // Nor is half of one.
    page.misbehave(Some(Fault::Half));
    page.goto_shell("formulas.html");
    page.wait_text("h1", "Formulas");
    page.cut_off();
    for file in ["guide.html", "formulas.html"] {
        let kept = page.js_async(
            "const [file, done] = arguments;
             caches.match(file).then(found => done(Boolean(found)))",
            &[json!(file)],
        );
        assert_eq!(kept, false, "{file}");
    }
}

#[test]
fn a_site_that_moved_is_followed() {
    let site = Scratch::new();
    copy_to(site.path());
    publish(site.path(), "moved");
    let there = Site { folder: site.path().to_owned(), path: "/".to_owned(), cross_origin: true };
    let there = Server::bind(there, 0, 1).and_then(Server::start).expect("a free port");
    let page = Page::open("");
    stored(&page, "");
    page.misbehave(Some(Fault::Redirect(there.url().to_owned())));
    page.reload();
    assert!(page.url().starts_with(there.url()), "{}", page.url());
    assert_eq!(editions(&page).0, "moved");
}
