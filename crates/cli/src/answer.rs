//! What texts resolve to, and what keeps them from being a plan.

use shardscope::bash::Environment;
use shardscope::launch::{Asked, Question, Request, Resolution, read};
use shardscope::link::Pasted;
use shardscope::plan::{Field, Origin, Plan};
use shardscope::report::Report;
use shardscope::session::estimated;
use shardscope::source::{Code, Severity, Source, render};

use crate::output::{CYAN, RED, YELLOW, coloured, harmless};

/// What was read, and its resolution.
pub(crate) struct Answer {
    /// The texts, to resolve spans.
    pub(crate) source: Source,
    /// Plan, settings, questions and diagnostics.
    pub(crate) resolution: Resolution,
    /// Files that were read because the texts name them.
    pub(crate) beside: Vec<String>,
}

/// Resolves `pasted`.
pub(crate) fn answer(pasted: &Pasted) -> Answer {
    let texts = pasted.texts.iter().map(|text| (text.name.as_str(), text.text.as_str()));
    let source = Source::from_files(texts);
    let request = Request { source: &source, environment: &environment(pasted), overrides: &pasted.settings };
    let resolution = read(&request);
    Answer { source, resolution, beside: Vec::new() }
}

/// What the texts of `pasted` take from outside.
pub(crate) fn environment(pasted: &Pasted) -> Environment {
    Environment {
        variables: pasted.environment.clone(),
        // Words behind a script are split here as the page splits them.
        arguments: pasted.arguments.split_ascii_whitespace().map(Into::into).collect(),
    }
}

/// The option that answers a question, with the suggested value or a placeholder.
fn option(question: &Question) -> String {
    let (name, value) = (question.name(), proposed(question));
    match &question.asks {
        // Every word of its answer is a separate variable.
        Asked::Variables => {
            let pairs = value.split(' ').map(|pair| format!("--env {}", word(pair)));
            pairs.collect::<Vec<_>>().join(" ")
        }
        Asked::Arguments | Asked::Argument(_) => format!("--args {}", quoted(value)),
        Asked::Setting(_) => format!("--set {}", word(&format!("{name}={value}"))),
        Asked::Variable(_) | Asked::Recipe | Asked::CommandLine => {
            format!("--env {}", word(&format!("{name}={value}")))
        }
    }
}

/// The suggested answer, or a placeholder.
fn proposed(question: &Question) -> &str {
    // An empty proposal would be an option without a value.
    question.proposal.as_deref().filter(|value| !value.is_empty()).unwrap_or("…")
}

/// `text` as one shell word, unquoted if no shell could misread it: names and suggestions come from the text, and the
/// line is meant to be copied.
fn word(text: &str) -> String {
    let plain = |c: char| {
        c.is_alphanumeric() || matches!(c, '_' | '-' | '+' | '.' | ',' | ':' | '/' | '=' | '@' | '%' | '…')
    };
    if !text.is_empty() && text.chars().all(plain) { text.to_owned() } else { quoted(text) }
}

/// `text` as one quoted shell word.
fn quoted(text: &str) -> String {
    // Double quotes, which every shell has, unless something is special inside them.
    if text.contains(['"', '$', '`', '\\', '!', '\'']) {
        format!("'{}'", text.replace('\'', r"'\''"))
    } else {
        format!("\"{text}\"")
    }
}

/// Codes that mean that a text starts no training, as opposed to starting one and leaving something open.
const NO_LAUNCH: [Code; 6] = [
    Code::NoTrainingCommand,
    Code::NoTraining,
    Code::NotAScript,
    Code::NoText,
    Code::Python,
    Code::UnknownSettings,
];

impl Answer {
    /// The plan and its estimates; if there are none, the diagnostics say why.
    pub(crate) fn estimated(&mut self) -> Option<(Plan, Report)> {
        estimated(&mut self.resolution)
    }

    /// The diagnostics, each with the place it points at.
    pub(crate) fn problems(&self) -> String {
        let mut out = String::new();
        for file in &self.beside {
            let note = coloured("note", CYAN);
            out += &format!("{note}: {} is read as well, which the text names\n\n", harmless(file));
        }
        out += &self.said(Severity::Note);
        out
    }

