//! Embedding, output layer and loss.

use super::heads;
use super::joined;
use super::linear::{Input, OUTPUT_LAYER};
use super::loss_rows::{by_rows, shifted};
use super::norm::caps_last;
use super::preferences::{PREFERENCE, preference};
use super::tape::{Step, Tape};
use crate::output_layer::{over_ranks, policy_kernel};
use shardscope_explain::Formula;
use shardscope_plan::{BaseTraining, LinearModule, LogProbs, LossKind, Objective, Residence};

const EMBEDDING: &str = "torch.nn.functional.embedding";
const BLOOM: &str = "transformers/models/bloom/modeling_bloom.py:BloomModel";
const LOSS: &str = "transformers/loss/loss_utils.py:ForCausalLMLoss";
const CHUNKS: &str = "torchtune/modules/loss/ce_chunked_output_loss.py:CEWithChunkedOutputLoss.forward";
const LINEAR_CHUNKS: &str = "torchtune/modules/loss/cross_entropy_loss.py:LinearCrossEntropyLoss.forward";
const CAPPED: &str = "transformers/models/gemma2/modeling_gemma2.py:Gemma2ForCausalLM";
const LINEAR: &str = "liger_kernel/ops/fused_linear_cross_entropy.py:LigerFusedLinearCrossEntropyFunction";
const SAMPLING: &str =
    "flash_attn/ops/triton/cross_entropy.py:CrossEntropyLoss, as verl/utils/torch_functional.py calls it";
const COMPILED: &str = "open_instruct/grpo_utils.py:forward_for_logprobs, and model_utils.py:log_softmax_and_gather, which torch compiles";
const GRPO: &str = "open_instruct/grpo_utils.py:compute_grpo_loss, loss_fn dapo";
const UPCAST: &str = "openrlhf/models/actor.py:Actor.forward: logits to fp32 before log_probs_from_logits";
/// Bytes of an fp32 number.
const FLOAT: u64 = 4;
/// Bytes of a torch bool.
const BYTE: u64 = 1;
/// Bytes of a torch index (int64).
const INDEX: u64 = 8;

const ADAPTED: &str = "peft/tuners/lora/layer.py:Embedding.forward";
static EMBEDDED_MIDDLE: Formula = Formula::new(
    "n·r·Ba",
    "The rows of lora_embedding_A that the tokens look up, input of lora_embedding_B.",
    ADAPTED,
);
static EMBEDDED_CAST_MIDDLE: Formula =
    Formula::new("n·r·Bc", "The same in 16 bits, in which autocast multiplies.", ADAPTED);
static EMBEDDED_CAST: Formula =
    Formula::new("r·h·Bc", "lora_embedding_B in 16 bits, cast for the product.", ADAPTED);
static CHUNKED_SOFTMAX: Formula =
    Formula::new("4·n·V", "Log-softmax over the vocabulary of every chunk, fp32.", CHUNKS);
static CHUNKED_LABELS: Formula = Formula::new("8·n", "The labels of every chunk, int64.", CHUNKS);
static CHUNKED_TOTALS: Formula = Formula::new("32", "The total weight of each of 8 chunks, fp32.", CHUNKS);
static CHUNKED_COUNTS: Formula =
    Formula::new("16", "Tokens that have a label, counted by the loss and by the recipe, int64.", CHUNKS);
static LABELLED_INPUT: Formula =
    Formula::new("b·(s - 1)·h·B", "The output layer's input for tokens that have a label.", LINEAR_CHUNKS);
static LABELLED: Formula = Formula::new("8·b·(s - 1)", "Which tokens have a label, int64.", LINEAR_CHUNKS);
static LABELLED_LABELS: Formula =
    Formula::new("8·b·(s - 1)", "The labels that are not ignored, int64.", LINEAR_CHUNKS);
static LABELLED_DROPPED: Formula =
    Formula::new("b·(s - 1)·h·Ba", "The same after the adapter's dropout.", LINEAR_CHUNKS);
static LABELLED_MASK: Formula =
    Formula::new("b·(s - 1)·h", "The dropout mask of the adapter's input, one byte each.", LINEAR_CHUNKS);
