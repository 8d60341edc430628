//! What comes of public launch files, as the guide tells it. The files are other people's and not kept here: the table names
//! repository, path and commit of each, and `tools/public-files` fetches them and checks every row.

use std::collections::BTreeMap;
use std::path::Path;

mod outcome;

const FILES: &str = include_str!("data/public_files.tsv");
const GUIDE: &str = include_str!("../../../pages/src/guide/outcomes.tsv");
const OUTCOMES: [&str; 5] = ["full", "asked", "stopped", "helped", "no way"];

/// Format, repository, path, commit and outcome of each file.
fn rows() -> impl Iterator<Item = [&'static str; 5]> {
    FILES.lines().filter_map(|line| line.split('\t').collect::<Vec<_>>().try_into().ok())
}

#[test]
fn the_guides_table_counts_these_files() {
    assert_eq!(rows().count(), FILES.lines().count());
    let mut counts: BTreeMap<&str, [usize; 5]> = BTreeMap::new();
    for [format, _, path, commit, outcome] in rows() {
        let at = OUTCOMES.iter().position(|known| *known == outcome);
        let at = at.unwrap_or_else(|| panic!("{path}: {outcome} is no outcome"));
        assert_eq!(commit.len(), 40, "{path}");
        for format in [format, "all"] {
            counts.entry(format).or_default()[at] += 1;
        }
    }
    let mut told = 0;
    for line in GUIDE.lines() {
        let mut cells = line.split('\t');
        let format = cells.next().expect("a format");
        let numbers: Vec<usize> = cells.map(|cell| cell.parse().expect("a number")).collect();
        let counted = counts.get(format).unwrap_or_else(|| panic!("{format} is not among the files"));
        assert_eq!(numbers[0], counted.iter().sum::<usize>(), "{format}");
        assert_eq!(&numbers[1..], counted, "{format}");
        told += 1;
    }
    assert_eq!(told, counts.len());
}

/// With `SHARDSCOPE_PUBLIC_FILES` set to the folder that `tools/public-files` fetches to, every row is read again.
#[test]
fn files_at_hand_come_to_what_the_table_says() {
    let Ok(root) = std::env::var("SHARDSCOPE_PUBLIC_FILES") else { return };
    let (mut read, mut wrong) = (0, Vec::new());
    for [_, repository, path, _, told] in rows() {
        let Some(now) = outcome::of_public(Path::new(&root), repository, path) else { continue };
        read += 1;
        if now != told {
            wrong.push(format!("{repository}/{path}: {told} in the table, {now} now"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(read > 0, "no file of the table is in {root}");
}
