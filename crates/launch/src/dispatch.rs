//! Classifies every pasted text, calls the reader for its kind, and returns the readings in order of precedence.

use super::answers::{fill, spread};
use super::by_file;
use super::detect::{TextKind, detect};
use super::environment;
use super::formats::releases::Installed;
use super::formats::{
    Accelerate, Dialect, Format, HuggingFace, OLMO_CORE_LACKING, Recipe, Role, Text, Trainer, Workload,
    Xtuner, classify, launcher, merge, nemo, read_launcher, read_started, recipes,
};
use super::limits::MAX_TEXTS;
use super::log::{is_log, printed_by};
use super::named::take_model;
use super::started::{
    Started, also_starts, asks_for_line, by_commands, by_itself, imports_olmo_core, launched_by,
    trains_by_olmo_core, with_line, with_settings, without_places,
};
use super::strangers::python;
use super::weights::of_nothing_else;
use super::{
    Argument, Asked, Effect, Found, NotModelled, Origin, Question, Reading, counted, launch, lone, machines,
    notebook, several, template, written,
};
use shardscope_bash as shell;
use shardscope_config_tree::{Tree, read_json};
use shardscope_plan::{Field, Subject};
use shardscope_source::{Code, Diagnostic, Severity, Source, Span};
use std::collections::HashSet;