static LABELLED_MIDDLE: Formula =
    Formula::new("b·(s - 1)·r·Ba", "The output of lora_A, input of lora_B.", LINEAR_CHUNKS);
static COUNTED: Formula =
    Formula::new("8", "Tokens that have a label, which the recipe multiplies by, int64.", CHUNKS);
static LABELLED_SOFTMAX: Formula = Formula::new(
    "4·b·(s - 1)·V",
    "Log-softmax over the vocabulary of every token that has a label, fp32.",
    LINEAR_CHUNKS,
);
static IDS: Formula = Formula::new("8·n", "Token ids, int64.", EMBEDDING);
static WORD_IDS: Formula =
    Formula::new("8·(n - np)", "Indices of the tokens that belong to no image, int64.", EMBEDDING);
static IMAGES: Formula = Formula::new(
    "n",
    "The mask of image tokens, one byte each: their embeddings replace those of the text.",
    "torch.Tensor.masked_scatter, as transformers/models/qwen2_vl/modeling_qwen2_vl.py calls it",
);
static EMBEDDED: Formula = Formula::new("n·h·B", "The input of the norm after the embedding.", BLOOM);
static EMBEDDED_MOMENTS: Formula =
    Formula::new("8·n", "Mean and reciprocal standard deviation of each token, fp32.", BLOOM);
static DROPPED: Formula = Formula::new(
    "n·h",
    "Dropout mask of the embedding, one byte each.",
    "aten/src/ATen/native/cuda/Dropout.cu:native_dropout",
);
static CAP: Formula = Formula::new("n·V·Bc", "The logits' tanh.", CAPPED);
static LOG_SOFTMAX: Formula = Formula::new("4·n·V", "Log-softmax over the vocabulary, always in fp32.", LOSS);
static NARROW_SOFTMAX: Formula = Formula::new("n·V·B", "Log-softmax over the vocabulary in 16 bits.", LOSS);
static LABELS: Formula = Formula::new("8·n", "The labels, moved by one, int64.", LOSS);
static PADDED_LABELS: Formula = Formula::new("8·(s + 1)", "A view of the labels padded by one, int64.", LOSS);
static TOTAL: Formula = Formula::new("4", "The loss's total weight, one fp32 number.", LOSS);
static NARROW_TOTAL: Formula =
    Formula::new("B", "The loss's total weight, in the dtype of the logits.", LOSS);
static COUNT: Formula = Formula::new("8", "Tokens of the batch, one int64.", LOSS);
static INPUT_GRADIENT: Formula =
    Formula::new("n·h·B", "The gradient of the output layer's input, computed in the forward pass.", LINEAR);
static WEIGHT_GRADIENT: Formula =
    Formula::new("V·h·B", "The gradient of the output layer's weight, computed in the forward pass.", LINEAR);
static SUMMED_GRADIENT: Formula =
    Formula::new("4·V·h", "The gradient of the output layer's weight, accumulated in fp32.", LINEAR);

static SAMPLED_LOGITS: Formula = Formula::new(
    "n·V·Bc",
    "The logits, from which the sampled tokens' log-probabilities are taken.",
    SAMPLING,
);
static SAMPLED_COPY: Formula =
    Formula::new("4·n·V", "A copy of the logits in fp32, from which log-probabilities are taken.", UPCAST);
static SAMPLED_SOFTMAX: Formula = Formula::new(
    "4·b·(s - 1)·V",
    "Log-softmax in fp32 of every token but the last of a sequence.",
    "nemo_rl/distributed/model_utils.py:get_next_token_logprobs_from_logits",
);
static ENTROPY: Formula = Formula::new(
    "10·n",
    "Each token's max logit, sum of exponentials and mean logit under the softmax, from which the entropy's gradient is computed.",
    "verl/utils/torch_functional.py:entropy_from_logits, which torch compiles",
);
static SAMPLED_ROWS: Formula =
    Formula::new("n·V·Bc", "Log-softmax of every sampled sequence, in the logits' dtype.", PREFERENCE);
static SAMPLED_SCALED_IN_PLACE: Formula = Formula::new(
    "4·n·V",
    "The logits over the temperature, from which the sampled tokens' are picked, fp32.",
    PREFERENCE,
);
static SAMPLED_SCALED: Formula =
    Formula::new("n·V·Bc", "The logits over the temperature, of which a part is read.", COMPILED);
