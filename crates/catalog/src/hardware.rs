//! Accelerators according to their data sheets.
//!
//! Source tags: ST = stas00/ml-engineering accelerator chapter (commit 744d01e); NET = its network chapter; DGXC =
//! NVIDIA dgxc-benchmarking peak table; BS = bigscience run logs; TT = torchtitan benchmark notes; R = recalled from
//! data sheets, not verified in a stored copy. Memory is the total that the driver shows if that is known, otherwise
//! the label in GiB. Multiprocessors: data sheets (R). Context: measured on V100 and A100-40GB (BS), bounded by a run
//! on the T4; other GPUs use the A100's until they are measured. A TPU's is the memory that XLA's compiler makes
//! available to no program (XLA: libtpu 0.0.42.1, `tests/data/maxtext/steps.jsonl`). Host link: the bandwidth that
//! copies achieve with both directions in use, as NET measured it: 55 of PCIe 5's 63 GB/s on eight H200, 172 of
//! NVLink-C2C's 450 on half a GB300, whose two directions share the host's memory; the same fraction for other
//! generations of PCIe. Network: one adapter per accelerator in the usual node of its generation (NET);
//! `catalog::nodes` has others. Processors: those of the vendor's own system or of the cloud that rents the part, as
//! `Processor` names them.

use shardscope_plan::{Accelerator, Cluster, Generation, Link, Measured, Peaks, Processor};
use shardscope_units::{Bytes, BytesPerSecond, FlopsPerSecond};

