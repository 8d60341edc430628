//! Panels of a plan in the pages of others.
use std::fs;

use e2e::Page;
use xtask::site::{Server, Site};

/// A small plan as a link carries it.
pub(crate) const PLAN: &str = "#/1?accelerator=H100-SXM&bf16=true&gbs=64&gpus_per_node=8&heads=16&hidden=1024&layers=8&mbs=1&nodes=2&pp=2&seq=1024&tp=2&vocab_size=50257";

#[test]
fn each_view_stands_alone() {
    let page = Page::blank();
    for (view, panel) in [
        ("verdict", ".verdict"),
        ("overview", "#overview"),
        ("suggestions", "#suggestions"),
        ("memory", "#memory"),
        ("time", "#time"),
        ("schedule", "#schedule"),
        ("communication", "#communication"),
        ("layers", "#layers"),
        ("gemms", "#gemms"),
        ("search", "#search"),
        ("settings", "#settings"),
        ("analysis-tool", "#analysis-tool"),
        ("map", "#map"),
    ] {
        page.goto(&format!("?embed={view}{PLAN}"));
        page.wait_for(panel);
        assert_eq!(page.count("main > section, main > div"), 1, "{view}: nothing else is in the frame");
        assert_eq!((page.count("#script"), page.count("header.top")), (0, 0), "{view}");
        let link = page.attribute(".foot a", "href").unwrap_or_default();
        assert!(link.starts_with(page.base()) && link.contains("tp=2"), "{view}: {link}");
        assert_eq!(page.axe(), [], "{view}");
    }
    page.screenshot("embedded-map");
    page.goto(&format!("?embed=memory&theme=dark{PLAN}"));
    assert_eq!(page.js("return document.documentElement.dataset.theme", &[]), "dark");
    page.goto(&format!("?embed=comparison{PLAN}!{}", &PLAN[1..].replace("tp=2", "tp=4")));
    page.wait_for("#comparison");
    // Without a second plan, and for a name that no view has, the frame says so.
    page.goto(&format!("?embed=comparison{PLAN}"));
    page.wait_text(".embedded .notice", "carries one plan only");
    page.goto(&format!("?embed=nonsense{PLAN}"));
    let said = page.wait_text(".embedded .notice", "no view");
    assert!(said.contains("nonsense") && said.contains("schedule"), "{said}");
    page.goto(&format!("?embed=map&gpu=n0_g3&color=tensor{PLAN}"));
    page.wait_text(".about-gpu", "rank 3");
    page.assert_quiet();
}

#[test]
fn what_is_no_plan_is_said_in_the_frame() {
    let page = Page::open("?embed=memory#/1?layers=4&tp=3");
    page.wait_text(".embedded", "does not give");
    page.goto("?embed=memory#nonsense");
    page.wait_for(".embedded");
}

#[test]
fn the_example_of_a_page_of_another_origin_works() {
    let page = Page::open("");
    let folder = std::env::temp_dir().join(format!("embedding-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/embedding/index.html");
    let html = fs::read_to_string(example).expect("the example");
    fs::write(folder.join("index.html"), html.replace("SHARDSCOPE/", page.base())).expect("a file");
    let site = Site { folder: folder.clone(), path: "/".to_owned(), cross_origin: false };
    let host = Server::bind(site, 0, 1).and_then(Server::start).expect("a free port");
    assert_ne!(
        host.url().trim_end_matches('/'),
        page.base().trim_end_matches("/repo/sub/"),
        "another origin"
    );
    page.visit(host.url());
    // The element takes the height that its panel tells, which is never the one it begins with.
    page.until("the height of the panel", || {
        let height = page.attribute("shard-scope iframe", "height")?;
        (height != "520" && height.parse::<u32>().is_ok_and(|height| height > 300)).then_some(())
    });
    page.screenshot("embedding");
    let _ = fs::remove_dir_all(folder);
}
