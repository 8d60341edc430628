//! The outcome of a launch file that is read by itself.

use shardscope_bash::Environment;
use shardscope_launch::Asked;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::Field;
use shardscope_source::{Code, Diagnostic, Severity, Source};

/// More questions than this do not count as an answer.
const FEW: usize = 3;
/// Answers to the question for the model: the first one that gives a plan is used, as a layout may need experts, and a
/// text a vision tower.
const MODELS: [&str; 4] =
    ["Qwen/Qwen2.5-7B", "Qwen/Qwen3-30B-A3B", "deepseek-ai/DeepSeek-V3", "Qwen/Qwen2.5-VL-7B-Instruct"];

/// The answer to the question which linear layers a checkpoint does not quantize, as listed in its configuration.
const LISTED: &str = "lm_head visual vision_tower model.layers.1.mlp";

fn resolved(
    name: &str,
    text: &str,
    variables: &[(String, String)],
    overrides: &[(String, String)],
) -> Resolution {
    let source = Source::from_files([(name, text)]);
    let environment = Environment { variables: variables.to_vec(), ..Environment::default() };
    read(&Request { source: &source, environment: &environment, overrides })
}

/// The outcome of a public file, by its repository and path below `root`; none if it is not available.
pub(crate) fn of_public(root: &std::path::Path, repository: &str, path: &str) -> Option<&'static str> {
    let bytes = std::fs::read(root.join(repository.replace('/', "+")).join(path)).ok()?;
    let name = path.rsplit('/').next().unwrap_or(path);
    Some(outcome(name, &String::from_utf8_lossy(&bytes)).0)
}

/// The outcome and the reason: the questions and the errors.
pub(crate) fn outcome(name: &str, text: &str) -> (&'static str, String) {
    let first = resolved(name, text, &[], &[]);
    if let Some(plan) = &first.plan {
        let marks = plan.recipe().marks.sentences().join(" ");
        return ("full", marks);
    }
    let asked: Vec<String> = first.questions.iter().map(|question| question.name().to_owned()).collect();
    let errors: Vec<&str> = first
        .diagnostics
        .iter()
        .filter(|said| said.severity == Severity::Error)
        .map(|said| said.message.as_str())
        .collect();
    let why = format!("asks [{}]; {}", asked.join(", "), errors.join(" // "));
    if !first.not_modelled.is_empty() {
        return ("stopped", why);
    }
    let tried = MODELS.iter().filter_map(|model| answered(name, text, &first, model));
    let mut tried: Vec<Resolution> = tried.collect();
    if let Some(planned) = tried.iter().position(|answered| answered.plan.is_some()) {
        tried.swap(0, planned);
    }
    if let Some(answered) = tried.into_iter().next() {
        if answered.plan.is_some() {
            // If nothing in a text is understood, the plan comes only from the answers.
            let understood = first.diagnostics.iter().all(|said| !is_lost(said));
            return (if understood { "asked" } else { "helped" }, why);
        }
        let then: Vec<&str> = answered
            .diagnostics
            .iter()
            .filter(|said| said.severity == Severity::Error)
            .map(|said| said.message.as_str())
            .collect();
        let more: Vec<&str> = answered.questions.iter().map(|question| question.name()).collect();
        let outcome = if answered.not_modelled.is_empty() { "helped" } else { "stopped" };
        return (outcome, format!("{why} THEN asks [{}]; {}", more.join(", "), then.join(" // ")));
    }
    let shown = first.diagnostics.iter().filter(|said| said.severity == Severity::Error);
    let helped = shown.clone().any(|said| said.hint.is_some()) && !shown.clone().any(is_lost);
    if helped || !asked.is_empty() { ("helped", why) } else { ("no way", why) }
}

/// Whether a diagnostic says that nothing in a text is understood.
fn is_lost(said: &Diagnostic) -> bool {
    said.severity == Severity::Error && matches!(said.code, Code::NoTrainingCommand | Code::UnknownSettings)
}

/// The resolution when the questions are answered as proposed, including those opened by answers; none if there are
/// more than a few.
fn answered(name: &str, text: &str, first: &Resolution, model: &str) -> Option<Resolution> {
    let (mut variables, mut overrides) = (Vec::new(), Vec::new());
    let mut last: Option<Resolution> = None;
    let mut count = 0;
    loop {
        let now = last.as_ref().unwrap_or(first);
        let open: Vec<_> = now
            .questions
            .iter()
            .filter(|question| {
                let known = |(name, _): &&(String, String)| *name == question.name();
                !variables.iter().any(|pair| known(&pair)) && !overrides.iter().any(|pair| known(&pair))
            })
            .cloned()
            .collect();
        count += open.len();
        if open.is_empty() || count > FEW || now.plan.is_some() || !now.not_modelled.is_empty() {
            return last;
        }
        for question in open {
            let proposal = question.proposal.clone().unwrap_or_else(|| "1".to_owned());
            if question.asks == Asked::Setting(Field::Model) {
                overrides.push((question.name().to_owned(), model.to_owned()));
            } else if question.asks == Asked::Setting(Field::WholeLinears) {
                overrides.push((question.name().to_owned(), LISTED.to_owned()));
            } else if question.asks.setting().is_some() {
                overrides.push((question.name().to_owned(), proposal));
            } else {
                variables.push((question.name().to_owned(), proposal));
            }
        }
        last = Some(resolved(name, text, &variables, &overrides));
    }
}
