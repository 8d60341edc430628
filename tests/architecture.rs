//! The architecture as rules that a test can check: no dependency cycles between files, no long files, no crate with
//! more than a quarter of the code.
//!
//! Edges are read from the sources with `syn`: a file points to every file of its own crate whose items it names by
//! `crate::…`, `super::…` or a child module. Names that a facade (`lib.rs`, `mod.rs`) only re-exports lead to the file
//! that defines them. Dependencies between crates need no test: Cargo rejects cycles there.

#![allow(clippy::expect_used, reason = "a test that cannot go on should stop with the value at hand")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};

/// One file of a crate, as a module.
struct File {
    /// The module's path inside its crate; empty for `lib.rs`.
    module: Vec<String>,
    syntax: syn::File,
    lines: usize,
}

/// The Rust files in `folder` and below, including their own tests (which are removed from the syntax).
fn read(folder: &Path, module: &[String], files: &mut Vec<(PathBuf, File)>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .expect("a folder of sources")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    entries.sort();
    for path in entries {
        let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() {
            let mut inner = module.to_vec();
            inner.push(stem);
            read(&path, &inner, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let mut own = module.to_vec();
            if !matches!(stem.as_str(), "mod" | "lib" | "main") {
                own.push(stem);
            }
            let text = fs::read_to_string(&path).expect("a source");
            let mut syntax = syn::parse_file(&text).expect("Rust");
            syntax.items.retain(|item| !is_test(item));
            files.push((path, File { module: own, syntax, lines: text.lines().count() }));
        }
    }
}

/// Whether an item is only compiled for tests.
fn is_test(item: &syn::Item) -> bool {
    let attributes = match item {
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        _ => return false,
    };
    attributes.iter().any(|attribute| {
        matches!(&attribute.meta, syn::Meta::List(list) if list.path.is_ident("cfg") && list.tokens.to_string() == "test")
    })
}

/// Every path of a `use` tree, with a glob ending in `*`.
fn paths_of(tree: &syn::UseTree, before: &[String], found: &mut Vec<(Vec<String>, String)>) {
    let with = |name: &syn::Ident| {
        let mut path = before.to_vec();
        if name != "self" {
            path.push(name.to_string());
        }
        path
    };
    match tree {
        syn::UseTree::Path(path) => paths_of(&path.tree, &with(&path.ident), found),
        syn::UseTree::Name(name) => {
            let path = with(&name.ident);
            let last = path.last().cloned().unwrap_or_default();
            found.push((path, last));
        }
        syn::UseTree::Rename(name) => found.push((with(&name.ident), name.rename.to_string())),
        syn::UseTree::Glob(_) => {
            let mut path = before.to_vec();
            path.push("*".to_owned());
            found.push((path, "*".to_owned()));
        }
        syn::UseTree::Group(group) => group.items.iter().for_each(|item| paths_of(item, before, found)),
    }
}

/// The paths written in a file, in `use` and in its code.
#[derive(Default)]
struct Written {
    uses: Vec<(Vec<String>, String)>,
    paths: Vec<Vec<String>>,
}

impl<'ast> Visit<'ast> for Written {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        paths_of(&item.tree, &[], &mut self.uses);
    }
    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.paths.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_test(item) {
            visit::visit_item(self, item);
        }
    }
}

/// The modules of one crate.
struct Crate {
    /// Per module: the index of its file.
    modules: BTreeMap<Vec<String>, usize>,
    /// Per module: names imported by `use`, as absolute paths within the crate.
    brought: Vec<BTreeMap<String, Vec<String>>>,
    /// Per module: names it defines itself.
    defined: Vec<BTreeSet<String>>,
}

impl Crate {
    /// `path` as written in `module`, relative to the crate's root; `None` if it leaves the crate.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Vec<String>> {
        let mut at = module.to_vec();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => {
                at.clear();
                rest = &path[1..];
            }
            "self" => rest = &path[1..],
            "super" => {
                while let Some((first, behind)) = rest.split_first() {
                    if first != "super" {
                        break;
                    }
                    at.pop();
                    rest = behind;
                }
            }
            first => {
                let mut child = at.clone();
                child.push(first.to_owned());
                if !self.modules.contains_key(&child) {
                    return None;
                }
            }
        }
        at.extend(rest.iter().cloned());
        Some(at)
    }

    /// The file that defines the item named by `path` (from the root), through the facades that re-export it.
    fn definer(&self, path: &[String], depth: usize) -> Option<usize> {
        let mut length = path.len();
        while !self.modules.contains_key(&path[..length]) {
            length = length.checked_sub(1)?;
        }
        let file = self.modules[&path[..length]];
        let Some(name) = path.get(length) else { return Some(file) };
        if depth > 8 || self.defined[file].contains(name) {
            return Some(file);
        }
        match self.brought[file].get(name) {
            Some(handed) => {
                let mut full = handed.clone();
                full.extend(path[length + 1..].iter().cloned());
                self.definer(&full, depth + 1)
            }
            None => Some(file),
        }
    }
}

