//! The processor time of this thread, on which other programs have no influence.

use std::time::Duration;

/// Processor time of this thread so far, where the system tells it.
///
/// Asked of the clock and not read from `/proc/thread-self/schedstat`: that file shows the same sum as of the last
/// scheduler tick (4 ms at 250 Hz), more than a tenth of a round of 30 ms.
pub(crate) fn processor_time() -> Option<Duration> {
    #[cfg(unix)]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Some(Duration::new(time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?))
    }
    #[cfg(not(unix))]
    None
}
