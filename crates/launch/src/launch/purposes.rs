//! What a program's name says about the training: that there is none, that it is a different kind, or the objective
//! that the words leave open.

use super::chosen::Chosen;
use super::command_line::{CommandLine, Launcher};
use super::program::{Purpose, casts_to_fp32, installs, is_bridged, is_olmo_core, purpose};
use super::rollouts;
use super::settings_file::Given;
use crate::formats::{Claim, OLMO_CORE_LACKING, turn_dropout_off};
use crate::{Asked, Effect, Found, NotModelled, Origin, Question, Reading};
use shardscope_bash::{CommandKind, Script, Word, base_name};
use shardscope_plan::{Field, Software, Subject};

/// A program that is started without any known setting.
pub(crate) const ELSEWHERE: &str =
    "a program that takes its settings from elsewhere; paste the file or options that it reads";

/// The program in a text that trains nothing, and its purpose. A set-up step only counts if nothing else is known.
pub(super) fn instead(script: &Script) -> Option<(Word, &'static str)> {
    let runs = script.commands.iter().filter(|command| command.kind == CommandKind::Run);
    let mut set_up = None;
    for command in runs {
        let line = CommandLine::new(&Chosen { words: command.words.clone(), ..Chosen::default() });
        let Some(program) = line.program.as_ref().or(command.words.first()) else { continue };
        // A step started by another launcher has its program after `--` (`srun … -- vllm serve`).
        let behind = command.words.iter().skip_while(|word| word.text() != "--").nth(1);
        // ms-swift's `megatron export`, which merges adapters or converts a checkpoint.
        let of_megatron = command.words.first().filter(|word| word.text() == "megatron");
        let behind = behind.or_else(|| of_megatron.and_then(|_| command.words.get(1)));
        for named in std::iter::once(program).chain(behind) {
            if let Purpose::NoTraining(what) = purpose(named.text()) {
                return Some((named.clone(), what));
            }
        }
        let first = command.words.iter().find(|word| word.text() != "sudo");
        let installer = line.program.as_ref().into_iter().chain(first);
        set_up = set_up
            .or_else(|| installer.into_iter().find_map(|word| Some((word.clone(), installs(word.text())?))));
    }
    set_up
}

/// The same for a command that was chosen without a training setting, and its name: a shell script may be a single word
/// with everything around the program (`bash -c "RANK=… python -u check.py"`).
pub(super) fn of_bare(chosen: &Chosen) -> Option<(Word, &'static str)> {
    let line = CommandLine::new(chosen);
    let program = line.subcommand.or(line.program).filter(|_| chosen.bare)?;
    match purpose(called(program.text())) {
        Purpose::NoTraining(what) => Some((program, what)),
        _ => None,
    }
}

/// The program in a text that starts one: its last word that ends in `.py`, or else all of it.
pub(super) fn called(text: &str) -> &str {
    let python = |word: &&str| word.ends_with(".py");
    text.split_ascii_whitespace().rfind(python).unwrap_or(text)
}

/// A program named after adapters trains them, if the words give their size and leave the type of training open; one named
/// after QLoRA over weights that it quantizes itself, to a format that no word states.
fn adapters_by_name(reading: &mut Reading, program: &Word) {
    let is_of_kind = |question: &Question| question.asks == Asked::Setting(Field::TrainType);
    let open = reading.questions.iter().any(is_of_kind);
    let name = base_name(program.text());
    if !open || !name.contains("lora") {
        return;
    }
    reading.questions.retain(|question| !is_of_kind(question));
    let over = name.contains("qlora");
    let kind = if over { "qlora" } else { "lora" };
    reading.take(Found::new(Field::TrainType, kind, Origin::Derived).by("program", Some(program.origin())));
    if over && reading.value(Field::BaseQuantization).is_none() {
        let mut found = Found::new(Field::BaseQuantization, String::new(), Origin::Script)
            .by("program", Some(program.origin()));
        found.hole = Some("the program that quantizes the weights".to_owned());
        reading.take(found);
        reading.questions.push(Question {
            asks: Asked::Setting(Field::BaseQuantization),
            prompt: format!("To which format does {name} quantize the frozen weights?"),
            choices: ["nf4", "int8"].map(str::to_owned).to_vec(),
            proposal: Some("nf4".to_owned()),
        });
    }
}

