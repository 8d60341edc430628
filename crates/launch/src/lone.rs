//! A settings file whose trainer leaves to the launch how ranks share the model, where there is no launch, and a
//! configuration of an engine without a program.

use crate::formats::{Dialect, FSDP_SETTINGS, Format, Role, Text, Trainer, open_stage, shared_by};
use crate::launch::Launch;
use crate::{Asked, Effect, Found, NotModelled, Origin, Question, Reading};
use shardscope_plan::{Field, Software};
use shardscope_source::{Code, Diagnostic, Source};

/// Maximum number of lines of a text, and of bytes in a remark, that are examined.
const MOST_LINES: usize = 2_000;
const LONGEST: usize = 400;

/// What says how ranks share the model where the trainer's own settings do not.
const LAUNCH: &str = "accelerate's configuration";

/// The same for axolotl, whose command may name DeepSpeed's file.
const OF_COMMAND: &str = "the --deepspeed option of the command";

/// accelerate shards nothing without a configuration or options of its own.
const UNSHARDED: &str = "0";

const SCRIPT: &str = "paste the script that names it, with its options";

const NO_PROGRAM: &str =
    "no program is given beside a DeepSpeed configuration; transformers' layers are assumed";
const PROGRAM: &str = "paste the launch line or the program beside it, or choose other software";

/// Whether a text tells whose layers train: one that names its software, or a command that states sizes of layers, which only
/// Megatron's flags do. Any other command, a program or words that start nothing leave it open.
fn tells_layers(text: &Text) -> bool {
    let sizes = [Field::NumLayers, Field::HiddenSize];
    let stated = |found: &Found| {
        matches!(found.origin, Origin::Script | Origin::Environment) && sizes.contains(&found.field)
    };
    text.reading.software.is_some() || text.format.is_none() && text.reading.found.iter().any(stated)
}

/// A DeepSpeed configuration with numbers of its own, beside which nothing tells whose layers train. Beside a script of
/// Megatron-DeepSpeed it is that script's.
fn without_program(texts: &mut [Text]) {
    let is_engine = |text: &Text| text.format.is_some_and(|format| format.role() == Role::Engine);
    if texts.iter().any(|text| !is_engine(text) && tells_layers(text)) {
        return;
    }
    for text in texts {
        let reading = &mut text.reading;
        let is_numbered = matches!(reading.software, Some((Software::MegatronDeepspeed, _)));
        if is_numbered && reading.value(Field::CpuCheckpointing) == Some("true") {
            reading.diagnostics.push(Diagnostic::warning(Code::MissingFile, OWN_CHECKPOINTS).hint(SOFTWARE));
        } else if is_numbered {
            reading.software = Some((Software::HfTransformers, "a DeepSpeed configuration alone".to_owned()));
            let engine = Found::new(Field::DataParallelEngine, "deepspeed", Origin::Derived);
            reading.take(engine.note("a DeepSpeed configuration"));
            // `deepspeed/runtime/config.py:_batch_assertion`: train_batch_size is the product with the number of ranks.
            let [all, micro, steps] = [Field::GlobalBatchSize, Field::MicroBatchSize, Field::NumMicroBatches]
                .map(|field| reading.count(field));
            let each =
                micro.zip(steps).and_then(|(micro, steps)| micro.checked_mul(steps)).filter(|each| *each > 0);
            if let Some((all, each)) = all.zip(each).filter(|(all, each)| all.is_multiple_of(*each)) {
                let ranks = Found::new(Field::WorldSize, (all / each).to_string(), Origin::Derived);
                reading.take(ranks.note("train_batch_size / (micro-batch x accumulation)"));
            }
            reading.diagnostics.push(Diagnostic::warning(Code::MissingFile, NO_PROGRAM).hint(PROGRAM));
        }
    }
}

/// Whoever turns it on calls DeepSpeed's checkpoints, which transformers never does: here its layers are no likely guess.
const OWN_CHECKPOINTS: &str = "no program is given; cpu_checkpointing acts only in programs that call DeepSpeed's own checkpoints, as \
     Megatron-DeepSpeed does";
const SOFTWARE: &str = "paste the launch line or the program beside it; if it trains transformers' layers, set software to hf_transformers";

const FSDP: &str = "fsdp";
const FSDP2: &str = "fsdp2";