static SAMPLED_EXTREMES: Formula =
    Formula::new("8·b·(s - 1)", "Each token's max logit and log-sum-exp, fp32.", COMPILED);
static SAMPLED_ROWS_EXTREMES: Formula = Formula::new(
    "8·n",
    "Each token's max logit and log-sum-exp, fp32.",
    "areal/utils/functional/vocab_parallel.py:_gather_logprobs_entropy, which torch compiles",
);
static SAMPLED_NEXT: Formula = Formula::new("8·b·(s - 1)", "The sampled tokens, int64.", COMPILED);
static SAMPLED_LOSS: Formula = Formula::new(
    "24·b·(s - 1)",
    "What the policy loss keeps of each token: masks, ratios, advantages and their weights.",
    GRPO,
);
static SAMPLED_DISTANCE: Formula =
    Formula::new("6·b·(s - 1)", "What the KL term to the reference saves of each token, in 16 bits.", GRPO);
static SAMPLED_SUM: Formula = Formula::new("4·n", "Each token's log-sum-exp, fp32.", SAMPLING);
static SAMPLED: Formula = Formula::new("8·n", "The sampled tokens, int64.", SAMPLING);

/// Tokens, saved if the word embedding trains.
pub(super) fn embedding(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    let tuning = &x.recipe().tuning;
    if let Some(projector) = x.model().vision.and_then(|tower| tower.projector) {
        // Only words are looked up, and the projector's output is inserted between them.
        let words = x.s.saturating_sub(projector.patches);
        return tape.keep(tuning.embedding, "token ids", &[x.b, words], INDEX, &WORD_IDS);
    }
    let adapted = tuning.lora.filter(|lora| lora.modules.has(LinearModule::Embedding)).is_some();
    tape.keep(tuning.embedding || adapted, "token ids", &[x.b, x.s], INDEX, &IDS);
    if adapted {
        // A is looked up as the table is, so that of the two matrices only B's cast is read again.
        let casts = x.dora_width != x.adapter_width;
        let formula = if casts { &EMBEDDED_CAST_MIDDLE } else { &EMBEDDED_MIDDLE };
        tape.keep(true, "embed_tokens LoRA B input", &[x.n, x.lora_rank], x.dora_width, formula);
        tape.keep(casts, "embed_tokens LoRA B cast", &[x.lora_rank, x.h], x.dora_width, &EMBEDDED_CAST);
    }
    // If only the last layers train, it is frozen along with the embedding.
    let trains = tuning.embedding || adapted || tuning.base == BaseTraining::All;
    let normed = x.model().arrangement.embedding_norm && trains;
    tape.keep(normed, "embedding norm input", &[x.n, x.h], x.width, &EMBEDDED);
    tape.keep(normed, "embedding norm statistics", &[2, x.n], FLOAT, &EMBEDDED_MOMENTS);
    // Without a gradient nothing is saved: the first layer's input then has none.
    let drops = x.model().arrangement.dropout.embedding && (tuning.embedding || tuning.reaches_input());
    tape.keep(drops, "mask of the embedding's dropout", &[x.n, x.h], BYTE, &DROPPED);
    let images = x.model().vision.is_some() && tuning.reaches_input();
    tape.keep(images, "image token mask", &[x.b, x.s], BYTE, &IMAGES);
}

