//! One of several tensor-parallel ranks under PyTorch's DTensor compared with recorded runs of Automodel's plans on
//! transformers' models: what it keeps, holds and sends.

use std::collections::BTreeMap;

use serde_json::Value;
use shardscope::estimate::{memory, parameters};
use shardscope::launch::resolve;
use shardscope::operators::{Message, Operator, Pass, Symbols, layer_operators};
use shardscope::plan::{Field, Plan, Recompute};

use super::drafts::{flag, int, kept};
use super::formula::evaluate;

const RECORDED: &str = include_str!("../data/activations/dtensor_layers.jsonl");
const ENDS: [Operator; 3] = [Operator::Embedding, Operator::FinalNorm, Operator::OutputLayer];

fn set(case: &Value) -> Vec<(String, String)> {
    let mut set: Vec<(&str, String)> = [
        ("software", "hf_transformers"),
        ("accelerator", "H100-SXM"),
        ("num_nodes", "1"),
        ("swiglu", "true"),
        ("group_query_attention", "true"),
        ("normalization", "RMSNorm"),
        ("untie_embeddings_and_output_weights", "true"),
        ("bf16", "true"),
        ("autocast", "none"),
        ("data_parallel_engine", "fsdp2"),
        ("zero_stage", "3"),
        ("dtensor_plan", "true"),
        ("loss_kind", "distributed"),
        ("attn_implementation", "sdpa"),
        ("padding_mask", "false"),
        ("use_cache", "false"),
        ("optimizer", "adam"),
        ("train_type", "full"),
    ]
    .map(|(name, value)| (name, value.to_owned()))
    .to_vec();
    for (name, key) in [
        ("gpus_per_node", "tp"),
        ("tensor_model_parallel_size", "tp"),
        ("num_layers", "layers"),
        ("hidden_size", "h"),
        ("ffn_hidden_size", "f"),
        ("num_attention_heads", "a"),
        ("num_query_groups", "k"),
        ("kv_channels", "d"),
        ("seq_length", "s"),
        ("max_position_embeddings", "s"),
        ("vocab_size", "V"),
        ("micro_batch_size", "b"),
        ("global_batch_size", "b"),
    ] {
        set.push((name, int(case, key).to_string()));
    }
    set.push(("sequence_parallel", flag(case, "sp").to_string()));
    set.push(("gradient_checkpointing", case["gc"].is_string().to_string()));
    set.push(("qk_layernorm", (case["arch"] == "qwen3").to_string()));
    set.push(("add_qkv_bias", (case["arch"] == "qwen2").to_string()));
    set.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn plan(case: &Value) -> Plan {
    let resolution = resolve(&[], &set(case));
    resolution.plan.unwrap_or_else(|| panic!("{}: {:?}", case["id"], resolution.diagnostics))
}

fn cases() -> impl Iterator<Item = Value> {
    RECORDED.lines().skip(1).map(|line| serde_json::from_str(line).expect("JSON"))
}

#[test]
fn a_rank_keeps_what_was_recorded() {
    let mut layers = 0;
    for case in cases() {
        let plan = plan(&case);
        let x = Symbols::new(&plan);
        let operators = layer_operators(&x, plan.model().layer_kind(0));
        let again = plan.recipe().recompute != Recompute::None;
        let layer = if again { x.s_local * x.h * x.width } else { kept(&x, &operators) };
        for index in 0..plan.model().num_layers {
            assert_eq!(layer, int(&case["kept"], &format!("layer{index}")), "{} {index}", case["id"]);
            layers += 1;
        }
        assert_eq!(kept(&x, &ENDS), int(&case["kept"], "outside"), "{}", case["id"]);
        for saved in operators.iter().chain(&ENDS).flat_map(|operator| operator.saved(&x)) {
            let value = evaluate(saved.formula.expression, &|name| x.value(name));
            assert_eq!(saved.bytes.get() as f64, value, "{}: {}", case["id"], saved.name);
        }
    }
    assert_eq!(layers, 108);
}

#[test]
fn a_rank_holds_what_was_recorded() {
    for case in cases() {
        let plan = plan(&case);
        let trained = int(&case, "trained_params");
        assert_eq!(parameters(&plan).ranks[0].trained.get(), trained, "{}", case["id"]);
        let x = Symbols::new(&plan);
        // When backward ends, only the word embedding's gradient has the rows of every rank.
        let moments = Operator::Embedding.transients(&x);
        let words = moments.iter().flat_map(|moment| &moment.tensors);
        let words: u64 = words
            .filter(|tensor| tensor.name == "word embedding gradient")
            .map(|tensor| tensor.bytes.get())
            .sum();
        assert_eq!(2 * (trained - x.v * x.h) + words, int(&case, "grad_bytes"), "{}", case["id"]);
        let totals = memory(&plan).ranks[0].totals;
        assert_eq!(totals.parameters.get(), int(&case, "trained_param_bytes"), "{}", case["id"]);
        assert_eq!(totals.optimizer.get(), int(&case, "adamw_moment_bytes"), "{}", case["id"]);
    }
}

/// Messages of all layers and of the modules around them, by pass, kind and bytes; a recomputed layer repeats those of
/// its forward pass that are marked for it.
fn sent(plan: &Plan, asked: Pass) -> BTreeMap<String, u64> {
    let x = Symbols::new(plan);
    let again = plan.recipe().recompute != Recompute::None;
    let mut out = BTreeMap::new();
    let mut add = |message: &Message, times: u64| {
        let repeated = again && message.in_layer && message.pass == Pass::Forward && asked == Pass::Backward;
        assert!(!message.overlapped, "{}", message.name);
        if message.pass == asked || repeated {
            *out.entry(format!("{} {}", message.collective.name(), message.bytes().get())).or_insert(0) +=
                message.calls * times;
        }
    };
    for operator in layer_operators(&x, plan.model().layer_kind(0)) {
        operator.messages(&x).iter().for_each(|message| add(message, plan.model().num_layers));
    }
    for operator in ENDS {
        operator.messages(&x).iter().for_each(|message| add(message, 1));
    }
    out
}

#[test]
fn a_rank_sends_what_was_recorded() {
    for case in cases() {
        let plan = plan(&case);
        for (pass, name) in [(Pass::Forward, "forward"), (Pass::Backward, "backward")] {
            let recorded: BTreeMap<String, u64> =
                serde_json::from_value(case["sent"][name].clone()).expect("counts");
            assert_eq!(sent(&plan, pass), recorded, "{} {name}", case["id"]);
        }
    }
}

/// Between micro-batches the gradients that FSDP2 has not reduced are held, the word embedding's unsharded on each
/// tensor rank (`torch.distributed.fsdp`, where `FSDPParam.unsharded_accumulated_grad` is `Replicate()` over them).
#[test]
fn the_word_embedding_waits_whole() {
    let case = cases().next().expect("a case");
    let with = |more: &[(&str, &str)]| {
        let mut set = set(&case);
        set.retain(|(name, _)| !more.iter().any(|(own, _)| own == name));
        set.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        resolve(&[], &set).plan.expect("a plan")
    };
    let four = [("gpus_per_node", "4"), ("global_batch_size", "4"), ("reduce_dtype", "fp32")];
    let peak = |plan: &Plan| memory(plan).ranks[0].totals.peak_allocated;
    let deferred = with(&[&four[..], &[("defer_reduction", "true")]].concat());
    let tied = with(
        &[&four[..], &[("defer_reduction", "true"), ("untie_embeddings_and_output_weights", "false")]]
            .concat(),
    );
    let found = |plan: &Plan| format!("{:?}", memory(plan)).contains("of other ranks' rows");
    assert!(found(&deferred) && !found(&tied) && !found(&with(&four)));
    assert!(peak(&deferred) > peak(&with(&four)));
}

#[test]
fn what_was_not_recorded_has_no_plan() {
    let case = cases().next().expect("a case");
    for (name, value) in [
        ("dtensor_plan", "false"),
        ("train_type", "lora"),
        ("num_query_groups", "1"),
        ("rotary_interleaved", "true"),
        ("num_experts", "4"),
        ("data_parallel_engine", "ddp"),
    ] {
        let mut set = set(&case);
        set.retain(|(own, _)| own != name);
        set.push((name.to_owned(), value.to_owned()));
        let resolution = resolve(&[], &set);
        let stated =
            resolution.not_modelled.iter().any(|item| item.is_called(Field::TensorModelParallelSize.name()))
                || resolution.plan.is_none();
        assert!(stated || name == "rotary_interleaved", "{name}");
    }
}
