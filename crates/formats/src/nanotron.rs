//! nanotron YAML. Keys and defaults: `src/nanotron/config/*.py`.

use super::leaves::{Leaves, Scalars};
use super::reader::{Claim, Reader};
use super::signs;
use crate::{Effect, Found, NotModelled, Origin, Reading};
use shardscope_config_tree::{Node, Tree};
use shardscope_plan::{Field, Software};

const WHOSE: &str = "default of nanotron";

const PLAIN: &[(&str, Field)] = &[
    ("model.model_config.num_hidden_layers", Field::NumLayers),
    ("model.model_config.hidden_size", Field::HiddenSize),
    ("model.model_config.intermediate_size", Field::FfnHiddenSize),
    ("model.model_config.num_attention_heads", Field::NumAttentionHeads),
    ("model.model_config.max_position_embeddings", Field::MaxPositionEmbeddings),
    ("model.model_config.vocab_size", Field::VocabSize),
    ("model.model_config.rope_theta", Field::RotaryBase),
    ("model.make_vocab_size_divisible_by", Field::MakeVocabSizeDivisibleBy),
    ("tokens.sequence_length", Field::SeqLength),
    ("tokens.micro_batch_size", Field::MicroBatchSize),
    ("tokens.batch_accumulation_per_replica", Field::NumMicroBatches),
    ("tokens.train_steps", Field::TrainIters),
    ("parallelism.dp", Field::DataParallelSize),
    ("parallelism.tp", Field::TensorModelParallelSize),
    ("parallelism.pp", Field::PipelineModelParallelSize),
    ("parallelism.context_parallel_size", Field::ContextParallelSize),
    ("parallelism.expert_parallel_size", Field::ExpertModelParallelSize),
    ("optimizer.zero_stage", Field::ZeroStage),
    ("optimizer.accumulate_grad_in_fp32", Field::AccumulateAllreduceGradsInFp32),
    ("tokenizer.tokenizer_name_or_path", Field::TokenizerModel),
];

/// Settings that nanotron's models share.
const FIXED: &[(Field, &str)] = &[
    (Field::Swiglu, "true"),
    (Field::Normalization, "RMSNorm"),
    (Field::PositionEmbeddingType, "rope"),
    (Field::AddBiasLinear, "false"),
    (Field::HiddenDropout, "0"),
    (Field::AttentionDropout, "0"),
    (Field::AttentionKernel, "flash"),
];
const DEFAULTS: &[(Field, &str)] = &[
    (Field::MakeVocabSizeDivisibleBy, "1"),
    (Field::UntieEmbeddingsAndOutputWeights, "true"),
    (Field::NumMicroBatches, "1"),
    (Field::PipelineSchedule, "gpipe"),
];
/// Weights are in bf16 by default (`src/nanotron/config/config.py:ModelArgs.__post_init__`).
const PRECISION: &[(Field, &str)] = &[(Field::Bf16, "true")];
const STARCODER: &[(Field, &str)] = &[
    (Field::Swiglu, "false"),
    (Field::Normalization, "LayerNorm"),
    (Field::AddBiasLinear, "true"),
    (Field::UntieEmbeddingsAndOutputWeights, "false"),
];

/// nanotron's YAML.
#[derive(Debug)]
pub(super) struct Nanotron;

impl Reader for Nanotron {
    fn name(&self) -> &'static str {
        "a nanotron configuration"
    }

    fn about(&self) -> &'static str {
        "model, layout, tokens and optimizer"
    }

    fn recognise(&self, tree: &Tree) -> Option<Claim> {
        // In other formats `model_config` names a file.
        signs::holds(tree, "model.model_config")
            .or_else(|| signs::any(tree, &["parallelism.tp_mode"]))
            .or_else(|| signs::all(tree, &["tokens", "parallelism"]))
    }

    fn read(&self, root: &Node) -> Reading {
        read(root)
    }

    fn keys(&self) -> Vec<(&'static str, Field)> {
        PLAIN.to_vec()
    }
}

fn read(root: &Node) -> Reading {
    let scalars = Scalars::from_node(root);
    let mut leaves = Leaves::over(&scalars);
    leaves.take_all(PLAIN);
    let starcoder = leaves.flag("model.model_config.is_starcoder2_config") == Some(true);
    if starcoder {
        leaves.state_all(STARCODER, Origin::Derived, "nanotron's Starcoder 2");
    }
    other_models(&mut leaves, starcoder);
    attention(&mut leaves);
    experts(&mut leaves);
    layout(&mut leaves);
    match leaves.get("model.dtype") {
        Some(_) => leaves.precision("model.dtype"),
        None => leaves.state_all(PRECISION, Origin::Default, WHOSE),
    }
    // `trainer.py:_init_model`: the length trained on takes the place of a shorter limit.
    let [limit, length] =
        [Field::MaxPositionEmbeddings, Field::SeqLength].map(|field| leaves.reading.count(field));
    if let Some(length) = length.filter(|length| limit.is_some_and(|limit| limit < *length)) {
        let why = "nanotron goes by tokens.sequence_length where max_position_embeddings is shorter";
        leaves
            .reading
            .take(Found::new(Field::MaxPositionEmbeddings, length.to_string(), Origin::Derived).note(why));
    }
    optimizer(&mut leaves);
    doremi(&mut leaves);
    stages(&mut leaves);
    leaves.state_all(FIXED, Origin::Derived, "the code of nanotron's models");
    leaves.state_all(DEFAULTS, Origin::Default, WHOSE);
    leaves.pass_words("nanotron");
    leaves.reading.software = Some((Software::Nanotron, "a nanotron configuration".to_owned()));
    leaves.finish("a nanotron configuration")
}

