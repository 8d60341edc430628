//! `shardscope apply`: settings written into the script they come from.

use std::process::ExitCode;

use clap::Args;
use shardscope::export::edit;
use shardscope::launch::fitting;
use shardscope::link::{Pasted, PastedText, long_name};
use shardscope::plan::Field;
use shardscope::source::{Source, suggest};
use similar::{ChangeTag, TextDiff};

use crate::call_error::CallError;
use crate::files::from_here;
use crate::input::{self, Changes, fragment};
use crate::output::{BOLD, CYAN, GREEN, NO_PLAN, RED, coloured, print, refuse, tell};

/// Lines around a change in the diff, as `diff -u` shows them.
const CONTEXT: usize = 3;

/// `apply`.
#[derive(Args)]
pub(crate) struct ApplyArguments {
    /// Settings by names that `shardscope settings` lists with their new values, and the files to write them into; `-` for standard input.
    #[arg(required = true, value_name = "NAME=VALUE|FILE")]
    operands: Vec<String>,
    /// Write the changes into the files; otherwise they are only shown.
    #[arg(short, long, conflicts_with = "whole")]
    in_place: bool,
    /// Print the whole changed text instead of the difference; for one file.
    #[arg(long)]
    whole: bool,
    /// Give a variable that the script takes from its environment.
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = input::pair)]
    environment: Vec<(String, String)>,
    /// The words after the script in its call.
    #[arg(long = "args", value_name = "WORDS", allow_hyphen_values = true)]
    words: Option<String>,
}

/// The requested changes, and the files.
struct Wanted {
    changes: Vec<(Field, String)>,
    files: Vec<String>,
}

impl ApplyArguments {
    /// # Errors
    /// Which operand is neither a change nor a file.
    fn wanted(&self) -> Result<Wanted, CallError> {
        let mut wanted = Wanted { changes: Vec::new(), files: Vec::new() };
        for operand in &self.operands {
            // A path may contain an equals sign; a setting's name has no slash and no dot.
            let change = operand.split_once('=').filter(|(name, _)| !name.contains(['/', '.']));
            match change.map(|(name, value)| (name, value, Field::named(long_name(name)))) {
                Some((_, value, Some(field))) => {
                    fitting(field, value)?;
                    wanted.changes.push((field, value.to_owned()));
                }
                // An existing file is meant as a file, whatever its name.
                Some((name, ..)) if !std::path::Path::new(operand).exists() => {
                    let known = Field::ALL.iter().map(|field| field.name());
                    return Err(CallError::UnknownSetting {
                        name: name.to_owned(),
                        meant: suggest(name, known),
                    });
                }
                _ if fragment(operand).is_some() => {
                    return Err(CallError::LinkIsNoFile);
                }
                _ => wanted.files.push(operand.clone()),
            }
        }
        if wanted.changes.is_empty() {
            return Err(CallError::NoChange);
        }
        if wanted.files.is_empty() {
            return Err(CallError::NoFile);
        }
        if self.whole && wanted.files.len() > 1 {
            return Err(CallError::WholeOfSeveral);
        }
        if self.in_place && wanted.files.iter().any(|file| file == "-") {
            return Err(CallError::StandardInputInPlace);
        }
        Ok(wanted)
    }
}

/// Shows the changes or writes them. Nothing is written if one of them finds no place.
pub(crate) fn run(arguments: &ApplyArguments) -> ExitCode {
    match arguments.wanted().and_then(|wanted| apply(arguments, &wanted)) {
        Ok(code) => code,
        Err(problem) => refuse(&problem),
    }
}

fn apply(arguments: &ApplyArguments, wanted: &Wanted) -> Result<ExitCode, CallError> {
    let mut texts = Vec::new();
    for file in &wanted.files {
        let text = String::from_utf8(input::bytes(file)?);
        // Bytes replaced while reading would be written back as U+FFFD. Lossy reading is fine for an estimate, but
        // would change the file here.
        texts.push(text.map_err(|_| CallError::NotUtf8 { path: file.clone() })?);
    }
    let changes = Changes {
        environment: arguments.environment.clone(),
        words: arguments.words.clone(),
        ..Changes::default()
    };
    let mut pasted = Pasted {
        texts: wanted
            .files
            .iter()
            .zip(&texts)
            .map(|(file, text)| PastedText {
                // By their last part, as scripts name each other.
                name: file.rsplit(['/', '\\']).next().unwrap_or(file).to_owned(),
                text: text.clone(),
            })
            .collect(),
        ..Pasted::default()
    };
    changes.put_into(&mut pasted);
    let source = Source::from_files(pasted.texts.iter().map(|text| (text.name.as_str(), text.text.as_str())));
    let edited = edit(&source, &input::environment(&pasted), &wanted.changes);
    // All or nothing, before any file is touched.
    if !edited.unplaced.is_empty() {
        for (field, value) in &edited.unplaced {
            tell(&format!("{}: no place is found for {}={value}\n", coloured("error", RED), field.name()));
        }
        tell("nothing is changed\n");
        return Ok(ExitCode::from(NO_PLAN));
    }
    // Before any file is written: changing only some of them would not be what was requested.
    if arguments.in_place {
        for file in &wanted.files {
            let opened = std::fs::OpenOptions::new().write(true).open(file);
            opened.map_err(|cause| CallError::Unwritable { path: file.clone(), cause })?;
        }
    }
    let mut out = String::new();
    for ((file, before), (_, after)) in wanted.files.iter().zip(&texts).zip(&edited.files) {
        if arguments.whole {
            out += after;
            continue;
        }
        out += &difference(file, before, after);
        if arguments.in_place && before != after {
            std::fs::write(file, after)
                .map_err(|cause| CallError::Unwritable { path: file.clone(), cause })?;
        }
    }
    print(&out);
    Ok(ExitCode::SUCCESS)
}

/// A unified diff, which `patch -p1` takes; empty if nothing changed.
pub(crate) fn difference(file: &str, before: &str, after: &str) -> String {
    let file = from_here(file);
    // `patch -p1` strips `a/`, so the rest must be relative.
    let name = if file == "-" { "stdin" } else { file.trim_start_matches("./").trim_start_matches('/') };
    let diff = TextDiff::from_lines(before, after);
    let mut out = String::new();
    for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
        if out.is_empty() {
            out += &coloured(&format!("--- a/{name}"), BOLD);
            out += "\n";
            out += &coloured(&format!("+++ b/{name}"), BOLD);
            out += "\n";
        }
        out += &coloured(hunk.header().to_string().trim_end(), CYAN);
        out += "\n";
        for change in hunk.iter_changes() {
            let line = format!("{}{}", change.tag(), change.value().trim_end_matches('\n'));
            out += &match change.tag() {
                ChangeTag::Delete => coloured(&line, RED),
                ChangeTag::Insert => coloured(&line, GREEN),
                ChangeTag::Equal => line,
            };
            out += if change.missing_newline() { "\n\\ No newline at end of file\n" } else { "\n" };
        }
    }
    out
}
