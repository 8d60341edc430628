//! The result of reading a run's texts.

use crate::{Diagnostic, NotModelled, Plan, Question, Report, Setting, Severity};
use shardscope_plan::{Field, Resolution};
use shardscope_report::{document, text};
use shardscope_session::estimated;
use shardscope_source::{Source, render};
use std::error::Error;
use std::fmt::{self, Display, Formatter};

/// What was read from a run's texts, and the estimates if they form a plan.
#[derive(Clone, Debug)]
pub struct Answer {
    source: Source,
    resolution: Resolution,
    report: Option<Report>,
}

impl Answer {
    pub(crate) fn new(source: Source, mut resolution: Resolution) -> Self {
        let report = estimated(&mut resolution).map(|(_, report)| report);
        Self { source, resolution, report }
    }

    /// Model, cluster, layout and recipe; `None` if the texts do not form a plan.
    #[must_use]
    pub fn plan(&self) -> Option<&Plan> {
        self.resolution.plan.as_ref()
    }

    /// Every estimate of the plan.
    #[must_use]
    pub fn report(&self) -> Option<&Report> {
        self.report.as_ref()
    }

    /// Every estimate of the plan, or why there is none.
    ///
    /// # Errors
    /// What keeps the texts from an estimate.
    pub fn into_report(self) -> Result<Report, NoPlan> {
        let Self { source, resolution, report } = self;
        report.ok_or_else(|| {
            // Warnings do not prevent a plan, so they are not a reason.
            let is_error = |said: &&Diagnostic| said.severity == Severity::Error;
            let errors = resolution.diagnostics.iter().filter(is_error);
            NoPlan {
                // Rendered here, while the source is available: the error outlives it.
                rendered: errors.clone().map(|error| render(&source, error)).collect(),
                errors: errors.cloned().collect(),
                questions: resolution.questions,
                not_modelled: resolution.not_modelled,
            }
        })
    }

    /// Every setting with its value and where that comes from.
    #[must_use]
    pub fn settings(&self) -> &[Setting] {
        &self.resolution.settings
    }

    /// A setting by Megatron's name in snake case.
    #[must_use]
    pub fn setting(&self, name: &str) -> Option<&Setting> {
        self.resolution.setting(Field::named(name)?)
    }

    /// What the texts leave open and the estimate needs; [`Run::setting`](crate::Run::setting) or
    /// [`Run::variable`](crate::Run::variable) answers by the question's name.
    #[must_use]
    pub fn questions(&self) -> &[Question] {
        &self.resolution.questions
    }

    /// Diagnostics about the texts, errors first.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.resolution.diagnostics
    }

    /// A diagnostic as shown in a terminal, with the line that it points to.
    #[must_use]
    pub fn render(&self, diagnostic: &Diagnostic) -> String {
        render(&self.source, diagnostic)
    }

    /// Settings that change figures and have no formula: no verdict is given with them, unless the setting `without` names
    /// them.
    #[must_use]
    pub fn not_modelled(&self) -> &[NotModelled] {
        &self.resolution.not_modelled
    }

    /// The JSON document `shardscope/report/2`: the one that the page downloads and the terminal prints.
    #[must_use]
    pub fn to_json(&self) -> String {
        document(&self.source, &self.resolution, self.report.as_ref(), true)
    }

    /// The report for a terminal; `None` without a plan.
    #[must_use]
    pub fn to_text(&self) -> Option<String> {
        Some(text::text(self.plan()?, self.report()?))
    }

    /// The report for a pull request; `None` without a plan.
    #[must_use]
    pub fn to_markdown(&self) -> Option<String> {
        Some(text::markdown(self.plan()?, self.report()?))
    }
}

/// Why texts do not form a plan. Displayed, it is every error with the line that it points to, followed by the open
/// questions.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NoPlan {
    /// What is wrong with the texts.
    pub errors: Vec<Diagnostic>,
    /// What they leave open.
    pub questions: Vec<Question>,
    /// Settings that have no formula.
    pub not_modelled: Vec<NotModelled>,
    rendered: Vec<String>,
}

impl Display for NoPlan {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("the text makes no plan")?;
        for error in &self.rendered {
            write!(formatter, "\n{error}")?;
        }
        for item in &self.not_modelled {
            write!(formatter, "\n{}", item.sentence())?;
        }
        for question in &self.questions {
            write!(formatter, "\nopen: {} ({})", question.prompt, question.name())?;
        }
        Ok(())
    }
}

impl Error for NoPlan {}

#[cfg(test)]
mod tests {
    use crate::Run;
    use std::error::Error;

    #[test]
    fn what_keeps_a_text_from_a_plan_is_an_error_that_says_it() {
        let answer =
            Run::new("torchrun --nnodes $N --nproc_per_node 8 pretrain_gpt.py --num-layers x --bf16")
                .answer();
        assert!(answer.plan().is_none() && answer.to_text().is_none());
        assert!(answer.to_json().contains("\"report\": null"));
        let why: Box<dyn Error> = match answer.into_report() {
            Ok(report) => panic!("a report of {:?}", report.parameters.total),
            Err(why) => Box::new(why),
        };
        let said = why.to_string();
        assert!(said.contains("num_layers takes a whole number, not \"x\""), "{said}");
        assert!(said.contains("open: "), "{said}");
    }
}
