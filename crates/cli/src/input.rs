//! What the commands that estimate a run are given: files, standard input or a link, and changes to them.

use std::io::Read;

use clap::Args;
use shardscope::intake::{Request, Resolution, read};
use shardscope::share::{self, Pasted, PastedText, Shared};
use shardscope::shell::Environment;
use shardscope::text::{Source, render};

/// More than this of one file is not read; no launch script comes near. Unit: byte.
const MAX_FILE: u64 = 4 << 20;

/// A run, and what is changed of it.
#[derive(Args)]
pub(crate) struct Input {
    /// Launch script, settings files or a run's log, read together; `-` for standard input; or one link of the page.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// Accelerator to estimate for, by a name that `shardscope accelerators` lists.
    #[arg(long, value_name = "NAME")]
    accelerator: Option<String>,
    /// Change a setting, by Megatron's name in snake case, for example tensor_model_parallel_size=2.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = pair)]
    settings: Vec<(String, String)>,
    /// Give a variable that the script takes from its environment.
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = pair)]
    environment: Vec<(String, String)>,
    /// The words after the script in its call.
    #[arg(long = "args", value_name = "WORDS", allow_hyphen_values = true)]
    words: Option<String>,
    /// Go on without a setting that is not modelled; the answer is marked with it.
    #[arg(long, value_name = "NAME")]
    without: Vec<String>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("it is not NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// What was read, and what it came to.
pub(crate) struct Answer {
    /// The texts, for places in them.
    pub(crate) source: Source,
    /// Plan, settings, questions and diagnostics.
    pub(crate) resolution: Resolution,
}

impl Input {
    /// Everything that was given, as a link carries it.
    ///
    /// # Errors
    /// A sentence that says what cannot be read.
    pub(crate) fn read(&self) -> Result<Pasted, String> {
        let mut pasted = Pasted::default();
        for file in &self.files {
            match fragment(file) {
                Some(fragment) => take_link(&mut pasted, fragment)?,
                None => {
                    let text = contents(file).map_err(|error| format!("{file} cannot be read: {error}"))?;
                    let name = file.rsplit(['/', '\\']).next().unwrap_or(file).to_owned();
                    pasted.texts.push(PastedText { name, text });
                }
            }
        }
        pasted.settings.extend(self.accelerator.iter().map(|name| ("accelerator".to_owned(), name.clone())));
        pasted.settings.extend(self.settings.iter().cloned());
        pasted.environment.extend(self.environment.iter().cloned());
        if !self.without.is_empty() {
            pasted.settings.push(("without".to_owned(), self.without.join(" ")));
        }
        if let Some(words) = &self.words {
            pasted.arguments.clone_from(words);
        }
        Ok(pasted)
    }

    /// Reads what was given and resolves it.
    ///
    /// # Errors
    /// A sentence that says what cannot be read.
    pub(crate) fn answer(&self) -> Result<Answer, String> {
        self.read().map(|pasted| answer(&pasted))
    }
}

/// What `pasted` comes to.
pub(crate) fn answer(pasted: &Pasted) -> Answer {
    let texts = pasted.texts.iter().map(|text| (text.name.as_str(), text.text.as_str()));
    let source = Source::from_files(texts);
    let environment = Environment {
        variables: pasted.environment.clone(),
        arguments: pasted.arguments.split_ascii_whitespace().map(Into::into).collect(),
    };
    let request = Request { source: &source, environment: &environment, overrides: &pasted.settings };
    let resolution = read(&request);
    Answer { source, resolution }
}

impl Answer {
    /// The diagnostics, each with the place that it points to.
    pub(crate) fn problems(&self) -> String {
        let diagnostics = self.resolution.diagnostics.iter();
        diagnostics.map(|diagnostic| render(&self.source, diagnostic) + "\n").collect()
    }
}

/// The fragment of an address of the page, where `operand` is one and no file.
pub(crate) fn fragment(operand: &str) -> Option<&str> {
    let (before, fragment) = operand.split_once('#')?;
    let is_address = before.is_empty() || before.contains("://");
    is_address.then_some(fragment)
}

fn take_link(pasted: &mut Pasted, fragment: &str) -> Result<(), String> {
    match share::decode(fragment).map_err(|error| error.0)? {
        Some(Shared::Settings(settings)) => pasted.settings.extend(settings),
        Some(Shared::Pasted(carried)) => {
            pasted.texts.extend(carried.texts);
            pasted.settings.extend(carried.settings);
            pasted.environment.extend(carried.environment);
            pasted.arguments = carried.arguments;
        }
        None => return Err("the link carries nothing".to_owned()),
    }
    Ok(())
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