/// The output projection and the loss.
pub(super) fn output_layer(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    let tuning = &x.recipe().tuning;
    let trains = if x.tied() { tuning.embedding } else { tuning.head };
    if heads::kept(tape, trains) {
        return;
    }
    if x.recipe().loss == LossKind::FusedLinear {
        tape.keep(true, "gradient of the output layer's input", &[x.n, x.h], x.width, &INPUT_GRADIENT);
        let (width, formula) = if x.recipe().transformers.fp32_accumulation {
            (FLOAT, &SUMMED_GRADIENT)
        } else {
            (x.width, &WEIGHT_GRADIENT)
        };
        tape.keep(trains, "gradient of the output layer's weight", &[x.v, x.h], width, formula);
        return;
    }
    if x.recipe().loss == LossKind::ChunkedLinear {
        return labelled(tape, trains);
    }
    if matches!(x.recipe().loss, LossKind::Tiled(_)) {
        return super::tiles::kept(tape);
    }
    if x.recipe().loss == LossKind::FusedTiles {
        return super::fused_head::kept(tape);
    }
    if x.recipe().loss == LossKind::PolicyRows {
        return super::policy_rows::kept(tape);
    }
    if x.recipe().loss == LossKind::PolicyKernel {
        return tape.saved.extend(policy_kernel::kept(x).map(|saved| (Step::Core, saved)));
    }
    if x.cuts_logits() {
        return super::completions::kept(tape, trains);
    }
    let input = Input { shared: None, needed: true, cast: false };
    tape.step = Step::First;
    OUTPUT_LAYER.run_as(tape, input, [x.h, x.v], trains);
    if x.recipe().loss == LossKind::ChunkedRows {
        joined::cast_for_each_chunk(tape, trains);
    }
    tape.step = Step::Core;
    if x.recipe().loss == LossKind::Distributed && x.t > 1 {
        tape.saved.extend(over_ranks(x).map(|saved| (Step::Core, saved)));
        return;
    }
    if x.gathers_fp32_logits() {
        return super::whole_logits::kept(tape);
    }
    let capped = x.model().arrangement.final_softcap && !caps_last(x);
    tape.keep(capped, "capped logits", &[x.n, x.v], x.compute_width, &CAP);
    match tuning.objective {
        Objective::NextToken if !x.takes_log_probs() => next_token(tape),
        Objective::Dpo { .. } | Objective::Kto { .. } => preference(tape),
        // Heads were handled above.
        _ => policy(tape),
    }
}

/// What a loss over log-probabilities of given tokens saves of the logits, by how the framework computes them.
fn policy(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    match x.log_probs() {
        LogProbs::Compiled => return compiled(tape),
        LogProbs::FusedHead => return super::sampled_head::kept(tape),
        LogProbs::Responses => return super::responses::kept(tape),
        LogProbs::InPlace | LogProbs::CompiledRows => {
            tape.keep(true, "logits", &[x.n, x.v], x.compute_width, &SAMPLED_LOGITS);
        }
        LogProbs::Fp32Copy => tape.keep(true, "fp32 logits", &[x.n, x.v], FLOAT, &SAMPLED_COPY),
        LogProbs::Softmax => {
            let behind = [x.b, x.s.saturating_sub(1), x.v];
            tape.keep(true, "log-softmax", &behind, FLOAT, &SAMPLED_SOFTMAX);
        }
        _ if x.logits_width() == FLOAT => {
            tape.keep(true, "fp32 logits", &[x.n, x.v], FLOAT, &SAMPLED_SCALED_IN_PLACE)
        }
        _ => tape.keep(true, "log-softmax", &[x.n, x.v], x.compute_width, &SAMPLED_ROWS),
    }
    let summed = match x.log_probs() {
        LogProbs::InPlace | LogProbs::Fp32Copy => true,
        LogProbs::ByRow => x.logits_width() == FLOAT,
        _ => false,
    };
    tape.keep(summed, "log of the softmax's sum", &[x.n], FLOAT, &SAMPLED_SUM);
    let extremes = x.log_probs() == LogProbs::CompiledRows;
    tape.keep(extremes, "max logits and sums", &[x.n], 2 * FLOAT, &SAMPLED_ROWS_EXTREMES);
    let supervised = x.recipe().tuning.objective == Objective::NextToken;
    tape.keep(!supervised, "sampled tokens", &[x.n], INDEX, &SAMPLED);
    tape.keep(supervised, "labels", &[x.n], INDEX, &LABELS);
    tape.keep(x.entropy_in_loss(), "max logits and sums", &[x.n], 2 + 2 * FLOAT, &ENTROPY);
}

/// What a compiled log-softmax over all tokens but the last, and the policy loss after it, save.
fn compiled(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    let behind = [x.b, x.s.saturating_sub(1)];
    tape.keep(true, "logits over the temperature", &[x.n, x.v], x.compute_width, &SAMPLED_SCALED);
    tape.keep(true, "max logits and sums", &behind, 2 * FLOAT, &SAMPLED_EXTREMES);
    tape.keep(true, "sampled tokens", &behind, INDEX, &SAMPLED_NEXT);
    tape.keep(true, "policy loss", &behind, 24, &SAMPLED_LOSS);
    let held = x.recipe().rollout.is_some_and(|rollout| rollout.reference != Residence::Absent);
    tape.keep(held, "KL to the reference", &behind, 6, &SAMPLED_DISTANCE);
}

