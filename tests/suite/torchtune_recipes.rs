//! What torchtune's recipes hold in addition to its layers: DPO's log-probabilities and its reference's logits, and
//! gradients if an optimizer steps within backward, compared with recorded runs (`tests/record/torchtune_recipes.py`).

use serde_json::Value;
use shardscope::bash::Environment;
use shardscope::estimate::memory;
use shardscope::explain::Breakdown;
use shardscope::launch::{Request, Resolution, read};
use shardscope::operators::{Operator, Symbols};
use shardscope::plan::{Objective, Plan, PreferenceLogits, Reference};
use shardscope::source::Source;
use shardscope::units::Bytes;

use super::drafts::int;
use super::formula::evaluate;
use super::kept_by_llamafactory::plan as drafted;

const RECORDED: &str = include_str!("../data/activations/torchtune_recipes.jsonl");

fn cases(what: &'static str) -> impl Iterator<Item = Value> {
    RECORDED
        .lines()
        .skip(1)
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
        .filter(move |case| case["what"] == what)
}

#[test]
fn recorded_preferences_are_met_to_the_byte() {
    let mut compared = 0;
    for case in cases("preferences") {
        let sizes = ["samples", "tokens", "vocabulary", "hidden"].map(|name| int(&case, name).to_string());
        let plan = drafted(&[
            ("micro_batch_size", &sizes[0]),
            ("seq_length", &sizes[1]),
            ("vocab_size", &sizes[2]),
            ("hidden_size", &sizes[3]),
            ("num_attention_heads", "2"),
            ("training_objective", "dpo"),
            ("software", "torchtune"),
            ("loss_kind", "torch"),
            ("preference_logits", "named"),
        ]);
        let x = Symbols::new(&plan);
        let saved = Operator::OutputLayer.saved(&x);
        for saved in &saved {
            let value = evaluate(saved.formula.expression, &|name| x.value(name));
            assert_eq!(saved.bytes.get() as f64, value, "{}", saved.name);
        }
        let recorded = |place: &str| -> Vec<u64> {
            case["kept"][place]
                .as_array()
                .expect("a list")
                .iter()
                .map(|tensor| int(tensor, "bytes"))
                .collect()
        };
        let ours = |names: &[&str]| -> Vec<u64> {
            let one = |name: &&str| saved.iter().find(|saved| saved.name == *name).expect("kept").bytes.get();
            names.iter().map(one).collect()
        };
        assert_eq!(ours(&["log-softmax", "picked tokens", "completion mask"]), recorded("log-probabilities"));
        assert_eq!(ours(&["margins"])[0], recorded("loss").iter().sum::<u64>());
        compared += 1;
    }
    assert_eq!(compared, 2);
}

