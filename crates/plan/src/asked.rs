//! What the reader asks beside the run itself: its length and price, and what of the device's memory counts.

/// What is asked of the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Budget {
    /// Tokens to train on.
    pub tokens: Option<u64>,
    /// Steps, where no tokens are stated (`--train-iters`, `--train-samples`).
    pub steps: Option<u64>,
    /// Money per accelerator and hour, in any currency.
    pub price_per_gpu_hour: Option<f64>,
    /// Power drawn per accelerator, its share of host, network and cooling included. Unit: watt.
    pub watts_per_gpu: Option<f64>,
}

/// Terms of the device's memory beside the run's own tensors, each left out or not: on the road from what torch counts
/// as allocated to what nvidia-smi shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// The driver context.
    pub context: bool,
    /// The communicator buffers.
    pub communicators: bool,
    /// What torch's allocator holds and does not use.
    pub slack: bool,
    /// `DeepSpeed`'s flat buffers.
    pub flat: bool,
    /// Workspaces of the matrix libraries.
    pub workspaces: bool,
}

impl LeftOut {
    /// Every term by its name among the settings.
    pub const NAMES: [&'static str; 5] = ["context", "communicators", "slack", "flat", "workspaces"];

    /// Those named.
    #[must_use]
    pub fn from_names(names: &[&str]) -> Self {
        let [context, communicators, slack, flat, workspaces] = Self::NAMES.map(|name| names.contains(&name));
        Self { context, communicators, slack, flat, workspaces }
    }

    /// Whether the term of a name is left out.
    #[must_use]
    pub fn holds(self, name: &str) -> bool {
        let all = [self.context, self.communicators, self.slack, self.flat, self.workspaces];
        Self::NAMES.iter().zip(all).any(|(known, left)| *known == name && left)
    }
}
