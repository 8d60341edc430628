//! Fused attention (FlashAttention and its kin): bound by products that never leave the chip.
//!
//! Query blocks run in parallel; under a causal mask the last one sees all keys and finishes alone at the end.
//! Measured on A100 and B200 (SimuMax's tables over 4 to 128 heads): time is linear in the FLOPs, plus the time of
//! one such block.

use super::Device;
use super::device::real;
use super::heads::FULL_HEAD_WIDTH;
use shardscope_operators::Matmul;
use shardscope_units::{FlopsPerSecond, Seconds};

/// Widest head of flash attention and cuDNN's (`aten/src/ATen/native/transformers/cuda/sdp_utils.cpp:check_head_dim_size_flash,
/// check_cudnn_tensor_shapes`).
const WIDEST_FLASH: u64 = 256;

impl Device {
    /// The forward time of one of attention's two products inside a fused kernel.
    #[must_use]
    pub fn fused_forward(&self, product: &Matmul) -> Seconds {
        self.fused(product, self.attention_forward, 1.0, self.attention.fringe[0])
    }

    /// The same for the backward pass: one product per operand, plus recomputing the scores.
    #[must_use]
    pub fn fused_backward(&self, product: &Matmul) -> Seconds {
        let products = product.kind.fused_backward_products();
        self.fused(product, self.attention_backward, products, self.attention.fringe[1])
    }

    fn fused(&self, product: &Matmul, rate: FlopsPerSecond, products: f64, fringe: f64) -> Seconds {
        let [_, outer, inner] = product.local;
        let width = real(outer.min(inner));
        let narrow = (width / FULL_HEAD_WIDTH).min(1.0).powf(self.attention.narrow);
        if let Some(kernels) = self.single.filter(|_| product.masked) {
            return Seconds::new(products * product.flops().get() / (rate.get() * kernels.masked * narrow));
        }
        // Plain PyTorch modules that are counted kernel by kernel have such heads in SDPA alone.
        let wide = outer.min(inner) > WIDEST_FLASH;
        let rate = self.single.filter(|_| wide).map_or(rate, |kernels| rate * kernels.efficient);
        let share = if product.masked { 1.0 } else { product.share + beside(product, fringe) };
        let useful = product.flops().get() * share;
        let alone = 2.0 * self.calibration.attention_tail_rows * real(outer) * real(inner);
        Seconds::new(products * (useful + alone * real(self.multiprocessors)) / (rate.get() * narrow))
    }
}

/// Keys that a query costs beside those of its window, as a share of the window; with them no more than causality alone leaves.
fn beside(product: &Matmul, fringe: f64) -> f64 {
    let Some([window, sequence]) = product.window else { return 0.0 };
    let [window, sequence] = [window, sequence].map(real);
    let rest = (0.5 * sequence - product.share * window).max(0.0);
    fringe.min(rest) / window.max(1.0)
}
