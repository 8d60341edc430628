//! What a program's trainers are: which of them is built, and whether it keeps the logits of an evaluation.

use super::flow::Given;
use super::known::Known;
use super::names::is_of_name;

/// What is not known of a program with a trainer in each of several branches.
pub(super) const EITHER: &str = "one of several trainers, by a condition that is not decided here";

/// Whether a class is a trainer by its name (`GRPOTrainer`, `GiGPOTrainerV2`).
pub(super) fn is_trainer(class: &str) -> bool {
    let bare = class.trim_end_matches(|sign: char| sign.is_ascii_digit());
    bare.strip_suffix(['V', 'v']).map_or(bare, |bare| bare.trim_end_matches('_')).ends_with("Trainer")
}

/// The trainers that a called name may stand for, each with the place of its assignment (`TrainerClass = GRPOTrainer`);
/// a single one if it is decided.
pub(super) fn by_variable<'t>(
    text: &'t str,
    name: &str,
    at: usize,
    known: &Known<'t>,
) -> Vec<(&'t str, usize)> {
    let mut may_be = Vec::new();
    if name.contains('.') || !name.to_ascii_lowercase().contains("trainer") || is_trainer(name) {
        return may_be;
    }
    for (step, given) in known.flow.given(name, known.flow.step(at).unwrap_or_default()) {
        let (Given::Value(value), Some(step)) = (given, known.flow.steps.get(step as usize)) else {
            continue;
        };
        let class = value.trim().rsplit('.').next().unwrap_or_default();
        let start = step.statement.start;
        if !is_trainer(class) || !class.chars().all(is_of_name) {
            continue;
        }
        match known.runs(text, start, start + step.statement.text.len()) {
            Some(true) if may_be.is_empty() => return vec![(class, start)],
            Some(false) => {}
            _ => may_be.push((class, start)),
        }
    }
    may_be
}

/// A trainer that the program builds in another branch of an `if` than a trainer of another kind.
pub(super) fn either<'t>(built: &[(&'t str, usize)], known: &Known<'_>) -> Option<&'t str> {
    /// Most trainers that are compared.
    const MOST: usize = 8;
    let built = built.get(..built.len().min(MOST)).unwrap_or_default();
    built.iter().enumerate().find_map(|(index, (name, at))| {
        let mut before = built.get(..index).unwrap_or_default().iter();
        before.any(|(other, place)| other != name && known.parted(*place, *at)).then_some(*name)
    })
}

/// transformers' Trainer refuses weights that are quantized throughout, so the program adds adapters somewhere else.
pub(super) const WITHOUT_ADAPTERS: &str = "quantized weights whose adapters are not in this program";

/// What is not estimated. With `compute_metrics` transformers' Trainer concatenates the logits of the whole set on the
/// accelerator before they move to the host (`trainer.py:evaluation_loop`, `trainer_pt_utils.py:EvalLoopContainer`),
/// unless they are reduced or moved before.
pub(super) const KEPT: &str =
    "an evaluation that keeps the logits of all its samples for compute_metrics: its set may be the peak";

/// Whether a trainer's arguments make its evaluation keep them.
pub(super) fn keeps_logits(arguments: &str) -> bool {
    /// Most places of a word that are examined.
    const PLACES: usize = 8;
    let given = |key: &str| {
        arguments.match_indices(key).take(PLACES).any(|(at, _)| {
            let line = arguments.get(..at).unwrap_or_default().rsplit('\n').next().unwrap_or_default();
            let behind = arguments.get(at + key.len()..).unwrap_or_default().trim_start();
            let value = behind.strip_prefix('=').map(str::trim_start);
            let begins = line.trim().is_empty() || line.trim_end().ends_with(['(', ',']);
            begins && value.is_some_and(|value| !value.starts_with("None") && !value.starts_with('='))
        })
    };
    given("compute_metrics")
        && !["preprocess_logits_for_metrics", "eval_accumulation_steps", "batch_eval_metrics"]
            .iter()
            .any(|key| given(key))
}

#[cfg(test)]
mod tests {
    use super::keeps_logits;

    #[test]
    fn metrics_keep_logits_unless_they_are_reduced() {
        for (arguments, keeps) in [
            ("(model=model, compute_metrics=compute_metrics)", true),
            ("(\n    model=model,\n    compute_metrics=metrics,\n)", true),
            ("(model=model, compute_metrics=None)", false),
            ("(model=model, # compute_metrics=metrics\n)", false),
            ("(model, compute_metrics=m, preprocess_logits_for_metrics=argmax)", false),
            ("(model, args=args)", false),
        ] {
            assert_eq!(keeps_logits(arguments), keeps, "{arguments}");
        }
    }
}
