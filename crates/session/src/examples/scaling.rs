//! The two scaling tables with which this page began: GPT from 126 million to a trillion parameters on A100s.

use super::example::{Chapter, Example, Measure, Published, settings};
use crate::UserInput;

/// One row of a published scaling table.
struct ScalingRow {
    name: &'static str,
    layers: u64,
    hidden: u64,
    heads: u64,
    tensor: u64,
    pipeline: u64,
    /// Model chunks per rank.
    chunks: u64,
    nodes: u64,
    micro: u64,
    global: u64,
    /// As published: TFLOP/s of a GPU, or seconds of a step.
    measured: &'static str,
}

type Numbers = [u64; 10];

const fn line(name: &'static str, numbers: Numbers, measured: &'static str) -> ScalingRow {
    let [layers, hidden, heads, tensor, pipeline, chunks, nodes, micro, global, _] = numbers;
    ScalingRow { name, layers, hidden, heads, tensor, pipeline, chunks, nodes, micro, global, measured }
}

/// Layers, hidden, heads, TP, PP, chunks, nodes, micro-batch, global batch; the last number is the year.
/// Chunks: Megatron-LM's examples/sc21/run_table_1.sh.
#[rustfmt::skip]
const NARAYANAN: [ScalingRow; 10] = [
    line("1.7B", [24, 2304, 24, 1, 1, 1, 4, 16, 512, 2021], "137"),
    line("3.6B", [30, 3072, 32, 2, 1, 1, 8, 16, 512, 2021], "138"),
    line("7.5B", [36, 4096, 32, 4, 1, 1, 16, 16, 512, 2021], "142"),
    line("18B", [40, 6144, 48, 8, 1, 1, 32, 8, 1024, 2021], "135"),
    line("39B", [48, 8192, 64, 8, 2, 1, 64, 4, 1536, 2021], "138"),
    line("76B", [60, 10_240, 80, 8, 4, 3, 128, 2, 1792, 2021], "140"),
    line("145B", [80, 12_288, 96, 8, 8, 2, 192, 2, 2304, 2021], "148"),
    line("310B", [96, 16_384, 128, 8, 16, 2, 240, 1, 2160, 2021], "155"),
    line("530B", [105, 20_480, 128, 8, 35, 3, 315, 1, 2520, 2021], "163"),
    line("1T", [128, 25_600, 160, 8, 64, 1, 384, 1, 3072, 2021], "163"),
];

/// Batch sizes and recomputation: NeMo-Megatron launcher, conf/training/gpt3, of July 2022.
#[rustfmt::skip]
const AZURE: [ScalingRow; 20] = [
    line("126M", [12, 768, 12, 1, 1, 1, 1, 4, 256, 2022], "0.9"),
    line("126M", [12, 768, 12, 1, 1, 1, 2, 4, 256, 2022], "0.5"),
    line("126M", [12, 768, 12, 1, 1, 1, 4, 4, 256, 2022], "0.2"),
    line("126M", [12, 768, 12, 1, 1, 1, 8, 4, 256, 2022], "0.1"),
    line("126M", [12, 768, 12, 1, 2, 1, 4, 4, 256, 2022], "0.3"),
    line("126M", [12, 768, 12, 1, 4, 1, 4, 4, 256, 2022], "0.5"),
    line("5B", [24, 4096, 32, 2, 1, 1, 2, 2, 1440, 2022], "37.4"),
    line("5B", [24, 4096, 32, 2, 1, 1, 10, 2, 1440, 2022], "7.7"),
    line("5B", [24, 4096, 32, 2, 1, 1, 20, 2, 1440, 2022], "4.3"),
    line("20B", [44, 6144, 48, 2, 4, 1, 36, 1, 1440, 2022], "9.3"),
    line("20B", [44, 6144, 48, 8, 1, 1, 36, 1, 1440, 2022], "15.8"),
    line("40B", [48, 8192, 64, 4, 4, 1, 16, 1, 1440, 2022], "36.1"),
    line("40B", [48, 8192, 64, 4, 4, 1, 32, 1, 1440, 2022], "18.8"),
    line("40B", [48, 8192, 64, 8, 4, 1, 32, 1, 1440, 2022], "21.3"),
    line("175B", [96, 12_288, 96, 8, 8, 1, 32, 2, 1536, 2022], "79.9"),
    line("175B", [96, 12_288, 96, 8, 8, 1, 96, 2, 1536, 2022], "29.1"),
    line("175B", [96, 12_288, 96, 8, 8, 1, 128, 2, 1536, 2022], "22.8"),
    line("530B", [105, 20_480, 128, 8, 35, 1, 105, 1, 1920, 2022], "88.2"),
    line("530B", [105, 20_480, 128, 8, 35, 1, 140, 1, 1920, 2022], "67.4"),
    line("530B", [105, 20_480, 128, 8, 35, 1, 175, 1, 1920, 2022], "55.7"),
];

/// Narayanan et al. 2021.
pub(super) fn narayanan() -> Chapter {
    let more = "&fp16&recompute_granularity=full&recompute_method=uniform&recompute_num_layers=1";
    Chapter {
        title: "GPT on Selene, 2021",
        source: "Narayanan et al. 2021, table 1 (arXiv 2104.04473)",
        examples: NARAYANAN.iter().map(|line| example(line, more, Measure::NarayananRate)).collect(),
    }
}

/// Microsoft's runs of October 2022.
// The width separates the 5B runs (4096) from those of 20B (6144), from which on Microsoft's configuration differs.
pub(super) fn azure() -> Chapter {
    let small = "&bf16";
    // Sequence parallelism and recomputed core attention from 20B on, all of which have tensor parallelism.
    let large = "&bf16&recompute_granularity=selective&sequence_parallel";
    let more = |line: &ScalingRow| if line.hidden < 6144 { small } else { large };
    Chapter {
        title: "GPT on Azure, 2022",
        source: "NeMo Megatron 22.06 on Azure NDm A100 v4, Microsoft, October 2022",
        examples: AZURE.iter().map(|line| example(line, more(line), Measure::Step)).collect(),
    }
}

/// The run of `line` as in a link, with `more` settings.
fn example(line: &ScalingRow, more: &str, measure: Measure) -> Example {
    let ScalingRow { name, layers, hidden, heads, tensor, pipeline, chunks, nodes, micro, global, measured } =
        line;
    let mut link = format!(
        "/1?accelerator=A100-SXM-80GB&software=megatron_legacy&layers={layers}&hidden={hidden}&heads={heads}\
         &seq=2048&nodes={nodes}&gpus_per_node=8&tp={tensor}&pp={pipeline}&mbs={micro}&gbs={global}{more}"
    );
    // The setting counts layers of a chunk, tables count chunks of a rank; one chunk is 1F1B, which the setting must
    // not state.
    if *chunks > 1 {
        let layers = layers / pipeline / chunks;
        link.push_str(&format!("&num_layers_per_virtual_pipeline_stage={layers}"));
    }
    let gpus = nodes * 8;
    // In 2021 and 2022 neither context nor expert parallelism: what is not TP or PP is data parallel.
    let replicas = gpus / tensor / pipeline;
    Example {
        name: format!("GPT {name} on {gpus} GPUs"),
        about: format!("TP {tensor}, PP {pipeline}, DP {replicas}, micro-batch {micro}"),
        published: Some(Published::new(measure, measured)),
        input: UserInput::of_settings(settings("", &link)),
    }
}
