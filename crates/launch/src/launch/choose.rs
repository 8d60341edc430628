//! Chooses the training among a script's commands.

use super::chosen::Chosen;
use super::command_line::{CommandLine, Launcher, program_of, subcommand};
use super::flag::{flag_name, is_spelt};
use super::program::{Purpose, purpose};
use super::settings_file::Overridden;
use super::{tidy, turns};
use crate::formats;
use shardscope_bash::{CommandKind, Script, Word, base_name};
use shardscope_source::{Code, Diagnostic, Source, Span};
use std::collections::HashSet;

/// Options, in Megatron's spelling, that only training commands have.
const CORE: [&str; 12] = [
    "--num-layers",
    "--hidden-size",
    "--num-attention-heads",
    "--seq-length",
    "--max-position-embeddings",
    "--micro-batch-size",
    "--global-batch-size",
    "--tensor-model-parallel-size",
    "--pipeline-model-parallel-size",
    "--train-iters",
    "--train-samples",
    "--bf16",
];

/// Options that only trainers of transformers' models, and trainers that take recipes by name, have.
const TRAINER: [&str; 22] = [
    "--plugin",
    "--pretrained",
    "--module",
    "--config",
    "--recipe",
    "--recipe-name",
    "--model-recipe-name",
    "--compute-dtype",
    "--per-device-train-batch-size",
    "--model-name-or-path",
    "--gradient-accumulation-steps",
    "--num-train-epochs",
    "--learning-rate",
    "--model-max-length",
    "--max-seq-length",
    "--max-length",
    "--tuner-type",
    "--train-type",
    "--lora-rank",
    "--use-peft",
    "--deepspeed",
    "--attn-implementation",
];

/// Number of core options that makes a command or a fragment a training.
const ENOUGH: usize = 2;

struct Candidate {
    index: usize,
    words: Vec<Word>,
    score: Score,
    diagnostics: Vec<Diagnostic>,
}

/// The training command of a script, or the options that it holds without any command.
pub fn choose(script: &Script, source: &Source) -> Option<Chosen> {
    among(script, source, false)
        .or_else(|| among(script, source, true).map(skipped))
        .or_else(|| fragment(script, source))
        .or_else(|| started(script, source, CommandKind::Run))
        .or_else(|| overriding(script, source))
        .or_else(|| started(script, source, CommandKind::Skipped).map(skipped))
}

/// A command whose words override keys of a settings file among the texts (`uv run grpo.py --config grpo.yaml policy.x=1`),
/// whatever its program and the names of the keys are.
fn overriding(script: &Script, source: &Source) -> Option<Chosen> {
    let runs = script.commands.iter().filter(|command| command.kind == CommandKind::Run);
    let mut overridden = Overridden::of(source);
    runs.rev().find_map(|command| {
        let mut diagnostics = Vec::new();
        let words = tidy::words(&command.words, source, &mut diagnostics);
        let (span, environment) = (Some(command.span), command.environment.clone());
        let chosen = Chosen { words, environment, span, diagnostics, ..Chosen::default() };
        let line = CommandLine::new(&chosen);
        (trains(&chosen.words) && overridden.by(&line.arguments)).then_some(chosen)
    })
}

/// A training in a branch that is read as not taken, if nothing else trains.
fn skipped(mut chosen: Chosen) -> Chosen {
    let message =
        "the training command is under a condition that the text does not decide; it is assumed to hold";
    chosen.diagnostics.push(Diagnostic::note(Code::Undecided, message).at_some(chosen.span));
    chosen
}

