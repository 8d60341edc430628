//! What the commands that estimate a run are given: files, standard input or a link, and changes to them.

use std::io::Read;

use clap::Args;
use shardscope::bash::Environment;
use shardscope::launch::{Request, Resolution, read};
use shardscope::link::{self, Pasted, PastedText, Shared};
use shardscope::plan::Plan;
use shardscope::report::Report;
use shardscope::session::estimated;
use shardscope::source::{Code, Severity, Source, render};

use crate::beside::{Places, completed};
use crate::output::{CYAN, RED, YELLOW, coloured, harmless};

/// A larger file is refused; no launch script comes near. Unit: byte.
pub(crate) const MAX_FILE: u64 = 4 << 20;

/// A run, and what is changed of it.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Input {
    /// Launch script, settings files or a run's log, read together; `-` for standard input; or one link of the page.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<String>,
    #[command(flatten)]
    pub(crate) changes: Changes,
}

/// What is changed of a run.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Changes {
    /// Accelerator to estimate for, by a name that `shardscope accelerators` lists.
    #[arg(long, value_name = "NAME")]
    pub(crate) accelerator: Option<String>,
    /// Change a setting, by Megatron's name in snake case, for example tensor_model_parallel_size=2.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) settings: Vec<(String, String)>,
    /// Give a variable that the script takes from its environment.
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) environment: Vec<(String, String)>,
    /// The words after the script in its call.
    #[arg(long = "args", value_name = "WORDS", allow_hyphen_values = true)]
    pub(crate) words: Option<String>,
    /// Go on without a setting that is not modelled; the answer is marked with it.
    #[arg(long, value_name = "NAME")]
    pub(crate) without: Vec<String>,
}

/// `NAME=VALUE`.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("it is not NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// What was read, and what it came to.
pub(crate) struct Answer {
    /// The texts, for places in them.
    pub(crate) source: Source,
    /// Plan, settings, questions and diagnostics.
    pub(crate) resolution: Resolution,
    /// Files that were read because the texts name them.
    pub(crate) beside: Vec<String>,
}

impl Input {
    /// Everything that was given, as a link carries it.
    ///
    /// # Errors
    /// A sentence that says what cannot be read.
    pub(crate) fn read(&self) -> Result<Pasted, String> {
        self.changes.read(&self.files)
    }

    /// Reads what was given, with the files beside it that it names, and resolves it.
    ///
    /// # Errors
    /// A sentence that says what cannot be read.
    pub(crate) fn answer(&self) -> Result<Answer, String> {
        let mut pasted = self.read()?;
        let (mut answer, beside) = completed(&mut pasted, &Places::of(&self.files));
        answer.beside = beside;
        Ok(answer)
    }
}

impl Changes {
    /// `files` with these changes, as a link carries them.
    ///
    /// # Errors
    /// A sentence that says what cannot be read.
    pub(crate) fn read(&self, files: &[String]) -> Result<Pasted, String> {
        let mut pasted = Pasted::default();
        for file in files {
            match fragment(file) {
                Some(fragment) => take_link(&mut pasted, fragment)?,
                None => {
                    let text = contents(file)?;
                    let name = file.rsplit(['/', '\\']).next().unwrap_or(file).to_owned();
                    pasted.texts.push(PastedText { name, text });
                }
            }
        }
        self.put_into(&mut pasted);
        Ok(pasted)
    }

    /// Puts the changes onto what was read.
    pub(crate) fn put_into(&self, pasted: &mut Pasted) {
        pasted.settings.extend(self.accelerator.iter().map(|name| ("accelerator".to_owned(), name.clone())));
        pasted.settings.extend(self.settings.iter().cloned());
        pasted.environment.extend(self.environment.iter().cloned());
        if !self.without.is_empty() {
            pasted.settings.push(("without".to_owned(), self.without.join(" ")));
        }
        if let Some(words) = &self.words {
            pasted.arguments.clone_from(words);
        }
    }
}

/// What `pasted` comes to.
pub(crate) fn answer(pasted: &Pasted) -> Answer {
    let texts = pasted.texts.iter().map(|text| (text.name.as_str(), text.text.as_str()));
    let source = Source::from_files(texts);
    let request = Request { source: &source, environment: &environment(pasted), overrides: &pasted.settings };
    let resolution = read(&request);
    Answer { source, resolution, beside: Vec::new() }
}