/// The reading of each text of a source; later readings win.
pub(super) fn dispatch(source: &Source, environment: &shell::Environment) -> Vec<Reading> {
    let (mut texts, mut scripts, mut remarks, mut order) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let environment = &spread(environment);
    let mut files: Vec<(Format, Tree)> = Vec::new();
    let mut named: Vec<(String, Tree)> = Vec::new();
    let mut programs: Vec<Started> = Vec::new();
    let mut others: Vec<(String, Diagnostic)> = Vec::new();
    let mut experiments: HashSet<String> = HashSet::new();
    let names: HashSet<&str> = source.parts().iter().map(|part| part.name.as_str()).collect();
    let installed = Installed::in_texts(source, 0);
    for (index, part) in source.parts().iter().enumerate() {
        if index == MAX_TEXTS {
            remarks.push(several::too_many(source));
            break;
        }
        let text = source.part_text(index);
        let mut add =
            |format: Option<Format>, reading| texts.push(Text { name: part.name.clone(), format, reading });
        match detect(&part.name, text, part.span.start) {
            TextKind::Script => scripts.push(index),
            TextKind::Settings(format, tree) => {
                if let Some(work) = format.workload(&tree, text, part.span.start) {
                    let (reading, launched) = job(source, index, work, environment);
                    add(Some(format), reading);
                    if let Some(launched) = launched {
                        add(None, launched);
                    }
                    continue;
                }
                let changes = tree
                    .documents
                    .first()
                    .filter(|root| format == Format::new(&nemo::Nemo) && nemo::is_changes(root));
                let mut reading = match changes {
                    Some(root) => recipes::read_changes(root, named_recipe(environment), text),
                    None => format.read_tree_beside(&tree, installed),
                };
                fill(&mut reading, environment);
                by_file::take(&mut reading, &part.name);
                let mut here = Vec::new();
                let root = tree.documents.first();
                for (name, span) in root.map(|root| format.bases(root)).unwrap_or_default() {
                    if names.contains(name.as_str()) {
                        here.push(name);
                    } else {
                        reading.diagnostics.push(missing(format, &name, span));
                    }
                }
                order.push((part.name.clone(), here));
                if root.is_some_and(|root| format.overrides_all(root)) {
                    experiments.insert(part.name.clone());
                }
                add(Some(format), reading);
                named.push((part.name.clone(), tree.clone()));
                files.push((format, tree));
            }
            TextKind::Python(program) => {
                // The places of a notebook's cells are not those of its text.
                let exact = program == text;
                let asked = named_recipe(environment);
                if launcher::starts(&program) || launcher::is_model(&program) {
                    add(None, launched_by(&program, source, environment));
                    continue;
                }
                if let Some(reading) = recipes::read_recipes(&program, asked, part.span.start) {
                    add(Some(Format::new(&Recipe)), reading);
                    continue;
                }
                let olmo_core = imports_olmo_core(&program);
                let script = olmo_core.then(|| recipes::read_olmo_core(&program, part.span.start)).flatten();
                if let Some((format, reading)) = script {
                    add(Some(format), reading);
                    continue;
                }
                if let Some(reading) = recipes::read_xtuner(&program, part.span.start) {
                    add(Some(Format::new(&Xtuner)), reading);
                    continue;
                }
                match read_started(&program, part.span.start, &part.name, &[], installed) {
                    Some(mut reading) => {
                        if !exact {
                            without_places(&mut reading, 0);
                            notebook::runtime(&mut reading, text, part.span.start);
                        }
                        let asks = asks_for_line(&reading);
                        // Unless that command is the program's own.
                        if !asks || !names.contains(written::CELLS) {
                            reading.diagnostics.extend(also_starts(&program, source, index, environment));
                        }
                        if asks {
                            let (name, base) = (part.name.clone(), part.span.start);
                            programs.push(Started { name, base, program, exact });
                        }
                        add(Some(Format::new(&Trainer(Dialect::Transformers))), reading);
                    }
                    None if olmo_core && trains_by_olmo_core(&program) => {
                        let what = OLMO_CORE_LACKING;
                        let item = NotModelled::of_program("olmo_core", Effect::Memory, what);
                        add(None, Reading { not_modelled: vec![item], ..Reading::default() });
                    }
                    None => match by_commands(&program, source, index, environment) {
                        Some(readings) => readings.into_iter().for_each(|reading| add(None, reading)),
                        None => remarks.push(python(&program)),
                    },
                }
            }
            TextKind::Model(name) => add(Some(Format::new(&HuggingFace)), alone_by_name(&name, part.span)),
            TextKind::Log => remarks.push(log_note(text, part.span)),
            TextKind::Other(why) => others.push((part.name.clone(), why)),
        }
    }
    texts
        .sort_by_cached_key(|text| (experiments.contains(&text.name), several::depth(&text.name, &order, 0)));
    if scripts.is_empty() && !texts.is_empty() {
        template::complete(&mut texts);
    }
    let alone = texts.is_empty() && remarks.is_empty() && others.is_empty();
    let (mut launched, launch) = script(source, &scripts, environment, alone);
    others.retain(|(name, _)| name.is_empty() || launched.iter().all(|text| text.reading.covers != *name));
    remarks.extend(others.into_iter().map(|(_, why)| why));
    if let Some(launch) = &launch {
        texts.iter_mut().for_each(|text| launch.tell_devices(&mut text.reading));
        if launch.arguments.is_empty() {
            by_itself(&mut texts, &mut launched, launch);
        } else {
            let words = launch.with_objective();
            let joined = with_settings(&mut texts, &programs, &named, &words);
            if joined.is_none() {
                together(&mut texts, &mut launched, &files, &launch.arguments);
            }
            with_line(&mut texts, &mut launched, &programs, &joined.unwrap_or(words), installed);
        }
    }
    // For XTuner's configuration the words only say how it is started.
    if texts.iter().any(|text| text.format == Some(Format::new(&Xtuner))) {
        for text in &mut launched {
            text.reading.not_modelled.retain(|item| item.subject == Subject::Setting);
        }
    }
    let stray = launch.as_ref().and_then(|launch| several::left_out(&mut texts, launch, &order));
    lone::ask_precision(&mut texts, &mut launched, launch.as_ref());
    let each = several::files(&texts, &order).into_iter().chain(stray);
    texts.append(&mut launched);
    several::covered(&mut texts);
    lone::ask(&mut texts, source);
    if texts.iter().any(|text| !text.reading.found.is_empty()) {
        // One of several that cannot be read does not invalidate the others.
        let errors = remarks.iter_mut().filter(|remark| remark.severity == Severity::Error);
        errors.for_each(|remark| remark.severity = Severity::Warning);
    }
    remarks.extend(each);
    let machines = machines::said(source).into_iter().chain(machines::kind_alone(source)).collect();
    let questions = of_nothing_else(source.text(), texts.iter().map(|text| &text.reading));
    let mut readings = vec![Reading { diagnostics: remarks, machines, questions, ..Reading::default() }];
    readings.extend(merge(texts));
    readings
}

