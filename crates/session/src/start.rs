//! A plan from a model and a cluster alone: the first usual layout that fits, to be changed by its settings.

use super::Hand;
use shardscope_catalog as catalog;
use shardscope_estimate::memory_totals;
use shardscope_launch::resolve;
use shardscope_plan::{Field, Plan};

/// What the reader picks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// A model of the catalog.
    pub model: String,
    /// An accelerator of the catalog.
    pub accelerator: String,
    /// Accelerators in all, as many in each node as is usual.
    pub gpus: u64,
    /// Tokens of one sample; no more than the model has positions for.
    pub sequence: u64,
}

/// Tokens of one step where nobody says: Llama 3's first batch (arXiv 2407.21783, section 3.4.1).
const STEP_TOKENS: u64 = 4 << 20;

/// Most layouts that are tried.
const MOST_TRIED: usize = 200;

type Named = Vec<(String, String)>;

/// How the model is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cut {
    /// Whole layers computed again; tried when nothing else fits.
    recompute: bool,
    /// TP × PP.
    model_parallel: u64,
    pipeline: u64,
    tensor: u64,
    expert: u64,
}

/// A plan for `choice`: the least cut that fits, or the most cut one when none does. Nothing for an unknown model.
#[must_use]
pub fn start(choice: &Choice) -> Option<Hand> {
    let (_, model) = catalog::model(&choice.model)?;
    let number = |field: Field| {
        model.iter().find(|(known, _)| *known == field).and_then(|(_, value)| value.parse::<u64>().ok())
    };
    let sequence = choice.sequence.min(number(Field::MaxPositionEmbeddings).unwrap_or(u64::MAX));
    let base = base(&Choice { sequence, ..choice.clone() }, &model);
    let per_node = per_node(choice);
    let heads = number(Field::NumQueryGroups).or(number(Field::NumAttentionHeads)).unwrap_or(1);
    let shape = Room {
        layers: number(Field::NumLayers).unwrap_or(1),
        heads,
        experts: number(Field::NumExperts).unwrap_or(1),
        world: choice.gpus,
        per_node,
    };
    let mut last = None;
    for cut in shape.cuts().into_iter().take(MOST_TRIED) {
        let settings = with_cut(&base, cut, sequence, shape.world);
        let Some(plan) = resolve(&[], &settings).plan else { continue };
        if fits(&plan) {
            return Some(Hand::of_settings(settings));
        }
        last = Some(settings);
    }
    last.map(Hand::of_settings)
}

fn fits(plan: &Plan) -> bool {
    let capacity = plan.cluster().accelerator.memory;
    memory_totals(plan).iter().all(|rank| rank.peak_required <= capacity)
}

/// `settings` says `name` once more, and nothing else of it.
fn say(settings: &mut Named, name: &str, value: &str) {
    settings.retain(|(other, _)| other != name);
    settings.push((name.to_owned(), value.to_owned()));
}

fn count(settings: &mut Named, name: &str, value: u64) {
    say(settings, name, &value.to_string());
}

/// As many accelerators in a node as is usual, or the most below that into which all of them divide.
fn per_node(choice: &Choice) -> u64 {
    let usual = catalog::usual_gpus_per_node(&choice.accelerator).clamp(1, choice.gpus.max(1));
    (1..=usual).rev().find(|count| choice.gpus.is_multiple_of(*count)).unwrap_or(1)
}

fn base(choice: &Choice, model: &[(Field, String)]) -> Named {
    let mut settings = Named::new();
    for (field, value) in model {
        settings.push((field.name().to_owned(), value.clone()));
    }
    say(&mut settings, "accelerator", &choice.accelerator);
    let per_node = per_node(choice);
    count(&mut settings, "num_nodes", choice.gpus / per_node);
    count(&mut settings, "gpus_per_node", per_node);
    count(&mut settings, "seq_length", choice.sequence);
    count(&mut settings, "micro_batch_size", 1);
    for name in ["bf16", "use_distributed_optimizer", "overlap_grad_reduce", "overlap_param_gather"] {
        say(&mut settings, name, "true");
    }
    if model.iter().any(|(field, _)| *field == Field::NumExperts) {
        say(&mut settings, "moe_token_dispatcher_type", "alltoall");
        say(&mut settings, "moe_grouped_gemm", "true");
        count(&mut settings, "expert_tensor_parallel_size", 1);
    }
    settings
}

