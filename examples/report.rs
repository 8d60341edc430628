//! The report in the terminal: the same document as the page's download.
//!
//! `cargo run --release --example report -- [--format json|text|markdown] [--accelerator NAME]
//! [--set NAME=VALUE ...] [--env NAME=VALUE ...] [--args 'the words after the script in its call'] [--without NAME ...] FILE...`
//!
//! `--without` goes on without a setting that is not modelled; the verdict is then marked with it.
//!
//! `-` is standard input. Ends with 0 and a report, or with 2 when the input makes no plan; diagnostics go to
//! standard error.

use std::io::{Read, Write};
use std::process::ExitCode;

use shardscope::intake::{Request, read};
use shardscope::report::{document, text};
use shardscope::session::estimated;
use shardscope::shell::Environment;
use shardscope::text::{Source, render};

const USAGE: &str = "usage: report [--format json|text|markdown] [--accelerator NAME] [--set NAME=VALUE ...] \
[--env NAME=VALUE ...] [--args WORDS] [--without NAME ...] FILE... (- for standard input)";

/// More than this of one file is not read; no launch script comes near. Unit: byte.
const MAX_FILE: u64 = 4 << 20;

#[derive(Default)]
struct Options {
    format: String,
    overrides: Vec<(String, String)>,
    environment: Environment,
    files: Vec<String>,
}

fn main() -> ExitCode {
    match options(std::env::args().skip(1)) {
        Ok(options) => run(&options),
        Err(problem) => {
            eprintln!("{problem}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn options(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options { format: "text".into(), ..Options::default() };
    let mut without: Vec<String> = Vec::new();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} wants a value"));
        match word.as_str() {
            "--format" => options.format = value()?,
            "--accelerator" => options.overrides.push(("accelerator".into(), value()?)),
            "--set" => options.overrides.push(pair(&value()?)?),
            "--env" => options.environment.variables.push(pair(&value()?)?),
            "--args" => {
                options.environment.arguments = value()?.split_ascii_whitespace().map(Into::into).collect()
            }
            "--without" => without.push(value()?),
            "-h" | "--help" => return Err("the report of a launch script".into()),
            name if name.starts_with("--") => return Err(format!("no such option: {name}")),
            _ => options.files.push(word),
        }
    }
    if !without.is_empty() {
        options.overrides.push(("without".into(), without.join(" ")));
    }
    if !["json", "text", "markdown"].contains(&options.format.as_str()) {
        return Err(format!("no such format: {}", options.format));
    }
    if options.files.is_empty() {
        return Err("no file is named".into());
    }
    Ok(options)
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("'{text}' is not NAME=VALUE"))?;
    Ok((name.to_owned(), value.to_owned()))
}

fn contents(file: &str) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    if file == "-" {
        std::io::stdin().lock().take(MAX_FILE).read_to_end(&mut bytes)?;
    } else {
        std::fs::File::open(file)?.take(MAX_FILE).read_to_end(&mut bytes)?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn run(options: &Options) -> ExitCode {
    let mut texts = Vec::new();
    for file in &options.files {
        match contents(file) {
            Ok(text) => texts.push((file.rsplit('/').next().unwrap_or(file), text)),
            Err(error) => {
                eprintln!("{file} cannot be read: {error}");
                return ExitCode::from(2);
            }
        }
    }
    let source = Source::from_files(texts.iter().map(|(name, text)| (*name, text.as_str())));
    let request =
        Request { source: &source, environment: &options.environment, overrides: &options.overrides };
    let mut resolution = read(&request);
    let found = estimated(&mut resolution).map(|(_, report)| report);
    let mut problems = String::new();
    for diagnostic in &resolution.diagnostics {
        problems += &render(&source, diagnostic);
        problems += "\n";
    }
    let written = match (options.format.as_str(), &resolution.plan, &found) {
        ("json", ..) => Some(document(&source, &resolution, found.as_ref(), true)),
        ("markdown", Some(plan), Some(report)) => Some(text::markdown(plan, report)),
        (_, Some(plan), Some(report)) => Some(text::text(plan, report)),
        _ => None,
    };
    let mut output = std::io::stdout().lock();
    let printed = written.map_or(Ok(()), |written| writeln!(output, "{written}"));
    // A reader that stopped listening (`| head`) is no error of ours.
    let _ = printed.and_then(|()| output.flush());
    eprint!("{problems}");
    if found.is_some() { ExitCode::SUCCESS } else { ExitCode::from(2) }
}
