//! Writes the JSON report of every fixture and gallery example into a folder, so that two revisions can be compared:
//! `cargo run -p shardscope --example documents -- FOLDER` (`cargo xtask documents` runs it).
//!
//! A text that leaves something open is written twice: as it is, and with its questions answered as proposed, so that
//! the estimates behind it are compared as well.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use shardscope::bash::Environment;
use shardscope::launch::{Request, Resolution, read};
use shardscope::report::document::{Document, Lists};
use shardscope::session::examples::gallery;
use shardscope::session::{UserInput, estimated};
use shardscope::source::Source;

/// Questions lead to others (a cluster's size to its layout), seldom more than twice.
const ROUNDS: usize = 4;

type Settings = Vec<(String, String)>;

/// A text to read: its name, its files by name, and what is set beside them.
type Fixture = (String, Vec<(String, String)>, Settings);

fn main() -> Result<(), Box<dyn Error>> {
    let folder: PathBuf = std::env::args_os().nth(1).ok_or("which folder?")?.into();
    fs::create_dir_all(&folder)?;
    let mut names = BTreeSet::new();
    let mut write = |name: &str, document: String| {
        if names.insert(name.to_owned()) {
            fs::write(folder.join(format!("{name}.json")), document)
        // Two fixtures with one name would overwrite each other, and a difference between revisions go unseen.
        } else {
            Err(std::io::Error::other(format!("two documents are called {name}")))
        }
    };
    let environment = Environment::default();
    for (name, texts, settings) in fixtures()? {
        let source = Source::from_files(texts.iter().map(|(name, text)| (name.as_str(), text.as_str())));
        let (document, resolution) = document(&source, &environment, &settings);
        write(&name, document)?;
        if let Some(answers) = answered(&source, &environment, &settings, resolution) {
            write(&format!("{name}.answered"), self::document(&source, &environment, &answers).0)?;
        }
    }
    for (number, example) in gallery().into_iter().flat_map(|chapter| chapter.examples).enumerate() {
        let input: &UserInput = &example.input;
        let name = format!("gallery.{number:02}.{}", plain(&example.name));
        write(&name, document(&input.source(), &input.shell_environment(), &input.settings).0)?;
    }
    println!("{} documents", names.len());
    Ok(())
}

fn document(source: &Source, environment: &Environment, settings: &Settings) -> (String, Resolution) {
    let mut resolution = read(&Request { source, environment, overrides: settings });
    let report = estimated(&mut resolution).map(|(_, report)| report);
    let json = Document::with_lists(source, &resolution, report.as_ref(), Lists::Short).to_json(true);
    (json, resolution)
}

/// The settings with every question answered as proposed; none where nothing is proposed.
fn answered(
    source: &Source,
    environment: &Environment,
    settings: &Settings,
    mut resolution: Resolution,
) -> Option<Settings> {
    let mut all = settings.clone();
    for _ in 0..ROUNDS {
        let known = all.len();
        // Proposals of each round may lead to new questions.
        for question in &resolution.questions {
            if let Some(proposal) = &question.proposal
                && all.iter().all(|(name, _)| *name != question.name())
            {
                all.push((question.name().to_owned(), proposal.clone()));
            }
        }
        // Nothing more is proposed: what is still open stays open.
        if all.len() == known {
            break;
        }
        resolution = read(&Request { source, environment, overrides: &all });
    }
    (all.len() > settings.len()).then_some(all)
}

/// Every text of `tests/data` that is read.
fn fixtures() -> Result<Vec<Fixture>, Box<dyn Error>> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data");
    let mut found = Vec::new();
    for path in listed(&data.join("launch"))? {
        if path.extension().is_some_and(|extension| extension == "sh") {
            let text = fs::read_to_string(&path)?;
            found.push((format!("launch.{}", named(&path)), vec![(named(&path), text)], Vec::new()));
        }
    }
    for folder in listed(&data.join("formats/cases"))? {
        let (mut texts, mut settings) = (Vec::new(), Vec::new());
        for path in listed(&folder)? {
            let text = fs::read_to_string(&path)?;
            if named(&path) == "expected" {
                // Settings beside a case's texts stand in its `expected`, by lines.
                let sets = text.lines().filter_map(|line| line.strip_prefix("set ")?.split_once(" = "));
                settings.extend(sets.map(|(name, value)| (name.to_owned(), value.to_owned())));
            } else {
                texts.push((named(&path), text));
            }
        }
        found.push((format!("formats.{}", named(&folder)), texts, settings));
    }
    Ok(found)
}

fn listed(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut paths =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, std::io::Error>>()?;
    // The order of a folder differs between file systems.
    paths.sort();
    Ok(paths)
}

fn named(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A name that every file system takes.
fn plain(text: &str) -> String {
    text.chars().map(|sign| if sign.is_ascii_alphanumeric() { sign } else { '-' }).collect()
}
