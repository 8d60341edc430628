//! What the commands that estimate a run are given: files, standard input or a link, and changes to them.

use clap::Args;
use shardscope::catalog;
use shardscope::link::{self, Pasted, PastedText, Shared};
use shardscope::plan::Field;
use shardscope::source::suggest;

pub(crate) use crate::answer::{Answer, environment};
use crate::beside::{Places, completed};
use crate::call_error::CallError;
use crate::files::contents;
pub(crate) use crate::files::{MAX_FILE, bytes};

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
    /// Change a setting, by a name that `shardscope settings` lists, for example tensor_model_parallel_size=2 or tp=2.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
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

/// `NAME=VALUE` of a setting, whose name may be the short one of links (`tp=2`).
pub(crate) fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = pair(text)?;
    Ok((link::long_name(&name).to_owned(), value))
}

/// `NAME=VALUE`.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("it is not NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

impl Input {
    /// Everything that was given, as a link carries it.
    ///
    /// # Errors
    /// What could not be read.
    pub(crate) fn read(&self) -> Result<Pasted, CallError> {
        self.changes.read(&self.files)
    }

    /// Reads what was given, with the files beside it that it names, and resolves it.
    ///
    /// # Errors
    /// What cannot be read.
    pub(crate) fn answer(&self) -> Result<Answer, CallError> {
        Ok(self.answer_of(self.read()?))
    }

    /// Resolves `pasted`, which was read from these files: standard input can only be read once.
    pub(crate) fn answer_of(&self, mut pasted: Pasted) -> Answer {
        let (mut answer, beside) = completed(&mut pasted, &Places::new(&self.files));
        answer.beside = beside;
        answer
    }
}

impl Changes {
    /// `files` with these changes, as a link carries them.
    ///
    /// # Errors
    /// What cannot be read.
    pub(crate) fn read(&self, files: &[String]) -> Result<Pasted, CallError> {
        self.checked()?;
        let mut pasted = Pasted::default();
        for file in files {
            // A link may be among the files: its texts and settings join theirs.
            match fragment(file) {
                Some(fragment) => take_link(&mut pasted, fragment)?,
                None => {
                    let text = contents(file)?;
                    // By the last part of their path: that is how scripts name them, and links must not reveal
                    // directories.
                    let name = file.rsplit(['/', '\\']).next().unwrap_or(file).to_owned();
                    pasted.texts.push(PastedText { name, text });
                }
            }
        }
        self.put_into(&mut pasted);
        Ok(pasted)
    }

    /// Checks that every setting and the accelerator are known: a misspelt name must not be silently ignored.
    ///
    /// # Errors
    /// The first that is not.
    pub(crate) fn checked(&self) -> Result<(), CallError> {
        known_accelerator(self.accelerator.as_deref().unwrap_or_default())?;
        known_settings(self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())))
    }

    /// Applies the changes to what was read.
    pub(crate) fn put_into(&self, pasted: &mut Pasted) {
        // After what a link carries, since later settings win.
        pasted.settings.extend(self.accelerator.iter().map(|name| ("accelerator".to_owned(), name.clone())));
        pasted.settings.extend(self.settings.iter().cloned());
        pasted.environment.extend(self.environment.iter().cloned());
        if !self.without.is_empty() {
            // One setting with all names, as it is carried in links.
            pasted.settings.push(("without".to_owned(), self.without.join(" ")));
        }
        if let Some(words) = &self.words {
            pasted.arguments.clone_from(words);
        }
    }
}

/// Checks that the settings of a call are known, including an accelerator among them.
///
/// # Errors
/// The first that is not.
fn known_settings<'a>(settings: impl Iterator<Item = (&'a str, &'a str)>) -> Result<(), CallError> {
    for (name, value) in settings {
        match Field::named(name) {
            // Checked here, because the engine would continue with a different accelerator and a warning.
            Some(Field::Accelerator) => known_accelerator(value)?,
            Some(_) => {}
            None => {
                let known = Field::ALL.iter().map(|field| field.name());
                return Err(CallError::UnknownSetting { name: name.to_owned(), meant: suggest(name, known) });
            }
        }
    }
    Ok(())
}

/// Checks that an accelerator is in the catalog; an empty name means that none is requested.
fn known_accelerator(name: &str) -> Result<(), CallError> {
    if name.is_empty() || catalog::accelerator(name).is_some() {
        return Ok(());
    }
    Err(CallError::UnknownAccelerator {
        name: name.to_owned(),
        meant: suggest(name, catalog::accelerator_names()),
    })
}

/// The fragment of an address of the page, if `operand` is one and not a file.
pub(crate) fn fragment(operand: &str) -> Option<&str> {
    let (before, fragment) = operand.split_once('#')?;
    // A file whose name contains a `#` is not a link.
    let is_address = before.is_empty() || before.contains("://");
    is_address.then_some(fragment)
}

fn take_link(pasted: &mut Pasted, fragment: &str) -> Result<(), CallError> {
    match link::decode(fragment)? {
        Some(shared) => {
            take(pasted, shared);
            Ok(())
        }
        None => Err(CallError::EmptyLink),
    }
}

/// Adds what a link carries to what was read before it.
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
