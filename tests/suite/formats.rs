//! Settings files of every framework compared with their contents.

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::sample::{Index, select};
use serde_json::Value;
use shardscope::bash::Environment;
use shardscope::estimate::parameters;
use shardscope::launch::{Request, Resolution, read};
use shardscope::plan::Field;
use shardscope::source::Source;

use crate::drawn::{Damage, config};

fn data(name: &str) -> String {
    let path = format!("{}/tests/data/formats/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|fault| panic!("{path}: {fault}"))
}

pub(crate) fn resolved(source: &Source, overrides: &[(String, String)]) -> Resolution {
    read(&Request { source, environment: &Environment::default(), overrides })
}

fn value(resolution: &Resolution, name: &str) -> String {
    let field = Field::named(name).unwrap_or_else(|| panic!("no setting {name}"));
    resolution.setting(field).map(|setting| setting.value.written()).unwrap_or_default()
}

#[test]
fn model_configurations_hold_their_published_parameters() {
    let mut counted = 0;
    for line in data("huggingface.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let name = case["name"].as_str().unwrap();
        let text = serde_json::to_string_pretty(&case["config"]).unwrap();
        let positions = case["config"]["n_positions"].as_u64().unwrap_or(512);
        let mut overrides = vec![
            ("seq_length".to_owned(), positions.to_string()),
            ("micro_batch_size".to_owned(), "1".to_owned()),
            ("world_size".to_owned(), "1".to_owned()),
            ("pad_vocab_size".to_owned(), "false".to_owned()),
        ];
        let sets = case["sets"].as_object().unwrap().iter();
        overrides.extend(sets.map(|(key, value)| (key.clone(), value.as_str().unwrap().to_owned())));
        let resolution = resolved(&Source::from_files([("config.json", text.as_str())]), &overrides);
        for (key, expected) in case["settings"].as_object().unwrap() {
            assert_eq!(value(&resolution, key), expected.as_str().unwrap(), "{name}: {key}");
        }
        for code in case["codes"].as_array().unwrap() {
            let reported = resolution.diagnostics.iter().any(|said| Some(said.code.name()) == code.as_str());
            assert!(reported, "{name}: {code} among {:?}", resolution.diagnostics);
        }
        if let Some(published) = case["parameters"].as_u64() {
            let plan =
                resolution.plan.as_ref().unwrap_or_else(|| panic!("{name}: {:?}", resolution.diagnostics));
            assert_eq!(parameters(plan).total.get(), published, "{name}");
            counted += 1;
        }
    }
    assert_eq!(counted, 19);
}

/// The texts of a case and the lines with the expected result.
fn case(folder: &std::path::Path) -> (Vec<(String, String)>, String) {
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let named = files.iter().map(|path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read_to_string(path).unwrap())
    });
    let (expected, files): (Vec<_>, Vec<_>) = named.partition(|(name, _)| name == "expected");
    (files, expected.into_iter().next().expect("an expected file").1)
}

/// One folder per case.
pub(crate) fn folders() -> Vec<std::path::PathBuf> {
    let root = format!("{}/tests/data/formats/cases", env!("CARGO_MANIFEST_DIR"));
    let mut folders: Vec<_> = std::fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders
}

/// The texts of a case and what they resolve to.
pub(crate) fn resolution(folder: &std::path::Path) -> (Source, Resolution) {
    let (files, expected) = case(folder);
    let source = Source::from_files(files.iter().map(|(name, text)| (name.as_str(), text.as_str())));
    let sets = expected.lines().filter_map(|line| line.strip_prefix("set ")?.split_once(" = "));
    let overrides: Vec<_> = sets.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let resolution = resolved(&source, &overrides);
    (source, resolution)
}

#[test]
fn every_format_says_what_it_says() {
    let folders = folders();
    assert!(folders.len() >= 87, "{} cases", folders.len());
    let faults: Vec<String> = folders.iter().flat_map(|folder| faults(folder)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn faults(folder: &std::path::Path) -> Vec<String> {
    let (_, expected) = case(folder);
    let (source, resolution) = resolution(folder);
    let name = folder.file_name().unwrap().to_string_lossy().into_owned();
    let mut faults = Vec::new();
    for line in expected.lines().filter(|line| !line.starts_with("set ")) {
        if let Some(fault) = fault(line, &resolution, &source) {
            faults.push(format!("{name}: {line}: {fault}"));
        }
    }
    faults
}

fn fault(line: &str, resolution: &Resolution, source: &Source) -> Option<String> {
    let reported = || {
        resolution
            .diagnostics
            .iter()
            .map(|said| format!("{}: {}", said.code, said.message))
            .collect::<Vec<_>>()
    };
    // Setting a value answers its question, so only the files ask.
    let asked = || -> Vec<String> {
        resolved(source, &[]).questions.into_iter().map(|question| question.name().to_string()).collect()
    };
    match line.split_once(' ') {
        None if line == "plan" => resolution.plan.is_none().then(|| format!("{:?}", reported())),
        _ if line == "no plan" => resolution.plan.is_some().then(|| "there is one".to_owned()),
        Some(("!", code)) => (!resolution.diagnostics.iter().any(|said| said.code.name() == code))
            .then(|| format!("{:?}", reported())),
        Some(("?", name)) => (!asked().iter().any(|asked| asked == name)).then(|| format!("{:?}", asked())),
        Some(("span", rest)) => {
            let (name, expected) = rest.split_once(" = ").unwrap();
            let span = resolution.setting(Field::named(name).unwrap()).and_then(|setting| setting.span);
            let found = span.map(|span| source.slice(span).trim_matches(['"', '\'']));
            (found != Some(expected)).then(|| format!("{found:?}"))
        }
        _ => {
            let (name, expected) = line.split_once(" =").unwrap_or_else(|| panic!("{line}"));
            let found = value(resolution, name);
            (found != expected.trim()).then_some(found)
        }
    }
}

/// Fragments of settings files, and values that no setting may have.
const PIECES: [&str; 17] = [
    "\n",
    " ",
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    "- ",
    "0",
    "-1",
    "1e400",
    "999999999999999999999",
    "null",
    "${",
    "é",
    "\0",
];

fn damages() -> impl Strategy<Value = Damage> {
    prop_oneof![
        1 => Just(Damage::Cut),
        1 => Just(Damage::Drop),
        2 => select(&PIECES).prop_map(Damage::Insert),
    ]
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn no_settings_file_makes_a_reader_panic(
        folder in any::<Index>(),
        damages in vec((any::<Index>(), damages(), any::<Index>()), 1..9),
    ) {
        let folders = folders();
        let folder = folder.get(&folders);
        let (mut files, _) = case(folder);
        for (file, damage, place) in damages {
            let file = file.index(files.len());
            damage.apply(&mut files[file].1, place);
        }
        let source = Source::from_files(files.iter().map(|(name, text)| (name.as_str(), text.as_str())));
        let resolution = resolved(&source, &[]);
        let spans = resolution.settings.iter().filter_map(|setting| setting.span);
        for span in spans.chain(resolution.diagnostics.iter().filter_map(|said| said.span)) {
            let under = source.text().get(span.start as usize..span.end as usize);
            assert!(under.is_some(), "{span:?} in {}", folder.display());
        }
    }
}
