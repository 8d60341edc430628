//! States of bitsandbytes' optimizers in 8 and in 32 bits, compared with recorded runs of transformers' Trainer, equal
//! to the byte; except for vectors, whose states are in fp32 because they are small.

use serde_json::Value;
use shardscope::bash::Environment;
use shardscope::estimate::memory;
use shardscope::launch::{Request, read};
use shardscope::plan::*;
use shardscope::source::Source;

use super::drafts::{Draft, configured};

const RECORDED: &str = include_str!("../data/activations/eight_bit_states.jsonl");
/// The recorded adapters' rank.
const RANK: u64 = 64;
/// Parameters of fewer elements have states in fp32 (`bitsandbytes/optim/optimizer.py`, `min_8bit_size`).
const SMALL: u64 = 4096;
/// Elements per block, each with an fp32 constant.
const BLOCK: u64 = 256;

/// A program that uses the Trainer.
const PROGRAM: &str = r#"
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B", torch_dtype=torch.bfloat16)
arguments = TrainingArguments("out", bf16=True, per_device_train_batch_size=1, optim="adamw_bnb_8bit")
trainer = Trainer(model, arguments, train_dataset=data)
trainer.train()
"#;

/// The optimizer that `optim` names.
fn optimizer(name: &str) -> Optimizer {
    let program = PROGRAM.replace("adamw_bnb_8bit", name);
    let source = Source::from_files([("train.py", program.as_str())]);
    let set = [("accelerator", "A100-SXM-80GB"), ("seq_length", "2048"), ("world_size", "1")];
    let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let read = read(&Request { source: &source, environment: &Environment::default(), overrides: &set });
    read.plan.unwrap_or_else(|| panic!("{:?}", read.diagnostics)).recipe().optimizer
}

fn drafted(case: &Value) -> Draft {
    let mut draft = configured(case);
    let recipe = &mut draft.recipe;
    recipe.software = Software::HfTransformers;
    recipe.dp_sharding = DpSharding::Replicated;
    let whole_embedding = case["alone"] == false && case["optim"].as_str().expect("a name").contains("8bit");
    // Paged states have the same bytes, outside of PyTorch's memory.
    recipe.optimizer =
        Optimizer { whole_embedding, paged: false, ..optimizer(case["optim"].as_str().expect("a name")) };
    if case["adapters"] == true {
        recipe.tuning = Tuning {
            base: BaseTraining::None,
            lora: Some(Lora {
                rank: RANK,
                dora: false,
                dropout: false,
                dtype: NumberFormat::Fp32,
                modules: LoraModules::ALL,
                drops_result: false,
                library: AdapterLibrary::Peft,
                kernels: AdapterKernels::default(),
            }),
            embedding: true,
            head: true,
            copies: true,
            input_gradients: true,
            ..Tuning::default()
        };
    }
    draft
}

#[test]
fn recorded_states_are_met_to_the_byte() {
    let mut compared = 0;
    for case in RECORDED.lines().skip(1) {
        let case: Value = serde_json::from_str(case).expect("JSON");
        let held: Vec<[u64; 2]> = case["held"]
            .as_object()
            .expect("parameters")
            .values()
            .map(|pair| [0, 1].map(|at| pair[at].as_u64().expect("a number")))
            .collect();
        let matrices: u64 = held.iter().filter(|[count, _]| *count >= SMALL).map(|[_, bytes]| bytes).sum();
        let vectors: u64 = held.iter().filter(|[count, _]| *count < SMALL).map(|[count, _]| count).sum();
        let name = case["optim"].as_str().expect("a name");
        let moments = match name {
            "lion_8bit" | "lion_32bit" | "rmsprop_bnb" | "rmsprop_bnb_8bit" => 1,
            "ademamix" | "ademamix_8bit" | "paged_ademamix_8bit" => 3,
            _ => 2,
        };
        let small = if name.contains("8bit") { vectors + 4 * vectors.div_ceil(BLOCK) } else { 4 * vectors };
        let expected = matrices + moments * small;
        let ours = memory(&drafted(&case).plan()).ranks[0].totals.optimizer.get();
        assert_eq!(ours, expected, "{} {}", case["optim"], case["tied"]);
        let mut paged = drafted(&case);
        paged.recipe.optimizer.paged = optimizer(name).paged;
        let on_device = memory(&paged.plan()).ranks[0].totals.optimizer.get();
        assert_eq!(
            on_device,
            if name.starts_with("paged") && case["adapters"] != true { 0 } else { expected },
            "{name}"
        );
        compared += 1;
    }
    assert_eq!(compared, 15);
}

/// A recipe of Automodel with flashoptim's AdamW.
const RECIPE: &str = "step_scheduler: {global_batch_size: 1, local_batch_size: 1}\ndataset: {seq_len: 2048}\n\
    model: {pretrained_model_name_or_path: Qwen/Qwen2.5-0.5B, force_hf: true}\ndistributed: {strategy: fsdp2}\n\
    optimizer: {_target_: flashoptim.FlashAdamW, lr: 1.0e-5";

#[test]
fn flashoptims_states_are_met_to_the_byte() {
    let recorded = include_str!("../data/activations/flash_states.jsonl");
    let mut compared = 0;
    for case in recorded.lines().skip(1) {
        let case: Value = serde_json::from_str(case).expect("JSON");
        let held = case["held"].as_object().expect("parameters").values();
        let expected: u64 = held.map(|pair| pair[1].as_u64().expect("a number")).sum();
        let bits =
            case["master"].as_u64().map_or(String::new(), |bits| format!(", master_weight_bits: {bits}"));
        let recipe = format!("{RECIPE}{bits}}}\n");
        let source = Source::from_files([("a.yaml", recipe.as_str())]);
        let set = [("accelerator", "H100-SXM"), ("world_size", "1")];
        let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let read = read(&Request { source: &source, environment: &Environment::default(), overrides: &set });
        let plan = read.plan.unwrap_or_else(|| panic!("{:?}", read.diagnostics));
        let mut draft = configured(&case);
        draft.recipe.software = Software::HfTransformers;
        draft.recipe.dp_sharding = DpSharding::Replicated;
        draft.recipe.params_dtype = NumberFormat::Bf16;
        draft.recipe.optimizer = plan.recipe().optimizer;
        let ours = memory(&draft.plan()).ranks[0].totals.optimizer.get();
        assert_eq!(ours, expected, "{bits}");
        compared += 1;
    }
    assert_eq!(compared, 3);
}

/// A program of the Trainer with another optimizer.
#[test]
fn the_override_is_read_where_the_trainer_makes_the_optimizer() {
    for name in ["adamw_bnb_8bit", "paged_adamw_8bit", "rmsprop_bnb_8bit", "ademamix_8bit"] {
        assert!(optimizer(name).whole_embedding, "{name}");
    }
    // torchao's optimizer, and states that are in full precision anyway.
    for name in ["adamw_torch_8bit", "adamw_torch", "lion_32bit", "ademamix"] {
        assert!(!optimizer(name).whole_embedding, "{name}");
    }
}
