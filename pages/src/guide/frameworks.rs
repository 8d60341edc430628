//! What can be read, and other ways to use the engine.

use maud::{Markup, html};
use shardscope::launch::formats::formats as read_formats;
use shardscope::launch::megatron::{known_flags, known_releases};
use shardscope::plan::Software;
use shardscope::units::grouped;

use super::write::{Chapter, Row, code, inline, pairs, plain, prose, table};

/// The software in words, in the syntax of `inline`.
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
        Software::Unsloth => {
            "unsloth's FastLanguageModel with its own kernels and backward passes, DPO and ORPO, and GRPO by vLLM on its weights"
        }
        Software::Automodel => "NeMo Automodel's own modules of Llama, Qwen2 and Qwen3",
        Software::Olmo => "OLMo's own trainer and modules (`allenai/OLMo`) on FSDP",
        Software::Xtuner => "XTuner before its version 1: transformers' modules with attention of its own",
        Software::OlmoCore => "OLMo-core's own modules and trainer (`allenai/OLMo-core`) on FSDP2",
        Software::Scaletorch => "ScaleTorch's own modules and trainer, of which times alone are known",
        Software::MaxText => "MaxText in JAX on TPUs, whose steps XLA compiles",
        Software::Levanter => "levanter in JAX on TPUs, whose steps XLA compiles",
        Software::Litgpt => "litgpt with its own modules and adapters",
        Software::LitgptPretrain => "litgpt's pre-training, which compiles its modules",
        Software::Torchtune06 => "torchtune 0.5 and 0.6: another norm, and losses over chunks of logits",
    }
}

/// Launch scripts and settings files.
pub(super) fn scripts() -> Chapter {
    let lead = prose(
        "Scripts are evaluated, never executed. Bash variables, arrays, functions, conditions, loops, arithmetic and \
         here-documents are followed, within bounds on iterations and sizes; programs that a script calls are not run. \
         The number of nodes and GPUs is read from `sbatch` directives, `srun`, `torchrun`, `mpirun`, `deepspeed` and \
         similar launchers. Anything that stays unknown is asked for. You can paste several files of one run, such as a \
         script and the configuration it names.",
    );
    let flags = prose(&format!(
        "Megatron-LM's command line is known from release {} to {} and main: {} flags, including renamed and removed \
         ones. Flags that change a result are read, flags that change none are listed as such, and for an unknown flag \
         the closest known one is suggested. [Settings|reference.html#settings] lists the flags of each setting.",
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
        "What a run saves, sends and defaults to depends on the training software. It is detected from the text and can \
         be set:",
    );
    Chapter::new("scripts", "Launch scripts and settings files", lead)
        .part("Flags", flags)
        .part("Settings files", pairs(&formats))
        .part("How public files fare", outcomes())
        .part("Software", html! { (runs) (pairs(&software)) })
}

/// Counts by format of the launch files listed in `crates/launch/tests/data/public_files.tsv`, each read on its own.
/// `cargo xtask public-files --update` writes both; a test compares them.
const OUTCOMES: &str = include_str!("outcomes.tsv");

/// The same for files drawn at random: `crates/launch/tests/data/drawn_files.tsv`, by the number of the draw.
const DRAWN: &str = include_str!("drawn.tsv");

/// Each draw as it was read before anybody looked at it: files, their origin, answers, misreadings, and what was
/// misread.
const DRAWS: &str = include_str!("draws.tsv");
const FIRST_READ: [&str; 6] = ["draw", "files", "from", "answered", "of them misread", "misread were"];

fn outcomes() -> Markup {
    let rows: Vec<Row> = OUTCOMES.lines().map(|line| Row::new(line.split('\t').map(plain))).collect();
    let about = prose(
        "156 launch files from 26 public repositories, each read on its own. Full: a report right away. Asked: a report \
         after at most three questions with proposed answers, follow-up questions and a missing model name included. \
         Stopped: something that is not modelled is named, and you can continue without it. Helped: the page says what is \
         missing. No way: there is no way on.",
    );
    let headings = ["format", "files", "full", "asked", "stopped", "helped", "no way"];
    let drawn: Vec<Row> = DRAWN.lines().map(|line| Row::new(line.split('\t').map(plain))).collect();
    let about_drawn = prose(
        "Seeded draws of launch files from public repositories, with nothing left out: evaluations, servers, conversions, \
         set-ups and trainings of models other than language models are included, and reported as such. Every draw was read once \
         by the readers as they stood, and the answers were compared by hand with the files and the software's source. An \
         answer counts as misread if any stated field, default or training method differs from the run's. All but nine \
         misread files have since been fixed at the cause, or now stop or ask; the third and fourth columns are from before \
         that. Eight of the nine do not say which release of verl they run, and are read with the newest release's defaults, \
         each marked as a default; the ninth uses a routing that torchtitan had for five weeks of 2025. The last three rows are \
         apart: of their 118 misread files 69 are mended, stop or ask, and 49 are not yet: a second model beside the trained one, a 4-bit \
         tower under unsloth, GPT-NeoX's and legacy Megatron's experts, OPT's dropout, StarCoder's keys expanded to all heads, the engine's \
         share of memory in verl 0.1 and 0.2, OpenRLHF's own loss of fine-tuning, LLaVA before 1.2, programs whose settings are in code that \
         is not here, and defaults of earlier releases that their files do not tell. Files of the last two rows are not in the table below.",
    );
    let read: Vec<Row> = DRAWS.lines().map(|line| Row::new(line.split('\t').map(plain))).collect();
    let about_today = prose("The same draws as they are read today:");
    let mut of_draws = headings;
    of_draws[0] = "draw";
    html! {
        (about) (table("Outcomes of public launch files, by format", &headings, &rows))
        (about_drawn) (table("Draws as they were first read", &FIRST_READ, &read))
        (about_today) (table("Outcomes of launch files drawn at random", &of_draws, &drawn))
    }
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
            "Share gives a link with the settings, readable and typed by hand (`…/#/1?model=…&tp=8`), or with the whole text, compressed. Both stay behind the `#`, which browsers send to no server. A link of any version opens in every later one; the site keeps links of each under `link-format/`.",
        ),
        (
            "A frame",
            "`?embed=memory` shows one panel: verdict, memory, time, schedule, communication, map or comparison. `<shard-scope>` of `embed.js` is a frame as high as its content.",
        ),
        (
            "JavaScript",
            "The package `shardscope` has `read`, `estimate`, `report`, `search`, `whyNot`, `ask`, `share` and `open`, typed, for Node, a page or a bundler.",
        ),
        (
            "The terminal",
            "`shardscope report --accelerator H100-SXM train.sh` prints the same as text, Markdown or JSON; `shardscope check train.sh` ends with 0 where the run fits and with 1 where it does not.",
        ),
        (
            "Rust",
            "`shardscope::estimate(script)?` is the report; `cargo doc --open -p shardscope` has the rest.",
        ),
    ];
    let list: Vec<_> = all.iter().map(|(name, about)| (plain(name), inline(about))).collect();
    Chapter::new("elsewhere", "Beyond the page", pairs(&list))
}
