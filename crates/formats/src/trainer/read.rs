//! Reads a trainer's keys as settings.

use super::dialect::Dialect;
use super::vocabulary::{self, Meaning};
use super::{
    accumulation, adapters, alpaca_lora, authors, behind, checkpoint, cookbook, ddp, device_map, eight_bit,
    evaluation, fused_head, grouped, internvl, kernels, low_rank, objective, offloading, open_instruct,
    packing, parts, presets, quantized_peft, recomputed, resumed, spread, swift_two, tokenizer, unsloth,
    unsloth_compiled, unsloth_preferences, vision, weights, words, xlam,
};
use crate::leaves::{Leaf, Leaves, Scalars};
use crate::names;
use crate::options::{Changes, of_key};
use crate::releases::Installed;
use crate::telling;
use crate::{Argument, Asked, Effect, NotModelled, Origin, Question, Reading};
use shardscope_config_tree::Node;
use shardscope_plan::{Field, Software};
use shardscope_source::{Code, Diagnostic, Span};

/// Reads a trainer's settings file.
pub(super) fn read(dialect: Dialect, root: &Node, installed: Installed) -> Reading {
    read_beneath(dialect, root, &[], false, installed)
}

/// Reads it beneath the words of the command that names it, which override it. `by_program`: the command's program is the
/// trainer's own, which leaves nothing open.
pub(super) fn read_beneath(
    dialect: Dialect,
    root: &Node,
    arguments: &[Argument],
    by_program: bool,
    installed: Installed,
) -> Reading {
    let grouped = (dialect == Dialect::Transformers).then(|| grouped::scalars(root)).flatten();
    let mut scalars = grouped.unwrap_or_else(|| Scalars::from_node(root));
    scalars.extend(words::over_file(dialect, arguments));
    let mut reading = reading(dialect, &scalars, !by_program, installed);
    if dialect == Dialect::Transformers && !by_program {
        adapters::left_to_program(&mut reading);
    }
    reading
}

/// Reads the words of a trainer's command.
pub(super) fn read_words(dialect: Dialect, arguments: &[Argument], installed: Installed) -> Reading {
    let scalars = words::leaves(arguments);
    reading(dialect, &scalars, false, installed)
}

pub(crate) fn read_scalars(dialect: Dialect, scalars: &Scalars) -> Reading {
    reading(dialect, scalars, false, Installed::default())
}

/// Whether an option's name suggests that it changes what trains, what is in memory or how it is
/// sharded, and its value confirms that.
pub(super) fn changes(leaf: &Leaf) -> bool {
    telling::tells(&leaf.path, &leaf.value)
}

