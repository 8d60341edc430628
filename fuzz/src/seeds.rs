//! What a target starts from: the repository's own samples, and inputs that once failed.

use std::fs;
use std::path::{Path, PathBuf};

/// The files of a folder and below, by name.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths.into_iter().flat_map(|path| if path.is_dir() { below(&path) } else { vec![path] }).collect()
}

fn ends(path: &Path, endings: &[&str]) -> bool {
    path.extension().is_some_and(|own| endings.iter().any(|ending| own == *ending))
}

fn contents(folder: &Path, endings: &[&str]) -> Vec<Vec<u8>> {
    below(folder).iter().filter(|path| ends(path, endings)).filter_map(|path| fs::read(path).ok()).collect()
}

/// The files of each case of `tests/data/formats/cases` as one input: name, zero byte, text, zero byte, name …
fn cases(root: &Path) -> Vec<Vec<u8>> {
    let folder = root.join("tests/data/formats/cases");
    let cases = fs::read_dir(&folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let mut cases: Vec<PathBuf> = cases.collect();
    cases.sort();
    let joined = |case: &PathBuf| {
        let files =
            below(case).into_iter().filter(|path| path.file_name().is_some_and(|name| name != "expected"));
        let files = files.filter_map(|path| {
            let name = path.strip_prefix(case).ok()?.to_string_lossy().into_owned();
            Some([name.as_bytes(), b"\0", &fs::read(&path).ok()?].concat())
        });
        files.collect::<Vec<_>>().join(&0)
    };
    cases.iter().map(joined).filter(|input| !input.is_empty()).collect()
}

/// Each with `first` before it.
fn behind(first: &[u8], inputs: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    inputs.into_iter().map(|input| [first, &input].concat()).collect()
}

/// Bytes that look random and are the same everywhere.
fn bytes(count: usize, length: usize) -> Vec<Vec<u8>> {
    let mut state = 0x9e37_79b9_u32;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[1]
    };
    (0..count).map(|_| (0..length).map(|_| next()).collect()).collect()
}

/// The inputs of a target, in the repository at `root`: samples first, then what once failed (`fuzz/found/TARGET/`).
#[must_use]
pub fn seeds(root: &Path, target: &str) -> Vec<Vec<u8>> {
    let data = root.join("tests/data");
    let scripts = || contents(&data.join("launch"), &["sh"]);
    let mut inputs = match target {
        "shell" => scripts(),
        "settings" => [
            behind(&[0], contents(&data.join("formats"), &["json"])),
            behind(&[1], contents(&data.join("formats"), &["toml"])),
            behind(&[2], contents(&data.join("formats"), &["yaml", "yml"])),
        ]
        .concat(),
        "texts" => [cases(root), scripts()].concat(),
        "links" => fs::read_to_string(data.join("links/golden.txt"))
            .unwrap_or_default()
            .split_whitespace()
            .map(|word| word.trim_start_matches('#').as_bytes().to_vec())
            .collect(),
        "kept" => vec![
            br#"{"hand":{"text":"torchrun --nproc_per_node 8 x.py --num-layers 2"}}"#.to_vec(),
            br#"{"hand":{"texts":[{"name":"a.sh","text":"torchrun x.py"},{"name":"c.json","text":"{}"}],
                "settings":[["num_layers","3"]],"environment":[["A","1"]],"arguments":"a b"},"pinned":{"text":"x"}}"#
                .to_vec(),
        ],
        "logs" => contents(&data.join("formats"), &["log", "txt"]),
        "measured" => contents(&data.join("run_tools"), &["log", "txt", "json", "pickle"]),
        "asked" => [
            "fewest-gpus", "which-gpu", "cheapest", "scaling", "one-more-node", "longest-sequence",
            "largest-micro-batch", "largest-model",
        ]
        .iter()
        .map(|question| {
            format!("{{\"question\":\"{question}\",\"train\":\"lora\",\"tokens\":1000000,\"days\":1.5,\"price\":2,\"most_nodes\":4}}")
                .into_bytes()
        })
        .collect(),
        "patches" => {
            let places = (0..=255_u8).step_by(7);
            let scripts = scripts();
            places.zip(scripts.iter().cycle()).map(|(place, script)| [&[place, place], script.as_slice()].concat()).collect()
        }
        "exports" | "plans" => bytes(64, 13),
        _ => Vec::new(),
    };
    inputs.extend(below(&root.join("fuzz/found").join(target)).iter().filter_map(|path| fs::read(path).ok()));
    inputs
}
