//! Files as they are given: bounded, and standard input among them.

use std::io::Read;

/// A larger file is refused; no launch script comes near. Unit: byte.
pub(crate) const MAX_FILE: u64 = 4 << 20;

/// The bytes of a file or of standard input.
///
/// # Errors
/// A sentence that says why it cannot be read.
pub(crate) fn bytes(file: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    // One more than is read, to know a larger file.
    let most = MAX_FILE + 1;
    let read = if file == "-" {
        std::io::stdin().lock().take(most).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(file).and_then(|open| open.take(most).read_to_end(&mut bytes))
    };
    read.map_err(|error| format!("{file} cannot be read: {error}"))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(format!("{file} is larger than {} MiB, more than is read", MAX_FILE >> 20));
    }
    Ok(bytes)
}

/// The text of a file; bytes that are no UTF-8 become U+FFFD.
///
/// # Errors
/// A sentence that says why it cannot be read.
pub(crate) fn contents(file: &str) -> Result<String, String> {
    bytes(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}
