//! The complete path from a source to a [`Reading`].

mod always_loaded;
mod beneath;
mod branches;
mod devices;
mod job;
mod objective;

use super::ask;
use super::by_name;
use super::choose::choose;
use super::chosen::Chosen;
use super::command_line::{CommandLine, Launcher};
use super::elsewhere;
use super::inlined;
use super::purposes;
use super::said::{Missing, Said, World};
use super::scheduler;
use super::settings_file::{Given, Naming};
use super::stage;
use super::tools;
use super::unset;
use super::wrappers;
use crate::formats::releases::Installed;
use crate::formats::{Claim, Command, read_command, recipes, starts_own_processes};
use crate::megatron;
use crate::options::SWIFT_MEGATRON;
use crate::{Argument, Asked, Effect, Found, NotModelled, Origin, Reading};
use shardscope_bash::{self as shell, Branch, Environment, HoleId, HoleKind, Script, Word};
use shardscope_plan::Field;
use shardscope_source::{Code, Diagnostic, Severity, Source, Span};

/// A script with the training it starts.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// The script's evaluation.
    pub script: Script,
    /// The parsed training command.
    pub line: CommandLine,
    /// The machines that it runs on.
    pub world: World,
    /// The words after the program, for a reader of their format.
    pub arguments: Vec<Argument>,
    /// The options of `accelerate launch`.
    pub accelerate: Vec<Argument>,
    /// The holes of the arguments and of the world, with the name under which each is asked for.
    holes: Vec<(String, HoleId)>,
    /// Conditions about the machine, each with the words it could change.
    doubts: Vec<(Branch, Vec<String>)>,
    /// Variables that hold options under undecided conditions.
    open_options: Vec<(HoleId, String)>,
    /// A command whose output is options.
    printed: Option<(String, Span)>,
    /// The recipe that the user names.
    recipe: Option<String>,
    /// The file from which the command takes its settings, if it is missing.
    elsewhere: Option<String>,
    /// The file from which it takes its settings, if it is among the texts.
    given: Option<Given>,
    /// The reading of that file beneath the command's words, and the words that say nothing of it.
    beneath: Option<(Reading, Vec<Argument>)>,
    /// Words that have no place in that file.
    passed_over: Vec<NotModelled>,
    /// The ZeRO stage that the text substitutes into a template.
    filled: Option<String>,
    /// The releases of packages that the texts install.
    installed: Installed,
    /// Whether everything that the script starts is known to train nothing.
    pub idle: bool,
    /// Diagnostics about the script and the choice of the command.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads the first text of a source.
pub fn read(source: &Source, environment: &Environment) -> Launch {
    read_part(source, 0, environment)
}

