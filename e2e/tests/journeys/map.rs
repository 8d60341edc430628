//! The map of the cluster, by mouse and by keyboard alone.
use e2e::{Key, Page};
use xtask::process::root;

use super::steps::panel;

/// Whether the map has this text.
pub(crate) fn drawn(page: &Page, text: &str) -> bool {
    page.js(
        "return [...document.querySelectorAll('#map svg text')].some(e => e.textContent === arguments[0])",
        &[serde_json::json!(text)],
    ) == true
}

#[test]
fn a_picked_gpu_shows_its_groups() {
    let page = Page::open("");
    panel(&page, "map");
    page.wait_text("#map", "n0_g1");
    // The cells themselves hear nothing: a click anywhere on the picture is placed by arithmetic.
    page.js(
        "const label = [...document.querySelectorAll('#map text')].find(e => e.textContent === 'n0_g1');
         const box = label.getBoundingClientRect();
         label.dispatchEvent(new MouseEvent('click',
             { bubbles: true, clientX: box.x + box.width / 2, clientY: box.y + box.height / 2 }))",
        &[],
    );
    let about = page.wait_text(".about-gpu", "rank 1");
    for group in ["[n0_g0 n0_g1]", "[n0_g1 n1_g1]", "[n0_g1 n0_g3 n0_g5 n0_g7]"] {
        assert!(about.contains(group), "{group} is missing in {about}");
    }
    assert!(page.count("#map .partner") >= 3);
    page.screenshot("map");
    page.assert_quiet();
}

#[test]
fn the_keyboard_alone_walks_the_map() {
    let page = Page::open("");
    panel(&page, "map");
    page.wait_text("#map", "n0_g1");
    page.js("document.querySelector('#map [type=submit]').focus()", &[]);
    // The frame, which scrolls, and then the one cell that takes the focus.
    for _ in 0..2 {
        page.press(Key::Tab);
        if page.focused().contains("rank") {
            break;
        }
    }
    assert!(page.focused().contains("n0_g0, rank 0"), "{}", page.focused());
    page.press(Key::Right);
    page.until("the next GPU", || page.focused().contains("n0_g1").then_some(()));
    page.press(Key::Down);
    page.until("the GPU below", || page.focused().contains("n1_g1").then_some(()));
    page.press(Key::Enter);
    page.wait_text(".about-gpu", "n1_g1");
    page.press(Key::Home);
    page.wait_text(".about-gpu", "n1_g0");
}

#[test]
fn a_gpu_is_found_by_its_label() {
    let page = Page::open("");
    panel(&page, "map");
    page.fill("#map input", "n1_g3");
    page.press(Key::Enter);
    page.wait_text(".about-gpu", "rank 11");
    page.fill("#map input", "n9_g9");
    page.press(Key::Enter);
    page.wait_text("#unknown-gpu", "n1_g7");
}

