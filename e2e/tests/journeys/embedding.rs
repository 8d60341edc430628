//! Panels of a plan in the pages of others.
use std::fs;

use e2e::{Page, Scratch};
use serde_json::json;
use xtask::site::{Running, Server, Site};

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
    page.wait_text(".embedded", "Not stated");
    // Ways to begin lead to tabs that a frame has not.
    let ways = "return document.querySelector('.missing .ways').checkVisibility()";
    assert_eq!(page.js(ways, &[]), false);
    page.goto("?embed=memory#nonsense");
    page.wait_for(".embedded");
    page.goto("?embed=map");
    page.wait_text(".embedded .notice", "This frame carries no plan.");
    assert_eq!(page.count(".embedded button"), 0);
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

/// Serves `page` as a site of its own, with what stands in its folder.
fn hosted(scratch: &Scratch, page: &str) -> Running {
    fs::write(scratch.path().join("index.html"), page).expect("a page");
    let site = Site { folder: scratch.path().to_owned(), path: "/".to_owned(), cross_origin: false };
    Server::bind(site, 0, 1).and_then(Server::start).expect("a free port")
}

/// What frames say is taken from the panel's own frame alone, and only where it is a height.
#[test]
fn a_hostile_child_moves_nothing() {
    let page = Page::open("");
    let (own, other) = (Scratch::new(), Scratch::new());
    let hostile = hosted(
        &other,
        "<!doctype html><link rel=icon href=data:,><script>
             for (const height of [9999, '9999', 1e9]) parent.postMessage({ shardscope: { height } }, '*');
             try { parent.document.title = 'taken' } catch (_) {}
             parent.postMessage('sent', '*');
         </script>",
    );
    let host = format!(
        "<!doctype html><title>host</title><link rel=icon href=data:,><script>addEventListener('message', (e) => {{ if (e.data === 'sent') window.sent = true }})</script>
         <script type=module src='{}embed.js'></script><shard-scope view=verdict plan='{}'></shard-scope><iframe id=hostile></iframe>",
        page.base(),
        &PLAN[1..]
    );
    let host = hosted(&own, &host);
    page.visit(host.url());
    let height = || page.attribute("shard-scope iframe", "height").unwrap_or_default();
    // A verdict is a few lines; while the engine loads, the frame tells other heights of the kind.
    let is_own = |height: &str| height.parse::<u64>().is_ok_and(|height| (30..1000).contains(&height));
    page.until("the height of the panel", || is_own(&height()).then_some(()));
    page.js(
        "window.heights = [];
         const frame = document.querySelector('shard-scope iframe');
         new MutationObserver(() => heights.push(Number(frame.height))).observe(frame, { attributeFilter: ['height'] });",
        &[],
    );
    page.js("document.querySelector('#hostile').src = arguments[0]", &[json!(hostile.url())]);
    page.until("what the hostile frame sends", || {
        (page.js("return !!window.sent", &[]) == true).then_some(())
    });
    assert!(is_own(&height()), "{}", height());
    assert_eq!(page.js("return document.title", &[]), "host");
    // The host's own messages come from no frame.
    page.js("postMessage({ shardscope: { height: 9999 } }, '*')", &[]);
    // Were the panel's frame taken over, it could say nothing but a height up to the bound.
    let tree = page.devtools("Page.getFrameTree", json!({}));
    let frames = tree["frameTree"]["childFrames"].as_array().cloned().unwrap_or_default();
    let panel = frames
        .iter()
        .map(|frame| &frame["frame"])
        .find(|frame| frame["url"].as_str().is_some_and(|url| url.starts_with(page.base())))
        .expect("the panel's frame");
    let world = page.devtools("Page.createIsolatedWorld", json!({ "frameId": panel["id"] }));
    let say = |text: &str| {
        let expression = format!("parent.postMessage({text}, '*')");
        let context = &world["executionContextId"];
        page.devtools("Runtime.evaluate", json!({ "expression": expression, "contextId": context }));
    };
    for text in [
        "null",
        "'height'",
        "{ shardscope: null }",
        "{ shardscope: { height: -5 } }",
        "{ shardscope: { height: NaN } }",
        "{ shardscope: { height: Infinity } }",
        "{ shardscope: { height: 20001 } }",
        "{ shardscope: { height: '9999; position: fixed' } }",
        "{ shardscope: { height: { toString: 1 } } }",
        "[]",
    ] {
        say(text);
    }
    say("{ shardscope: { height: 76.5 } }");
    let taken = || page.js("return heights.includes(77)", &[]);
    page.until("the one height among them", || (taken() == true).then_some(()));
    // Nothing before it was taken: each would have stood until then.
    assert_eq!(page.js("return heights.filter(height => !(height >= 30 && height < 1000))", &[]), json!([]));
    assert_eq!(page.console_errors(), [""; 0]);
}

