//! The load-balancing loss over the routers of all layers, which transformers works out behind the logits where a trainer asks for the
//! router's logits (`output_router_logits`); recorded by tests/record/router_loss.py.

use super::tape::Tape;
use crate::{Saved, Symbols, Transient};
use shardscope_explain::Formula;
use shardscope_plan::RouterLoss;

const LOSS: &str = "transformers/models/mixtral/modeling_mixtral.py:load_balancing_loss_func";

/// Bytes of an fp32 number, and of a torch index.
const FLOAT: u64 = 4;
const INDEX: u64 = 8;

static SOFTMAX: Formula = Formula::new(
    "Lr·n·E·Bsm",
    "Softmax of the logits of every layer's router, for the balancing loss.",
    LOSS,
);
static PADDING: Formula = Formula::new(
    "8·Lr·n·E",
    "Which tokens of each layer are no padding, for each expert, int64: the balancing loss multiplies by it.",
    LOSS,
);
static LOGITS: Formula = Formula::new(
    "Lr·n·E·Brl",
    "Logits of every layer's router, which the model hands on until its loss is there.",
    "transformers/utils/output_capturing.py",
);
static JOINED: Formula =
    Formula::new("Lr·n·E·Brl", "The same in one tensor (transformers before 5.16).", LOSS);
static CHOSEN: Formula = Formula::new(
    "Lr·n·topk·(8 + Bsm)",
    "The chosen experts of all layers' tokens and their probabilities.",
    LOSS,
);
static ONE_HOT: Formula = Formula::new(
    "8·Lr·n·topk·E",
    "The chosen experts of all layers' tokens as a one-hot tensor, int64.",
    LOSS,
);
static ONE_HOT_FLOAT: Formula = Formula::new("4·Lr·n·topk·E", "The same in fp32.", LOSS);
static ONE_HOT_PADDING: Formula = Formula::new(
    "12·Lr·n·topk·E",
    "Which of these are of no padding, int64, and their product with the one-hot tensor, fp32.",
    LOSS,
);
static LAYER: Formula = Formula::new(
    "4·n·E",
    "Probabilities of one layer's router in fp32, before they are summed over tokens.",
    LOSS,
);

/// Layers with a router, and experts that each chooses from. The loss is the language model's own: with a head for rewards or
/// classes in place of the output layer the base model runs, which has none (`GenericForSequenceClassification`; OpenRLHF's
/// `models/model.py:_get_reward_model`).
fn sizes(x: &Symbols<'_>) -> Option<(RouterLoss, [u64; 3])> {
    if x.labels().is_some() {
        return None;
    }
    let loss = x.recipe().moe.router_loss.filter(|_| x.recipe().software.semantics().eager_modules)?;
    let asks = x.router_layers() > 0 && x.model().arrangement.is_balanced_by_loss();
    asks.then(|| (loss, [x.router_layers(), x.n, x.moe.experts]))
}

/// What it saves.
pub(super) fn kept(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    let Some((loss, routers)) = sizes(x) else { return };
    tape.keep(true, "softmax of all layers' routers", &routers, x.router_softmax_width(), &SOFTMAX);
    let padded = loss == RouterLoss::Joined && x.recipe().transformers.padding_mask;
    tape.keep(padded, "padding of all layers' routers", &routers, INDEX, &PADDING);
}

/// What it holds beside that while it is worked out.
pub(super) fn transient(x: &Symbols<'_>) -> Option<Transient> {
    let (loss, routers) = sizes(x)?;
    let [layers, n, experts] = routers;
    let mut held =
        vec![Saved::new("logits of all layers' routers", &routers, x.router_logits_width(), &LOGITS)];
    if loss == RouterLoss::Layers {
        held.push(Saved::new("probabilities of a router", &[n, experts], FLOAT, &LAYER));
        return Some(Transient::forward("balancing loss", held));
    }
    let choices = [layers, n, x.moe.topk, experts];
    held.push(Saved::new("joined logits of all layers' routers", &routers, x.router_logits_width(), &JOINED));
    held.push(Saved::new("chosen experts", &choices[..3], INDEX + x.router_softmax_width(), &CHOSEN));
    held.push(Saved::new("chosen experts, one-hot", &choices, INDEX, &ONE_HOT));
    held.push(Saved::new("chosen experts, one-hot in fp32", &choices, FLOAT, &ONE_HOT_FLOAT));
    if x.recipe().transformers.padding_mask {
        held.push(Saved::new("padding of chosen experts", &choices, INDEX + FLOAT, &ONE_HOT_PADDING));
    }
    Some(Transient::forward("balancing loss", held))
}