#[test]
fn sixteen_thousand_gpus_are_drawn() {
    let page = Page::open("");
    panel(&page, "map");
    page.wait_text("#map", "n0_g1");
    let script = super::script::replaced(&page, "NNODES=2", "NNODES=2048")
        .replace("--global-batch-size 512", "--global-batch-size 16384");
    page.fill("#script", &script);
    page.until("a map of dots", || (page.count("#map .captions text") == 0).then_some(()));
    page.until("the rows' names", || (drawn(&page, "n0") && drawn(&page, "PP 0")).then_some(()));
    assert!(page.count("#map .bracket") > 0);
    page.fill("#map input", "n2047_g7");
    page.press(Key::Enter);
    page.wait_text(".about-gpu", "rank 16,383");
    // The GPU found stands in the frame, with room for its number.
    page.wait_for("#map .captions text");
    let inside = page.js(
        "const cell = document.querySelector('#map .cursor').getBoundingClientRect();
         const frame = document.querySelector('.map-frame').getBoundingClientRect();
         return cell.top >= frame.top && cell.bottom <= frame.bottom",
        &[],
    );
    assert_eq!(inside, true, "the found GPU is framed");
    page.screenshot("map-16384");
    // Beside it the whole cluster, with the part in the frame marked: that of the last GPU, at the end.
    let lens = page.js(
        "const e = document.querySelector('#map .lens'); return ['y', 'height'].map(name => parseFloat(e.getAttribute(name)))",
        &[],
    );
    let [y, height] = [0, 1].map(|at| lens[at].as_f64().expect("a part in percent"));
    assert!(y > 90.0 && (y + height - 100.0).abs() < 0.5, "{lens}");
    // A press in the middle goes to the middle; dragging moves on from there and picks nothing.
    page.js(
        "const e = document.querySelector('#map .whole'), box = e.getBoundingClientRect();
         e.dispatchEvent(new PointerEvent('pointerdown',
             { bubbles: true, buttons: 1, clientX: box.x + box.width / 2, clientY: box.y + box.height / 2 }))",
        &[],
    );
    let share = "const e = document.querySelector('.map-frame'); return (e.scrollTop + e.clientHeight / 2) / e.scrollHeight";
    let share = || page.js(share, &[]).as_f64().expect("a share");
    page.until("the middle", || ((share() - 0.5).abs() < 0.01).then_some(()));
    page.js(
        "const e = document.querySelector('.map-frame'), box = e.getBoundingClientRect();
         const at = { bubbles: true, buttons: 1, clientX: box.x + 200, clientY: box.y + 100 };
         const before = e.scrollTop;
         e.dispatchEvent(new MouseEvent('mousedown', at));
         e.dispatchEvent(new MouseEvent('mousemove', { ...at, movementY: -150 }));
         e.dispatchEvent(new MouseEvent('click', at));
         window.dragged = e.scrollTop - before",
        &[],
    );
    assert_eq!(page.js("return window.dragged", &[]).as_f64(), Some(150.0));
    assert!(page.text(".about-gpu").contains("rank 16,383"), "the end of dragging is no click");
    page.click("#map [aria-label=further]");
    page.click("#map [aria-label=further]");
    page.until("dots again", || (page.count("#map .captions text") == 0).then_some(()));
    page.assert_quiet();
}

#[test]
fn a_chip_and_the_pointer_light_up_a_group_and_say_what_it_sends() {
    let page = Page::open("");
    panel(&page, "map");
    page.click_text("#map .chip", "DP");
    let caption = page.wait_text("#map .group-caption", "data parallel group 0");
    assert!(caption.contains("4 GPUs hold the same shard of the model"), "{caption}");
    assert!(caption.contains("Each step a GPU sends"), "{caption}");
    page.js(
        "const label = [...document.querySelectorAll('#map text')].find(e => e.textContent === 'n1_g3');
         const box = label.getBoundingClientRect();
         label.dispatchEvent(new MouseEvent('mousemove',
             { bubbles: true, clientX: box.x + box.width / 2, clientY: box.y + box.height / 2 }))",
        &[],
    );
    page.wait_text("#map .group-caption", "n1_g3: data parallel group 3");
    assert_eq!((page.count("#map .partner"), page.count("#map svg.lit")), (1, 1));
    page.screenshot("map-hovered");
    page.assert_quiet();
}

#[test]
fn what_is_looked_at_is_in_the_address() {
    let page = Page::open("");
    panel(&page, "map");
    page.click_text("#map .chip", "TP");
    page.fill("#map input", "n1_g3");
    page.press(Key::Enter);
    page.wait_text(".about-gpu", "rank 11");
    let url = page.until("the view in the address", || {
        let url = page.url();
        (url.contains("view=map") && url.contains("gpu=n1_g3") && url.contains("color=tensor")).then_some(url)
    });
    let query = url.split_once('?').expect("a query").1.to_owned();
    let other = Page::open(&format!("?{query}"));
    other.wait_text(".about-gpu", "rank 11");
    assert_eq!(other.text("#map .chip[aria-pressed=true]"), "TP");
    let other = Page::open("#map");
    other.wait_for("#map svg");
}

#[test]
fn one_step_is_played_through_the_groups() {
    let page = Page::open("");
    panel(&page, "map");
    page.click_text("#map button", "Play one step");
    page.wait_text("#map .group-caption", "In every layer, forward and backward");
    assert_eq!(page.count("#map svg.lit"), 1);
    page.wait_text("#map .group-caption", "After every micro-batch of a stage");
    page.click_text("#map button", "Stop");
    page.wait_gone("#map svg.lit");
}

