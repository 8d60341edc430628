//! Generations of accelerators, by which constants they have in common.

use Share::{
    AttentionBackward, AttentionForward, AttentionPytorch, AttentionTriton, Contention, Eager, FastLink, Fp4,
    Fp8, Grouped, Half, Memory, Network, Straggling, UserBuffers, Wave,
};
use shardscope::estimate::compute::Share;

/// A pool of generations with constants in common.
pub(crate) struct Pool {
    pub(crate) name: &'static str,
    pub(crate) generations: &'static [&'static str],
    /// Constants that the pool shares.
    pub(crate) shared: &'static [Share],
    /// Constants of each generation.
    pub(crate) own: &'static [Share],
}

pub(crate) const POOLS: [Pool; 7] = [
    Pool { name: "V100", generations: &["V100"], shared: &[Half, Memory, FastLink], own: &[] },
    Pool {
        name: "A100",
        generations: &["A100", "A100-40"],
        shared: &[
            Half,
            Wave,
            Memory,
            Network,
            Contention,
            AttentionTriton,
            AttentionForward,
            AttentionBackward,
        ],
        own: &[],
    },
    Pool {
        name: "H100",
        generations: &["H100"],
        shared: &[
            Half,
            Fp8,
            Eager,
            Wave,
            Memory,
            Network,
            Contention,
            UserBuffers,
            Straggling,
            Grouped,
            AttentionTriton,
            AttentionForward,
            AttentionBackward,
        ],
        own: &[],
    },
    // Torchtitan's part: an H100 of less power and slower memory, known from that software alone. Its network cards are the H100's,
    // and so is the share of them that collectives reach.
    Pool {
        name: "H100-HBM2e",
        generations: &["H100-HBM2e"],
        shared: &[Half, Fp8, AttentionPytorch, UserBuffers],
        own: &[],
    },
    Pool {
        name: "Blackwell",
        generations: &["B200", "GB200", "GB300"],
        shared: &[Fp4, Wave, Memory, Network, Contention, UserBuffers, Straggling, Grouped],
        // Clocks under power: 1,000 W of air or water in an HGX B200, 1,200 in a GB200, 1,400 in a GB300.
        own: &[Half, Fp8],
    },
    // Three runs on one part tell what products reach; attention, memory and contention stay assumed.
    Pool { name: "CDNA3", generations: &["MI300X"], shared: &[Half, Fp8], own: &[] },
    Pool {
        name: "Ascend-910B",
        generations: &["Ascend-910B"],
        shared: &[Half, Memory, AttentionForward, AttentionBackward, FastLink, Network, UserBuffers],
        own: &[],
    },
];
