// English.

/// The language's code, for browsers and those who hear the page.
pub(crate) const LANGUAGE: &str = "en";

/// What the engine, the guide and `index.html` say, each sentence beside the same in this language, with holes `{0}` to
/// `{9}` for what is filled in; one without holes before one that it would fit into. They speak English already.
pub(crate) const SAYINGS: &[(&str, &str)] = &[];

/// Names that the engine gives, each with the term that explains it.
pub(crate) const NAMED: &str = "\
TP=tensor parallelism
PP=pipeline stage
CP=context parallelism
EP=expert parallelism
optimizer=optimizer states
framework=framework memory
tensor=tensor parallelism
pipeline=pipeline stage
data=data-parallel group
context=context parallelism
expert=expert parallelism
tensor parallel=tensor parallelism
pipeline parallel=pipeline stage
data parallel=data-parallel group
context parallel=context parallelism
expert parallel=expert parallelism
expert tensor parallel=expert tensor parallelism
all_reduce=all-reduce
all_gather=all-gather
reduce_scatter=reduce-scatter
all_to_all=all-to-all
send_recv=point-to-point
";

/// Around the panels.
pub(crate) mod page {
    pub(crate) const TAGLINE: &str = "What a training run takes, from its launch script";
    pub(crate) const SKIP: &str = "To the answer";
    pub(crate) const STALE: &str =
        "The text as it is now makes no plan: {0}. This is the answer to the last one that did.";
    pub(crate) const NO_PLAN: &str = "There is no plan to show yet: {0}.";
    pub(crate) const PARTS: &str = "Parts of the answer";
    /// The parts that are always there, in their order; before them the comparison, where there is one.
    pub(crate) const SECTIONS: [&str; 9] = [
        "Memory",
        "Time",
        "Schedule",
        "Communication",
        "Group map",
        "Layers",
        "Matrix products",
        "Other layouts",
        "Tool of 2023",
    ];
    pub(crate) const COMPARISON: &str = "Comparison";
    pub(crate) const PRIVATE: &str =
        "Everything is computed in this page. Nothing you paste is sent anywhere.";
    pub(crate) const GUIDE: &str = "Guide";
    pub(crate) const EVIDENCE: &str = "Evidence";
    pub(crate) const OPEN: &str = "Open in Shardscope";
    pub(crate) const CLOSE: &str = "Close";
    pub(crate) const MORE: &str = "More in the guide";
}

/// The buttons beside the name of the page, and the colours.
pub(crate) mod toolbar {
    pub(crate) const NAME: &str = "Plan";
    pub(crate) const START: &str = "Start from…";
    /// A button's name, then what a pointer resting on it is told.
    pub(crate) const UNDO: [&str; 2] = ["Undo", "Undo (Ctrl+Z)"];
    pub(crate) const REDO: [&str; 2] = ["Redo", "Redo (Ctrl+Shift+Z)"];
    pub(crate) const PIN: [&str; 2] = ["Pin", "Hold this plan and see the next one beside it"];
    pub(crate) const SHARE: &str = "Share";
    pub(crate) const BROKEN: &str = "The link could not be opened: {0}. What you had is still here.";
    pub(crate) const DISMISS: &str = "Dismiss";
    pub(crate) const COLOURS: &str = "Colours";
    /// As the system, light, dark.
    pub(crate) const THEMES: [&str; 3] = ["As the system", "Light", "Dark"];
}

/// Buttons that copy, and what they say then.
pub(crate) mod copy {
    pub(crate) const DONE: &str = "Copied";
    pub(crate) const REFUSED: &str = "Not allowed here";
    pub(crate) const SELECTED: &str = "Selected: press Ctrl+C";
}

/// Trees of numbers.
pub(crate) mod tree {
    pub(crate) const TIMES: &str = " × {0}";
    pub(crate) const EQUAL: &str = "{0} equal ones; one of them:";
    pub(crate) const GREATEST: &str = "The greatest of these counts:";
}

