//! The user's input: everything that determines an answer.

use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::own::{LOG, OwnRun};
use super::{Difference, EXAMPLE};
use shardscope_bash::Environment;
use shardscope_launch::formats::Role;
use shardscope_launch::{TextKind, detect};
use shardscope_link::{Pasted, PastedText, Shared};
use shardscope_plan::Field;
use shardscope_source::Source;

/// A text of which less than one part in this many is left counts as a different text.
const LEFT_OF_TEXT: usize = 4;

/// Everything that determines an answer. Cloning is cheap: the texts are shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserInput {
    /// Content of the text box.
    pub text: Rc<str>,
    /// The file it came from; empty when pasted.
    pub name: String,
    /// The additional files: a configuration that the script names, a model's `config.json`.
    pub beside: Vec<File>,
    /// Settings changed by hand, by Megatron's names.
    pub settings: Vec<(String, String)>,
    /// Answers for variables that the script leaves to its environment.
    pub environment: Vec<(String, String)>,
    /// The positional arguments of the script.
    pub arguments: String,
    /// What the run's own tools printed. It determines no answer: it is compared with it.
    pub own: OwnRun,
}

/// A file given with the text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// Name of the file.
    pub name: String,
    /// Content of the file.
    pub text: Rc<str>,
}

impl UserInput {
    /// A text and nothing changed by hand.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        Self {
            text: as_in_box(Rc::from(text)),
            name: String::new(),
            beside: Vec::new(),
            settings: Vec::new(),
            environment: Vec::new(),
            arguments: String::new(),
            own: OwnRun::default(),
        }
    }

    /// No text, only settings: a plan assembled by hand, or opened from a link of settings.
    #[must_use]
    pub fn of_settings(settings: Vec<(String, String)>) -> Self {
        Self { settings, ..Self::from_text("") }
    }

    /// The same with another text. Changes and answers given by hand belong to their text: if that is replaced by
    /// pasting over all of it, they are dropped, and the new text is answered by itself.
    #[must_use]
    pub fn with_text(&self, text: &str) -> Self {
        if is_another_text(&self.text, text) {
            // Files are kept: an additional configuration completes the next script as well.
            let (beside, own) = (self.beside.clone(), self.own.clone());
            return Self { beside, own, ..Self::from_text(text) };
        }
        Self { text: as_in_box(Rc::from(text)), ..self.clone() }
    }

    /// Whether this is a different run from `old` rather than a change of it, because its text was replaced.
    // Equal texts first: an empty text would otherwise replace itself.
    pub(super) fn replaces(&self, old: &Self) -> bool {
        self.text != old.text && is_another_text(&old.text, &self.text)
    }

    /// Files given together: a script, otherwise the first file, goes into the box; the others are additional files.
    /// Files that only complete a script (a model's or DeepSpeed's configuration) are added to the current one.
    #[must_use]
    pub fn with_files(&self, mut files: Vec<File>) -> Self {
        // Recognised by content, before anything is moved: names of dropped files say little.
        let kinds: Vec<TextKind> = files.iter().map(|file| detect(&file.name, &file.text, 0)).collect();
        let completes = |kind: &TextKind| match kind {
            TextKind::Settings(format, _) => matches!(format.role(), Role::Engine | Role::Model),
            // It sets nothing, and says so beside the run.
            TextKind::Log => true,
            _ => false,
        };
        // The example is not the user's own: a configuration dropped on it is meant to be shown by itself.
        let has_own = !self.text.trim().is_empty() && &*self.text != EXAMPLE;
        if files.is_empty() || has_own && kinds.iter().all(completes) {
            let mut input = self.clone();
            // A file dropped again is a newer version of the one with its name.
            input.beside.retain(|old| files.iter().all(|new| new.name != old.name));
            input.beside.extend(files);
            return input;
        }
        let first = |wanted: fn(&TextKind) -> bool| kinds.iter().position(wanted);
        let script = first(|kind| matches!(kind, TextKind::Script))
            .or_else(|| first(|kind| !matches!(kind, TextKind::Log)));
        let first = files.remove(script.unwrap_or(0));
        // Settings and answers go with the text that they were given for. What was measured stays: it may have been given
        // together with the script.
        let own = self.own.clone();
        Self { text: as_in_box(first.text), name: first.name, beside: files, own, ..Self::from_text("") }
    }

    /// The same without the additional file `name`.
    #[must_use]
    pub fn without_file(&self, name: &str) -> Self {
        let beside = self.beside.iter().filter(|file| file.name != name).cloned().collect();
        Self { beside, ..self.clone() }
    }

    /// The input that a link carries.
    #[must_use]
    pub fn of_shared(shared: Shared) -> Self {
        match shared {
            Shared::Settings(settings) => Self::of_settings(settings),
            Shared::Pasted(pasted) => Self::of_pasted(pasted),
        }
    }

    /// The input of a pasted run.
    #[must_use]
    pub fn of_pasted(pasted: Pasted) -> Self {
        let mut files = pasted.texts.into_iter().map(|text| File { name: text.name, text: text.text.into() });
        // Old links may carry no text at all.
        let first = files.next().unwrap_or(File { name: String::new(), text: Rc::from("") });
        let mut beside: Vec<File> = files.collect();
        let log = beside.iter().position(|file| file.name == LOG);
        let log = log.map(|place| beside.remove(place).text);
        Self {
            text: as_in_box(first.text),
            name: first.name,
            beside,
            own: OwnRun { log: log.unwrap_or_default(), ..OwnRun::default() },
            settings: pasted.settings,
            environment: pasted.environment,
            arguments: pasted.arguments,
        }
    }

    /// The whole input, as a link carries it: of what was measured the pasted log alone, as no link has room for files of
    /// tools.
    #[must_use]
    pub fn pasted(&self) -> Pasted {
        let text = |name: &str, text: &str| PastedText { name: name.to_owned(), text: text.to_owned() };
        let beside = self.beside.iter().map(|file| text(&file.name, &file.text));
        let log = (!self.own.log.is_empty()).then(|| text(LOG, &self.own.log));
        Pasted {
            texts: std::iter::once(text(&self.name, &self.text)).chain(beside).chain(log).collect(),
            settings: self.settings.clone(),
            environment: self.environment.clone(),
            arguments: self.arguments.clone(),
        }
    }

    /// Whether both describe the same run, whatever was measured of it.
    pub(super) fn is_same_run(&self, other: &Self) -> bool {
        Self { own: other.own.clone(), ..self.clone() } == *other
    }

    /// The launch texts, the box's first.
    #[must_use]
    pub fn source(&self) -> Source {
        let beside = self.beside.iter().map(|file| (file.name.as_str(), &*file.text));
        Source::from_files(std::iter::once((self.name.as_str(), &*self.text)).chain(beside))
    }

    /// Variables and arguments for reading the texts.
    #[must_use]
    pub fn shell_environment(&self) -> Environment {
        Environment {
            variables: self.environment.clone(),
            // Without quoting: words with blanks have never been needed, and a shell's rules would have to be
            // explained here.
            arguments: self.arguments.split_ascii_whitespace().map(str::to_owned).collect(),
        }
    }

    fn values(&mut self, name: &str) -> &mut Vec<(String, String)> {
        // A name that is not a setting is a variable of the script, so one question form serves both.
        if Field::named(name).is_some() { &mut self.settings } else { &mut self.environment }
    }

    pub(super) fn unset(&mut self, name: &str) {
        self.values(name).retain(|(other, _)| other != name);
    }

    pub(super) fn set(&mut self, name: String, value: String) {
        self.unset(&name);
        if !value.is_empty() {
            self.values(&name).push((name, value));
        }
    }

    /// Sets a value even when it is empty, which unsets what the text states.
    pub(super) fn put(&mut self, (name, value): (String, String)) {
        self.unset(&name);
        self.values(&name).push((name, value));
    }

    /// Continues without settings that are not modelled (names separated by spaces), in addition to earlier ones.
    pub(super) fn go_without(&mut self, more: &str) {
        let without = Field::Without.name();
        // One setting with several names, since a link has each setting once.
        let mut names = self
            .settings
            .iter()
            .find(|(known, _)| known == without)
            .map_or_else(String::new, |(_, names)| names.clone());
        for name in more.split_ascii_whitespace() {
            if names.split_ascii_whitespace().any(|known| known == name) {
                continue;
            }
            if !names.is_empty() {
                names.push(' ');
            }
            names.push_str(name);
        }
        self.set(without.to_owned(), names);
    }

    pub(super) fn unset_all(&mut self) {
        self.settings.clear();
        self.environment.clear();
        self.arguments.clear();
    }

    /// Whether anything was changed by hand.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        !self.settings.is_empty() || !self.environment.is_empty() || !self.arguments.is_empty()
    }

    /// Whether there is no text, so that settings alone make the plan.
    #[must_use]
    pub fn is_settings_alone(&self) -> bool {
        // Additional files count as text as well: a configuration alone is read like a script.
        self.text.trim().is_empty() && self.beside.is_empty() && !self.settings.is_empty()
    }
}

