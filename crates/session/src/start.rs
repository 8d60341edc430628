//! A plan from a model and a cluster alone: the first usual layout that fits, to be changed by its settings.

mod choice;
mod rollouts;
mod said;
mod tuned;

pub use choice::{Choice, Objective};

use super::UserInput;
use said::{Named, count, say};
use shardscope_catalog as catalog;
use shardscope_estimate::{Verdict, device_peak};
use shardscope_launch::resolve;
use shardscope_plan::{Field, Plan};

/// Settings of the model that `name` names, or whose `config.json` it is.
///
/// # Errors
/// Which parts of the model no setting can express, in words; empty for an unknown name.
pub fn model_settings(name: &str) -> Result<Vec<(Field, String)>, Vec<String>> {
    // No model name begins with a brace.
    if name.trim_start().starts_with('{') {
        return catalog::of_config(name);
    }
    let model = catalog::find(name).model().ok_or_else(Vec::new)?;
    let lacking = model.lacking();
    if lacking.is_empty() { Ok(model.settings()) } else { Err(lacking) }
}

/// Longest text that may be just a model. Unit: byte. Configurations of the catalog's models have below 10,000.
const LONGEST_MODEL: usize = 1 << 16;

/// The model that `input` names, or whose `config.json` it is, if it contains nothing else.
#[must_use]
pub fn model_alone(input: &UserInput) -> Option<&str> {
    let text = input.text.trim();
    let is_one = text.starts_with('{') || !text.contains(char::is_whitespace);
    let alone = !text.is_empty() && text.len() <= LONGEST_MODEL && is_one;
    (alone && *input == UserInput::from_text(&input.text) && model_settings(text).is_ok()).then_some(text)
}

/// Default tokens per step: Llama 3's first batch (arXiv 2407.21783, section 3.4.1).
const STEP_TOKENS: u64 = 4 << 20;

/// Maximum number of layouts tried.
const MOST_TRIED: usize = 200;

/// Degrees of parallelism of a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cut {
    /// Full recomputation of layers; tried if nothing else fits.
    recompute: bool,
    /// TP × PP.
    model_parallel: u64,
    pipeline: u64,
    tensor: u64,
    expert: u64,
}

/// A plan for `choice`: the least sharded one that fits, or the most sharded one if none does. `None` for an unknown
/// model.
#[must_use]
pub fn start(choice: &Choice) -> Option<UserInput> {
    // A model that settings cannot express completely gets no proposal, since that would be for a different model.
    let model = model_settings(&choice.model).ok()?;
    let number = |field: Field| {
        model.iter().find(|(known, _)| *known == field).and_then(|(_, value)| value.parse::<u64>().ok())
    };
    // Positions beyond what the model was built for would be refused, and the form's default may be longer than a
    // small model's.
    let sequence = choice.sequence.min(number(Field::MaxPositionEmbeddings).unwrap_or(u64::MAX));
    let base = base(&Choice { sequence, ..choice.clone() }, &model);
    let per_node = per_node(choice);
    match choice.objective {
        Objective::PreTrain => {}
        Objective::Rl => return first_that_fits(rollouts::ways(&base, choice, per_node)),
        // All other objectives run under the Trainer of transformers.
        _ => return first_that_fits(tuned::ways(&base, choice)),
    }
    // Key/value heads if there are groups: Megatron splits them over tensor ranks, so they bound TP first.
    let heads = number(Field::NumQueryGroups).or(number(Field::NumAttentionHeads)).unwrap_or(1);
    let shape = Room {
        layers: number(Field::NumLayers).unwrap_or(1),
        heads,
        experts: number(Field::NumExperts).unwrap_or(1),
        world: choice.gpus,
        per_node,
    };
    let cuts = shape.cuts().into_iter().take(MOST_TRIED);
    first_that_fits(cuts.map(|cut| with_cut(&base, cut, sequence, shape.world)))
}

/// The first of the plans that fits, or the last when none does.
fn first_that_fits(tried: impl IntoIterator<Item = Named>) -> Option<UserInput> {
    let mut last = None;
    for settings in tried {
        // Layouts that the software refuses are not proposals; the next one may be accepted.
        let Some(plan) = resolve(&[], &settings).plan else { continue };
        if fits(&plan) {
            return Some(UserInput::of_settings(settings));
        }
        // The last one is the most sharded: if nothing fits, it shows the minimum that is lacking.
        last = Some(settings);
    }
    last.map(UserInput::of_settings)
}