/// The script box.
pub(crate) mod script {
    pub(crate) const TITLE: &str = "Launch script";
    pub(crate) const OPEN: &str = "Open";
    pub(crate) const TOUR: &str = "Tour";
    pub(crate) const EXAMPLE: &str = "Example";
    pub(crate) const CLEAR: &str = "Clear";
    pub(crate) const EMPTY: &str = "Paste the training script here";
    pub(crate) const TAKE_AWAY: &str = "Take {0} away";
    pub(crate) const BESIDE: &str = "Files beside the script";
}

/// What there is to say about the text.
pub(crate) mod diagnostics {
    pub(crate) const READING: &str = "Reading a long text…";
    pub(crate) const NONE_NEEDED: &str = "No script is needed: the settings below make the plan.";
    pub(crate) const EMPTY: &str = "The box is empty: paste or drop a script, or take the example.";
    pub(crate) const CLEAN: &str = "Everything in the text was understood.";
    pub(crate) const fn notes(count: u64) -> &'static str {
        if count == 1 { "{0} note" } else { "{0} notes" }
    }
    /// Read out before an error, a warning, a note.
    pub(crate) const SPOKEN: [&str; 3] = ["Error: ", "Warning: ", "Note: "];
    pub(crate) const AT: &str = "at line and column ";
}

/// What the text leaves open.
pub(crate) mod questions {
    use super::Panel;
    pub(crate) const PANEL: Panel = Panel {
        title: "The text leaves open",
        about: "Answer, and the report follows. Answers are kept beside the text.",
    };
    pub(crate) const USE: &str = "Use";
    pub(crate) const WITHOUT: &str = "Go on without it";
}

/// The settings.
pub(crate) mod settings {
    pub(crate) const TITLE: &str = "Settings";
    pub(crate) const COUNTED: &str = "{0} stated, {1} assumed";
    pub(crate) const ALONE: &str = "These settings make the plan. Change any of them.";
    pub(crate) const BESIDE: &str = "Change a value to try it; the script stays as it is.";
    pub(crate) const RESET: &str = "Back to the script alone";
    pub(crate) const FEWER: &str = "Only what matters most";
    pub(crate) const ALL: &str = "Show every assumption";
    pub(crate) const HEADS: [&str; 3] = ["Setting", "Value", "From"];
    pub(crate) const YES: &str = "yes";
    pub(crate) const NO: &str = "no";
    pub(crate) const SCRIPT: &str = "script";
    pub(crate) const ANSWER: &str = "answer";
    pub(crate) const CATALOG: &str = "catalog";
    pub(crate) const DEFAULT: &str = "default";
    pub(crate) const DERIVED: &str = "derived";
    pub(crate) const SET: &str = "set";
    pub(crate) const YOURS: &str = "yours, undo";
    pub(crate) const UNDONE: &str = " the change of {0}";
    pub(crate) const LINE: &str = "line {0}";
    pub(crate) const STATES: &str = " states {0}";
}

/// The script with changes written into it.
pub(crate) mod rewritten {
    pub(crate) const fn title(count: u64) -> &'static str {
        if count == 1 {
            "Your script with {0} value changed in place"
        } else {
            "Your script with {0} values changed in place"
        }
    }
    pub(crate) const TAKE: &str = "Write into the script";
    pub(crate) const UNPLACED: &str = "The script has no place for {0}: kept as set here.";
}

