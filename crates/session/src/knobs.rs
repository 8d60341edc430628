//! The settings that are tried most, each with its next lower and higher value.

use shardscope_launch::Resolution;
use shardscope_plan::{Field, Plan, Recompute};

/// A setting that is doubled and halved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knob {
    /// Which setting.
    pub field: Field,
    /// Its short name.
    pub short: &'static str,
    /// Its value now.
    pub value: u64,
    /// The next lower value; `None` at the end.
    pub less: Option<u64>,
    /// The next higher value; `None` at the end.
    pub more: Option<u64>,
}

/// Maximum to which a knob turns a degree; the text may go further.
const MOST: u64 = 65_536;

fn knob(field: Field, short: &'static str, value: u64) -> Knob {
    // Degrees divide the world size, which is nearly always a power of two: steps of one would mostly be refused.
    let less = value.is_multiple_of(2).then_some(value / 2).filter(|less| *less > 0);
    let more = value.checked_mul(2).filter(|more| *more <= MOST);
    // An odd number steps down to one, since it cannot be halved.
    let less = less.or((value > 1).then_some(1));
    Knob { field, short, value, less, more }
}

/// The knobs of `plan`.
#[must_use]
pub fn knobs(plan: &Plan) -> Vec<Knob> {
    let (layout, recipe) = (plan.layout(), plan.recipe());
    let mut knobs = vec![
        knob(Field::NumNodes, "nodes", plan.cluster().num_nodes),
        knob(Field::TensorModelParallelSize, "TP", layout.tensor),
        knob(Field::PipelineModelParallelSize, "PP", layout.pipeline),
        knob(Field::ContextParallelSize, "CP", layout.context),
    ];
    // A dense model has no experts to spread, and the software refuses EP above 1 for it.
    if plan.model().experts.is_some() {
        knobs.push(knob(Field::ExpertModelParallelSize, "EP", layout.expert));
    }
    knobs.push(knob(Field::MicroBatchSize, "micro-batch", recipe.micro_batch_size));
    knobs.push(knob(Field::SeqLength, "sequence", plan.model().seq_length));
    knobs
}

/// The short name of a setting that advice and search vary; the words of its own name for any other.
#[must_use]
pub fn short_name(field: Field) -> String {
    let short = match field {
        Field::TensorModelParallelSize => "TP",
        Field::PipelineModelParallelSize => "PP",
        Field::ContextParallelSize => "CP",
        Field::ExpertModelParallelSize => "EP",
        Field::ExpertTensorParallelSize => "ETP",
        Field::MicroBatchSize => "micro-batch",
        Field::GlobalBatchSize => "global batch",
        Field::NumNodes => "nodes",
        Field::RecomputeGranularity => "recompute",
        Field::VirtualPipelineModelParallelSize => "VPP",
        Field::SequenceParallel => "sequence parallel",
        Field::UseDistributedOptimizer => "distributed optimizer",
        Field::TpCommOverlap => "TP overlap",
        Field::OverlapP2pComm => "P2P overlap",
        Field::OverlapMoeExpertParallelComm => "EP overlap",
        Field::OverlapGradReduce => "gradient overlap",
        Field::OverlapParamGather => "parameter overlap",
        Field::PipelineModelParallelLayout => "stage layout",
        Field::Fp8 => "FP8",
        Field::Fp8Recipe => "FP8 recipe",
        Field::Fp8ParamGather => "FP8 parameter gather",
        Field::PipelineSchedule => "schedule",
        Field::UseMegatronFsdp => "Megatron FSDP",
        Field::DataParallelShardingStrategy => "sharded",
        Field::ZeroStage => "ZeRO stage",
        Field::MicrobatchGroupSizePerVpStage => "micro-batch group",
        Field::UseTpPpDpMapping => "TP-PP-DP rank order",
        Field::OptimizerCpuOffload | Field::OffloadOptimizer => "optimizer offload",
        Field::OptimizerOffloadFraction => "offloaded fraction",
        Field::UsePrecisionAwareOptimizer => "precision-aware optimizer",
        Field::FineGrainedActivationOffloading => "activation offload",
        Field::RecomputeModules => "recompute modules",
        Field::NumDistributedOptimizerInstances => "groups of replicas",
        Field::AccountForEmbeddingInPipelineSplit => "embedding as a layer",
        Field::AccountForLossInPipelineSplit => "loss as a layer",
        Field::DecoderFirstPipelineNumLayers => "first-stage layers",
        Field::DecoderLastPipelineNumLayers => "last-stage layers",
        other => return other.name().replace('_', " "),
    };
    short.to_owned()
}

