//! The machines: accelerators, nodes and links.

use shardscope_units::{Bytes, BytesPerSecond, FlopsPerSecond, product};

use crate::silicon::{Generation, Processor};

/// Identical nodes with identical accelerators.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// Nodes of the run.
    pub num_nodes: u64,
    /// Accelerators per node.
    pub gpus_per_node: u64,
    /// Accelerators in one fast-link domain (NVLink): normally the node; 72 on GB200 NVL72.
    pub fast_domain: u64,
    /// The one kind of accelerator that all nodes have.
    pub accelerator: Accelerator,
    /// What the user measured there.
    pub measured: Measured,
}

/// What the user measured on the machine itself; each replaces the calibrated efficiency.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Rate of a large bf16 matrix product.
    pub matmul: Option<FlopsPerSecond>,
    /// Bus bandwidth of a large all-reduce within the fast-link domain (`nccl-tests`).
    pub fast_bus: Option<BytesPerSecond>,
    /// Bus bandwidth of a large all-reduce across nodes, per accelerator (`nccl-tests`).
    pub network_bus: Option<BytesPerSecond>,
    /// Measured step time of some layout of this run, divided by its estimate without this correction. Dimensionless.
    pub step: Option<f64>,
}

impl Cluster {
    /// Accelerators of all nodes.
    #[must_use]
    pub fn gpus(&self) -> u64 {
        product(self.num_nodes, self.gpus_per_node)
    }
}

/// One accelerator as its data sheet gives it. Measured efficiencies live with the time model.
#[derive(Clone, Debug, PartialEq)]
pub struct Accelerator {
    /// Catalog name, for example `H100-SXM`.
    pub name: String,
    /// The generation whose calibration constants apply to it.
    pub generation: Generation,
    /// Major CUDA compute capability; `None` for accelerators not made by NVIDIA.
    pub capability: Option<u64>,
    /// Whether it is a TPU for which complete training steps were compiled (`tests/data/maxtext/steps.jsonl`).
    pub tpu: bool,
    /// Memory of the device: the total that `nvidia-smi` shows.
    pub memory: Bytes,
    /// Bandwidth of the device's memory.
    pub memory_bandwidth: BytesPerSecond,
    /// Dense arithmetic peaks by number format.
    pub peaks: Peaks,
    /// Streaming multiprocessors (or compute units).
    pub multiprocessors: u64,
    /// Fast link inside the domain (NVLink), per direction and accelerator.
    pub fast_link: Link,
    /// Link to the host, per direction with both in use: the bandwidth that copies achieve.
    pub host_link: Link,
    /// Network, per direction and accelerator.
    pub network: Link,
    /// Bytes of the driver context on the device.
    pub context: Bytes,
    /// CPUs of the usual node, which launch the kernels.
    pub processor: Processor,
    /// Where the figures come from: tags of the catalog's table.
    pub source: String,
}

/// Dense arithmetic peaks, without sparsity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peaks {
    /// fp32 on the vector units.
    pub fp32: FlopsPerSecond,
    /// bf16 and fp16 tensor cores.
    pub half: FlopsPerSecond,
    /// fp8 tensor cores; `None` without them.
    pub fp8: Option<FlopsPerSecond>,
    /// nvfp4 tensor cores; `None` without them.
    pub fp4: Option<FlopsPerSecond>,
}

/// A link's bandwidth per direction, as the data sheet gives it.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// For example `NVLink4`.
    pub name: String,
    /// Per direction and accelerator.
    pub bandwidth: BytesPerSecond,
}
