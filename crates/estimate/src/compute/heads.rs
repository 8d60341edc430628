//! How implementations of fused attention slow down with narrow heads and with windows, as measured of each.

use shardscope_plan::{AttentionBuild, FlashRelease, Generation, Recipe};

/// Narrower heads have less to multiply for each exponential of the softmax.
pub(crate) const FULL_HEAD_WIDTH: f64 = 128.0;

/// How an implementation of fused attention slows down with narrow heads and with windows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeadsAndWindows {
    /// The implementation.
    pub name: &'static str,
    /// Power of the width, below 128, by which the rate of both passes together falls: its logarithm to base 2 where
    /// heads are half as wide.
    pub narrow: f64,
    /// Where rates of both widths are from.
    pub narrow_source: &'static str,
    /// Keys beside those of its window that a query costs, forward and backward: tiles of queries and keys stick out of the band,
    /// and its few tiles do not fill the pipeline.
    pub fringe: [f64; 2],
    /// Where they are from.
    pub fringe_source: &'static str,
    /// Whether nobody measured either.
    pub assumed: bool,
}

const CUDNN_WINDOWS: &str = "cuDNN 9.19 and 9.27 in NVIDIA/cudnn-frontend, benchmark/sdpa_benchmark_training and \
                             benchmark/attention_training (gpt_oss): heads of 64 with windows of 1,024 and 128 keys, 16,384 tokens";

const FLASH_2: HeadsAndWindows = HeadsAndWindows {
    name: "FlashAttention-2",
    narrow: 0.20,
    narrow_source: "one H200, `tests/data/measured/kernels.tsv`: with heads of 64 both passes together run at 0.87 of the rate of 128, \
                    over 1,024 to 32,768 tokens; Shah et al. 2024, figures 5 and 6, 16,384 tokens on H100: 324 of 370 TFLOP/s forward \
                    and 291 of 322 backward",
    fringe: [256.0, 256.0],
    fringe_source: "its tiles of 128 queries by 128 keys (`flash_fwd_launch_template.h`): a window meets two more than fill it",
    assumed: false,
};
const CUDNN: HeadsAndWindows = HeadsAndWindows {
    name: "cuDNN on Hopper",
    narrow: 0.36,
    narrow_source: "the middle of the same H200, 0.77 for both passes, and of Shah et al. 2024, figures 5 and 6, 0.80: 413 of 595 TFLOP/s \
                    forward and 433 of 516 backward, which takes three times as long",
    fringe: [311.0, 477.0],
    fringe_source: CUDNN_WINDOWS,
    assumed: false,
};
/// Under modules whose kernels are counted one by one: with the exponents above, the median error of the steps that no constant saw
/// grew (LoRA on one H200, 4.6 to 4.8 %), so that they keep what the rates in `single.rs` were read with.
const ONE_BY_ONE: HeadsAndWindows = HeadsAndWindows {
    name: "attention of PyTorch's modules on Hopper",
    narrow: 0.3,
    narrow_source: "between FlashAttention-2 and cuDNN on Hopper; the rates of single kernels were read with it",
    ..FLASH_2
};
const FLASH_3: HeadsAndWindows = HeadsAndWindows {
    name: "FlashAttention-3",
    narrow: 0.28,
    narrow_source: "Shah et al. 2024, figures 5 and 6, 16,384 tokens on H100: 497 of 648 TFLOP/s forward and 474 of 561 backward, \
                    which takes three times as long",
    ..CUDNN
};
const BLACKWELL: HeadsAndWindows = HeadsAndWindows {
    name: "cuDNN and FlashAttention-4 on Blackwell",
    narrow: 0.52,
    narrow_source: "cuDNN 9.19 on GB200, 16,384 tokens: 1,687 TFLOP/s forward and 1,402 backward with heads of 128, and by its windows \
                    1,033 either way with heads of 64 (NVIDIA/cudnn-frontend, benchmark/sdpa_benchmark_training), backward taking \
                    three times as long; FlashAttention-4 forward 879 of 1,330 (Dao-AILab/flash-attention pull request 2605)",
    fringe: [670.0, 560.0],
    fringe_source: CUDNN_WINDOWS,
    assumed: false,
};
const OTHERS: HeadsAndWindows = HeadsAndWindows {
    name: "other fused attention",
    narrow: 0.3,
    narrow_source: "assumed: between FlashAttention-2 and cuDNN on Hopper",
    fringe: [256.0, 256.0],
    fringe_source: "assumed: as FlashAttention-2",
    assumed: true,
};

/// Every implementation that is told apart.
pub(crate) const HEADS_AND_WINDOWS: [HeadsAndWindows; 6] =
    [FLASH_2, CUDNN, ONE_BY_ONE, FLASH_3, BLACKWELL, OTHERS];

/// That of `recipe` on `generation`. Transformer Engine calls cuDNN on Hopper and newer and FlashAttention-2 on Ampere
/// (`attention/dot_product_attention/utils.py:get_attention_backend`).
pub(crate) fn heads_and_windows(generation: Generation, recipe: &Recipe) -> HeadsAndWindows {
    use Generation::{A100, A100Of40, B200, GB200, GB300, H100, H100Hbm2e};
    let semantics = recipe.software.semantics();
    match generation {
        B200 | GB200 | GB300 => BLACKWELL,
        A100 | A100Of40 => FLASH_2,
        H100 | H100Hbm2e => match (recipe.flash_release, semantics.attention_build) {
            (FlashRelease::Third | FlashRelease::Fourth, _) => FLASH_3,
            (_, AttentionBuild::Native) if semantics.transformer_engine => CUDNN,
            (_, AttentionBuild::Pytorch) if semantics.eager_modules => ONE_BY_ONE,
            _ => FLASH_2,
        },
        _ => OTHERS,
    }
}
