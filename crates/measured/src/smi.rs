//! Memory in use on a device according to nvidia-smi: its table, the CSV of a query, its details. Of several readings and
//! devices the largest value counts.

use super::figures::{Measured, Remark, Tool};
use super::number::{whole, whole_at_end};

/// Unit of its figures. Unit: byte.
const MIB: u64 = 1 << 20;
/// The column of a query (`nvidia-smi --help-query-gpu`).
const COLUMN: &str = "memory.used";

/// The figures of the lines; `None` if no line shows memory in use.
pub(crate) fn read(text: &str) -> Option<Measured> {
    let mut most: Option<u64> = None;
    // The column of a query, and whether the details have reached the device's memory section.
    let (mut column, mut at_memory) = (None, false);
    for line in text.lines() {
        if let Some((used, _)) = line.split_once("MiB /") {
            // | 30%   55C    P0   350W / 700W |  71234MiB / 81559MiB |     98%      Default |
            most = most.max(whole_at_end(used));
        } else if line.contains(COLUMN) {
            let names = line.split(',');
            column =
                names.enumerate().find(|(_, name)| name.trim().starts_with(COLUMN)).map(|(place, _)| place);
        } else if let Some(place) = column {
            match line.split(',').nth(place).map(str::trim).filter(|cell| is_size(cell)) {
                Some(cell) => most = most.max(whole(cell)),
                // Anything else ends the table; a device without a value ([N/A]) does not.
                None if line.contains("[N/A]") => {}
                None => column = None,
            }
        } else if line.contains("FB Memory Usage") {
            at_memory = true;
        } else if at_memory {
            match line.split_once(':') {
                Some((name, value)) if name.trim() == "Used" => {
                    most = most.max(whole(value));
                    at_memory = false;
                }
                Some(_) => {}
                None => at_memory = false,
            }
        }
    }
    let device = most.and_then(|mib| mib.checked_mul(MIB));
    let remark = Some(Remark::AllProcesses);
    device.map(|device| Measured { device: Some(device), remark, ..Measured::by(Tool::NvidiaSmi) })
}

/// `71234 MiB`, or with `nounits` the number alone.
fn is_size(cell: &str) -> bool {
    let number = cell.strip_suffix("MiB").unwrap_or(cell).trim_end();
    !number.is_empty() && number.bytes().all(|sign| sign.is_ascii_digit())
}
