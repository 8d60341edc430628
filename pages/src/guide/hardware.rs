//! The hardware catalog.

use maud::{Markup, html};
use shardscope::catalog::{accelerator, accelerator_names, platforms, usual_gpus_per_node};
use shardscope::explain::anchor;
use shardscope::plan::Accelerator;
use shardscope::units::{BytesPerSecond, FlopsPerSecond, decimal, grouped};

use super::write::{Chapter, Row, plain, prose, table};

/// What the source tags stand for.
const TAGS: &str = "ST: stas00/ml-engineering, accelerator chapter. NET: its network chapter. DGXC: NVIDIA's dgxc-benchmarking, \
    table of peaks. BS: BigScience's run logs. TT: torchtitan's benchmark notes. SEED1: Narayanan et al. 2021. SEED2: Azure NeMo \
    Megatron 22.06. R: recalled from data sheets, not checked against a stored copy. smi total: what nvidia-smi shows as total.";

/// Every accelerator.
pub(super) fn accelerators() -> Chapter {
    let mut rows = Vec::new();
    let mut sources = Vec::new();
    for name in accelerator_names() {
        let Some(known) = accelerator(name) else { continue };
        rows.push(Row::at(format!("accelerator-{}", anchor(name)), cells(&known)));
        sources.push(Row::new([plain(name), plain(&known.source)]));
    }
    let lead = prose(
        "From data sheets: dense peaks, and bandwidth per direction and accelerator. Memory is the total that the driver \
         reports, where known; SMs are multiprocessors or compute units. The shares of these peaks that training reaches \
         are the [constants|guide.html#constants] of the set in the last column. GEMM and link rates can be replaced by \
         your own measurements on the page.",
    );
    let headings = [
        "Accelerator",
        ">memory, GiB",
        ">TB/s",
        ">fp32",
        ">bf16 TFLOP/s",
        ">fp8",
        ">fp4",
        ">SMs",
        "fast link, GB/s",
        "network, GB/s",
        ">per node",
        ">context, MiB",
        "set",
    ];
    let figures = html! { (lead) (table("Accelerators", &headings, &rows)) };
    let headings = ["Accelerator", "Source of each figure"];
    let sources = html! { (prose(TAGS)) (table("Sources of accelerators' figures", &headings, &sources)) };
    Chapter::new("accelerators", "Accelerators", figures).part("Sources", sources)
}

fn cells(of: &Accelerator) -> Vec<Markup> {
    // Rounded before the division, so that the result shows no digits of a binary fraction.
    let tera = |rate: FlopsPerSecond| ((rate.get() / 1e9).round() / 1e3).to_string();
    let maybe = |rate: Option<FlopsPerSecond>| rate.map_or("–".to_owned(), tera);
    let link = |name: &str, rate: BytesPerSecond| format!("{name}, {}", giga(rate));
    let figures = [
        of.name.clone(),
        decimal(of.memory.in_gib(), 2),
        decimal(of.memory_bandwidth.get() / 1e12, 2),
        tera(of.peaks.fp32),
        tera(of.peaks.half),
        maybe(of.peaks.fp8),
        maybe(of.peaks.fp4),
        grouped(of.multiprocessors),
        link(&of.fast_link.name, of.fast_link.bandwidth),
        link(&of.network.name, of.network.bandwidth),
        grouped(usual_gpus_per_node(&of.name)),
        decimal(of.context.in_mib(), 0),
    ];
    let set = html! { a href="guide.html#constants" { (of.generation.name()) } };
    figures.map(plain).into_iter().chain([set]).collect()
}

fn giga(rate: BytesPerSecond) -> String {
    ((rate.get() / 1e6).round() / 1e3).to_string()
}

/// Every machine.
pub(super) fn machines() -> Chapter {
    let rows: Vec<_> = platforms()
        .map(|of| {
            let network = format!("{}, {}", of.network.name, giga(of.network.bandwidth));
            let accelerator =
                html! { a href={ "#accelerator-" (anchor(of.accelerator)) } { (of.accelerator) } };
            let source = html! { span.source { (of.source) } };
            let cells =
                [plain(of.name), accelerator, plain(grouped(of.gpus_per_node)), plain(network), source];
            Row::at(format!("machine-{}", anchor(of.name)), cells)
        })
        .collect();
    let lead = prose(
        "Nodes as they are built or rented. Network bandwidth is per direction and GPU: that of all adapters of a node \
         divided by its GPUs.",
    );
    let headings = ["Machine", "Accelerator", ">per node", "network, GB/s per GPU", "Source"];
    Chapter::new("machines", "Machines", html! { (lead) (table("Machines", &headings, &rows)) })
}
