//! What a diagnostic is about.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};

/// The codes with their stable names, which appear in documents.
macro_rules! codes {
    ($($(#[$about:meta])+ $code:ident = $name:literal,)+) => {
        /// What a diagnostic is about. Programs match on the variant; the name is for documents and terminals.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$about])+ $code,)+
        }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$code,)+];

            /// Its name in documents: hyphenated words that stay the same in later versions.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$code => $name,)+
                }
            }
        }
    };
}

// By its name, as in documents: the one thing that separately built programs agree on.
impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Cow::<str>::deserialize(deserializer)?;
        let known = Self::ALL.iter().copied().find(|code| code.name() == name);
        known.ok_or_else(|| D::Error::custom("no code of a diagnostic"))
    }
}

impl Display for Code {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

codes! {
    // The shell.
    /// An arithmetic expression that cannot be computed.
    Arithmetic = "arithmetic",
    /// A backslash that does not continue the line because a space follows it.
    BlankAfterBackslash = "blank-after-backslash",
    /// A comment inside a quoted text, where bash treats it as text.
    CommentInString = "comment-in-string",
    /// An expansion that is not computed.
    Expansion = "expansion",
    /// A redirection without its file.
    MissingTarget = "missing-target",
    /// Text that cannot be parsed as a shell script from here on.
    NotAScript = "not-a-script",
    /// An option that forms a command by itself because a line continuation is missing.
    OptionOutsideCommand = "option-outside-command",
    /// Commands, quotes or expansions nested deeper than the limit.
    ShellTooDeep = "shell-too-deep",
    /// A script with more parts than the limit.
    ShellTooLong = "shell-too-long",
    /// A backslash that is passed on as a word.
    StrayBackslash = "stray-backslash",
    /// A text longer than the limit.
    TextTooLong = "text-too-long",
    /// A command with more words than the limit.
    TooManyWords = "too-many-words",
    /// Loops and calls that take more steps than the limit.
    TooMuchWork = "too-much-work",
    /// An array whose parenthesis is never closed.
    UnclosedArray = "unclosed-array",
    /// A compound command without its end.
    UnclosedCommand = "unclosed-command",
    /// An expansion that is never closed.
    UnclosedExpansion = "unclosed-expansion",
    /// A parenthesis that is never closed.
    UnclosedGroup = "unclosed-group",
    /// A quote that is never closed.
    UnclosedQuote = "unclosed-quote",
    /// A character where bash does not allow it.
    UnexpectedSign = "unexpected-sign",
    /// A closing word that closes nothing.
    UnexpectedWord = "unexpected-word",
    /// An expression that bash would split.
    UnquotedExpression = "unquoted-expression",
    /// A `case` arm without pattern or parenthesis.
    UnreadableCase = "unreadable-case",
    /// A substituted command that cannot be read.
    UnreadableCommand = "unreadable-command",
    /// An expansion that cannot be read.
    UnreadableExpansion = "unreadable-expansion",
    /// A function without a body.
    UnreadableFunction = "unreadable-function",
    /// The head of a loop that cannot be read.
    UnreadableLoop = "unreadable-loop",
    /// A test that cannot be read.
    UnreadableTest = "unreadable-test",
    /// A value that grows longer than the limit.
    ValueTooLong = "value-too-long",
    // Settings files.
    /// JSON that is not well formed.
    JsonForm = "json-form",
    /// A key given twice in one mapping.
    RepeatedKey = "repeated-key",
    /// TOML that is not well formed.
    TomlForm = "toml-form",
    /// YAML that is not well formed.
    YamlForm = "yaml-form",
    // Readers of launches and of settings.
    /// More diagnostics than are listed.
    AndMore = "and-more",
    /// A call to the engine with invalid input.
    BadInput = "bad-input",
    /// Options without a command around them.
    Fragment = "fragment",
    /// Something not modelled that the reader chose to continue without.
    GoneWithout = "gone-without",
    /// Keys that state no setting.
    KeysLeftAside = "keys-left-aside",
    /// Keys of a settings file that no reader knows.
    KeysNotRead = "keys-not-read",
    /// Values that the trainer fills in.
    LeftToTrainer = "left-to-trainer",
    /// More questions than are asked at once.
    MoreQuestions = "more-questions",
    /// A file that the script reads but that was not given.
    MissingFile = "missing-file",
    /// A program that takes its settings from the line that starts it, which was not given.
    NoCommandLine = "no-command-line",
    /// Recomputation of no layer.
    NoRecomputation = "no-recomputation",
    /// No text was given.
    NoText = "no-text",
    /// A job that contains no training.
    NoTraining = "no-training",
    /// No command with training options.
    NoTrainingCommand = "no-training-command",
    /// A setting that has no effect on the estimate but may have one in the run.
    NotEstimated = "not-estimated",
    /// A model's configuration lacks a key that its type needs, or holds an invalid value.
    BadConfiguration = "bad-configuration",
    /// A Python file where a launch script is expected.
    Python = "python",
    /// Several training commands, of which one is read.
    SeveralCommands = "several-commands",
    /// Texts that state different values of one setting.
    TextsDiffer = "texts-differ",
    /// A flag that a setting's value should follow.
    MissingValue = "missing-value",
    /// Flags that do not affect the estimate.
    NoInfluence = "no-influence",
    /// A flag by an older name.
    RenamedFlag = "renamed-flag",
    /// A flag given twice.
    RepeatedFlag = "repeated-flag",
    /// A log of a training.
    TrainingLog = "training-log",
    /// More files than the limit.
    TooManyFiles = "too-many-files",
    /// A condition on the machine for which one outcome was assumed.
    Undecided = "undecided",
    /// A model type that is not known.
    UnknownArchitecture = "unknown-architecture",
    /// An option that no reader knows.
    UnknownFlag = "unknown-flag",
    /// Several options that no reader knows, reported together.
    UnknownFlags = "unknown-flags",
    /// A value that a fork of Megatron does not know.
    UnknownValue = "unknown-value",
    /// A flag written with underscores.
    Underscores = "underscores",
    /// A model name that is not known.
    UnknownModel = "unknown-model",
    /// A file of settings that belongs to no known framework.
    UnknownSettings = "unknown-settings",
    /// A variable meant to hold options that is not set.
    UnsetOptions = "unset-options",
    // Resolving.
    /// A schedule of batch sizes that cannot be read.
    BadSchedule = "bad-schedule",
    /// A value that its setting does not accept.
    BadValue = "bad-value",
    /// Both a global batch size and a batch size schedule.
    BatchGivenTwice = "batch-given-twice",
    /// A hidden size that does not divide over the heads.
    HiddenOverHeads = "hidden-over-heads",
    /// Layers of a pipeline rank that do not divide into chunks.
    LayersOverVpp = "layers-over-vpp",
    /// A required setting that nothing states.
    MissingSetting = "missing-setting",
    /// Query groups with multi-latent attention.
    MlaGroups = "mla-groups",
    /// A setting that has no effect given the others.
    NoEffect = "no-effect",
    /// A number of GPUs that nothing states.
    NoWorldSize = "no-world-size",
    /// Something that changes the answer and is not modelled.
    NotModelled = "not-modelled",
    /// A value left to a variable that is not set.
    OpenValue = "open-value",
    /// Samples packed up to a number of tokens.
    PackedSamples = "packed-samples",
    /// A batch size ramp-up that does not divide evenly.
    Rampup = "rampup",
    /// Recomputation settings that contradict each other.
    Recompute = "recompute",
    /// What PyTorch's FSDP2 excludes.
    TorchFsdp2 = "torch-fsdp2",
    /// Two number formats for the same tensors.
    TwoPrecisions = "two-precisions",
    /// An accelerator that only a comment names, where none is stated.
    AcceleratorInComment = "accelerator-in-comment",
    /// An accelerator that is not in the catalog.
    UnknownAccelerator = "unknown-accelerator",
    /// A platform that is not in the catalog.
    UnknownPlatform = "unknown-platform",
    /// A setting by a name that is not known.
    UnknownSetting = "unknown-setting",
    /// Chunks of a pipeline rank given in two ways.
    VppGivenTwice = "vpp-given-twice",
    /// Layers per virtual stage with a first or last stage of its own size.
    VppUneven = "vpp-uneven",
    /// GPUs that do not divide over nodes.
    WorldOverNodes = "world-over-nodes",
    /// A world size that differs from nodes times GPUs per node.
    WorldSizeStatedTwice = "world-size-stated-twice",
    // Estimates.
    /// An estimate that no machine can reach.
    ImpossibleEstimate = "impossible-estimate",
    // What Megatron refuses at start.
    /// A layout whose size differs from its cluster's.
    ClusterSize = "cluster-size",
    /// Heads that do not divide over the ranks that trade them for sequence.
    CpA2aHeads = "cp-a2a-heads",
    /// A compiler-scheduled step outside of those that were compiled for this project.
    CompiledStep = "compiled-step",
    /// A critic whose own settings contradict a rule.
    CriticPlan = "critic-plan",
    /// Model parallelism under a trainer that has none.
    DataParallelAlone = "data-parallel-alone",
    /// Saved activations distributed without what that requires.
    DistributeSaved = "distribute-saved",
    /// Expert parallelism in a model without experts.
    EpWithoutExperts = "ep-without-experts",
    /// Ranks that do not divide over the expert layout.
    ExpertWorldSize = "expert-world-size",
    /// Fewer micro-batches than DualPipe needs.
    DualpipeMicroBatches = "dualpipe-micro-batches",
    /// A number of stages that DualPipe cannot fold.
    DualpipeStages = "dualpipe-stages",
    /// Experts that do not divide over EP.
    ExpertsOverEp = "experts-over-ep",
    /// An MLP width that does not divide over TP.
    FfnOverTp = "ffn-over-tp",
    /// A gather of fp8 weights without what it requires.
    Fp8ParamGather = "fp8-param-gather",
    /// A global batch that is not a multiple of micro batch times DP.
    GlobalBatch = "global-batch",
    /// Query groups that do not divide over TP.
    GroupsOverTp = "groups-over-tp",
    /// Heads that do not divide over query groups.
    HeadsOverGroups = "heads-over-groups",
    /// Heads that do not divide over TP.
    HeadsOverTp = "heads-over-tp",
    /// Levels of context parallelism whose product is not CP.
    HierarchicalCp = "hierarchical-cp",
    /// Optimizer instances that do not divide the replicas.
    Instances = "instances",
    /// Optimizer instances without the distributed optimizer.
    InstancesWithoutOptimizer = "instances-without-optimizer",
    /// Groups of ranks with second weight shards that do not divide the replicas.
    SecondShards = "second-shards",
    /// Layers that do not divide evenly over the stages between the first and the last.
    LayersOverEnds = "layers-over-ends",
    /// Layers that do not divide over PP.
    LayersOverPp = "layers-over-pp",
    /// A micro-batch with more tokens than any device holds.
    MicroBatchSize = "micro-batch-size",
    /// A model with more parameters than the limit.
    ModelSize = "model-size",
    /// An expert width that does not divide over expert TP.
    MoeFfnOverEtp = "moe-ffn-over-etp",
    /// An invalid pattern of expert layers.
    MoeLayerFreq = "moe-layer-freq",
    /// An invalid pattern of layers' mixers.
    LayerPattern = "layer-pattern",
    /// Experts under TP without sequence parallelism.
    MoeSequenceParallel = "moe-sequence-parallel",
    /// Multi-token prediction with an embedding it cannot use.
    MtpPositions = "mtp-positions",
    /// Activations offloaded in a pipeline.
    OffloadPp = "offload-pp",
    /// Modules that cannot be offloaded in this combination.
    OffloadModules = "offload-modules",
    /// Activations offloaded and recomputed.
    OffloadRecompute = "offload-recompute",
    /// An offloaded optimizer without what it needs.
    OptimizerOffload = "optimizer-offload",
    /// An overlapped weight gather without what it needs.
    OverlapParamGather = "overlap-param-gather",
    /// Adapters that their library cannot shard in this way.
    AdapterCut = "adapter-cut",
    /// An explicit pipeline layout that is invalid.
    PipelineLayout = "pipeline-layout",
    /// A pipeline with more parts than the limit.
    PipelineParts = "pipeline-parts",
    /// An optimizer that steps within backward where the software does not let it.
    StepInBackward = "step-in-backward",
    /// Fewer positions than the sequence has.
    Positions = "positions",
    /// Optimizer formats without the precision-aware optimizer.
    PrecisionAware = "precision-aware",
    /// An order of ranks that expert parallelism excludes.
    RankOrder = "rank-order",
    /// Chunks of a rank that the schedule does not run.
    ScheduleChunks = "schedule-chunks",
    /// A sequence that does not divide over CP.
    SeqOverCp = "seq-over-cp",
    /// A sequence that does not divide over TP.
    SeqOverTp = "seq-over-tp",
    /// A shared expert's width that does not divide over TP.
    SharedFfnOverTp = "shared-ffn-over-tp",
    /// A setting's number outside its allowed range.
    Size = "size",
    /// A layout whose stages do not match the model.
    StageMap = "stage-map",
    /// Fewer layers than the split needs.
    TooFewLayers = "too-few-layers",
    /// More experts for a token than there are.
    Topk = "topk",
    /// Overlapped tensor-parallel messages without what they need.
    TpCommOverlap = "tp-comm-overlap",
    /// A vocabulary that does not divide over TP.
    VocabOverTp = "vocab-over-tp",
    /// A group of micro-batches that an interleaved schedule cannot use.
    VppGroupSize = "vpp-group-size",
    /// Micro-batches that an interleaved schedule cannot use.
    VppMicroBatches = "vpp-micro-batches",
    /// An interleaved schedule of two stages without overlapped messages.
    VppOverlap = "vpp-overlap",
    /// Chunks without a pipeline.
    VppWithoutPp = "vpp-without-pp",
    /// Ranks that do not divide over TP, PP and CP.
    WorldSize = "world-size",
    /// A ZeRO stage that DeepSpeed's pipelines cannot run.
    ZeroOfPipelines = "zero-of-pipelines",
}

#[cfg(test)]
mod tests {
    use super::Code;

    #[test]
    fn names_are_words_joined_by_hyphens_and_each_is_one_codes() {
        for (index, code) in Code::ALL.iter().enumerate() {
            let name = code.name();
            assert!(name.split('-').all(|word| !word.is_empty()), "{name}");
            assert!(
                name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'),
                "{name}"
            );
            assert!(Code::ALL[..index].iter().all(|other| other.name() != name), "{name} twice");
            assert_eq!(code.to_string(), name);
        }
    }
}