/// The first thing to see.
pub(crate) mod verdict {
    pub(crate) const TITLE: &str = "Verdict";
    pub(crate) const ACCELERATOR: &str = "Accelerator";
    /// The buttons of the reports, each with its hint.
    pub(crate) const REPORTS: [[&str; 2]; 2] =
        [["JSON", "Download the report as a JSON document"], ["Text", "Download the report as text"]];
    pub(crate) const NEEDS: &str = "on {0}: the fullest GPU, of stage {1}, needs {2} of {3}";
    /// Sizes of tensor, pipeline and data parallelism; then those of contexts and experts where they are cut.
    pub(crate) const CUT: &str = "TP {0} × PP {1} × [DP|data-parallel group] {2}";
    pub(crate) const CUT_TOO: [&str; 2] = [" × CP {0}", " × EP {0}"];
    pub(crate) const ACTIVE: &str = "{0}, {1} active per token";
    pub(crate) const SPEED: &str = "{0} per GPU, [MFU] {1}";
    pub(crate) const BATCHES: &str = "{0} [micro-batches|micro-batch] of {1}";
    pub(crate) const BOUNDS: &str = "{0} to {1}";
    pub(crate) const STEP: &str = "[Step time|step time]";
    pub(crate) const TOKENS: &str = "Tokens per second";
    pub(crate) const PARAMETERS: &str = "Parameters";
    pub(crate) const GPUS: &str = "GPUs";
    pub(crate) const TOKENS_OF_STEP: &str = "Tokens per step";
    pub(crate) const CAPACITY: &str = "{0} on the device";
    pub(crate) const FIRST_STAGES: &str = "The first {0} of {1} stages; the table below has all of them.";
    pub(crate) const STAGE: &str = "Stage {0}";
    pub(crate) const PIECE: &str = "{0}: {1}";
    pub(crate) const GOES: &str = "Where a step goes; messages as far as nothing [hides|overlap] them";
}

/// The settings that are tried most.
pub(crate) mod knobs {
    pub(crate) const NAME: &str = "Try other values";
    pub(crate) const RECOMPUTE: &str = "recompute";
    pub(crate) const LESS: &str = "Less: {0}";
    pub(crate) const MORE: &str = "More: {0}";
}

/// What could be better.
pub(crate) mod advice {
    pub(crate) const TITLE: &str = "What could be better";
    pub(crate) const LACKING: &str = "Ways to make it fit, and what else could be better";
    pub(crate) const ABOUT: &str = "Each change was tried; the figures beside it are the changed plan's.";
    pub(crate) const WHY: &str = "why";
    pub(crate) const PEAK: &str = "fullest GPU {0}";
    pub(crate) const STEP: &str = "step {0}";
    pub(crate) const TRY: &str = "Try it";
    pub(crate) const WITHOUT: &str = "without ";
}

/// The memory of each stage.
pub(crate) mod memory {
    use super::Panel;
    pub(crate) const PANEL: Panel = Panel {
        title: "Memory per GPU",
        about: "At the fullest moment of each [pipeline stage], in [GiB] (2^30 bytes). All GPUs of a stage hold equally much. Press a number to see why.",
    };
    pub(crate) const TABLE: &str = "Memory of each stage";
    pub(crate) const STAGE: &str = "Stage";
    pub(crate) const ALLOCATED: &str = ">allocated";
    pub(crate) const DEVICE: &str = ">device";
    /// What is counted beside the run's own tensors, in the order of `LeftOut::NAMES`.
    pub(crate) const TERMS: [&str; 5] = [
        "driver's context",
        "communicators' buffers",
        "allocator's slack",
        "DeepSpeed's flat buffers",
        "workspaces of matrix libraries",
    ];
    pub(crate) const COUNTED: &str = "Counted on the way from [allocated] to what nvidia-smi shows";
    pub(crate) const UNCUT: &str = "uncut";
    pub(crate) const ABOUT_UNCUT: &str =
        "The whole model on a single device without any parallelism, one micro-batch in the step.";
    /// What a stage holds, its fullest moment, the micro-batches in flight, what stays between steps.
    pub(crate) fn stage(in_flight: &str) -> &'static str {
        if in_flight == "1" {
            "Holds {0}. Fullest at the {1}, with {2} micro-batch in flight; {3} between steps."
        } else {
            "Holds {0}. Fullest at the {1}, with {2} micro-batches in flight; {3} between steps."
        }
    }
    pub(crate) const TREE: &str = "Down to the tensor";
}