/// `text` with a text box's newlines, so that places in the text are places in the box, and the first typed character
/// is not a change in every line.
fn as_in_box(text: Rc<str>) -> Rc<str> {
    if text.contains('\r') { Rc::from(text.replace("\r\n", "\n").replace('\r', "\n")) } else { text }
}

/// Whether so little of `old` is left in `new` that it was replaced, as by a paste over all of it.
fn is_another_text(old: &str, new: &str) -> bool {
    let carried = match Difference::between(old, new) {
        // Common prefix and suffix: a change anywhere in between leaves most of a text, a paste over all of it nearly
        // nothing.
        Some(change) => change.start + (old.len() - change.old_end),
        None => old.len(),
    };
    // Anything typed into an empty box is a new text.
    carried < old.len() / LEFT_OF_TEXT || old.trim().is_empty()
}

#[cfg(test)]
mod tests {
    use super::{EXAMPLE, File, UserInput};

    #[test]
    fn values_by_hand_go_with_the_text_that_they_were_given_for() {
        let settings = vec![("num_nodes".to_owned(), "4".to_owned())];
        let input = UserInput {
            settings: settings.clone(),
            ..UserInput::from_text("#!/bin/bash\ntorchrun --one --two --three\n")
        };
        assert_eq!(input.with_text("#!/bin/bash\ntorchrun --one --two --three --four\n").settings, settings);
        assert_eq!(input.with_text("#!/bin/bash\ntorchrun --one --three\n").settings, settings);
        assert!(input.with_text("srun megatron --other\n").settings.is_empty());
        let alone = UserInput::of_settings(settings);
        assert!(
            alone.with_text("t").settings.is_empty(),
            "settings that were the plan are none of the text's"
        );
    }