/// The recipe that the user names.
fn named_recipe(environment: &shell::Environment) -> Option<&str> {
    Asked::Recipe.answer(&environment.variables)
}

/// A model given only by its name: its shape, and what a training of it leaves open.
fn alone_by_name(name: &str, span: Span) -> Reading {
    /// A sequence length that is common in training. Unit: token.
    const USUAL: u64 = 4096;
    let mut reading = Reading::default();
    take_model(&mut reading, name, "model", Some(span));
    let longest = reading.count(Field::MaxPositionEmbeddings).unwrap_or(USUAL);
    reading.take(
        Found::new(Field::Bf16, "true", Origin::Default)
            .note("the checkpoint's dtype, unless another text sets it"),
    );
    for (field, prompt, proposal) in [
        (Field::SeqLength, "Sequence length?", longest.min(USUAL)),
        (Field::MicroBatchSize, "Micro-batch size?", 1),
    ] {
        reading.questions.push(Question {
            asks: Asked::Setting(field),
            prompt: prompt.to_owned(),
            choices: Vec::new(),
            proposal: Some(proposal.to_string()),
        });
    }
    reading
}

/// What is said of a missing file which a settings file builds on; if it says what trains, no verdict holds without it.
fn missing(format: Format, name: &str, span: Span) -> Diagnostic {
    let message = format!("this builds on {name}, which is not among the files; what it sets is unknown");
    let said = if format.needs_bases() {
        Diagnostic::error(Code::MissingFile, message)
    } else {
        Diagnostic::note(Code::MissingFile, message)
    };
    said.at(span).hint("paste or drop that file too")
}

fn log_note(text: &str, span: Span) -> Diagnostic {
    let what = printed_by(text).filter(|_| !is_log(text)).map_or_else(
        || "iteration lines of a training log".to_owned(),
        |tool| format!("the output of {tool}"),
    );
    let message = format!("this is {what}: it sets nothing, and is not read as a launch text");
    // Where it is compared with the estimate, on the page and in the terminal.
    let hint = "paste it under Time, in the box for your own run, or give its file to 'shardscope measured'";
    Diagnostic::warning(Code::TrainingLog, message).hint(hint).at(Span::new(span.start, span.start))
}

/// The script to use among several: the first that starts a training; the others may be files that it reads.
fn script(
    source: &Source,
    parts: &[usize],
    environment: &shell::Environment,
    alone: bool,
) -> (Vec<Text>, Option<launch::Launch>) {
    let mut first: Option<(usize, launch::Launch)> = None;
    let mut other = None;
    for part in parts.iter().take(several::LOOKED_AT) {
        let started = first.as_ref().filter(|(_, launch)| !launch.arguments.is_empty());
        // Files that are passed to the first script need not be examined.
        if started.is_some_and(|(first, _)| several::together(source, *first, *part)) {
            continue;
        }
        let launch = launch::read_part(source, *part, environment);
        let starts = !launch.arguments.is_empty();
        if started.is_some() && starts {
            other = Some(*part);
            break;
        }
        if starts || first.is_none() {
            first = Some((*part, launch));
        }
    }
    let Some((part, launch)) = first else { return (Vec::new(), None) };
    let mut reading = environment::reading(&launch);
    counted::propose(&mut reading, source, part, environment);
    reading.diagnostics.extend(other.map(|other| several::scripts(source, part, other)));
    if alone && launch.idle {
        // The machines of a conversion or an installation are no training's, whose settings would be asked for.
        reading.keep(&|_| false);
        reading.questions.clear();
    }
    if !alone && launch.arguments.is_empty() {
        // Other texts may already describe the training.
        for diagnostic in &mut reading.diagnostics {
            if matches!(diagnostic.code, Code::NoTrainingCommand | Code::NoTraining) {
                diagnostic.severity = Severity::Note;
            }
        }
    }
    let name = source.parts().get(part).map_or_else(String::new, |part| part.name.clone());
    let mut texts = Vec::new();
    for file in &launch.script.files {
        texts.extend(written(file));
    }
    let says = |flags: [&str; 2]| {
        launch.arguments.iter().any(|word| flags.contains(&word.text.split('=').next().unwrap_or("")))
    };
    // A DeepSpeed file given to the program takes precedence over the launcher's.
    if !says(["--deepspeed", "--deepspeed_config"])
        && let Some(reading) = read_launcher(&launch.accelerate, says(["--bf16", "--fp16"]))
    {
        texts.push(Text { name: name.clone(), format: Some(Format::new(&Accelerate)), reading });
    }
    texts.push(Text { name, format: None, reading });
    (texts, Some(launch))
}