/// What the texts of `pasted` take from outside.
pub(crate) fn environment(pasted: &Pasted) -> Environment {
    Environment {
        variables: pasted.environment.clone(),
        arguments: pasted.arguments.split_ascii_whitespace().map(Into::into).collect(),
    }
}

/// What says that a text starts no training, as against one that starts a training and leaves something open.
const NO_LAUNCH: [Code; 6] = [
    Code::NoTrainingCommand,
    Code::NoTraining,
    Code::NotAScript,
    Code::NoText,
    Code::Python,
    Code::UnknownSettings,
];

impl Answer {
    /// The plan and its estimates; what keeps the text from them is among the diagnostics.
    pub(crate) fn estimated(&mut self) -> Option<(Plan, Report)> {
        estimated(&mut self.resolution)
    }

    /// The diagnostics, each with the place that it points to.
    pub(crate) fn problems(&self) -> String {
        let mut out = String::new();
        for file in &self.beside {
            let note = coloured("note", CYAN);
            out += &format!("{note}: {} is read as well, which the text names\n\n", harmless(file));
        }
        for diagnostic in &self.resolution.diagnostics {
            let shown = harmless(&render(&self.source, diagnostic));
            let colour = match diagnostic.severity {
                Severity::Error => RED,
                Severity::Warning => YELLOW,
                Severity::Note => CYAN,
            };
            match shown.split_once(':') {
                Some((kind, rest)) => out += &format!("{}:{rest}\n", coloured(kind, colour)),
                None => out += &(shown + "\n"),
            }
        }
        out
    }

    /// The diagnostics and the questions: what keeps the text from a plan.
    pub(crate) fn obstacles(&self) -> String {
        let mut out = self.problems();
        for question in &self.resolution.questions {
            out += &format!("open: {} ({})\n", harmless(&question.prompt), harmless(&question.name));
        }
        out
    }

    /// The gravest obstacle in one line.
    pub(crate) fn obstacle(&self) -> String {
        let resolution = &self.resolution;
        let error = resolution.diagnostics.iter().find(|said| said.severity == Severity::Error);
        let said = match (error, resolution.questions.first()) {
            (Some(error), _) => error.message.clone(),
            (None, Some(question)) => question.prompt.clone(),
            (None, None) => "it says too little of a training".to_owned(),
        };
        harmless(&said)
    }

    /// Whether the text starts a training at all.
    pub(crate) fn launches(&self) -> bool {
        let said = &self.resolution.diagnostics;
        !said.iter().any(|diagnostic| NO_LAUNCH.contains(&diagnostic.code))
    }
}

/// The fragment of an address of the page, where `operand` is one and no file.
pub(crate) fn fragment(operand: &str) -> Option<&str> {
    let (before, fragment) = operand.split_once('#')?;
    let is_address = before.is_empty() || before.contains("://");
    is_address.then_some(fragment)
}

fn take_link(pasted: &mut Pasted, fragment: &str) -> Result<(), String> {
    match link::decode(fragment).map_err(|error| error.0)? {
        Some(shared) => {
            take(pasted, shared);
            Ok(())
        }
        None => Err("the link carries nothing".to_owned()),
    }
}

/// What a link carries, put to what was read before it.
pub(crate) fn take(pasted: &mut Pasted, shared: Shared) {
    match shared {
        Shared::Settings(settings) => pasted.settings.extend(settings),
        Shared::Pasted(carried) => {
            pasted.texts.extend(carried.texts);
            pasted.settings.extend(carried.settings);
            pasted.environment.extend(carried.environment);
            pasted.arguments = carried.arguments;
        }
    }
}

/// The bytes of a file or of standard input.
///
/// # Errors
/// A sentence that says why it cannot be read.
pub(crate) fn bytes(file: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    // One more than is read, to know a larger file.
    let most = MAX_FILE + 1;
    let read = if file == "-" {
        std::io::stdin().lock().take(most).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(file).and_then(|open| open.take(most).read_to_end(&mut bytes))
    };
    read.map_err(|error| format!("{file} cannot be read: {error}"))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(format!("{file} is larger than {} MiB, more than is read", MAX_FILE >> 20));
    }
    Ok(bytes)
}

fn contents(file: &str) -> Result<String, String> {
    bytes(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}
