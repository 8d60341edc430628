//! What is read, and how else the engine can be had.

use maud::{Markup, html};
use shardscope::launch::formats::formats as read_formats;
use shardscope::launch::megatron::{known_flags, known_releases};
use shardscope::plan::Software;
use shardscope::units::grouped;

use super::write::{Chapter, Row, code, inline, pairs, plain, prose, table};

/// The software in words, as `inline` reads them.
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
            "unsloth's FastLanguageModel with its own kernels and backward passes, GRPO by vLLM on its weights too"
        }
        Software::Automodel => "NeMo Automodel's own modules of Llama, Qwen2 and Qwen3",
        Software::Olmo => "OLMo's own trainer and modules (`allenai/OLMo`) on FSDP",
        Software::Xtuner => "XTuner before its version 1: transformers' modules with attention of its own",
        Software::OlmoCore => "OLMo-core's own modules and trainer (`allenai/OLMo-core`) on FSDP2",
        Software::Scaletorch => "ScaleTorch's own modules and trainer, of which times alone are known",
        Software::MaxText => "MaxText in JAX on TPUs, whose steps XLA compiles",
        Software::Litgpt => "litgpt with its own modules and adapters",
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

/// Counts by format of the launch files that `crates/launch/tests/data/public_files.tsv` lists, each read by itself.
/// `tools/public-files --update` writes both; a test holds them against each other.
const OUTCOMES: &str = include_str!("outcomes.tsv");

/// The same of files that were drawn at random: `crates/launch/tests/data/drawn_files.tsv`, by the number of the draw.
const DRAWN: &str = include_str!("drawn.tsv");

fn outcomes() -> Markup {
    let rows: Vec<Row> = OUTCOMES.lines().map(|line| Row::new(line.split('\t').map(plain))).collect();
    let about = prose(
        "156 launch files from 26 public repositories, each read on its own. Full: a report right away. Asked: a report \
         after at most three questions with proposed answers, follow-up questions and a missing model name included. \
         Stopped: something that is not modelled is named, and you can continue without it. Helped: the page says what is \
         missing. No way: there is nothing to continue with.",
    );
    let headings = ["format", "files", "full", "asked", "stopped", "helped", "no way"];
    let drawn: Vec<Row> = DRAWN.lines().map(|line| Row::new(line.split('\t').map(plain))).collect();
    let about_drawn = prose(
        "Seeded draws of launch files from public repositories, with nothing left out: evaluations, servers, conversions, \
         set-ups and trainings of other models than language models are among them, and are told as such. The first draw was \
         gone through by hand and mended on. The second was read when that was done: 36 full, 60 asked, 91 stopped, 30 helped, \
         16 without a way on, and six of the 96 with an answer misread. Two came last, from repositories that were not read \
         before. Of reinforcement learning and pre-training: 25 full, 26 asked, 54 stopped, 45 helped, none without a way on, \
         and seven of the 51 with an answer misread (images, sound and diffusion beside or in place of a decoder, validation \
         alone), which now stop. Of fine-tuning: 4 full, 59 asked, 28 stopped, 9 helped, none without a way on; 35 of the 63 \
         with an answer were misread, 26 of them arguments of one program (Firefly), whose QLoRA was taken for full training. \
         A fourth, of fine-tuning too, has the sources of training programs among its files: 12 full, 145 asked, 103 stopped, 32 \
         helped, none without a way on; 32 of the 157 with an answer were misread, 15 of them programs that take all their \
         settings from a command line that was not there. A fifth took 35 repositories that nobody here had looked at: 12 full, \
         65 asked, 62 stopped, 39 helped; 20 of the 77 with an answer were misread, 19 of them programs of libraries that are not \
         known here and have some words of Megatron's, NeMo's or transformers', which now stop. A sixth, of 26 more, was read \
         then: 5 full, 31 asked, 42 stopped, 38 helped; 13 of the 37 with an answer at last were misread, six of them scripts of a \
         fork of 2022 taken for Megatron core. A seventh took 37 more: 17 full, 56 asked, 69 stopped, 46 helped; 22 of the 73 \
         with an answer were misread: seven had a second vision tower or experts under options that are not known here, five \
         generated or rolled out otherwise under an early TRL, four generated or evaluated and trained nothing, four held weights \
         in fp32 under transformers 4. An eighth took 43 repositories of people who fine-tune, most of them small and with programs \
         of their own: 7 full, 46 asked, 55 stopped, 52 helped; 16 of the 53 with an answer were misread: five had a trainer, a loss, \
         kernels or sharding of the program's own, three started no training or had their options printed by another program, two \
         were QLoRA's program taken for full training, three left defaults to another library or release, and three had settings \
         that were passed over or contradict each other. \
         A ninth, of pre-training and reinforcement learning, took 48 more: 68 full, 46 asked, 67 stopped, \
         20 helped; 45 of the 114 with an answer were misread: 16 programs made of verl that make other samples of a prompt, eight with \
         experts of DeepSpeed or of Megatron's legacy models, seven with the vocabulary of another tokenizer, four models of \
         nanotron's that are no Llama. \
         A tenth, half of fine-tuning and half of pre-training and reinforcement learning, took 56 more: 23 full, 44 asked, 50 \
         stopped, 35 helped; 17 of the 67 with an answer were misread: ten had settings of a fork's own (another attention, masks, a \
         loss, packing), for which the verdict was only marked, three the vocabulary of another tokenizer, two were trainers made of \
         verl that make other samples, one took its options for its program, one loads by a dictionary of its own. A setting that is not \
         known stops the verdict since, unless its name or value says that it is harmless. \
         An eleventh, in the same mix, took 69 more: 20 full, 52 asked, 86 stopped, 36 helped; 8 of the 72 with an answer were misread: two \
         had the entropy that verl until April 2025 has in its loss whatever its weight, two the same of slime before it left that graph \
         out, two the vocabulary of a model whose shape alone they share, two a trainer made of OpenRLHF. What was misread was mended, but \
         for slime's, as nothing in those texts tells the release. \
         A twelfth took 53 files of 35 more and 109 other files of repositories that were read before: 16 full, 54 asked, 63 stopped, \
         29 helped; 12 of the 70 with an answer were misread, 5 of the 26 and 7 of the 44: three were a fork's program that builds Llama and \
         was taken for GPT, three DeepSpeed files with fp16 alone that were taken for bf16, and one each had the precision that axolotl takes \
         by itself, flash attention that FastChat's program turns on, attention that depends on OpenRLHF's release, the window of Gemma \
         3, micro-batches that early verl multiplies, and responses that end before their longest. All of it was mended, stops or is asked. \
         A thirteenth took 71 files of 39 more, a tenth of which train nothing: 3 full, 20 asked, 31 stopped, 17 helped. One of the 23 with an \
         answer was misread, a supervised step in a folder named after DPO, and two had proposals that their text contradicts. What programs \
         of people's own say in groups of settings, in the environment's defaults and to their tokenizer is read since, which answers eight more.",
    );
    let mut of_draws = headings;
    of_draws[0] = "draw";
    html! {
        (about) (table("Outcomes of public launch files, by format", &headings, &rows))
        (about_drawn) (table("Outcomes of launch files drawn at random", &of_draws, &drawn))
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
            "`shardscope::estimate(script)?` is the report; `cargo doc --open -p shardscope` has the rest.",
        ),
    ];
    let list: Vec<_> = all.iter().map(|(name, about)| (plain(name), inline(about))).collect();
    Chapter::new("elsewhere", "Beyond the page", pairs(&list))
}
