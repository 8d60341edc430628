//! Output of all commands. Colours only go to terminals: `anstream` strips them from pipes, files and wherever
//! `NO_COLOR` is set.

use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use serde::Serialize;
use shardscope::estimate::Verdict;

/// How an answer is written; every command that has the choice has it in these words.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Format {
    /// For reading in a terminal.
    Text,
    /// Bare numbers in bytes, seconds, FLOPs: `report` writes the document `shardscope/report`.
    Json,
    /// For a pull request.
    Markdown,
}

/// Exit code for input that does not form a plan, and for an invalid call (as in clap).
pub(crate) const NO_PLAN: u8 = 2;

/// Lines narrower than this are not worth folding. Unit: column.
const NARROWEST: usize = 40;

/// Writes to standard output. A closed pipe (`| head`) is not an error.
pub(crate) fn print(text: &str) {
    let mut output = anstream::stdout().lock();
    let _ = output.write_all(text.as_bytes()).and_then(|()| output.flush());
}

/// Writes to standard output, prose folded at the width of the terminal.
pub(crate) fn print_prose(text: &str) {
    print(&folded(text, width()));
}

/// Writes a document.
pub(crate) fn print_json(document: &impl Serialize) {
    // Writing to memory cannot fail, and all keys are text.
    print(&(serde_json::to_string_pretty(document).unwrap_or_default() + "\n"));
}

/// Writes to standard error.
pub(crate) fn tell(text: &str) {
    let mut output = anstream::stderr().lock();
    let _ = output.write_all(text.as_bytes()).and_then(|()| output.flush());
}

/// Reports on standard error why the call cannot be answered.
pub(crate) fn refuse(problem: &(impl Display + ?Sized)) -> ExitCode {
    tell(&format!("{}: {}\n", coloured("error", RED), harmless(&problem.to_string())));
    ExitCode::from(NO_PLAN)
}

/// Good news.
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
/// Warnings.
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();
/// Failures.
pub(crate) const RED: Style = AnsiColor::Red.on_default().bold();
/// Titles.
pub(crate) const BOLD: Style = Style::new().bold();
/// Frames: rules, places, line numbers.
pub(crate) const CYAN: Style = AnsiColor::Cyan.on_default();

/// `text` in a colour.
pub(crate) fn coloured(text: &str, style: Style) -> String {
    format!("{style}{text}{style:#}")
}

/// The colour of a verdict.
pub(crate) const fn colour_of(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Fits => GREEN,
        Verdict::Tight => YELLOW,
        Verdict::OutOfMemory => RED,
    }
}

/// `text` without terminal control characters: text from a stranger's script is displayed, not interpreted.
pub(crate) fn harmless(text: &str) -> String {
    let shown = |c: char| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c };
    text.chars().map(shown).collect()
}

/// Columns of the terminal that standard output is; none where it is a file or a pipe.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn width() -> Option<usize> {
    terminal_size::terminal_size_of(std::io::stdout()).map(|(columns, _)| usize::from(columns.0))
}

/// WASI does not report the width of a terminal.
#[cfg(target_family = "wasm")]
pub(crate) const fn width() -> Option<usize> {
    None
}

/// Lines of prose folded at `width`, with continuation lines indented. In lines that align columns (two blanks
/// inside), the last column is wrapped below itself if it starts within two thirds of the width.
fn folded(text: &str, width: Option<usize>) -> String {
    let Some(width) = width.filter(|width| *width >= NARROWEST) else { return text.to_owned() };
    let mut out = String::new();
    for line in text.lines() {
        let inside = line.trim_start();
        let last = inside.rfind("  ").map(|gap| line.len() - inside.len() + gap + 2);
        // Continuation lines start below the last column, or two columns further in than the line itself.
        let indent = last.map_or(line.len() - inside.len() + 2, |start| line[..start].chars().count());
        if line.chars().count() <= width || last.is_some() && indent > width * 2 / 3 {
            out += line;
        } else {
            let indent = " ".repeat(indent);
            let options = textwrap::Options::new(width).subsequent_indent(&indent);
            // Names of settings and values are copied: they are not broken within a column.
            let options = if last.is_some() { in_columns(options) } else { options };
            out += &textwrap::fill(line, options);
        }
        out.push('\n');
    }
    out
}

/// Words of a column are never broken.
fn in_columns(options: textwrap::Options<'_>) -> textwrap::Options<'_> {
    options.break_words(false).word_splitter(textwrap::WordSplitter::NoHyphenation)
}

/// The lines of a cell in a column of `width`.
pub(crate) fn cell(text: &str, width: usize) -> Vec<String> {
    let lines = textwrap::wrap(text, in_columns(textwrap::Options::new(width)));
    lines.into_iter().map(std::borrow::Cow::into_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::{folded, harmless};

    #[test]
    fn prose_is_folded_and_columns_are_not() {
        let text = "  a sentence of more than forty columns is folded at the blank\n  rank   parameters   gradients   optimizer   activations\n";
        let narrow = folded(text, Some(40));
        assert_eq!(
            narrow,
            "  a sentence of more than forty columns\n    is folded at the blank\n  rank   parameters   gradients   optimizer   activations\n"
        );
        let row = "  3.65 s  56.18 GiB  micro_batch_size=4 overlap_grad_reduce=true\n";
        let below =
            "  3.65 s  56.18 GiB  micro_batch_size=4\n                     overlap_grad_reduce=true\n";
        assert_eq!(folded(row, Some(44)), below);
        assert_eq!(folded(text, None), text);
        assert_eq!(folded(text, Some(8)), text);
    }

    #[test]
    fn terminals_are_not_commanded() {
        assert_eq!(harmless("a\u{1b}[2Jb\tc\n\r\u{9b}"), "a\u{fffd}[2Jb\tc\n\u{fffd}\u{fffd}");
    }
}