/// How long a step takes.
pub(crate) mod time {
    use super::Panel;
    pub(crate) const PANEL: Panel = Panel {
        title: "Time of a step",
        about: "An estimate from the arithmetic, the messages and the schedule; the bounds are what it would be if everything [overlapped|overlap] that can, and if nothing did.",
    };
    pub(crate) const BETWEEN: &str = " between {0} and {1}";
    /// Figures, each with what stands below it.
    pub(crate) const TOKENS: [&str; 2] = ["Tokens per second", "{0} per GPU"];
    pub(crate) const MODEL: [&str; 2] = ["[Model FLOPs|model FLOPs]", "per GPU, {0} of the peak ([MFU])"];
    pub(crate) const HARDWARE: [&str; 2] =
        ["[Hardware FLOPs|hardware FLOPs]", "recomputation counted, {0} ([HFU])"];
    pub(crate) const BUBBLE: [&str; 2] = ["Pipeline [bubble]", "schedule {0}"];
    pub(crate) const TREE: &str = "Where it goes";
    pub(crate) const CONVENTIONS: &str = "FLOPs of a step, by who counts";
    pub(crate) const CONVENTION_HEADS: [&str; 4] = ["Convention", ">FLOP", ">per GPU", ">of the peak"];
    pub(crate) const CONVENTION_TABLE: &str = "FLOPs of a step by convention";
    pub(crate) const DOES_NOT_APPLY: &str = "does not apply";
}

/// What the reader knows better than the catalog.
pub(crate) mod own {
    pub(crate) const TITLE: &str = "Your own figures: rates you measured, tokens, price";
    pub(crate) const FIGURES: [&str; 13] = [
        "large bf16 matrix product, TFLOP/s",
        "all-reduce inside a node, bus GB/s",
        "all-reduce over nodes, bus GB/s per GPU",
        "tokens to train on",
        "price of a GPU-hour",
        "watts per GPU, host and cooling included",
        "memory of a GPU, GiB",
        "memory bandwidth, TB/s",
        "dense bf16 peak, TFLOP/s",
        "dense fp8 peak, TFLOP/s",
        "NVLink of a GPU, GB/s each way",
        "GPUs joined by NVLink",
        "network of a GPU, GB/s each way",
    ];
    pub(crate) const LOG: &str = "Your own run: paste its log lines to see them beside the prediction";
    pub(crate) const LINES: &str = "Log lines of this run";
    /// As Megatron writes it.
    pub(crate) const EMPTY: &str = " iteration 10/ 500 | elapsed time per iteration (ms): 4812.3 | throughput per GPU (TFLOP/s/GPU): 421.0 |";
    pub(crate) const HEADS: [&str; 4] = ["Figure", ">measured", ">predicted", ">off"];
    pub(crate) const TABLE: &str = "Measured and predicted";
}

/// What each stage does when.
pub(crate) mod schedule {
    pub(crate) const TITLE: &str = "Pipeline schedule";
    pub(crate) const ABOUT: &str =
        "Schedule {0}, {1} [micro-batches|micro-batch]{2}; the slowest stage [waits|bubble] {3} of the time.";
    pub(crate) const FIRST: &str = " (the first {0} are drawn: the middle repeats)";
    pub(crate) const PHASES: &str = "[warm-up] until {0}, cool-down from {1}";
    pub(crate) const EARLIER: &str = "earlier";
    pub(crate) const LATER: &str = "later";
    pub(crate) const CLOSER: &str = "closer";
    pub(crate) const FURTHER: &str = "further";
    pub(crate) const WHOLE: &str = "Whole step";
    pub(crate) const PART: &str = "{0} to {1}";
    pub(crate) const LANES: &str = "Each of {0} stages from top to bottom, its forward and backward passes from left to right; arrows move, plus and minus zoom";
    pub(crate) const CURVE: &str = "Memory of a GPU of stage ";
    pub(crate) const ABOUT_CURVE: &str = " over the same time: what is held all the time, above it what the micro-batches [in flight] keep. The line is the peak with what is alive for a moment, the top {0}.";
    pub(crate) const OTHERS: &str = "Other schedules for this plan: memory against bubble";
    pub(crate) const OTHERS_TABLE: &str = "Schedules for this plan";
    pub(crate) const OTHERS_HEADS: [&str; 6] =
        ["Schedule", ">in flight", ">fullest GPU, GiB", ">slowest waits", ">step", "try"];
    pub(crate) const OWN: &str = "{0} (this plan)";
    pub(crate) const CHUNKS: &str = "{0}, {1} chunks";
    pub(crate) const FITS: &str = "fits";
    pub(crate) const DOES_NOT_FIT: &str = "does not fit";
}

