//! What sampling the next token holds in addition to its logits.

/// What transformers' logits processors hold per logit in addition to the logits and their copy, in the order in
/// which they run: the divided scores, and for the others what is compared, sorted or summed
/// (`transformers/generation/logits_process.py`). Unit: byte.
const FILTERS: [(&str, u64); 4] = [("temperature", 4), ("top_k", 5), ("top_p", 22), ("min_p", 9)];
/// The fp32 scores of a preceding processor, in addition to the logits' copy. Unit: byte.
const SCORES: u64 = 4;

/// The most bytes per logit that processors of these names hold; recorded in
/// `tests/data/activations/generation_peak.tsv`.
#[must_use]
pub fn sampling_bytes(names: &[&str]) -> u64 {
    let mut behind = 0;
    let mut most = 0;
    for (name, bytes) in FILTERS {
        if names.contains(&name) {
            most = most.max(bytes + behind);
            behind = SCORES;
        }
    }
    most
}