fn resolved(text: &str) -> Resolution {
    let set = [("gpus_per_node", "1"), ("num_nodes", "1"), ("accelerator", "A100-SXM-80GB")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let source = Source::from_files([("recipe.yaml", text)]);
    let environment = Environment::default();
    read(&Request { source: &source, environment: &environment, overrides: &set })
}

fn planned(text: &str) -> Plan {
    let read = resolved(text);
    read.plan.unwrap_or_else(|| panic!("{text}: {:?}", read.diagnostics))
}

/// Settings of pytorch/torchtune@bd2a0fc7:recipes/configs/llama3_1/8B_lora_dpo.yaml.
const PAIRS: &str = "
model:
  _component_: torchtune.models.llama3_1.lora_llama3_1_8b
  lora_attn_modules: ['q_proj', 'v_proj', 'output_proj']
  apply_lora_to_mlp: True
  lora_rank: 8
  lora_alpha: 16
  lora_dropout: 0.0
tokenizer: {_component_: torchtune.models.llama3.llama3_tokenizer, max_seq_len: 1024}
optimizer: {_component_: torch.optim.AdamW, fused: True}
loss: {_component_: torchtune.rlhf.loss.DPOLoss, beta: 0.1, label_smoothing: 0}
batch_size: 4
gradient_accumulation_steps: 8
compile: False
dtype: bf16
enable_activation_checkpointing: True
enable_activation_offloading: False
";

#[test]
fn the_references_logits_are_held_until_the_next() {
    let plan = planned(PAIRS);
    let recipe = plan.recipe();
    assert_eq!(recipe.tuning.objective, Objective::Dpo { reference: Reference::Adapters });
    assert_eq!(recipe.transformers.preference_logits, PreferenceLogits::Named);
    // Four pairs, where each sequence has one token less after the loss's shift; the vocabulary in fp32.
    let (logits, behind) = (4 * 8 * 1024 * 128_256, 4 * 8 * 1023 * 128_256);
    let at_loss = |plan: &Plan| -> u64 {
        let points = Operator::OutputLayer.transients(&Symbols::new(plan));
        let loss = points.iter().find(|point| point.name == "loss").expect("a loss");
        loss.tensors.iter().map(|tensor| tensor.bytes.get()).sum()
    };
    // Release 0.6 still holds the last reference's logits in a variable while the next ones are computed; later
    // releases do not.
    assert_eq!(at_loss(&plan), logits + 2 * behind);
    assert_eq!(find(&memory(&plan).ranks[0].breakdown, "the reference's logits"), Some(logits));
    let later = drafted(&[
        ("micro_batch_size", "4"),
        ("seq_length", "1024"),
        ("vocab_size", "128256"),
        ("training_objective", "dpo"),
        ("software", "torchtune"),
        ("loss_kind", "torch"),
        ("preference_logits", "named"),
    ]);
    assert_eq!(at_loss(&later), 2 * behind);
    // The full recipe has a separate model for the reference.
    let full = resolved(&PAIRS.replace("lora_llama3_1_8b", "llama3_1_8b"));
    assert!(full.not_modelled.iter().any(|item| item.is_called("loss._component_")));
}

fn find(tree: &Breakdown<Bytes>, label: &str) -> Option<u64> {
    if tree.label() == label {
        return Some(tree.value().get());
    }
    tree.children().iter().find_map(|child| find(child, label))
}

/// pytorch/torchtune@bd2a0fc7:recipes/configs/llama3_1/8B_full_single_device.yaml.
#[test]
fn an_optimizer_within_backward_leaves_no_gradients() {
    let case = cases("gradients").next().expect("a case");
    assert_eq!((int(&case, "most"), int(&case, "left")), (int(&case, "largest"), 0));
    assert!(int(&case, "all") > 8 * int(&case, "largest"));
    let text = |optimizer: &str, more: &str| {
        format!(
            "model: {{_component_: torchtune.models.llama3_1.llama3_1_8b}}\n\
             tokenizer: {{_component_: torchtune.models.llama3.llama3_tokenizer, max_seq_len: 2048}}\n\
             optimizer: {{_component_: {optimizer}}}\nloss: {{_component_: torchtune.modules.loss.LinearCrossEntropyLoss}}\n\
             batch_size: 2\ncompile: False\ndtype: bf16\nenable_activation_checkpointing: True\n{more}"
        )
    };
    let paged = "bitsandbytes.optim.PagedAdamW8bit";
    let within = planned(&text(paged, "gradient_accumulation_steps: 1\noptimizer_in_bwd: True\n"));
    let behind = planned(&text(paged, "gradient_accumulation_steps: 2\noptimizer_in_bwd: False\n"));
    let of = |plan: &Plan| memory(plan).ranks[0].totals;
    assert_eq!((of(&within).gradients.get(), of(&behind).gradients.get()), (0, 2 * 8_030_261_248));
    assert_eq!(of(&within).optimizer, of(&behind).optimizer);
    let peak = |plan: &Plan| memory(plan).worst.peak_allocated.get();
    assert!(peak(&behind) > peak(&within));
    // bitsandbytes' 32-bit states are in fp32 with bf16 weights (`tests/data/activations/eight_bit_states.jsonl`),
    // PyTorch's in bf16.
    for (optimizer, bytes) in [
        ("torch.optim.AdamW", 4),
        ("bitsandbytes.optim.AdamW", 8),
        // In managed memory, outside of PyTorch's.
        ("bitsandbytes.optim.PagedAdamW", 0),
        ("bitsandbytes.optim.Lion", 4),
    ] {
        let plan = planned(&text(optimizer, "gradient_accumulation_steps: 2\n"));
        assert_eq!(of(&plan).optimizer.get(), bytes * 8_030_261_248, "{optimizer}");
    }
    for (optimizer, more) in [
        ("torch.optim.AdamW", "gradient_accumulation_steps: 1\n"),
        (paged, "gradient_accumulation_steps: 8\n"),
    ] {
        let read = resolved(&text(optimizer, &format!("{more}optimizer_in_bwd: True\n")));
        assert!(read.not_modelled.iter().any(|item| item.is_called("optimizer_in_bwd")), "{more}");
    }
}