/// Who sends what to whom.
pub(crate) mod communication {
    use super::Panel;
    pub(crate) const PANEL: Panel = Panel {
        title: "Communication per iteration",
        about: "Messages are what is handed to a [collective]; [wire] is what a ring sends for it, per GPU; its number tells a tree's and a switch's too. A collective counts with every member, a send where it is sent.",
    };
    pub(crate) const ALONE: &str = "One GPU talks to nobody.";
    pub(crate) const TABLE: &str = "Communication of each dimension";
    pub(crate) const DIMENSIONS: &str = "Dimension by dimension";
    pub(crate) const ONE_GPU: &str = "one GPU of the busiest stage";
    pub(crate) const CLUSTER: &str = "the whole cluster";
    /// Headings of the summary: one GPU's, then the cluster's.
    pub(crate) const TOTALS: [&str; 8] =
        ["Dimension", ">calls", ">messages", ">wire", ">calls", ">messages", ">wire", ">by network"];
    pub(crate) const ALL: &str = "all";
    /// Headings of a dimension's messages.
    pub(crate) const MESSAGES: [&str; 8] = [
        "What",
        "Function and place",
        "Shape",
        ">each",
        ">on the wire",
        ">per micro-batch",
        ">per iteration",
        "hidden",
    ];
    pub(crate) const MESSAGES_OF: &str = "Messages of the {0} dimension";
    pub(crate) const PER_GPU: &str = "{0} per GPU";
    pub(crate) const GROUPS: &str = "Groups: {0}";
    pub(crate) const MORE: &str = "… and {0} more";
    pub(crate) const COPY: &str = "Copy the groups";
    pub(crate) const OTHER_GROUP: &str = ", {0} GPUs, {1}";
    pub(crate) const YES: &str = "yes";
    pub(crate) const NO: &str = "no";
}

/// The map of the cluster.
pub(crate) mod map {
    use super::Panel;
    pub(crate) const PANEL: Panel = Panel {
        title: "Group map",
        about: "Every GPU of the cluster, [by node|n0_g0]. Pick one to see its [rank], the groups it works in and the links to its partners.",
    };
    pub(crate) const GRID: &str = "GPUs of the cluster";
    pub(crate) const TOO_MANY: &str = "{0} GPUs are too many to draw; find one by its label instead.";
    pub(crate) const BY_STAGE: &str = "pipeline stage";
    pub(crate) const BY_GROUP: &str = "{0} groups";
    pub(crate) const BY_MEMORY: &str = "memory at the peak";
    pub(crate) const BY_TRAFFIC: &str = "bytes sent per iteration";
    pub(crate) const COLOUR: &str = "Colour by ";
    pub(crate) const SEARCH: &str = "GPUs";
    pub(crate) const FIND: &str = "Find ";
    pub(crate) const SHOW: &str = "Show";
    pub(crate) const UNKNOWN: &str = "No such GPU: labels run from n0_g0 to {0}, ranks from 0 to {1}.";
    /// What a screen reader says of a GPU: its label, rank and stage; then of each group.
    pub(crate) const SPOKEN: &str = "{0}, rank {1}, stage {2}";
    pub(crate) const SPOKEN_GROUP: &str = ", {0} group {1}";
    pub(crate) const PICKED: &str = "The picked GPU";
    pub(crate) const RANK: &str = "rank {0}";
    pub(crate) const CLEAR: &str = "Clear";
    pub(crate) const STAGE: &str = "Pipeline stage";
    pub(crate) const HOLDS: &str = "Holds";
    pub(crate) const CHUNK_HOLDS: &str = "Holds, chunk {0}";
    pub(crate) const PEAK: &str = "Memory at the peak";
    pub(crate) const ALONE: &str = "It works alone: every parallel size is 1.";
    pub(crate) const GROUP: &str = "group {0} of {1}, {2} GPUs, {3}";
    pub(crate) const NETWORK: &str = "over the network";
    pub(crate) const NODE: &str = "inside the node, beyond NVLink";
    pub(crate) const FAST: &str = "over NVLink";
    pub(crate) const NO_LINK: &str = "alone";
    pub(crate) const COPY: &str = "Copy all groups as text";
    pub(crate) const AS_TABLE: &str = "The same as a table";
    pub(crate) const TABLE: &str = "The GPUs and their groups";
    pub(crate) const BEFORE: &str = "Before";
    pub(crate) const AFTER: &str = "After";
    pub(crate) const PAGE: &str = "page {0} of {1}";
    pub(crate) const HEADS: [&str; 4] = ["GPU", ">rank", ">stage", ">memory"];
    pub(crate) const GROUP_HEAD: &str = "{0} group";
}