/// The script of `docs/tutorials/read-the-map.md`, and what it says of the map that it opens.
#[test]
fn the_tutorial_of_the_map_holds_in_the_page() {
    let tutorial =
        std::fs::read_to_string(root().join("docs/tutorials/read-the-map.md")).expect("the tutorial");
    let script = tutorial.split("```bash train.sh\n").nth(1).and_then(|rest| rest.split("```").next());
    let page = Page::open("");
    page.fill("#script", script.expect("its script"));
    page.wait_text(".plan-name", "16 × H100");
    panel(&page, "map");
    page.fill("#map input", "n0_g0");
    page.press(Key::Enter);
    let about = page.wait_text(".about-gpu", "rank 0").split_whitespace().collect::<Vec<_>>().join(" ");
    for (described, shown) in [
        (
            "Tensor ranks are neighbours in a node, so their all-reduce goes over NVLink.",
            "2 GPUs, over NVLink [n0_g0 n0_g1]",
        ),
        ("Pipeline ranks are eight apart: one in each node.", "2 GPUs, over the network [n0_g0 n1_g0]"),
    ] {
        assert!(tutorial.contains(described) && about.contains(shown), "{shown} is missing in {about}");
    }
    assert!(tutorial.contains("color by memory or by bytes sent, play a step"));
    for chip in ["Memory", "Traffic"] {
        page.click_text("#map .chip", chip);
        page.until(chip, || (page.text("#map .chip[aria-pressed=true]") == chip).then_some(()));
    }
    page.click_text("#map .chip", "TP");
    page.wait_text("#map .group-caption", "tensor parallel group");
    page.click_text("#map button", "Play one step");
    page.wait_text("#map .group-caption", "In every layer, forward and backward");
    page.click_text("#map button", "Stop");
    page.assert_quiet();
}

/// Scrolls the map and moves over it, and gives the longest time that the page itself took for one move: script, styles
/// and layout. What the machine then takes to raster it depends on its graphics. Unit: millisecond.
fn longest_move(page: &Page) -> f64 {
    let longest = page.js_async(
        "const done = arguments[0], frame = document.querySelector('.map-frame'), box = frame.getBoundingClientRect();
         const turn = () => new Promise(next => {
             const channel = new MessageChannel();
             channel.port1.onmessage = next;
             channel.port2.postMessage(0);
         });
         (async () => {
             let longest = 0;
             for (let count = 0; count < 60; count++) {
                 const before = performance.now();
                 frame.scrollTop += 40;
                 frame.dispatchEvent(new MouseEvent('mousemove', { bubbles: true,
                     clientX: box.x + 100 + count * 3, clientY: box.y + 20 + count }));
                 await turn();
                 frame.getBoundingClientRect();
                 if (count > 5) longest = Math.max(longest, performance.now() - before);
             }
             done(longest);
         })()",
        &[],
    );
    longest.as_f64().expect("a time")
}

#[test]
fn a_hundred_thousand_gpus_are_followed_without_drawing_them_anew() {
    let page = Page::open("");
    let script = super::script::replaced(&page, "NNODES=2", "NNODES=16384")
        .replace("--global-batch-size 512", "--global-batch-size 131072");
    page.fill("#script", &script);
    page.wait_text(".plan-name", "131,072");
    panel(&page, "map");
    page.wait_for("#map .cell");
    // What stays in view while the map is scrolled stays as it is, element by element.
    let tiles = page.js_async(
        "const done = arguments[0], all = () => [...document.querySelectorAll('#map .tiles > g')], before = all();
         document.querySelector('.map-frame').scrollTop += 300;
         setTimeout(() => {
             const after = all();
             done([before.length, after.length, after.filter(tile => !before.includes(tile)).length]);
         }, 500)",
        &[],
    );
    let count = |place: usize| tiles[place].as_u64().expect("a count");
    let (before, after, fresh) = (count(0), count(1), count(2));
    assert!(
        before >= 3 && after >= 3 && (1..=2).contains(&fresh),
        "{before} tiles, then {after}, {fresh} new"
    );
    // How long that takes is printed, and held against nothing: other tests run on the same cores.
    let best = (0..4).map(|_| longest_move(&page)).fold(f64::MAX, f64::min);
    println!("longest move over 131,072 GPUs: {best:.0} ms");
}