/// Models of nanotron's outside the Llama family, recognized by keys that Llama's do not have, and
/// features of Starcoder 2 that are not modelled (`src/nanotron/config/models_config.py`,
/// `models/starcoder2.py`, `models/gpt3.py`). Before nanotron supported several kinds of models, the keys
/// were in `model` itself, which was Starcoder's.
fn other_models(leaves: &mut Leaves<'_>, starcoder: bool) {
    const OTHER: &[&str] =
        &["activation_function", "scale_attn_weights", "layer_norm_epsilon", "sinusoidal_position_embedding"];
    const EARLY: &[&str] =
        &["model.hidden_size", "model.num_layers", "model.n_layer", "model.activation_function"];
    let of = |key: &str| format!("model.model_config.{key}");
    let stop = |leaves: &mut Leaves<'_>, path: &str, effect, what: &str| {
        if let Some(leaf) = leaves.get(path) {
            let item = NotModelled::new(&leaf.path, &leaf.value, effect, what).at_some(leaf.span);
            leaves.reading.not_modelled.push(item);
        }
    };
    if let Some(path) = EARLY.iter().find(|path| leaves.has(path)) {
        return stop(leaves, path, Effect::Model, "an early nanotron model, which is Starcoder's");
    }
    if !starcoder {
        let named =
            ["is_llama_config", "is_qwen2_config"].iter().any(|key| leaves.flag(&of(key)) == Some(true));
        if let Some(key) = OTHER.iter().find(|key| !named && leaves.has(&of(key))) {
            stop(
                leaves,
                &of(key),
                Effect::Model,
                "a nanotron model other than Llama, Qwen 2 and Starcoder 2",
            );
        }
        return;
    }
    let length = leaves.whole("tokens.sequence_length").unwrap_or(u64::MAX);
    let window = of("sliding_window_size");
    if leaves.whole(&window).is_some_and(|size| size < length) {
        stop(leaves, &window, Effect::Time, "sliding-window attention in every layer");
    }
    for key in ["resid_pdrop", "attn_pdrop", "embd_pdrop"] {
        let path = of(key);
        if leaves.get(&path).is_some_and(|leaf| leaf.value.parse::<f64>().is_ok_and(|rate| rate > 0.0)) {
            stop(leaves, &path, Effect::Memory, "dropout in nanotron's Starcoder 2");
        }
    }
    for key in [
        "grouped_query",
        "layer_norm_epsilon",
        "scale_attn_weights",
        "activation_function",
        "sliding_window_size",
    ] {
        leaves.pass(&of(key));
    }
}

