//! A tensor kept for backward, and which modules of a layer save it, so that Megatron can send it to the host with theirs
//! (`megatron/core/pipeline_parallel/fine_grained_activation_offload.py`).

use super::Shape;
use shardscope_explain::Formula;
use shardscope_plan::{OffloadModule, OffloadModules};
use shardscope_units::{Bytes, Count};

/// A tensor that autograd keeps from forward to backward, for one micro-batch on one rank.
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
    /// Why it is kept and how large it is.
    pub formula: &'static Formula,
    /// Which modules save it, so that it goes to the host with theirs.
    pub savers: Savers,
}

impl Saved {
    /// A kept tensor of `shape` with elements of `width` bytes.
    #[must_use]
    pub fn new(name: &'static str, shape: &[u64], width: u64, formula: &'static Formula) -> Self {
        let bytes = Count::of_shape(shape).bytes(width);
        Self { name, shape: Shape::new(shape), width, bytes, formula, savers: Savers::default() }
    }

    /// The same, saved by `modules`.
    pub(crate) const fn by(mut self, modules: &'static [OffloadModule]) -> Self {
        self.savers.modules = modules;
        self
    }

    /// The same with a storage that something else refers to while `held`.
    pub(crate) const fn held(mut self, held: bool) -> Self {
        self.savers.held = held;
        self
    }

    /// The same, of which a copy has so many elements.
    pub(crate) const fn each(mut self, elements: u64) -> Self {
        self.savers.elements = Some(elements);
        self
    }

    /// Elements of one copy.
    fn elements(&self) -> u64 {
        self.savers.elements.unwrap_or_else(|| Count::of_shape(&self.shape).get())
    }

    /// Bytes that `module` sends to the host of it and gets back, each copy by itself, where tensors of `least` elements go
    /// (`tensor_need_offloading_checker`).
    #[must_use]
    pub fn sent(&self, module: OffloadModule, least: u64) -> Bytes {
        let copies = self.savers.modules.iter().map(|saver| u64::from(*saver == module)).sum::<u64>();
        let elements = self.elements();
        if elements < least { Bytes::ZERO } else { Count::new(elements).bytes(self.width) * copies }
    }

    /// Whether it leaves the device while it waits for backward: all that save it are among `modules`, which send tensors of
    /// `least` elements.
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
    /// A module for every time that the tensor is saved: each sends a copy of its own, and gets one back.
    pub modules: &'static [OffloadModule],
    /// Whether something outside of these refers to the storage too, so that it stays on the device.
    pub held: bool,
    /// Elements of one copy where that is not the whole storage: of a view, or of one of several tensors counted as one.
    pub elements: Option<u64>,
}