/// A page around the frame chooses view, theme, plan and messages: none of them runs, is asked of anyone, or leaves the frame.
#[test]
fn a_hostile_parent_gets_a_panel_and_nothing_else() {
    let page = Page::open("");
    let own = Scratch::new();
    let host = hosted(
        &own,
        "<!doctype html><title>host</title><link rel=icon href=data:,><script>
             window.heard = []; addEventListener('message', (e) => heard.push(JSON.stringify(e.data)));
         </script><iframe></iframe>",
    );
    page.visit(host.url());
    let script =
        "<img src=x onerror=parent.postMessage('ran','*')><script>parent.postMessage('ran','*')</script>";
    let quoted = r#"dark" onload="parent.postMessage('ran','*')"#;
    for sandbox in ["", "allow-scripts", "allow-scripts allow-same-origin"] {
        for (query, fragment) in [
            (vec![("embed", script)], PLAN.to_owned()),
            (vec![("embed", "verdict"), ("theme", quoted)], PLAN.to_owned()),
            (
                vec![
                    ("embed", "map"),
                    ("gpu", script),
                    ("color", "javascript:parent.postMessage('ran','*')"),
                ],
                PLAN.to_owned(),
            ),
            (vec![("embed", "settings")], format!("#/1?tokenizer_model={script}&layers=2")),
            (vec![("embed", "verdict")], format!("#/2{}", "A".repeat(2000))),
        ] {
            page.js(
                "const [base, query, fragment, sandbox] = arguments;
                 const old = document.querySelector('iframe'), frame = document.createElement('iframe');
                 if (sandbox) frame.setAttribute('sandbox', sandbox);
                 const address = new URL(base);
                 for (const [name, value] of query) address.searchParams.set(name, value);
                 address.hash = fragment;
                 window.heard.length = 0;
                 frame.src = address.href;
                 old.replaceWith(frame);",
                &[json!(page.base()), json!(query), json!(fragment), json!(sandbox)],
            );
            page.until("the panel's height", || {
                let heard = page.js("return heard.some(text => text.includes('height'))", &[]);
                (heard == true).then_some(())
            });
            // Messages as the page's own worker gets them, and as embed.js sends none.
            page.js(
                "const frame = document.querySelector('iframe').contentWindow;
                 for (const data of [{ glue: 'https://example.org/x.js', module: null, asked: '' }, { shardscope: { height: 1 } }, 'x', null])
                     frame.postMessage(data, '*');
                 try { frame.document.title = 'taken' } catch (_) {}",
                &[],
            );
            let heard = page
                .js("return heard.filter(text => !/^.\"shardscope\":.\"height\":\\d+..$/.test(text))", &[]);
            assert_eq!(heard, json!([]), "{query:?} {sandbox}");
        }
    }
    assert_eq!(page.js("return document.title", &[]), "host");
    let foreign = page.foreign_requests();
    assert!(foreign.iter().all(|url| url.starts_with(host.url())), "{foreign:?}");
}
