//! What other optimizers of the Trainer hold and what their step allocates, compared with recorded runs
//! (`tests/record/trainer_optimizers.py`).

use serde_json::Value;
use shardscope::bash::Environment;
use shardscope::estimate::memory;
use shardscope::explain::Breakdown;
use shardscope::launch::{Request, read, resolve};
use shardscope::plan::*;
use shardscope::source::Source;
use shardscope::units::Bytes;

use super::drafts::{Draft, configured, int};

const RECORDED: &str = include_str!("../data/activations/trainer_optimizers.jsonl");
/// Elements of the recorded model's vectors, whose group is stepped separately.
const VECTORS: u64 = 5 * 128;

/// The recipe of a Trainer program with the optimizer `name`.
fn read_as(name: &str) -> Recipe {
    let program = format!(
        "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n\
         model = AutoModelForCausalLM.from_pretrained(\"Qwen/Qwen2.5-0.5B\", torch_dtype=torch.bfloat16)\n\
         arguments = TrainingArguments(\"out\", bf16=True, per_device_train_batch_size=1, optim=\"{name}\")\n\
         trainer = Trainer(model, arguments, train_dataset=data)\ntrainer.train()\n"
    );
    let source = Source::from_files([("train.py", program.as_str())]);
    let set = [("accelerator", "A100-SXM-80GB"), ("seq_length", "2048"), ("world_size", "1")];
    let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let read = read(&Request { source: &source, environment: &Environment::default(), overrides: &set });
    read.plan.unwrap_or_else(|| panic!("{name}: {:?}", read.diagnostics)).recipe().clone()
}

fn drafted(case: &Value) -> Draft {
    let mut draft = configured(case);
    draft.model.seq_length = 16;
    let said = read_as(case["optim"].as_str().expect("a name"));
    let recipe = &mut draft.recipe;
    recipe.software = Software::HfTransformers;
    recipe.dp_sharding = DpSharding::Replicated;
    recipe.params_dtype = if case["half"] == true { NumberFormat::Bf16 } else { NumberFormat::Fp32 };
    recipe.optimizer = said.optimizer;
    recipe.transformers.foreach_step = said.transformers.foreach_step;
    draft
}

/// Bytes below `label`, at any depth.
fn below(node: &Breakdown<Bytes>, label: &str) -> u64 {
    if node.label() == label {
        return node.value().get();
    }
    node.children().iter().map(|child| below(child, label)).sum()
}

#[test]
fn states_and_steps_are_met_to_the_byte() {
    let mut compared = 0;
    for case in RECORDED.lines().skip(1) {
        let case: Value = serde_json::from_str(case).expect("JSON");
        let name = case["optim"].as_str().expect("a name");
        let width = if case["half"] == true { 2 } else { 4 };
        let held = case["held"].as_object().expect("parameters").values();
        let held: u64 = held.map(|of| of[1].as_u64().expect("a number")).sum();
        let memory = memory(&drafted(&case).plan());
        let rank = &memory.ranks[0];
        assert_eq!(rank.totals.optimizer.get(), held, "{name} {width}");
        let roots = below(&rank.breakdown, "roots of second moments");
        let made = roots + below(&rank.breakdown, "step of the largest parameter");
        // If a group's tensors are freed before the next group's are allocated, our figure includes the vectors in
        // addition to the matrices.
        let vectors = match name {
            "rmsprop" => VECTORS * width,
            "adagrad" => 2 * VECTORS * width,
            _ => 0,
        };
        assert_eq!(made, int(&case, "step") + vectors, "{name} {width}");
        compared += 1;
    }
    assert_eq!(compared, 14);
}

/// For vectors Adafactor holds every square: this includes DeepSpeed's partitions and FSDP1's shards.
#[test]
fn adafactor_over_flat_weights_holds_every_square() {
    let case = RECORDED.lines().skip(1).map(|case| serde_json::from_str::<Value>(case).expect("JSON"));
    for case in case.filter(|case| case["optim"] == "adafactor") {
        for engine in [DataEngine::Fsdp1, DataEngine::DeepSpeed] {
            let mut draft = drafted(&case);
            draft.recipe.transformers.engine = engine;
            draft.recipe.dp_sharding = DpSharding::Parameters;
            let memory = memory(&draft.plan());
            let rank = &memory.ranks[0];
            assert_eq!(below(&rank.breakdown, "sum of squares"), int(&case, "flat"), "{engine:?}");
            assert_eq!(below(&rank.breakdown, "step of the largest parameter"), 0);
            let deepspeed = engine == DataEngine::DeepSpeed;
            let squares = below(&rank.breakdown, "squares of gradients");
            assert_eq!(squares, if deepspeed { 2 * int(&case, "flat") } else { 0 });
        }
    }
}

/// EasyR1's `adamw_bf16`: three states per weight in 16 bits, and what its step allocates for two consecutive flat
/// shards, as in a recorded step of its class (`tests/record/any_precision_step.py`).
#[test]
fn a_compensated_adam_steps_one_flat_shard_after_the_other() {
    let recorded = include_str!("../data/torch/any_precision_step.tsv");
    let lines = recorded.lines().filter(|line| !line.starts_with('#'));
    for line in lines {
        let cells: Vec<u64> = line.split('\t').map(|cell| cell.parse().expect("a number")).collect();
        let [first, each, others, states, most] = cells[..] else { panic!("{line}") };
        assert_eq!(states, 6 * (first + each * others), "{line}");
        assert_eq!(most, 4 * (each + each.max(first)), "{line}");
    }
    let held = |layers: &str, vocabulary: &str| {
        let settings = [
            ("software", "hf_transformers"),
            ("accelerator", "H100-SXM"),
            ("num_nodes", "1"),
            ("gpus_per_node", "1"),
            ("num_layers", layers),
            ("hidden_size", "64"),
            ("ffn_hidden_size", "192"),
            ("num_attention_heads", "4"),
            ("swiglu", "true"),
            ("normalization", "RMSNorm"),
            ("add_bias_linear", "false"),
            ("untie_embeddings_and_output_weights", "true"),
            ("vocab_size", vocabulary),
            ("make_vocab_size_divisible_by", "1"),
            ("micro_batch_size", "1"),
            ("seq_length", "16"),
            ("params_dtype", "bf16"),
            ("autocast", "none"),
            ("data_parallel_engine", "fsdp1"),
            ("zero_stage", "3"),
            ("optimizer", "adamw_kahan"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let resolution = resolve(&[], &settings);
        assert!(resolution.not_modelled.is_empty(), "{:?}", resolution.not_modelled);
        let memory = memory(&resolution.plan.unwrap_or_else(|| panic!("{:?}", resolution.diagnostics)));
        let rank = &memory.ranks[0];
        (rank.totals.optimizer.get(), below(&rank.breakdown, "step of two shards"))
    };
    // Four square projections in attention, three in the MLP and two norms; two vocabularies and the last norm.
    let layer = 4 * 64 * 64 + 3 * 64 * 192 + 2 * 64;
    let ends = |vocabulary: u64| 2 * 64 * vocabulary + 64;
    for vocabulary in [256, 4096] {
        let (states, step) = held("3", &vocabulary.to_string());
        assert_eq!(states, 6 * (3 * layer + ends(vocabulary)));
        assert_eq!(step, 4 * (layer + layer.max(ends(vocabulary))));
    }
    assert_eq!(held("1", "256").1, 4 * (layer + ends(256)));
}
