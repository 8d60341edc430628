//! The one door for pasted texts: what they say, resolved.

use super::{Argument, Found, Origin, Question, Reading, Resolution, megatron, resolve, shell};
use crate::plan::Field;
use crate::text::{Diagnostic, Source};

/// What is to be read.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The pasted or dropped texts.
    pub source: &'a Source,
    /// Variables that the texts leave to their environment, and the words after the script in its call.
    pub environment: &'a shell::Environment,
    /// Settings by name, set by the user on top of what the texts say.
    pub overrides: &'a [(String, String)],
}

/// Reads the texts and resolves what they say.
#[must_use]
pub fn read(request: &Request) -> Resolution {
    resolve(&readings(request.source, request.environment), request.overrides)
}

/// What each text says.
#[must_use]
pub fn readings(source: &Source, environment: &shell::Environment) -> Vec<Reading> {
    if source.text().trim().is_empty() {
        let hint = "paste the script that launches the training, or take an example";
        let empty = Diagnostic::error("no-text", "there is nothing to read yet").hint(hint);
        return vec![Reading { diagnostics: vec![empty], ..Reading::default() }];
    }
    vec![script(source, environment)]
}

/// A shell script.
fn script(source: &Source, environment: &shell::Environment) -> Reading {
    let script = shell::evaluate(source, environment);
    let arguments = training_words(&script);
    let mut reading = megatron::read(&arguments);
    reading.diagnostics.extend(script.diagnostics.iter().cloned());
    if reading.found.is_empty() {
        let hint = "a launch script gives them as --num-layers 24 --hidden-size 1024 …";
        let none = Diagnostic::error("no-options", "no training options are found in the text").hint(hint);
        reading.diagnostics.push(none);
    }
    nodes(&mut reading, &script);
    questions(&mut reading, &script);
    reading
}

/// Variables that scripts use for the number of nodes and of accelerators per node.
const NODES: [&str; 5] = ["NNODES", "NUM_NODES", "NODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES"];
const PER_NODE: [&str; 5] =
    ["GPUS_PER_NODE", "NPROC_PER_NODE", "NPUS_PER_NODE", "GPU_PER_NODE", "NGPUS_PER_NODE"];

/// The machines by the script's own variables, where the command does not tell.
fn nodes(reading: &mut Reading, script: &shell::Script) {
    for (field, names) in [(Field::NumNodes, NODES), (Field::GpusPerNode, PER_NODE)] {
        if reading.found.iter().any(|found| found.field == field) {
            continue;
        }
        let told = names.iter().find_map(|name| {
            let [value] = script.variable(name)?.values.as_slice() else { return None };
            let count = value.known().filter(|text| text.parse::<u64>().is_ok())?;
            Some((name, count.to_owned(), value.origin()))
        });
        if let Some((name, count, span)) = told {
            reading.take(Found::new(field, count, Origin::Script).by(*name, span));
        }
    }
}

/// The words of the command with the most options, or of every string of options when no command has any.
fn training_words(script: &shell::Script) -> Vec<Argument> {
    /// Options that make a training command.
    const FEWEST: usize = 3;
    let options = |words: &[shell::Word]| words.iter().filter(|word| word.text().starts_with("--")).count();
    let commands = script.commands.iter().map(|command| (options(&command.words), command));
    let best = commands.max_by_key(|(count, command)| (*count, command.kind == shell::CommandKind::Run));
    if let Some((count, command)) = best
        && count >= FEWEST
    {
        return command.words.iter().map(|word| argument(script, word)).collect();
    }
    script.fragments.iter().flat_map(|fragment| &fragment.words).map(|word| argument(script, word)).collect()
}

fn argument(script: &shell::Script, word: &shell::Word) -> Argument {
    let hole = word.value.holes().next().map(|id| {
        let root = script.roots(id).first().copied().unwrap_or(id);
        script.hole(root).map_or_else(|| word.text().to_owned(), |hole| hole.name.clone())
    });
    Argument { text: word.text().to_owned(), span: Some(word.origin()), hole, answered: false }
}

/// Asks for the variables that settings lack.
fn questions(reading: &mut Reading, script: &shell::Script) {
    let mut asked: Vec<(String, Vec<&'static str>)> = Vec::new();
    for found in &reading.found {
        let Some(name) = &found.hole else { continue };
        match asked.iter_mut().find(|(known, _)| known == name) {
            Some((_, fields)) => fields.push(found.field.name()),
            None => asked.push((name.clone(), vec![found.field.name()])),
        }
    }
    for (name, fields) in asked {
        let hole = script.holes.iter().find(|hole| hole.name == name);
        if !hole.is_some_and(|hole| hole.kind == shell::HoleKind::Variable) {
            continue;
        }
        reading.questions.push(Question {
            prompt: format!("{name} gives {}: which value has it?", fields.join(", ")),
            choices: hole.map_or_else(Vec::new, |hole| hole.choices.clone()),
            proposal: None,
            name,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{Request, read};
    use crate::intake::shell::Environment;
    use crate::text::Source;

    fn said(text: &str) -> (bool, Vec<&'static str>) {
        let source = Source::new(text);
        let request = Request { source: &source, environment: &Environment::default(), overrides: &[] };
        let resolution = read(&request);
        let errors = resolution.diagnostics.iter().filter(|said| said.severity.name() == "error");
        (resolution.plan.is_some(), errors.map(|error| error.code).collect())
    }

    #[test]
    fn scripts_and_fragments_become_plans() {
        let flags = "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --micro-batch-size 1 --bf16";
        assert_eq!(
            said(&format!("torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py {flags}")),
            (true, vec![])
        );
        assert_eq!(said(&format!("NNODES=1\nGPUS_PER_NODE=8\nARGS=\"{flags}\"\n")), (true, vec![]));
        assert_eq!(
            said(&format!("N=2\ntorchrun --nnodes $N --nproc_per_node 8 pretrain_gpt.py {flags}")),
            (true, vec![])
        );
    }

    #[test]
    fn what_is_no_script_is_said_so() {
        assert_eq!(said(" \n"), (false, vec!["no-text"]));
        assert_eq!(said("Dear reader, this is a letter."), (false, vec!["no-options"]));
        assert!(!said("torchrun --nnodes $NODES pretrain_gpt.py --num-layers 2 --hidden-size 4 --bf16").0);
    }
}
