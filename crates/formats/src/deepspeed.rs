//! DeepSpeed's JSON configuration: sharding over data-parallel ranks, precision, batch and optimizer.
//! Keys and defaults: `deepspeed/runtime/config.py`, `deepspeed/runtime/zero/config.py`.

use super::leaves::{Leaf, Leaves, Scalars, dtype};
use super::reader::{Claim, Reader, Role};
use super::signs;
use crate::{Asked, Effect, Found, NotModelled, Origin, Question, Reading};
use shardscope_config_tree::{Node, Tree};
use shardscope_plan::{Field, Software};
use shardscope_source::{Code, Diagnostic};

/// DeepSpeed's JSON.
#[derive(Debug)]
pub(super) struct DeepSpeed;

impl Reader for DeepSpeed {
    fn name(&self) -> &'static str {
        "a DeepSpeed configuration"
    }

    fn states_machines(&self) -> &'static str {
        "add the launch line (deepspeed --num_nodes 2 --num_gpus 8 train.py …)"
    }

    fn about(&self) -> &'static str {
        "ZeRO stage, precision, batch, optimizer, offloading"
    }

    fn role(&self) -> Role {
        Role::Engine
    }

    fn recognise(&self, tree: &Tree) -> Option<Claim> {
        const SIGNS: &[&str] = &[
            "zero_optimization",
            "train_micro_batch_size_per_gpu",
            "train_batch_size",
            "fp16.enabled",
            "bf16.enabled",
        ];
        signs::any(tree, SIGNS)
    }

    fn read(&self, root: &Node) -> Reading {
        read(root)
    }
}

fn read(root: &Node) -> Reading {
    let scalars = Scalars::from_node(root);
    let mut leaves = Leaves::over(&scalars);
    keys(&mut leaves);
    leaves.reading.software = Some(if left_to_trainer(&mut leaves) {
        let why = "a DeepSpeed configuration with \"auto\", which transformers fills in";
        (Software::HfTransformers, why.to_owned())
    } else if left_to_program(&mut leaves) {
        let why = "a DeepSpeed configuration without a batch, which a program fills in";
        (Software::HfTransformers, why.to_owned())
    } else {
        gradients(&mut leaves);
        (Software::MegatronDeepspeed, "a DeepSpeed configuration".to_owned())
    });
    for path in IDLE {
        leaves.pass(path);
    }
    leaves.finish("a DeepSpeed configuration")
}

/// A configuration nested under a key of a trainer's own file: the trainer's keys take precedence, and any
/// unknown key marks the verdict.
pub(super) fn read_within(leaves: &[Leaf]) -> Reading {
    let scalars = Scalars::from_leaves(leaves.to_vec());
    let mut leaves = Leaves::over(&scalars);
    keys(&mut leaves);
    for path in IDLE {
        leaves.pass(path);
    }
    leaves.finish("a DeepSpeed configuration")
}

/// "auto" is filled in by transformers' Trainer (`transformers/integrations/deepspeed.py`): with its
/// own defaults unless an argument says otherwise (`training_args.py`: a batch of 8, no accumulation),
/// and in the checkpoint's format.
fn left_to_trainer(leaves: &mut Leaves<'_>) -> bool {
    if !leaves.all().iter().any(|leaf| leaf.value == "auto") {
        return false;
    }
    leaves.state(Field::DataParallelEngine, "deepspeed", Origin::Derived, "a DeepSpeed configuration");
    let whose = "\"auto\": the Trainer's default";
    let batch = [
        ("train_micro_batch_size_per_gpu", Field::MicroBatchSize, "8"),
        ("gradient_accumulation_steps", Field::NumMicroBatches, "1"),
    ];
    for (path, field, value) in batch {
        if leaves.text(path).is_none_or(|said| said == "auto") {
            leaves.state(field, value, Origin::Default, whose);
        }
    }
    // The section's old name, which DeepSpeed still accepts (`deepspeed/runtime/constants.py:BFLOAT16_OLD`).
    let [now, before] = ["bf16.enabled", "bfloat16.enabled"];
    if [now, before].iter().any(|path| leaves.text(path) == Some("auto")) {
        let note = "\"auto\": as checkpoints are, unless the Trainer is told --fp16";
        leaves.state(Field::Bf16, "true", Origin::Default, note);
    } else if leaves.text("fp16.enabled") == Some("auto") && !leaves.has(now) && !leaves.has(before) {
        // For --bf16 the Trainer would add a section (`accelerate/utils/dataclasses.py:set_mixed_precision`); a file
        // with a section for fp16 alone trains in fp16.
        let note = "\"auto\", and no section for bf16";
        leaves.state(Field::Fp16, "true", Origin::Default, note);
    } else {
        without_precision(leaves);
    }
    true
}

