//! The weight of the page: every file that it loads, compressed with `brotli -q 11`; and the other files.
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use brotli::CompressorWriter;

use crate::fingerprint::files_below;
use crate::process::root;

/// Maximum size of the whole page in bytes, compressed.
pub const LIMIT: u64 = 1_000_000;
/// How much heavier than its record the page may be before the gate asks whether that is intended. Unit: percent.
pub const TOLERANCE: u64 = 4;
/// Where the weight is recorded, in the checkout.
const RECORD: &str = "xtask/page-weight.txt";
/// Files that the page never loads: other sites do, or a system that the page is installed on.
const FOR_OTHERS: [&str; 6] =
    ["card.png", "embed.js", "icon-192.png", "icon-512.png", "icon-maskable.png", "inter-OFL.txt"];
/// Files that the page loads after its first answer, or in parallel with the engine.
pub const LATER: [&str; 12] = [
    "bytes.js",
    "inter.woff2",
    "reader.js",
    "readers.txt",
    "reading.js",
    "search.js",
    "shardscope-reader.js",
    "shardscope-reader_bg.wasm",
    "shardscope-worker.js",
    "shardscope-worker_bg.wasm",
    "tables.txt",
    "worker.js",
];

/// Those of them that are needed to read texts: users with their own text wait for them too.
const READERS: [&str; 6] = [
    "bytes.js",
    "reader.js",
    "readers.txt",
    "reading.js",
    "shardscope-reader.js",
    "shardscope-reader_bg.wasm",
];

/// Registered when the application has started; it caches the others.
const SERVICE: &str = "sw.js";

/// One file and its size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weight {
    /// Path below the folder.
    pub file: PathBuf,
    /// Uncompressed size.
    pub raw: u64,
    /// Compressed.
    pub brotli: u64,
    /// Whether the page loads it later or not at all.
    pub beside: bool,
}

/// Weighs `dist/`, prints every file, and fails if the page is too heavy; with `record`, records its weight.
pub fn gate(record: bool) -> Result<()> {
    let weights = weigh(&root().join("dist")).context("dist/ holds no page")?;
    println!("{:>10} {:>10}  file", "bytes", "brotli 11");
    for weight in &weights {
        println!("{:>10} {:>10}  {}", weight.raw, weight.brotli, weight.file.display());
    }
    let sum = |beside: bool, of: fn(&Weight) -> u64| -> u64 {
        weights.iter().filter(|weight| weight.beside == beside).map(of).sum()
    };
    for (beside, what) in
        [(false, "what the page loads before its first answer"), (true, "later or beside the page")]
    {
        println!(
            "{:>10} {:>10}  {what}",
            sum(beside, |weight| weight.raw),
            sum(beside, |weight| weight.brotli)
        );
    }
    let total = sum(false, |weight| weight.brotli);
    // Whole names: `ends_with` of a path compares its parts.
    let readers = weights.iter().filter(|weight| READERS.iter().any(|file| weight.file.ends_with(file)));
    let with_readers = total + readers.map(|weight| weight.brotli).sum::<u64>();
    println!("{:>10} {with_readers:>10}  the same for who brings a text of their own", "");
    // Recorded before it is judged: the limit applies to a recorded weight too.
    if record {
        fs::write(root().join(RECORD), format!("{total}\n"))?;
    }
    let recorded =
        fs::read_to_string(root().join(RECORD)).with_context(|| format!("{RECORD} cannot be read"))?;
    let recorded = recorded.trim_end().parse().with_context(|| format!("{RECORD} holds no number"))?;
    println!("{}", judge(total, recorded)?);
    Ok(())
}

/// Whether a page of `total` compressed bytes, previously `recorded`, may be published; in words, either way.
fn judge(total: u64, recorded: u64) -> Result<String> {
    if total > LIMIT {
        bail!("the page weighs {total} bytes, above the limit of {LIMIT}");
    }
    if total > recorded + recorded * TOLERANCE / 100 {
        bail!(
            "the page weighs {total} bytes, more than {TOLERANCE} % above the {recorded} of its record; where that is \
             what the change is worth, `cargo xtask size --record` records it"
        );
    }
    Ok(format!("within {TOLERANCE} % of the recorded {recorded} bytes and the limit of {LIMIT}"))
}

/// Weighs every file below `folder`, by name, those that are not part of the page last.
pub fn weigh(folder: &Path) -> Result<Vec<Weight>> {
    let mut weights = Vec::new();
    let beside = Beside::new(folder)?;
    for path in files_below(folder)? {
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
    weights.sort_by(|a, b| (a.beside, &a.file).cmp(&(b.beside, &b.file)));
    Ok(weights)
}

/// What distinguishes the files that the page loads from others.
struct Beside {
    /// The text of `index.html`.
    page: String,
    /// The texts of the other pages.
    others: String,
}

impl Beside {
    fn new(folder: &Path) -> io::Result<Self> {
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
        let named = |page: &str| {
            // As attributes with quotes and without, and as imports of scripts.
            let spellings =
                [format!("\"{file}\""), format!("\"./{file}\""), format!("=./{file}"), format!("={file}")];
            spellings.iter().any(|name| page.contains(name))
        };
        is_other_page(Path::new(file))
            || FOR_OTHERS.contains(&file)
            || LATER.contains(&file)
            || file == SERVICE
            || named(&self.others) && !named(&self.page)
    }
}

fn is_other_page(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "html")
        && path.file_name().is_some_and(|name| name != "index.html")
}

/// The compressed size of `bytes` at quality 11 with the usual window of 4 MiB.
pub fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    // The buffer has 64 KiB; 22 is the logarithm of the window.
    let mut writer = CompressorWriter::new(Vec::new(), 1 << 16, 11, 22);
    writer.write_all(bytes)?;
    // This ends the stream as well.
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
            page: r#"<link href=./page-1.css><link rel="icon" href="./icon.svg"><script>import x from "./x.js"</script>"#.into(),
            others: r#"<link href="pages.css"><link href="icon.svg"><script src="evidence.js"></script>"#.into(),
        };
        for file in ["evidence.html", "guide.html", "pages.css", "evidence.js", "embed.js", "sw.js"] {
            assert!(beside.holds(file), "{file}");
        }
        // Files that nothing references may be loaded by the engine or its glue.
        for file in ["index.html", "page-1.css", "icon.svg", "x.js", "x_bg.wasm", "parts/more.wasm"] {
            assert!(!beside.holds(file), "{file}");
        }
    }

    #[test]
    fn growth_is_noticed_before_the_limit_and_a_lighter_page_is_welcome() {
        assert!(judge(500_000, 500_000).is_ok());
        assert!(judge(520_000, 500_000).is_ok());
        assert!(judge(400_000, 500_000).is_ok());
        assert!(judge(520_001, 500_000).unwrap_err().to_string().contains("--record"));
        assert!(judge(LIMIT, LIMIT).is_ok());
        assert!(judge(LIMIT + 1, LIMIT).is_err());
    }
}
