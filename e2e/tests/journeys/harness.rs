//! The harness itself, on elements put into the page: every gate can fail, every hand can reach.
use e2e::{Key, Page};
use serde_json::json;

/// The page with `html` in place of everything.
fn showing(html: &str) -> Page {
    let page = Page::open("");
    // By the browser's own tools: no script of the page may set HTML (Trusted Types).
    let document = page.devtools("DOM.getDocument", json!({}));
    let body = page
        .devtools("DOM.querySelector", json!({ "nodeId": document["root"]["nodeId"], "selector": "body" }));
    let html = format!("<body>{html}</body>");
    page.devtools("DOM.setOuterHTML", json!({ "nodeId": body["nodeId"], "outerHTML": html }));
    page
}

#[test]
fn what_is_typed_pasted_chosen_and_pressed_arrives() {
    let page = showing(
        "<textarea id=box>old</textarea>
         <select id=list><option value=a>A</option><option value=b>B</option></select>
         <button>One</button><button>Two</button><output></output>",
    );
    page.js(
        "window.heard = [];
         for (const kind of ['input', 'change', 'click']) addEventListener(kind, e => heard.push(kind + ' ' + e.target.localName));
         for (const b of document.querySelectorAll('button')) b.onclick = () => setTimeout(() => {
             document.querySelector('output').innerText = b.innerText;
         }, 100)",
        &[],
    );
    page.type_into("#box", " and\nnew");
    assert_eq!(page.value("#box"), "old and\nnew");
    page.fill("#box", "--tp 8 \\\n  é");
    assert_eq!(page.value("#box"), "--tp 8 \\\n  é");
    page.fill("#box", "");
    assert_eq!(page.value("#box"), "");
    page.choose("#list", "b");
    assert_eq!(page.value("#list"), "b");
    page.click_text("button", "Two");
    assert_eq!(page.wait_text("output", "Two"), "Two");
    page.press(Key::Shift + Key::Tab);
    assert_eq!(page.focused(), "button \"One\"");
    page.press(Key::Enter);
    page.wait_text("output", "One");
    assert_eq!(page.texts("button"), ["One", "Two"]);
    let heard = page.js("return heard", &[]).to_string();
    for event in ["input textarea", "input select", "change select", "click button"] {
        assert!(heard.contains(event), "{event} is not in {heard}");
    }
}

#[test]
fn a_large_paste_arrives_whole() {
    let page = showing("<textarea id=box></textarea>");
    let text = "--flag value \\\n".repeat(70_000);
    page.fill("#box", &text);
    assert_eq!(page.value("#box"), text);
}

#[test]
fn downloads_and_the_clipboard_can_be_read() {
    let page =
        showing("<a download='report.json' href='data:application/json,{}'>Get</a><button>Copy</button>");
    page.js("document.querySelector('button').onclick = () => navigator.clipboard.writeText('n0_g0')", &[]);
    page.click("a");
    assert_eq!(page.downloaded("report.json"), b"{}");
    page.click("button");
    page.until("n0_g0 on the clipboard", || (page.clipboard() == "n0_g0").then_some(()));
}

#[test]
fn errors_and_requests_to_others_do_not_pass_unseen() {
    let page = Page::open("");
    page.assert_quiet();
    page.js("setTimeout(() => { throw new Error('a planted error') })", &[]);
    page.until("the planted error", || {
        page.console_errors().iter().any(|e| e.contains("a planted error")).then_some(())
    });

    // what the content security policy stops is an error, what it would let pass is a foreign request
    let other = "http://127.0.0.1:9/other.png";
    let ask = |page: &Page| page.js("new Image().src = arguments[0]", &[json!(other)]);
    let page = Page::open("");
    ask(&page);
    page.until("a stopped request", || {
        page.console_errors().iter().any(|e| e.contains("Content Security Policy")).then_some(())
    });
    let page = Page::blank();
    page.devtools("Page.enable", json!({}));
    page.devtools("Page.setBypassCSP", json!({ "enabled": true }));
    page.goto("");
    ask(&page);
    page.until("a foreign request", || (page.foreign_requests() == [other]).then_some(()));
}

#[test]
fn inline_scripts_and_styles_that_are_not_the_page_s_own_do_not_run() {
    let page = showing("<p style='color: red'>plain</p>");
    let tried =
        |body: &str| page.js(&format!("try {{ {body}; return '' }} catch (e) {{ return e.name }}"), &[]);
    // Two policies keep a script out: the one of Trusted Types before it has a text, the other before it runs.
    let text = "const s = document.createElement('script'); s.textContent = 'window.ran = true'; document.body.append(s)";
    tried(text);
    assert_eq!(tried("document.body.insertAdjacentHTML('beforeend', '<i id=put>')"), "TypeError");
    assert_eq!(tried("new Worker('data:text/javascript,')"), "TypeError");
    assert_eq!(tried("const s = document.createElement('script'); s.src = 'embed.js'"), "TypeError");
    assert_eq!(page.count("#put"), 0);
    assert_eq!(page.js("return window.ran === true", &[]), false);
    assert_ne!(page.js("return getComputedStyle(document.querySelector('p')).color", &[]), "rgb(255, 0, 0)");
}

#[test]
fn axe_names_the_rule_and_the_element() {
    let page =
        showing("<main><h1>x</h1><img id=bare src='data:image/gif;base64,R0lGODlhAQABAAAAACw='></main>");
    let found = page.axe();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (found[0].rule.as_str(), found[0].elements.as_slice()),
        ("image-alt", &["#bare".to_owned()][..])
    );
}

#[test]
fn windows_phones_and_preferences_are_as_asked() {
    let page = showing("<div id=wide>x</div>");
    let inner = || page.js("return [innerWidth, innerHeight]", &[]);
    assert_eq!(inner(), json!([1280, 900]));
    page.set_window(320, 600);
    assert_eq!(inner(), json!([320, 600]));
    assert_eq!(page.overflow(), 0);
    page.js("document.getElementById('wide').setAttribute('id', 'w'); document.getElementById('w').append('x'.repeat(400))", &[]);
    assert!(page.overflow() > 0);
    page.phone();
    assert_eq!(page.js("return [devicePixelRatio, navigator.maxTouchPoints > 0]", &[]), json!([2, true]));
    page.prefer("prefers-reduced-motion", "reduce");
    assert_eq!(page.js("return matchMedia('(prefers-reduced-motion: reduce)').matches", &[]), true);
}
