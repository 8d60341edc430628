//! Forward and backward of preference losses under unsloth (`../scored_states.rs` has what they save).

use super::super::scored_states::of_all;
use super::super::tape::Step;
use super::shared::{FLOAT, returned};
use crate::{Operator, Saved, Symbols, Transient};
use shardscope_explain::Formula;
use shardscope_plan::{PreferenceLogits, Reference};
use shardscope_units::Bytes;

const KERNEL: &str = "unsloth_zoo/fused_losses/fused_linear.py:_logprobs_impl";
const TILES: &str = "unsloth_zoo/fused_losses/fused_linear.py:_tiled_layout, fused_linear_rows";
const FORWARD: &str = "unsloth/models/rl_replacements.py:_unsloth_dpo_forward";
const HEAD: &str = "trl/trainer/utils.py:add_fused_lm_head of 1.15";

static TILE: Formula = Formula::new("4·rows·words", "Logits of some tokens and words, fp32.", TILES);
static PART: Formula = Formula::new("4·rows·h", "The gradient of these tokens, added up in fp32.", KERNEL);
static HIDDEN: Formula = Formula::new("n·h·B", "The last norm's output.", FORWARD);
static BESIDE: Formula =
    Formula::new("n·h·B", "The same of the reference, while the policy's has a name.", FORWARD);
static SCORED: Formula =
    Formula::new("b·(s - 1)·h·B", "A copy of last hidden states but the last of each sequence.", KERNEL);
static INPUTS: Formula = Formula::new(
    "L·n·h·B",
    "The inputs of all layers: TRL before 0.29 requests hidden states, which live as long as the model's output.",
    "trl/trainer/dpo_trainer.py:DPOTrainer.concatenated_forward, output_hidden_states of 0.22",
);
static OF_STATES: Formula = Formula::new("b·(s - 1)·h·B", "Gradient of the states that were scored.", KERNEL);
static OF_ALL_STATES: Formula = Formula::new("n·h·B", "Gradient of the last norm's output.", KERNEL);
static PUT: Formula = Formula::new(
    "b·(s - 1)·h·B",
    "The same, scattered back to the positions of all tokens but the last of each sequence.",
    HEAD,
);
static WHOLE: Formula =
    Formula::new("n·h·B", "The same, scattered back to the positions of all tokens.", FORWARD);
static OF_EACH: Formula = Formula::new("4·b·(s - 1)", "Gradient of each log-probability, fp32.", KERNEL);
static OF_EACH_OF_ALL: Formula = Formula::new("4·n", "Gradient of each log-probability, fp32.", KERNEL);

/// What is held in addition.
pub(super) fn transients(x: &Symbols<'_>) -> Vec<Transient> {
    let (rows, width) = (x.chunk_rows(), x.width);
    let (behind, all) = ([x.b, x.s.saturating_sub(1), x.h], [x.n, x.h]);
    let old = of_all(x);
    let labelled = x.recipe().transformers.preference_logits == PreferenceLogits::LabelledStates;
    let objective = x.recipe().tuning.objective;
    let runs = objective.reference().is_some_and(|from| from != Reference::Precomputed);
    let mut forward = vec![
        Saved::new("logits of a tile", &[rows, x.tile_words()], FLOAT, &TILE),
        Saved::new("gradient of a tile's tokens", &[rows, x.h], FLOAT, &PART),
        Saved::new("last hidden states", &all, width, &HIDDEN),
    ];
    if old {
        // The policy's states are those that layers save, unless these are offloaded; the reference's are separate.
        let named = runs || x.recipe().offload.layer_inputs;
        let inputs = [x.model().num_layers, x.n, x.h];
        forward.extend(named.then(|| Saved::new("inputs of all layers", &inputs, width, &INPUTS)));
    } else {
        forward.push(Saved::new("states that are scored", &behind, width, &SCORED));
        forward.extend(runs.then(|| Saved::new("the reference's last hidden states", &all, width, &BESIDE)));
    }
    let (part, each) = if old {
        (
            Saved::new("gradient of the last hidden states", &all, width, &OF_ALL_STATES),
            Saved::new("gradient of log-probabilities", &[x.n], FLOAT, &OF_EACH_OF_ALL),
        )
    } else {
        (
            Saved::new("gradient of the states that were scored", &behind, width, &OF_STATES),
            Saved::new("gradient of log-probabilities", &behind[..2], FLOAT, &OF_EACH),
        )
    };
    let mut moments = vec![
        Transient::forward("loss", forward),
        Transient::new("backward of the loss", Bytes::ZERO, vec![part, each]),
    ];
    if !old {
        let gone = returned(Operator::OutputLayer, x, &[Step::Core]);
        let whole = Saved::new("gradient of the last hidden states", &all, width, &WHOLE);
        let put = labelled.then(|| Saved::new("gradient of all states but the last", &behind, width, &PUT));
        let tensors = [part].into_iter().chain(put).chain([whole]).collect();
        moments.push(Transient::new("backward of the output layer", gone, tensors));
    }
    moments
}