/// One accelerator in data-sheet units.
struct Row {
    name: &'static str,
    generation: Generation,
    /// CUDA's major compute capability ("CUDA GPUs", developer.nvidia.com/cuda-gpus).
    capability: Option<u64>,
    /// Total memory that the driver shows. Unit: MiB.
    memory_mib: u64,
    /// Memory bandwidth. Unit: TB/s.
    memory_tb_s: f64,
    /// TFLOP/s, dense.
    fp32: f64,
    /// TFLOP/s, dense.
    half: f64,
    /// TFLOP/s, dense.
    fp8: Option<f64>,
    /// TFLOP/s, dense.
    fp4: Option<f64>,
    multiprocessors: u64,
    /// GB/s per direction.
    fast_link: (&'static str, f64),
    /// GB/s per direction, both in use.
    host_link: (&'static str, f64),
    fast_domain: u64,
    gpus_per_node: u64,
    /// GB/s per direction and accelerator.
    network: (&'static str, f64),
    /// The driver's context, or the memory that a TPU's runtime reserves. Unit: MiB.
    context_mib: u64,
    /// Of the usual node.
    processor: Processor,
    source: &'static str,
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row { name: "V100-SXM2-32GB", generation: Generation::V100, capability: Some(7), memory_mib: 32510, memory_tb_s: 0.9, fp32: 15.7, half: 125.0, fp8: None, fp4: None, multiprocessors: 80, fast_link: ("NVLink2", 150.0), host_link: ("PCIe 3", 13.7), fast_domain: 4, gpus_per_node: 4, network: ("Omni-Path", 12.5), context_mib: 1271, processor: Processor::CascadeLake, source: "fp16 125: BS/R; link: NET; smi total, context: BS logs; memory bandwidth, fp32: R" },
    Row { name: "V100-SXM2-16GB", generation: Generation::V100, capability: Some(7), memory_mib: 16160, memory_tb_s: 0.9, fp32: 15.7, half: 125.0, fp8: None, fp4: None, multiprocessors: 80, fast_link: ("NVLink2", 150.0), host_link: ("PCIe 3", 13.7), fast_domain: 4, gpus_per_node: 4, network: ("Omni-Path", 12.5), context_mib: 1271, processor: Processor::CascadeLake, source: "link: NET; rest: R" },
    Row { name: "V100-SXM3-32GB", generation: Generation::V100, capability: Some(7), memory_mib: 32510, memory_tb_s: 0.98, fp32: 15.7, half: 125.0, fp8: None, fp4: None, multiprocessors: 80, fast_link: ("NVLink2", 150.0), host_link: ("PCIe 3", 13.7), fast_domain: 16, gpus_per_node: 16, network: ("Omni-Path", 12.5), context_mib: 1271, processor: Processor::Skylake, source: "all: R" },
    Row { name: "A100-SXM-40GB", generation: Generation::A100Of40, capability: Some(8), memory_mib: 40960, memory_tb_s: 1.555, fp32: 19.5, half: 312.0, fp8: None, fp4: None, multiprocessors: 108, fast_link: ("NVLink3", 300.0), host_link: ("PCIe 4", 27.0), fast_domain: 8, gpus_per_node: 8, network: ("InfiniBand HDR", 25.0), context_mib: 1573, processor: Processor::Rome, source: "tflops, achieved: ST (80 GB part); context: BS log; bandwidth, smi total: R" },
    Row { name: "A100-SXM-80GB", generation: Generation::A100, capability: Some(8), memory_mib: 81920, memory_tb_s: 2.04, fp32: 19.5, half: 312.0, fp8: None, fp4: None, multiprocessors: 108, fast_link: ("NVLink3", 300.0), host_link: ("PCIe 4", 27.0), fast_domain: 8, gpus_per_node: 8, network: ("InfiniBand HDR", 25.0), context_mib: 1573, processor: Processor::Rome, source: "tflops, achieved, capacity: ST; bandwidth: R (ST rounds to 2.00); link: NET; smi total: R" },
    Row { name: "A100-PCIe-80GB", generation: Generation::A100, capability: Some(8), memory_mib: 81920, memory_tb_s: 1.94, fp32: 19.5, half: 312.0, fp8: None, fp4: None, multiprocessors: 108, fast_link: ("PCIe 4", 31.0), host_link: ("PCIe 4", 27.0), fast_domain: 8, gpus_per_node: 8, network: ("InfiniBand HDR", 25.0), context_mib: 1573, processor: Processor::Rome, source: "tflops, achieved, memory: ST; link: NET" },
    Row { name: "A800-SXM-80GB", generation: Generation::A100, capability: Some(8), memory_mib: 81920, memory_tb_s: 2.04, fp32: 19.5, half: 312.0, fp8: None, fp4: None, multiprocessors: 108, fast_link: ("NVLink3", 200.0), host_link: ("PCIe 4", 27.0), fast_domain: 8, gpus_per_node: 8, network: ("InfiniBand HDR", 25.0), context_mib: 1573, processor: Processor::Rome, source: "all: R" },
    Row { name: "T4", generation: Generation::V100, capability: Some(7), memory_mib: 15360, memory_tb_s: 0.32, fp32: 8.1, half: 65.0, fp8: None, fp4: None, multiprocessors: 40, fast_link: ("PCIe 3", 15.75), host_link: ("PCIe 3", 13.7), fast_domain: 8, gpus_per_node: 8, network: ("Ethernet", 1.5625), context_mib: 504, processor: Processor::Skylake, source: "tflops, memory: NVIDIA T4 data sheet, R; smi total: Colab's runtime, R; context: at most what a run on it left, of which PyTorch held 14.508 GiB (unslothai/notebooks@bdda2efc7ad5, nb/Qwen3_(14B)-Reasoning-Conversational.ipynb); link: NET (PCIe 3); network: g4dn.metal, R" },
    Row { name: "L4", generation: Generation::A100, capability: Some(8), memory_mib: 23034, memory_tb_s: 0.3, fp32: 30.3, half: 121.0, fp8: Some(242.5), fp4: None, multiprocessors: 58, fast_link: ("PCIe 4", 31.0), host_link: ("PCIe 4", 27.0), fast_domain: 8, gpus_per_node: 8, network: ("Ethernet", 25.0), context_mib: 1573, processor: Processor::Milan, source: "tflops, memory: NVIDIA L4 data sheet (half of its figures with sparsity), R; link: NET (PCIe 4)" },
    Row { name: "L40S", generation: Generation::A100, capability: Some(8), memory_mib: 49152, memory_tb_s: 0.864, fp32: 91.6, half: 362.0, fp8: Some(733.0), fp4: None, multiprocessors: 142, fast_link: ("PCIe 4", 31.0), host_link: ("PCIe 4", 27.0), fast_domain: 8, gpus_per_node: 8, network: ("Ethernet", 25.0), context_mib: 1573, processor: Processor::Milan, source: "tflops, memory: ST; link: NET (PCIe 4)" },
    Row { name: "H100-SXM", generation: Generation::H100, capability: Some(9), memory_mib: 81559, memory_tb_s: 3.35, fp32: 67.0, half: 989.0, fp8: Some(1979.0), fp4: None, multiprocessors: 132, fast_link: ("NVLink4", 450.0), host_link: ("PCIe 5", 55.0), fast_domain: 8, gpus_per_node: 8, network: ("InfiniBand NDR", 50.0), context_mib: 1573, processor: Processor::SapphireRapids, source: "tflops, achieved, memory: ST; peaks: DGXC; link: NET; smi total: R" },
    Row { name: "H100-SXM-96GB-HBM2e", generation: Generation::H100Hbm2e, capability: Some(9), memory_mib: 98304, memory_tb_s: 2.4, fp32: 67.0, half: 989.0, fp8: Some(1979.0), fp4: None, multiprocessors: 132, fast_link: ("NVLink4", 450.0), host_link: ("PCIe 5", 55.0), fast_domain: 8, gpus_per_node: 8, network: ("InfiniBand NDR", 50.0), context_mib: 1573, processor: Processor::SapphireRapids, source: "memory, power: TT; tflops: nominal H100, not reached at 500 W" },
    Row { name: "H100-PCIe", generation: Generation::H100, capability: Some(9), memory_mib: 81559, memory_tb_s: 2.0, fp32: 51.0, half: 756.0, fp8: Some(1513.0), fp4: None, multiprocessors: 114, fast_link: ("PCIe 5", 63.0), host_link: ("PCIe 5", 55.0), fast_domain: 8, gpus_per_node: 8, network: ("InfiniBand NDR", 50.0), context_mib: 1573, processor: Processor::SapphireRapids, source: "tflops, memory: ST; link: NET" },
    Row { name: "H100-NVL", generation: Generation::H100, capability: Some(9), memory_mib: 96256, memory_tb_s: 3.9, fp32: 60.0, half: 835.0, fp8: Some(1671.0), fp4: None, multiprocessors: 132, fast_link: ("NVLink bridge", 300.0), host_link: ("PCIe 5", 55.0), fast_domain: 2, gpus_per_node: 8, network: ("InfiniBand NDR", 50.0), context_mib: 1573, processor: Processor::SapphireRapids, source: "all: R" },
    Row { name: "H800-SXM", generation: Generation::H100, capability: Some(9), memory_mib: 81559, memory_tb_s: 3.35, fp32: 67.0, half: 989.0, fp8: Some(1979.0), fp4: None, multiprocessors: 132, fast_link: ("NVLink4", 200.0), host_link: ("PCIe 5", 55.0), fast_domain: 8, gpus_per_node: 8, network: ("InfiniBand NDR", 50.0), context_mib: 1573, processor: Processor::SapphireRapids, source: "all: R (peak 989.4 used by XTuner for its MFU)" },
    Row { name: "H20", generation: Generation::H100, capability: Some(9), memory_mib: 98304, memory_tb_s: 4.0, fp32: 44.0, half: 148.0, fp8: Some(296.0), fp4: None, multiprocessors: 78, fast_link: ("NVLink4", 450.0), host_link: ("PCIe 5", 55.0), fast_domain: 8, gpus_per_node: 8, network: ("InfiniBand NDR", 50.0), context_mib: 1573, processor: Processor::SapphireRapids, source: "all: R" },
    Row { name: "H200-SXM", generation: Generation::H100, capability: Some(9), memory_mib: 143771, memory_tb_s: 4.8, fp32: 67.0, half: 989.0, fp8: Some(1979.0), fp4: None, multiprocessors: 132, fast_link: ("NVLink4", 450.0), host_link: ("PCIe 5", 55.0), fast_domain: 8, gpus_per_node: 8, network: ("InfiniBand NDR", 50.0), context_mib: 1573, processor: Processor::SapphireRapids, source: "tflops, achieved, memory: ST; link: NET; smi total: R" },
    Row { name: "B200", generation: Generation::B200, capability: Some(10), memory_mib: 183359, memory_tb_s: 8.0, fp32: 80.0, half: 2250.0, fp8: Some(4500.0), fp4: Some(9000.0), multiprocessors: 148, fast_link: ("NVLink5", 900.0), host_link: ("PCIe 5", 55.0), fast_domain: 8, gpus_per_node: 8, network: ("InfiniBand NDR", 50.0), context_mib: 1573, processor: Processor::EmeraldRapids, source: "tflops: ST, DGXC; achieved, memory: ST; link: NET; smi total: R" },
    Row { name: "GB200", generation: Generation::GB200, capability: Some(10), memory_mib: 190464, memory_tb_s: 8.0, fp32: 80.0, half: 2500.0, fp8: Some(5000.0), fp4: Some(10000.0), multiprocessors: 148, fast_link: ("NVLink5", 900.0), host_link: ("NVLink-C2C", 172.0), fast_domain: 72, gpus_per_node: 4, network: ("InfiniBand NDR", 50.0), context_mib: 1573, processor: Processor::Grace, source: "tflops, achieved, memory: ST; link: NET" },
    Row { name: "B300", generation: Generation::GB300, capability: Some(10), memory_mib: 294912, memory_tb_s: 8.0, fp32: 80.0, half: 2250.0, fp8: Some(4500.0), fp4: Some(13500.0), multiprocessors: 148, fast_link: ("NVLink5", 900.0), host_link: ("PCIe 5", 55.0), fast_domain: 8, gpus_per_node: 8, network: ("InfiniBand XDR", 100.0), context_mib: 1573, processor: Processor::GraniteRapids, source: "tflops: ST, DGXC (nvfp4 13500 DGXC; ST 12600-15000); memory, achieved: ST; link: NET" },
    Row { name: "GB300", generation: Generation::GB300, capability: Some(10), memory_mib: 294912, memory_tb_s: 8.0, fp32: 80.0, half: 2500.0, fp8: Some(5000.0), fp4: Some(15000.0), multiprocessors: 148, fast_link: ("NVLink5", 900.0), host_link: ("NVLink-C2C", 172.0), fast_domain: 72, gpus_per_node: 4, network: ("InfiniBand XDR", 100.0), context_mib: 1573, processor: Processor::Grace, source: "tflops: ST; memory: as B300 in ST; link: NET" },
    Row { name: "MI250X", generation: Generation::MI250X, capability: None, memory_mib: 131072, memory_tb_s: 3.28, fp32: 47.9, half: 383.0, fp8: None, fp4: None, multiprocessors: 220, fast_link: ("xGMI", 350.0), host_link: ("PCIe 4", 27.0), fast_domain: 8, gpus_per_node: 8, network: ("RoCE", 12.5), context_mib: 1573, processor: Processor::Milan, source: "all: ST, NET" },
    Row { name: "MI300X", generation: Generation::MI300X, capability: None, memory_mib: 196608, memory_tb_s: 5.3, fp32: 163.4, half: 1307.0, fp8: Some(2610.0), fp4: None, multiprocessors: 304, fast_link: ("xGMI", 448.0), host_link: ("PCIe 5", 55.0), fast_domain: 8, gpus_per_node: 8, network: ("RoCE", 50.0), context_mib: 1573, processor: Processor::Genoa, source: "tflops, memory, achieved: ST (bf16 rounded to 1300 there); link: NET" },
    Row { name: "MI325X", generation: Generation::MI300X, capability: None, memory_mib: 262144, memory_tb_s: 6.0, fp32: 163.4, half: 1307.0, fp8: Some(2610.0), fp4: None, multiprocessors: 304, fast_link: ("xGMI", 448.0), host_link: ("PCIe 5", 55.0), fast_domain: 8, gpus_per_node: 8, network: ("RoCE", 50.0), context_mib: 1573, processor: Processor::Turin, source: "tflops, memory, achieved: ST; link: NET" },
    Row { name: "MI355X", generation: Generation::MI355X, capability: None, memory_mib: 294912, memory_tb_s: 8.0, fp32: 157.3, half: 2500.0, fp8: Some(5000.0), fp4: Some(10100.0), multiprocessors: 256, fast_link: ("xGMI", 535.5), host_link: ("PCIe 5", 55.0), fast_domain: 8, gpus_per_node: 8, network: ("RoCE", 50.0), context_mib: 1573, processor: Processor::Turin, source: "tflops, memory, achieved: ST (its GEMM table divides by 2300); link: NET" },
    Row { name: "Ascend-910B", generation: Generation::Ascend910B, capability: None, memory_mib: 65536, memory_tb_s: 1.6, fp32: 47.0, half: 376.0, fp8: None, fp4: None, multiprocessors: 24, fast_link: ("HCCS", 196.0), host_link: ("PCIe 4", 27.0), fast_domain: 8, gpus_per_node: 8, network: ("RoCE", 25.0), context_mib: 1573, processor: Processor::Kunpeng920, source: "all: R (variants 280-400 TFLOPS exist; ModelLink table: Atlas 900 A2 PODc)" },
    Row { name: "RTX-4090", generation: Generation::A100, capability: Some(8), memory_mib: 24576, memory_tb_s: 1.008, fp32: 82.6, half: 165.2, fp8: Some(330.0), fp4: None, multiprocessors: 128, fast_link: ("PCIe 4", 31.0), host_link: ("PCIe 4", 27.0), fast_domain: 1, gpus_per_node: 8, network: ("Ethernet", 3.125), context_mib: 1573, processor: Processor::Desktop, source: "all: R (fp16 with fp32 accumulate)" },
    Row { name: "RTX-5090", generation: Generation::B200, capability: Some(12), memory_mib: 32768, memory_tb_s: 1.79, fp32: 104.8, half: 209.5, fp8: Some(419.0), fp4: None, multiprocessors: 170, fast_link: ("PCIe 5", 63.0), host_link: ("PCIe 5", 55.0), fast_domain: 1, gpus_per_node: 8, network: ("Ethernet", 3.125), context_mib: 1573, processor: Processor::Desktop, source: "all: R" },
    Row { name: "TPU-v4", generation: Generation::A100, capability: None, memory_mib: 32768, memory_tb_s: 1.2, fp32: 34.375, half: 275.0, fp8: None, fp4: None, multiprocessors: 2, fast_link: ("ICI", 150.0), host_link: ("PCIe 4", 27.0), fast_domain: 8, gpus_per_node: 8, network: ("DCN", 25.0), context_mib: 1280, processor: Processor::Rome, source: "tflops, memory: ST; links: R; context: XLA" },
    Row { name: "TPU-v5e", generation: Generation::A100, capability: None, memory_mib: 16384, memory_tb_s: 0.82, fp32: 24.625, half: 197.0, fp8: None, fp4: None, multiprocessors: 1, fast_link: ("ICI", 100.0), host_link: ("PCIe 4", 27.0), fast_domain: 8, gpus_per_node: 8, network: ("DCN", 25.0), context_mib: 256, processor: Processor::Milan, source: "tflops, memory: ST; links: R; context: XLA" },
    Row { name: "TPU-v5p", generation: Generation::A100, capability: None, memory_mib: 98304, memory_tb_s: 2.76, fp32: 57.375, half: 459.0, fp8: None, fp4: None, multiprocessors: 2, fast_link: ("ICI", 300.0), host_link: ("PCIe 4", 27.0), fast_domain: 8, gpus_per_node: 8, network: ("DCN", 25.0), context_mib: 266, processor: Processor::Milan, source: "tflops, memory bandwidth: ST; memory: R (ST has its label, 95 GB); links: R; context: XLA" },
    Row { name: "TPU-v6e", generation: Generation::A100, capability: None, memory_mib: 32768, memory_tb_s: 1.64, fp32: 114.75, half: 918.0, fp8: None, fp4: None, multiprocessors: 1, fast_link: ("ICI", 224.0), host_link: ("PCIe 4", 27.0), fast_domain: 8, gpus_per_node: 8, network: ("DCN", 25.0), context_mib: 768, processor: Processor::Genoa, source: "tflops: ST; memory: R; links: R; context: XLA" },
];

/// The accelerator assumed if nothing names one.
pub const DEFAULT_ACCELERATOR: &str = "H100-SXM";

/// The names of all accelerators.
pub fn accelerator_names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.name)
}

/// The accelerator with this name: its catalog name in any case, or the first whose name begins with it (`A100`,
/// `h200`).
#[must_use]
pub fn accelerator(name: &str) -> Option<Accelerator> {
    row(name).map(typed)
}

/// The same for software that runs only on TPUs.
pub const DEFAULT_TPU: &str = "TPU-v5p";

/// The accelerator assumed if nothing names one: [`DEFAULT_ACCELERATOR`].
#[must_use]
pub fn default_accelerator() -> Accelerator {
    typed(row(DEFAULT_ACCELERATOR).unwrap_or(&ROWS[0]))
}

/// Identical nodes of one accelerator, with the fast-link domain it is usually built into.
#[must_use]
pub fn cluster(accelerator: Accelerator, num_nodes: u64, gpus_per_node: u64) -> Cluster {
    let usual = row(&accelerator.name).map_or(gpus_per_node, |row| row.fast_domain);
    // A rack-wide domain spans nodes; any other is limited to the node. Jobs of more than one rack use power-of-two
    // segments of each: 16 of the 18 trays of an NVL72 (NVIDIA's recipes for GB200: `--segment 16`).
    let fast_domain = if usual <= usual_gpus_per_node(&accelerator.name) {
        gpus_per_node
    } else if num_nodes.saturating_mul(gpus_per_node) > usual {
        1 << usual.ilog2()
    } else {
        usual
    };
    Cluster { num_nodes, gpus_per_node, fast_domain, accelerator, measured: Measured::default() }
}

/// Accelerators per node as the accelerator is usually sold.
#[must_use]
pub fn usual_gpus_per_node(name: &str) -> u64 {
    row(name).map_or(8, |row| row.gpus_per_node)
}

// An exact name, then the usual part of a family, then the first with this prefix: `A100` means the 80 GB SXM part,
// although the 40 GB one is listed first.
fn row(name: &str) -> Option<&'static Row> {
    let name = name.trim();
    let same = |known: &str| known.eq_ignore_ascii_case(name);
    let begins = |known: &str| {
        !name.is_empty() && known.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name))
    };
    ROWS.iter()
        .find(|row| same(row.name))
        .or_else(|| preferred(name))
        .or_else(|| ROWS.iter().find(|row| begins(row.name)))
}