/// Output layer and loss over tokens that have a label, one chunk at a time. Every token but the last of a sequence
/// is assumed to have one: what a data set masks (`train_on_input: False`) is not known.
fn labelled(tape: &mut Tape<'_, '_>, trains: bool) {
    let x = tape.x;
    let behind = x.s.saturating_sub(1);
    let lora = x.recipe().tuning.lora.filter(|lora| lora.modules.has(LinearModule::OutputLayer));
    let drops = lora.is_some_and(|lora| lora.dropout);
    let wide = [x.b, behind, x.h];
    let plain = trains || (lora.is_some() && !drops);
    tape.keep(plain, "lm_head input", &wide, x.width, &LABELLED_INPUT);
    tape.keep(drops, "lm_head LoRA input", &wide, x.adapter_width, &LABELLED_DROPPED);
    tape.keep(drops, "lm_head LoRA dropout mask", &wide, 1, &LABELLED_MASK);
    let middle = [x.b, behind, x.lora_rank];
    tape.keep(lora.is_some(), "lm_head LoRA B input", &middle, x.adapter_width, &LABELLED_MIDDLE);
    tape.keep(true, "log-softmax", &[x.b, behind, x.v], FLOAT, &LABELLED_SOFTMAX);
    tape.keep(true, "tokens with a label", &[x.b, behind], INDEX, &LABELLED);
    tape.keep(true, "labels", &[x.b, behind], INDEX, &LABELLED_LABELS);
    let chunks = x.recipe().software.semantics().modules.loss_chunks;
    tape.keep(true, "total weights", &[chunks], FLOAT, &CHUNKED_TOTALS);
    tape.keep(true, "count of tokens with a label", &[1], INDEX, &COUNTED);
}

/// A loss computed in chunks of tokens; the recipe multiplies it by the number of labelled tokens.
fn chunked(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    tape.keep(true, "log-softmax", &[x.n, x.v], FLOAT, &CHUNKED_SOFTMAX);
    tape.keep(true, "labels", &[x.n], INDEX, &CHUNKED_LABELS);
    let chunks = x.recipe().software.semantics().modules.loss_chunks;
    tape.keep(true, "total weights", &[chunks], FLOAT, &CHUNKED_TOTALS);
    tape.keep(true, "tokens with a label", &[2], INDEX, &CHUNKED_COUNTS);
}

fn next_token(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    if x.recipe().loss == LossKind::ChunkedLogits {
        return chunked(tape);
    }
    if x.recipe().loss == LossKind::ChunkedRows {
        return by_rows(tape);
    }
    if x.recipe().software.semantics().modules.shifts_logits {
        return shifted(tape);
    }
    let narrow = x.recipe().loss == LossKind::TorchNarrow;
    if narrow || x.recipe().loss == LossKind::Compiled {
        tape.keep(true, "log-softmax", &[x.n, x.v], x.width, &NARROW_SOFTMAX);
    } else {
        tape.keep(true, "log-softmax", &[x.n, x.v], FLOAT, &LOG_SOFTMAX);
    }
    // An encoder-decoder's labels are those of the decoder's own positions.
    let moved = x.recipe().software.semantics().modules.labels_come_moved || x.model().encoder.is_some();
    if x.b == 1 && !moved {
        tape.keep(true, "labels", &[x.s + 1], INDEX, &PADDED_LABELS);
    } else {
        tape.keep(true, "labels", &[x.n], INDEX, &LABELS);
    }
    if narrow {
        tape.keep(true, "total weight", &[1], x.width, &NARROW_TOTAL);
    } else {
        tape.keep(true, "total weight", &[1], FLOAT, &TOTAL);
    }
    let counts = x.recipe().transformers.counts_tokens && x.model().encoder.is_none();
    tape.keep(counts, "tokens of the batch", &[1], INDEX, &COUNT);
}
