//! Micro-batches with a number of tokens: samples of any length are packed into them.

use super::table::Table;
use crate::SettingValue::Int;
use shardscope_plan::{Field, Origin, RlFramework, Setting};
use shardscope_source::Code;

/// A sequence of several samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pack {
    /// Tokens of the sequence.
    pub(super) tokens: u64,
    /// Tokens of the longest sample.
    pub(super) sample: u64,
}

/// Records the length of a full pack, before the sequence length is needed.
pub(super) fn fill(table: &mut Table) {
    lengths(table);
    let Some(capacity) = capacity(table) else { return };
    // slime does not read `--seq-length` (`slime/backends/megatron_utils/arguments.py`: `variable_seq_lengths`).
    let rule = "a full pack of samples";
    // Overruled: `--seq-length` in such a script is for other code paths.
    table.overrule(Field::SeqLength, Int(capacity), rule);
    table.overrule(Field::MicroBatchSize, Int(1), "one pack of samples");
    table.warn(
        Code::PackedSamples,
        limit(table),
        "samples are packed into micro-batches by tokens: memory is that of a full pack, and the step assumes samples of maximum length; shorter ones make fewer packs",
    );
}

/// The setting that limits a pack, as the text has it.
fn limit(table: &Table) -> Field {
    if table.has(Field::MaxTokensPerMicroBatch) {
        Field::MaxTokensPerMicroBatch
    } else {
        Field::MaxTokensPerGpu
    }
}

/// Tokens of a full pack; none if micro-batches count samples.
pub(super) fn capacity(table: &Table) -> Option<u64> {
    let stated = table.count(Field::MaxTokensPerMicroBatch).or_else(|| {
        // slime only reads the number if the switch is on (`slime/utils/dp_schedule.py`).
        let reads = !is_slime(table) || table.on(Field::UseDynamicBatchSize);
        let tokens = table.count(Field::MaxTokensPerGpu).filter(|_| reads)?;
        // Per GPU: context ranks share a pack.
        Some(tokens.saturating_mul(table.degree(Field::ContextParallelSize)))
    })?;
    // The length that the user sets on the page is that of a pack. If the micro-batch is set too, it is a batch of
    // sequences. Numbers chosen by hand override the text here, or the form's two fields would have no effect.
    let chosen = |field| table.get(field).is_some_and(|setting: &Setting| setting.origin == Origin::User);
    match (chosen(Field::SeqLength), chosen(Field::MicroBatchSize)) {
        (true, true) => None,
        (true, false) => table.count(Field::SeqLength),
        (false, _) => Some(stated),
    }
}

/// Whether slime or its fork miles trains.
pub(super) fn is_slime(table: &Table) -> bool {
    // miles is a fork of slime and uses its name.
    table.is(RlFramework::Slime)
}

/// The longest sample of slime's rollouts. Samples of a micro-batch are packed, not padded, and never truncated.
fn lengths(table: &mut Table) {
    let [prompt, response, context] =
        [Field::MaxPromptLength, Field::MaxResponseLength, Field::MaxContextLength]
            .map(|field| table.count(field));
    let (longest, rule) = match (prompt, response) {
        (Some(prompt), Some(response)) => {
            (Some(prompt.saturating_add(response)), "longest prompt + longest response")
        }
        (None, Some(response)) => (Some(response), "longest response; the length of prompts is not stated"),
        (_, None) => (None, ""),
    };
    let longest = match (longest, context) {
        // Megatron would truncate at the context; a sum that exceeds it is never reached.
        (Some(longest), Some(context)) if longest <= context => Some((longest, rule)),
        (_, Some(context)) => Some((context, "the longest context of a rollout")),
        (longest, None) => longest.map(|longest| (longest, rule)),
    };
    let Some((longest, rule)) = longest else { return };
    table.derive(Field::RolloutLength, Int(longest), rule);
    // Without dynamic batches the longest sample forms a micro-batch of its own.
    if is_slime(table) && !table.on(Field::UseDynamicBatchSize) {
        let rule = "slime trains on samples of any length: the longest";
        table.overrule(Field::SeqLength, Int(longest), rule);
        table.default(Field::MicroBatchSize, Int(1), "default of slime");
    }
}