/// All data stages have the run's length (`src/nanotron/trainer.py:train_step` asserts it, `run_train.py` rejects other
/// stages): for any other length nothing is known.
fn stages(leaves: &mut Leaves<'_>) {
    let length = leaves.whole("tokens.sequence_length");
    let other = leaves.all().iter().find(|leaf| {
        let of_stage = leaf.path.starts_with("data_stages.") && leaf.path.ends_with(".sequence_length");
        of_stage && leaf.whole().is_some() && leaf.whole() != length
    });
    if let Some(leaf) = other {
        let what = "a stage of another length than tokens.sequence_length, which nanotron refuses";
        let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Memory, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
}

/// DoReMi (`examples/doremi/doremi/trainer.py`): with a reference checkpoint a proxy trains alongside that
/// frozen model, and each sample's excess loss over it weights its domain. Without one it is a normal training
/// that only samples data differently.
fn doremi(leaves: &mut Leaves<'_>) {
    if let Some(leaf) = leaves.get("doremi.ref_model_resume_checkpoint_path") {
        let what = "a frozen reference model (DoReMi)";
        let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Memory, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
    leaves.pass_below(&["doremi."]);
}

/// Only this name distinguishes `AdamWOptimizerArgs` from `SGDOptimizerArgs`.
fn optimizer(leaves: &mut Leaves<'_>) {
    let stated = leaves.get("optimizer.optimizer_factory.name");
    if let Some(leaf) = stated.filter(|leaf| leaf.value != "adamW") {
        let what = "an optimizer other than AdamW";
        let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Memory, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
}

fn attention(leaves: &mut Leaves<'_>) {
    let heads = leaves.whole("model.model_config.num_attention_heads");
    let groups = ["model.model_config.num_key_value_heads", "model.model_config.num_kv_heads"];
    if let Some(leaf) = leaves.first(&groups).filter(|leaf| leaf.whole() != heads) {
        leaves.query_groups(&leaf.value, leaf);
    }
    leaves.follow("model.model_config.attention_bias", Field::AddQkvBias, true);
    let tied = "model.model_config.tie_word_embeddings";
    leaves.follow(tied, Field::UntieEmbeddingsAndOutputWeights, false);
    for path in &["hidden_act", "_attn_implementation", "is_llama_config", "is_qwen2_config", "rms_norm_eps"]
    {
        leaves.pass(&format!("model.model_config.{path}"));
    }
}

fn experts(leaves: &mut Leaves<'_>) {
    // `examples/moe`: megablocks' experts instead of nanotron's own.
    if let Some(leaf) = leaves.get("model.model_config.moe_num_experts") {
        let what = "the experts of nanotron's example (examples/moe), which are megablocks'";
        let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Model, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
        leaves.pass_below(&[
            "model.model_config.is_llamoe_config",
            "model.model_config.moe_capacity_factor",
            "model.model_config.num_experts_per_tok",
        ]);
        // Without its experts it has no expert-parallel ranks either.
        leaves.reading.keep(&|found| found.field != Field::ExpertModelParallelSize);
    }
    let path = |key: &str| format!("model.model_config.moe_config.{key}");
    if leaves.get(&path("num_experts")).is_none() {
        return;
    }
    let rules = &[
        ("num_experts", Field::NumExperts),
        ("top_k", Field::MoeRouterTopk),
        ("moe_intermediate_size", Field::MoeFfnHiddenSize),
        ("token_dispatcher_type", Field::MoeTokenDispatcherType),
    ];
    for &(key, field) in rules {
        leaves.take(&[&path(key)], field);
    }
    if leaves.flag(&path("enable_shared_expert")) == Some(true) {
        leaves.take(&[&path("shared_expert_intermediate_size")], Field::MoeSharedExpertIntermediateSize);
        leaves.state(Field::MoeSharedExpertGate, "true", Origin::Derived, "the code of nanotron's experts");
    }
    leaves.pass(&path("shared_expert_intermediate_size"));
    leaves.state_all(
        &[
            (Field::MoeRouterTopk, "2"),
            (Field::MoeFfnHiddenSize, "1408"),
            (Field::MoeTokenDispatcherType, "alltoall"),
            (Field::MoeGroupedGemm, "true"),
        ],
        Origin::Default,
        WHOSE,
    );
}

fn layout(leaves: &mut Leaves<'_>) {
    if let Some(leaf) = leaves.get("parallelism.tp_mode") {
        leaves.switch(Field::SequenceParallel, leaf.value.eq_ignore_ascii_case("reduce_scatter"), leaf);
    }
    if let Some(leaf) = leaves.get("parallelism.pp_engine") {
        leaves.say(Field::PipelineSchedule, if leaf.value == "1f1b" { "1f1b" } else { "gpipe" }, leaf);
    }
    if let Some(leaf) = leaves.yes("parallelism.recompute_layer") {
        leaves.recompute_all(leaf);
        leaves.say(Field::RecomputeNumLayers, "1", leaf);
    }
    // Early versions; their models read nothing from it except that attention's kernel is not
    // recomputed (`checkpoint_attention`).
    if let Some(leaf) =
        leaves.get("parallelism.recompute_granularity").filter(|leaf| leaf.value.eq_ignore_ascii_case("full"))
    {
        let what = "recomputation of whole layers in nanotron's early versions";
        let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Memory, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
    leaves.pass("parallelism.recompute_granularity");
    // By default tensors that are gathered over tensor-parallel ranks are gathered again in
    // backward (`parallelism_config.py`). Without such ranks nothing is gathered.
    let alone = leaves.whole("parallelism.tp") == Some(1);
    for (path, unusual, what) in [
        ("tp_recompute_allgather", false, "GEMM inputs saved as gathered over tensor-parallel ranks"),
        ("moe_layer_recompute", true, "recomputing experts without the rest of the layer"),
    ] {
        let path = format!("parallelism.{path}");
        let stated = leaves.get(&path).filter(|leaf| leaf.flag() == Some(unusual));
        if let Some(leaf) = stated.filter(|_| unusual || !alone) {
            let item = NotModelled::new(&path, &leaf.value, Effect::Memory, what).at_some(leaf.span);
            leaves.reading.not_modelled.push(item);
        }
    }
    if !alone && leaves.reading.value(Field::SequenceParallel) == Some("true") {
        // Arguments of Adam beside the learning rate belong to a factory since April 2024 (`config/config.py:OptimizerArgs`).
        let (gathered, why) = if leaves.has("optimizer.adam_beta1")
            || leaves.has("optimizer.torch_adam_is_fused")
        {
            ("true", "before tp_recompute_allgather (August 2024) gathered inputs were saved")
        } else {
            let why = "tp_recompute_allgather, on since August 2024; before, gathered inputs were saved (gathered_inputs=true)";
            ("false", why)
        };
        leaves.state(Field::GatheredInputs, gathered, Origin::Default, why);
    }
    let asynchronous = "parallelism.tp_linear_async_communication";
    leaves.follow(asynchronous, Field::AsyncTensorModelParallelAllreduce, true);
}
