//! The kernels of a space: every combination of what a layer's time depends on.

use super::hosts;
use super::sizes::{contexts, experts, instances, micro_batches, precisions, tensors};
use super::values::Space;
use crate::dimension::Dimension;
use shardscope_plan::{Dispatcher, DpSharding, Overlap, Recompute, Variant};
use shardscope_source::Code;

impl Space {
    fn refuse(&mut self, code: Code) {
        match self.refused.iter_mut().find(|(known, _)| *known == code) {
            Some((_, count)) => *count += 1,
            None => self.refused.push((code, 1)),
        }
    }

    pub(super) fn fill_kernels(&mut self) {
        let world = self.plan.layout().world_size;
        let moe = self.plan.model().experts.is_some();
        for tensor in tensors(&self.plan, &self.base, &self.choices) {
            for context in contexts(&self.plan, &self.base, &self.choices) {
                if !world.is_multiple_of(tensor * context) {
                    self.refuse(Code::WorldSize);
                    continue;
                }
                for (expert, expert_tensor) in experts(&self.plan, &self.base, &self.choices, tensor) {
                    if moe && !world.is_multiple_of(expert * expert_tensor) {
                        self.refuse(Code::ExpertWorldSize);
                        continue;
                    }
                    for micro_batch_size in micro_batches(&self.plan, &self.base, &self.choices) {
                        let kernel = Variant {
                            tensor,
                            context,
                            expert,
                            expert_tensor,
                            micro_batch_size,
                            pipeline: 1,
                            virtual_pipeline: 1,
                            recompute: Recompute::None,
                            // Time bounds are computed without gathering weights.
                            sharding: match self.base.sharding {
                                DpSharding::Parameters => DpSharding::OptimizerStates,
                                stated => stated,
                            },
                            ..self.base.clone()
                        };
                        for instances in instances(&self.plan, &self.base, &self.choices, tensor) {
                            self.fill_flags(Variant { instances, ..kernel.clone() });
                        }
                    }
                }
            }
        }
    }

    /// Adds the kernel with every combination of its flags.
    fn fill_flags(&mut self, kernel: Variant) {
        let stated = &self.base;
        let cut = kernel.tensor > 1;
        let sequence: &[bool] = match self.choices.get(Dimension::SequenceParallel).vary() {
            _ if !cut => &[false],
            true => &[true, false],
            // If stated for a tensor size of 1, it says nothing about others.
            false if stated.tensor == 1 || stated.sequence_parallel => &[true],
            false => &[false],
        };
        let mut kernels = Vec::new();
        for &sequence_parallel in sequence {
            let mut overlaps = self.overlaps(&kernel, sequence_parallel);
            // If tensor-parallel messages can overlap, a step takes no longer and nothing more is held
            // (`dominance.rs`).
            let hides = overlaps.iter().any(|overlap| overlap.tensor);
            overlaps.retain(|overlap| overlap.tensor || !hides);
            for overlap in overlaps {
                let kernel = Variant { sequence_parallel, overlap, ..kernel.clone() };
                for fp8 in precisions(&self.plan, stated, &self.choices) {
                    let kernel = Variant { fp8, ..kernel.clone() };
                    for optimizer_on_host in hosts::optimizers(&self.plan, stated, &self.choices) {
                        let sharding = shared(kernel.sharding, optimizer_on_host || kernel.instances > 1);
                        for &offloaded in &self.offloaded {
                            kernels.push(Variant {
                                optimizer_on_host,
                                sharding,
                                offloaded,
                                ..kernel.clone()
                            });
                        }
                    }
                }
            }
        }
        let always = self.plan.recipe().software.semantics().experts_need_sequence;
        for kernel in kernels {
            let experts = kernel.expert > 1 || (always && self.plan.model().experts.is_some());
            if experts && kernel.tensor > 1 && !kernel.sequence_parallel {
                self.refuse(Code::MoeSequenceParallel);
            } else {
                self.kernels.push(kernel);
            }
        }
    }

    /// The options for hiding a layer's own messages behind its products.
    pub(super) fn overlaps(&self, kernel: &Variant, sequence_parallel: bool) -> Vec<Overlap> {
        let recipe = self.plan.recipe();
        let stated = self.base.overlap;
        let possible = Overlap { tensor: stated.tensor && sequence_parallel, ..stated };
        let mut out = vec![possible];
        if !self.choices.get(Dimension::Overlap).vary() || !recipe.software.semantics().transformer_engine {
            return out;
        }
        let domain = self.plan.cluster().fast_domain.max(self.plan.cluster().gpus_per_node);
        if sequence_parallel && kernel.tensor <= domain {
            out.push(Overlap { tensor: true, ..possible });
        }
        // `--overlap-moe-expert-parallel-comm` (`transformer_config.py:__post_init__`).
        let takes = kernel.expert > 1
            && matches!(recipe.moe.dispatcher, Dispatcher::AllToAll | Dispatcher::Flex)
            && !stated.shared_expert
            && self.plan.model().mtp_num_layers <= 1;
        if takes {
            let both: Vec<Overlap> = out.iter().map(|one| Overlap { expert: true, ..*one }).collect();
            out.extend(both);
        }
        out.sort_by_key(|one| (one.tensor, one.expert));
        out.dedup();
        out
    }
}

/// `stated`, or the least sharding if something `must` be sharded.
fn shared(stated: DpSharding, must: bool) -> DpSharding {
    match stated {
        DpSharding::Replicated if must => DpSharding::OptimizerStates,
        stated => stated,
    }
}