/// `is_file`: no program accompanies the keys.
fn reading(dialect: Dialect, scalars: &Scalars, is_file: bool, installed: Installed) -> Reading {
    let scalars = &behind::with_releases(dialect, scalars, installed);
    let renamed = (dialect == Dialect::Swift).then(|| swift_two::renamed(scalars)).flatten();
    let mut leaves = Leaves::over(renamed.as_ref().map_or(scalars, |renamed| &renamed.scalars));
    table(&mut leaves, dialect);
    presets::read(&mut leaves);
    if dialect == Dialect::Transformers && !is_file {
        alpaca_lora::read(&mut leaves);
    }
    if dialect == Dialect::Transformers {
        xlam::read(&mut leaves);
    }
    batch_size(&mut leaves, dialect);
    authors::read(&mut leaves, dialect);
    if dialect == Dialect::Transformers {
        parts::of_both(&mut leaves);
        internvl::defaults(&mut leaves);
    }
    adam_mini(&mut leaves);
    low_rank::read(&mut leaves, dialect);
    precision(&mut leaves, dialect);
    recomputed::read(&mut leaves);
    kernels::attention(&mut leaves);
    kernels::liger(&mut leaves);
    packing::read(&mut leaves, dialect);
    if dialect == Dialect::LlamaCookbook {
        cookbook::read(&mut leaves);
    }
    if dialect.is_unsloth() {
        unsloth::read(&mut leaves);
    }
    let fast = dialect.is_unsloth() || unsloth::under(&mut leaves, dialect);
    spread::groups(&mut leaves);
    spread::changing(&mut leaves);
    adapters::read(&mut leaves, dialect);
    resumed::read(&mut leaves, dialect);
    spread::spread(&mut leaves, Some(dialect));
    accumulation::read(&mut leaves, dialect);
    spread::sequences(&mut leaves);
    objective::read(&mut leaves, dialect);
    if dialect.is_unsloth() {
        unsloth_preferences::read(&mut leaves);
    }
    offloading::read(&mut leaves, dialect);
    device_map::read(&mut leaves, dialect);
    recomputed::sent_inputs(&mut leaves, dialect, fast);
    vision::read(&mut leaves, dialect);
    evaluation::read(&mut leaves, dialect);
    match dialect {
        Dialect::Trl if is_file => objective::left_to_program(&mut leaves),
        // Arguments of a custom program, possibly including those of a preference loss.
        Dialect::Transformers | Dialect::Trl if !leaves.has("num_generations") => {
            objective::left_to_program(&mut leaves)
        }
        Dialect::OpenInstruct if is_file => objective::of_open_instruct(&mut leaves),
        _ => {}
    }
    match dialect {
        Dialect::DeepSpeedChat => objective::step_of_chat(&mut leaves),
        Dialect::OpenInstruct => open_instruct::read(&mut leaves),
        _ => {}
    }
    objective::without_dropout(&mut leaves, dialect);
    behind::checkpoints(&mut leaves, dialect);
    let whose = format!("default of {}", dialect.name());
    let policy = leaves.reading.value(Field::TrainingObjective) == Some("policy");
    for (field, value) in dialect.defaults() {
        // The length of rollouts is asked for if it is not stated.
        // Nor are accumulation steps beside a batch of all ranks.
        let given = |field| leaves.reading.found.iter().any(|found| found.field == field);
        let whole = match field {
            Field::NumMicroBatches => leaves.reading.value(Field::GlobalBatchSize).is_some(),
            // ms-swift's GRPO does not accumulate unless it is told to (`swift/arguments/rlhf_args.py`).
            Field::LeastBatchSize => policy || given(Field::NumMicroBatches),
            _ => false,
        };
        if !(policy && *field == Field::SeqLength || whole) {
            let value = match field {
                Field::SeqLength => behind::length(&leaves, dialect, value),
                _ => Some(*value),
            };
            let Some(value) = value else { continue };
            let (value, note) = behind::of_release(&leaves, dialect, *field)
                .or_else(|| kernels::of_release(&leaves, dialect, *field))
                .unwrap_or((value, &whose));
            leaves.state(*field, value, Origin::Default, note);
        }
    }
    eight_bit::read(&mut leaves, dialect);
    ddp::read(&mut leaves, dialect);
    fused_head::read(&mut leaves, dialect);
    quantized_peft::read(&mut leaves, dialect);
    recomputed::reentrance(&mut leaves, dialect);
    weights::read(&mut leaves, dialect);
    checkpoint::model(&mut leaves, dialect);
    renamed.iter().for_each(|renamed| swift_two::lacking(&mut leaves, renamed));
    tokenizer::read(&mut leaves, dialect);
    leaves.pass(checkpoint::CAUSAL);
    if fast {
        unsloth::with_model(&mut leaves);
        unsloth_compiled::with_model(&mut leaves);
    }
    open(&mut leaves);
    if !fast {
        behind::older_layers(&mut leaves);
    }
    behind::pass(&leaves);
    let software = if fast { Software::Unsloth } else { Software::HfTransformers };
    leaves.reading.software = Some((software, format!("{} trains transformers models", dialect.name())));
    leaves.finish(dialect.name())
}

