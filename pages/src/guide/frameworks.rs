//! What is read, and how else the engine can be had.

use maud::{Markup, html};
use shardscope::launch::formats::formats as read_formats;
use shardscope::launch::megatron::{known_flags, known_releases};
use shardscope::plan::Software;
use shardscope::units::grouped;

use super::write::{Chapter, Row, code, inline, pairs, plain, prose, table};

/// What runs a plan.
fn of_software(software: Software) -> &'static str {
    match software {
        Software::MegatronLegacy => "Megatron-LM up to 23.06, or `--use-legacy-models`",
        Software::MegatronCoreLocal => "Megatron core with layers of its own (`--transformer-impl local`)",
        Software::MegatronCoreTe => "Megatron core with Transformer Engine, the default since core 0.6",
        Software::MegatronDeepspeed => "Megatron-DeepSpeed: BigScience and Microsoft",
        Software::Torchtitan => "torchtitan",
        Software::Nanotron => "nanotron",
        Software::GptNeox => "GPT-NeoX",
        Software::TorchFsdp => "other trainers on PyTorch's FSDP",
        Software::HfTransformers => "Hugging Face transformers with its Trainer, PEFT and TRL",
        Software::Torchtune => "torchtune after 0.6.1, with its own modules and adapters",
        Software::Unsloth => "unsloth's FastLanguageModel with its own kernels and backward passes",
        Software::Litgpt => "litgpt with its own modules and adapters",
        Software::Torchtune06 => "torchtune 0.5 and 0.6: another norm, and losses over chunks of logits",
    }
}

/// Launch scripts and settings files.
pub(super) fn scripts() -> Chapter {
    let lead = prose(
        "Scripts are evaluated and never executed: variables, arrays, functions, conditions, loops, arithmetic and here-documents of \
         bash are followed, with bounds on loops and sizes; programs that a script calls are not run. `sbatch` directives, \
         `srun`, `torchrun`, `mpirun`, `deepspeed` and the like say how many nodes and GPUs there are. What stays unknown \
         is asked for. Several texts together are one run: a script with the configuration that it names.",
    );
    let flags = prose(&format!(
        "Megatron-LM's command line is known from release {} to {} and main: {} flags, renamed and dropped ones too. A flag \
         that changes a figure is read, one that changes none is listed as such, and one that no release has is told with the \
         nearest that there is. [Settings|reference.html#settings] names the flags of each setting.",
        known_releases().first().copied().unwrap_or_default(),
        known_releases().last().copied().unwrap_or_default(),
        grouped(known_flags() as u64)
    ));
    let formats: Vec<_> =
        read_formats().map(|format| (plain(bare(format.name())), inline(format.about()))).collect();
    let software: Vec<_> = Software::ALL
        .iter()
        .map(|software| (code(software.name()), inline(of_software(*software))))
        .collect();
    let runs = prose(
        "What a run keeps, sends and starts with depends on the software. It is told by the text and can be set:",
    );
    Chapter::new("scripts", "Launch scripts and settings files", lead)
        .part("Flags", flags)
        .part("Settings files", pairs(&formats))
        .part("What comes of public files", outcomes())
        .part("Software", html! { (runs) (pairs(&software)) })
}

/// Counts by format of the launch files that `crates/launch/tests/data/public_files.tsv` lists, each read by itself.
/// `tools/public-files --update` writes both; a test holds them against each other.
const OUTCOMES: &str = include_str!("outcomes.tsv");

fn outcomes() -> Markup {
    let rows: Vec<Row> = OUTCOMES.lines().map(|line| Row::new(line.split('\t').map(plain))).collect();
    let about = prose(
        "156 launch files of 26 public repositories, each read by itself. Asked: at most three questions, whose proposals and the \
         name of a model make the plan, those included that an answer opens. Stopped: something that is not modelled is named, and the reader may go on \
         without it. Helped: the text says what is missing. No way: there is nothing to go on with.",
    );
    let headings = ["format", "files", "full", "asked", "stopped", "helped", "no way"];
    html! { (about) (table("What comes of public launch files, by format", &headings, &rows)) }
}

/// A name without its article.
fn bare(text: &str) -> &str {
    text.trim_start_matches("a ").trim_start_matches("an ")
}

/// Links, frames, packages.
pub(super) fn elsewhere() -> Chapter {
    let all = [
        (
            "A link",
            "Share gives a link with the settings, readable and typed by hand (`…/#/1?model=…&tp=8`), or with the whole text, compressed. Both stay behind the `#`, which browsers send to no server.",
        ),
        (
            "A frame",
            "`?embed=memory` shows one panel: verdict, memory, time, schedule, communication, map or comparison. `<shard-scope>` of `embed.js` is a frame as high as its content.",
        ),
        (
            "JavaScript",
            "The package `shardscope` has `read`, `estimate`, `report`, `search`, `share` and `open`, typed, for Node, a page or a bundler.",
        ),
        (
            "The terminal",
            "`shardscope report --accelerator H100-SXM train.sh` prints the same as text, Markdown or JSON; `shardscope check train.sh` ends with 0 where the run fits and with 1 where it does not.",
        ),
        (
            "Rust",
            "`shardscope::estimate(script)?` is the report; `cargo doc --open -p shardscope` tells the rest.",
        ),
    ];
    let list: Vec<_> = all.iter().map(|(name, about)| (plain(name), inline(about))).collect();
    Chapter::new("elsewhere", "Beyond the page", pairs(&list))
}
