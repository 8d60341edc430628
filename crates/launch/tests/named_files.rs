//! The settings file that a command names: which text it is, and what else stands beside it.

use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_source::Source;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

fn resolved(files: &[(&str, &str)]) -> Resolution {
    let source = Source::from_files(files.iter().copied());
    read(&Request { source: &source, environment: &Environment::default(), overrides: &[] })
}

/// Each command's words are compared with the file, which is read once: with a reading for each of 400 commands this took
/// more than a minute.
#[test]
fn a_file_is_read_once_for_all_commands_that_name_it() {
    let (mut file, mut script) = (String::new(), String::new());
    for key in 0..4_000 {
        let _ = writeln!(file, "key{key}: {key}");
    }
    for _ in 0..400 {
        script.push_str("uv run train_foo.py --config c.yaml zzI.a=1\n");
    }
    let start = Instant::now();
    let read = resolved(&[("c.yaml", &file), ("run.sh", &script)]);
    assert!(read.plan.is_none());
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}