/// Keys that map directly to a setting, and those that are not modelled.
fn table(leaves: &mut Leaves<'_>, dialect: Dialect) {
    let mut idle: Vec<(&'static str, &Leaf)> = Vec::new();
    for leaf in leaves.all() {
        let Some(meaning) = vocabulary::find(last(&leaf.path)) else { continue };
        // A nested key that is read by dedicated code, or reported by it.
        let below = leaf.path.contains('.');
        match meaning {
            // A negative number means none: max_steps of -1 leaves the length to the epochs.
            Meaning::Take(_) if leaf.value.starts_with('-') => leaf.used.set(true),
            Meaning::Take(field) if !below && !leaf.value.is_empty() => {
                leaves.take(&[&leaf.path], field);
            }
            Meaning::Lacks(effect, what, harmless) if !below && is_said(leaf, harmless) => {
                leaves.pass(&leaf.path);
                let item = NotModelled::new(&leaf.path, leaf.shown(), effect, what).at_some(leaf.span);
                leaves.reading.not_modelled.push(item);
            }
            // A word's effect in this framework takes precedence over its effect in the others.
            Meaning::Idle(_) if changes_in(dialect, leaf) => {}
            // The key that names the model, where it is one.
            Meaning::Idle(_) if checkpoint::may_name(dialect, &leaf.path) => leaf.used.set(true),
            Meaning::Idle(why) => {
                leaf.used.set(true);
                idle.push((why, leaf));
            }
            Meaning::Take(_) => {}
            Meaning::Own if below => {}
            _ => leaf.used.set(true),
        }
    }
    tell_idle(leaves, idle);
}

/// Whether the framework itself has the option and uses it in a way that is not modelled.
fn changes_in(dialect: Dialect, leaf: &Leaf) -> bool {
    matches!(of_key(dialect.name(), &leaf.path, &leaf.value), Some(Changes::Stops(..)))
}

/// axolotl's `batch_size` is the number of samples that a rank accumulates, instead of a number of steps
/// (`gradient_accumulation_steps or batch_size // micro_batch_size`; setting both is rejected). No other trainer has
/// this key. In a custom program it may be the training batch if no other key gives that, so the verdict stops.
fn batch_size(leaves: &mut Leaves<'_>, dialect: Dialect) {
    let Some(leaf) = leaves.get("batch_size") else { return };
    let micro = leaves.reading.value(Field::MicroBatchSize).and_then(|value| value.parse::<u64>().ok());
    let steps = leaf.whole().zip(micro.filter(|micro| *micro > 0)).map(|(batch, micro)| batch / micro);
    match (dialect, steps) {
        (Dialect::Axolotl, _) if leaves.has("gradient_accumulation_steps") => {}
        (Dialect::Axolotl, Some(steps)) if steps > 0 => {
            leaves.say_noted(
                Field::NumMicroBatches,
                &steps.to_string(),
                leaf,
                "batch_size / micro_batch_size",
            );
        }
        (Dialect::Axolotl, _) => lack_batch(leaves, leaf),
        _ if micro.is_none() => lack_batch(leaves, leaf),
        _ => {}
    }
}

/// LLaMA-Factory's switch, regardless of `optim` (`train/trainer_utils.py:create_custom_optimizer`). How it handles
/// names and shapes in DeepSpeed's flat groups and under FSDP is not known.
fn adam_mini(leaves: &mut Leaves<'_>) {
    // transformers 4's switch, which takes precedence over `optim` (`training_args.py:__post_init__`).
    leaves.pass("adafactor");
    if let Some(leaf) = leaves.yes("adafactor") {
        leaves.reading.keep(&|found| found.field != Field::Optimizer);
        leaves.say(Field::Optimizer, "adafactor", leaf);
    }
    leaves.pass("use_adam_mini");
    let Some(leaf) = leaves.yes("use_adam_mini") else { return };
    leaves.reading.keep(&|found| found.field != Field::Optimizer);
    leaves.say(Field::Optimizer, "adam_mini", leaf);
    if let Some(leaf) = leaves.first(&["deepspeed", "fsdp"]) {
        let what = "Adam-mini over sharded or flattened weights";
        let item = NotModelled::new("use_adam_mini", &leaf.value, Effect::Memory, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
}

fn lack_batch(leaves: &mut Leaves<'_>, leaf: &Leaf) {
    let what = "a batch size whose unit this trainer does not state";
    let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Memory, what).at_some(leaf.span);
    leaves.reading.not_modelled.push(item);
}

/// One note on the keys without effect, grouped by reason.
fn tell_idle(leaves: &mut Leaves<'_>, mut idle: Vec<(&'static str, &Leaf)>) {
    /// Most keys listed by name.
    const LISTED: usize = 24;
    idle.retain(|(_, leaf)| !leaf.value.is_empty());
    idle.sort_by_key(|(why, _)| *why);
    let place: Option<Span> = idle.iter().find_map(|(_, leaf)| leaf.span);
    let (mut listed, mut before) = (String::new(), "");
    for (index, (why, leaf)) in idle.iter().take(LISTED).enumerate() {
        if *why == before {
            listed.push_str(", ");
        } else {
            listed.push_str(if index == 0 { "" } else { "; " });
            listed.push_str(why);
            listed.push_str(": ");
            before = why;
        }
        listed.push_str(&leaf.path);
    }
    if !idle.is_empty() {
        let more = if idle.len() > LISTED { ", …" } else { "" };
        let message = format!("{}. {listed}{more}", names::idle_keys(idle.len()));
        leaves.reading.diagnostics.push(Diagnostic::note(Code::KeysLeftAside, message).at_some(place));
    }
}

fn is_said(leaf: &Leaf, harmless: &str) -> bool {
    !leaf.value.is_empty()
        && leaf.flag() != Some(false)
        && !harmless.split_ascii_whitespace().any(|word| word == leaf.value)
}

fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

fn precision(leaves: &mut Leaves<'_>, dialect: Dialect) {
    for path in ["bf16", "bfloat16", "fp16", "float16"] {
        let field = if path.starts_with('b') { Field::Bf16 } else { Field::Fp16 };
        // axolotl's and Qwen's "auto" means bf16 wherever the accelerator supports it.
        if let Some(leaf) = leaves
            .get(path)
            .filter(|leaf| leaf.flag() == Some(true) || leaf.value == "auto" || leaf.value == "full")
        {
            leaves.switch(field, true, leaf);
        }
    }
    // `training_args.py:__post_init__` rejects both at once (also with axolotl's "auto", wherever
    // the accelerator supports bf16).
    let both = [Field::Bf16, Field::Fp16].iter().all(|field| leaves.reading.value(*field) == Some("true"));
    if let Some(leaf) = leaves.first(&["fp16", "float16"]).filter(|_| both) {
        let what = "bf16 and fp16 at once, which the Trainer rejects";
        let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Memory, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
    if let Some(leaf) = leaves.get("mixed_precision") {
        match leaf.value.as_str() {
            "bf16" => leaves.switch(Field::Bf16, true, leaf),
            "fp16" => leaves.switch(Field::Fp16, true, leaf),
            _ => {}
        }
    }
    // DeepSpeed's engine casts the weights to fp16 by default.
    if dialect == Dialect::DeepSpeedChat {
        match leaves.get("dtype").filter(|leaf| leaf.value == "bf16") {
            Some(leaf) => leaves.switch(Field::Bf16, true, leaf),
            None => leaves.state(Field::Fp16, "true", Origin::Default, "default of DeepSpeed-Chat"),
        }
        return;
    }
    if let Some(leaf) = leaves.yes("pure_bf16") {
        leaves.say(Field::ParamsDtype, "bf16", leaf);
        leaves.say(Field::Autocast, "none", leaf);
        leaves.switch(Field::Bf16, true, leaf);
    }
    if let Some(leaf) =
        leaves.first(&["torch_dtype", "dtype"]).filter(|leaf| leaf.value != "auto" && !leaf.value.is_empty())
    {
        leaves.say(Field::ParamsDtype, &leaf.value, leaf);
    }
    let said = [Field::Bf16, Field::Fp16].iter().any(|field| leaves.reading.value(*field).is_some());
    // ms-swift autocasts to the weights' format, and to fp16 for weights in fp32
    // (`swift/arguments/base_args/model_args.py:_init_mixed_precision`).
    let half = leaves.get("torch_dtype").filter(|leaf| {
        let format = leaf.value.trim_start_matches("torch.");
        dialect == Dialect::Swift && matches!(format, "float16" | "fp16" | "float32" | "fp32")
    });
    if let Some(leaf) = half.filter(|_| !said && leaves.flag("fp16") != Some(false)) {
        leaves.switch(Field::Fp16, true, leaf);
        return;
    }
    // `bf16: false` turns off TRL's default, and with it autocast; axolotl's is also off if the key has no value.
    let stated = leaves.all().iter().any(|leaf| leaf.path == "bf16");
    let off = leaves.flag("bf16") == Some(false) || dialect == Dialect::Axolotl && stated;
    if let Some(leaf) = leaves.all().iter().rfind(|leaf| leaf.path == "bf16" && leaf.hole.is_some()) {
        // A variable of a command that is not set in the text.
        leaf.used.set(true);
        leaves.say(Field::Bf16, "", leaf);
    } else if !said && !off && behind::is_in_bf16(leaves, dialect) {
        let whose = format!("default of {}", dialect.name());
        let note = behind::of_release(leaves, dialect, Field::Bf16).map_or(whose.as_str(), |(_, note)| note);
        leaves.state(Field::Bf16, "true", Origin::Default, note);
    }
}

/// Asks for what a trainer's settings leave open.
fn open(leaves: &mut Leaves<'_>) {
    /// A sequence length at which most models are fine-tuned.
    const USUAL: u64 = 2048;
    let longest = leaves.reading.count(Field::MaxPositionEmbeddings).unwrap_or(USUAL);
    let mut ask = |field: Field, prompt: &str, proposal: String| {
        let asked = leaves.reading.questions.iter().any(|question| question.asks == Asked::Setting(field));
        if !asked && !leaves.reading.found.iter().any(|found| found.field == field) {
            leaves.reading.questions.push(Question {
                asks: Asked::Setting(field),
                prompt: prompt.to_owned(),
                choices: Vec::new(),
                proposal: Some(proposal),
            });
        }
    };
    ask(
        Field::SeqLength,
        "Sequence length that samples are truncated or packed to?",
        longest.min(USUAL).to_string(),
    );
}
