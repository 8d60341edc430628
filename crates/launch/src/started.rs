//! Programs that take their settings from the command line that starts them: read together with that line, which may be
//! among the texts or be the answer to a question.

use super::formats::releases::Installed;
use super::formats::{Dialect, Format, Role, Text, Trainer, Workload, launcher, read_started};
use super::limits::MAX_TEXTS;
use super::scheduled;
use super::{Argument, Reading, commands, environment, launch, megatron, notebook};
use launch::Launch;
use shardscope_bash::{Environment, base_name};
use shardscope_config_tree::{Node, Tree, Value};
use shardscope_plan::Field;
use shardscope_resolve::Asked;
use shardscope_source::{Code, Diagnostic, Source, Span};
use std::collections::HashSet;

/// A program that asks for its command line.
pub(super) struct Started {
    /// Its file name.
    pub(super) name: String,
    /// Where it begins among the texts.
    pub(super) base: u32,
    /// Its text; for a notebook that of its cells.
    pub(super) program: String,
    /// Whether positions in it are positions in the source text.
    pub(super) exact: bool,
}

/// Whether the reading asks for the command line that starts the program.
pub(super) fn asks_for_line(reading: &Reading) -> bool {
    reading.questions.iter().any(|asked| asked.asks == Asked::CommandLine)
}

/// The words of the settings file that the line names by `--config`, before the line's own, which win: for TRL's parser and those made of
/// it the file's values are the defaults of the options (`trl/scripts/utils.py:TrlParser.parse_args_and_config`). The file's own
/// reading is emptied; none if no program among the texts takes its settings from the line.
pub(super) fn with_settings(
    texts: &mut [Text],
    programs: &[Started],
    files: &[(String, Tree)],
    arguments: &[Argument],
) -> Option<Vec<Argument>> {
    /// Entries of a file that are examined, and items of a list.
    const MOST: usize = 1_000;
    let named =
        arguments.windows(2).find(|pair| pair[0].text == "--config").map(|pair| pair[1].text.as_str());
    let named = named
        .or_else(|| arguments.iter().find_map(|word| word.text.strip_prefix("--config=")))
        .map(base_name)?;
    // argparse and HfArgumentParser's `parse_args_into_dataclasses` hand `--config` to the program as any option.
    const PARSERS: [&str; 3] = ["TrlParser", "H4ArgumentParser", "parse_args_and_config"];
    let takes = |program: &Started| {
        PARSERS.iter().any(|parser| program.program.contains(parser))
            && texts.iter().any(|text| text.name == program.name && asks_for_line(&text.reading))
    };
    let (name, tree) = files.iter().find(|(name, _)| base_name(name) == named)?;
    programs.iter().find(|program| takes(program))?;
    // The line's own value of an option is the only one.
    let own: HashSet<String> = arguments
        .iter()
        .filter_map(|word| word.text.strip_prefix("--")?.split('=').next())
        .map(|name| name.replace('-', "_"))
        .collect();
    let (mut words, mut seen) = (Vec::new(), 0);
    let mut open: Vec<(String, &Node)> = vec![(String::new(), tree.documents.first()?)];
    while let Some((path, node)) = open.pop() {
        seen += 1;
        if seen > MOST {
            break;
        }
        if own.contains(&path.replace('-', "_")) {
            continue;
        }
        let word = |text: &str, span: Span| Argument {
            text: text.to_owned(),
            span: Some(span),
            ..Argument::default()
        };
        match &node.value {
            Value::Map(entries) => {
                // The last is taken first, so that the order is that of the file.
                open.extend(entries.iter().take(MOST).rev().map(|entry| {
                    let dot = if path.is_empty() { "" } else { "." };
                    (format!("{path}{dot}{}", entry.key), &entry.node)
                }));
            }
            _ if path.is_empty() || node.is_null() => {}
            Value::Scalar(scalar) => {
                words.extend([word(&format!("--{path}"), node.span), word(&scalar.text, node.span)]);
            }
            Value::List(items) => {
                let of_items = items.iter().filter_map(|item| Some(word(item.text()?, item.span)));
                words.push(word(&format!("--{path}"), node.span));
                words.extend(of_items.take(MOST));
            }
        }
    }
    for text in texts.iter_mut().filter(|text| text.name == *name) {
        text.reading = Reading::default();
    }
    let is_file = |at: usize| {
        let word = arguments[at].text.as_str();
        word == "--config" || word.starts_with("--config=") || at > 0 && arguments[at - 1].text == "--config"
    };
    words.extend((0..arguments.len()).filter(|at| !is_file(*at)).map(|at| arguments[at].clone()));
    Some(words)
}

/// Programs and the words of the given command line are read as one; only the line gives the machines.
pub(super) fn with_line(
    texts: &mut [Text],
    launched: &mut [Text],
    programs: &[Started],
    arguments: &[Argument],
    installed: Installed,
) {
    let format = Format::new(&Trainer(Dialect::Transformers));
    let said: Vec<Diagnostic> = [format.read_words(arguments), megatron::read(arguments)]
        .into_iter()
        .flat_map(|own| own.diagnostics)
        .collect();
    let machines = [Field::NumNodes, Field::GpusPerNode, Field::WorldSize, Field::Accelerator];
    for text in texts.iter_mut().filter(|text| text.format == Some(format) && asks_for_line(&text.reading)) {
        let Some(started) = programs.iter().find(|started| started.name == text.name) else { continue };
        let read = read_started(&started.program, started.base, &started.name, arguments, installed);
        let Some(mut reading) = read else { continue };
        if !started.exact {
            without_places(&mut reading, 0);
        }
        text.reading = reading;
        // What the words say on their own is also said by the combined reading.
        for text in launched.iter_mut().filter(|text| text.format.is_none()) {
            let own = &mut text.reading;
            own.keep(&|found| machines.contains(&found.field));
            own.questions.retain(|asked| asked.asks.setting().is_none_or(|field| machines.contains(&field)));
            own.software = None;
            own.not_modelled.retain(scheduled::is_of_a_job);
            own.not_read.clear();
            own.diagnostics.retain(|one| !said.iter().any(|known| known.message == one.message));
        }
    }
}

