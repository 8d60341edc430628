//! Optimizers that project gradients to a lower rank (GaLore, APOLLO): their states, the temporaries of a step and of
//! an update within backward, and peaks, compared with recorded runs.

use serde_json::Value;
use shardscope::bash::Environment;
use shardscope::estimate::memory;
use shardscope::launch::{Request, Resolution, read};
use shardscope::operators::{Projected, Symbols, step_bytes};
use shardscope::plan::*;
use shardscope::source::Source;
use shardscope::units::Quantity;

use super::drafts::{Draft, configured, int};

const RECORDED: &str = include_str!("../data/activations/low_rank_states.jsonl");
const PEAKS: &str = include_str!("../data/activations/low_rank_peaks.tsv");
/// bitsandbytes keeps states with fewer elements in fp32.
const SMALL: u64 = 4096;
/// Bytes of cuBLAS' two workspaces on Hopper, which do not exist in a CPU recording.
const WORKSPACES: u64 = 2 << 25;

fn modules(case: &Value) -> LoraModules {
    use LinearModule::{Down, Gate, Key, Output, OutputLayer, Query, Up, Value as Values};
    let all = |modules: &[LinearModule]| {
        modules.iter().fold(LoraModules::default(), |all, module| all.with(*module))
    };
    let layer = all(&[Query, Key, Values, Output, Gate, Up, Down]);
    match &case["targets"] {
        Value::String(name) if name == "all-linear" => layer.with(OutputLayer),
        targets if targets[0] == "q_proj" => all(&[Query, Values]),
        _ => layer,
    }
}

fn low_rank(case: &Value) -> LowRank {
    let scales = case["optim"].as_str().expect("a name").starts_with("apollo");
    let random = scales && case["proj"] != "svd";
    LowRank {
        rank: int(case, "rank"),
        modules: modules(case),
        side: ProjectedSide::from_word(case["proj_type"].as_str().unwrap_or("std")).expect("a side"),
        projection: if random { Projection::Random } else { Projection::Singular },
        update: if scales { LowRankUpdate::ScalesGradient } else { LowRankUpdate::ProjectedBack },
        vectors_first: case["llamafactory"] == true,
    }
}

fn drafted(case: &Value) -> Draft {
    let mut draft = configured(case);
    let recipe = &mut draft.recipe;
    recipe.software = Software::HfTransformers;
    recipe.dp_sharding = DpSharding::Replicated;
    recipe.params_dtype = if case["half"] == true { NumberFormat::Bf16 } else { NumberFormat::Fp32 };
    recipe.optimizer.low_rank = Some(low_rank(case));
    if case["optim"].as_str().expect("a name").contains("8bit") {
        recipe.optimizer.states = StateFormat::EightBit;
    }
    recipe.transformers.steps_in_backward = case.get("hooks").is_some();
    draft
}

fn cases() -> impl Iterator<Item = Value> {
    RECORDED.lines().skip(1).map(|case| serde_json::from_str(case).expect("JSON"))
}

#[test]
fn states_and_projections_are_met_to_the_byte() {
    let mut compared = 0;
    for case in cases() {
        let held = case["held"].as_object().expect("parameters").values();
        let held: Vec<[u64; 2]> =
            held.map(|of| [0, 1].map(|at| of[at].as_u64().expect("a number"))).collect();
        let eight = case["optim"].as_str().expect("a name").contains("8bit");
        // Vectors of 8-bit optimizers, which are in fp32 because they are small, are counted like others.
        let matrices = held.iter().filter(|[count, _]| !eight || *count >= SMALL);
        let vectors: u64 = held.iter().filter(|[count, _]| *count < SMALL).map(|[count, _]| count).sum();
        let small = if eight { 2 * (vectors + 4 * vectors.div_ceil(256)) } else { 0 };
        let expected: u64 = matrices.map(|[_, bytes]| bytes).sum::<u64>() + small;
        let ours = memory(&drafted(&case).plan()).ranks[0].totals.optimizer.get();
        assert_eq!(ours, expected, "{} {}", case["optim"], case["half"]);
        compared += 1;
    }
    assert_eq!(compared, 34);
}

