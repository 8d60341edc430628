//! A settings file that starts a script of its own.

use crate::Reading;

/// What such a file states.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// The machines.
    pub reading: Reading,
    /// Variables of the container, and those that the operator sets.
    pub variables: Vec<(String, String)>,
    /// The text with everything but the command blanked out, byte for byte as long: read as a script,
    /// every place in it is the place in the original.
    pub script: String,
}
