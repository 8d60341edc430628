//! Forward and backward of the output layer and its loss.

use super::super::fused_head::{self, gathered_head};
use super::super::tape::Step;
use super::super::{manual, whole_logits};
use super::layers::in_full;
use super::shared::{AUTOGRAD, FLOAT, INPUT, LOSS, NARROW, returned};
use super::{completions, sampled_head, scored_states};
use crate::output_layer::policy_kernel;
use crate::{Operator, Parts, Saved, Symbols, Transient};
use shardscope_explain::Formula;
use shardscope_plan::{
    LogProbs, LossKind, NumberFormat, Objective, PreferenceLogits, Quantization, Reference,
};
use shardscope_units::Bytes;

const LIGER: &str = "liger_kernel/ops/fused_linear_cross_entropy.py:fused_linear_cross_entropy_forward";

const ROWS: &str =
    "litgpt/utils.py:chunked_cross_entropy, and lightning/fabric/plugins/precision/half.py:convert_output";

const OLMO: &str = "olmo/train.py:Trainer.model_forward, train_micro_batch";
const CHUNKS: &str = "torchtune/modules/loss: autograd takes the chunks one by one, the last one first";
const ENTROPIES: &str = "verl/workers/actor/dp_actor.py, verl/utils/torch_functional.py:entropy_from_logits, which torch compiles";
static LOGITS: Formula = Formula::new("n·V·Bc", "The logits as the output layer made them.", LOSS);
static COPY: Formula = Formula::new("4·n·V", "The logits in fp32.", LOSS);

static BOTH: Formula = Formula::new("8·n·V", "Gradients of the log-softmax and of the logits, fp32.", LOSS);

static SCATTERED: Formula = Formula::new(
    "2·n·V·Bc",
    "The picked log-probabilities' gradient, scattered over the vocabulary, and that of the logits.",
    "open_instruct/model_utils.py:log_softmax_and_gather, which torch compiles",
);

static WHOLE: Formula = Formula::new(
    "2·b·(s - 1)·V·Bl",
    "Gradients of the log-softmax and of the logits.",
    "princeton-nlp/SimPO scripts/simpo_trainer.py:SimPOTrainer.get_batch_logps",
);

static ONE: Formula = Formula::new("4·n·V", "Gradient of the fp32 logits.", LOSS);

static JOINED: Formula = Formula::new(
    "2·n·V·Bc",
    "The logits' gradient, joined of its chunks and padded by the last token.",
    ROWS,
);

static SHIFTED: Formula = Formula::new(
    "b·(s - 1)·V·Bc",
    "A copy of the logits but the last of each sequence, or its gradient.",
    OLMO,
);

static SHIFTED_COPY: Formula = Formula::new("4·b·(s - 1)·V", "The same in fp32.", OLMO);

static SHIFTED_BOTH: Formula =
    Formula::new("8·b·(s - 1)·V", "Gradients of the log-softmax and of the logits, fp32.", OLMO);

static PART: Formula = Formula::new("rows·V·Bc", "Logits of a chunk of tokens, or their gradient.", CHUNKS);

static PART_COPY: Formula = Formula::new("4·rows·V", "Logits of a chunk of tokens in fp32.", CHUNKS);

static PART_GRADIENTS: Formula = Formula::new(
    "8·rows·V",
    "Gradients of the log-softmax and of the logits of a chunk of tokens, fp32.",
    CHUNKS,
);

static PART_INPUTS: Formula =
    Formula::new("2·n·h·B", "Gradients of the output layer's input, chunk by chunk and joined.", CHUNKS);

static HEADS: Formula = Formula::new(
    "2·V·h·B",
    "One chunk's part of the output layer's weight gradient, and the running sum.",
    CHUNKS,
);

static SAMPLED_ENTROPY: Formula = Formula::new(
    "12·entropy_rows·V",
    "Log-softmax of a chunk of tokens, which autocast takes in fp32, its exponential and their product.",
    "skyrl/backends/skyrl_train/utils/torch_utils.py:chunked_entropy_from_logits",
);

