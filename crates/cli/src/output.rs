//! What every command says, and where.

use std::io::Write;
use std::process::ExitCode;

/// Exit code of an input that makes no plan, and of a call that is not understood (clap's own choice, too).
pub(crate) const NO_PLAN: u8 = 2;

/// Writes to standard output. A reader that stopped listening (`| head`) is no error of ours.
pub(crate) fn print(text: &str) {
    let mut output = std::io::stdout().lock();
    let _ = output.write_all(text.as_bytes()).and_then(|()| output.flush());
}

/// Says on standard error why the call cannot be answered.
pub(crate) fn refuse(problem: &str) -> ExitCode {
    eprintln!("error: {problem}");
    ExitCode::from(NO_PLAN)
}
