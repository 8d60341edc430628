//! What DPO and ORPO under unsloth keep after the last norm and hold in backward, compared with recorded runs of TRL's
//! trainers as rewritten by unsloth (`tests/record/unsloth_preferences.py`); and its notebooks, shortened.

use serde_json::Value;
use shardscope::bash::Environment;
use shardscope::estimate::{memory, parameters};
use shardscope::launch::{Request, Resolution, read, resolve};
use shardscope::operators::{Operator, Symbols};
use shardscope::plan::{Plan, PreferenceLogits};
use shardscope::source::Source;

use super::drafts::int;
use super::formula::evaluate;

const RECORDED: &str = include_str!("../data/activations/unsloth_preferences.jsonl");
/// The kernel's count of tokens with a label, which it keeps on the host and which is visible in 1.15's case.
const ON_HOST: u64 = 8;

/// The loss and its gradient, fp32.
const SCALARS: u64 = 8;

const COMMON: [(&str, &str); 23] = [
    ("software", "unsloth"),
    ("accelerator", "A100-SXM-40GB"),
    ("num_nodes", "1"),
    ("gpus_per_node", "1"),
    ("num_layers", "2"),
    ("swiglu", "true"),
    ("hidden_size", "512"),
    ("ffn_hidden_size", "1024"),
    ("num_attention_heads", "8"),
    ("vocab_size", "32000"),
    ("untie_embeddings_and_output_weights", "true"),
    ("normalization", "RMSNorm"),
    ("position_embedding_type", "rope"),
    ("seq_length", "1024"),
    ("micro_batch_size", "2"),
    ("num_micro_batches", "1"),
    ("params_dtype", "bf16"),
    ("autocast", "bf16"),
    ("attn_implementation", "flash_attention_2"),
    ("train_type", "lora"),
    ("lora_rank", "8"),
    ("training_objective", "dpo"),
    ("loss_kind", "torch"),
];

fn plan(set: &[(&str, &str)]) -> Plan {
    let settings: Vec<_> =
        COMMON.iter().chain(set).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let resolution = resolve(&[], &settings);
    resolution.plan.unwrap_or_else(|| panic!("no plan: {:?}", resolution.diagnostics))
}

fn word(case: &Value) -> &'static str {
    match (case["method"].as_str(), case["trl"].as_str()) {
        (Some("orpo"), _) => "states_orpo",
        (_, Some("0.22")) => "all_states",
        (_, Some("1.13")) => "states",
        _ => "labelled_states",
    }
}

#[test]
fn recorded_losses_are_met_to_the_byte() {
    let mut compared = 0;
    for line in RECORDED.lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let half = if case["half"] == "float16" { "fp16" } else { "bf16" };
        let [pairs, tokens, words, width] = [
            int(&case, "sequences") / 2,
            int(&case, "tokens"),
            int(&case, "vocabulary"),
            int(&case, "hidden"),
        ]
        .map(|number| number.to_string());
        let plan = plan(&[
            ("micro_batch_size", &pairs),
            ("seq_length", &tokens),
            ("vocab_size", &words),
            ("hidden_size", &width),
            ("preference_logits", word(&case)),
            ("reference_model", if case["method"] == "orpo" { "none" } else { "adapters" }),
            ("params_dtype", half),
            ("autocast", half),
        ]);
        let x = Symbols::new(&plan);
        let saved = Operator::OutputLayer.saved(&x);
        let ours: u64 = saved.iter().map(|saved| saved.bytes.get()).sum();
        let kept: u64 =
            case["kept"].as_array().expect("a list").iter().map(|tensor| int(tensor, "bytes")).sum();
        // TRL 0.22 computed the odds by a shorter expression: per pair it keeps four numbers and the chosen branch
        // less.
        let shorter = if case["method"] == "orpo" && case["trl"] == "0.22" { 9 * x.b } else { 0 };
        let labelled = word(&case) == "labelled_states";
        let on_host = if labelled { ON_HOST } else { 0 };
        assert_eq!(ours + on_host, kept + shorter, "{line}");
        // In backward the loss's own tensors are freed before the kernel runs; the loss and its gradient exist.
        let moments = Operator::OutputLayer.transients(&x);
        let beside: u64 = moments[1].tensors.iter().map(|tensor| tensor.bytes.get()).sum();
        // For 1.15, the margins and the count, which are outside the kernel.
        let gone = if labelled { 4 * x.b + 8 } else { ours - saved[0].bytes.get() };
        let held = ours + beside + on_host + SCALARS - gone;
        assert_eq!(held, int(&case, "held_in_backward_at_most"), "{line}");
        for tensor in saved.iter().chain(moments.iter().flat_map(|moment| &moment.tensors)) {
            let value = evaluate(tensor.formula.expression, &|name| x.value(name));
            assert_eq!(tensor.bytes.get() as f64, value, "{}", tensor.name);
        }
        compared += 1;
    }
    assert_eq!(compared, 36);
}

