//! What cannot hold together, and which settings are at fault.

/// One reason why the settings make no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// Short stable name, for example `heads-over-tp`.
    pub code: &'static str,
    /// Settings at fault (Megatron's names), the one to change first.
    pub fields: Vec<&'static str>,
    /// What, with which values, and why.
    pub message: String,
    /// What would work.
    pub hint: Option<String>,
    /// The nearest value of `fields[0]` that works.
    pub nearest: Option<u64>,
}