static TWO_GRADIENTS: Formula = Formula::new(
    "2·n·V·Bc",
    "Gradients of the logits, of the log-probabilities and of the entropy.",
    ENTROPIES,
);

static SCALED: Formula = Formula::new(
    "n·V·Bc",
    "The logits' gradient over the temperature, beside the one in the logits' place.",
    "verl/workers/actor/dp_actor.py: logits.div_(temperature)",
);

static REFERENCE: Formula = Formula::new(
    "2·4·n·V",
    "The reference's logits in fp32 and their log-softmax, beside the policy's.",
    "llamafactory/train/dpo/trainer.py:get_batch_loss_metrics",
);

static WHOLE_HEAD: Formula = Formula::new(
    "V·h·Bc",
    "The output layer's dequantized weight, for the GEMM of one chunk.",
    "bitsandbytes/autograd/_functions.py:MatMul4Bit.backward",
);

static QUOTIENT: Formula = Formula::new(
    "8·b·(s - 1)·V",
    "The logits over a temperature of 1, fp32, and their log-softmax.",
    "torchtune/rlhf/sequence_processing.py:logits_to_logprobs",
);

pub(super) static HEAD: Formula = Formula::new("V·h·B", "The output layer's weight gradient.", AUTOGRAD);

static FROM_HOST: Formula = Formula::new(
    "V·h·B",
    "The output layer's weight once more, as its GEMM saved it and the host returned it.",
    "torch/autograd/graph.py:save_on_cpu, which packs parameters too",
);

static CHUNK: Formula =
    Formula::new("rows·V·B", "Logits of a chunk of rows, overwritten by their gradient.", LIGER);

/// A loss computed in chunks of tokens: gradients of one chunk at a time, and the weight's as a sum and a summand.
fn chunked(x: &Symbols<'_>, trains: bool) -> Vec<Transient> {
    let (width, part) = (x.compute_width, [x.chunk_rows(), x.v]);
    let all = if x.recipe().loss == LossKind::ChunkedLogits {
        Saved::new("logits", &[x.n, x.v], width, &LOGITS)
    } else {
        Saved::new("logits of a chunk", &part, width, &PART)
    };
    let copy = Saved::new("fp32 logits of a chunk", &part, FLOAT, &PART_COPY);
    let gradients =
        Saved::several("gradients of a chunk's fp32 logits", &[2, part[0], part[1]], FLOAT, &PART_GRADIENTS);
    let mut backward = vec![
        Saved::new("logits gradient of a chunk", &part, width, &PART),
        Saved::several("gradients of the input", &[2, x.n, x.h], x.width, &PART_INPUTS),
    ];
    if trains {
        backward.push(Saved::several("output layer's weight gradients", &[2, x.v, x.h], x.width, &HEADS));
    }
    backward.extend(gathered_head(x));
    vec![
        Transient::forward("loss", if width < FLOAT { vec![all, copy] } else { vec![all] }),
        Transient::new("backward of the loss", Bytes::ZERO, vec![gradients]),
        Transient::new("backward of the output layer", Bytes::ZERO, backward),
    ]
}

