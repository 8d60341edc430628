//! `badge`: a picture of one line.

use crate::{SCRIPT, json, printed};

#[test]
fn a_badge_says_verdict_machines_and_mfu() {
    let checked = json(&printed(&["check", "--format", "json", "-"], SCRIPT, 0));
    let mfu = format!("{:.1}%", 100.0 * checked["mfu"].as_f64().expect("a share"));
    let svg = printed(&["badge", "-"], SCRIPT, 0);
    let said = format!("fits 16 × H100-SXM · {mfu} MFU");
    assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""), "{svg}");
    assert!(
        svg.contains(&format!("aria-label=\"shardscope: {said}\""))
            && svg.contains(&format!(">{said}</text>")),
        "{svg}"
    );
    assert_eq!(svg.matches('<').count(), svg.matches('>').count());
    let large = printed(
        &["badge", "--accelerator", "V100-SXM2-32GB", "--set", "micro_batch_size=32", "-"],
        SCRIPT,
        0,
    );
    assert!(large.contains(">does not fit 16 × V100-SXM2-32GB</text>"), "{large}");
    let labelled = printed(&["badge", "--label", "<b>&\"", "-"], SCRIPT, 0);
    assert!(labelled.contains("&lt;b&gt;&amp;&quot;") && !labelled.contains("<b>"), "{labelled}");
    let data = printed(&["badge", "--format", "data", "-"], SCRIPT, 0);
    let encoded = data.trim_end().strip_prefix("data:image/svg+xml;base64,").expect("a data address");
    let decoded =
        base64::Engine::decode(&base64::engine::general_purpose::STANDARD, encoded).expect("base64");
    assert_eq!(String::from_utf8(decoded).expect("text"), svg);
    assert_eq!(printed(&["badge", "-"], "echo\n", 2), "");
}