/// A file and the command whose words override its keys are read as one; only the command gives the machines.
fn together(texts: &mut [Text], launched: &mut [Text], files: &[(Format, Tree)], arguments: &[Argument]) {
    let machines = [Field::NumNodes, Field::GpusPerNode, Field::WorldSize, Field::Accelerator];
    let both = |(format, tree): &(Format, Tree)| {
        Some((*format, format.read_with_words(tree.documents.first()?, arguments)?))
    };
    let Some((format, reading)) = files.iter().rev().find_map(both) else { return };
    if let Some(text) = texts.iter_mut().find(|text| text.format == Some(format)) {
        text.reading = reading;
    }
    // What the words say on their own is also said by the combined reading.
    let words = format.read_words(arguments);
    for text in launched {
        text.reading.keep(&|found| machines.contains(&found.field));
        text.reading.software = None;
        text.reading.not_modelled.retain(|item| !words.not_modelled.iter().any(|own| own.name == item.name));
        text.reading.not_read.retain(|item| !words.not_read.iter().any(|own| own.name == item.name));
        text.reading
            .diagnostics
            .retain(|said| !words.diagnostics.iter().any(|own| own.message == said.message));
    }
}

/// A DeepSpeed configuration that the script itself writes.
fn written(file: &shell::File) -> Option<Text> {
    let text = file.content.text();
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let tree = read_json(text, 0);
    let format = classify(&tree).filter(|format| format.role() == Role::Engine)?;
    let mut reading = format.read_tree(&tree);
    let place = |span: &mut Option<Span>| {
        *span = span.and_then(|span| origin(&file.content, span)).or(Some(file.span));
    };
    for found in &mut reading.found {
        place(&mut found.span);
    }
    for diagnostic in &mut reading.diagnostics {
        place(&mut diagnostic.span);
    }
    Some(Text { name: file.name.text().to_owned(), format: Some(format), reading })
}

/// Where a part of a value's text was written in the source.
fn origin(value: &shell::Value, span: Span) -> Option<Span> {
    let mut start = 0_u32;
    for piece in value.pieces() {
        let end = start.saturating_add(u32::try_from(piece.text.len()).ok()?);
        if span.start < end {
            let inside = piece.origin.exact && span.end <= end;
            let whole = piece.origin.span;
            return Some(if inside { whole.part(span.start - start, span.end - start) } else { whole });
        }
        start = end;
    }
    None
}

/// A settings file that a job mounts.
fn mounted(text: &str) -> Option<Reading> {
    let tree = read_json(text, 0);
    let mut reading = classify(&tree)?.read_tree(&tree);
    without_places(&mut reading, 0);
    Some(reading)
}

/// A job: its machines, and the script or words that it starts.
fn job(
    source: &Source,
    part: usize,
    work: Workload,
    environment: &shell::Environment,
) -> (Reading, Option<Reading>) {
    let mut given = environment.clone();
    let mut known: HashSet<String> = given.variables.iter().map(|(name, _)| name.clone()).collect();
    given.variables.extend(work.variables.into_iter().filter(|(name, _)| known.insert(name.clone())));
    if work.script.trim().is_empty() {
        let mut reading = work.reading;
        let settings = work.settings.iter().find_map(|text| mounted(text));
        if settings.is_none() && !reading.found.is_empty() {
            let what = "the program that the container image starts; paste its command or the settings that it reads";
            reading.not_modelled.push(NotModelled::of_program("", Effect::Model, what));
        }
        return (reading, settings);
    }
    let mut files = Vec::new();
    for (index, known) in source.parts().iter().enumerate() {
        let text = if index == part { work.script.as_str() } else { source.part_text(index) };
        files.push((known.name.as_str(), text));
    }
    let launch = launch::read_part(&Source::from_files(files), part, &given);
    (work.reading, Some(environment::reading(&launch)))
}
