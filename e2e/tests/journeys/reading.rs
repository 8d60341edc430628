//! Texts are read by a program of their own, beside the page.
use e2e::Page;
use serde_json::json;

use super::embedding::PLAN;
use super::steps::{input, without_a_service_worker, without_workers};

/// A text that the page does not have read from its start.
const TEXT: &str = "torchrun --nnodes 4 --nproc_per_node 8 pretrain_gpt.py --num-layers 12 --hidden-size 2048 \\
    --num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 \\
    --global-batch-size 64 --vocab-size 50257 --bf16\n";

/// What was asked of the page's folder.
fn asked(page: &Page, file: &str) -> bool {
    page.served().iter().any(|served| served.contains(file))
}

#[test]
fn who_brings_no_text_has_an_answer_without_the_readers() {
    let page = Page::blank();
    page.devtools("Network.enable", json!({}));
    without_workers(&page);
    page.devtools("Network.setBlockedURLs", json!({ "urls": ["*shardscope-reader*"] }));
    page.goto("");
    page.wait_text(".plan-name", "TP 2, PP 2, DP 4");
    input(&page, "model-input");
    page.wait_for("#model-input");
    page.goto(PLAN);
    page.wait_for(".plan-name");
    assert_eq!(page.count("#answer [role=alert]"), 0);
}

#[test]
fn where_the_readers_do_not_arrive_the_page_says_so_keeps_the_text_and_tries_again() {
    let page = Page::blank();
    page.devtools("Network.enable", json!({}));
    // What a worker asks for is beyond the reach of the page's own network settings.
    without_workers(&page);
    page.devtools("Network.setBlockedURLs", json!({ "urls": ["*shardscope-reader_bg.wasm"] }));
    page.goto("");
    page.fill("#script", TEXT);
    page.wait_text("#answer [role=alert]", "could not be loaded");
    assert_eq!(page.value("#script"), TEXT);
    page.devtools("Network.setBlockedURLs", json!({ "urls": [] }));
    page.click_text("#answer [role=alert] button", "Try again");
    page.wait_text(".plan-name", "32 × H100");
    assert_eq!(page.count("#answer [role=alert]"), 0);
}

#[test]
fn an_edit_while_the_readers_are_lost_is_what_another_try_reads() {
    let page = Page::blank();
    page.devtools("Network.enable", json!({}));
    without_workers(&page);
    page.devtools("Network.setBlockedURLs", json!({ "urls": ["*shardscope-reader_bg.wasm"] }));
    page.goto("");
    page.fill("#script", TEXT);
    page.wait_text("#answer [role=alert]", "could not be loaded");
    page.fill("#script", &TEXT.replace("--nnodes 4", "--nnodes 2"));
    page.wait_text("#answer [role=alert]", "could not be loaded");
    page.devtools("Network.setBlockedURLs", json!({ "urls": [] }));
    page.click_text("#answer [role=alert] button", "Try again");
    page.wait_text(".plan-name", "16 × H100");
    assert_eq!(page.count("#answer [role=alert]"), 0);
}

#[test]
fn texts_are_read_without_workers_too() {
    let page = Page::blank();
    without_workers(&page);
    page.goto("");
    page.fill("#script", TEXT);
    page.wait_text(".plan-name", "32 × H100");
    page.assert_quiet();
}

#[test]
fn the_readers_come_after_the_answer_and_once() {
    // The service worker asks for its copies itself, at any time.
    let page = Page::blank();
    without_a_service_worker(&page);
    page.goto("");
    page.until("the readers", || asked(&page, "shardscope-reader_bg.wasm").then_some(()));
    page.fill("#script", TEXT);
    page.wait_text(".plan-name", "32 × H100");
    page.fill("#script", &TEXT.replace("--nnodes 4", "--nnodes 2"));
    page.wait_text(".plan-name", "16 × H100");
    let served = page.served();
    let readers = served.iter().filter(|served| served.contains("shardscope-reader_bg.wasm")).count();
    assert_eq!(readers, 1, "{served:?}");
    page.assert_quiet();
}

#[test]
fn a_text_of_nearly_a_megabyte_is_read() {
    let page = Page::open("");
    page.fill("#script", TEXT);
    page.wait_text(".plan-name", "32 × H100");
    // Nearly a megabyte.
    let long = format!("{}{TEXT}", "# a line that somebody left here, of some length\n".repeat(18_000));
    page.js(
        "const area = document.getElementById('script');
         area.value = arguments[0];
         area.dispatchEvent(new Event('input', { bubbles: true }));",
        &[json!(long.replace("--nnodes 4", "--nnodes 2"))],
    );
    page.wait_text(".plan-name", "16 × H100");
    page.assert_quiet();
}