    /// What must accompany the figures: warnings, and an assumed accelerator.
    pub(crate) fn warnings(&self) -> String {
        let mut out = self.said(Severity::Warning);
        let accelerator = self.resolution.setting(Field::Accelerator);
        if let Some(assumed) = accelerator.filter(|setting| setting.origin == Origin::Default) {
            let note = coloured("note", CYAN);
            out += &format!("{note}: {} is assumed; --accelerator names another\n", assumed.value.written());
        }
        out
    }

    /// The diagnostics of at least this severity.
    fn said(&self, least: Severity) -> String {
        let mut out = String::new();
        for diagnostic in self.resolution.diagnostics.iter().filter(|one| one.severity >= least) {
            // Names of files and variables are a stranger's: control characters must not reach the terminal.
            let shown = harmless(&render(&self.source, diagnostic));
            let colour = match diagnostic.severity {
                Severity::Error => RED,
                Severity::Warning => YELLOW,
                Severity::Note => CYAN,
            };
            // Only the kind is coloured.
            match shown.split_once(':') {
                Some((kind, rest)) => out += &format!("{}:{rest}\n", coloured(kind, colour)),
                None => out += &(shown + "\n"),
            }
        }
        out
    }

    /// The diagnostics and the questions: what keeps the text from being a plan.
    pub(crate) fn obstacles(&self) -> String {
        let mut out = self.problems();
        for question in &self.resolution.questions {
            out += &format!("open: {} ({})\n", harmless(&question.prompt), harmless(question.name()));
        }
        out
    }

    /// The same with the options by which a caller answers the questions.
    pub(crate) fn obstacles_to_caller(&self) -> String {
        let mut out = self.obstacles();
        let questions = &self.resolution.questions;
        if !questions.is_empty() {
            // All positional arguments of a script are one option.
            let (words, others): (Vec<&Question>, Vec<&Question>) =
                // `$1` and the like cannot be given one by one.
                questions.iter().partition(|question| matches!(question.asks, Asked::Argument(_)));
            let mut options: Vec<String> = others.into_iter().map(option).collect();
            let words: Vec<&str> = words.into_iter().map(proposed).collect();
            options.extend((!words.is_empty()).then(|| format!("--args {}", quoted(&words.join(" ")))));
            out += &format!("answer by {}\n", harmless(&options.join(" ")));
        }
        out
    }

    /// The worst obstacle in one line.
    pub(crate) fn obstacle(&self) -> String {
        let resolution = &self.resolution;
        let error = resolution.diagnostics.iter().find(|said| said.severity == Severity::Error);
        let said = match (error, resolution.questions.first()) {
            (Some(error), _) => error.message.clone(),
            (None, Some(question)) => question.prompt.clone(),
            (None, None) => "it does not say enough about a training run".to_owned(),
        };
        harmless(&said)
    }

    /// Whether the text starts a training at all.
    pub(crate) fn launches(&self) -> bool {
        let said = &self.resolution.diagnostics;
        !said.iter().any(|diagnostic| NO_LAUNCH.contains(&diagnostic.code))
    }
}

#[cfg(test)]
mod tests {
    use super::option;
    use shardscope::launch::{Asked, Question};

    fn check(name: &str, proposal: &str, expected: &str) {
        let question = Question {
            asks: Asked::from_name(name),
            prompt: String::new(),
            choices: Vec::new(),
            proposal: Some(proposal.to_owned()),
        };
        assert_eq!(option(&question), expected);
    }

    #[test]
    fn what_a_text_proposes_is_one_word_of_a_shell() {
        check("num_nodes", "1", "--set num_nodes=1");
        check("LAYERS", "", "--env LAYERS=…");
        check("recompute_modules", "core_attn moe", "--set \"recompute_modules=core_attn moe\"");
        check(
            "pipeline_model_parallel_layout",
            "Et*3|(tt|)*14tL",
            "--set \"pipeline_model_parallel_layout=Et*3|(tt|)*14tL\"",
        );
        check("RUN", "a;reboot", "--env \"RUN=a;reboot\"");
        check("RUN", "$(reboot)", "--env 'RUN=$(reboot)'");
        check("RUN", "it's `x`", "--env 'RUN=it'\\''s `x`'");
        check("arguments", "4 $(reboot)", "--args '4 $(reboot)'");
    }
}