/// Packs per rank of `data` in one step, of at most `capacity` tokens, and the description of a pack; none if the
/// sample length is not known.
///
/// All samples are assumed to have their maximum length. A rank then has ceil(samples x longest / capacity) packs: the
/// number in verl (`verl/utils/seqlen_balancing.py:rearrange_micro_batches`), and the result of first fit if lengths
/// vary (slime, OpenRLHF, NeMo-RL).
pub(super) fn packs(table: &mut Table, capacity: u64, data: u64) -> Option<(u64, Pack)> {
    let sample = table.count(Field::RolloutLength)?;
    table.derive(Field::GlobalBatchSize, Int(data), "one sample of each rank, unless given");
    let samples = table.count(Field::GlobalBatchSize)?;
    let of_rank = samples.div_ceil(data);
    let all = of_rank.saturating_mul(sample);
    // A sample longer than a pack forms one by itself (`slime/utils/dp_schedule.py`), and few samples may not fill one.
    // What prompts add to the responses is not known where slime's text does not limit them, unless it limits both together.
    let cut = !is_slime(table) || !table.has(Field::MaxResponseLength) || table.has(Field::MaxPromptLength);
    let most = match table.count(Field::MaxContextLength) {
        _ if cut => all,
        Some(context) => of_rank.saturating_mul(context),
        None => u64::MAX,
    };
    // Padded after the bounds: padding may exceed the capacity, as in verl.
    let tokens = padded(table, capacity.max(sample).min(most));
    // At least one pack, and no more than there are samples: a pack holds at least one.
    let packs = all.div_ceil(tokens).clamp(1, of_rank);
    // Interleaving needs micro-batches in groups (`dp_schedule.py`, `num_batches_divided_by` of verl).
    let count = if table.degree(Field::VirtualPipelineModelParallelSize) > 1 {
        let group = table
            .count(Field::MicrobatchGroupSizePerVpStage)
            .unwrap_or_else(|| table.degree(Field::PipelineModelParallelSize));
        packs.next_multiple_of(group.max(1))
    } else {
        packs
    };
    if tokens != capacity {
        let rule = if tokens > capacity {
            "one sample, longer than a pack"
        } else {
            "all samples of a rank in one pack"
        };
        table.overrule(Field::SeqLength, Int(tokens), rule);
    }
    warn_of_balance(table, [of_rank, count, sample, tokens]);
    let rule = "packs of a rank: ceil(samples x longest sample / tokens of a pack)";
    table.overrule(Field::NumMicroBatches, Int(count), rule);
    Some((count, Pack { tokens, sample }))
}

/// verl and what is made of it spread a rank's samples evenly over as many micro-batches as their tokens need, without a bound for the
/// largest (`verl/utils/seqlen_balancing.py:rearrange_micro_batches`, Karmarkar-Karp).
fn warn_of_balance(table: &mut Table, [samples, packs, sample, tokens]: [u64; 4]) {
    let balances = table.is_any(&[RlFramework::Verl, RlFramework::VerlShared, RlFramework::EasyR1]);
    let largest = samples.div_ceil(packs.max(1)).saturating_mul(sample);
    if balances && largest > tokens {
        let message = format!(
            "where all samples are of maximum length, the largest micro-batch has {largest} tokens and needs more memory than is told for \
             a pack: samples are spread evenly over as many micro-batches as their tokens need, without a bound"
        );
        table.warn(Code::PackedSamples, limit(table), &message);
    }
}

/// Packs are padded to a multiple of the tensor and context parallel split
/// (`verl/models/mcore/util.py:preprocess_packed_seqs`: TP, or 2 x TP x CP if CP splits the sequence in halves).
fn padded(table: &Table, tokens: u64) -> u64 {
    let [tensor, context] =
        [Field::TensorModelParallelSize, Field::ContextParallelSize].map(|field| table.degree(field).max(1));
    // For balance, ring attention gives each context rank one piece from the front and one from the back.
    let multiple = if context > 1 { tensor.saturating_mul(context).saturating_mul(2) } else { tensor };
    // A length near the limit of 64 bits is not padded and is rejected by its limit.
    tokens.checked_next_multiple_of(multiple).unwrap_or(tokens)
}
