//! Programs that change files which the script has written: `sed -i`, `mv` and `cp` if the content is known; after
//! any other the content is unknown.

use super::super::script::HoleKind;
use super::super::value::{Value, Word};
use super::programs::base_name;
use super::state::Evaluator;
use shardscope_source::Span;

/// Programs that modify the files given to them in a way that is not evaluated here; the first two only with `-i`.
const EDITORS: [&str; 7] = ["perl", "yq", "patch", "ed", "ex", "sponge", "truncate"];

/// Applies what a command does to such files.
pub(crate) fn edit(shell: &mut Evaluator<'_>, words: &[Word], span: Span) {
    // In a branch that is not taken nothing is written.
    if shell.files.is_empty() || shell.skipped {
        return;
    }
    let Some((program, arguments)) = words.split_first() else { return };
    let Some(program) = program.known().map(base_name) else { return };
    let mut operands: Vec<&Word> = arguments.iter().filter(|word| !word.text().starts_with('-')).collect();
    match program {
        "sed" if arguments.iter().any(|word| in_place(word.text()).is_some()) => {
            // What precedes the `i` in combined options (`-Ei`) is a separate option.
            let rest = arguments.iter().filter_map(|word| match in_place(word.text()) {
                None => Some(word.clone()),
                Some(at) if at > 1 => Some(Word { value: word.value.part(0, at), ..word.clone() }),
                Some(_) => None,
            });
            let content = super::sed::run(shell, &rest.collect::<Vec<_>>());
            // A single file is edited; for several, only that their content is now unknown.
            let known: Vec<Value> = named(shell, &operands);
            let one = known.len() == 1;
            for name in known {
                put(shell, name, content.clone().filter(|_| one), span);
            }
        }
        "mv" | "cp" => {
            let Some(to) = operands.pop() else { return };
            let [from] = operands.as_slice() else { return };
            let content = shell.readable(&from.value);
            if shell.file_content(&from.value).is_some() || shell.file_content(&to.value).is_some() {
                put(shell, to.value.clone(), content, span);
            }
        }
        "perl" | "yq" if !arguments.iter().any(|word| in_place(word.text()).is_some()) => {}
        _ if EDITORS.contains(&program) => {
            for name in named(shell, &operands) {
                put(shell, name, None, span);
            }
        }
        _ => {}
    }
}

/// The position of `i` in an option that edits in place: `-i`, `-i.bak`, `-Ei`; an option with a value ends the
/// combination.
fn in_place(word: &str) -> Option<usize> {
    if word.starts_with("--in-place") {
        return Some(0);
    }
    let at = word.strip_prefix('-')?.find('i')? + 1;
    word.get(1..at)?.bytes().all(|flag| b"nErszup".contains(&flag)).then_some(at)
}

/// The words that name a file which the script has written.
fn named(shell: &Evaluator<'_>, words: &[&Word]) -> Vec<Value> {
    let is_known = |word: &&&Word| shell.file_content(&word.value).is_some();
    words.iter().filter(is_known).map(|word| word.value.clone()).collect()
}

/// Gives a file its new content, or unknown content.
fn put(shell: &mut Evaluator<'_>, name: Value, content: Option<Value>, span: Span) {
    let needs = name.holes();
    let content = match content {
        Some(content) => content,
        None => shell.unknown(HoleKind::Command, &format!("cat {}", name.text()), span, needs),
    };
    shell.write_file(name, content, false, span);
}
