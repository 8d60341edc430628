//! What the reader asks in addition to the run itself: its length and price, and which parts of the device's memory
//! count.

/// What is asked about the run as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Budget {
    /// Tokens to train on.
    pub tokens: Option<u64>,
    /// Steps, if no token count is stated (`--train-iters`, `--train-samples`).
    pub steps: Option<u64>,
    /// Money per accelerator and hour, in any currency.
    pub price_per_gpu_hour: Option<f64>,
    /// Power drawn per accelerator, including its share of host, network and cooling. Unit: watt.
    pub watts_per_gpu: Option<f64>,
}

/// Contributions to the device's memory other than the run's own tensors, each of which can be left out: they bridge
/// what torch counts as allocated and what nvidia-smi shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// The driver context.
    pub context: bool,
    /// The communicator buffers.
    pub communicators: bool,
    /// What torch's allocator reserves but does not use.
    pub slack: bool,
    /// `DeepSpeed`'s flat buffers.
    pub flat: bool,
    /// Workspaces of the matrix libraries.
    pub workspaces: bool,
}

impl LeftOut {
    /// The settings name of every term.
    pub const NAMES: [&'static str; 5] = ["context", "communicators", "slack", "flat", "workspaces"];

    /// The terms named in the list.
    #[must_use]
    pub fn from_names(names: &[&str]) -> Self {
        let [context, communicators, slack, flat, workspaces] = Self::NAMES.map(|name| names.contains(&name));
        Self { context, communicators, slack, flat, workspaces }
    }

    /// Whether the term called `name` is left out.
    #[must_use]
    pub fn holds(self, name: &str) -> bool {
        let all = [self.context, self.communicators, self.slack, self.flat, self.workspaces];
        Self::NAMES.iter().zip(all).any(|(known, left)| *known == name && left)
    }
}