/// A loss over chunks of rows. The fp32 logits stay alive until the step ends: the training loop references them.
fn by_rows(x: &Symbols<'_>, trains: bool) -> Vec<Transient> {
    let part = [2, x.chunk_rows(), x.v];
    let logits = Saved::new("fp32 logits", &[x.n, x.v], FLOAT, &COPY);
    let gradients = Saved::new("gradients of a chunk's fp32 logits", &part, FLOAT, &PART_GRADIENTS);
    let mut forward = vec![logits];
    let mut backward =
        vec![logits, Saved::several("gradients of the input", &[2, x.n, x.h], x.width, &PART_INPUTS)];
    if x.recipe().tuning.lora.is_some() {
        // All gradients of the losses exist before those of the preceding products.
        backward.push(Saved::new("gradient of the fp32 logits", &[x.n, x.v], FLOAT, &ONE));
    } else {
        // All tokens but the last of each sequence, unless the labels are those of the next tokens: a copy if there are
        // several, and gradients joined, then padded.
        let copies = x.b > 1 && !x.recipe().software.semantics().modules.labels_come_moved;
        forward.extend(copies.then(|| Saved::new("fp32 logits but the last", &[x.n, x.v], FLOAT, &COPY)));
        backward.push(Saved::several("logits gradients", &[2, x.n, x.v], FLOAT, &JOINED));
    }
    if trains {
        backward.push(
            Saved::new("output layer's weight gradient", &[x.v, x.h], x.width, &HEAD).cut(Parts::Gradient),
        );
    } else if x.recipe().tuning.quantization != Quantization::None {
        backward.extend(in_full(x, "output layer's dequantized weight", &[x.v, x.h], &WHOLE_HEAD));
    }
    vec![
        Transient::forward("loss", forward),
        Transient::new("backward of the loss", Bytes::ZERO, vec![logits, gradients]),
        Transient::new(
            "backward of the output layer",
            returned(Operator::OutputLayer, x, &[Step::Core]),
            backward,
        ),
    ]
}

/// A loss over all tokens but the last of each sequence. The training loop references the logits until the loss is
/// computed; their gradient is computed without the last tokens and then padded.
fn shifted(x: &Symbols<'_>, trains: bool) -> Vec<Transient> {
    let (width, behind) = (x.compute_width, x.s.saturating_sub(1));
    let (wide, part) = ([x.n, x.v], [x.b, behind, x.v]);
    let fused = x.recipe().loss == LossKind::FusedLogits;
    let logits = Saved::new("logits", &wide, width, &LOGITS);
    // One sequence's are a view; for several there is a copy, which a fused loss saves.
    let mut forward = Vec::with_capacity(3);
    forward.extend((x.b > 1 || !fused).then_some(logits));
    let mut loss = Vec::with_capacity(1);
    if fused {
        loss.push(Saved::new("gradient of the logits but the last", &part, width, &SHIFTED));
    } else {
        forward.extend((x.b > 1).then(|| Saved::new("logits but the last", &part, width, &SHIFTED)));
        forward.extend((width < FLOAT).then(|| Saved::new("fp32 logits", &part, FLOAT, &SHIFTED_COPY)));
        let gradients = [2, x.b, behind, x.v];
        loss.push(Saved::new("gradients of the fp32 logits", &gradients, FLOAT, &SHIFTED_BOTH));
    }
    let own = Saved::new("gradient of the logits but the last", &part, width, &SHIFTED);
    let padded = Saved::new("logits gradient", &wide, width, &NARROW);
    let mut backward = vec![padded, Saved::new("gradient of the input", &[x.n, x.h], x.width, &INPUT)];
    backward.extend(trains.then(|| {
        Saved::new("output layer's weight gradient", &[x.v, x.h], x.width, &HEAD).cut(Parts::Gradient)
    }));
    backward.extend(gathered_head(x));
    let gone = returned(Operator::OutputLayer, x, &[Step::Core]);
    vec![
        Transient::forward("loss", forward),
        Transient::new("backward of the loss", Bytes::ZERO, loss),
        Transient::new("padding of the logits' gradient", gone, vec![own, padded]),
        Transient::new("backward of the output layer", gone, backward),
    ]
}