/// A program named after unsloth gives its model adapters and kernels that no word states, unless it is one of the texts.
fn is_of_unsloth(reading: &Reading, program: &Word) -> bool {
    let transformers = matches!(reading.software, Some((Software::HfTransformers, _)));
    transformers && base_name(program.text()).contains("unsloth")
}

/// Settings that are typical of a Megatron command, in its own spelling or a fork's.
const MEGATRONS: [Field; 11] = [
    Field::NumLayers,
    Field::HiddenSize,
    Field::NumAttentionHeads,
    Field::SeqLength,
    Field::MaxPositionEmbeddings,
    Field::TensorModelParallelSize,
    Field::PipelineModelParallelSize,
    Field::ExpertModelParallelSize,
    Field::UseDistributedOptimizer,
    Field::TransformerImpl,
    Field::TokenizerType,
];

/// Prefixes of program names in Megatron-LM and its forks (`pretrain_gpt.py`, `posttrain_gpt.py`).
const MEGATRONS_NAMES: [&str; 3] = ["pretrain", "posttrain", "finetune"];

/// Whether a program is named like those of Megatron-LM and its forks, or is in such a folder.
fn is_named_as_megatrons(program: &str) -> bool {
    let path = program.to_ascii_lowercase();
    path.contains("megatron") || MEGATRONS_NAMES.iter().any(|name| base_name(&path).starts_with(name))
}

/// A program that no format recognises is read as Megatron's, whose defaults are wrong for other programs. If more of
/// its words are unknown than known, it is reported as a stranger, unless it is named like a Megatron program and has a
/// Megatron setting. Others also have `--num-layers` and `--seq-length` (OpenChatKit's `dist_clm_train.py`, where a
/// stage has that many layers).
///
/// `claim`: how certain it is that the words belong to the format that read them; none if only Megatron's reader was
/// left. A few keys that many programs share (`data.`, `trainer.`) do not make a command NeMo's (EasyR1's
/// `worker.actor.model.model_path=…`).
pub(super) fn tell_stranger(reading: &mut Reading, line: &CommandLine, claim: Option<Claim>) {
    const STRANGE: &str = "a program whose options and defaults are not known here";
    /// Options that no Megatron has, of trainers with their own layers, checkpointing or sharding.
    const FOREIGN: [&str; 5] = [
        "--gradient-accumulation-steps",
        "--intermediate-size",
        "--gradient-checkpointing",
        "--enable-gradient-checkpointing",
        "--sharding-strategy",
    ];
    let Some(program) = line.program.as_ref() else { return };
    let foreign = claim.is_none()
        && reading.not_read.iter().any(|item| FOREIGN.contains(&item.name.replace('_', "-").as_str()));
    // The format's defaults are its own and are not stated by the words.
    let stated = |found: &&Found| matches!(found.origin, Origin::Script | Origin::Environment);
    let known = reading.found.iter().filter(stated).filter(|found| !found.field.is_idle()).count();
    let own = match claim {
        Some(Claim::Own(_) | Claim::Certain) => return,
        Some(Claim::Shared(_)) => false,
        None => {
            is_named_as_megatrons(program.text())
                && reading.found.iter().any(|found| MEGATRONS.contains(&found.field))
        }
    };
    let stops = reading.not_modelled.iter().any(|item| item.subject != Subject::Setting);
    let stranger = !own && reading.not_read.len() > known;
    if stops || !(foreign || stranger) {
        return;
    }
    let item = NotModelled::of_program(base_name(program.text()), Effect::Model, STRANGE);
    reading.not_modelled.push(item.at_some(Some(program.origin())));
}

/// Families of models whose norms, gating and positions are not Megatron's defaults, as they appear in names of forks'
/// programs (`pretrain_llama.py`).
const FAMILIES: [&str; 14] = [
    "llama",
    "qwen",
    "mistral",
    "mixtral",
    "baichuan",
    "falcon",
    "gemma",
    "deepseek",
    "glm",
    "chatglm",
    "internlm",
    "olmo",
    "phi",
    "starcoder",
];

/// The parts of a model's blocks that Megatron's options state, each with a default of GPT's.
const BLOCKS: [Field; 5] = [
    Field::Swiglu,
    Field::Normalization,
    Field::PositionEmbeddingType,
    Field::UseRotaryPositionEmbeddings,
    Field::AddPositionEmbedding,
];

