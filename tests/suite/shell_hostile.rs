//! Hostile texts end, and what is kept of them stays small.

use shardscope::intake::launch;
use shardscope::shell::{Environment, Script};
use shardscope::text::{Code, Severity, Source, render};

use super::hostile::texts;
use super::random::Random;

/// Bytes of the long texts; the benchmark takes megabytes.
const SIZE: usize = 30_000;

/// Bytes of text that a script keeps in its values.
fn kept(script: &Script) -> usize {
    let words: usize =
        script.commands.iter().flat_map(|command| &command.words).map(|word| word.text().len()).sum();
    let values: usize =
        script.variables.iter().flat_map(|variable| &variable.values).map(|value| value.text().len()).sum();
    let files: usize = script.files.iter().map(|file| file.content.text().len()).sum();
    words + values + files
}

#[test]
fn hostile_texts_end_and_stay_small() {
    for (name, text) in texts(SIZE) {
        let source = Source::new(&text);
        let launch = launch::read(&source, &Environment::default());
        let script = &launch.script;
        let size = kept(script);
        assert!(size <= 16 << 20, "{name}: keeps {size} bytes");
        assert!(script.diagnostics.len() <= 101, "{name}: {} diagnostics", script.diagnostics.len());
        assert!(
            script.holes.len() <= 4000 && script.commands.len() <= 2000 && script.branches.len() <= 500,
            "{name}"
        );
        for diagnostic in launch.reading().diagnostics {
            assert!(!render(&source, &diagnostic).is_empty());
        }
    }
}

#[test]
fn work_without_end_is_refused_by_name() {
    for name in [
        "doubling value",
        "long loop",
        "endless while",
        "nested loops",
        "recursion",
        "eval doubling",
        "doubling array",
    ] {
        let text = texts(SIZE).into_iter().find(|(known, _)| *known == name).expect("the text").1;
        let launch = launch::read(&Source::new(&text), &Environment::default());
        let refused = launch.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
        assert!(refused, "{name}: {:?}", launch.diagnostics);
    }
}

#[test]
fn texts_that_are_no_scripts_are_told_so() {
    for text in [
        "",
        "\n",
        "Dear all,\n\nplease find attached the report (v2).\nIt's fine.\n",
        "{\"a\": 1}",
        "\u{0}\u{1}\u{fffd}",
        "# only a comment",
    ] {
        let launch = launch::read(&Source::new(text), &Environment::default());
        let told = launch.diagnostics.iter().any(|diagnostic| diagnostic.code == Code::NoTrainingCommand);
        assert!(told, "{text:?}: {:?}", launch.diagnostics);
    }
}

/// Our own sample scripts, broken in many ways.
#[test]
fn no_bytes_make_the_reader_panic() {
    let samples: Vec<String> = super::shell_scripts::scripts().into_iter().map(|(_, text)| text).collect();
    let mut random = Random::new(7);
    let signs = b"\"'`$(){}[]<>|&;#\\\n \t=!~*?@%^+-/:,.0aZ_\x00\xc2\xa0\xe2\x80\xff";
    for turn in 0..3000_u64 {
        let sample = &samples[random.below(samples.len() as u64) as usize];
        let mut bytes = sample.clone().into_bytes();
        let from = random.below(bytes.len() as u64) as usize;
        let length = random.below(400) as usize;
        bytes = bytes[from..(from + length).min(sample.len())].to_vec();
        for _ in 0..random.below(12) {
            let at = random.below(bytes.len() as u64 + 1) as usize;
            let sign = signs[random.below(signs.len() as u64) as usize];
            match random.below(4) {
                0 => bytes.insert(at, sign),
                1 if at < bytes.len() => bytes[at] = sign,
                2 if at < bytes.len() => drop(bytes.remove(at)),
                _ => {
                    let copied = bytes[at / 2..at].to_vec();
                    bytes.splice(at..at, copied);
                }
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        let source = Source::new(&text);
        let launch = launch::read(
            &source,
            &Environment { arguments: vec!["a b".to_owned(), turn.to_string()], ..Environment::default() },
        );
        for diagnostic in launch.reading().diagnostics {
            assert!(!render(&source, &diagnostic).is_empty());
        }
    }
}