    fn file(name: &str, text: &str) -> File {
        File { name: name.into(), text: text.into() }
    }

    fn names(input: &UserInput) -> (String, Vec<&str>) {
        (input.name.clone(), input.beside.iter().map(|file| file.name.as_str()).collect())
    }

    #[test]
    fn a_script_goes_into_the_box_and_the_rest_beside_it() {
        let model = || {
            file("config.json", "{\"model_type\": \"llama\", \"hidden_size\": 64, \"num_hidden_layers\": 2}")
        };
        let script = || file("run.sh", "#!/bin/bash\ntorchrun pretrain_gpt.py");
        let both = UserInput::from_text(EXAMPLE).with_files(vec![model(), script()]);
        assert_eq!(names(&both), ("run.sh".into(), vec!["config.json"]));
        let alone = UserInput::from_text(EXAMPLE).with_files(vec![model()]);
        assert_eq!(names(&alone), ("config.json".into(), vec![]));
        let completed = UserInput::from_text("torchrun pretrain_gpt.py")
            .with_files(vec![model()])
            .with_files(vec![model()]);
        assert_eq!(names(&completed), (String::new(), vec!["config.json"]));
        assert_eq!(names(&completed.without_file("config.json")), (String::new(), vec![]));
        assert_eq!(completed.with_files(vec![script()]).beside, vec![]);
    }

    #[test]
    fn lines_end_as_in_a_text_box() {
        let windows = "#!/bin/bash\r\n--one\r\n--two\r\n";
        let expected = "#!/bin/bash\n--one\n--two\n";
        let dropped = UserInput::from_text("").with_files(vec![file("run.sh", windows)]);
        let mut linked = UserInput::from_text("").pasted();
        linked.texts[0].text = windows.to_owned();
        for input in [UserInput::from_text(windows), dropped, UserInput::of_pasted(linked)] {
            assert_eq!(&*input.text, expected);
        }
        assert_eq!(
            &*UserInput::from_text("old Macintosh\rtwo").with_text("old Macintosh\rtwo \r").text,
            "old Macintosh\ntwo \n"
        );
    }

    #[test]
    fn a_log_is_no_launch_text_and_stays_with_the_run() {
        let log = " iteration 1/ 9 | elapsed time per iteration (ms): 5000.0 |";
        let mut input = UserInput::from_text("torchrun pretrain_gpt.py");
        input.own = input.own.with_log(log);
        assert_eq!(input.source().parts().len(), 1);
        assert_eq!(UserInput::of_pasted(input.pasted()), input);
        assert_eq!(&*input.with_text("srun other").own.log, log);
        let both = input.with_files(vec![file("run.sh", "#!/bin/bash\ntorchrun pretrain_gpt.py")]);
        assert_eq!((&*both.own.log, both.name.as_str()), (log, "run.sh"));
        assert!(input.is_same_run(&UserInput::from_text("torchrun pretrain_gpt.py")));
        // A log in which nothing is measured comes as a text, and takes no script's place.
        let silent = both.with_files(vec![file("slurm.out", "{'loss': 2.5, 'epoch': 0.1}")]);
        assert_eq!(names(&silent), ("run.sh".into(), vec!["slurm.out"]));
    }

    #[test]
    fn what_is_gone_without_is_named_once() {
        let mut input = UserInput::from_text("TP=2");
        for name in ["a", "b", "a", "c a d"] {
            input.go_without(name);
        }
        assert_eq!(input.settings, [("without".to_owned(), "a b c d".to_owned())]);
    }

    #[test]
    fn everything_in_hand_travels() {
        let mut input = UserInput::from_text("TP=2").with_files(vec![file("a.sh", "x"), file("b.txt", "y")]);
        input.set("num_nodes".into(), "2".into());
        input.set("RUN".into(), "ü".into());
        assert_eq!(UserInput::of_pasted(input.pasted()), input);
        assert_eq!(input.source().parts().len(), 2);
    }
}