fn names_of(file: &syn::File) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for item in &file.items {
        let name = match item {
            syn::Item::Const(item) => item.ident.to_string(),
            syn::Item::Enum(item) => item.ident.to_string(),
            syn::Item::Fn(item) => item.sig.ident.to_string(),
            syn::Item::Static(item) => item.ident.to_string(),
            syn::Item::Struct(item) => item.ident.to_string(),
            syn::Item::Trait(item) => item.ident.to_string(),
            syn::Item::Type(item) => item.ident.to_string(),
            _ => continue,
        };
        names.insert(name);
    }
    names
}

/// The edges of one crate, file to file.
fn arrows(files: &[(PathBuf, File)]) -> Vec<BTreeSet<usize>> {
    let modules = files.iter().enumerate().map(|(index, (_, file))| (file.module.clone(), index)).collect();
    let written: Vec<Written> = files
        .iter()
        .map(|(_, file)| {
            let mut written = Written::default();
            written.visit_file(&file.syntax);
            written
        })
        .collect();
    let mut house = Crate {
        modules,
        brought: vec![BTreeMap::new(); files.len()],
        defined: files.iter().map(|(_, file)| names_of(&file.syntax)).collect(),
    };
    for (index, (_, file)) in files.iter().enumerate() {
        let brought = written[index]
            .uses
            .iter()
            .filter_map(|(path, name)| Some((name.clone(), house.absolute(&file.module, path)?)))
            .collect();
        house.brought[index] = brought;
    }
    files
        .iter()
        .enumerate()
        .map(|(index, (_, file))| {
            // A facade that defines nothing only re-exports names: its edges belong to its users.
            if file.syntax.items.iter().all(|item| matches!(item, syn::Item::Mod(_) | syn::Item::Use(_))) {
                return BTreeSet::new();
            }
            let named = written[index].uses.iter().map(|(path, _)| path.clone());
            let of_code = written[index].paths.iter().filter(|path| path.len() > 1).cloned();
            named
                .chain(of_code)
                .filter_map(|path| house.definer(&house.absolute(&file.module, &path)?, 0))
                .filter(|&target| target != index)
                .collect()
        })
        .collect()
}

/// Groups of files that reach each other, found by walking from each.
fn circles(arrows: &[BTreeSet<usize>]) -> Vec<BTreeSet<usize>> {
    let reach: Vec<BTreeSet<usize>> = (0..arrows.len())
        .map(|start| {
            let (mut seen, mut next) = (BTreeSet::new(), vec![start]);
            while let Some(at) = next.pop() {
                for &target in &arrows[at] {
                    if seen.insert(target) {
                        next.push(target);
                    }
                }
            }
            seen
        })
        .collect();
    let mut found: Vec<BTreeSet<usize>> = Vec::new();
    for start in 0..arrows.len() {
        let circle: BTreeSet<usize> =
            reach[start].iter().copied().filter(|&other| reach[other].contains(&start)).collect();
        if circle.len() > 1 && !found.contains(&circle) {
            found.push(circle);
        }
    }
    found
}

/// Workspace packages that are neither part of the engine nor of the page.
const BESIDE: [&str; 6] = ["e2e", "mutants", "npm", "pages", "speed", "xtask"];

/// The sources in `src` of each folder.
fn sources_of(folders: Vec<PathBuf>) -> Vec<(String, Vec<(PathBuf, File)>)> {
    folders
        .into_iter()
        .map(|folder| {
            let mut files = Vec::new();
            read(&folder.join("src"), &[], &mut files);
            (folder.file_name().expect("a name").to_string_lossy().into_owned(), files)
        })
        .collect()
}

