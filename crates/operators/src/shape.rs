//! The shape of a tensor, without a heap allocation: reports have thousands of them.

use shardscope_units::product;
use std::ops::Deref;

/// Maximum number of dimensions.
const MOST: usize = 4;

/// Up to four dimensions. Derefs to a slice; further dimensions are multiplied into the fourth.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Shape {
    sizes: [u64; MOST],
    dimensions: u8,
}

impl Shape {
    /// A shape of these sizes.
    #[must_use]
    pub fn new(sizes: &[u64]) -> Self {
        let mut shape = Self::default();
        for &size in sizes {
            shape.push(size);
        }
        shape
    }

    /// Appends a dimension.
    pub(crate) fn push(&mut self, size: u64) {
        let at = usize::from(self.dimensions);
        if let Some(place) = self.sizes.get_mut(at) {
            *place = size;
            self.dimensions += 1;
        } else if let Some(last) = self.sizes.last_mut() {
            *last = product(*last, size);
        }
    }
}

impl Deref for Shape {
    type Target = [u64];
    fn deref(&self) -> &[u64] {
        &self.sizes[..usize::from(self.dimensions)]
    }
}

impl std::fmt::Debug for Shape {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(out)
    }
}