/// The word of a remark that names what ranks shard, and its stage: `# Config for 16 nodes of 8 H100s with FSDP1`, a launch line in a
/// comment.
fn remarked(source: &Source) -> Option<(&'static str, &'static str)> {
    const SIGNS: [(&str, &str); 17] = [
        ("zero3", "3"),
        ("zero-3", "3"),
        ("zero_3", "3"),
        ("zero 3", "3"),
        ("stage 3", "3"),
        ("stage3", "3"),
        (FSDP2, "3"),
        (FSDP, "3"),
        ("zero2", "2"),
        ("zero-2", "2"),
        ("zero_2", "2"),
        ("zero 2", "2"),
        ("stage2", "2"),
        ("zero1", "1"),
        ("zero-1", "1"),
        ("zero_1", "1"),
        ("stage1", "1"),
    ];
    let parts = (0..source.parts().len()).map(|index| source.part_text(index));
    let remarks = parts.flat_map(|text| text.lines().take(MOST_LINES)).filter_map(|line| {
        let (before, remark) = line.split_once('#')?;
        let is_remark = before.is_empty() || before.ends_with(char::is_whitespace);
        (is_remark && remark.len() <= LONGEST).then(|| remark.to_ascii_lowercase())
    });
    // A remark that denies is no proposal.
    const DENIALS: [&str; 6] = ["no ", "not ", "without", "unsupported", "instead", "n't"];
    let mut remarks = remarks.filter(|remark| !DENIALS.iter().any(|word| remark.contains(word)));
    // A key that is switched off (`# fsdp: full_shard`) shards nothing.
    let is_key = |remark: &str| {
        let key = remark.trim_start_matches(['#', ' ']);
        key.split_once(':').is_some_and(|(key, _)| key.starts_with(FSDP) && !key.contains(' '))
    };
    remarks.find_map(|remark| {
        let says = |sign: &str| remark.contains(sign) && !(sign.starts_with(FSDP) && is_key(&remark));
        SIGNS.iter().find(|(sign, _)| says(sign)).copied()
    })
}

/// Whether a remark has a launch that names a file with FSDP's settings.
fn is_launched_in_a_remark(source: &Source) -> bool {
    let mut parts = (0..source.parts().len()).map(|index| source.part_text(index));
    parts.any(|text| {
        text.lines().take(MOST_LINES).filter(|line| line.len() <= LONGEST).any(|line| {
            let remark = line.split_once('#').map_or("", |(_, remark)| remark);
            remark.contains("config_file") && remark.to_ascii_lowercase().contains(FSDP)
        })
    })
}

/// Leaves the precision open where options of Megatron-LM stand without the command that they belong to (`launched`), and in a GPT-NeoX
/// file without micro-batch, optimizer and precision, which is joined with others (`configs/README.md`), unless some text states one.
pub(crate) fn ask_precision(texts: &mut [Text], launched: &mut [Text], launch: Option<&Launch>) {
    const STATES: [Field; 3] = [Field::ParamsDtype, Field::Bf16, Field::Fp16];
    let fragment = launch
        .filter(|launch| launch.diagnostics.iter().any(|said| said.code == Code::Fragment))
        .map_or(&[][..], |launch| launch.arguments.as_slice());
    if let Some(word) = fragment.iter().find(|word| word.text.starts_with("--grpo-"))
        && let Some(text) = launched.first_mut()
    {
        let name = word.text.split('=').next().unwrap_or_default();
        let what = "rollouts and log-probabilities of Megatron-LM's train_rl.py, whose command is not here";
        let item = NotModelled::new(name, "", Effect::Memory, what).at_some(word.span);
        text.reading.not_modelled.push(item);
    }
    let has =
        |text: &Text, fields: &[Field]| text.reading.found.iter().any(|found| fields.contains(&found.field));
    if texts.iter().chain(&*launched).any(|text| has(text, &STATES)) {
        return;
    }
    let is = |text: &Text, software: Software| matches!(text.reading.software, Some((known, _)) if known == software);
    // A command beside them, as of a program or a job, is the one that takes them.
    let started = texts.iter().any(|text| text.format.is_none() && !text.reading.found.is_empty());
    let of_megatron = |text: &&mut Text| {
        !fragment.is_empty()
            && !started
            && text.format.is_none()
            && text.reading.value(Field::RlFramework).is_none()
            && has(text, &[Field::NumLayers, Field::HiddenSize])
            && (text.reading.software.is_none() || MEGATRON.iter().any(|software| is(text, *software)))
    };
    if let Some(text) = launched.iter_mut().find(of_megatron) {
        let mut open = Found::new(Field::Bf16, "", Origin::Default);
        open.hole = Some("the command that starts the training".to_owned());
        text.reading.take(open);
        one_sequence(text);
    }
    let own = |found: &Found| {
        found.origin == Origin::Script
            && found.hole.is_none()
            && matches!(found.field, Field::MicroBatchSize | Field::Optimizer)
    };
    if texts.iter().any(|text| text.reading.found.iter().any(own)) {
        return;
    }
    if let Some(text) = texts.iter_mut().find(|text| is(text, Software::GptNeox)) {
        let mut open = Found::new(Field::Fp16, "", Origin::Default);
        open.hole = Some(JOINED.to_owned());
        text.reading.take(open);
        one_sequence(text);
        text.reading.questions.push(Question {
            asks: Asked::Setting(Field::Fp16),
            prompt: "Does another file of this run turn fp16 on? Paste it beside this one, or answer"
                .to_owned(),
            choices: ["true", "false"].map(str::to_owned).to_vec(),
            proposal: Some("true".to_owned()),
        });
    }
}

