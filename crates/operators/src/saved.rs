//! A tensor saved for backward, and which modules of a layer save it, so that Megatron can offload it with theirs
//! (`megatron/core/pipeline_parallel/fine_grained_activation_offload.py`).

use super::Shape;
use shardscope_explain::Formula;
use shardscope_plan::{OffloadModule, OffloadModules};
use shardscope_units::{Bytes, Count};

/// A tensor that autograd saves from forward to backward, for one micro-batch on one rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Saved {
    /// Short name, for example `fc1 input`.
    pub name: &'static str,
    /// Its shape on the rank; the product times `width` is `bytes` unless it is a held storage.
    pub shape: Shape,
    /// Bytes of one element.
    pub width: u64,
    /// Bytes of its storage, counted once at its first saver.
    pub bytes: Bytes,
    /// Why it is saved and how large it is.
    pub formula: &'static Formula,
    /// Which modules save it, so that it is offloaded with theirs.
    pub savers: Savers,
    /// How many tensors it consists of, each with its own storage.
    pub parts: Parts,
    /// Whether it is the input of the module's first projection, whose weight gradient is backward's last step there.
    pub first_input: bool,
}

/// How many tensors are combined in one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Parts {
    /// A single tensor.
    #[default]
    One,
    /// A single weight gradient, which stays as the gradient if there was none before.
    Gradient,
    /// A single tensor, the sum of two gradients of a weight, which replaces the first.
    SummedGradient,
    /// This many of the same size.
    Equal(u64),
    /// Up to three tensors with these numbers of columns.
    Columns([u64; 3]),
}

impl Saved {
    /// A saved tensor of `shape` with elements of `width` bytes.
    #[must_use]
    pub fn new(name: &'static str, shape: &[u64], width: u64, formula: &'static Formula) -> Self {
        let bytes = Count::of_shape(shape).bytes(width);
        Self {
            name,
            shape: Shape::new(shape),
            width,
            bytes,
            formula,
            savers: Savers::default(),
            parts: Parts::One,
            first_input: false,
        }
    }

    /// The same, as the input of the module's first projection.
    pub(crate) const fn of_first_projection(mut self) -> Self {
        self.first_input = true;
        self
    }

    /// Several of the same size, counted by the first dimension.
    pub(crate) fn several(name: &'static str, shape: &[u64], width: u64, formula: &'static Formula) -> Self {
        let parts = Parts::Equal(shape.first().copied().unwrap_or(1));
        Self { parts, ..Self::new(name, shape, width, formula) }
    }

    /// The same, saved by `modules`.
    pub(crate) const fn by(mut self, modules: &'static [OffloadModule]) -> Self {
        self.savers.modules = modules;
        self
    }

    /// The same with a storage that something else references if `held`.
    pub(crate) const fn held(mut self, held: bool) -> Self {
        self.savers.held = held;
        self
    }

    /// The same, with `elements` elements per copy.
    pub(crate) const fn each(mut self, elements: u64) -> Self {
        self.savers.elements = Some(elements);
        self
    }

    /// The same, consisting of `parts` separate tensors.
    pub(crate) const fn cut(mut self, parts: Parts) -> Self {
        self.parts = parts;
        self
    }

    /// Bytes of each tensor.
    pub fn tensors(&self) -> impl Iterator<Item = Bytes> {
        let bytes = self.bytes.get();
        let (times, each) = match self.parts {
            Parts::One | Parts::Gradient | Parts::SummedGradient | Parts::Columns(_) => (1, [bytes, 0, 0]),
            Parts::Equal(parts) => (parts.max(1), [bytes / parts.max(1), 0, 0]),
        };
        let each = match self.parts {
            Parts::Columns(columns) => {
                let all = columns.iter().fold(0_u64, |all, columns| all.saturating_add(*columns)).max(1);
                // Rows of `all` columns: an exact fraction of the total.
                columns.map(|columns| bytes / all * columns)
            }
            _ => each,
        };
        each.into_iter()
            .filter(|bytes| *bytes > 0)
            .flat_map(move |bytes| (0..times).map(move |_| Bytes::new(bytes)))
    }

    /// Elements of one copy.
    fn elements(&self) -> u64 {
        self.savers.elements.unwrap_or_else(|| Count::of_shape(&self.shape).get())
    }

    /// Bytes of it that `module` offloads and reloads, each copy separately, if tensors of at least `least` elements
    /// are offloaded (`tensor_need_offloading_checker`).
    #[must_use]
    pub fn sent(&self, module: OffloadModule, least: u64) -> Bytes {
        let copies = self.savers.modules.iter().map(|saver| u64::from(*saver == module)).sum::<u64>();
        let elements = self.elements();
        if elements < least { Bytes::ZERO } else { Count::new(elements).bytes(self.width) * copies }
    }

    /// Whether it leaves the device until backward: everything that saves it is among `modules`, which offload
    /// tensors of at least `least` elements.
    #[must_use]
    pub fn leaves(&self, modules: OffloadModules, least: u64) -> bool {
        let savers = self.savers;
        let all = savers.modules.iter().all(|module| modules.has(*module));
        !savers.held && !savers.modules.is_empty() && all && self.elements() >= least
    }
}

/// Which modules save a tensor, of those that Megatron can offload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Savers {
    /// A module for every time that the tensor is saved: each offloads and reloads its own copy.
    pub modules: &'static [OffloadModule],
    /// Whether something else references the storage too, so that it stays on the device.
    pub held: bool,
    /// Elements of one copy if that is not the whole storage: of a view, or of one of several tensors counted as one.
    pub elements: Option<u64>,
}
