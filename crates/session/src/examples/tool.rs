//! The analysis tool of 2023: the run that it was shown with, and its four measured ones.

use super::example::{Chapter, Example, Measure, settings};
use crate::{EXAMPLE, Hand};

/// DP, PP, TP, micro-batch, global batch; measured `max_memory_allocated`.
const MEASURED: [([u64; 5], &str); 4] = [
    ([8, 1, 1, 2, 2048], "69.1 GB"),
    ([4, 1, 2, 4, 512], "55.7 GB"),
    ([4, 2, 1, 2, 2048], "49.8 GB"),
    ([1, 1, 8, 4, 128], "28.8 GB"),
];

pub(super) fn chapter() -> Chapter {
    let mut examples = vec![Example {
        name: "The tool's own script".to_owned(),
        about: "24 layers of 4096 on 16 GPUs, TP 2, PP 2, as a launch script".to_owned(),
        published: String::new(),
        measure: Measure::Allocated,
        hand: Hand::of(EXAMPLE),
    }];
    examples.extend(MEASURED.iter().map(|&(numbers, published)| measured(numbers, published)));
    Chapter {
        title: "The analysis tool of 2023",
        source: "Megatron-LM issue \"Analysis Tool\", with measured peaks of Llama 2 7B on 8 GPUs",
        examples,
    }
}

fn measured([data, pipeline, tensor, micro, global]: [u64; 5], published: &str) -> Example {
    let link = format!(
        "/1?accelerator=H800-SXM&bf16&gbs={global}&gpus_per_node=8&mbs={micro}&nodes=1&pp={pipeline}&seq=4096\
         &software=megatron_legacy&tp={tensor}&use_distributed_optimizer&use_flash_attn"
    );
    Example {
        name: format!("Llama 2 7B, DP {data}, PP {pipeline}, TP {tensor}"),
        about: format!("8 GPUs, micro-batch {micro}, global batch {global}"),
        published: format!("{published} allocated"),
        measure: Measure::Allocated,
        hand: Hand::of_settings(settings("Llama-2-7B", &link)),
    }
}