/// The layers of the model.
pub(crate) mod layers {
    use super::Panel;
    pub(crate) const PANEL: Panel = Panel {
        title: "Layers",
        about: "The whole model beside one GPU that holds the part: weights, and [what is kept|activations] of one [micro-batch] for the backward pass.",
    };
    pub(crate) const TABLE: &str = "Table of the layers";
    pub(crate) const WHOLE: &str = "whole model";
    pub(crate) const ONE_GPU: &str = "one GPU";
    pub(crate) const PART: &str = "Part";
    /// Above the figures of the whole model, and again above those of one GPU.
    pub(crate) const FIGURES: [&str; 6] = ["shape", "weights", "kept", "shape", "weights", "kept"];
    pub(crate) const TIMES: &str = "{0} × {1}";
    pub(crate) const PARAMETERS: &str = "{0} parameters";
}

/// Every matrix product.
pub(crate) mod matmuls {
    use super::Panel;
    pub(crate) const PANEL: Panel = Panel {
        title: "Matrix products",
        about: "The sizes of each product of a layer before and after sharding, and how much of the accelerator's dense peak they reach. [Tiles|tile], [waves|wave] and [FLOP/byte] say why it is not more.",
    };
    pub(crate) const TABLE: &str = "Table of matrix products";
    pub(crate) const HEADS: [&str; 7] = [
        "Product",
        "m × n × k on one GPU, whole below",
        ">GFLOP",
        ">moved",
        ">FLOP/byte",
        ">of peak",
        "bound by",
    ];
    pub(crate) const ARITHMETIC: &str = "arithmetic";
    pub(crate) const MEMORY: &str = "memory";
    pub(crate) const STAGE: &str = "stage {0}";
}

/// The search for other layouts.
pub(crate) mod search {
    use super::Panel;
    pub(crate) const PANEL: Panel = Panel {
        title: "Other layouts",
        about: "Every way to cut the same model over the same GPUs that Megatron accepts, with micro-batch, [recomputation|recompute] and [sharding|distributed optimizer]; the fastest that [fit|fits].",
    };
    pub(crate) const STOP: &str = "Stop";
    pub(crate) const AGAIN: &str = "Search again";
    pub(crate) const START: &str = "Search";
    pub(crate) const NONE: &str = "None of them fits.";
    pub(crate) const TABLE: &str = "Layouts found";
    pub(crate) const HEADS: [&str; 4] = [">step", ">fullest GPU", "Changes", ""];
    pub(crate) const DONE: &str = "{0} of {1} combinations, {2} refused by Megatron, {3} too large";
    pub(crate) const GOING: &str =
        "Searching: {0} of {1} combinations, {2} refused by Megatron, {3} too large";
    pub(crate) const UNCHANGED: &str = "as it is";
}

