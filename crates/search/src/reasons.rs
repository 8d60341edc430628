//! Why the software refuses layouts of a search, in words.

use shardscope_source::Code;

/// What is wrong with layouts refused for `code`, to follow their number: `1,204 with a global batch that …`.
#[must_use]
pub fn refusal(code: Code) -> String {
    let words = match code {
        Code::WorldSize => "TP × PP × CP that does not divide the number of GPUs",
        Code::ExpertWorldSize => "ETP × EP × PP that does not divide the number of GPUs",
        Code::GlobalBatch => "global batch not a multiple of micro-batch × replicas",
        Code::MoeSequenceParallel => "experts under TP without sequence parallelism",
        Code::HeadsOverTp => "heads that do not divide over TP",
        Code::GroupsOverTp => "query groups that do not divide over TP",
        Code::FfnOverTp => "MLP width that does not divide over TP",
        Code::MoeFfnOverEtp => "expert width that does not divide over ETP",
        Code::SharedFfnOverTp => "shared expert's width that does not divide over TP",
        Code::ExpertsOverEp => "experts that do not divide over EP",
        Code::CpA2aHeads => "heads that do not divide over TP × CP",
        Code::SeqOverCp => "sequence that does not divide over CP",
        Code::SeqOverTp => "sequence that does not divide over TP",
        Code::LayersOverPp => "layers that do not divide over PP",
        Code::LayersOverEnds => "layers between first and last stage that do not divide",
        Code::LayersOverVpp => "layers of a stage that do not divide over VPP",
        Code::PipelineLayout => "pipeline layouts that cannot be written out",
        Code::TooFewLayers => "fewer layers than stages",
        Code::VppMicroBatches => "too few micro-batches for interleaving",
        Code::VppGroupSize => "micro-batch groups that interleaving cannot take",
        Code::VppOverlap => "interleaving over 2 stages without overlapped sends",
        Code::ScheduleChunks => "chunks that the schedule does not run",
        Code::DualpipeStages => "stages that DualPipe cannot fold",
        Code::DualpipeMicroBatches => "too few micro-batches for DualPipe",
        Code::RankOrder => "rank order that expert parallelism rules out",
        Code::TpCommOverlap => "TP overlap without sequence parallelism",
        Code::OverlapParamGather => "parameter all-gather overlap without what it needs",
        Code::Instances => "optimizer instances that do not divide the replicas",
        Code::InstancesWithoutOptimizer => "optimizer instances without the distributed optimizer",
        Code::SecondShards => "groups with second weight shards that do not divide the replicas",
        Code::ZeroOfPipelines => "ZeRO-2 or ZeRO-3 with pipeline stages",
        Code::OffloadPp => "activation offload with pipeline stages",
        Code::OffloadModules => "modules that cannot be offloaded this way",
        Code::OffloadRecompute => "activations both offloaded and recomputed",
        Code::OptimizerOffload => "optimizer offload without what it needs",
        Code::StepInBackward => "an optimizer within backward that the layout excludes",
        Code::Recompute => "recomputation that the software does not have",
        // Rules that a search seldom encounters use their name from documents.
        other => return other.name().replace('-', " "),
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use super::refusal;
    use crate::pairs::plan;
    use crate::{Choices, Dimension, Space, Values, Walk};

    /// Every reason that occurs in searches around models with and without experts has its own wording.
    #[test]
    fn reasons_that_searches_meet_have_words() {
        let mut met = Vec::new();
        // Sizes that a search tries and the software refuses: more than heads, experts or layers divide over.
        for (name, dimension, least, most) in [
            ("llama-3 70b, 128 H100", Dimension::Tensor, 16, 64),
            ("llama-3 70b, 128 H100", Dimension::Pipeline, 16, 64),
            ("mixtral 8x7b, 64 H100", Dimension::Expert, 16, 64),
            ("mixtral 8x7b, 64 H100", Dimension::Context, 2, 8),
        ] {
            let choices = Choices::default()
                .with(dimension, Values::Between(least, most))
                .with(Dimension::MicroBatch, Values::Between(1, 2))
                .with(Dimension::Recompute, Values::Stated);
            let mut walk = Walk::over(Space::with(&plan(name), choices), 1);
            walk.step(1_500);
            met.extend(walk.tally().refused.iter().map(|(code, _)| *code));
        }
        met.sort_unstable();
        met.dedup();
        assert!(met.len() > 3, "{met:?}");
        for code in met {
            assert_ne!(refusal(code), code.name().replace('-', " "), "{code}");
        }
    }
}
