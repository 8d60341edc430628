//! The plans of models that run alongside a policy: a critic that trains and a reward model that scores.

use crate::{
    BaseTraining, Beside, Contradiction, DpSharding, Model, NumberFormat, Objective, Plan, Quantization,
    Recipe, Recompute, Residence, StageMap, StageSizes, Tuning,
};

impl Plan {
    /// The training of a critic on the policy's accelerators: a model (the policy's unless it has its own) with a
    /// scalar head in place of the output layer, and its own micro-batch and recomputation; or why that could not
    /// run. `None` if the critic is elsewhere, or if the software shards models over tensor or pipeline ranks,
    /// because it keeps no more of a critic than of the policy.
    #[must_use]
    pub fn critic(&self) -> Option<Result<Self, Vec<Contradiction>>> {
        let rollout = self.recipe.rollout.as_ref()?;
        let on_them = matches!(rollout.critic, Residence::Device | Residence::Host);
        if !on_them || self.recipe.software.semantics().cuts_models {
            return None;
        }
        let mut recipe = self.alone();
        let model = match self.recipe.beside.critic.as_deref() {
            Some(own) => self.beside_policy(own),
            None => self.model.clone(),
        };
        recipe.tuning.objective = Objective::Classes { labels: 1 };
        recipe.transformers.padding_mask |= self.recipe.beside.critic_padded;
        if !rollout.critic_recomputes {
            recipe.recompute = Recompute::None;
        }
        Some(self.variant(model, recipe, rollout.critic_batch))
    }

    /// The forward pass of a reward model that is sharded as the policy is, in 16 bits: everything is frozen except
    /// the scalar head, which is negligible. `None` if there is no reward model on these accelerators.
    #[must_use]
    pub fn reward(&self) -> Option<Result<Self, Vec<Contradiction>>> {
        let reward = self.recipe.beside.reward.as_deref()?;
        let on_them = matches!(reward.residence, Residence::Device | Residence::Host);
        if !on_them || self.recipe.software.semantics().cuts_models {
            return None;
        }
        let mut recipe = self.alone();
        recipe.recompute = Recompute::None;
        // FSDP shards its weights regardless of the policy's; DeepSpeed only if it shards the policy's too, since
        // otherwise there is nothing to shard.
        recipe.dp_sharding = match recipe.dp_sharding {
            _ if recipe.shards_by_fsdp() => DpSharding::Parameters,
            DpSharding::Parameters => DpSharding::Parameters,
            _ => DpSharding::Replicated,
        };
        recipe.params_dtype = NumberFormat::Bf16;
        recipe.grads_dtype = NumberFormat::Bf16;
        recipe.transformers.autocast = None;
        recipe.transformers.padding_mask |= reward.padded;
        recipe.tuning = Tuning {
            base: BaseTraining::None,
            embedding: false,
            quantization: Quantization::None,
            objective: Objective::Classes { labels: 1 },
            ..Tuning::default()
        };
        Some(self.variant(self.beside_policy(&reward.model), recipe, reward.batch))
    }

    /// The recipe without the models that run alongside the policy.
    fn alone(&self) -> Recipe {
        let mut recipe = self.recipe.clone();
        recipe.rollout = None;
        // These micro-batches are those for the policy's log-probabilities.
        recipe.transformers.evaluation_batch = 0;
        recipe.transformers.log_prob_tokens = 0;
        recipe.beside = Beside::default();
        recipe
    }

    /// A model of another shape over the policy's samples.
    fn beside_policy(&self, model: &Model) -> Model {
        let mut model = model.clone();
        model.seq_length = self.model.seq_length;
        model.max_position_embeddings = model.max_position_embeddings.max(model.seq_length);
        model
    }

    /// The plan of another model on these accelerators, with micro-batches of `batch` sequences, or tokens of packs.
    fn variant(
        &self,
        mut model: Model,
        mut recipe: Recipe,
        batch: Option<u64>,
    ) -> Result<Self, Vec<Contradiction>> {
        match batch {
            Some(tokens) if recipe.sample_length.is_some() => {
                model.seq_length = tokens;
                // Positions restart with each sample of a pack.
                model.max_position_embeddings = model.max_position_embeddings.max(tokens);
            }
            Some(sequences) => {
                let micro_batches = (recipe.global_batch_size / sequences.max(1)).max(1);
                let replicas =
                    recipe.global_batch_size / (recipe.micro_batch_size * recipe.num_micro_batches).max(1);
                recipe.micro_batch_size = sequences;
                recipe.num_micro_batches = (micro_batches / replicas.max(1)).max(1);
                recipe.global_batch_size =
                    sequences.saturating_mul(recipe.num_micro_batches).saturating_mul(replicas.max(1));
            }
            None => {}
        }
        let mut layout = self.layout.clone();
        if model.num_layers != self.model.num_layers {
            let sizes = StageSizes {
                num_layers: model.num_layers,
                pipeline: layout.pipeline,
                virtual_pipeline: layout.virtual_pipeline,
                mtp_num_layers: model.mtp_num_layers,
            };
            layout.stages = StageMap::new(sizes, &layout.split).map_err(|why| vec![why])?;
        }
        Self::new(model, self.cluster.clone(), layout, recipe)
    }
}