/// The accelerator that a scheduler's words name (`gpu:a100:8`, `v100-32g`), if any.
#[must_use]
pub fn accelerator_in(words: &str) -> Option<Accelerator> {
    /// Words as clusters write them, more specific ones first.
    const WORDS: &[(&str, &str)] = &[
        ("v100-16g", "V100-SXM2-16GB"),
        ("v100-32g", "V100-SXM2-32GB"),
        ("a100-40", "A100-SXM-40GB"),
        ("a100_40", "A100-SXM-40GB"),
        ("h100-nvl", "H100-NVL"),
        ("h100_nvl", "H100-NVL"),
        ("h100-pcie", "H100-PCIe"),
        ("h100_pcie", "H100-PCIe"),
        ("a100-pcie-80", "A100-PCIe-80GB"),
        ("a100_pcie_80", "A100-PCIe-80GB"),
        ("gb200", "GB200"),
        ("gb300", "GB300"),
        ("b200", "B200"),
        ("b300", "B300"),
        ("h100", "H100-SXM"),
        ("h200", "H200-SXM"),
        ("h800", "H800-SXM"),
        ("h20", "H20"),
        ("a800", "A800-SXM-80GB"),
        ("a100", "A100-SXM-80GB"),
        ("v100", "V100-SXM2-32GB"),
        ("t4", "T4"),
        ("l4", "L4"),
        ("l40s", "L40S"),
        ("rtx4090", "RTX-4090"),
        ("rtx_4090", "RTX-4090"),
        ("rtx-4090", "RTX-4090"),
        ("rtx5090", "RTX-5090"),
        ("rtx_5090", "RTX-5090"),
        ("rtx-5090", "RTX-5090"),
        ("mi250x", "MI250X"),
        ("mi250", "MI250X"),
        ("mi300x", "MI300X"),
        ("mi300", "MI300X"),
        ("mi325x", "MI325X"),
        ("mi355x", "MI355X"),
    ];
    let words = words.to_ascii_lowercase();
    if is_slice(&words) {
        return None;
    }
    // Must not be part of a longer word: neither "ga100x" nor "v1001".
    let stands = |word: &str| {
        words.match_indices(word).any(|(at, _)| {
            let before = at.checked_sub(1).and_then(|at| words.as_bytes().get(at));
            let after = words.as_bytes().get(at + word.len());
            let joins = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
            !joins(before) && (!joins(after) || word.contains(['-', '_']))
        })
    };
    let (_, name) = WORDS.iter().find(|(word, _)| stands(word))?;
    accelerator(name)
}