/// Tokens and vocabulary entries of a tile, and what else the loss holds.
fn beside(set: &[(&str, &str)]) -> [u64; 3] {
    let plan = plan(set);
    let x = Symbols::new(&plan);
    let moments = Operator::OutputLayer.transients(&x);
    let kept: u64 = Operator::OutputLayer.saved(&x).iter().map(|saved| saved.bytes.get()).sum();
    if let Some(last) = moments.get(2) {
        assert_eq!(last.returned.get(), kept);
    }
    [x.chunk_rows(), x.tile_words(), moments[0].tensors.iter().map(|tensor| tensor.bytes.get()).sum()]
}

#[test]
fn what_stands_beside_the_loss_is_a_tile_and_states() {
    let (all, scored) = (4 * 1024 * 512 * 2, 4 * 1023 * 512 * 2);
    // 4,092 tokens with a vocabulary of 32,000: all entries for as many tokens as have the logits of 512 with 151,936
    // entries.
    let tile = 2048 * (32_000 + 512) * 4;
    let both = tile + 2 * all + scored;
    assert_eq!(beside(&[("preference_logits", "states")]), [2048, 32_000, both]);
    assert_eq!(beside(&[("preference_logits", "labelled_states")]), [2048, 32_000, both]);
    let alone = ("reference_model", "none");
    assert_eq!(beside(&[("preference_logits", "states_orpo"), alone]), [2048, 32_000, both - all]);
    let computed = ("reference_model", "precomputed");
    assert_eq!(beside(&[("preference_logits", "states"), computed]), [2048, 32_000, both - all]);
    // Before 0.29 each layer's input is held by a variable, unless it is the one that is kept.
    assert_eq!(beside(&[("preference_logits", "all_states")]), [2048, 32_000, tile + 3 * all]);
    assert_eq!(beside(&[("preference_logits", "all_states"), computed]), [2048, 32_000, tile + all]);
    let sent = [computed, ("gradient_checkpointing", "true"), ("offload_layer_inputs", "true")];
    let set: Vec<_> = [("preference_logits", "all_states")].into_iter().chain(sent).collect();
    assert_eq!(beside(&set), [2048, 32_000, tile + 3 * all]);
    // Larger vocabularies are split on small devices, and from 4,096 tokens on.
    let wide = [("preference_logits", "states"), ("vocab_size", "128256")];
    assert_eq!(beside(&wide)[..2], [512, 128_256]);
    let small: Vec<_> = wide
        .into_iter()
        .chain([("accelerator", "T4"), ("params_dtype", "fp16"), ("autocast", "fp16")])
        .collect();
    assert_eq!(beside(&small)[..2], [4092, 16_384]);
    let long: Vec<_> = wide.into_iter().chain([("seq_length", "2048")]).collect();
    assert_eq!(beside(&long)[..2], [4096, 16_384]);
    // No chunk has logits of more than 2 GiB.
    let most = [
        ("preference_logits", "states"),
        ("vocab_size", "32768"),
        ("hidden_size", "65536"),
        ("num_attention_heads", "512"),
        ("micro_batch_size", "64"),
    ];
    assert_eq!(beside(&most)[..2], [4096, 32_768]);
    // As many as Liger would use, where that is more: 4,092 tokens in parts of two words for each of 65,536 columns.
    let liger: Vec<_> = most[..1]
        .iter()
        .chain(&most[2..4])
        .copied()
        .chain([("vocab_size", "131072"), ("micro_batch_size", "2")])
        .collect();
    assert_eq!(beside(&liger)[..2], [1024, 131_072]);
}

