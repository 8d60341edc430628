//! The processor time of a test.

use std::time::Duration;

/// The processor time of this thread, if the system reports it (Linux): unlike elapsed time it is not
/// affected by other load on the machine.
pub(crate) fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split_ascii_whitespace().next().and_then(|time| time.parse().ok());
    nanoseconds.map_or(Duration::ZERO, Duration::from_nanos)
}