/// Whether a scheduler's words request a slice of a GPU, in NVIDIA's MIG notation: `gpu:a100_3g.20gb:1`.
#[must_use]
pub fn is_slice(words: &str) -> bool {
    let words = words.to_ascii_lowercase();
    let digit =
        |at: Option<usize>| at.and_then(|at| words.as_bytes().get(at)).is_some_and(u8::is_ascii_digit);
    words.match_indices("g.").any(|(at, sign)| {
        let behind = words.get(at + sign.len()..).unwrap_or("");
        let memory = behind.trim_start_matches(|c: char| c.is_ascii_digit());
        digit(at.checked_sub(1)) && memory.len() < behind.len() && memory.starts_with("gb")
    })
}

/// The usual part that a bare family name means.
fn preferred(name: &str) -> Option<&'static Row> {
    const USUAL: &[(&str, &str)] = &[
        ("A100", "A100-SXM-80GB"),
        ("A100-80GB", "A100-SXM-80GB"),
        ("A100-40GB", "A100-SXM-40GB"),
        ("A100-SXM", "A100-SXM-80GB"),
        ("H100-80GB", "H100-SXM"),
        ("V100", "V100-SXM2-32GB"),
        ("V100-32GB", "V100-SXM2-32GB"),
        ("V100-16GB", "V100-SXM2-16GB"),
        ("910B", "Ascend-910B"),
        ("4090", "RTX-4090"),
        ("5090", "RTX-5090"),
    ];
    let (_, usual) = USUAL.iter().find(|(family, _)| family.eq_ignore_ascii_case(name))?;
    ROWS.iter().find(|row| row.name == *usual)
}