fn fits(plan: &Plan) -> bool {
    device_peak(plan).1 != Verdict::OutOfMemory
}

/// The usual number of accelerators per node, or the largest one below that which divides their total.
fn per_node(choice: &Choice) -> u64 {
    let usual = catalog::usual_gpus_per_node(&choice.accelerator).clamp(1, choice.gpus.max(1));
    (1..=usual).rev().find(|count| choice.gpus.is_multiple_of(*count)).unwrap_or(1)
}

fn base(choice: &Choice, model: &[(Field, String)]) -> Named {
    let mut settings = Named::new();
    for (field, value) in model {
        // The rest of a partly filled node would be idle, and Megatron requires equal nodes.
        settings.push((field.name().to_owned(), value.clone()));
    }
    say(&mut settings, "accelerator", &choice.accelerator);
    let per_node = per_node(choice);
    count(&mut settings, "num_nodes", choice.gpus / per_node);
    count(&mut settings, "gpus_per_node", per_node);
    count(&mut settings, "seq_length", choice.sequence);
    count(&mut settings, "micro_batch_size", 1);
    if choice.objective != Objective::PreTrain {
        // What follows are Megatron's flags, which the Trainer does not have.
        return settings;
    }
    // What NVIDIA's recipes set for any pre-training run.
    for name in ["bf16", "use_distributed_optimizer", "overlap_grad_reduce", "overlap_param_gather"] {
        say(&mut settings, name, "true");
    }
    if model.iter().any(|(field, _)| *field == Field::NumExperts) {
        say(&mut settings, "moe_token_dispatcher_type", "alltoall");
        say(&mut settings, "moe_grouped_gemm", "true");
        // Megatron's default is ETP = TP; experts are small, and unsharded experts per rank are the usual choice.
        count(&mut settings, "expert_tensor_parallel_size", 1);
    }
    settings
}

/// Sizes that a layout must divide.
struct Room {
    layers: u64,
    heads: u64,
    experts: u64,
    world: u64,
    per_node: u64,
}

