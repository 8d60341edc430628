//! Whether it fits, and what each stage's memory is used for.

use shardscope_estimate::{Needs, Verdict};
use shardscope_units::Bytes;

/// The verdict, ordered from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// With room to spare.
    Fits,
    /// Only just: fragmentation may break it.
    Tight,
    /// Not at all.
    DoesNotFit,
}

impl Fit {
    /// The engine's verdict.
    #[must_use]
    pub const fn from_verdict(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Fits => Self::Fits,
            Verdict::Tight => Self::Tight,
            Verdict::OutOfMemory => Self::DoesNotFit,
        }
    }

    /// In words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Fits => "Fits",
            Self::Tight => "Tight",
            Self::DoesNotFit => "Out of memory",
        }
    }

    /// As a class of the style sheet.
    #[must_use]
    pub const fn class(self) -> &'static str {
        match self {
            Self::Fits => "good",
            Self::Tight => "tight",
            Self::DoesNotFit => "bad",
        }
    }
}

/// What memory is used for; together everything that a device holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Weights.
    Parameters,
    /// Gradients.
    Gradients,
    /// Main weights and moments.
    Optimizer,
    /// Tensors saved for the backward pass.
    Activations,
    /// Tensors that are alive only at the peak.
    Temporaries,
    /// CUDA context, NCCL, workspaces, fragmentation: on the device, not in torch's count.
    Framework,
}

impl Use {
    /// All uses, in the order of the bars.
    pub const ALL: [Self; 6] = [
        Self::Parameters,
        Self::Gradients,
        Self::Optimizer,
        Self::Activations,
        Self::Temporaries,
        Self::Framework,
    ];

    /// Name in reports, and class in the style sheet.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Parameters => "parameters",
            Self::Gradients => "gradients",
            Self::Optimizer => "optimizer",
            Self::Activations => "activations",
            Self::Temporaries => "temporaries",
            Self::Framework => "framework",
        }
    }
}

/// The memory of the GPUs of one stage.
#[derive(Clone, Debug, PartialEq)]
pub struct StageMemory {
    /// Pipeline rank, from 0.
    pub stage: u64,
    /// Layers and other parts of the stage, in words.
    pub holds: String,
    /// Bytes by use, in the order of [`Use::ALL`].
    pub uses: [Bytes; 6],
    /// What `torch.cuda.max_memory_allocated()` shows.
    pub allocated: Bytes,
    /// What is on the device at the peak, as in the verdict.
    pub reserved: Bytes,
    /// What is allocated between two steps.
    pub between_steps: Bytes,
    /// Micro-batches held at the peak, by chunk.
    pub in_flight: Vec<u64>,
    /// When the peak is.
    pub at: String,
    /// The verdict on its training; phases of reinforcement learning have their own.
    pub fit: Fit,
    /// Its peak as in the verdict.
    pub needs: Needs,
}
