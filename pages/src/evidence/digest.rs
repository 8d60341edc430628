//! A digest of the inputs of tables that take minutes to compute, so that a test can tell when the tables are stale.

use super::compared::Compared;

/// FNV-1a, 64 bits.
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// A digest of every fitted row with its measured and predicted step: it changes if a row, a constant or the model
/// changes by more than one part in ten thousand.
#[must_use]
pub fn digest(compared: &[Compared]) -> String {
    let mut digest = BASIS;
    for one in compared.iter().filter(|one| one.row.is_fitted()) {
        let (id, measured) = (one.row.text("id"), one.row.text("measured"));
        for byte in format!("{id}\t{measured}\t{:.4e}\n", one.predicted).bytes() {
            digest = (digest ^ u64::from(byte)).wrapping_mul(PRIME);
        }
    }
    format!("{digest:016x}")
}
