//! verl's FSDP trainer before 0.4: FSDP1, layers that are not checkpointed, and in 0.1 micro-batches of all ranks.
//!
//! `verl/trainer/config/sft_trainer.yaml` has `model.strategy: fsdp2` since May 29, 2025 (#1713, 0.4.0), before which
//! `fsdp_sft_trainer.py` wraps the model in FSDP1; `model.enable_gradient_checkpointing` is false until June 10, 2025 (#1889, 0.4.1);
//! `data.micro_batch_size_per_gpu` takes the place of `data.micro_batch_size` on January 27, 2025 (#136, 0.2), which is 16 sequences
//! of all ranks by default (`_normalize_config_bsz`) and is ignored since.

use super::super::leaves::{Leaf, Leaves};
use super::common::ask;
use crate::{Asked, Found, Origin, Question, Reading};
use shardscope_plan::Field;
use shardscope_source::{Code, Diagnostic};

/// What says that a text is of such a release.
const WHOSE: &str = "default of verl's FSDP trainer before 0.4, whose keys the text has";

/// Keys of its configuration since May 29, 2025 or later (#1713, #1451, #1828, #1889, #2542, #2292, #2998, #3812, #3656), some with
/// what is below them. verl's own YAML names each.
const LATER: [&str; 18] = [
    "data.apply_chat_template_kwargs",
    "data.multiturn.enable_thinking_key",
    "data.multiturn.tools_key",
    "data.train_max_samples",
    "data.val_max_samples",
    "model.fsdp_config.model_dtype",
    "model.strategy",
    "optim.lr_warmup_steps_ratio",
    "trainer.checkpoint",
    "trainer.device",
    "trainer.max_ckpt_to_keep",
    "trainer.n_gpus_per_node",
    "trainer.nnodes",
    "trainer.resume_from_path",
    "trainer.resume_mode",
    "trainer.save_freq",
    "trainer.test_freq",
    "model.lora_adapter_path",
];

/// Keys since January 25 to 31, 2025 (#127, #132, #136, #173) or April (#195, #832, #1041).
const SINCE_TWO: [&str; 8] = [
    "data.custom_cls",
    "data.micro_batch_size_per_gpu",
    "data.multiturn",
    "model.lora_rank",
    "model.use_liger",
    "optim.lr_scheduler",
    "ulysses_sequence_parallel_size",
    "use_remove_padding",
];

/// Of all ranks, in 0.1.
const OVER_RANKS: &str = "data.micro_batch_size";

/// Whether verl's configuration has one of `keys`. A key that a text adds (`+`) may be added to any release.
fn has_any(leaves: &Leaves<'_>, keys: &[&str]) -> bool {
    leaves.all().iter().filter(|leaf| !leaf.added).any(|leaf| {
        let below = |key: &&str| {
            leaf.path.strip_prefix(*key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        keys.iter().any(below)
    })
}

/// The micro-batch of all ranks, if the text states one.
fn over_ranks<'t>(leaves: &Leaves<'t>) -> Option<&'t Leaf> {
    leaves.get(OVER_RANKS).filter(|leaf| !leaf.added && !matches!(leaf.value.as_str(), "null" | "None"))
}

/// The release, as far as the keys tell it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Release {
    /// 0.1.
    First,
    /// 0.2 and 0.3.
    Third,
    /// 0.2 to 0.4.1.
    Fourth,
    /// Any.
    Untold,
}

/// A settings file is the whole configuration: one that wraps layers but selects no engine ends 0.4 and later, and one whose
/// micro-batches are of all ranks ends 0.2 and later. verl's own examples state `trainer.default_hdfs_dir` until July 5, 2025 (#2371),
/// 0.4.1 of June among them, whose trainer checkpoints.
fn release(leaves: &Leaves<'_>, is_file: bool) -> Release {
    if has_any(leaves, &LATER) {
        return Release::Untold;
    }
    let whole =
        is_file && has_any(leaves, &["model.fsdp_config.wrap_policy"]) && !has_any(leaves, &["defaults"]);
    let first = over_ranks(leaves).is_some() && !has_any(leaves, &SINCE_TWO);
    match first {
        true => Release::First,
        false if whole => Release::Third,
        false if has_any(leaves, &["trainer.default_hdfs_dir"]) => Release::Fourth,
        false => Release::Untold,
    }
}

