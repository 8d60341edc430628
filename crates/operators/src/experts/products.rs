//! How the products of a rank's experts are launched.

use super::pieces;
use crate::Symbols;

/// How the products of a rank's experts are launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpertProducts {
    /// A call for each expert.
    Each,
    /// One call that runs a kernel for each expert, whose weight is a separate parameter with its own hooks
    /// (`te_general_grouped_gemm`).
    OneCall,
    /// One kernel over weights that are one parameter (`torch.nn.functional.grouped_mm`, `torch.bmm`).
    OneKernel,
}

impl Symbols<'_> {
    /// How the products of a rank's experts are launched.
    #[must_use]
    pub fn expert_products(&self) -> ExpertProducts {
        match () {
            () if pieces::counts(self) => ExpertProducts::OneKernel,
            () if self.recipe().moe.grouped_gemm => ExpertProducts::OneCall,
            () => ExpertProducts::Each,
        }
    }
}