/// As for a launcher's template (`template.rs`): where precision and machines are open, the batch is not asked for, too.
fn one_sequence(text: &mut Text) {
    let known = [
        Field::MicroBatchSize,
        Field::GlobalBatchSize,
        Field::WorldSize,
        Field::NumNodes,
        Field::GpusPerNode,
    ];
    if !text.reading.found.iter().any(|found| known.contains(&found.field)) {
        let one = Found::new(Field::MicroBatchSize, "1", Origin::Default);
        text.reading
            .take(one.note("one sequence: these options leave the batch to what starts the training"));
    }
}

/// Software whose precision is a switch of the command, off by default.
const MEGATRON: [Software; 4] = [
    Software::MegatronLegacy,
    Software::MegatronCoreLocal,
    Software::MegatronCoreTe,
    Software::MegatronDeepspeed,
];

/// What states the precision of a GPT-NeoX file that has none.
const JOINED: &str = "the files that the run joins with this one";

/// Whether an axolotl file has the key of DeepSpeed's file without a value (`deepspeed: # zero1.json, multi-gpu only`): its command may have one
/// (`accelerate launch -m axolotl.cli.train x.yml --deepspeed …`).
fn leaves_empty(text: &Text, source: &Source) -> bool {
    let empty = |line: &str| {
        let value = line.strip_prefix("deepspeed:");
        value.is_some_and(|value| value.split('#').next().unwrap_or_default().trim().is_empty())
    };
    let part = source.parts().iter().position(|part| part.name == text.name);
    text.format == Some(Format::new(&Trainer(Dialect::Axolotl)))
        && part.is_some_and(|part| source.part_text(part).lines().take(MOST_LINES).any(empty))
}

/// Asks what ranks shard where neither a command nor a file of the launcher or of the engine says it.
pub(crate) fn ask(texts: &mut [Text], source: &Source) {
    if let [text] = texts
        && text.format.is_some_and(|format| format.name() == FSDP_SETTINGS)
    {
        let said = Diagnostic::error(Code::NoTraining, FSDP_SETTINGS);
        text.reading = Reading { diagnostics: vec![said.hint(SCRIPT)], ..Reading::default() };
        return;
    }
    without_program(texts);
    let decides = |text: &Text| {
        text.format.is_none_or(|format| matches!(format.role(), Role::Job | Role::Launcher | Role::Engine))
    };
    let says = |text: &Text| {
        let found = &text.reading.found;
        found.iter().any(|found| matches!(found.field, Field::ZeroStage | Field::DataParallelEngine))
    };
    if texts.iter().any(|text| decides(text) || says(text)) {
        return;
    }
    let remark = remarked(source);
    // LLaMA-Factory's files shard by DeepSpeed's; FSDP is a matter of the launch that a remark of its examples has.
    let by_fsdp = |text: &Text| {
        text.format == Some(Format::new(&Trainer(Dialect::LlamaFactory)))
            && remark.is_some_and(|(sign, _)| sign.starts_with(FSDP))
            && is_launched_in_a_remark(source)
    };
    let left = |text: &&mut Text| {
        text.format.is_some_and(|format| format.is_sharded_by_launch())
            || leaves_empty(text, source)
            || by_fsdp(text)
    };
    if let Some(text) = texts.iter_mut().find(left) {
        let whose = if leaves_empty(text, source) { OF_COMMAND } else { LAUNCH };
        let (mut found, mut question) = open_stage(whose, whose, None);
        found.origin = Origin::Default;
        question.proposal = Some(remark.map_or(UNSHARDED, |(_, stage)| stage).to_owned());
        // accelerate's version is 1 unless its file says 2.
        let engine = match remark {
            Some((FSDP2, _)) => Some("fsdp2"),
            Some((FSDP, _)) => Some("fsdp1"),
            _ => None,
        };
        if let Some(engine) = engine {
            shared_by(&mut text.reading, engine, "a remark of the text names FSDP");
        }
        text.reading.take(found);
        text.reading.questions.push(question);
    }
}
