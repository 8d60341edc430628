//! The proposed machines fit the layout.

use shardscope_launch::{Argument, megatron, resolve};
use shardscope_plan::Field;

fn proposed(line: &str, name: &str) -> Option<String> {
    let shape = "--num-layers 96 --hidden-size 12288 --num-attention-heads 96 --seq-length 2048 --micro-batch-size 1 \
        --vocab-size 50257 --bf16";
    let resolution = resolve(&[megatron::read(&Argument::split(&format!("{shape} {line}")))], &[]);
    assert!(resolution.plan.is_none(), "{line}");
    resolution.questions.into_iter().find(|asked| asked.name() == name)?.proposal
}

#[test]
fn machines_are_proposed_that_the_layout_fits_on() {
    let world = Field::WorldSize.name();
    let layout = "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 16";
    assert_eq!(proposed(layout, world).as_deref(), Some("128"));
    let batch = format!("{layout} --global-batch-size 1536 --expert-model-parallel-size 32 --num-experts 32");
    assert_eq!(proposed(&batch, world).as_deref(), Some("4096"), "ETP is TP unless given: 8 x 32 x 16");
    // With one node, as on the machine for which the script was written, TP x PP does not fit.
    let stated = format!("{layout} --world-size 8");
    assert_eq!(proposed(&stated, Field::NumNodes.name()).as_deref(), Some("16"));
}
