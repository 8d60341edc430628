//! Every layout worth trying, from the degrees down to flags. A kernel is what one layer's time depends on; a cut
//! adds the number of stages; a shape adds their sizes, chunks and order; a leaf adds what is recomputed, sharded and
//! overlapped.

mod edits;
mod hosts;
mod kernels;
mod recomputations;
mod rests;
mod sizes;
mod splits;
mod typed;
mod values;

pub use edits::Edit;
pub(crate) use edits::singles;
pub use typed::typed;
pub use values::Space;