/// The tool of 2023.
pub(crate) mod tool {
    pub(crate) const TITLE: &str = "Beside the analysis tool of 2023";
    pub(crate) const ABOUT: &str = "The tool proposed for Megatron-LM in September 2023: what it prints for this plan, where that departs from what really happens, and the four runs it was measured with.";
    pub(crate) const TABLE: &str = "The tool's figures beside ours";
    pub(crate) const HEADS: [&str; 4] = ["As printed by the tool", ">tool", ">here", "the tool is off by"];
    pub(crate) const AGREES: &str = "agrees";
    pub(crate) const RUNS: &str = "Its four measured runs";
    pub(crate) const ABOUT_RUNS: &str =
        "Llama2 7B as the tool models it, bf16, eight H800; peak by torch.cuda.max_memory_allocated, in GiB.";
    pub(crate) const RUNS_TABLE: &str = "Measured runs and predictions";
    pub(crate) const RUNS_HEADS: [&str; 5] =
        ["Layout", "Global batch, of micro-batch", ">measured", ">here", ">tool"];
}

/// The guided tour.
pub(crate) mod tour {
    pub(crate) const TAKE: &str = "Take the tour";
    pub(crate) const PLACE: &str = "{0} of {1}";
    pub(crate) const BACK: &str = "Back";
    pub(crate) const NEXT: &str = "Next";
    pub(crate) const DONE: &str = "Done";
    /// What each step is called and tells. Its holes: the fullest stage (0), what its GPUs need (1) of what they have
    /// (2), the accelerator (3), a step's time (4), tokens per second (5), the schedule (6), the share of it that is
    /// waited (7), what a GPU of the busiest stage puts on the wire (8), how many GPUs there are (9).
    pub(crate) const STEPS: [[&str; 2]; 8] = [
        [
            "Does it fit, and how fast?",
            "The answer first: on {3} the fullest GPU needs {1} of {2}, and a step takes {4}. The bars show every pipeline stage against the device, by what fills it.",
        ],
        [
            "Turn a knob",
            "Change a size here, and every number on the page follows. Your script stays as it is; Undo takes the change back, and Pin keeps this plan to compare with the next.",
        ],
        [
            "Memory, down to the tensor",
            "Stage {0} is the fullest. Press a number to see the formula, the values in it and its source; the tree below goes down to each tensor.",
        ],
        [
            "Where the time goes",
            "A step of {4} is {5} tokens per second. The tree takes it apart: arithmetic, messages that nothing hides, and waiting.",
        ],
        [
            "Who waits for whom",
            "Each lane is a pipeline stage, its forward and backward passes from left to right by the schedule {6}. The slowest stage waits {7} of the time.",
        ],
        [
            "What is sent",
            "A GPU of the busiest stage puts {8} on the wire in every step. Open a dimension to see each message: how large, how often, and between which GPUs.",
        ],
        [
            "Who works with whom",
            "All {9} GPUs, each in its node. Press one to see its groups, and whether it reaches its partners over NVLink or over the network.",
        ],
        [
            "Take it with you",
            "Share gives a link that holds the plan itself, copies for reports, and files; nothing goes to a server. Now paste your own script, or start from a model.",
        ],
    ];
}

/// The pinned plan beside the one in hand.
pub(crate) mod compare {
    pub(crate) const TITLE: &str = "Compared with the pinned plan";
    pub(crate) const SWAP: &str = "Swap";
    pub(crate) const UNPIN: &str = "Unpin";
    pub(crate) const PINNED: &str = "Pinned";
    pub(crate) const NOW: &str = "Now";
    pub(crate) const SIDE: &str = "{0}: {1}, {2} a step";
    pub(crate) const SAME: &str =
        "Both are the same plan. Change anything, or take an example, and the differences stand here.";
    pub(crate) const FEWER: &str = "Only what differs";
    pub(crate) const ALL: &str = "Equal numbers too";
    pub(crate) const MEMORY_CAUSES: &str = "Where the fullest GPU's memory changed most";
    pub(crate) const TIME_CAUSES: &str = "Where the step's time changed most";
    pub(crate) const SETTINGS: &str = "Settings that differ";
    pub(crate) const FOLLOW: &str = "{0} more follow from them";
    pub(crate) const FOLLOWING: &str = "Settings that follow";
    pub(crate) const SETTING_HEADS: [&str; 3] = ["Setting", "Pinned", "Now"];
    pub(crate) const NUMBER_HEADS: [&str; 4] = ["Number", ">Pinned", ">Now", ">Change"];
    pub(crate) const CAUSE_HEADS: [&str; 4] = ["Part", ">Pinned", ">Now", ">Change"];
    pub(crate) const NONE: &str = "none";
    pub(crate) const EQUAL: &str = "All the same.";
    pub(crate) const TABLE: &str = "Compared: {0}";
    pub(crate) const BETTER: &str = ", better";
    pub(crate) const WORSE: &str = ", worse";
}