/// 27 nodes of GB200, of which a rack holds 16 that are used at once.
const RACKS: &str = "?#/1?accelerator=GB200&bf16&ffn_hidden_size=14336&gbs=216&gpus_per_node=4&heads=32&hidden=4096\
                     &layers=32&mbs=1&nodes=27&seq=4096&vocab=128256&use_distributed_optimizer";

#[test]
fn racks_are_distinguished() {
    let page = Page::open(RACKS);
    panel(&page, "map");
    page.until("racks by name", || (drawn(&page, "rack 0") && drawn(&page, "rack 1")).then_some(()));
    let lines = page.attribute("#map svg [d]:is(.bracket:last-of-type)", "d").unwrap_or_default();
    assert_eq!(lines.matches('M').count(), 1, "one line between two racks: {lines}");
    page.screenshot("map-racks");
    page.assert_quiet();
}

#[test]
fn two_fingers_bring_the_map_closer() {
    let page = Page::open(RACKS);
    page.phone();
    panel(&page, "map");
    page.until("a map", || (page.count("#map svg .cell") > 0).then_some(()));
    let wide = || {
        page.js("return document.querySelector('#map .map-frame svg').getBoundingClientRect().height", &[])
    };
    let before = wide().as_f64().expect("a height");
    page.js("document.querySelector('#map .map-frame').scrollIntoView({ block: 'center' })", &[]);
    let touch = |kind: &str, apart: Option<f64>| {
        let middle = page.js(
            "const box = document.querySelector('#map .map-frame').getBoundingClientRect();
             return [box.x + box.width / 2, box.y + box.height / 2]",
            &[],
        );
        let (x, y) = (middle[0].as_f64().expect("x"), middle[1].as_f64().expect("y"));
        let points = apart.map_or_else(Vec::new, |apart| {
            vec![
                serde_json::json!({ "x": x - apart / 2.0, "y": y, "id": 1 }),
                serde_json::json!({ "x": x + apart / 2.0, "y": y, "id": 2 }),
            ]
        });
        page.devtools("Input.dispatchTouchEvent", serde_json::json!({ "type": kind, "touchPoints": points }));
    };
    touch("touchStart", Some(60.0));
    for apart in [64.0, 80.0, 100.0, 120.0] {
        touch("touchMove", Some(apart));
    }
    touch("touchEnd", None);
    page.until("a closer map", || (wide().as_f64()? > before * 1.2).then_some(()));
    touch("touchStart", Some(160.0));
    for apart in [150.0, 110.0, 70.0] {
        touch("touchMove", Some(apart));
    }
    touch("touchEnd", None);
    page.until("the whole map", || (wide().as_f64()? < before * 1.01).then_some(()));
    page.assert_quiet();
}

#[test]
fn zooming_draws_what_comes_into_view_and_nothing_else() {
    let page = Page::open(
        "?view=map#/1?model=Llama-3.1-8B&accelerator=H100-SXM&nodes=2048&gpus_per_node=8&gbs=16384&mbs=1&seq=8192&tp=2&pp=2&\
         sequence_parallel&bf16&use_distributed_optimizer",
    );
    page.wait_for(".map-frame svg");
    page.wait_gone("[aria-busy=true]");
    page.js(
        "const frame = document.querySelector('.map-frame');
         window.drawn = 0;
         // All of a tile is drawn anew where its paths are.
         new MutationObserver(all => all.forEach(one => { drawn += one.addedNodes.length }))
             .observe(frame.querySelector('.tiles'), { childList: true });
         const box = frame.getBoundingClientRect();
         frame.dispatchEvent(new MouseEvent('mousemove',
             { bubbles: true, clientX: box.x + box.width / 2, clientY: box.bottom - 20 }));
         setTimeout(() => frame.dispatchEvent(new WheelEvent('wheel',
             { bubbles: true, cancelable: true, ctrlKey: true, deltaY: -1 })), 100)",
        &[],
    );
    page.until("a closer map", || (page.js("return drawn", &[]) != 0).then_some(()));
    // Scrolling to the middle is heard in the frame after, and would be drawn in the next.
    let frames = "const [done] = arguments;
        const wait = left => left ? requestAnimationFrame(() => wait(left - 1)) : done();
        wait(10)";
    page.js_async(frames, &[]);
    let seen = page.js("return [drawn, document.querySelectorAll('.tiles > *').length]", &[]);
    assert!(seen[0].as_u64() <= seen[1].as_u64(), "drawn and shown: {seen}");
}