/// TPUs for which whole steps were compiled (`tests/data/maxtext/steps.jsonl`).
const COMPILED_FOR: [&str; 3] = ["TPU-v5e", "TPU-v5p", "TPU-v6e"];

/// Accelerators of NVIDIA's Turing generation, which has CUDA compute capability 7.5; Volta has 7.0.
const TURING: [&str; 1] = ["T4"];

/// Whether an accelerator is of NVIDIA's Turing generation.
#[must_use]
pub fn is_turing(name: &str) -> bool {
    row(name).is_some_and(|row| TURING.contains(&row.name))
}

fn typed(row: &Row) -> Accelerator {
    let link =
        |(name, rate): (&str, f64)| Link { name: name.to_owned(), bandwidth: BytesPerSecond::giga(rate) };
    Accelerator {
        name: row.name.to_owned(),
        generation: row.generation,
        capability: row.capability,
        tpu: COMPILED_FOR.contains(&row.name),
        memory: Bytes::mib(row.memory_mib),
        memory_bandwidth: BytesPerSecond::tera(row.memory_tb_s),
        peaks: Peaks {
            fp32: FlopsPerSecond::tera(row.fp32),
            half: FlopsPerSecond::tera(row.half),
            fp8: row.fp8.map(FlopsPerSecond::tera),
            fp4: row.fp4.map(FlopsPerSecond::tera),
        },
        multiprocessors: row.multiprocessors,
        fast_link: link(row.fast_link),
        host_link: link(row.host_link),
        network: link(row.network),
        context: Bytes::mib(row.context_mib),
        processor: row.processor,
        source: row.source.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{accelerator, accelerator_in, accelerator_names, cluster, is_turing};

    #[track_caller]
    fn check(asked: &str, expected: Option<&str>) {
        assert_eq!(accelerator(asked).map(|found| found.name).as_deref(), expected);
    }

    #[test]
    fn accelerators_are_found_by_name_and_family() {
        for name in accelerator_names() {
            check(name, Some(name));
        }
        check("a100", Some("A100-SXM-80GB"));
        check("h200", Some("H200-SXM"));
        check("l4", Some("L4"));
        check("t4", Some("T4"));
        assert!(is_turing("t4") && !is_turing("V100"));
        check("B2", Some("B200"));
        check("", None);
        check("abacus", None);
    }

    #[test]
    fn schedulers_name_accelerators() {
        let named = |words| accelerator_in(words).map(|found| found.name);
        assert_eq!(named("gpu:a100:8").as_deref(), Some("A100-SXM-80GB"));
        assert_eq!(named("v100-32g").as_deref(), Some("V100-SXM2-32GB"));
        assert_eq!(named("gpu-h100-80g").as_deref(), Some("H100-SXM"));
        assert_eq!(named("gpu:l4:1").as_deref(), Some("L4"));
        assert_eq!(named("nvidia-tesla-t4").as_deref(), Some("T4"));
        assert_eq!(named("batch,ga100x"), None);
        assert_eq!(named("gpu:h100_nvl:2").as_deref(), Some("H100-NVL"));
        assert_eq!(named("gpu:h100-pcie:2").as_deref(), Some("H100-PCIe"));
        assert_eq!(named("gpu:a100_3g.20gb:1"), None);
        assert_eq!(named("gpu:1g.5gb:7"), None);
    }

    #[test]
    fn a_rack_is_one_domain_and_a_node_another() {
        let domain =
            |name: &str, per_node| accelerator(name).map(|found| cluster(found, 4, per_node).fast_domain);
        assert_eq!(domain("GB200", 4), Some(72));
        assert_eq!(domain("H100-SXM", 8), Some(8));
        assert_eq!(domain("H100-SXM", 4), Some(4));
    }
}