/// A fork's program that is named after a family of models builds it by itself if no word states a block: GPT's blocks,
/// Megatron's default, would be a different model (genggui001/Megatron-DeepSpeed-Llama's `pretrain_llama.py` builds
/// `LlamaModelPipe` of `megatron/model/llama_model.py`: RMSNorm, gated SiLU, rotary positions, its own output layer).
pub(super) fn tell_family(reading: &mut Reading, line: &CommandLine, claim: Option<Claim>) {
    const BUILT: &str = "blocks of a model that its program builds by itself: norms, gating and positions are not stated, and \
                         Megatron's defaults are GPT's";
    let Some(program) = line.program.as_ref().filter(|_| claim.is_none()) else { return };
    let name = base_name(program.text()).to_ascii_lowercase();
    let mut words = name.split(|character: char| !character.is_ascii_alphabetic());
    let is_family = words.any(|word| FAMILIES.contains(&word));
    let stated = |fields: &[Field]| reading.found.iter().any(|found| fields.contains(&found.field));
    let is_sized = stated(&[Field::NumLayers, Field::HiddenSize]);
    if is_family && is_sized && !stated(&BLOCKS) && !stated(&[Field::Model]) {
        let item = NotModelled::of_program(base_name(program.text()), Effect::Model, BUILT);
        reading.not_modelled.push(item.at_some(Some(program.origin())));
    }
}

/// Whether a program is named after DPO, or is in a folder named so and not itself named after another objective:
/// `dpo/sft.py` is the step before it. Online DPO makes rollouts.
fn compares_pairs(program: &str) -> bool {
    const OTHERS: [&str; 6] = ["sft", "pretrain", "reward", "kto", "orpo", "cpo"];
    let module = program.strip_suffix(".py").unwrap_or(program);
    let name = module.rsplit(['/', '.']).next().unwrap_or(module);
    let other = !name.contains("dpo") && OTHERS.iter().any(|word| name.contains(word));
    program.contains("dpo") && !program.contains("online") && !other
}

/// Whether a program is named for an objective that a settings file can state: preferences, or rollouts of one model.
fn is_stated_by_files(program: &Word) -> bool {
    const READ: [&str; 4] = ["grpo", "kto", "orpo", "rloo"];
    let name = base_name(program.text()).to_ascii_lowercase();
    let mut parts = name.split(|sign: char| !sign.is_ascii_alphanumeric());
    compares_pairs(program.text()) || parts.any(|part| READ.contains(&part))
}

