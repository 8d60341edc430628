//! Losses over the rows of logits that have a next token, and over chunks of them.

use super::tape::Tape;
use shardscope_explain::Formula;
use shardscope_plan::LossKind;

const ROWS: &str =
    "litgpt/utils.py:chunked_cross_entropy, and lightning/fabric/plugins/precision/half.py:convert_output";
const SHIFTED: &str = "olmo/train.py:Trainer.model_forward, cross_entropy_loss";
const FUSED_LOGITS: &str = "olmo/train.py:Trainer.model_forward, fused_loss_fn; flash_attn/ops/triton/cross_entropy.py:CrossEntropyLoss";
/// Bytes of an fp32 number.
const FLOAT: u64 = 4;
/// Bytes of a torch index (int64).
const INDEX: u64 = 8;

static ROWS_SOFTMAX: Formula =
    Formula::new("4·b·(s - 1)·V", "Log-softmax over the vocabulary; Fabric casts the logits to fp32.", ROWS);
static ALL_ROWS_SOFTMAX: Formula =
    Formula::new("4·n·V", "Log-softmax over the vocabulary; Fabric casts the logits to fp32.", ROWS);
static ALL_ROWS_LABELS: Formula = Formula::new("8·n", "The labels, moved by one, int64.", ROWS);
static VIEWED_LABELS: Formula =
    Formula::new("8·s", "The labels, of which all but the first are read, int64.", ROWS);
static ROWS_LABELS: Formula =
    Formula::new("8·b·(s - 1)", "The labels but the first of each sequence, int64.", ROWS);
static ROWS_TOTALS: Formula = Formula::new("4·chunks", "The total weight of each chunk of rows.", ROWS);
static ROWS_COUNT: Formula = Formula::new("8", "Tokens that have a label, int64.", ROWS);
static VIEWED_LOGITS: Formula =
    Formula::new("s·V·Bc", "The logits, of which all but the last are read.", FUSED_LOGITS);
static SHIFTED_LOGITS: Formula =
    Formula::new("b·(s - 1)·V·Bc", "A copy of the logits but the last of each sequence.", FUSED_LOGITS);
static SHIFTED_SUMS: Formula = Formula::new("4·b·(s - 1)", "Each token's log-sum-exp, fp32.", FUSED_LOGITS);
static TOTAL: Formula = Formula::new("4", "The loss's total weight, one fp32 number.", SHIFTED);
static SHIFTED_SOFTMAX: Formula =
    Formula::new("4·b·(s - 1)·V", "Log-softmax over the vocabulary, which autocast casts to fp32.", SHIFTED);

/// A loss computed in chunks of rows, over all tokens but the last of each sequence. With adapters the output layer
/// runs on the same number of tokens of each sequence at a time.
pub(super) fn by_rows(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    if x.recipe().software.semantics().modules.labels_come_moved {
        tape.keep(true, "log-softmax", &[x.n, x.v], FLOAT, &ALL_ROWS_SOFTMAX);
        tape.keep(true, "labels", &[x.n], INDEX, &ALL_ROWS_LABELS);
    } else {
        tape.keep(true, "log-softmax", &[x.b, x.s.saturating_sub(1), x.v], FLOAT, &ROWS_SOFTMAX);
        labels_but_first(tape);
    }
    tape.keep(true, "total weights", &[x.loss_chunks()], FLOAT, &ROWS_TOTALS);
    tape.keep(true, "tokens with a label", &[1], INDEX, &ROWS_COUNT);
}

/// Labels but the first of each sequence: a view of a single sequence's, for several a copy.
fn labels_but_first(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    if x.b == 1 {
        tape.keep(true, "labels", &[x.s], INDEX, &VIEWED_LABELS);
    } else {
        tape.keep(true, "labels", &[x.b, x.s.saturating_sub(1)], INDEX, &ROWS_LABELS);
    }
}

/// A loss over all tokens but the last of each sequence, whose logits are copied if there are several sequences:
/// those of one are a view.
pub(super) fn shifted(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    let behind = x.s.saturating_sub(1);
    if x.recipe().loss == LossKind::FusedLogits {
        if x.b == 1 {
            tape.keep(true, "logits", &[x.s, x.v], x.compute_width, &VIEWED_LOGITS);
        } else {
            tape.keep(true, "logits", &[x.b, behind, x.v], x.compute_width, &SHIFTED_LOGITS);
        }
        tape.keep(true, "log of the softmax's sum", &[x.b, behind], FLOAT, &SHIFTED_SUMS);
    } else {
        tape.keep(true, "log-softmax", &[x.b, behind, x.v], FLOAT, &SHIFTED_SOFTMAX);
        tape.keep(true, "total weight", &[1], FLOAT, &TOTAL);
    }
    labels_but_first(tape);
}
