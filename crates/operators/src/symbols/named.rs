//! Symbols by the names that formulas use.

use super::Symbols;
use crate::Operator;
use crate::sizes::MASK_ALIGNMENT;
use shardscope_explain::{Explanation, Formula, Symbol};
use shardscope_units::{Count, Quantity};

impl Symbols<'_> {
    /// The value of the symbol called `name` in a formula's expression.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<u64> {
        let (moe, latent, linear) = (&self.moe, &self.latent, &self.linear);
        Some(match name {
            "s" => self.s,
            "b" => self.b,
            "n" => self.n,
            "S" => self.s_local,
            "h" => self.h,
            "t" => self.t,
            "a" => self.a,
            "k" => self.k,
            "d" => self.d,
            "A" => self.a * self.d,
            "K" => self.k * self.d,
            "Q" => self.qkv,
            "f" => self.f,
            "g" => self.gate,
            "V" => self.v,
            "B" => self.width,
            "Br" => self.residual_width,
            "Bi" => self.input_width,
            "E" => moe.experts,
            "topk" => moe.topk,
            "Lr" => self.router_layers(),
            "Brl" => self.router_logits_width(),
            "Bsm" => self.router_softmax_width(),
            "T" => moe.sent,
            "R" => moe.received,
            "M" => moe.map,
            "fm" => moe.ffn,
            "fs" => moe.shared,
            "hm" => moe.hidden,
            "Bp" => moe.probability,
            "ql" => latent.query,
            "kl" => latent.key_value,
            "dn" => latent.plain,
            "dr" => latent.rotary,
            "dv" => latent.value,
            "hk" => linear.key_heads,
            "hv" => linear.value_heads,
            "dk" => linear.key_width,
            "dl" => linear.value_width,
            "lk" => linear.keys(),
            "lv" => linear.values(),
            "lc" => linear.convolution,
            "lr" => linear.rank,
            "c" => self.plan.layout().context,
            "e" => self.plan.layout().expert,
            "et" => self.plan.layout().expert_tensor,
            "fan" => moe.fan,
            "Bg" => self.recipe().grads_dtype.width(),
            "Bc" => self.compute_width,
            "Bl" => self.logits_width(),
            "Ba" => self.adapter_width,
            "Bd" => self.dora_width,
            "Bx" => self.expert_width(),
            "r" => self.lora_rank,
            "rot" => self.rotated,
            "ple" => self.layer_input,
            "z" => self.source(),
            "zp" => self.source().next_multiple_of(MASK_ALIGNMENT),
            "zk" => self.keys.next_multiple_of(MASK_ALIGNMENT),
            "Le" => self.model().encoder.map_or(0, |encoder| encoder.layers),
            "dist" => self.model().encoder.map_or(0, |encoder| encoder.buckets),
            "vple" => self.model().arrangement.layer_inputs.map_or(0, |inputs| inputs.vocabulary),
            "rotf" => self.model().mixers.full.map_or(0, |full| full.width),
            "L" => self.model().num_layers,
            "labels" => self.labels().unwrap_or(0),
            "rows" => self.chunk_rows(),
            "sampled" => self.sampled_tokens(),
            "Bs" => self.sampled_width(),
            "words" => self.tile_words(),
            "parts" => self.kernel_parts(),
            "nums" => self.kernel_partial(),
            "rest" => self.kernel_rest(),
            "vw" => self.cast_words(1),
            "vww" => self.cast_words(2),
            "entropy_rows" => self.entropy_rows(),
            "chunks" => self.loss_chunks(),
            "np" => self.patches(),
            "Li" => self.model().vision.map_or(0, |tower| tower.layers),
            "pl" => {
                self.model().vision.and_then(|tower| tower.projector).map_or(0, |projector| projector.layers)
            }
            "hi" => self.vision_width(),
            "ni" => self.tower_tokens(),
            "ai" => self.tower_kept(|kept| kept.heads),
            "fi" => self.tower_kept(|kept| kept.ffn),
            "ti" => self.image_tokens(),
            "ei" => self.tower_ends()[0],
            "zi" => crate::vision::adapter_bytes(Operator::VisionLayer, self),
            "ze" => crate::vision::adapter_bytes(Operator::VisionEnds, self),
            "pvi" => self.tower_kept(|kept| kept.patch_values),
            "tl" => self.local_image_tokens(),
            "di" => self.tower_kept(|kept| kept.deep_mergers),
            "ci" => self.tower_kept(|kept| kept.tables),
            "oi" => self.tower_ends()[1],
            _ => return None,
        })
    }

    /// Explains a number by `formula`: the formula with the values of its symbols under this plan.
    #[must_use]
    pub fn explain(&self, formula: &'static Formula) -> Explanation {
        let mut symbols = Vec::new();
        for name in formula.names() {
            if let Some(value) = self.value(name) {
                symbols.push(Symbol { name, value: Count::new(value).number(), of_plan: true });
            }
        }
        Explanation { formula, symbols }
    }
}