/// A configuration that DeepSpeed rejects as written because it has no batch size
/// (`deepspeed/runtime/config.py:_set_batch_related_parameters`): the program that reads
/// it adds one, and the precision.
fn left_to_program(leaves: &mut Leaves<'_>) -> bool {
    const BATCH: [&str; 3] =
        ["train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"];
    if BATCH.iter().any(|path| leaves.has(path)) {
        return false;
    }
    leaves.state(Field::DataParallelEngine, "deepspeed", Origin::Derived, "a DeepSpeed configuration");
    without_precision(leaves);
    let mut found = Found::new(Field::MicroBatchSize, String::new(), Origin::Script);
    found.hole = Some("the program that completes this configuration".to_owned());
    leaves.reading.take(found);
    leaves.reading.questions.push(Question {
        asks: Asked::Setting(Field::MicroBatchSize),
        prompt: "Micro-batch size, in samples? The DeepSpeed configuration states none".to_owned(),
        choices: Vec::new(),
        proposal: Some("1".to_owned()),
    });
    true
}

/// Without a section for a precision, one is added for the trainer's precision
/// (`accelerate/utils/dataclasses.py:DeepSpeedPlugin.set_mixed_precision`).
fn without_precision(leaves: &mut Leaves<'_>) {
    const SECTIONS: [&str; 5] = ["bf16", "bfloat16", "fp16", "amp", "data_types"];
    let section = |leaf: &Leaf| SECTIONS.contains(&leaf.path.split('.').next().unwrap_or_default());
    if !leaves.all().iter().any(section) {
        let note = "no section for a precision: as checkpoints are, unless the trainer is told another";
        leaves.state(Field::Bf16, "true", Origin::Default, note);
    }
}

/// DeepSpeed's keys, which GPT-NeoX accepts among its own.
pub(super) fn keys(leaves: &mut Leaves<'_>) {
    batch(leaves);
    precision(leaves);
    sharding(leaves);
    optimizer(leaves);
    activations(leaves);
    for (path, effect, what) in LACKING {
        if let Some(leaf) = leaves.get(path).filter(|leaf| says_yes(leaf)) {
            let item = NotModelled::new(path, leaf.shown(), *effect, what).at_some(leaf.span);
            leaves.reading.not_modelled.push(item);
        }
    }
}

/// Keys that change figures and are not modelled.
const LACKING: &[(&str, Effect, &str)] = &[
    (
        "zero_optimization.zero_quantized_weights",
        Effect::Communication,
        "quantized weight all-gathers (ZeRO++)",
    ),
    (
        "zero_optimization.zero_quantized_gradients",
        Effect::Communication,
        "quantized gradient reduction (ZeRO++)",
    ),
    ("zero_optimization.mics_shard_size", Effect::Memory, "sharding within groups of ranks (MiCS)"),
    ("communication_data_type", Effect::Communication, "gradients reduced in another dtype"),
    ("sparse_attention.mode", Effect::Memory, "sparse attention"),
    ("tensor_parallel.autotp_size", Effect::Memory, "DeepSpeed's own tensor parallelism (AutoTP)"),
];

/// Keys that change no figure: loss scaling, clipping, logs, files, and details of how offloaded
/// states are stored on the host.
const IDLE: &[&str] = &[
    "gradient_clipping",
    "wall_clock_breakdown",
    "steps_per_print",
    "fp16.initial_scale_power",
    "fp16.auto_cast",
    "bf16.loss_scale",
    "bf16.initial_scale_power",
    "bf16.loss_scale_window",
    "bf16.hysteresis",
    "bf16.min_loss_scale",
    "zero_allow_untested_optimizer",
    "zero_force_ds_cpu_optimizer",
    "zero_optimization.stage3_gather_16bit_weights_on_model_save",
    "zero_optimization.gather_16bit_weights_on_model_save",
    "zero_optimization.stage3_gather_fp16_weights_on_model_save",
    "zero_optimization.offload_optimizer.pin_memory",
    "zero_optimization.offload_param.pin_memory",
    "optimizer.params.betas",
    "optimizer.params.eps",
    "optimizer.params.torch_adam",
];

fn says_yes(leaf: &Leaf) -> bool {
    leaf.flag() != Some(false) && leaf.whole().is_none_or(|count| count > 1)
}