/// The training command among those that run, or among those in branches not taken.
fn among(script: &Script, source: &Source, skipped: bool) -> Option<Chosen> {
    let mut best: Option<Candidate> = None;
    let mut rivals = Vec::new();
    for (index, command) in script.commands.iter().enumerate() {
        if (command.kind == CommandKind::Skipped) != skipped {
            continue;
        }
        let trainer = subcommand(&command.words).is_some()
            || program_of(&command.words).is_some_and(|program| formats::is_named_program(program.text()));
        if is_bare(&command.words)
            || !trainer
                && command
                    .words
                    .iter()
                    .all(|word| !word.text().contains("--") && !formats::is_setting(word.text()))
        {
            continue;
        }
        let mut diagnostics = Vec::new();
        let words = tidy::words(&command.words, source, &mut diagnostics);
        let core = core(&words);
        let trainer = trainer || is_beside(&words, source);
        if core < ENOUGH && !trainer {
            continue;
        }
        let flags = words.iter().filter(|word| word.text().starts_with("--")).count();
        // The count of core options is capped: an evaluation after the training has about as many of them.
        let score = (
            trains(&words),
            core.max(if trainer { ENOUGH } else { 0 }).min(6),
            is_training(&words),
            command.kind == CommandKind::Run,
            flags,
        );
        // A command that contains this one as a text is not a rival but its launcher.
        if let Some(outer) = command.outer {
            rivals.retain(|(rival, _, _)| *rival != outer);
            if best.as_ref().is_some_and(|best| best.index == outer) {
                best = None;
            }
        }
        rivals.push((index, command.span, score));
        if best.as_ref().is_none_or(|best| score > best.score) {
            best = Some(Candidate { index, words, score, diagnostics });
        }
    }
    let best = best?;
    let mut chosen = Chosen { words: best.words, diagnostics: best.diagnostics, ..Chosen::default() };
    let mut at = Some(best.index);
    let mut turns = 0;
    while let Some(command) = at.and_then(|at| script.commands.get(at)) {
        if turns > 0 {
            chosen.around.push(command.words.clone());
        } else {
            chosen.span = Some(command.span);
        }
        chosen.environment.extend_from_slice(&command.environment);
        at = command.outer;
        turns += 1;
        if turns > 20 {
            break;
        }
    }
    tell_rivals(&mut chosen, best.index, &rivals);
    turns::tell(&mut chosen, best.index, &script.commands);
    Some(chosen)
}

/// Whether the program that a command starts is one of the texts, and trains; its options may have any names.
fn is_beside(words: &[Word], source: &Source) -> bool {
    let Some(program) = program_of(words) else { return false };
    let name = base_name(program.text());
    let behind = words.iter().skip_while(|word| *word != program);
    // If no options are visible, the shell may not see them either: they may follow a comment between continued lines.
    if !behind.skip(1).any(|word| word.text().starts_with("--")) {
        return false;
    }
    source.parts().iter().any(|part| {
        name.ends_with(".py") && base_name(&part.name) == name && {
            let text =
                source.text().get(part.span.start as usize..part.span.end as usize).unwrap_or_default();
            text.contains("Trainer(") || text.contains("TrainingArguments(")
        }
    })
}

/// How much a command looks like the training: no other purpose, known options, name, whether it runs, number of
/// options.
type Score = (bool, usize, bool, bool, usize);

/// Notes that other commands run too. If they train, the answer is for one of several trainings: a warning, with its
/// place among them.
fn tell_rivals(chosen: &mut Chosen, index: usize, rivals: &[(usize, Span, Score)]) {
    let own = chosen.span;
    let is_own = |(rival, span, _): &&(usize, Span, Score)| *rival == index || Some(*span) == own;
    // A loop may run the same command of the text many times.
    let mut seen: HashSet<(u32, u32)> = HashSet::new();
    let running: Vec<&(usize, Span, Score)> = rivals
        .iter()
        .filter(|rival| rival.2.3 || is_own(rival))
        .filter(|(_, span, _)| seen.insert((span.start, span.end)))
        .collect();
    let trains = |rival: &&(usize, Span, Score)| rival.2.0;
    if !running.iter().any(|rival| !is_own(rival)) {
        return;
    }
    let trainings: Vec<_> = running.iter().copied().filter(trains).collect();
    match trainings.iter().position(is_own) {
        Some(place) if trainings.len() > 1 => tell_trainings(chosen, place, trainings.len()),
        _ => {
            let message = format!("{} commands have training options; one of them is read", running.len());
            chosen.diagnostics.push(Diagnostic::note(Code::SeveralCommands, message).hint(ONE).at_some(own));
        }
    }
}

/// The hint if several commands train.
const ONE: &str = "paste the one command that is meant, or remove the others";

/// Warns that the answer is for training `place` of `count`.
fn tell_trainings(chosen: &mut Chosen, place: usize, count: usize) {
    let which = match (place, ["first", "second", "third"].get(place)) {
        (last, _) if last + 1 == count => "the last".to_owned(),
        (_, Some(word)) => format!("the {word}"),
        (other, None) => format!("number {}", other + 1),
    };
    let program = subcommand(&chosen.words).or_else(|| program_of(&chosen.words));
    let program = program.map_or_else(String::new, |program| format!(" ({})", program.text()));
    let message = format!("{count} commands start a training; the estimate is for {which}{program}");
    chosen
        .diagnostics
        .push(Diagnostic::warning(Code::SeveralCommands, message).hint(ONE).at_some(chosen.span));
}

