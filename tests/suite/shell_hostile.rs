//! Hostile texts terminate, and what is kept of them stays small.

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::sample::{Index, select};
use shardscope::bash::{Environment, Script};
use shardscope::launch::launch;
use shardscope::source::{Code, Severity, Source, render};

use super::drawn::{Damage, config};
use super::hostile::texts;

/// Bytes of the long texts; the benchmark uses megabytes.
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

/// An array or a loop that is cut off is no shorter one: the script has an error, and no number follows from it in silence.
#[test]
fn what_is_too_long_is_not_taken_for_shorter() {
    for text in [
        "a=({1..5000}); N=${#a[@]}",
        "for i in {1..5000}; do N=$i; done",
        "a=({1..3000}); a+=({1..3000}); N=${#a[@]}",
        "mapfile -t a <<E\n{lines}E\nN=${#a[@]}",
        "echo {a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}",
    ] {
        let source = Source::new(&text.replace("{lines}", &"x\n".repeat(5_000)));
        let script = launch::read(&source, &Environment::default()).script;
        let said = script.diagnostics.iter().any(|said| said.severity == Severity::Error);
        assert!(said, "{text}: {:?}", script.diagnostics);
    }
    // As many as are kept are kept.
    let text = format!("a=({{1..4096}}); N=${{#a[@]}}\nmapfile -t b <<E\n{}E\n", "x\n".repeat(4_096));
    let source = Source::new(&text);
    let script = launch::read(&source, &Environment::default()).script;
    assert!(
        script.diagnostics.iter().all(|said| said.severity != Severity::Error),
        "{:?}",
        script.diagnostics
    );
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
fn texts_that_are_no_scripts_are_reported_so() {
    for text in [
        "",
        "\n",
        "Dear all,\n\nplease find attached the report (v2).\nIt's fine.\n",
        "{\"a\": 1}",
        "\u{0}\u{1}\u{fffd}",
    ] {
        let launch = launch::read(&Source::new(text), &Environment::default());
        let reported = launch.diagnostics.iter().any(|diagnostic| diagnostic.code == Code::NoTrainingCommand);
        assert!(reported, "{text:?}: {:?}", launch.diagnostics);
    }
    let launch = launch::read(&Source::new("# only a comment"), &Environment::default());
    let reported = launch.diagnostics.iter().any(|diagnostic| {
        diagnostic.code == Code::NoTraining
            && diagnostic.message.contains("every line of this text is a comment")
    });
    assert!(reported, "{:?}", launch.diagnostics);
}

/// Characters with a meaning in bash, and others.
const SIGNS: [&str; 44] = [
    "\"", "'", "`", "$", "(", ")", "{", "}", "[", "]", "<", ">", "|", "&", ";", "#", "\\", "\n", " ", "\t",
    "=", "!", "~", "*", "?", "@", "%", "^", "+", "-", "/", ":", ",", ".", "0", "a", "Z", "_", "\0", "\u{a0}",
    "\u{fffd}", "$(", "<<", "${",
];

/// Ways to damage a script: most often a character is inserted.
fn damages() -> impl Strategy<Value = Damage> {
    prop_oneof![
        2 => select(&SIGNS).prop_map(Damage::Insert),
        1 => Just(Damage::Drop),
        1 => Just(Damage::Repeat),
    ]
}

proptest! {
    #![proptest_config(config(3_000))]

    /// A part of one of our own sample scripts, broken in many ways.
    #[test]
    fn no_bytes_make_the_reader_panic(
        sample in any::<Index>(),
        from in any::<Index>(),
        length in 0..400_usize,
        damages in vec((damages(), any::<Index>()), 0..12),
    ) {
        let samples = super::shell_scripts::scripts();
        let (_, sample) = sample.get(&samples);
        let mut text: String = sample.chars().skip(from.index(sample.len())).take(length).collect();
        for (damage, place) in damages {
            damage.apply(&mut text, place);
        }
        let source = Source::new(&text);
        let environment = Environment { arguments: vec!["a b".to_owned(), "7".to_owned()], ..Environment::default() };
        let launch = launch::read(&source, &environment);
        for diagnostic in launch.reading().diagnostics {
            assert!(!render(&source, &diagnostic).is_empty());
        }
    }
}
