//! `torch.cuda.memory_summary()` and the counts of `torch.cuda.memory_stats()`, wherever a program printed them.
//! Form: `torch/cuda/memory.py`.

use super::figures::{Measured, Remark, Tool};
use super::number::whole;

/// The labels of the rows of `memory_summary`: allocated, reserved.
const ROWS: [&str; 2] = ["Allocated memory", "GPU reserved memory"];
/// The same two peaks as keys of `memory_stats`.
const COUNTS: [&str; 2] = ["allocated_bytes.all.peak", "reserved_bytes.all.peak"];

/// The peaks, over everything that was printed.
pub(crate) fn read(text: &str) -> Option<Measured> {
    let mut most: [Option<u64>; 2] = [None, None];
    let mut rounded = false;
    for line in text.lines() {
        for ((row, count), most) in ROWS.iter().zip(COUNTS).zip(&mut most) {
            // | Allocated memory      |   1024 MiB |   2048 MiB | …: now, at the peak.
            let cells = line.trim_start_matches(['|', ' ']).strip_prefix(row);
            if let Some(peak) = cells.and_then(|cells| cells.split('|').nth(2)).and_then(size) {
                rounded = true;
                *most = (*most).max(Some(peak));
            }
            for (place, _) in line.match_indices(count) {
                let behind = line.get(place + count.len()..).unwrap_or_default();
                let number = behind.trim_start_matches(['\'', '"', ':', '=', ' ', ',']);
                *most = (*most).max(whole(number));
            }
        }
    }
    let [allocated, reserved] = most;
    let remark = rounded.then_some(Remark::Rounded);
    Some(Measured { allocated, reserved, remark, ..Measured::by(Tool::MemorySummary) })
}

/// A size as the summary writes it; in older releases KB, MB … stand for the same powers of two.
fn size(cell: &str) -> Option<u64> {
    let mut words = cell.split_ascii_whitespace();
    let number = whole(words.next()?)?;
    let power: u32 = match words.next()? {
        "B" => 0,
        "KiB" | "KB" => 10,
        "MiB" | "MB" => 20,
        "GiB" | "GB" => 30,
        "TiB" | "TB" => 40,
        _ => return None,
    };
    number.checked_mul(1 << power)
}
