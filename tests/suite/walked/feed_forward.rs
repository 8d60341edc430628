//! The second half of a layer as a program: a dense MLP, or a router with its experts.
//! Sources: megatron/core/transformer/mlp.py, megatron/core/transformer/moe.

use shardscope::plan::{NumberFormat, RecomputeModule};

use super::layer::Runner;
use super::tape::Storage;

/// Bytes of an fp32 number.
const FLOAT: u64 = 4;
/// Bytes of a torch index.
const INDEX: u64 = 8;

impl Runner<'_> {
    /// What an activation between two projections keeps, with `rows` rows of `columns` at its output.
    fn activation(&mut self, rows: u64, columns: u64) {
        let gated = self.model().activation.is_gated();
        self.tape.keep("activation input", if gated { 2 } else { 1 } * rows * columns * self.width);
        if gated && !self.recipe().fusions.bias_activation {
            self.tape.keep("activated half", rows * columns * self.width);
            self.tape.keep("offset half", rows * columns * self.width);
        }
    }

    pub(super) fn mlp(&mut self, normed: Storage) {
        let inner = self.model().ffn_hidden_size / self.plan.layout().tensor;
        self.linear(normed);
        self.activation(self.tokens, inner);
        let output = self.tape.allocate("activated", self.tokens * inner * self.width);
        self.linear(output);
    }

    pub(super) fn moe(&mut self, normed: Storage) {
        let before = self.tape.len();
        self.experts(normed);
        if self.recomputes(RecomputeModule::Moe) {
            self.tape.forget_since(before);
            self.tape.save(normed);
        }
    }

    fn experts(&mut self, normed: Storage) {
        let (plan, rows, w) = (self.plan, self.rows, self.width);
        let Some(experts) = &plan.model().experts else { return };
        let moe = &plan.recipe().moe;
        let (all, topk) = (experts.num_experts, experts.router_topk);
        let probability = if moe.router_dtype == NumberFormat::Fp32 { FLOAT } else { w };
        self.linear(normed);
        self.tape.keep("chosen", rows * topk * INDEX);
        let scored = if topk == 1 || moe.pre_softmax { all } else { topk };
        self.tape.keep("softmax", rows * scored * FLOAT);
        if moe.load_balancing.has_loss() {
            self.tape.keep("balanced scores", rows * all * FLOAT);
            self.tape.keep("counts", all * INDEX);
            self.tape.keep("coefficient", FLOAT);
        }
        // With a balanced router each rank receives as much as it sends, from as many ranks as hold a share of the same
        // tokens.
        let layout = plan.layout();
        let together = if layout.sequence_parallel { layout.expert_tensor } else { 1 };
        let received = rows * topk * together;
        match moe.dispatcher {
            shardscope::plan::Dispatcher::AllGather => {
                let gathered = rows * layout.expert_tensor * layout.expert * (all / layout.expert);
                self.tape.keep("indices", received * INDEX);
                self.tape.keep("map", gathered);
                self.tape.keep("probabilities", gathered * probability);
            }
            _ if moe.permute_fusion => {
                self.tape.keep("row map", rows * (2 * all + 1) * INDEX / 2);
            }
            _ => {
                self.tape.keep("sorted map", rows * all * INDEX);
                self.tape.keep("indices", rows * topk * INDEX);
            }
        }
        let inner = experts.ffn_hidden_size / layout.expert_tensor;
        self.tape.keep("expert input", received * plan.model().hidden_size * w);
        self.activation(received, inner);
        if !plan.recipe().fusions.bias_activation {
            self.tape.keep("before probabilities", received * inner * w);
        }
        self.tape.keep("expert probabilities", received * probability);
        self.tape.keep("expert output", received * inner * w);
        self.shared(normed, experts.shared_expert_intermediate_size.unwrap_or(0), experts.shared_expert_gate);
    }

    fn shared(&mut self, normed: Storage, width: u64, gate: bool) {
        if width == 0 {
            return;
        }
        let (inner, w) = (width / self.plan.layout().tensor, self.width);
        let before = self.tape.len();
        self.linear(normed);
        self.activation(self.tokens, inner);
        let activated = self.tape.allocate("shared activated", self.tokens * inner * w);
        self.linear(activated);
        if self.recomputes(RecomputeModule::SharedExperts) {
            self.tape.forget_since(before);
            self.tape.save(normed);
        }
        if gate {
            self.tape.keep("gate score", self.rows * w);
            self.tape.keep("shared output", self.rows * self.model().hidden_size * w);
        }
    }
}