/// A value in words, if its setting uses a code.
fn value_words(field: Field, value: &str) -> &str {
    match (field, value) {
        (Field::DataParallelShardingStrategy, "optim") => "optimizer states",
        (Field::DataParallelShardingStrategy, "optim_grads") => "optimizer states and gradients",
        (Field::DataParallelShardingStrategy, "optim_grads_params") => {
            "optimizer states, gradients and weights"
        }
        (_, value) => value,
    }
}

/// Changes of settings in one line: `TP 2 → 1, recompute full`.
#[must_use]
pub fn change_line(resolution: &Resolution, changes: &[(Field, String)]) -> String {
    let now =
        |field: Field| resolution.setting(field).map(|setting| setting.value.written()).unwrap_or_default();
    let one = |(field, value): &(Field, String)| {
        // Settings are compared as written, so that `true` by default and `true` by hand are the same value.
        let short = short_name(*field);
        match (now(*field).as_str(), value_words(*field, value)) {
            // An empty value unsets what the text states (`Event::Try`).
            (_, "") => format!("without {short}"),
            (_, "true") => format!("{short} on"),
            (_, "false") => format!("{short} off"),
            // What was sharded before matters less than what is now.
            (_, value) if *field == Field::DataParallelShardingStrategy => format!("{short} {value}"),
            ("", value) => format!("{short} {value}"),
            (now, value) => format!("{short} {now} → {value}"),
        }
    };
    // "recompute full" says it, and so does "FP8 hybrid": how the software is told so is in the settings.
    let told_by = |field: Field, value: &str| match field {
        Field::RecomputeMethod | Field::RecomputeNumLayers => Some(Field::RecomputeGranularity),
        Field::Fp8ParamGather if value == "false" => Some(Field::Fp8),
        Field::OptimizerOffloadFraction => Some(Field::OptimizerCpuOffload),
        _ => None,
    };
    let changed = |field: Field| changes.iter().any(|(other, _)| *other == field);
    // Search states values that hold already, where another software would choose otherwise.
    let stated = changes.iter().filter(|(field, value)| {
        // A change implied by another is omitted only if that other one is in the line too.
        !told_by(*field, value).is_some_and(changed) && (value.is_empty() || now(*field) != *value)
    });
    stated.map(one).collect::<Vec<_>>().join(", ")
}

/// Ways to recompute activations.
pub const RECOMPUTE: [&str; 3] = ["none", "selective", "full"];

/// Which of [`RECOMPUTE`] describes the plan.
#[must_use]
pub fn recompute_of(plan: &Plan) -> &'static str {
    match plan.recipe().recompute {
        Recompute::None => RECOMPUTE[0],
        Recompute::Selective(_) => RECOMPUTE[1],
        // The three ways differ in which layers, and all recompute whole ones.
        Recompute::Uniform { .. } | Recompute::Block { .. } | Recompute::Every { .. } => RECOMPUTE[2],
    }
}