/// `nb/Zephyr_(7B)-DPO.ipynb` of unslothai/notebooks, shortened.
const PAIRS: &str = r#"
from unsloth import FastLanguageModel, PatchDPOTrainer
PatchDPOTrainer()
model, tokenizer = FastLanguageModel.from_pretrained(model_name = "unsloth/zephyr-sft-bnb-4bit", max_seq_length = 4096, dtype = None, load_in_4bit = True)
model = FastLanguageModel.get_peft_model(
    model, r = 64, target_modules = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj",], lora_alpha = 64, lora_dropout = 0,
    bias = "none", use_gradient_checkpointing = "unsloth", random_state = 3407, use_rslora = False, loftq_config = None,
)
from trl import DPOTrainer, DPOConfig
dpo_trainer = DPOTrainer(
    model = model, ref_model = None,
    args = DPOConfig(per_device_train_batch_size = 2, gradient_accumulation_steps = 4, num_train_epochs = 3, optim = "adamw_8bit", report_to = "none"),
    beta = 0.1, train_dataset = rows, max_length = 1024, max_prompt_length = 512,
)
dpo_trainer.train()
"#;

/// `nb/Llama3_(8B)-ORPO.ipynb`, shortened in the same way.
const ODDS: &str = r#"
from unsloth import FastLanguageModel
model, tokenizer = FastLanguageModel.from_pretrained(model_name = "unsloth/llama-3-8b-bnb-4bit", max_seq_length = 4096, dtype = None, load_in_4bit = True)
model = FastLanguageModel.get_peft_model(
    model, r = 16, target_modules = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj",], lora_alpha = 16, lora_dropout = 0,
    bias = "none", use_gradient_checkpointing = "unsloth", random_state = 3407, use_rslora = False, loftq_config = None,
)
from trl import ORPOConfig, ORPOTrainer
orpo_trainer = ORPOTrainer(
    model = model, train_dataset = dataset, tokenizer = tokenizer,
    args = ORPOConfig(max_length = 4096, max_prompt_length = 2048, max_completion_length = 2048, per_device_train_batch_size = 2, gradient_accumulation_steps = 4, beta = 0.1, optim = "adamw_8bit", max_steps = 30),
)
orpo_trainer.train()
"#;

fn resolved(text: &str) -> Resolution {
    let source = Source::from_files([("tune.py", text)]);
    let set = [("accelerator".to_owned(), "T4".to_owned())];
    read(&Request { source: &source, environment: &Environment::default(), overrides: &set })
}

fn planned(text: &str) -> Plan {
    let read = resolved(text);
    assert!(read.not_modelled.is_empty(), "{:?}", read.not_modelled);
    read.plan.unwrap_or_else(|| panic!("{:?}", read.diagnostics))
}

