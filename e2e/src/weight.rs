//! What the page weighs: every file of the built folder, as `brotli -q 11` sends it.
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use brotli::CompressorWriter;

/// Bytes that the whole page may weigh.
pub const LIMIT: u64 = 400_000;
/// Bytes that it should weigh.
pub const AIM: u64 = 300_000;
/// One file and its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weight {
    /// Path below the folder.
    pub file: PathBuf,
    /// As it lies there.
    pub raw: u64,
    /// Compressed.
    pub brotli: u64,
}

/// Whether a page of `total` compressed bytes may be published; in words, either way.
pub fn judge(total: u64) -> Result<String, String> {
    if total > LIMIT {
        return Err(format!("the page is above the limit of {LIMIT} bytes"));
    }
    let aim = if total > AIM { "above" } else { "within" };
    Ok(format!("{aim} the aim of {AIM} bytes, within the limit of {LIMIT}"))
}

/// Weighs every file below `folder`, by name.
pub fn weigh(folder: &Path) -> io::Result<Vec<Weight>> {
    let mut weights = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = fs::read(&path)?;
            let file = path.strip_prefix(folder).unwrap_or(&path).to_owned();
            weights.push(Weight { file, raw: bytes.len() as u64, brotli: compressed(&bytes)? });
        }
    }
    weights.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(weights)
}

/// Bytes left of `bytes` at quality 11 with the usual window of 4 MiB.
fn compressed(bytes: &[u8]) -> io::Result<u64> {
    let mut writer = CompressorWriter::new(Vec::new(), 1 << 16, 11, 22);
    writer.write_all(bytes)?;
    Ok(writer.into_inner().len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compression_is_that_of_brotli_at_its_best() {
        // `printf 'a%.0s' $(seq 10000) | brotli -q 11 -c | wc -c`
        let weight = compressed(&[b'a'; 10_000]).unwrap();
        assert!((10..=20).contains(&weight), "{weight} bytes");
    }

    #[test]
    fn only_what_is_above_the_limit_is_refused() {
        assert!(judge(AIM).is_ok_and(|words| words.starts_with("within the aim")));
        assert!(judge(LIMIT).is_ok_and(|words| words.starts_with("above the aim")));
        assert!(judge(LIMIT + 1).is_err());
    }
}
