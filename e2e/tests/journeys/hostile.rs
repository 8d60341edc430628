//! Links that once froze the page: each is answered, or refused by a bound that it names, within the time that a slow machine has, and
//! the page is there again after a reload.

use e2e::Page;
use serde_json::{Value, json};

use super::embedding::PLAN;

/// What the page may take on a machine four times as slow, by the processor time of this one. Unit: second.
const LIMIT: f64 = 5.0 / 4.0;

/// The seconds that the page's own thread has been at work.
fn worked(page: &Page) -> f64 {
    let metrics = page.devtools("Performance.getMetrics", json!({}));
    let all = metrics["metrics"].as_array().into_iter().flatten();
    all.filter(|one| one["name"] == "TaskDuration").find_map(|one| one["value"].as_f64()).expect("a metric")
}

/// The link that carries this JSON (`crates/link/src/pasted.rs`).
fn packed(page: &Page, pasted: &Value) -> String {
    let link = page.js_async(
        "const [text, done] = arguments;
         const stream = new Blob([text]).stream().pipeThrough(new CompressionStream('deflate-raw'));
         new Response(stream).bytes().then((bytes) => done('#z1:' + bytes.toBase64({ alphabet: 'base64url', omitPadding: true })),
             (error) => done(String(error)))",
        &[json!(pasted.to_string())],
    );
    link.as_str().filter(|link| link.starts_with("#z1:")).unwrap_or_else(|| panic!("{link}")).to_owned()
}

#[test]
fn links_that_froze_the_page_are_answered_or_refused() {
    let page = Page::blank();
    page.devtools("Performance.enable", json!({ "timeDomain": "threadTicks" }));
    page.goto("");
    let deep = |world: u64, stages: u64, batch: u64| {
        format!(
            "#/1?accelerator=H100-SXM&num_layers=4096&hidden_size=8192&num_attention_heads=64&seq_length=4096\
             &max_position_embeddings=4096&micro_batch_size=1&bf16=true&world_size={world}&gpus_per_node=8\
             &pipeline_model_parallel_size={stages}&global_batch_size={batch}&vocab_size=32000"
        )
    };
    let config = |at: u64| {
        json!([
            format!("c{at}.json"),
            format!("{{\"model_type\":\"llama\",\"hidden_size\":{}}}", 64 + at % 7)
        ])
    };
    let files: Vec<Value> = (0..20_000).map(|_| json!(["a.sh", ""])).collect();
    let configs: Vec<Value> = (0..9_000).map(config).collect();
    let settings: serde_json::Map<String, Value> =
        (0..30_000).map(|at| (format!("setting_{at}"), json!("1"))).collect();
    let script = json!([["a.sh", "torchrun x.py"]]);
    let answered = |layout: &'static str| (".verdict", layout);
    let parts = ("#answer", "the limit is 512");
    let refused = |said: &'static str| (".broken-link", said);
    for (name, link, (place, said)) in [
        ("4,096 stages, 16 million samples", deep(4096, 4096, 1 << 24), parts),
        ("1,024 stages", deep(1024, 1024, 8192), parts),
        ("512 stages", deep(512, 512, 4096), answered("PP 512")),
        ("64 stages, 16 million samples", deep(64, 64, 1 << 24), answered("PP 64")),
        ("8 stages, 16 million samples", deep(8, 8, 1 << 24), answered("PP 8")),
        ("262,144 GPUs", deep(1 << 18, 64, 1 << 24), answered("262,144")),
        ("20,000 files", packed(&page, &json!({ "texts": files })), refused("256 are read")),
        ("9,000 configurations", packed(&page, &json!({ "texts": configs })), refused("256 are read")),
        (
            "30,000 settings",
            packed(&page, &json!({ "texts": script, "settings": settings })),
            refused("512 are read"),
        ),
    ] {
        page.js("location.hash = arguments[0]", &[json!(PLAN)]);
        page.wait_text(".verdict", "TP 2, PP 2");
        let before = worked(&page);
        page.js("location.hash = arguments[0]", &[json!(link)]);
        page.wait_text(place, said);
        let took = worked(&page) - before;
        println!("{name}: {took:.2} s");
        assert!(took < LIMIT, "{name}: {took} s");
        page.reload();
        page.wait_text(place, said);
        page.assert_quiet();
    }
}