/// The sheet from which a plan starts.
pub(crate) mod gallery {
    pub(crate) const TITLE: &str = "Start from";
    pub(crate) const CHOICE: &str = "A model and a cluster";
    pub(crate) const ABOUT_CHOICE: &str =
        "Without a script: the least cut layout that fits, and every setting of it to change.";
    pub(crate) const MODEL: &str = "Model";
    pub(crate) const ACCELERATOR: &str = "Accelerator";
    pub(crate) const NODES: &str = "Nodes";
    pub(crate) const SEQUENCE: &str = "Tokens of a sample";
    pub(crate) const START: &str = "Start";
    pub(crate) const RUNS: &str = "{0} runs";
    pub(crate) const SOURCES: &str = "Sources. {0}";
    pub(crate) const PUBLISHED: &str = "published: {0}";
}

/// The sheet from which a plan goes elsewhere.
pub(crate) mod share {
    pub(crate) const TITLE: &str = "Share this plan";
    pub(crate) const NOTHING: &str = "There is no plan to share yet.";
    pub(crate) const STALE: &str =
        "The text as it is now makes no plan. The link and the files are of the last one that did.";
    pub(crate) const PINNED: &str = "The pinned plan goes along in both links.";
    pub(crate) const COPIES: &str = "For another page";
    pub(crate) const MARKDOWN: &str = "Copy Markdown";
    pub(crate) const FRAME: &str = "Copy frame";
    pub(crate) const COMMANDS: &str = "The same plan as a command";
    pub(crate) const MEGATRON: &str = "Copy Megatron-LM command";
    pub(crate) const BRIDGE: &str = "Copy NeMo and Megatron-Bridge overrides";
    pub(crate) const DEEPSPEED: &str = "Copy DeepSpeed JSON";
    pub(crate) const UNSAID: &str = "It cannot say {0}.";
    pub(crate) const FILES: &str = "Files";
    /// In the order of `files::FILES`.
    pub(crate) const FILE_NAMES: [&str; 10] = [
        "Report, JSON",
        "Report, text",
        "Report, Markdown",
        "Memory, CSV",
        "Communication, CSV",
        "Settings, CSV",
        "Memory bars, SVG",
        "Memory bars, PNG",
        "Group map, SVG",
        "Group map, PNG",
    ];
    pub(crate) const LENGTH: &str = "{0} characters.";
    pub(crate) const LONG: &str = " Longer than {0}: some chat tools and trackers cut it.";
    pub(crate) const BY_SETTINGS: &str = "Link to the plan";
    pub(crate) const ABOUT_SETTINGS: &str = "Carries {0} settings and nothing else: no script, no paths, no names. It can be read and edited by hand. ";
    pub(crate) const NOT_BY_SETTINGS: &str =
        "This plan cannot be said by settings alone; the link with the script carries it.";
    pub(crate) const COPY_LINK: &str = "Copy link";
    pub(crate) const BY_SCRIPT: &str = "Link with the script";
    pub(crate) const ABOUT_SCRIPT: &str = "Carries everything in the box word for word, with any paths, host names and keys in it, to whoever has the link. No server sees it. ";
    pub(crate) const TOO_LONG: &str = "The text is too long for a link.";
    pub(crate) const COPY_SCRIPT_LINK: &str = "Copy link with the script";
}
