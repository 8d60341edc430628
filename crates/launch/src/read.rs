//! Reads pasted texts and resolves them.

use super::dispatch::dispatch;
use super::started::{asks_for_line, without_places};
use super::{Reading, Resolution, resolve, written};
use shardscope_bash as shell;
use shardscope_resolve::Asked;
use shardscope_source::{Code, Diagnostic, Source};

/// What to read.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The pasted or dropped texts.
    pub source: &'a Source,
    /// Variables that the texts take from their environment, and the script's arguments.
    pub environment: &'a shell::Environment,
    /// Settings by name that the user sets on top of the texts.
    pub overrides: &'a [(String, String)],
}

/// Reads the texts and resolves them.
#[must_use]
pub fn read(request: &Request) -> Resolution {
    // Settings alone are enough: a plan may be assembled by hand or opened from a link.
    let nothing_pasted = request.source.text().trim().is_empty();
    if nothing_pasted && !request.overrides.is_empty() {
        return resolve(&[], request.overrides);
    }
    resolve(&readings(request.source, request.environment), request.overrides)
}

/// The reading of each text.
#[must_use]
pub fn readings(source: &Source, environment: &shell::Environment) -> Vec<Reading> {
    if source.text().trim().is_empty() {
        return blank();
    }
    let mut more = written::files(source);
    let readings = beside(source, &more, environment);
    if !readings.iter().any(asks_for_line) {
        return readings;
    }
    // A one-line input field swallows the line ends after backslashes.
    let answer = Asked::CommandLine.answer(&environment.variables).map(|line| line.replace("\\ ", " "));
    let own = || Some((written::CELLS.to_owned(), written::line(source)?));
    match answer.map(|line| (String::new(), line)).or_else(own) {
        Some(line) => {
            more.push(line);
            beside(source, &more, environment)
        }
        None => readings,
    }
}

/// Reads the texts together with others that are not part of them in this form: a file that a notebook's cell writes,
/// or the command line given as an answer. Nothing found in those has a position.
fn beside(source: &Source, more: &[(String, String)], environment: &shell::Environment) -> Vec<Reading> {
    if more.is_empty() {
        return dispatch(source, environment);
    }
    let texts =
        source.parts().iter().enumerate().map(|(at, part)| (part.name.as_str(), source.part_text(at)));
    let others = more.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    let all = Source::from_files(texts.chain(others));
    let mut readings = dispatch(&all, environment);
    let end = all.parts().get(source.parts().len()).map_or(0, |part| part.span.start);
    readings.iter_mut().for_each(|reading| without_places(reading, end));
    readings
}

/// The reading if nothing was given.
#[must_use]
pub fn blank() -> Vec<Reading> {
    let hint = "paste the script that launches the training, or take an example";
    let empty = Diagnostic::error(Code::NoText, "there is nothing to read yet").hint(hint);
    vec![Reading { diagnostics: vec![empty], ..Reading::default() }]
}

#[cfg(test)]
mod tests {
    use super::{Request, read};
    use shardscope_bash::Environment;
    use shardscope_source::{Code, Severity, Source};

    fn said(text: &str) -> (bool, Vec<Code>) {
        let source = Source::new(text);
        let request = Request { source: &source, environment: &Environment::default(), overrides: &[] };
        let resolution = read(&request);
        let errors = resolution.diagnostics.iter().filter(|said| said.severity == Severity::Error);
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
    fn a_script_that_is_not_read_to_its_end_says_so() {
        // For any number of steps per line, so that none of them ends on the last step unnoticed.
        for line in ["a=b\n", "export A=b\n", "echo a b c\n", ": a\n", "a=b c=d\n"] {
            let text = format!("{}torchrun pretrain_gpt.py --num-layers 2\n", line.repeat(60_000));
            let (has_plan, said) = said(&text);
            assert!(
                !has_plan && said.iter().any(|code| matches!(code, Code::TooMuchWork | Code::ShellTooLong)),
                "{line}: {said:?}"
            );
        }
    }

    #[test]
    fn what_is_no_script_is_said_so() {
        assert_eq!(said(" \n"), (false, vec![Code::NoText]));
        // Options that change no figure, and nothing else.
        assert_eq!(said("--deepspeed"), (false, vec![Code::NoTrainingCommand]));
        assert_eq!(said("Dear reader, this is a letter."), (false, vec![Code::NoTrainingCommand]));
        assert!(!said("torchrun --nnodes $NODES pretrain_gpt.py --num-layers 2 --hidden-size 4 --bf16").0);
    }
}