/// States the defaults of a release before 0.4 if the keys tell one, before today's. `is_file`: whether the text is a settings file.
pub(super) fn read(leaves: &mut Leaves<'_>, is_file: bool) {
    let release = release(leaves, is_file);
    if release != Release::Untold {
        leaves.state(Field::DataParallelEngine, "fsdp1", Origin::Default, WHOSE);
        let is_stated = leaves.has("model.enable_gradient_checkpointing");
        if !is_stated && release == Release::Fourth {
            let mut open = Found::new(Field::GradientCheckpointing, "", Origin::Default).note(WHOSE);
            open.hole = Some("the release of verl".to_owned());
            leaves.reading.take(open);
            leaves.reading.questions.push(Question {
                asks: CHECKPOINTED,
                prompt:
                    "Are layers checkpointed? verl's FSDP trainer does so by default since 0.4.1, not before"
                        .to_owned(),
                choices: vec!["true".to_owned(), "false".to_owned()],
                proposal: Some("false".to_owned()),
            });
        } else if !is_stated {
            leaves.state(Field::GradientCheckpointing, "false", Origin::Default, WHOSE);
        }
    }
    let Some(leaf) = over_ranks(leaves) else { return };
    match (release, leaf.whole()) {
        (Release::First, Some(micro)) if is_file && micro > 0 => accumulated(leaves, leaf, micro),
        (Release::First, _) => ask(leaves, &[(Field::MicroBatchSize, WHICH, "4")]),
        _ => ignored(leaves, leaf),
    }
}

/// Examples of both kinds are in repositories made of verl of January 2025.
const WHICH: &str = "Sequences of a micro-batch on a GPU? verl to January 2025 divides data.micro_batch_size by the number of GPUs; since then \
     it ignores it and takes data.micro_batch_size_per_gpu, which is 4";

/// A rank splits its part of the batch into micro-batches of its part of them, so that there are as many as the batch has of
/// these. Both have to be multiples of the ranks.
fn accumulated(leaves: &mut Leaves<'_>, leaf: &Leaf, micro: u64) {
    let batch = leaves.whole("data.train_batch_size").unwrap_or(256);
    if !batch.is_multiple_of(micro) {
        return ask(leaves, &[(Field::MicroBatchSize, WHICH, "4")]);
    }
    let note = "data.train_batch_size / data.micro_batch_size, which verl 0.1 counts over all ranks";
    leaves.say_noted(Field::NumMicroBatches, &(batch / micro).to_string(), leaf, note);
}

/// Says that the trainer does not look at the key.
fn ignored(leaves: &mut Leaves<'_>, leaf: &Leaf) {
    let message = "verl's FSDP trainer has ignored data.micro_batch_size since January 2025; it takes data.micro_batch_size_per_gpu";
    leaves.reading.diagnostics.push(Diagnostic::warning(Code::NoInfluence, message).at_some(leaf.span));
}

/// Puts a release that the text installs above what its keys tell. `today`: the notes of today's defaults.
pub(super) fn overruled(reading: &mut Reading, [engine, checkpoints]: [&str; 2]) {
    let early = |found: &&mut Found| found.note.as_deref() == Some(WHOSE);
    for found in reading.found.iter_mut().filter(early) {
        let (value, note) = match found.field {
            Field::DataParallelEngine => ("fsdp2", engine),
            _ => ("true", checkpoints),
        };
        value.clone_into(&mut found.value);
        found.note = Some(note.to_owned());
        found.hole = None;
    }
    reading.questions.retain(|asked| asked.asks != CHECKPOINTED);
}

/// A release before 0.4 that the text installs does not checkpoint by itself.
pub(super) fn settled(reading: &mut Reading) {
    for found in
        reading.found.iter_mut().filter(|found| found.note.as_deref() == Some(WHOSE) && found.hole.is_some())
    {
        "false".clone_into(&mut found.value);
        found.hole = None;
    }
    reading.questions.retain(|asked| asked.asks != CHECKPOINTED);
}

const CHECKPOINTED: Asked = Asked::Setting(Field::GradientCheckpointing);