/// Reads one text of a source; the others are files that it may read.
pub fn read_part(source: &Source, part: usize, environment: &Environment) -> Launch {
    let mut script = shardscope_bash::evaluate_part(source, part, environment);
    wrappers::unfold(&mut script, source);
    by_name::unfold(&mut script);
    let recipe = Asked::Recipe.answer(&environment.variables).map(str::to_owned);
    let installed = Installed::in_texts(source, part);
    let mut launch = Launch { recipe, installed, ..Launch::default() };
    let chosen = choose(&script, source);
    let fragment = chosen.as_ref().is_some_and(|chosen| chosen.fragment);
    for said in &script.diagnostics {
        if !fragment || said.code != Code::OptionOutsideCommand {
            launch.diagnostics.push(said.clone());
        }
    }
    let idle = chosen.as_ref().and_then(purposes::of_bare);
    match chosen {
        Some(_) if let Some((program, what)) = idle => launch.trains_nothing(no_training(&program, what)),
        Some(chosen) => {
            launch.take(&script, &chosen);
            let bare = chosen.bare || elsewhere::is_driven(&launch.line);
            let at = script.commands.iter().position(|command| Some(command.span) == chosen.span);
            let named = Naming { words: &launch.arguments, script: &script, at, source };
            let file = named.read(launch.line.trainer());
            let missing = match &file {
                Some(file) if file.name.is_empty() => None,
                Some(_) => elsewhere::missing(&launch.line, &launch.arguments, source, bare),
                None => named
                    .unclear()
                    .or_else(|| elsewhere::missing(&launch.line, &launch.arguments, source, bare)),
            };
            if let Some((name, said)) = missing.or_else(|| elsewhere::experiment(&script, source)) {
                launch.diagnostics.push(said);
                launch.elsewhere = Some(name);
            }
            let file = file.filter(|_| launch.elsewhere.is_none());
            launch.given = file.as_ref().map(|file| file.given);
            launch.passed_over =
                file.as_ref().map_or_else(Vec::new, |file| file.passed_over(&launch.arguments));
            launch.diagnostics.extend(inlined::settings(&mut launch.arguments, &script, source));
            launch.filled = stage::filled(&script, source.part_text(part));
            launch.leave_to_cluster(source);
            launch.tell_branches(&script, source.part_text(part), source);
            launch.beneath = file.and_then(|file| launch.read_beneath(&file, environment));
        }
        None => {
            // If a job's script is missing, its scheduler directives still give the machines.
            scheduler::lines(&mut launch.world, &script, &launch.line, false);
            let started = elsewhere::started(&script, source);
            // If another script starts the training, a missing file of variables alone is not the problem.
            let waits = started.as_ref().is_some_and(|said| said.code == Code::MissingFile);
            let mut files: Vec<&str> = script
                .missing_files
                .iter()
                .map(|(name, _)| name.as_str())
                .filter(|name| unset::matters(name) && !(waits && shell::base_name(name) == "env.sh"))
                .collect();
            files.dedup();
            if let Some(first) = files.first() {
                let files: Vec<&str> = files.iter().map(|name| shown(name)).collect();
                let message = format!(
                    "no command with training options is found in this text, which reads files that are not here: {}",
                    files.join(", ")
                );
                let hint = format!("paste or drop {} beside this text", shown(first));
                launch.diagnostics.push(Diagnostic::error(Code::MissingFile, message).hint(hint));
            } else if let Some((program, what)) = purposes::instead(&script) {
                launch.trains_nothing(no_training(&program, what));
            } else if let Some(said) = started {
                launch.diagnostics.push(said);
            } else if let Some(said) = tools::alone(&script, source.part_text(part)) {
                launch.trains_nothing(said);
            } else {
                let message = "no command with training options is found in this text";
                let hint = "paste the script that starts the training, or its options (--num-layers 32 --hidden-size 4096 …)";
                launch.diagnostics.push(Diagnostic::error(Code::NoTrainingCommand, message).hint(hint));
            }
        }
    }
    for (name, span) in &script.missing_files {
        if unset::matters(name) {
            let message =
                format!("{name} is read here but is not among the texts; what it sets is not known");
            let note = Diagnostic::note(Code::MissingFile, message).hint("paste or drop that file too");
            launch.diagnostics.push(note.at(*span));
        }
    }
    launch.script = script;
    launch
}

/// The error for a program that trains nothing.
fn no_training(program: &Word, what: &str) -> Diagnostic {
    let message = format!("{} is {what}", purposes::called(program.text()));
    let said = Diagnostic::error(Code::NoTraining, message).hint("paste the script that starts the training");
    said.at(program.origin())
}

/// A file's path after a folder that is only known at run time (`$(dirname $0)/conf/common.conf`).
fn shown(name: &str) -> &str {
    let behind = [")/", "}/"].iter().filter_map(|end| Some(name.rfind(end)? + end.len())).max();
    behind.and_then(|at| name.get(at..)).filter(|rest| !rest.is_empty()).unwrap_or(name)
}

impl Launch {
    fn trains_nothing(&mut self, said: Diagnostic) {
        self.diagnostics.push(said);
        self.idle = true;
    }

