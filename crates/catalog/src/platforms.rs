//! Clusters and cloud machines: the accelerators and network adapters per node.
//!
//! Source tags as in the accelerator table; SEED1 = Narayanan 2021, SEED2 = Azure NeMo 22.06.

use shardscope_plan::Link;
use shardscope_units::BytesPerSecond;

/// A type of node as it is sold or rented.
#[derive(Clone, Debug, PartialEq)]
pub struct Platform {
    /// Its name.
    pub name: &'static str,
    /// Its accelerator, by the catalog's name.
    pub accelerator: &'static str,
    /// Accelerators of one node.
    pub gpus_per_node: u64,
    /// Network, per direction and accelerator.
    pub network: Link,
    /// Where the figures are from.
    pub source: &'static str,
}

struct Row {
    name: &'static str,
    accelerator: &'static str,
    gpus: u32,
    adapters: u32,
    /// Bandwidth of one adapter, per direction. Unit: Gbit/s.
    gbit: u32,
    network: &'static str,
    source: &'static str,
}

const fn row(
    name: &'static str,
    accelerator: &'static str,
    gpus: u32,
    adapters: u32,
    gbit: u32,
    network: &'static str,
    source: &'static str,
) -> Row {
    Row { name, accelerator, gpus, adapters, gbit, network, source }
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    row("DGX A100 / Selene", "A100-SXM-80GB", 8, 8, 200, "InfiniBand HDR", "Korthikanti 2022 section 6; SEED1"),
    row("Azure NDm A100 v4", "A100-SXM-80GB", 8, 8, 200, "InfiniBand HDR", "SEED2 / DeepSpeed on Azure post"),
    row("AWS p4d", "A100-SXM-40GB", 8, 4, 100, "EFA v1", "NET"),
    row("DGX H100 / H200", "H100-SXM", 8, 8, 400, "InfiniBand NDR / RoCE", "NET"),
    row("AWS p5 / p5e", "H100-SXM", 8, 32, 100, "EFA v2", "NET"),
    row("AWS p5en", "H200-SXM", 8, 16, 200, "EFA v3", "NET"),
    row("AWS P6-B200", "B200", 8, 8, 400, "EFA v4", "NET"),
    row("AWS P6-B300", "B300", 8, 16, 400, "EFA v4", "NET"),
    row("GCP A3 Mega", "H100-SXM", 8, 8, 200, "TCPXO", "NET"),
    row("GCP A3 High", "H100-SXM", 8, 4, 200, "TCPX", "NET"),
    row("DGX B300", "B300", 8, 8, 800, "InfiniBand XDR", "NET"),
    row("GB200 NVL72 tray", "GB200", 4, 4, 400, "InfiniBand NDR / RoCE", "NET"),
    row("MegaScale cluster", "A100-SXM-80GB", 8, 8, 200, "RoCE, multi-rail", "MegaScale paper (stored copy)"),
    row("Llama 3 cluster", "H100-SXM", 8, 8, 400, "RoCE", "Llama 3 paper"),
    row("Jean Zay V100", "V100-SXM2-32GB", 4, 4, 100, "Omni-Path", "BS (nodes), R (rate)"),
    row("Jean Zay A100 (BLOOM)", "A100-SXM-80GB", 8, 4, 100, "Omni-Path", "BS hpc-specs (4 links), NET (CN-100 100 Gb/s)"),
];

/// All platforms.
pub fn platforms() -> impl Iterator<Item = Platform> {
    ROWS.iter().map(typed)
}

/// The platform with this name, ignoring case.
#[must_use]
pub fn platform(name: &str) -> Option<Platform> {
    ROWS.iter().find(|row| row.name.eq_ignore_ascii_case(name.trim())).map(typed)
}

fn typed(row: &Row) -> Platform {
    // Adapter bandwidth is divided evenly, whether there are more or fewer adapters than accelerators.
    let bits = f64::from(row.adapters) * f64::from(row.gbit);
    Platform {
        name: row.name,
        accelerator: row.accelerator,
        gpus_per_node: u64::from(row.gpus),
        network: Link {
            name: row.network.to_owned(),
            bandwidth: BytesPerSecond::giga(bits / 8.0 / f64::from(row.gpus.max(1))),
        },
        source: row.source,
    }
}

#[cfg(test)]
mod tests {
    use super::{platform, platforms};
    use crate::accelerator;

    #[test]
    fn every_platform_has_a_known_accelerator() {
        for platform in platforms() {
            assert_eq!(
                accelerator(platform.accelerator).map(|found| found.name).as_deref(),
                Some(platform.accelerator)
            );
        }
        let rate = |name| platform(name).map(|found| found.network.bandwidth.get());
        assert_eq!(rate("dgx a100 / selene"), Some(25e9));
        assert_eq!(rate("Jean Zay A100 (BLOOM)"), Some(6.25e9));
    }
}
