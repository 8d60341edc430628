//! A plan as a Megatron-LM command.

use crate::deepspeed_text::{DEEPSPEED_FILE, deepspeed_text};
use crate::round::{Exported, write, written};
use shardscope_launch::{Resolution, megatron};
use shardscope_plan::{Field, Software};

/// Settings that begin a new line of the command.
const SECTIONS: [Field; 8] = [
    Field::NumLayers,
    Field::TensorModelParallelSize,
    Field::MicroBatchSize,
    Field::Software,
    Field::Optimizer,
    Field::RecomputeGranularity,
    Field::OverlapGradReduce,
    Field::MoeTokenDispatcherType,
];

/// The plan as a Megatron-LM command: the launch line and every flag that differs from a default.
#[must_use]
pub fn megatron_command(resolution: &Resolution) -> Exported {
    let legacy = is_legacy(resolution);
    let written_out = !written(resolution, Field::PipelineModelParallelLayout).is_empty();
    let spell = |field: Field, value: &str| match field {
        // Explicitly listed stages determine how many chunks there are, and `arguments.py` refuses both.
        Field::VirtualPipelineModelParallelSize if written_out => None,
        Field::ZeroStage if resolution.is(Software::MegatronDeepspeed) => {
            Some(format!("--zero-stage {value}"))
        }
        Field::OffloadOptimizer if resolution.on(field) => Some("--cpu-optimizer".to_owned()),
        Field::ZeroStage | Field::OffloadOptimizer | Field::Accelerator => None,
        // In the head.
        Field::Software if resolution.is(Software::MegatronDeepspeed) => None,
        Field::AttentionKernel if legacy => None,
        _ => megatron::spell(field, value, legacy).map(|words| quoted_all(&words)),
    };
    let mut head = launch(resolution, "pretrain_gpt.py");
    let mut beside = Vec::new();
    if resolution.is(Software::MegatronDeepspeed) {
        // Without both, its `--zero-stage` shards nothing: DeepSpeed is on only where it is asked for and has a file.
        head += &format!(" --deepspeed --deepspeed_config {DEEPSPEED_FILE}");
        // The file decides the stage, so the command is read back beside it.
        beside.push((DEEPSPEED_FILE, deepspeed_text(resolution)));
    }
    write(resolution, &spell, &|said| lay(&head, said), &beside)
}

/// Whether options are those of Megatron's legacy models, which their DeepSpeed fork shares.
pub(crate) fn is_legacy(resolution: &Resolution) -> bool {
    resolution.is(Software::MegatronLegacy) || resolution.is(Software::MegatronDeepspeed)
}

/// `torchrun` with the machines, and the program.
pub(crate) fn launch(resolution: &Resolution, program: &str) -> String {
    let (nodes, per_node) = (written(resolution, Field::NumNodes), written(resolution, Field::GpusPerNode));
    let mut line = "torchrun".to_owned();
    for (flag, count) in [("nnodes", nodes), ("nproc_per_node", per_node)] {
        if !count.is_empty() {
            line.push_str(&format!(" --{flag} {count}"));
        }
    }
    format!("{line} {program}")
}

/// The command over several lines, one for each kind of setting.
pub(crate) fn lay(head: &str, said: &[(Field, String)]) -> String {
    let section = |field: Field| SECTIONS.iter().filter(|first| first.index() <= field.index()).count();
    let mut text = head.to_owned();
    let mut before = None;
    for (field, words) in said {
        let here = Some(section(*field));
        text.push_str(if here == before { " " } else { " \\\n    " });
        text.push_str(words);
        before = here;
    }
    text.push('\n');
    text
}

/// Words quoted for the shell.
pub(crate) fn quoted_all(words: &[String]) -> String {
    let mut line = String::new();
    for word in words {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&quoted(word));
    }
    line
}

/// A word quoted for the shell.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./,:=+@%".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