#[test]
fn a_step_makes_what_was_recorded() {
    let mut compared = 0;
    for case in cases().filter(|case| case.get("step").is_some()) {
        let plan = drafted(&case).plan();
        let ours = step_bytes(&Symbols::new(&plan), low_rank(&case));
        assert_eq!(ours, int(&case, "step"), "{} {} {}", case["optim"], case["half"], case["proj_type"]);
        compared += 1;
    }
    assert_eq!(compared, 28);
}

#[test]
fn an_update_within_backward_makes_what_was_recorded() {
    let mut compared = 0;
    for case in cases().filter(|case| case.get("hooks").is_some()) {
        let [wide, ffn, width] = [
            int(&case, "hidden_size"),
            int(&case, "intermediate_size"),
            if case["half"] == true { 2 } else { 4 },
        ];
        let eight = case["optim"].as_str().expect("a name").contains("8bit");
        for (name, bytes) in case["hooks"].as_object().expect("parameters") {
            let shape = match name.rsplit('.').nth(1).expect("a module") {
                "q_proj" | "o_proj" => [wide, wide],
                "k_proj" | "v_proj" => [wide / 2, wide],
                "gate_proj" | "up_proj" => [ffn, wide],
                "down_proj" => [wide, ffn],
                _ => continue,
            };
            let ours = Projected::new(low_rank(&case), shape, width).update_bytes(eight);
            assert_eq!(Some(ours), bytes.as_u64(), "{} {} {name}", case["optim"], case["half"]);
            compared += 1;
        }
    }
    assert_eq!(compared, 6 * 14);
}

/// A LLaMA-Factory run with a model of these sizes and gradients projected to `rank`.
fn launched(accelerator: &str, model: &str, keys: &str, rank: u64) -> Resolution {
    let file = format!(
        "model_name_or_path: ./\nstage: sft\nfinetuning_type: full\nuse_galore: true\ngalore_rank: {rank}\ndataset: identity\n\
         gradient_accumulation_steps: 1\npure_bf16: true\n{keys}"
    );
    let source = Source::from_files([("train.yaml", file.as_str()), ("config.json", model)]);
    let set = [("accelerator", accelerator), ("world_size", "1")];
    let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
    read(&Request { source: &source, environment: &Environment::default(), overrides: &set })
}

/// Rotary frequencies, the loss and other single numbers.
const REST: u64 = 40_000;

#[test]
fn peaks_are_met_but_for_single_numbers() {
    let mut compared = 0;
    for line in PEAKS.lines().skip(1) {
        let figures: Vec<u64> = line.split('\t').map(|figure| figure.parse().expect("a figure")).collect();
        let [vocabulary, wide, layers, sequences, tokens, again, layerwise, tied, peak] = figures[..] else {
            panic!("{line}")
        };
        let model = format!(
            r#"{{"model_type": "llama", "hidden_size": {wide}, "intermediate_size": {}, "num_hidden_layers": {layers},
            "num_attention_heads": {}, "num_key_value_heads": {}, "vocab_size": {vocabulary}, "tie_word_embeddings": {},
            "max_position_embeddings": 8192}}"#,
            wide * 7 / 2,
            wide / 128,
            wide / 512,
            tied == 1
        );
        let keys = format!(
            "galore_layerwise: {}\ndisable_gradient_checkpointing: {}\ncutoff_len: {tokens}\nper_device_train_batch_size: {sequences}\n",
            layerwise == 1,
            again == 0
        );
        let launch = launched("H100-SXM", &model, &keys, 128);
        let mut plan = launch.plan.unwrap_or_else(|| panic!("{:?}", launch.diagnostics));
        // The recorded step processes the others in model order.
        let mut recipe = plan.recipe().clone();
        recipe.optimizer.low_rank =
            recipe.optimizer.low_rank.map(|one| LowRank { vectors_first: false, ..one });
        plan = Plan::new(plan.model().clone(), plan.cluster().clone(), plan.layout().clone(), recipe)
            .expect("a plan");
        let ours = memory(&plan).ranks[0].totals.peak_allocated.get() - WORKSPACES;
        assert!(ours.abs_diff(peak) < REST, "{line}: {ours}");
        compared += 1;
    }
    assert_eq!(compared, 8);
}

