//! The analysis tool of 2023: its example run, and its four measured ones.

use super::example::{Chapter, Example, Measure, Published};
use crate::{EXAMPLE, UserInput};

/// DP, PP, TP, micro-batch, global batch; measured `max_memory_allocated`, in GiB (printed without a unit).
const MEASURED: [([u64; 5], &str); 4] = [
    ([8, 1, 1, 2, 2048], "69.1"),
    ([4, 1, 2, 4, 512], "55.7"),
    ([4, 2, 1, 2, 2048], "49.8"),
    ([1, 1, 8, 4, 128], "28.8"),
];

pub(super) fn chapter() -> Chapter {
    let mut examples = vec![Example {
        name: "The tool's own script".to_owned(),
        about: "24 layers of 4096 on 16 GPUs, TP 2, PP 2, as a launch script".to_owned(),
        published: None,
        input: UserInput::from_text(EXAMPLE),
    }];
    examples.extend(MEASURED.iter().map(|&(numbers, published)| measured(numbers, published)));
    Chapter {
        title: "2023 Megatron analysis tool",
        source: "Megatron-LM issue \"Analysis Tool\", with measured peaks of \"Llama2 7B\" on 8 GPUs: a GPT with SwiGLU of 32 \
                 layers, vocabulary 50257, sequences of 2048, as the tool models it.",
        examples,
    }
}

fn measured([data, pipeline, tensor, micro, global]: [u64; 5], printed: &'static str) -> Example {
    // As the tool models it (`crates/report/src/analysis_tool/measured.rs`): not Llama's own widths.
    let script = format!(
        "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 \\\n  \
         --seq-length 2048 --max-position-embeddings 2048 --vocab-size 50257 --bf16 --swiglu --use-flash-attn \\\n  \
         --use-distributed-optimizer --tensor-model-parallel-size {tensor} --pipeline-model-parallel-size {pipeline} \\\n  \
         --micro-batch-size {micro} --global-batch-size {global}\n"
    );
    let mut input = UserInput::from_text(&script);
    // The issue names the machine only next to the script, so the accelerator is given by hand.
    input.settings.push(("accelerator".to_owned(), "H800-SXM".to_owned()));
    Example {
        name: format!("Llama2 7B of the tool, DP {data}, PP {pipeline}, TP {tensor}"),
        about: format!("8 GPUs, micro-batch {micro}, global batch {global}"),
        published: Some(Published::new(Measure::Allocated, printed)),
        input,
    }
}