/// A program that trains nothing, or something else, has no training figures. `elsewhere`: its settings are in a file
/// that is asked for by name. `given`: they are in one of the texts.
pub(super) fn tell(reading: &mut Reading, line: &CommandLine, elsewhere: bool, given: Option<Given>) {
    // A missing file is not told by items without a position, a framework's defaults, nor by words that nobody knows until it is there.
    if elsewhere {
        reading.not_modelled.retain(|item| item.span.is_some() && item.is_known);
    }
    let Some(program) = line.subcommand.as_ref().or(line.program.as_ref()) else { return };
    // Options of its examples' own programs, also under torchrun (`examples/tutorial/opt/opt/run_clm.py`).
    const COLOSSALS: [&str; 5] = ["mem-cap", "shardinit", "distplan", "gpu-margin-mem-ratio", "plugin"];
    let colossal = |name: &str| {
        let name = name.trim_start_matches('-').replace('_', "-");
        COLOSSALS.contains(&name.as_str())
    };
    if line.has(Launcher::Colossal) || reading.not_read.iter().any(|item| colossal(&item.name)) {
        let what = "how ColossalAI's plugins partition, shard and offload a model";
        reading.not_modelled.push(
            NotModelled::of_program("colossalai", Effect::Memory, what).at_some(Some(program.origin())),
        );
        return;
    }
    if is_olmo_core(program.text()) {
        let item = NotModelled::of_program(base_name(program.text()), Effect::Memory, OLMO_CORE_LACKING);
        reading.not_modelled.push(item.at_some(Some(program.origin())));
        return;
    }
    if let Purpose::NoTraining(what) = purpose(program.text()) {
        let item = NotModelled::of_program(base_name(program.text()), Effect::Memory, what);
        reading.not_modelled.push(item.at_some(Some(program.origin())));
        return;
    }
    // Rollouts, and what else shares the accelerators with them, are part of the plan.
    if let Some(framework) = reading.value(Field::RlFramework) {
        if let Some(what) = rollouts::lacking(framework, program.text()) {
            let item = NotModelled::of_program(program.text(), Effect::Memory, what);
            reading.not_modelled.push(item.at_some(Some(program.origin())));
        }
        return;
    }
    let transformers = matches!(reading.software, Some((Software::HfTransformers, _)));
    // Of a file that does not mention the objective, a custom program's name alone says too little.
    let told = line.subcommand.is_some() || given.is_none_or(|file| file.tells_objective);
    if is_of_unsloth(reading, program) && !elsewhere && given.is_none() {
        let what = "a program of unsloth's, which loads and adapts the model by itself; paste it";
        let item = NotModelled::of_program(base_name(program.text()), Effect::Memory, what);
        reading.not_modelled.push(item.at_some(Some(program.origin())));
        return;
    }
    adapters_by_name(reading, program);
    // Programs of FastChat and LLaVA, and programs derived from them (`fastchat/train/train_mem.py`,
    // `llava/train/train_mem.py`).
    let patched = transformers && base_name(program.text()) == "train_mem.py";
    if patched && reading.value(Field::AttnImplementation).is_none() {
        reading.take(
            Found::new(Field::AttnImplementation, "flash_attention_2", Origin::Derived)
                .by("program", Some(program.origin()))
                .note("train_mem.py turns flash attention on"),
        );
    }
    let pairs = transformers && told && compares_pairs(program.text());
    if pairs || transformers && told && base_name(program.text()).contains("reward") {
        reading.questions.retain(|question| question.asks != Asked::Setting(Field::TrainingObjective));
    }
    if pairs {
        // Without a beta OpenRLHF's reader takes pairs for those of a reward model.
        reading.keep(&|found| found.field != Field::TrainingObjective || !found.value.ends_with("_rewards"));
        reading.take(
            Found::new(Field::TrainingObjective, "dpo", Origin::Derived)
                .by("program", Some(program.origin())),
        );
        if casts_to_fp32(program.text()) && reading.value(Field::BaseQuantization).is_none() {
            reading.keep(&|found| found.field != Field::ParamsDtype);
            let found = Found::new(Field::ParamsDtype, "fp32", Origin::Derived);
            reading.take(found.by("program", Some(program.origin())));
        }
        // open-instruct runs the reference once, before the training, and keeps the results.
        if program.text().contains("dpo_tune_cache") {
            reading.take(
                Found::new(Field::ReferenceModel, "precomputed", Origin::Derived)
                    .by("program", Some(program.origin())),
            );
        } else {
            turn_dropout_off(reading);
        }
        return;
    }
    // TRL's trainer and those derived from it have one output per sequence (`trl/trainer/reward_trainer.py`).
    // open-instruct's has its own defaults.
    let name = base_name(program.text());
    if transformers && told && name.contains("reward") && !program.text().contains("open_instruct") {
        reading.take(
            Found::new(Field::TrainingObjective, "reward", Origin::Derived)
                .by("program", Some(program.origin())),
        );
        turn_dropout_off(reading);
        return;
    }
    let stops = |names: &[&str]| reading.not_modelled.iter().any(|item| names.contains(&item.name.as_str()));
    // The command `megatron rlhf` and its loss say what its type of training says.
    if stops(&["--rlhf-type"]) {
        return reading.not_modelled.retain(|item| item.name != "--loss-type");
    }
    let read = stops(&["rlhf_type", "rl", "stage"]);
    if transformers && (reading.value(Field::TrainingObjective).is_some() || read) {
        return;
    }
    let (effect, what) = match purpose(program.text()) {
        _ if elsewhere || is_bridged(reading, program.text()) => return,
        Purpose::NoTraining(_) => return,
        Purpose::Training if !reading.found.is_empty() || !reading.questions.is_empty() => return,
        Purpose::Training if given.is_some() => return,
        Purpose::Training => (Effect::Model, ELSEWHERE),
        // The settings file, which is read, states what is trained.
        Purpose::OtherTraining(..)
            if given.is_some_and(|file| file.tells_objective) && is_stated_by_files(program) =>
        {
            return;
        }
        Purpose::HybridTraining(what) => {
            let item = NotModelled::of_hybrid_program(base_name(program.text()), Effect::Model, what);
            return reading.not_modelled.push(item.at_some(Some(program.origin())));
        }
        Purpose::OtherTraining(effect, what) => (effect, what),
    };
    let item = NotModelled::of_program(base_name(program.text()), effect, what);
    reading.not_modelled.push(item.at_some(Some(program.origin())));
}
