//! Readers, each with one question: how many clicks lead to its answer, and in how many seconds it stands there.
//! In Chromium and in Firefox. Typing and pasting are no clicks. The seconds run from the reader's first act to the answer, without the load.
use std::cell::Cell;
use std::time::Instant;

use e2e::{Key, Kind, Page};

use super::embedding::PLAN;
use super::map::drawn;
use super::steps::{panel, turn};

/// A script whose plan needs more memory than there is.
pub(crate) const TOO_LARGE: &str = "torchrun --nnodes 4 --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size 4 \
    --num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672 --num-attention-heads 64 --group-query-attention \
    --num-query-groups 8 --seq-length 8192 --max-position-embeddings 8192 --swiglu --bf16 --micro-batch-size 2 \
    --global-batch-size 256 --vocab-size 128256 --untie-embeddings-and-output-weights --use-flash-attn\n";

/// Each reader comes with either browser.
macro_rules! readers {
    ($($name:ident),* $(,)?) => {
        mod in_chromium {
            $(#[test] fn $name() { super::$name(e2e::Kind::Chromium) })*
        }
        mod in_firefox {
            $(#[test] fn $name() { super::$name(e2e::Kind::Firefox) })*
        }
    };
}

/// Firefox, driven by its own protocol, takes longer for all that a journey does. Unit: times.
const SLOWER: f64 = 2.0;

readers! {
    an_engineer_whose_job_runs_out_of_memory,
    a_researcher_with_a_model_and_so_many_gpus,
    a_student_who_does_not_know_a_word,
    somebody_on_a_phone_who_was_sent_a_link,
    an_author_who_wants_the_map_in_their_docs,
    somebody_who_asks_how_near_published_runs_are,
    somebody_with_sixteen_thousand_gpus,
    somebody_who_tunes_with_lora,
    somebody_who_trains_by_rewards,
    somebody_with_only_a_model_s_name,
    somebody_who_compares_two_plans,
    somebody_who_enters_nonsense_everywhere,
    a_pasted_script_is_answered_alone_whatever_was_looked_at_before,
    somebody_with_a_keyboard_alone,
}

/// Somebody with a question.
struct Reader {
    kind: Kind,
    page: Page,
    clicks: Cell<u32>,
    since: Cell<Option<Instant>>,
}

impl Reader {
    fn at(kind: Kind, path: &str) -> Self {
        Self::with(kind, Page::open_in(kind, path))
    }

    fn with(kind: Kind, page: Page) -> Self {
        Self { kind, page, clicks: Cell::new(0), since: Cell::new(None) }
    }

    /// The clock runs from the first act on.
    fn acts(&self) -> &Page {
        if self.since.get().is_none() {
            self.since.set(Some(Instant::now()));
        }
        &self.page
    }

    #[track_caller]
    fn click(&self, css: &str, text: &str) {
        self.clicks.set(self.clicks.get() + 1);
        self.acts().click_text(css, text);
    }

    /// The answer stands there: after so many clicks, and no more seconds than that.
    #[track_caller]
    fn is_answered(&self, who: &str, clicks: u32, seconds: u64) {
        let took = self.since.get().map_or(0.0, |since| since.elapsed().as_secs_f64());
        println!("{who}: {} clicks, {took:.1} s", self.clicks.get());
        assert_eq!(self.clicks.get(), clicks, "clicks of {who}");
        #[allow(clippy::cast_precision_loss)]
        let most = seconds as f64 * if self.kind == Kind::Firefox { SLOWER } else { 1.0 };
        assert!(took <= most, "{who} waits {took:.1} s");
        self.page.assert_quiet();
    }
}

fn an_engineer_whose_job_runs_out_of_memory(kind: Kind) {
    let reader = Reader::at(kind, "");
    reader.acts().fill("#script", TOO_LARGE);
    reader.page.wait_text(".verdict .big", "Out of memory");
    reader.page.wait_text(".act", "Makes it fit");
    reader.click(".act button", "Apply");
    reader.page.until("a plan that fits", || {
        (!reader.page.text(".verdict .big").contains("Out of memory")).then_some(())
    });
    reader.is_answered("the engineer", 1, 15);
}

fn a_researcher_with_a_model_and_so_many_gpus(kind: Kind) {
    let reader = Reader::at(kind, "");
    reader.click("[role=tab]", "Model + GPUs");
    reader.acts().fill("#start-model", "Llama-3-70B");
    reader.click(".start .chip", "128");
    reader.page.wait_text(".plan-name", "128 × H100");
    reader.page.wait_for(".best .layout");
    // The search goes on beside the page; its five best so far are there at once.
    reader.page.wait_text("#best-title", "Fastest layouts that fit");
    reader.page.until("five layouts", || (reader.page.count(".best .layout") >= 5).then_some(()));
    reader.page.screenshot("researcher");
    reader.is_answered("the researcher", 2, 30);
}

fn a_student_who_does_not_know_a_word(kind: Kind) {
    let reader = Reader::at(kind, "");
    reader.page.wait_for(".verdict");
    reader.click(".stats .term", "MFU");
    reader.page.wait_text("#why", "More in the guide");
    reader.is_answered("the student", 1, 5);
}

fn somebody_on_a_phone_who_was_sent_a_link(kind: Kind) {
    let page = Page::blank_in(kind);
    page.phone();
    page.goto(PLAN);
    let reader = Reader::with(kind, page);
    reader.acts().wait_text(".verdict .big", "Fits");
    reader.is_answered("the phone", 0, 5);
}

fn an_author_who_wants_the_map_in_their_docs(kind: Kind) {
    let reader = Reader::at(kind, PLAN);
    reader.page.wait_for(".verdict");
    reader.click("button", "Share");
    reader.acts().choose("#share .view select", "map");
    reader
        .page
        .until("the frame's text", || reader.page.value("#frame").contains("?embed=map").then_some(()));
    reader.is_answered("the author", 1, 10);
}

fn somebody_who_asks_how_near_published_runs_are(kind: Kind) {
    let reader = Reader::at(kind, "");
    reader.click("[role=tab]", "Examples");
    // Each card has the published figure, the estimate with its distance, and where that is large the reason.
    let cards = reader.page.until("the estimates", || {
        let cards = reader.page.texts(".chapter[open] .example");
        let waiting = cards.iter().any(|card| card.contains("estimated: …"));
        (!cards.is_empty() && !waiting).then_some(cards)
    });
    for card in cards.iter().filter(|card| card.contains("published: ")) {
        let (_, estimated) = card.split_once("estimated: ").expect("an estimate beside it");
        let off = estimated.split_once('(').and_then(|(_, rest)| rest.split_once("%)")).map(|(off, _)| off);
        let off: f64 = off.map_or(0.0, |off| off.replace('−', "-").parse().expect("a percentage"));
        assert!(off.abs() <= 10.0 || card.contains("why: "), "{card}");
    }
    reader.page.screenshot("published");
    reader.is_answered("the one who doubts", 1, 60);
}

fn somebody_with_sixteen_thousand_gpus(kind: Kind) {
    let reader = Reader::at(kind, "");
    reader.click("[role=tab]", "Examples");
    reader.clicks.set(reader.clicks.get() + 1);
    reader.acts().js(
        "[...document.querySelectorAll('.example strong')].find(e => e.innerText === 'Llama 3 405B').click()",
        &[],
    );
    reader.page.wait_text(".plan-name", "16,384 × H100");
    // On the first screen the whole cluster is small, not its first nodes.
    reader.page.wait_text(".mini-map", "each cell is 2 nodes");
    reader.page.screenshot("sixteen-thousand-overview");
    reader.click("[role=tab]", "Map");
    reader.page.until("stages with brackets", || drawn(&reader.page, "PP 0").then_some(()));
    reader.acts().fill("#find-gpu", "n2047_g7");
    reader.page.press(Key::Enter);
    reader.page.wait_text(".about-gpu", "rank 16,383");
    reader.page.until("the last GPUs in the frame", || drawn(&reader.page, "n2047").then_some(()));
    reader.page.screenshot("sixteen-thousand");
    reader.is_answered("the owner of 16,384 GPUs", 3, 30);
}

fn somebody_who_tunes_with_lora(kind: Kind) {
    let reader = Reader::at(kind, "");
    reader.click("[role=tab]", "Model + GPUs");
    reader.acts().fill("#start-model", "Qwen/Qwen2.5-7B");
    reader.click(".start .chip", "8");
    reader.click(".start .chip", "QLoRA");
    reader.page.wait_text(".plan-name", "8 × H100");
    reader.page.wait_for(".verdict");
    panel(&reader.page, "settings");
    // In a field, whose value is not of the page's text everywhere.
    reader.page.until("4 bits among the settings", || {
        let fields = "return [...document.querySelectorAll('#settings :is(input, select)')].some(e => e.value === 'nf4')";
        (reader.page.js(fields, &[]) == true).then_some(())
    });
    reader.is_answered("the LoRA user", 3, 20);
}

fn somebody_who_trains_by_rewards(kind: Kind) {
    let reader = Reader::at(kind, "");
    reader.click("[role=tab]", "Model + GPUs");
    reader.acts().fill("#start-model", "Qwen/Qwen2.5-7B");
    reader.click(".start .chip", "8");
    reader.click(".start .chip", "RL (GRPO)");
    // Both phases have a bar of their own.
    reader.page.wait_for(".phase-bars");
    assert_eq!(reader.page.axe(), []);
    reader.is_answered("the one with rewards", 3, 20);
}

fn somebody_with_only_a_model_s_name(kind: Kind) {
    let reader = Reader::at(kind, "");
    reader.click("[role=tab]", "Model + GPUs");
    reader.acts().fill("#start-model", "");
    reader.page.type_into("#start-model", "mixtral 8x7");
    reader.page.wait_text("#models", "Mixtral-8x7B");
    assert_eq!(reader.page.axe(), []);
    reader.page.press(Key::Down);
    reader.page.press(Key::Enter);
    reader.page.wait_text(".plan-name", "64 × H100");
    assert_eq!(reader.page.value("#start-model"), "Mixtral-8x7B");
    reader.is_answered("the one with a name", 1, 40);
}

fn somebody_who_compares_two_plans(kind: Kind) {
    let reader = Reader::at(kind, "");
    reader.page.wait_for(".verdict");
    reader.click("[role=tab]", "Search");
    reader.page.wait_for("#search .layout-table tbody tr");
    reader.page.wait_gone("#search progress");
    // Another layout than the one that is there, and from there to both side by side: two clicks.
    reader.click("#search .layout-table button", "Apply");
    reader.page.wait_for("#search .layout-table tbody tr.chosen");
    reader.click(".chosen-layout button", "Compare with the starting plan");
    reader.page.wait_text("#comparison", "Largest changes in step time");
    assert!(reader.page.count("#comparison .two-bars") > 1);
    assert_eq!(reader.page.axe(), []);
    // The list is still there.
    panel(&reader.page, "search");
    reader.page.wait_for("#search .layout-table tbody tr.chosen");
    reader.is_answered("the one who compares", 3, 30);
}

fn somebody_who_enters_nonsense_everywhere(kind: Kind) {
    let reader = Reader::at(kind, "");
    reader.acts().fill("#script", "not a script, just prose");
    reader.page.wait_for(".missing");
    assert_eq!(reader.page.count(".verdict"), 0, "no verdict of another text");
    reader.click("[role=tab]", "Model + GPUs");
    reader.acts().fill("#start-model", "{\"model_type\": \"nobody\"}");
    reader.page.wait_text("#start-unknown", "nobody");
    reader.acts().fill("#start-gpus", "-3");
    assert_eq!(reader.page.count(".verdict"), 0);
    reader.is_answered("the one with nonsense", 1, 20);
}

fn a_pasted_script_is_answered_alone_whatever_was_looked_at_before(kind: Kind) {
    let reader = Reader::at(kind, "");
    reader.click("[role=tab]", "Examples");
    reader.clicks.set(reader.clicks.get() + 1);
    reader.acts().js(
        "[...document.querySelectorAll('.example strong')].find(e => e.innerText === 'Llama 3 405B').click()",
        &[],
    );
    reader.page.wait_text(".plan-name", "16,384 × H100");
    reader.click("[role=tab]", "Script");
    reader.acts().fill("#script", TOO_LARGE);
    reader.page.wait_text(".plan-name", "32 × H100");
    reader.page.wait_text(".verdict .big", "Out of memory");
    reader.is_answered("the one who pastes after an example", 3, 20);
}

fn somebody_with_a_keyboard_alone(kind: Kind) {
    let reader = Reader::at(kind, "");
    reader.page.wait_for(".verdict");
    reader.acts().press(Key::Tab);
    reader.page.press(Key::Enter);
    turn(&reader.page, "More: tensor parallel size");
    reader.page.press(Key::Enter);
    reader.page.wait_text(".plan-name", "TP 8");
    reader.page.press(Key::Control + "z");
    reader.page.wait_text(".plan-name", "TP 4");
    reader.is_answered("the keyboard", 0, 10);
}
