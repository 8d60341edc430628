//! Files as they are given: bounded, and standard input among them.

use std::io::Read;

use crate::call_error::CallError;

/// A larger file is refused; no launch script comes close. Unit: byte.
pub(crate) const MAX_FILE: u64 = 4 << 20;

/// A file's path relative to the current directory, if it is below that.
pub(crate) fn from_here(file: &str) -> &str {
    let here = std::env::current_dir().ok();
    let here = here.as_deref().and_then(std::path::Path::to_str);
    // A component must end there: `/home/me2` is not below `/home/me`.
    let below = here.and_then(|here| file.strip_prefix(here)).and_then(|rest| rest.strip_prefix('/'));
    below.unwrap_or(file)
}

/// Changes to the caller's directory. WASI starts every program in the root; the caller passes the directory as a
/// shell does. If it cannot be entered, file names stay relative to the root.
#[cfg(target_os = "wasi")]
pub(crate) fn enter_folder_of_call() {
    if let Some(folder) = std::env::var_os("PWD") {
        let _ = std::env::set_current_dir(folder);
    }
}

/// The bytes of a file or of standard input.
///
/// # Errors
/// Why it cannot be read.
pub(crate) fn bytes(file: &str) -> Result<Vec<u8>, CallError> {
    bytes_up_to(file, MAX_FILE)
}

/// The bytes of a file of `most` bytes, or of standard input.
///
/// # Errors
/// Why it cannot be read.
pub(crate) fn bytes_up_to(file: &str, most: u64) -> Result<Vec<u8>, CallError> {
    let mut bytes = Vec::new();
    // One byte more than the limit, to detect a larger file.
    let read = if file == "-" {
        // Bounded while reading: `/dev/zero` has no length to check.
        std::io::stdin().lock().take(most + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(file).and_then(|open| open.take(most + 1).read_to_end(&mut bytes))
    };
    read.map_err(|cause| CallError::Unreadable { path: file.to_owned(), cause })?;
    if bytes.len() as u64 > most {
        return Err(CallError::TooLarge { path: file.to_owned(), most });
    }
    Ok(bytes)
}

/// The text of a file; bytes that are not UTF-8 become U+FFFD.
///
/// # Errors
/// Why it cannot be read.
pub(crate) fn contents(file: &str) -> Result<String, CallError> {
    bytes(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}