#[test]
fn a_notebook_of_pairs_is_worked_out_by_hand() {
    let plan = planned(PAIRS);
    // The notebook prints the same number.
    assert_eq!(parameters(&plan).trained.get(), 167_772_160);
    let x = Symbols::new(&plan);
    assert_eq!((x.b, x.s), (4, 1024));
    assert_eq!(plan.recipe().transformers.preference_logits, PreferenceLogits::AllStates);
    let found = memory(&plan);
    // 2,048 tokens with the full vocabulary in fp32 and the sum of their gradients, the last hidden states, and inputs
    // of 32 layers. The loss keeps the fp32 gradient, one byte per token, and four numbers per pair.
    let tile = 2048 * (32_000 + 4096) * 4;
    let states = 4096 * 4096 * 2;
    let moment =
        Operator::OutputLayer.transients(&x)[0].tensors.iter().map(|tensor| tensor.bytes.get()).sum::<u64>();
    assert_eq!(moment, tile + 33 * states);
    let kept: u64 = Operator::OutputLayer.saved(&x).iter().map(|saved| saved.bytes.get()).sum();
    assert_eq!(kept, 2 * states + 4096 + 32);
    assert!(found.ranks[0].totals.temporaries.get() >= moment);
}

#[test]
fn releases_of_trl_and_lengths_are_distinguished() {
    let kind = |text: &str| planned(text).recipe().transformers.preference_logits;
    let released = |release: &str| {
        let head = format!("# pip install trl=={release}\n");
        kind(&(head + &PAIRS.replace(", max_prompt_length = 512", "")))
    };
    assert_eq!(released("0.22.2"), PreferenceLogits::AllStates);
    assert_eq!(released("0.29.0"), PreferenceLogits::States);
    assert_eq!(released("1.13.0"), PreferenceLogits::States);
    assert_eq!(released("1.15.0"), PreferenceLogits::LabelledStates);
    assert_eq!(kind(&PAIRS.replace(", max_prompt_length = 512", "")), PreferenceLogits::LabelledStates);
    let odds = planned(ODDS);
    let x = Symbols::new(&odds);
    assert_eq!((x.b, x.s), (4, 4096));
    assert_eq!(odds.recipe().transformers.preference_logits, PreferenceLogits::StatesOdds);
    // Without a stated length TRL's is used, and none is longer than the model's.
    let length = |text: &str| Symbols::new(&planned(text)).s;
    assert_eq!(length(&ODDS.replace("max_length = 4096, ", "")), 1024);
    assert_eq!(length(&ODDS.replace("max_length = 4096, ", "max_length = 8192, ")), 4096);
    assert_eq!(
        length(
            &ODDS.replace("max_seq_length = 4096", "max_seq_length = 512").replace("max_length = 4096, ", "")
        ),
        512
    );
}

#[test]
fn what_was_not_recorded_stops_by_name() {
    // From settings alone: unsloth's methods are not allowed in other software, nor others in unsloth.
    for (software, word, known) in [
        ("unsloth", "states", true),
        ("unsloth", "own", false),
        ("unsloth", "dropped", false),
        ("hf_transformers", "own", true),
        ("hf_transformers", "states", false),
    ] {
        let set = [("software", software), ("preference_logits", word)];
        let settings: Vec<_> = COMMON
            .iter()
            .filter(|(name, _)| *name != "software")
            .chain(&set)
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let lacking = resolve(&[], &settings).not_modelled;
        assert_eq!(lacking.iter().all(|item| item.name != "preference_logits"), known, "{software} {word}");
    }
    for (more, name) in [
        ("loss_type = \"ipo\"", "loss_type"),
        ("rpo_alpha = 1.0", "rpo_alpha"),
        ("padding_free = True", "padding_free"),
        ("use_logits_to_keep = True", "use_logits_to_keep"),
        ("f_divergence_type = \"js_divergence\"", "f_divergence_type"),
    ] {
        let read = resolved(&PAIRS.replace("DPOConfig(", &format!("DPOConfig({more}, ")));
        assert!(read.not_modelled.iter().any(|item| item.name == name), "{more}: {:?}", read.not_modelled);
    }
    for (from, to) in [
        ("FastLanguageModel", "FastModel"),
        ("\"down_proj\",]", "\"down_proj\", \"lm_head\"]"),
        ("DPOConfig", "KTOConfig"),
    ] {
        let read = resolved(&PAIRS.replace(from, to));
        assert!(!read.not_modelled.is_empty(), "{to}");
    }
}
