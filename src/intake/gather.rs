//! Every pasted text by its kind, each read by its reader, and their readings in the order in which they count.

use super::detect::{Kind, detect};
use super::formats::{Format, Text, bases, classify, merge, read as read_settings, read_job, read_titan};
use super::surroundings;
use super::tree::{Tree, read_json};
use super::{Argument, Reading, launch, shell};
use crate::plan::Field;
use crate::text::{Diagnostic, Severity, Source, Span, sort};

/// What each text of a source says; later readings win.
pub(super) fn gather(source: &Source, environment: &shell::Environment) -> Vec<Reading> {
    let (mut texts, mut scripts, mut remarks, mut order) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut titan = None;
    for (index, part) in source.parts().iter().enumerate() {
        let text = source.part_text(index);
        let mut add = |format, reading| texts.push(Text { name: part.name.clone(), format, reading });
        match detect(&part.name, text, part.span.start) {
            Kind::Script => scripts.push(index),
            Kind::Settings(Format::Kubernetes, tree) => {
                job(source, index, &tree, environment)
                    .into_iter()
                    .for_each(|(format, reading)| add(format, reading));
            }
            Kind::Settings(format, tree) => {
                let mut reading = read_settings(format, &tree);
                let (here, lacking) = files(source, &tree);
                reading.diagnostics.extend(lacking.into_iter().map(|lacking| missing(format, lacking)));
                order.push((part.name.clone(), here));
                add(Some(format), reading);
                titan = Some(tree).filter(|_| format == Format::Torchtitan).or(titan);
            }
            Kind::Log => remarks.push(log_note(part.span)),
            Kind::Other(why) => remarks.push(why),
        }
    }
    let depths = |text: &Text| depth(&text.name, &order, 0);
    sort(&mut texts, &|left, right| depths(left).cmp(&depths(right)));
    let alone = texts.is_empty() && remarks.is_empty();
    let (mut launched, arguments) = script(source, &scripts, environment, alone);
    if let Some(tree) = titan.filter(|_| !arguments.is_empty()) {
        together(&mut texts, &mut launched, &tree, &arguments);
    }
    texts.extend(launched);
    if texts.iter().any(|text| !text.reading.found.is_empty()) {
        // One of several that cannot be read does not spoil the rest.
        remarks
            .iter_mut()
            .for_each(|remark: &mut Diagnostic| remark.severity = remark.severity.min(Severity::Warning));
    }
    let mut readings = vec![Reading { diagnostics: remarks, ..Reading::default() }];
    readings.extend(merge(texts));
    readings
}

/// The files that a settings file builds on: those at hand, and those that are not.
fn files(source: &Source, tree: &Tree) -> (Vec<String>, Vec<(String, Span)>) {
    let there = |name: &str| source.parts().iter().any(|part| part.name == name);
    let (here, lacking): (Vec<_>, Vec<_>) = bases(tree).into_iter().partition(|(name, _)| there(name));
    (here.into_iter().map(|(name, _)| name).collect(), lacking)
}

fn missing(format: Format, (name, span): (String, Span)) -> Diagnostic {
    let message = format!("{name} is built on here and is not among the texts; what it sets is not known");
    let said = if format == Format::Flags {
        Diagnostic::warning("missing-file", message)
    } else {
        Diagnostic::note("missing-file", message)
    };
    said.at(span).hint("paste or drop that file too")
}

/// How many files a file builds on, one on the other.
fn depth(name: &str, order: &[(String, Vec<String>)], below: usize) -> usize {
    /// Longest chain followed.
    const LONGEST: usize = 8;
    let bases = order.iter().filter(|(known, _)| known == name).flat_map(|(_, bases)| bases);
    match below {
        LONGEST => 0,
        _ => bases.take(LONGEST).map(|base| 1 + depth(base, order, below + 1)).max().unwrap_or(0),
    }
}

fn log_note(span: Span) -> Diagnostic {
    let message = "iteration lines of a training: they are held against the estimate, and state no setting";
    Diagnostic::note("training-log", message).at(Span::new(span.start, span.start))
}

/// The script among several: the first that starts a training; the others are files it may read.
fn script(
    source: &Source,
    parts: &[usize],
    environment: &shell::Environment,
    alone: bool,
) -> (Vec<Text>, Vec<Argument>) {
    let launches = parts.iter().map(|part| (*part, launch::read_part(source, *part, environment)));
    let mut first = None;
    for (part, launch) in launches {
        let starts = !launch.arguments.is_empty();
        if starts || first.is_none() {
            first = Some((part, launch));
        }
        if starts {
            break;
        }
    }
    let Some((part, launch)) = first else { return (Vec::new(), Vec::new()) };
    let mut reading = surroundings::reading(&launch);
    if !alone && launch.arguments.is_empty() {
        // Other texts may say all there is to say.
        let softer = |diagnostic: &mut Diagnostic| {
            if diagnostic.code == "no-training-command" {
                diagnostic.severity = Severity::Note;
            }
        };
        reading.diagnostics.iter_mut().for_each(softer);
    }
    let name = source.parts().get(part).map_or_else(String::new, |part| part.name.clone());
    let mut texts: Vec<Text> = launch.script.files.iter().filter_map(written).collect();
    texts.push(Text { name, format: None, reading });
    (texts, launch.arguments)
}

/// torchtitan's file and the command that takes it are read as one; the command alone tells the machines.
fn together(texts: &mut [Text], launched: &mut [Text], tree: &Tree, arguments: &[Argument]) {
    let machines = [Field::NumNodes, Field::GpusPerNode, Field::WorldSize, Field::Accelerator];
    if let Some(text) = texts.iter_mut().find(|text| text.format == Some(Format::Torchtitan)) {
        text.reading = read_titan(tree, arguments);
    }
    for text in launched {
        text.reading.found.retain(|found| machines.contains(&found.field));
        text.reading.software = None;
    }
}

/// A DeepSpeed configuration that the script itself writes.
fn written(file: &shell::File) -> Option<Text> {
    let text = file.content.text();
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let tree = read_json(text, 0);
    let format = classify(&tree).filter(|format| *format == Format::DeepSpeed)?;
    let mut reading = read_settings(format, &tree);
    let place = |span: &mut Option<Span>| {
        *span = span.and_then(|span| origin(&file.content, span)).or(Some(file.span))
    };
    reading.found.iter_mut().for_each(|found| place(&mut found.span));
    reading.diagnostics.iter_mut().for_each(|diagnostic| place(&mut diagnostic.span));
    Some(Text { name: file.name.text().to_owned(), format: Some(format), reading })
}

/// Where a part of a value's text was written.
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

/// A Kubernetes job: its machines, and the script or words of its containers.
fn job(
    source: &Source,
    part: usize,
    tree: &Tree,
    environment: &shell::Environment,
) -> Vec<(Option<Format>, Reading)> {
    let base = source.parts().get(part).map_or(0, |part| part.span.start);
    let work = read_job(tree, source.part_text(part), base);
    let mut given = environment.clone();
    for (name, value) in work.variables {
        if !given.variables.iter().any(|(known, _)| *known == name) {
            given.variables.push((name, value));
        }
    }
    let parts = source.parts().iter().enumerate();
    let files = parts.map(|(index, known)| {
        (known.name.as_str(), if index == part { work.script.as_str() } else { source.part_text(index) })
    });
    let blanked = Source::from_files(files);
    let mut readings = vec![(Some(Format::Kubernetes), work.reading)];
    if !work.script.trim().is_empty() {
        let launch = launch::read_part(&blanked, part, &given);
        readings.push((None, surroundings::reading(&launch)));
    }
    readings
}