/// A launch line without options starts a program that is among the texts and was read: it takes its settings from nowhere else, but
/// for what accelerate's file shards.
pub(super) fn by_itself(texts: &mut [Text], launched: &mut [Text], launch: &Launch) {
    let is_here = texts.iter().any(|text| text.format.is_some_and(|format| format.role() == Role::Launcher));
    for text in launched.iter_mut().filter(|text| text.format.is_none()) {
        text.reading.not_modelled.retain(|item| {
            let read = |text: &&mut Text| {
                let states = !text.reading.found.is_empty() || !text.reading.questions.is_empty();
                item.value.ends_with(".py") && base_name(&text.name) == item.value && states
            };
            let program = texts.iter_mut().find(read).filter(|_| item.message == launch::ELSEWHERE);
            let Some(text) = program else { return true };
            if !is_here {
                launch.ask_accelerate(&mut text.reading);
            }
            false
        });
    }
}

/// Removes the positions of a reading that lie at or after `from`.
pub(super) fn without_places(reading: &mut Reading, from: u32) {
    let behind = |span: &mut Option<Span>| *span = span.filter(|span| span.start < from);
    reading.found.iter_mut().for_each(|found| behind(&mut found.span));
    reading.diagnostics.iter_mut().for_each(|said| behind(&mut said.span));
    reading.not_modelled.iter_mut().for_each(|item| behind(&mut item.span));
    reading.not_read.iter_mut().for_each(|item| behind(&mut item.span));
}

/// A program that builds its training's command, read as the script of that command. Positions in that script do not
/// apply to the text.
pub(super) fn launched_by(program: &str, source: &Source, environment: &Environment) -> Reading {
    let beside = |file: &str| {
        let parts = source.parts().iter().take(MAX_TEXTS);
        let at = parts.map(|part| base_name(&part.name)).position(|name| name == base_name(file));
        at.map(|at| source.part_text(at).to_owned())
    };
    let script = match launcher::script(program, &environment.variables, &beside) {
        Ok(script) => script,
        Err(reading) => return *reading,
    };
    let texts =
        source.parts().iter().enumerate().map(|(at, part)| (part.name.as_str(), source.part_text(at)));
    let all = Source::from_files([("", script.as_str())].into_iter().chain(texts));
    let mut reading = environment::reading(&launch::read_part(&all, 0, environment));
    without_places(&mut reading, 0);
    if launcher::starts_several(program) {
        let message = "the program starts several trainings; the first is read";
        reading.diagnostics.push(Diagnostic::note(Code::SeveralCommands, message));
    }
    reading
}

/// The reading of the commands that a program or a notebook starts, and the machines that it requests; none if no
/// command trains.
pub(super) fn by_commands(
    program: &str,
    source: &Source,
    part: usize,
    environment: &Environment,
) -> Option<[Reading; 2]> {
    let work = commands::workload(program)?;
    let launch = launched(&work, source, part, environment);
    let mut reading = environment::reading(&launch);
    without_places(&mut reading, 0);
    let (text, base) = (source.part_text(part), source.parts().get(part)?.span.start);
    if program != text {
        notebook::runtime(&mut reading, text, base);
    }
    // Beside an installation or a conversion the program itself says what it is.
    let nothing = launch.idle || reading.diagnostics.iter().any(|said| said.code == Code::NoTrainingCommand);
    (!nothing).then_some([work.reading, reading])
}

/// The launch described by the commands of a program.
fn launched(work: &Workload, source: &Source, part: usize, environment: &Environment) -> launch::Launch {
    let texts = source.parts().iter().enumerate();
    let texts = texts.map(|(at, known)| {
        let text = if at == part { work.script.as_str() } else { source.part_text(at) };
        (known.name.as_str(), text)
    });
    launch::read_part(&Source::from_files(texts), part, environment)
}

/// Warns if a program with a trainer of its own also starts a training by a command: two trainings, of which one is
/// read.
pub(super) fn also_starts(
    program: &str,
    source: &Source,
    part: usize,
    environment: &Environment,
) -> Option<Diagnostic> {
    let launch = launched(&commands::workload(program)?, source, part, environment);
    if launch.arguments.is_empty() {
        return None;
    }
    let message = "the program also starts a training by a command; the estimate is for the trainer in the program itself";
    let hint = "paste that command alone for the other";
    Some(Diagnostic::warning(Code::SeveralCommands, message).hint(hint))
}

/// Whether a program belongs to OLMo-core, whose settings are Python.
pub(super) fn imports_olmo_core(program: &str) -> bool {
    let names = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let imports = matches!(words.next(), Some("from" | "import"));
        imports && words.next().is_some_and(|module| module.split('.').next() == Some("olmo_core"))
    };
    program.lines().any(names)
}

/// Whether it uses OLMo-core's training classes; programs that convert checkpoints, measure a network and the like do
/// not.
pub(super) fn trains_by_olmo_core(program: &str) -> bool {
    ["TransformerConfig", "TrainModule", "TrainerConfig", "adder"].iter().any(|word| program.contains(word))
}
