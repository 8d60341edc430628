//! The whole way from a source to a [`Reading`].

use super::ask;
use super::choose::{Chosen, choose};
use super::line::Line;
use super::world::{Said, World};
use crate::intake::shell::{self, Branch, Environment, Hole, HoleId, HoleKind, Script, Word};
use crate::intake::{Argument, Found, Origin, Reading};
use crate::intake::{formats, megatron};
use crate::plan::Field;
use crate::text::{Diagnostic, Severity, Source, sort};

/// Words shown in one note on a condition.
const DOUBTS: usize = 8;

/// A script with the training it starts.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// Everything the script comes to.
    pub script: Script,
    /// The training command taken apart.
    pub line: Line,
    /// The machines it runs on.
    pub world: World,
    /// The words after the program, for a reader of their language.
    pub arguments: Vec<Argument>,
    /// The holes of the arguments and of the world, with the name each is asked under.
    holes: Vec<(String, HoleId)>,
    /// Conditions about the machine, each with the words it could change.
    doubts: Vec<(Branch, Vec<String>)>,
    /// Variables that hold options under conditions that are not decided.
    open_options: Vec<(HoleId, String)>,
    /// What there is to say about the script and the choice of the command.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads the first text of a source.
pub fn read(source: &Source, environment: &Environment) -> Launch {
    read_part(source, 0, environment)
}

/// Reads one text of a source; the others are files that it may read.
pub fn read_part(source: &Source, part: usize, environment: &Environment) -> Launch {
    let script = shell::evaluate_part(source, part, environment);
    let mut launch = Launch { diagnostics: script.diagnostics.clone(), ..Launch::default() };
    match choose(&script, source) {
        Some(chosen) => {
            if chosen.fragment {
                launch.diagnostics.retain(|diagnostic| diagnostic.code != "option-outside-command");
            }
            launch.take(&script, &chosen);
        }
        None => {
            let message = "no command with training options is found in this text";
            let hint = "paste the script that starts the training, or its options (--num-layers 32 --hidden-size 4096 …)";
            launch.diagnostics.push(Diagnostic::error("no-training-command", message).hint(hint));
        }
    }
    for (name, span) in script.missing_files.iter().filter(|(name, _)| matters(name)) {
        let message = format!("{name} is read here and not at hand; what it sets is not known");
        launch
            .diagnostics
            .push(Diagnostic::note("missing-file", message).at(*span).hint("paste or drop that file too"));
    }
    launch.script = script;
    launch
}

/// Whether a sourced file may set options: environments of Python and of modules do not.
fn matters(name: &str) -> bool {
    ![
        "activate",
        ".bashrc",
        ".bash_profile",
        "conda.sh",
        "modules",
        "/etc/profile",
        "setvars",
        "set_env",
        "/init/",
    ]
    .iter()
    .any(|known| name.contains(known))
}

impl Launch {
    fn take(&mut self, script: &Script, chosen: &Chosen) {
        self.line = Line::of(chosen);
        self.world = World::find(script, chosen, &self.line);
        self.diagnostics.extend(chosen.diagnostics.iter().cloned());
        let mut unset = Vec::new();
        let words = std::mem::take(&mut self.line.arguments);
        for (at, word) in words.iter().enumerate() {
            let follows_flag = at > 0
                && words
                    .get(at - 1)
                    .is_some_and(|before| before.text().starts_with("--") && !before.text().contains('='));
            if !follows_flag && let Some((id, hole)) = lone_variable(script, word) {
                if hole.needs.is_empty() {
                    unset.push(hole.name.clone());
                } else {
                    self.open_options.push((id, format!("the options in {}", hole.name)));
                }
                continue;
            }
            let argument = self.argument(script, word);
            self.arguments.push(argument);
        }
        self.line.arguments = words;
        self.tell_doubts();
        unset.dedup();
        if !unset.is_empty() {
            let names = unset.join(", ");
            let message = format!("{names} is used as options and not set in this text; it is read as empty");
            self.diagnostics.push(Diagnostic::note("unset-options", message).at_some(chosen.span));
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

    /// A word that a condition about the machine could change.
    fn doubt(&mut self, word: &Word, branch: &Branch) {
        match self.doubts.iter_mut().find(|(known, _)| known.span == branch.span) {
            Some((_, words)) => words.push(word.text().to_owned()),
            None => self.doubts.push((branch.clone(), vec![word.text().to_owned()])),
        }
    }

    /// One note for each condition that could have given other words.
    fn tell_doubts(&mut self) {
        for (branch, words) in std::mem::take(&mut self.doubts) {
            let shown = words.iter().take(DOUBTS).map(String::as_str).collect::<Vec<_>>().join(" ");
            let more = if words.len() > DOUBTS { " …" } else { "" };
            let message =
                format!("{shown}{more} stands as long as this condition does not hold: {}", branch.why);
            self.diagnostics.push(Diagnostic::note("undecided", message).at(branch.span));
        }
    }

    fn named(&mut self, script: &Script, id: HoleId) -> String {
        let name = ask::name(script, id);
        if !self.holes.iter().any(|(known, _)| *known == name) {
            self.holes.push((name.clone(), id));
        }
        name
    }

    /// What the launch states, its arguments read as Megatron's.
    #[must_use]
    pub fn reading(&self) -> Reading {
        let mut reading =
            formats::read_words(&self.arguments).unwrap_or_else(|| megatron::read(&self.arguments));
        let mut holes = self.open_options.clone();
        for found in &reading.found {
            let known =
                found.hole.as_ref().and_then(|name| self.holes.iter().find(|(known, _)| known == name));
            holes.extend(known.map(|(_, id)| (*id, found.field.name().to_owned())));
        }
        for (field, said) in [
            (Field::NumNodes, &self.world.nodes),
            (Field::GpusPerNode, &self.world.gpus_per_node),
            (Field::WorldSize, &self.world.world_size),
        ] {
            match said {
                Some(Said::Known(fact)) => {
                    let origin = if fact.given { Origin::Environment } else { Origin::Script };
                    let found = Found::new(field, fact.value.to_string(), origin)
                        .by(fact.by.clone(), fact.span)
                        .note(fact.how);
                    reading.take(found);
                }
                Some(Said::Open(missing)) if field != Field::WorldSize || self.is_worldless() => {
                    let mut found =
                        Found::new(field, String::new(), Origin::Script).by(missing.by.clone(), missing.span);
                    found.hole = Some(
                        missing.hole.map_or_else(|| missing.by.clone(), |id| ask::name(&self.script, id)),
                    );
                    holes.extend(missing.hole.map(|id| (id, field.about().to_owned())));
                    reading.take(found);
                }
                _ => {}
            }
        }
        reading.questions.extend(ask::questions(&self.script, &holes));
        let mut diagnostics = self.diagnostics.clone();
        diagnostics.append(&mut reading.diagnostics);
        let fault = |diagnostic: &Diagnostic| diagnostic.severity == Severity::Error;
        sort(&mut diagnostics, &|left, right| fault(right).cmp(&fault(left)));
        reading.diagnostics = diagnostics;
        reading
    }

    fn is_worldless(&self) -> bool {
        self.world.nodes.is_none() && self.world.gpus_per_node.is_none()
    }
}

/// A variable that is not set, if the word is that and nothing else.
fn lone_variable<'s>(script: &'s Script, word: &Word) -> Option<(HoleId, &'s Hole)> {
    let id = word.value.only_hole()?;
    let hole = script.hole(id)?;
    matches!(hole.kind, HoleKind::Variable | HoleKind::Branch).then_some((id, hole))
}
