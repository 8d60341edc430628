//! What a diagnostic is about.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};

/// The codes with their stable names, which documents carry.
macro_rules! codes {
    ($($(#[$about:meta])+ $code:ident = $name:literal,)+) => {
        /// What a diagnostic is about. Code asks for the variant; the name is for documents and terminals.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$about])+ $code,)+
        }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$code,)+];

            /// Its name in documents: words joined by hyphens, which later versions keep.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$code => $name,)+
                }
            }
        }
    };
}

// By its name, as documents have it: two programs that share nothing else agree on that.
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
    /// A backslash that ends no line, since a blank follows it.
    BlankAfterBackslash = "blank-after-backslash",
    /// A comment inside a quoted text, where bash sees none.
    CommentInString = "comment-in-string",
    /// An expansion that is not computed.
    Expansion = "expansion",
    /// A redirection without its file.
    MissingTarget = "missing-target",
    /// Text that cannot be read as a shell script from here on.
    NotAScript = "not-a-script",
    /// An option that stands as a command of its own: a continuation line is lost.
    OptionOutsideCommand = "option-outside-command",
    /// Commands, quotes or expansions nested deeper than is read.
    ShellTooDeep = "shell-too-deep",
    /// A script of more parts than are parsed.
    ShellTooLong = "shell-too-long",
    /// A backslash that is passed on as a word.
    StrayBackslash = "stray-backslash",
    /// A text longer than is read.
    TextTooLong = "text-too-long",
    /// A command of more words than are kept.
    TooManyWords = "too-many-words",
    /// Loops and calls that take more steps than are evaluated.
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
    /// A sign where bash takes none.
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
    /// A value that grows longer than is kept.
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
    /// More remarks than are listed.
    AndMore = "and-more",
    /// A call of the engine that it cannot take.
    BadInput = "bad-input",
    /// Options without a command around them.
    Fragment = "fragment",
    /// Something not modelled that the reader goes on without.
    GoneWithout = "gone-without",
    /// Keys that state no setting.
    KeysLeftAside = "keys-left-aside",
    /// Keys of a settings file that no reader knows.
    KeysNotRead = "keys-not-read",
    /// Values that the trainer fills in.
    LeftToTrainer = "left-to-trainer",
    /// A file that is read here and not at hand.
    MissingFile = "missing-file",
    /// A program that takes its settings from the line that starts it, which is not at hand.
    NoCommandLine = "no-command-line",
    /// Recomputation of no layer.
    NoRecomputation = "no-recomputation",
    /// No text was given.
    NoText = "no-text",
    /// A job without a training in it.
    NoTraining = "no-training",
    /// No command with training options.
    NoTrainingCommand = "no-training-command",
    /// A setting without an effect on the estimate, which it may have in the run.
    NotEstimated = "not-estimated",
    /// A model's configuration lacks a key that its type needs, or holds what it cannot take.
    BadConfiguration = "bad-configuration",
    /// A Python file where a launch script is wanted.
    Python = "python",
    /// Several trainings, of which one is read.
    SeveralCommands = "several-commands",
    /// Texts that state different values of one setting.
    TextsDiffer = "texts-differ",
    /// A flag that a setting's value should follow.
    MissingValue = "missing-value",
    /// Flags without an influence on the estimate.
    NoInfluence = "no-influence",
    /// A flag by an older name.
    RenamedFlag = "renamed-flag",
    /// A flag given twice.
    RepeatedFlag = "repeated-flag",
    /// A log of a training.
    TrainingLog = "training-log",
    /// More files than are read.
    TooManyFiles = "too-many-files",
    /// A condition on the machine that was read one way.
    Undecided = "undecided",
    /// A model type that is not known.
    UnknownArchitecture = "unknown-architecture",
    /// An option that no reader knows.
    UnknownFlag = "unknown-flag",
    /// Several options that no reader knows, told together.
    UnknownFlags = "unknown-flags",
    /// A value that a fork of Megatron does not know.
    UnknownValue = "unknown-value",
    /// A flag written with underscores.
    Underscores = "underscores",
    /// A model name that is not known.
    UnknownModel = "unknown-model",
    /// A file of settings that belongs to no known framework.
    UnknownSettings = "unknown-settings",
    /// A variable of options that is not set.
    UnsetOptions = "unset-options",
    // Resolving.
    /// A schedule of batch sizes that cannot be read.
    BadSchedule = "bad-schedule",
    /// A value that its setting does not take.
    BadValue = "bad-value",
    /// A global batch and a schedule of batches.
    BatchGivenTwice = "batch-given-twice",
    /// A hidden size that does not divide over the heads.
    HiddenOverHeads = "hidden-over-heads",
    /// Layers of a pipeline rank that do not divide into chunks.
    LayersOverVpp = "layers-over-vpp",
    /// A setting that nothing gives.
    MissingSetting = "missing-setting",
    /// Query groups with multi-latent attention.
    MlaGroups = "mla-groups",
    /// A setting without an effect beside the others.
    NoEffect = "no-effect",
    /// A number of GPUs that nothing gives.
    NoWorldSize = "no-world-size",
    /// Something that changes the answer and is not modelled.
    NotModelled = "not-modelled",
    /// A value left to a variable that is not set.
    OpenValue = "open-value",
    /// Samples packed up to a number of tokens.
    PackedSamples = "packed-samples",
    /// A growing batch that does not divide.
    Rampup = "rampup",
    /// Recomputation settings that contradict each other.
    Recompute = "recompute",
    /// What PyTorch's FSDP2 excludes.
    TorchFsdp2 = "torch-fsdp2",
    /// Two number formats for the same tensors.
    TwoPrecisions = "two-precisions",
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
    /// A world size beside nodes and GPUs per node that give another.
    WorldSizeStatedTwice = "world-size-stated-twice",
    // Estimates.
    /// An estimate that no machine can reach.
    ImpossibleEstimate = "impossible-estimate",
    // What Megatron refuses at start.
    /// A layout of another size than its cluster.
    ClusterSize = "cluster-size",
    /// Heads that do not divide over the ranks that swap them for sequence.
    CpA2aHeads = "cp-a2a-heads",
    /// A step that a compiler lays out, other than those that were compiled.
    CompiledStep = "compiled-step",
    /// A critic whose own settings contradict a rule.
    CriticPlan = "critic-plan",
    /// Model parallelism under a trainer that has none.
    DataParallelAlone = "data-parallel-alone",
    /// Saved activations distributed without what that needs.
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
    /// A gather of fp8 weights without what it needs.
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
    /// Layers left beside the first and last stage that do not divide.
    LayersOverEnds = "layers-over-ends",
    /// Layers that do not divide over PP.
    LayersOverPp = "layers-over-pp",
    /// A micro-batch of more tokens than any device holds.
    MicroBatchSize = "micro-batch-size",
    /// A model of more parameters than are estimated.
    ModelSize = "model-size",
    /// An expert width that does not divide over expert TP.
    MoeFfnOverEtp = "moe-ffn-over-etp",
    /// A pattern of expert layers that is none.
    MoeLayerFreq = "moe-layer-freq",
    /// A pattern of layers' mixers that is none.
    LayerPattern = "layer-pattern",
    /// Experts under TP without sequence parallelism.
    MoeSequenceParallel = "moe-sequence-parallel",
    /// Multi-token prediction with an embedding it cannot use.
    MtpPositions = "mtp-positions",
    /// Activations offloaded in a pipeline.
    OffloadPp = "offload-pp",
    /// Modules that cannot be offloaded so.
    OffloadModules = "offload-modules",
    /// Activations offloaded and recomputed.
    OffloadRecompute = "offload-recompute",
    /// An offloaded optimizer without what it needs.
    OptimizerOffload = "optimizer-offload",
    /// An overlapped weight gather without what it needs.
    OverlapParamGather = "overlap-param-gather",
    /// Adapters that their library cannot cut so.
    AdapterCut = "adapter-cut",
    /// A written-out pipeline layout that cannot be.
    PipelineLayout = "pipeline-layout",
    /// A pipeline of more parts than are laid out.
    PipelineParts = "pipeline-parts",
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
    /// A setting's number outside the range that it may have.
    Size = "size",
    /// A layout whose stages are not the model's.
    StageMap = "stage-map",
    /// Fewer layers than the split needs.
    TooFewLayers = "too-few-layers",
    /// More experts for a token than there are.
    Topk = "topk",
    /// Overlapped tensor-parallel messages without what they need.
    TpCommOverlap = "tp-comm-overlap",
    /// A vocabulary that does not divide over TP.
    VocabOverTp = "vocab-over-tp",
    /// A group of micro-batches that an interleaved schedule cannot take.
    VppGroupSize = "vpp-group-size",
    /// Micro-batches that an interleaved schedule cannot take.
    VppMicroBatches = "vpp-micro-batches",
    /// An interleaved schedule of two stages without overlapped messages.
    VppOverlap = "vpp-overlap",
    /// Chunks without a pipeline.
    VppWithoutPp = "vpp-without-pp",
    /// Ranks that do not divide over TP, PP and CP.
    WorldSize = "world-size",
    /// A stage of ZeRO that DeepSpeed's pipelines cannot run.
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