/// GaLore's own runs of a 7B model on one RTX 4090 (`jiaweizzhao/GaLore@2cc66f88cce1`, `scripts/single_gpu/llama_7b.sh`
/// and `llama_7b_checkpointing.sh`): sequences, whether layers are recomputed, and GiB reported by the device.
const PUBLISHED: [(u64, bool, f64); 2] = [(1, false, 22.72), (16, true, 22.8)];

#[test]
fn galores_published_runs_are_met() {
    let model = r#"{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
        "num_attention_heads": 32, "vocab_size": 32000, "tie_word_embeddings": false, "max_position_embeddings": 2048}"#;
    for (sequences, again, measured) in PUBLISHED {
        let keys = format!(
            "optim: adamw_8bit\ngalore_layerwise: true\ncutoff_len: 256\nper_device_train_batch_size: {sequences}\n\
             disable_gradient_checkpointing: {}\n",
            !again
        );
        let launch = launched("RTX-4090", model, &keys, 1024);
        let plan = launch.plan.unwrap_or_else(|| panic!("{:?}", launch.diagnostics));
        let ours = memory(&plan).ranks[0].totals.peak_reserved.number() / f64::from(1 << 30);
        assert!((ours / measured - 1.0).abs() < 0.025, "{ours} {measured}");
    }
}

/// A Trainer program with this optimizer.
fn program(arguments: &str) -> Resolution {
    let program = format!(
        "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n\
         model = AutoModelForCausalLM.from_pretrained(\"Qwen/Qwen2.5-0.5B\", torch_dtype=torch.bfloat16)\n\
         arguments = TrainingArguments(\"out\", bf16=True, per_device_train_batch_size=1, {arguments})\n\
         trainer = Trainer(model, arguments, train_dataset=data)\ntrainer.train()\n"
    );
    let source = Source::from_files([("train.py", program.as_str())]);
    let set = [("accelerator", "A100-SXM-80GB"), ("seq_length", "2048"), ("world_size", "1")];
    let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
    read(&Request { source: &source, environment: &Environment::default(), overrides: &set })
}

#[test]
fn the_trainers_arguments_are_read() {
    let of = |arguments: &str| {
        let launch = program(arguments);
        let plan = launch.plan.unwrap_or_else(|| panic!("{arguments}: {:?}", launch.diagnostics));
        let recipe = plan.recipe();
        (
            recipe.optimizer.low_rank.expect("a projection"),
            recipe.optimizer.states,
            recipe.transformers.steps_in_backward,
        )
    };
    let (one, states, within) = of(
        r#"optim="galore_adamw_8bit", optim_target_modules=["attn", "mlp"], optim_args="rank=64, update_proj_gap=100, scale=0.10""#,
    );
    assert_eq!((one.rank, states, within), (64, StateFormat::EightBit, false));
    assert!(one.modules.has(LinearModule::Down) && !one.modules.has(LinearModule::OutputLayer));
    assert_eq!((one.projection, one.update), (Projection::Singular, LowRankUpdate::ProjectedBack));
    let (one, states, within) = of(r#"optim="apollo_adamw_layerwise", optim_target_modules="all-linear""#);
    assert_eq!((one.rank, states, within), (128, StateFormat::Plain, true));
    assert!(one.modules.has(LinearModule::OutputLayer));
    assert_eq!((one.projection, one.update), (Projection::Random, LowRankUpdate::ScalesGradient));
    let (one, ..) = of(
        r#"optim="apollo_adamw", optim_target_modules=["q_proj"], optim_args="proj=svd,rank=4,proj_type=left""#,
    );
    assert_eq!((one.projection, one.side, one.rank), (Projection::Singular, ProjectedSide::Left, 4));
    for stopped in [
        r#"optim="galore_adamw""#,
        r#"optim="galore_adafactor", optim_target_modules=["attn"]"#,
        r#"optim="galore_adamw", optim_target_modules=["layers.[0-4].mlp"]"#,
        r#"optim="galore_adamw_layerwise", optim_target_modules=["mlp"], gradient_accumulation_steps=4"#,
        r#"optim="adamw_torch", optim_args="foo=1""#,
    ] {
        assert!(program(stopped).plan.is_none(), "{stopped}");
    }
}
