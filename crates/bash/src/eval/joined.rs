//! Pipelines joined by `&&` and `||`.

use super::super::tree::{CommandForm, Joint, Pipeline, Statement};
use super::assigned;
use super::branch::Skipped;
use super::state::{Certainty, Evaluator, Flow, Status};
use shardscope_source::Span;

/// Commands that are assumed to succeed: a script that could not enter or create that directory would end.
const TRUSTED: &[&str] = &["cd", "pushd", "popd", "mkdir", "source", ".", "module", "conda", "exec"];

impl Evaluator<'_> {
    /// As for `if`: what the text does not decide is treated as not run, and what it would set is left open.
    pub(crate) fn run_statement(&mut self, statement: &Statement) -> Flow {
        if statement.rest.is_empty() {
            return self.run_pipeline(&statement.first);
        }
        let outer_doubt = self.doubt;
        let outer_holes = std::mem::take(&mut self.condition_holes);
        let mut skipped: Vec<Skipped> = Vec::new();
        let mut names = Vec::new();
        let flow = self.run_joined(statement, &mut skipped, &mut names);
        self.doubt = outer_doubt;
        // After what runs, so that what it sets counts as set and not as a hole.
        self.mark_skipped(&skipped, &names);
        // A list that is itself a condition depends on them too.
        self.condition_holes.extend(outer_holes);
        flow
    }

    fn run_joined(
        &mut self,
        statement: &Statement,
        skipped: &mut Vec<Skipped>,
        names: &mut Vec<(String, Span)>,
    ) -> Flow {
        let flow = self.run_pipeline(&statement.first);
        if flow != Flow::Next {
            return flow;
        }
        let mut before = &statement.first;
        // How an unknown outcome is treated from there on: `[ -f data ] || exit 1` continues, and `[ -f data ] && X=1
        // || X=2` takes the second branch.
        let mut read = None;
        for (joint, pipeline) in &statement.rest {
            let status = self.status;
            let unknown = status.certainty == Certainty::Unknown;
            let ok = if unknown { *read.get_or_insert(*joint == Joint::Or) } else { status.ok };
            let runs = (*joint == Joint::And) == ok;
            let undecided = unknown || (status.certainty == Certainty::Assumed && !is_trusted(before));
            if status.certainty != Certainty::Certain && !(runs && unknown) {
                let mut sets = Vec::new();
                assigned::pipeline(pipeline, &mut sets);
                if !sets.is_empty() && (undecided || !runs) {
                    let holes = self.condition_holes.clone();
                    let span = span_of(before);
                    let index = self.branch(span, runs, !undecided, &holes, &sets);
                    skipped.push((index, holes, undecided));
                    names.append(&mut sets);
                }
            }
            if !runs {
                continue;
            }
            before = pipeline;
            if unknown {
                self.doubt_from(skipped);
            }
            let uncertain = self.guard(status.certainty);
            let flow = self.run_pipeline(pipeline);
            self.unguard(uncertain);
            if unknown {
                // Combined with an unknown: false only if the other side alone makes it so.
                let sure =
                    self.status.certainty == Certainty::Certain && self.status.ok == (*joint == Joint::Or);
                if !sure {
                    self.status = Status::UNKNOWN;
                }
            }
            match flow {
                Flow::Next => {}
                // `[ -z "$X" ] && exit 1`: only the guarded part is left.
                Flow::Guard => return Flow::Next,
                // Whether the loop is left depends on an unknown: this iteration ends, and what follows is open.
                other => return other,
            }
        }
        Flow::Next
    }
}

/// Whether a pipeline is a command whose success is silently assumed.
fn is_trusted(pipeline: &Pipeline) -> bool {
    pipeline.stages.last().is_none_or(|stage| match &stage.kind {
        CommandForm::Simple(simple) => simple
            .words
            .first()
            .and_then(|word| super::super::parse::literal(&word.parts))
            .is_some_and(|first| TRUSTED.contains(&first)),
        _ => false,
    })
}

fn span_of(pipeline: &Pipeline) -> Span {
    match pipeline.stages.as_slice() {
        [first, .., last] => first.span.to(last.span),
        [only] => only.span,
        [] => Span::default(),
    }
}
