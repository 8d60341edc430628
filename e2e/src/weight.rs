//! What the page weighs: every file that it loads, as `brotli -q 11` sends it; and what stands beside it.
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use brotli::CompressorWriter;

/// Bytes that the whole page may weigh.
pub const LIMIT: u64 = 400_000;
/// Bytes that it should weigh.
pub const AIM: u64 = 300_000;
/// Files that the page never loads: other sites do, or a system that the page is installed on.
const FOR_OTHERS: [&str; 4] = ["embed.js", "icon-192.png", "icon-512.png", "icon-maskable.png"];

/// One file and its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weight {
    /// Path below the folder.
    pub file: PathBuf,
    /// As it lies there.
    pub raw: u64,
    /// Compressed.
    pub brotli: u64,
    /// Whether it stands beside the page, which does not load it.
    pub beside: bool,
}

/// Whether a page of `total` compressed bytes may be published; in words, either way.
pub fn judge(total: u64) -> Result<String, String> {
    if total > LIMIT {
        return Err(format!("the page is above the limit of {LIMIT} bytes"));
    }
    let aim = if total > AIM { "above" } else { "within" };
    Ok(format!("{aim} the aim of {AIM} bytes, within the limit of {LIMIT}"))
}

/// Weighs every file below `folder`, by name, those beside the page last.
pub fn weigh(folder: &Path) -> io::Result<Vec<Weight>> {
    let mut weights = Vec::new();
    let beside = Beside::of(folder)?;
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
            let beside = beside.holds(&file.to_string_lossy());
            weights.push(Weight {
                file,
                raw: bytes.len() as u64,
                brotli: compress(&bytes)?.len() as u64,
                beside,
            });
        }
    }
    weights.sort_by(|a, b| (a.beside, &a.file).cmp(&(b.beside, &b.file)));
    Ok(weights)
}

/// What tells the files beside the page from those that it loads.
struct Beside {
    /// The text of `index.html`.
    page: String,
    /// The texts of the other pages.
    others: String,
}

impl Beside {
    fn of(folder: &Path) -> io::Result<Self> {
        let mut others = String::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if is_other_page(&path) {
                others += &String::from_utf8_lossy(&fs::read(path)?);
            }
        }
        let page = fs::read(folder.join("index.html"))?;
        Ok(Self { page: String::from_utf8_lossy(&page).into_owned(), others })
    }

    /// A file counts for the page unless it is another page, something that only other pages name, or for other sites.
    fn holds(&self, file: &str) -> bool {
        let quoted = |page: &str| {
            [format!("\"{file}\""), format!("\"./{file}\"")].iter().any(|name| page.contains(name))
        };
        is_other_page(Path::new(file))
            || FOR_OTHERS.contains(&file)
            || quoted(&self.others) && !quoted(&self.page)
    }
}

fn is_other_page(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "html")
        && path.file_name().is_some_and(|name| name != "index.html")
}

/// What is left of `bytes` at quality 11 with the usual window of 4 MiB.
pub fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut writer = CompressorWriter::new(Vec::new(), 1 << 16, 11, 22);
    writer.write_all(bytes)?;
    Ok(writer.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compression_is_that_of_brotli_at_its_best() {
        // `printf 'a%.0s' $(seq 10000) | brotli -q 11 -c | wc -c`
        let weight = compress(&[b'a'; 10_000]).unwrap().len();
        assert!((10..=20).contains(&weight), "{weight} bytes");
    }

    #[test]
    fn what_the_page_does_not_load_stands_beside_it() {
        let beside = Beside {
            page: r#"<link href="./page-1.css"><link rel="icon" href="./icon.svg"><script>import x from "./x.js"</script>"#.into(),
            others: r#"<link href="pages.css"><link href="icon.svg"><script src="evidence.js"></script>"#.into(),
        };
        for file in ["evidence.html", "guide.html", "pages.css", "evidence.js", "embed.js"] {
            assert!(beside.holds(file), "{file}");
        }
        // What nobody names may be loaded by the engine or its glue.
        for file in ["index.html", "page-1.css", "icon.svg", "x.js", "x_bg.wasm", "sw.js", "parts/more.wasm"]
        {
            assert!(!beside.holds(file), "{file}");
        }
    }

    #[test]
    fn only_what_is_above_the_limit_is_refused() {
        assert!(judge(AIM).is_ok_and(|words| words.starts_with("within the aim")));
        assert!(judge(LIMIT).is_ok_and(|words| words.starts_with("above the aim")));
        assert!(judge(LIMIT + 1).is_err());
    }
}