    fn take(&mut self, script: &Script, chosen: &Chosen) {
        self.line = CommandLine::new(chosen);
        self.world = World::find(script, chosen, &self.line);
        self.diagnostics.extend_from_slice(&chosen.diagnostics);
        let mut unset = Vec::new();
        let words = std::mem::take(&mut self.line.arguments);
        for (at, word) in words.iter().enumerate() {
            let before = words.get(at.wrapping_sub(1)).map_or("", Word::text);
            let follows_flag = before.starts_with("--") && !before.contains('=');
            // Alone behind the program it names the file that states what trains ([`elsewhere`]).
            let names_file = words.len() == 1 && unset::names_settings(script, word);
            let options = (!follows_flag && !names_file).then(|| unset::lone(script, word)).flatten();
            if let Some((id, hole)) = options {
                if hole.needs.is_empty() {
                    unset.push(hole.name.clone());
                } else {
                    self.open_options.push((id, "the options in ".to_owned() + &hole.name));
                }
                continue;
            }
            if !follows_flag && let Some(name) = printed(script, word) {
                self.printed.get_or_insert((name.to_owned(), word.origin()));
                continue;
            }
            let argument = self.argument(script, word);
            self.arguments.push(argument);
        }
        self.line.arguments = words;
        let launchers = std::mem::take(&mut self.line.launchers);
        for (_, words) in launchers.iter().filter(|(kind, _)| *kind == Launcher::Accelerate) {
            for word in words {
                let argument = self.argument(script, word);
                self.accelerate.push(argument);
            }
        }
        self.line.launchers = launchers;
        self.tell_doubts();
        unset.dedup();
        self.diagnostics.extend(unset::said(&unset, script, chosen.span));
    }

    /// `${WORLD_SIZE:-1}` nodes: cloud launchers (PyTorchJob, DLC) set WORLD_SIZE to the number of nodes, and the
    /// number written here is the script's fallback on a single machine.
    fn leave_to_cluster(&mut self, source: &Source) {
        let Some(Said::Known(fact)) = &self.world.nodes else { return };
        let before = fact.span.and_then(|span| source.text().get(..span.start as usize)).unwrap_or("");
        if !fact.given && (before.ends_with("${WORLD_SIZE:-") || before.ends_with("${WORLD_SIZE-")) {
            let missing = Missing { hole: None, span: fact.span, by: "WORLD_SIZE".to_owned() };
            self.world.nodes = Some(Said::Open(missing));
        }
    }

    fn argument(&mut self, script: &Script, word: &Word) -> Argument {
        let branch = word.value.doubts().find_map(|doubt| script.branches.get(usize::from(doubt)));
        let hole = word.value.first_hole().or_else(|| branch?.needs.first().copied());
        if let Some(branch) = branch.filter(|_| hole.is_none()) {
            self.doubt(word, branch);
        }
        let hole = hole.map(|id| self.named(script, id));
        Argument {
            text: word.text().to_owned(),
            span: Some(word.origin()),
            hole,
            answered: word.value.is_given(),
        }
    }

    fn named(&mut self, script: &Script, id: HoleId) -> String {
        let name = ask::name(script, id);
        if !self.holes.iter().any(|(known, _)| *known == name) {
            self.holes.push((name.clone(), id));
        }
        name
    }

    /// The words without those that name a given settings file, which is read itself; none if there is no such file.
    fn beside_settings(&self, words: &[Argument]) -> Option<Vec<Argument>> {
        let Given { at, count, .. } = self.given?;
        let named = words.get(at..at.checked_add(count)?)?;
        let same = self.arguments.get(at..at + count)?;
        (named == same).then(|| [&words[..at], &words[at + count..]].concat())
    }