/// The sources of every workspace crate from which a product is built, and of the page.
fn crates() -> Vec<(String, Vec<(PathBuf, File)>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders: Vec<PathBuf> = fs::read_dir(root.join("crates"))
        .expect("crates")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    folders.sort();
    folders.push(root.to_owned());
    sources_of(folders)
}

/// The same, and the sources of the packages that build, publish, measure and test them.
fn packages() -> Vec<(String, Vec<(PathBuf, File)>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = crates();
    all.extend(sources_of(BESIDE.iter().map(|name| root.join(name)).collect()));
    all
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let mut faults = Vec::new();
    for (name, files) in packages() {
        let arrows = arrows(&files);
        for circle in circles(&arrows) {
            let of = |index: usize| files[index].1.module.join("::");
            let ties: Vec<String> = circle
                .iter()
                .flat_map(|&from| arrows[from].intersection(&circle).map(move |&to| (from, to)))
                .map(|(from, to)| format!("  {} -> {}", of(from), of(to)))
                .collect();
            faults.push(format!("{name}:\n{}", ties.join("\n")));
        }
    }
    assert!(faults.is_empty(), "{} circles\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn no_crate_holds_more_than_a_quarter_of_the_code() {
    let lines: Vec<(String, usize)> = crates()
        .into_iter()
        .map(|(name, files)| (name, files.iter().map(|(_, file)| file.lines).sum()))
        .collect();
    let all: usize = lines.iter().map(|(_, lines)| lines).sum();
    for (name, lines) in lines {
        assert!(lines * 4 <= all, "{name} holds {lines} of {all} lines");
    }
}

/// The Rust files in `folder` and below; none if the folder does not exist.
fn rust_below(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            rust_below(&path, out);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            out.push(path);
        }
    }
}

/// Maximum number of lines in a source file: what can be read in one sitting. A longer file contains a second topic,
/// which gets its own file.
const LONGEST: usize = 400;

#[test]
fn no_source_is_longer_than_one_sitting_reads() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<PathBuf> =
        packages().into_iter().flat_map(|(_, files)| files).map(|(path, _)| path).collect();
    for folder in fs::read_dir(root.join("crates")).expect("crates") {
        rust_below(&folder.expect("an entry").path().join("tests"), &mut files);
    }
    for folder in ["tests", "benches", "examples", "e2e/tests", "pages/tests", "fuzz/fuzz_targets"] {
        rust_below(&root.join(folder), &mut files);
    }
    let long: Vec<String> = files
        .iter()
        .map(|path| (path, fs::read_to_string(path).expect("a source").lines().count()))
        .filter(|(_, lines)| *lines > LONGEST)
        .map(|(path, lines)| format!("{} has {lines} lines", path.display()))
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

/// The workspace crates on which the manifest of `name` depends.
fn dependencies(name: &str) -> BTreeSet<String> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates").join(name).join("Cargo.toml");
    let text = fs::read_to_string(&manifest).expect("a manifest");
    let (_, behind) = text.split_once("\n[dependencies]\n").unwrap_or(("", ""));
    let table = behind.lines().take_while(|line| !line.starts_with('['));
    let names = table.filter_map(|line| line.split(['.', ' ']).next());
    let own = names.filter_map(|name| name.strip_prefix("shardscope"));
    own.map(|rest| rest.strip_prefix('-').unwrap_or("shardscope").to_owned()).collect()
}

/// The table of ARCHITECTURE.md: every crate once, below everything it depends on, with no dependency that does not
/// exist.
#[test]
fn the_map_of_the_crates_is_theirs() {
    let map = include_str!("../ARCHITECTURE.md");
    let (_, behind) = map.split_once("| crate | what is in it | uses |\n|---|---|---|\n").expect("the table");
    let mut above: BTreeSet<String> = BTreeSet::new();
    for row in behind.lines().take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let (name, uses) = (cells[0].trim_matches('`'), cells[cells.len() - 1]);
        let real = dependencies(name);
        assert!(real.is_subset(&above), "{name} uses {real:?}, and above it stand {above:?}");
        if uses != "all of the above" {
            let named: BTreeSet<String> =
                uses.split(", ").filter(|one| !one.is_empty()).map(str::to_owned).collect();
            assert!(named.is_subset(&real), "{name} uses {real:?}, and the table has {named:?}");
        }
        above.insert(name.to_owned());
    }
    let folders = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("crates")).expect("crates");
    let folders: BTreeSet<String> =
        folders.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(above, folders);
}