/// Whether the program has no purpose other than training.
fn trains(words: &[Word]) -> bool {
    subcommand(words)
        .or_else(|| program_of(words))
        .map(Word::text)
        .is_none_or(|program| !matches!(purpose(program), Purpose::NoTraining(_)))
}

/// Whether the program's name says that it trains; modules are accepted based on their options.
fn is_training(words: &[Word]) -> bool {
    program_of(words)
        .map(Word::text)
        .filter(|program| program.ends_with(".py"))
        .is_none_or(|program| names_training(base_name(program)))
}

fn names_training(name: &str) -> bool {
    ["pretrain", "train", "finetune", "sft", "main", "run", "deepy"].iter().any(|word| name.contains(word))
}

/// Options in place of a command.
fn is_bare(words: &[Word]) -> bool {
    words.first().is_some_and(|word| word.text().starts_with("--"))
}

/// The number of different core options among the words.
fn core(words: &[Word]) -> usize {
    let mut seen = [false; CORE.len() + TRAINER.len()];
    let mut dotted = 0;
    for word in words {
        let name = flag_name(word.text());
        for (known, seen) in CORE.iter().chain(&TRAINER).zip(&mut seen) {
            *seen |= is_spelt(name, known);
        }
        dotted += usize::from(formats::is_setting(word.text()));
    }
    seen.iter().filter(|found| **found).count() + dotted.min(CORE.len())
}

/// A command that a launcher starts without any training setting: the last one, as training comes last.
fn started(script: &Script, source: &Source, kind: CommandKind) -> Option<Chosen> {
    let mut last: Option<Chosen> = None;
    let mut trainings = 0;
    for command in script.commands.iter().filter(|command| command.kind == kind) {
        let mut diagnostics = Vec::new();
        let words = tidy::words(&command.words, source, &mut diagnostics);
        let chosen = Chosen {
            words,
            environment: command.environment.clone(),
            span: Some(command.span),
            bare: true,
            diagnostics,
            ..Chosen::default()
        };
        let line = CommandLine::new(&chosen);
        let launched = line
            .launcher()
            .is_some_and(|launcher| launcher != Launcher::Python || is_training(&chosen.words));
        let program = line.program.as_ref().is_some_and(|program| {
            let text = program.text();
            // `torchrun -m train` of mistral-finetune.
            let module = line.launcher() == Some(Launcher::Torch)
                && names_training(text)
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            text.ends_with(".py") || text.contains('.') || module
        });
        if !(launched && program) {
            continue;
        }
        // A data check after a training, or a server next to it, does not replace it.
        let named = line.program.as_ref().is_some_and(|program| names_training(base_name(program.text())));
        let is_one = trains(&chosen.words) && (line.launcher() != Some(Launcher::Python) || named);
        trainings += usize::from(is_one);
        if is_one || trainings == 0 {
            last = Some(chosen);
        }
    }
    let mut chosen = last?;
    if kind == CommandKind::Run && trainings > 1 {
        tell_trainings(&mut chosen, trainings - 1, trainings);
    }
    Some(chosen)
}

/// Options without a command: strings and arrays that nothing uses, or lines of bare options.
fn fragment(script: &Script, source: &Source) -> Option<Chosen> {
    let mut chosen = Chosen { fragment: true, ..Chosen::default() };
    let mut names = Vec::new();
    for fragment in &script.fragments {
        chosen.span = chosen.span.or(Some(fragment.span));
        chosen.words.extend(tidy::words(&fragment.words, source, &mut chosen.diagnostics));
        names.push(fragment.name.as_str());
    }
    let runs = script.commands.iter().filter(|command| command.kind != CommandKind::Skipped);
    for command in runs.filter(|command| is_bare(&command.words)) {
        chosen.span = chosen.span.or(Some(command.span));
        chosen.words.extend(tidy::words(&command.words, source, &mut chosen.diagnostics));
    }
    if core(&chosen.words) == 0 {
        return None;
    }
    let message = match names.as_slice() {
        [] => "no launch command found; the options are read as they are".to_owned(),
        names => {
            format!("no command with training options found; the options in {} are read", names.join(", "))
        }
    };
    chosen.diagnostics.push(Diagnostic::note(Code::Fragment, message).at_some(chosen.span));
    Some(chosen)
}