    /// The reading of the launch; its words are read as Megatron's if no other format claims them.
    #[must_use]
    pub fn reading(&self) -> Reading {
        let arguments = self.with_objective();
        let command = self.command(&arguments);
        let named = if command.is_megatron || self.beneath.is_some() {
            None
        } else {
            recipes::read_words(&self.arguments, self.recipe.as_deref())
        };
        let counted = named.as_ref().is_some_and(recipes::counts_machines);
        let read = |command: &Command<'_>| match read_command(command) {
            // For a reader that shares its words with others, the name of a settings file is one of its own options.
            None | Some((Claim::Shared(_), _)) if let Some(words) = self.beside_settings(command.words) => {
                read_command(&Command { words: &words, ..*command })
            }
            read => read,
        };
        let recognised = match &self.beneath {
            Some(beneath) => Some((Claim::Certain, self.with_rest(beneath))),
            None => named.map(|reading| (Claim::Certain, reading)).or_else(|| read(&command)),
        };
        let (claim, mut reading) = match recognised {
            Some((claim, reading)) => (Some(claim), reading),
            None if command.is_megatron => (None, megatron::read_of(&self.arguments, SWIFT_MEGATRON)),
            None => {
                let beside = self.beside_settings(&self.arguments);
                (
                    None,
                    megatron::read_started(self.line.trainer(), beside.as_ref().unwrap_or(&self.arguments)),
                )
            }
        };
        if command.is_megatron {
            super::swift::defaults(&mut reading, &self.arguments);
            super::swift::vision(&mut reading, &self.arguments);
        }
        reading.not_modelled.extend_from_slice(&self.passed_over);
        stage::propose(&mut reading, self.filled.as_deref());
        purposes::tell(&mut reading, &self.line, self.elsewhere.is_some(), self.given);
        if self.elsewhere.is_none() {
            purposes::tell_stranger(&mut reading, &self.line, claim);
            purposes::tell_family(&mut reading, &self.line, claim);
        }
        self.leave_to_accelerate(&mut reading);
        self.tell_always_loaded(&mut reading);
        self.tell_own_engines(&mut reading);
        self.tell_device_map(&mut reading);
        self.tell_devices(&mut reading);
        super::beside::tell(&mut reading, &self.script);
        if let Some((name, span)) = &self.printed {
            let what = "options printed by a command of this script, whose output is unknown";
            reading
                .not_modelled
                .push(NotModelled::new("options", name, Effect::Model, what).at_some(Some(*span)));
        }
        // If Ray or the program itself starts the workers, the framework's own keys give the number of accelerators;
        // the launcher starts one driver. The same holds for Megatron-Bridge's performance scripts, which start the
        // training on as many as their own option says.
        let starts_its_own = self.line.program.as_ref().is_some_and(|word| starts_own_processes(word.text()));
        self.ask_the_job(&mut reading);
        let starts_all = elsewhere::is_launched(&self.arguments)
            || starts_its_own
            || counted
            || reading.value(Field::RlFramework).is_some()
                && reading.found.iter().any(|found| found.field == Field::GpusPerNode);
        let mut holes = self.open_options.clone();
        for found in &reading.found {
            for (name, id) in &self.holes {
                if found.hole.as_ref() == Some(name) {
                    holes.push((*id, found.field.name().to_owned()));
                }
            }
        }
        for (field, said) in &[
            (Field::NumNodes, &self.world.nodes),
            (Field::GpusPerNode, &self.world.gpus_per_node),
            (Field::WorldSize, &self.world.world_size),
            (Field::ImagePixels, &self.world.pixels),
        ] {
            match said {
                _ if starts_all => {}
                Some(Said::Known(fact)) => {
                    let origin = if fact.given { Origin::Environment } else { Origin::Script };
                    let found = Found::new(*field, fact.value.to_string(), origin)
                        .by(fact.by.clone(), fact.span)
                        .note(fact.how);
                    reading.take(found);
                }
                Some(Said::Open(missing)) if *field != Field::WorldSize || self.world.nodes.is_none() => {
                    let mut found = Found::new(*field, String::new(), Origin::Script)
                        .by(missing.by.clone(), missing.span);
                    found.hole = Some(missing.by.clone());
                    if let Some(id) = missing.hole {
                        found.hole = Some(ask::name(&self.script, id));
                        holes.push((id, field.about().to_owned()));
                    }
                    reading.take(found);
                }
                _ => {}
            }
        }
        if !starts_all {
            self.compare_groups(&mut reading);
        }
        if let (Some(Said::Known(_)), Some(Said::Known(_))) = (&self.world.nodes, &self.world.gpus_per_node) {
            // The launch takes precedence over the number of GPUs in a recipe's name.
            reading.keep(&|found| found.field != Field::WorldSize || found.origin != Origin::Catalog);
        }
        reading.questions.extend(ask::questions(&self.script, &holes));
        let mut diagnostics = self.diagnostics.clone();
        diagnostics.append(&mut reading.diagnostics);
        let fault = |diagnostic: &Diagnostic| diagnostic.severity == Severity::Error;
        diagnostics.sort_by_key(|diagnostic| !fault(diagnostic));
        reading.diagnostics = diagnostics;
        reading
    }
}

/// The command that prints the options that a word stands for, if the word is nothing else.
fn printed<'s>(script: &'s Script, word: &Word) -> Option<&'s str> {
    /// The folder of the miles program that prints the shape of the model named by `--hf-checkpoint`.
    const SHAPES: &str = "external_utils/";
    let hole = script.hole(word.value.only_hole()?).filter(|hole| !hole.name.contains(SHAPES))?;
    (hole.kind == HoleKind::Command).then_some(hole.name.as_str())
}