pub(super) fn output_layer(x: &Symbols<'_>) -> Vec<Transient> {
    let width = x.compute_width;
    let tuning = &x.recipe().tuning;
    let trains = if x.tied() { tuning.embedding } else { tuning.head };
    if let Some(moments) = super::head::of_heads(x, trains) {
        return moments;
    }
    if x.recipe().loss == LossKind::FusedLinear {
        let chunk = Saved::new("logits of a chunk", &[x.chunk_rows(), x.v], x.width, &CHUNK);
        let own = x.recipe().software.semantics().modules.logits_chunk.is_some();
        let mut tensors = if own { manual::loss(x) } else { vec![chunk] };
        // Liger accumulates a chunk's part of the weight's gradient within the matmul.
        if trains && own {
            tensors.push(manual::loss_of_head(x));
        }
        return vec![Transient::forward("loss", tensors)];
    }
    if matches!(x.recipe().loss, LossKind::ChunkedLogits | LossKind::ChunkedLinear) {
        return chunked(x, trains);
    }
    if x.recipe().loss == LossKind::ChunkedRows {
        return by_rows(x, trains);
    }
    match x.recipe().loss {
        LossKind::Tiled(_) => return super::super::tiles::transients(x, trains),
        LossKind::PolicyRows => return super::super::policy_rows::transients(x, trains),
        LossKind::PolicyKernel => return policy_kernel::transients(x),
        LossKind::FusedTiles => return fused_head::transients(x, trains),
        _ => {}
    }
    if x.recipe().software.semantics().modules.shifts_logits {
        return shifted(x, trains);
    }
    if tuning.objective == Objective::Policy && x.log_probs() == LogProbs::FusedHead {
        return sampled_head::transients(x);
    }
    match () {
        () if x.cuts_logits() => return completions::transients(x, trains),
        () if x.scores_states() => return scored_states::transients(x),
        () => {}
    }
    let (wide, behind, narrow) = ([x.n, x.v], x.s.saturating_sub(1), width < FLOAT);
    let logits = Saved::new("logits", &wide, width, &LOGITS);
    let weight = trains.then(|| {
        Saved::new("output layer's weight gradient", &[x.v, x.h], x.width, &HEAD).cut(Parts::Gradient)
    });
    let input = Saved::new("gradient of the input", &[x.n, x.h], x.width, &INPUT);
    let mut forward = vec![logits];
    let mut loss = Vec::new();
    let mut backward = vec![Saved::new("logits gradient", &wide, width, &NARROW), input];
    backward.extend(weight);
    backward.extend(gathered_head(x));
    if x.recipe().loss == LossKind::Distributed && x.t > 1 {
        let gone = returned(Operator::OutputLayer, x, &[Step::Core]);
        let mut moments = crate::output_layer::distributed(x);
        moments.push(Transient::new("backward of the output layer", gone, backward));
        return moments;
    }
    if tuning.objective == Objective::Policy && x.log_probs() == LogProbs::Responses {
        return super::responses::transients(x, backward);
    }
    let on_host = x.recipe().offload.saved_tensors;
    if on_host {
        let name = "output layer's weight, back from the host";
        backward.push(Saved::new(name, &[x.v, x.h], x.width, &FROM_HOST));
    }
    // One kernel reads the logits, which are saved directly, and writes their gradient.
    if x.recipe().loss == LossKind::Compiled && x.recipe().software.semantics().modules.compiles_whole {
        forward.clear();
    }
    let of_pairs = super::logits::is_of_pairs(x);
    let next = tuning.objective == Objective::NextToken && !x.takes_log_probs();
    if next && x.recipe().loss != LossKind::Compiled {
        if let Some(gradients) = super::logits::narrow_gradients(x) {
            loss.push(gradients);
        } else if x.gathers_fp32_logits() {
            (forward, loss) = (whole_logits::forward(x), whole_logits::backward(x));
        } else {
            forward.extend(narrow.then(|| Saved::new("fp32 logits", &wide, FLOAT, &COPY)));
            loss.push(Saved::several("gradients of the fp32 logits", &[2, x.n, x.v], FLOAT, &BOTH));
        }
    } else if tuning.objective.reference().is_some()
        && x.recipe().transformers.preference_logits == PreferenceLogits::Fp32
    {
        // The caller references the policy's logits while the reference runs, whose log-softmax is held in addition
        // to its logits.
        forward = vec![Saved::new("fp32 logits", &wide, FLOAT, &COPY)];
        if tuning.objective.reference() != Some(Reference::Precomputed) {
            forward.push(Saved::several(
                "the reference's fp32 logits and log-softmax",
                &[2, x.n, x.v],
                FLOAT,
                &REFERENCE,
            ));
        }
        loss.push(Saved::several("gradients of the fp32 logits", &[2, x.n, x.v], FLOAT, &BOTH));
    } else if tuning.objective.reference().is_some()
        && x.recipe().transformers.preference_logits == PreferenceLogits::Whole
    {
        let width = x.logits_width();
        forward = vec![Saved::new("logits handed on", &wide, width, &super::logits::HANDED_ON)];
        loss.push(Saved::several("gradients of the logits", &[2, x.b, behind, x.v], width, &WHOLE));
    } else if tuning.objective.reference().is_some()
        && x.recipe().transformers.preference_logits == PreferenceLogits::Named
    {
        // In addition to the reference's, which are held all the time.
        forward = vec![Saved::several(
            "quotient of the logits and its log-softmax",
            &[2, x.b, behind, x.v],
            FLOAT,
            &QUOTIENT,
        )];
        if x.recipe().software.semantics().modules.holds_last_reference {
            forward.push(Saved::new("fp32 logits", &wide, FLOAT, &COPY));
        }
        loss.push(Saved::several("gradients of the fp32 logits", &[2, x.n, x.v], FLOAT, &BOTH));
    } else if of_pairs {
        [forward, loss] = super::logits::beside_chosen(x, logits);
    } else if x.takes_log_probs() && x.log_probs() == LogProbs::InPlace {
        // The logits are saved directly, and their gradient overwrites them.
        forward.clear();
        if x.entropy_in_loss() {
            // Compiled for an accelerator, its forward pass writes nothing of the logits' size. Its backward reads
            // them, so their gradients do not overwrite them.
            loss.push(Saved::several("gradients of the logits", &[2, x.n, x.v], width, &TWO_GRADIENTS));
        } else {
            loss.push(Saved::new("gradient over the temperature", &wide, width, &SCALED));
        }
        if x.entropy_rows() > 0 {
            forward.push(Saved::several(
                "entropy of a chunk",
                &[3, x.entropy_rows(), x.v],
                FLOAT,
                &SAMPLED_ENTROPY,
            ));
        }
    } else if tuning.objective == Objective::Policy && x.log_probs() == LogProbs::Fp32Copy {
        loss.push(Saved::new("gradient of the fp32 logits", &wide, FLOAT, &ONE));
    } else if tuning.objective == Objective::Policy && x.log_probs() == LogProbs::Softmax {
        // FSDP outputs the logits in fp32 if configured to; log_softmax makes its own copy of several sequences
        // without their last tokens.
        if x.recipe().transformers.output == Some(NumberFormat::Fp32) {
            forward.clear();
        }
        let behind = [x.b, x.s.saturating_sub(1), x.v];
        forward.push(Saved::new("fp32 logits", &wide, FLOAT, &COPY));
        forward.extend((x.b > 1).then(|| Saved::new("the same but the last", &behind, FLOAT, &SHIFTED_COPY)));
        loss.push(Saved::several("gradients of the fp32 logits", &[2, x.n, x.v], FLOAT, &BOTH));
    } else if tuning.objective == Objective::Policy && x.log_probs() == LogProbs::Compiled {
        loss.push(Saved::several("gradients of the logits", &[2, x.n, x.v], width, &SCATTERED));
    } else if tuning.objective == Objective::Policy && x.log_probs() == LogProbs::CompiledRows {
        // The logits are saved directly.
        forward.clear();
        loss.extend(super::logits::rows_added_up(x, width));
    } else {
        super::logits::behind(x, &mut forward, &mut loss);
    }
    let mut moments = vec![
        Transient::forward("loss", forward),
        // What was offloaded to the host returns when its own backward needs it.
        Transient::new(
            "backward of the loss",
            if on_host { returned(Operator::OutputLayer, x, &[Step::First]) } else { Bytes::ZERO },
            loss,
        ),
        Transient::new(
            "backward of the output layer",
            returned(Operator::OutputLayer, x, &[Step::Core]),
            backward,
        ),
    ];
    let named = x.recipe().transformers.preference_logits == PreferenceLogits::Own;
    if named && tuning.objective == Objective::NextToken {
        moments.push(Transient::forward("metrics of the loss", super::logits::of_samples(x)));
    }
    moments
}