impl Room {
    /// Every usual layout, the least sharded first.
    fn cuts(&self) -> Vec<Cut> {
        let mut cuts = Vec::new();
        for tensor in powers() {
            // Tensor parallelism within a node: over the network its all-reduces cannot be hidden.
            if tensor > self.per_node || !self.heads.is_multiple_of(tensor) {
                continue;
            }
            // 64 stages are more than any published run has, and each value is tried twice below.
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
        // By the order of `Cut`'s fields: without recomputation first, then by how much the model is sharded.
        cuts.sort();
        cuts
    }

    /// The experts are spread over as many ranks as there are experts, up to the ranks of a stage.
    fn expert(&self, pipeline: u64) -> u64 {
        let ranks = self.world / pipeline.max(1);
        // Experts are spread over all ranks of a stage, including tensor ranks, since ETP is 1.
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
// Up to 4,096, more than the ranks of any stage that a plan may have here.
fn powers() -> impl Iterator<Item = u64> {
    (0..13).map(|power| 1_u64 << power)
}

fn with_cut(base: &Named, cut: Cut, sequence: u64, world: u64) -> Named {
    let mut settings = base.clone();
    let replicas = world / cut.model_parallel.max(1);
    // Rounded up to a multiple of the replicas: the global batch must divide by them.
    let per_replica = STEP_TOKENS.div_ceil(sequence.max(1)).div_ceil(replicas.max(1)).max(1);
    count(&mut settings, "tensor_model_parallel_size", cut.tensor);
    count(&mut settings, "pipeline_model_parallel_size", cut.pipeline);
    count(&mut settings, "global_batch_size", per_replica * replicas);
    if cut.tensor > 1 {
        // Saves memory and sends no more (Korthikanti et al. 2022, section 4.2.2).
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
        let choice = Choice {
            model: model.into(),
            objective: Objective::PreTrain,
            accelerator: accelerator.into(),
            gpus,
            sequence: 4096,
        };
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
        let nobody = Choice {
            model: "nobody".into(),
            objective: Objective::PreTrain,
            accelerator: "B200".into(),
            gpus: 8,
            sequence: 1,
        };
        assert_eq!(start(&nobody), None);
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
            (layout(&small), small.fullest().map(|fullest| fullest.fit != Fit::DoesNotFit)),
            ((1, 1), Some(true))
        );
        let large = started("Llama-3-70B", "H100-SXM", 64);
        assert!(
            large.fullest().is_some_and(|fullest| fullest.fit != Fit::DoesNotFit),
            "{:?}",
            layout(&large)
        );
        assert!(layout(&large) > (1, 1));
        let hopeless = started("Llama-3.1-405B", "H100-SXM", 8);
        assert_eq!(hopeless.fullest().map(|fullest| fullest.fit), Some(Fit::DoesNotFit));
    }

    fn tuned(model: &str, objective: Objective, accelerator: &str, gpus: u64) -> Shown {
        let choice =
            Choice { model: model.into(), objective, accelerator: accelerator.into(), gpus, sequence: 2048 };
        let state = State::new(start(&choice).expect("a plan"));
        let said = state.answer.resolution.diagnostics.clone();
        assert!(said.iter().all(|one| one.severity < Severity::Warning), "{model}: {said:?}");
        (*state.shown.unwrap_or_else(|| panic!("{model}: {said:?}"))).clone()
    }

    #[test]
    fn adapters_take_less_than_everything_and_less_again_over_four_bits() {
        let peak = |objective| {
            let shown = tuned("Llama-3.1-8B", objective, "H100-SXM", 8);
            shown.fullest().expect("a stage").peak
        };
        let peaks = [Objective::Lora, Objective::QLora].map(peak);
        assert!(peaks[1] < peaks[0], "{peaks:?}");
        let on_one = tuned("Llama-3.1-8B", Objective::QLora, "A10", 1);
        assert!(on_one.fullest().is_some_and(|fullest| fullest.fit != Fit::DoesNotFit));
        let full = tuned("Llama-3.1-8B", Objective::FullFineTune, "A100-SXM-40GB", 1);
        assert_eq!(full.fullest().map(|fullest| fullest.fit), Some(Fit::DoesNotFit), "8 bytes a parameter");
    }

    #[test]
    fn preferences_need_a_reference() {
        let shown = tuned("Qwen2.5-7B", Objective::Dpo, "H100-SXM", 8);
        assert!(shown.answer.resolution.setting(Field::TrainingObjective).is_some());
    }

    #[test]
    fn rollouts_are_sharded_until_both_phases_fit() {
        let degree = |model: &str, gpus| {
            let shown = tuned(model, Objective::Rl, "H100-SXM", gpus);
            assert!(shown.fullest().is_some_and(|fullest| fullest.fit != Fit::DoesNotFit), "{model}");
            shown.plan.recipe().rollout.as_ref().expect("rollouts").tensor
        };
        assert_eq!(degree("Qwen2.5-7B", 8), 1);
        assert!(degree("Qwen2.5-72B", 64) > 1);
    }

    #[test]
    fn a_text_may_be_a_model_and_nothing_else() {
        let alone = |text: &str| model_alone(&UserInput::from_text(text)).map(str::to_owned);
        assert_eq!(alone(" Qwen/Qwen3-8B\n").as_deref(), Some("Qwen/Qwen3-8B"));
        assert_eq!(alone("nobody/nothing"), None);
        assert_eq!(alone("Qwen/Qwen3-8B --lora_r 16"), None);
        assert_eq!(alone(""), None);
        let mut with_settings = UserInput::from_text("Qwen/Qwen3-8B");
        with_settings.settings.push(("seq_length".to_owned(), "4096".to_owned()));
        assert_eq!(model_alone(&with_settings), None);
    }

    #[test]
    fn a_pasted_configuration_is_a_model() {
        let config = r#"{"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192,
            "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
            "tie_word_embeddings": true, "max_position_embeddings": 131072}"#;
        let shown = started(config, "H100-SXM", 8);
        // Llama 3.2 1B as published: 1,235,814,400 parameters.
        assert_eq!(shown.report.parameters.total.get(), 1_235_814_400);
        assert!(model_settings("{ \"model_type\": \"nobody\" }").is_err_and(|words| !words.is_empty()));
        assert_eq!(model_settings("nobody"), Err(Vec::new()));
        assert_eq!(model_alone(&UserInput::from_text(config)), Some(config));
    }
}