/// Takes a key unless it is left to the trainer ("auto").
fn take(leaves: &mut Leaves<'_>, path: &str, field: Field) {
    match leaves.get(path) {
        Some(leaf) if leaf.value == "auto" => {
            let message = format!("{path} is \"auto\": the trainer's own setting applies");
            leaves
                .reading
                .diagnostics
                .push(Diagnostic::note(Code::LeftToTrainer, message).at_some(leaf.span));
        }
        Some(_) => drop(leaves.take(&[path], field)),
        None => {}
    }
}

fn batch(leaves: &mut Leaves<'_>) {
    take(leaves, "train_micro_batch_size_per_gpu", Field::MicroBatchSize);
    take(leaves, "gradient_accumulation_steps", Field::NumMicroBatches);
    take(leaves, "train_batch_size", Field::GlobalBatchSize);
    leaves.take(&["sequence_parallel_size"], Field::ContextParallelSize);
    if leaves.has("sequence_parallel_size") {
        leaves.state(
            Field::CpCommType,
            "a2a",
            Origin::Derived,
            "DeepSpeed's sequence parallelism is Ulysses",
        );
    }
}

fn precision(leaves: &mut Leaves<'_>) {
    let formats = &[
        ("bf16.enabled", Field::Bf16),
        ("bfloat16.enabled", Field::Bf16),
        ("bf16.bf16", Field::Bf16),
        ("fp16.enabled", Field::Fp16),
        ("fp16.fp16", Field::Fp16),
    ];
    for &(path, field) in formats {
        if leaves.get(path).is_some_and(|leaf| leaf.flag() != Some(false)) {
            take(leaves, path, field);
        }
    }
    if let Some(leaf) = leaves.get("data_types.grad_accum_dtype") {
        leaves.say(Field::GradsDtype, dtype(&leaf.value), leaf);
    }
}

/// ZeRO adds gradients up in the weights' format unless `grad_accum_dtype` says otherwise; the bf16 optimizer, which has
/// fp32 sums besides, is for stage 0, and for stage 1 with such sums (`deepspeed/runtime/engine.py:get_data_types`,
/// `_do_optimizer_sanity_check`).
fn gradients(leaves: &mut Leaves<'_>) {
    const BF16: [&str; 3] = ["bf16.enabled", "bfloat16.enabled", "bf16.bf16"];
    let on = BF16.iter().any(|path| leaves.get(path).and_then(Leaf::flag) == Some(true));
    let staged = matches!(leaves.whole("zero_optimization.stage"), Some(1..=3))
        || leaves.yes("zero_optimization").is_some();
    if on && staged && !leaves.has("data_types.grad_accum_dtype") {
        let note =
            "ZeRO adds gradients up in the weights' format unless data_types.grad_accum_dtype says otherwise";
        leaves.state(Field::GradsDtype, "bf16", Origin::Derived, note);
    }
}

fn sharding(leaves: &mut Leaves<'_>) {
    // `resolve` knows that the bf16 optimizer shards its states even at stage 0.
    if leaves.text("zero_optimization.stage") == Some("auto") {
        take(leaves, "zero_optimization.stage", Field::ZeroStage);
        // As above; `zero_stage` of accelerate is 2 unless its launcher says otherwise.
        leaves.state(Field::ZeroStage, "2", Origin::Derived, "\"auto\": accelerate's default");
    } else if leaves.has("zero_optimization.stage") {
        leaves.take(&["zero_optimization.stage"], Field::ZeroStage);
    } else if let Some(leaf) = leaves.yes("zero_optimization") {
        leaves.say_noted(Field::ZeroStage, "1", leaf, "zero_optimization: true means stage 1");
    } else {
        // Derived, since a command that names this file leaves the stage to it.
        leaves.state(Field::ZeroStage, "0", Origin::Derived, "DeepSpeed's default without zero_optimization");
    }
    // 1 means none (`deepspeed/runtime/zero/config.py`).
    let path = "zero_optimization.zero_hpz_partition_size";
    if let Some(leaf) = leaves.get(path).filter(|leaf| says_yes(leaf)) {
        leaves.say(Field::SecondWeightShards, &leaf.value, leaf);
    }
    leaves.pass(path);
    let offload = &[
        ("zero_optimization.offload_optimizer.device", Field::OffloadOptimizer),
        ("zero_optimization.offload_param.device", Field::OffloadParam),
        ("zero_optimization.cpu_offload", Field::OffloadOptimizer),
        ("zero_optimization.cpu_offload_params", Field::OffloadParam),
    ];
    for &(path, field) in offload {
        match leaves.get(path) {
            // Accelerate puts its own option there, by default "none" (`utils/dataclasses.py:DeepSpeedPlugin.fill_match`).
            Some(leaf) if leaf.value == "auto" => take(leaves, path, field),
            Some(leaf) => {
                let away = leaf.flag().unwrap_or(leaf.value != "none");
                leaves.switch(field, away, leaf);
            }
            None => {}
        }
    }
    leaves.take(&["zero_optimization.overlap_comm"], Field::OverlapGradReduce);
    for path in &["allgather_bucket_size", "reduce_scatter"] {
        leaves.pass(&format!("zero_optimization.{path}"));
    }
    buckets(leaves);
}