/// The settings that make the plan recompute in the way called `name`.
#[must_use]
pub fn recompute_as(name: &str) -> Vec<(String, String)> {
    let (granularity, method, layers) = match name {
        // Uniform over one layer saves the least that full recomputation can save: the input of every layer.
        "full" => ("full", "uniform", "1"),
        "selective" => ("selective", "", ""),
        _ => ("", "", ""),
    };
    let values = [
        (Field::RecomputeGranularity, granularity),
        (Field::RecomputeMethod, method),
        (Field::RecomputeNumLayers, layers),
        // Older flags for the same are unset as well; otherwise they would still recompute what the choice has just
        // switched off.
        (Field::RecomputeActivations, ""),
        (Field::CheckpointActivations, ""),
    ];
    values.into_iter().map(|(field, value)| (field.name().to_owned(), value.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EXAMPLE, Event, State, UserInput, apply};

    #[test]
    fn a_turned_knob_shows_in_the_plan() {
        let state = State::default();
        let plan = state.shown.as_ref().map(|shown| shown.plan.clone()).expect("a plan");
        for knob in knobs(&plan) {
            for value in [knob.less, knob.more].into_iter().flatten() {
                let set = Event::Set { name: knob.field.name().to_owned(), value: value.to_string() };
                let turned = apply(state.clone(), set);
                // If Megatron refuses the step, the user is told why; otherwise the knob has moved.
                if turned.refused.is_none() {
                    let plan = &turned.shown.expect("a plan").plan;
                    let now = knobs(plan).into_iter().find(|other| other.field == knob.field);
                    assert_eq!(now.map(|knob| knob.value), Some(value));
                }
            }
        }
    }

    #[test]
    fn a_change_is_a_line() {
        let state = State::default();
        let resolution = &state.answer.resolution;
        let changes = [
            (Field::TensorModelParallelSize, "1".to_owned()),
            (Field::RecomputeGranularity, "full".to_owned()),
            (Field::RecomputeMethod, "uniform".to_owned()),
        ];
        assert_eq!(change_line(resolution, &changes), "TP 2 → 1, recompute full");
        assert_eq!(change_line(resolution, &changes[2..]), "recompute method uniform");
        assert_eq!(change_line(resolution, &[(Field::Fp8, String::new())]), "without FP8");
        let fp8 = [(Field::Fp8, "hybrid"), (Field::Fp8Recipe, "delayed"), (Field::Fp8ParamGather, "false")];
        let fp8 = fp8.map(|(field, value)| (field, value.to_owned()));
        assert_eq!(change_line(resolution, &fp8), "FP8 hybrid, FP8 recipe delayed");
        // A value that already holds is not a change.
        let same = [(Field::TensorModelParallelSize, "2"), (Field::PipelineModelParallelSize, "4")];
        let same = same.map(|(field, value)| (field, value.to_owned()));
        assert_eq!(change_line(resolution, &same), "PP 2 → 4");
        let sharded =
            [(Field::UseMegatronFsdp, "true"), (Field::DataParallelShardingStrategy, "optim_grads_params")];
        let sharded = sharded.map(|(field, value)| (field, value.to_owned()));
        assert_eq!(
            change_line(resolution, &sharded),
            "Megatron FSDP on, sharded optimizer states, gradients and weights"
        );
        // Nothing that a search varies is shown by a flag's name.
        for field in Field::ALL.iter().copied() {
            assert!(!short_name(field).contains('_'), "{}", field.name());
        }
        let switches = [(Field::SequenceParallel, "true"), (Field::UseDistributedOptimizer, "false")];
        let switches = switches.map(|(field, value)| (field, value.to_owned()));
        assert_eq!(change_line(resolution, &switches), "sequence parallel on, distributed optimizer off");
    }

    #[test]
    fn recomputation_is_switched_both_ways() {
        // With flash attention the legacy models have nothing left to recompute selectively.
        let text = EXAMPLE.replace("    --use-flash-attn \\\n", "");
        let mut state = State::new(UserInput::from_text(&text));
        for name in ["full", "selective", "none"] {
            state = apply(state, Event::Try(recompute_as(name)));
            let shown = state.shown.as_ref().expect("a plan");
            assert!(state.refused.is_none(), "{:?}", state.refused);
            assert_eq!(recompute_of(&shown.plan), name);
        }
    }
}
