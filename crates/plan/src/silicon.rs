//! Kinds of accelerators and host CPUs, classified by what determines their speed.

/// Accelerators that share the constants of one calibration set; accelerators without published runs use the nearest
/// set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Generation {
    /// Volta.
    V100,
    /// Ampere with 80 GB.
    A100,
    /// Ampere with 40 GB.
    A100Of40,
    /// Hopper.
    H100,
    /// The 500 W Hopper with HBM2e on which torchtitan measured.
    H100Hbm2e,
    /// Blackwell on an HGX board.
    B200,
    /// Blackwell paired with Grace.
    GB200,
    /// Blackwell Ultra.
    GB300,
    /// Huawei's Ascend 910B.
    Ascend910B,
    /// AMD's CDNA 2.
    MI250X,
    /// AMD's CDNA 3.
    MI300X,
    /// AMD's CDNA 4.
    MI355X,
}

impl Generation {
    /// The name in the tables of calibrated constants.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V100 => "V100",
            Self::A100 => "A100",
            Self::A100Of40 => "A100-40",
            Self::H100 => "H100",
            Self::H100Hbm2e => "H100-HBM2e",
            Self::B200 => "B200",
            Self::GB200 => "GB200",
            Self::GB300 => "GB300",
            Self::Ascend910B => "Ascend-910B",
            Self::MI250X => "MI250X",
            Self::MI300X => "MI300X",
            Self::MI355X => "MI355X",
        }
    }
}

/// The CPUs of a node, which launch the kernels. The catalog says which accelerators they are paired with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processor {
    /// Intel's Xeon of 2017: Platinum 8168 of DGX-2.
    Skylake,
    /// Intel's Xeon of 2019: Gold 6248 of Jean Zay's V100 nodes.
    CascadeLake,
    /// AMD's EPYC of 2019: 7742 of DGX A100.
    Rome,
    /// AMD's EPYC of 2021: 7R13 of AWS G6 and G6e, 7A53 of Frontier.
    Milan,
    /// Intel's Xeon of 2023: Platinum 8480C of DGX H100 and H200.
    SapphireRapids,
    /// Intel's Xeon of late 2023: Platinum 8570 of DGX B200.
    EmeraldRapids,
    /// Intel's Xeon of 2025: 6776P of DGX B300.
    GraniteRapids,
    /// AMD's EPYC of 2022.
    Genoa,
    /// AMD's EPYC of 2024.
    Turin,
    /// NVIDIA's Grace, on the board of GB200 and GB300.
    Grace,
    /// Huawei's Kunpeng 920.
    Kunpeng920,
    /// A workstation's, of 2022 or newer.
    Desktop,
}