/// A whole number of elements, which configurations also write as `5e8`; `None` for anything else.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn elements(written: &str) -> Option<u64> {
    /// Most elements of a bucket.
    const MOST: f64 = 1e11;
    let elements = written.parse::<f64>().ok().filter(|elements| (1.0..=MOST).contains(elements))?;
    Some(elements as u64)
}

/// Buffers for gradients to be reduced: one of this many elements, two under ZeRO-1 and 2 with `overlap_comm`,
/// and none if gradients are not made contiguous, which they are by default
/// (`deepspeed/runtime/zero/config.py`, `stage_1_and_2.py:setup_buckets`,
/// `stage3.py:_setup_for_real_optimizer`). If no size is stated, `resolve` uses DeepSpeed's default.
fn buckets(leaves: &mut Leaves<'_>) {
    let flag = |leaves: &Leaves<'_>, path: &str| leaves.get(path).and_then(Leaf::flag);
    let stage = leaves.whole("zero_optimization.stage");
    let path = "zero_optimization.reduce_bucket_size";
    if !matches!(stage, Some(1..=3)) {
        leaves.pass(path);
        leaves.pass("zero_optimization.contiguous_gradients");
        return;
    }
    let overlaps = flag(leaves, "zero_optimization.overlap_comm") == Some(true);
    let (buffers, note) = match stage {
        _ if flag(leaves, "zero_optimization.contiguous_gradients") == Some(false) => {
            ("0", "gradients are not made contiguous")
        }
        Some(1 | 2) if overlaps => ("2", "overlap_comm has a second one"),
        _ => ("1", "one, without overlap_comm and under ZeRO-3"),
    };
    leaves.state(Field::ReduceBuckets, buffers, Origin::Derived, note);
    match leaves.get(path) {
        Some(leaf) if leaf.value == "auto" => {
            leaves.say_noted(Field::ReduceBucketSize, "0", leaf, "\"auto\": the square of the width");
        }
        Some(leaf) => match elements(&leaf.value) {
            Some(elements) => leaves.say(Field::ReduceBucketSize, &elements.to_string(), leaf),
            None => leaves.pass(path),
        },
        None => {}
    }
}

fn optimizer(leaves: &mut Leaves<'_>) {
    let Some(leaf) = leaves.first(&["optimizer.type", "optimizer.name"]) else { return };
    let name = leaf.value.to_ascii_lowercase();
    match name.as_str() {
        name if name.contains("adam") || name.contains("lamb") => {
            leaves.say(Field::Optimizer, "adam", leaf);
            // DeepSpeed's own kernel replaces the trainer's optimizer, unless PyTorch's is requested
            // (`deepspeed/runtime/engine.py:_configure_basic_optimizer`).
            let of_torch = leaves.flag("optimizer.params.torch_adam") == Some(true);
            leaves.say(Field::OptimizerForeach, if of_torch { "true" } else { "false" }, leaf);
        }
        "sgd" => {
            leaves.say(Field::Optimizer, &name, leaf);
            // PyTorch's, with its default of none (`deepspeed/runtime/engine.py:_configure_basic_optimizer`).
            if !leaves.take(&["optimizer.params.momentum"], Field::SgdMomentum) {
                leaves.state(Field::SgdMomentum, "0", Origin::Default, "PyTorch's SGD");
            }
        }
        "muon" | "lion" => leaves.say(Field::Optimizer, &name, leaf),
        _ => leaves.not_estimated(leaf, "this optimizer is treated as Adam"),
    }
}

fn activations(leaves: &mut Leaves<'_>) {
    let path = "activation_checkpointing.partition_activations";
    leaves.turn_on(path, Field::DistributeSavedActivations);
    let path = "activation_checkpointing.cpu_checkpointing";
    leaves.turn_on(path, Field::CpuCheckpointing);
    leaves.pass(path);
}