/// What a cut must divide.
struct Room {
    layers: u64,
    heads: u64,
    experts: u64,
    world: u64,
    per_node: u64,
}

impl Room {
    /// Every usual cut, the least first.
    fn cuts(&self) -> Vec<Cut> {
        let mut cuts = Vec::new();
        for tensor in powers() {
            if tensor > self.per_node || !self.heads.is_multiple_of(tensor) {
                continue;
            }
            for pipeline in 1..=self.layers.min(64) {
                let model_parallel = tensor * pipeline;
                if !self.layers.is_multiple_of(pipeline) || !self.world.is_multiple_of(model_parallel) {
                    continue;
                }
                let expert = self.expert(pipeline);
                for recompute in [false, true] {
                    cuts.push(Cut { recompute, model_parallel, pipeline, tensor, expert });
                }
            }
        }
        cuts.sort();
        cuts
    }

    /// As many ranks share the experts as there are, up to the ranks of a stage.
    fn expert(&self, pipeline: u64) -> u64 {
        let ranks = self.world / pipeline.max(1);
        let mut most = 1;
        for expert in powers() {
            if self.experts.is_multiple_of(expert) && ranks.is_multiple_of(expert) {
                most = expert;
            }
        }
        most
    }
}

/// Degrees that are tried.
fn powers() -> impl Iterator<Item = u64> {
    (0..13).map(|power| 1_u64 << power)
}

fn with_cut(base: &Named, cut: Cut, sequence: u64, world: u64) -> Named {
    let mut settings = base.clone();
    let replicas = world / cut.model_parallel.max(1);
    let per_replica = STEP_TOKENS.div_ceil(sequence.max(1)).div_ceil(replicas.max(1)).max(1);
    count(&mut settings, "tensor_model_parallel_size", cut.tensor);
    count(&mut settings, "pipeline_model_parallel_size", cut.pipeline);
    count(&mut settings, "global_batch_size", per_replica * replicas);
    if cut.tensor > 1 {
        say(&mut settings, "sequence_parallel", "true");
    }
    if cut.expert > 1 {
        count(&mut settings, "expert_model_parallel_size", cut.expert);
    }
    if cut.recompute {
        say(&mut settings, "recompute_granularity", "full");
        say(&mut settings, "recompute_method", "uniform");
        count(&mut settings, "recompute_num_layers", 1);
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fit, Shown, State};
    use shardscope_source::Severity;

    fn started(model: &str, accelerator: &str, gpus: u64) -> Shown {
        let choice = Choice { model: model.into(), accelerator: accelerator.into(), gpus, sequence: 4096 };
        let state = State::new(start(&choice).expect("a plan"));
        let said = state.answer.resolution.diagnostics.clone();
        assert!(said.iter().all(|one| one.severity < Severity::Warning), "{model}: {said:?}");
        (*state.shown.unwrap_or_else(|| panic!("{model}: {said:?}"))).clone()
    }

    #[test]
    fn every_model_starts_on_a_usual_cluster() {
        for model in catalog::model_names() {
            started(model, "H100-SXM", 512);
        }
        assert_eq!(
            start(&Choice { model: "nobody".into(), accelerator: "B200".into(), gpus: 8, sequence: 1 }),
            None
        );
    }

    #[test]
    fn any_number_of_gpus_is_a_cluster() {
        for (gpus, nodes) in [(1, 1), (4, 1), (8, 1), (12, 2), (128, 16)] {
            let shown = started("Llama-3-8B", "H100-SXM", gpus);
            assert_eq!((shown.plan.layout().world_size, shown.plan.cluster().num_nodes), (gpus, nodes));
        }
    }

    #[test]
    fn the_first_layout_is_the_least_cut_that_fits() {
        let layout = |shown: &Shown| (shown.plan.layout().tensor, shown.plan.layout().pipeline);
        let small = started("Llama-3-8B", "H100-SXM", 16);
        assert_eq!(
            (layout(&small), small.worst().map(|worst| worst.fit != Fit::DoesNotFit)),
            ((1, 1), Some(true))
        );
        let large = started("Llama-3-70B", "H100-SXM", 64);
        assert!(large.worst().is_some_and(|worst| worst.fit != Fit::DoesNotFit), "{:?}", layout(&large));
        assert!(layout(&large) > (1, 1));
        let hopeless = started("Llama-3.1-405B", "H100-SXM", 8);
        assert_eq!(hopeless.worst().map(|worst| worst.fit), Some(Fit::DoesNotFit));
    }
}
