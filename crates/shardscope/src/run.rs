//! What is to be estimated.

use crate::{Answer, NoPlan, Report};
use shardscope_bash::Environment;
use shardscope_launch::{Request, read};
use shardscope_source::Source;

/// Every estimate of the training that `text` starts: a launch script, a command line, a settings file, or a model's name.
///
/// # Errors
/// What keeps the text from an estimate: what is wrong with it, what it leaves open, and which parts of it are not
/// modelled.
///
/// ```
/// let why = shardscope::estimate("torchrun pretrain_gpt.py --num-layers 2 --hidden-size 64 --bf16").unwrap_err();
/// assert!(why.to_string().contains("num_attention_heads"), "{why}");
/// ```
pub fn estimate(text: &str) -> Result<Report, NoPlan> {
    Run::new(text).answer().into_report()
}

/// The texts of one training, with settings on top of them.
///
/// ```
/// use shardscope::{Origin, Run};
///
/// let script = "torchrun --nnodes $NODES --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 \
///               --num-attention-heads 32 --seq-length 4096 --micro-batch-size 1 --vocab-size 32000 --bf16";
/// let answer = Run::new(script)
///     .accelerator("H100-SXM")
///     .variable("NODES", "4")
///     .setting("tensor_model_parallel_size", "8")
///     .answer();
/// let plan = answer.plan().expect("a plan");
/// assert_eq!(plan.cluster().gpus(), 32);
/// assert_eq!(plan.layout().tensor, 8);
///
/// // Every setting says where it comes from.
/// let layers = answer.setting("num_layers").expect("a setting");
/// assert_eq!((layers.origin, layers.flag.as_deref()), (Origin::Script, Some("--num-layers")));
/// assert_eq!(answer.setting("bf16").expect("a setting").origin, Origin::Script);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Run {
    files: Vec<(String, String)>,
    environment: Environment,
    settings: Vec<(String, String)>,
}

impl Run {
    /// The training that `text` starts.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self::default().file("", text)
    }

    /// With one more text, by its file name: a `config.json`, DeepSpeed's JSON, a file that the script reads, a log.
    #[must_use]
    pub fn file(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.files.push((name.into(), text.into()));
        self
    }

    /// With a setting in place of what the texts state, by Megatron's name in snake case.
    #[must_use]
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }

    /// On this accelerator, by a name of [`catalog`](crate::catalog).
    #[must_use]
    pub fn accelerator(self, name: impl Into<String>) -> Self {
        self.setting("accelerator", name)
    }

    /// With a variable that the script takes from its environment.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.environment.variables.push((name.into(), value.into()));
        self
    }

    /// With the script's positional arguments.
    #[must_use]
    pub fn arguments(mut self, words: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.environment.arguments.extend(words.into_iter().map(Into::into));
        self
    }

    /// Reads the texts, and estimates the training if they form a plan. This cannot fail and never executes what it
    /// reads; it takes milliseconds for a plan of tens of thousands of ranks.
    #[must_use]
    pub fn answer(&self) -> Answer {
        let source = Source::from_files(self.files.iter().map(|(name, text)| (name.as_str(), text.as_str())));
        let request = Request { source: &source, environment: &self.environment, overrides: &self.settings };
        let resolution = read(&request);
        Answer::new(source, resolution)
    }
}
