//! The batch: micro-batch, global batch and number of micro-batches (`num_microbatches_calculator.py`).

use super::packs::{self, Pack};
use super::table::Table;
use crate::Origin;
use crate::SettingValue::Int;
use shardscope_plan::hints::nearest_multiple;
use shardscope_plan::{Field, Software};
use shardscope_source::Code;

/// Micro-batch, global batch and micro-batches of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) micro: u64,
    pub(super) global: u64,
    pub(super) count: u64,
    /// The contents of a sequence that holds several samples.
    pub(super) pack: Option<Pack>,
}

/// Whether the micro-batch follows from the global batch and the number of micro-batches.
pub(super) fn follows(table: &Table) -> bool {
    !table.has(Field::MicroBatchSize)
        && table.has(Field::GlobalBatchSize)
        && table.has(Field::NumMicroBatches)
}

/// Whether the text states all three batch sizes to DeepSpeed's engine, which stops if they do not match the number of
/// ranks.
pub(super) fn is_stated_whole(table: &Table) -> bool {
    let stated = |field| table.get(field).is_some_and(|setting| matches!(setting.origin, Origin::Script));
    table.chosen::<Software>().is_some_and(|software| software.semantics().deepspeed_engine)
        && [Field::GlobalBatchSize, Field::MicroBatchSize, Field::NumMicroBatches].into_iter().all(stated)
}

/// The batch over `data` replicas; `None` if it does not divide, which is then already reported.
pub(super) fn batch(table: &mut Table, data: u64) -> Option<Batch> {
    // Trainers that pack by tokens have no micro-batch of samples, and none of the rules below.
    if let Some(capacity) = packs::capacity(table) {
        let (count, pack) = packs::packs(table, capacity, data)?;
        // Saturating throughout: sizes come from a text, and a limit later rejects anything that overflows.
        return Some(Batch { micro: 1, global: count.saturating_mul(data), count, pack: Some(pack) });
    }
    if follows(table) {
        // A trainer that splits a stated global batch into a stated number of micro-batches.
        let global = table.count(Field::GlobalBatchSize)?;
        let share = data.saturating_mul(table.count(Field::NumMicroBatches)?).max(1);
        if !global.is_multiple_of(share) {
            let fields = [Field::GlobalBatchSize, Field::NumMicroBatches, Field::DataParallelSize];
            let message =
                format!("global batch {global} is not a multiple of DP {data} x micro-batches = {share}");
            let hint =
                format!("{} would do, or another multiple of {share}", nearest_multiple(global, share));
            table.refuse(Code::GlobalBatch, &fields, message, &hint);
            return None;
        }
        table.derive(Field::MicroBatchSize, Int(global / share), "global batch / (DP x micro-batches)");
    }
    let micro = table.count(Field::MicroBatchSize)?;
    let slice = micro.saturating_mul(data);
    // Before the default below: the schedule states a global batch.
    schedule(table);
    // `swift/trainers/arguments.py` counts ranks, whatever they share.
    if let Some(least) = table.count(Field::LeastBatchSize)
        && !table.has(Field::GlobalBatchSize)
    {
        let all = micro.saturating_mul(table.number(Field::WorldSize)).max(1);
        table.derive(
            Field::NumMicroBatches,
            Int(least.div_ceil(all)),
            "the least batch / (micro batch x ranks), rounded up",
        );
    }
    if let Some(count) = table.count(Field::NumMicroBatches)
        && !table.has(Field::GlobalBatchSize)
    {
        table.derive(
            Field::GlobalBatchSize,
            Int(slice.saturating_mul(count)),
            "micro batch x DP x micro-batches",
        );
    }
    // Megatron's own default (arguments.py: micro_batch_size * data_parallel_size).
    table.derive(Field::GlobalBatchSize, Int(slice), "micro batch x DP (one micro-batch), unless given");
    let mut global = table.count(Field::GlobalBatchSize)?;
    // Megatron only rounds if this flag is set, and only down.
    if !global.is_multiple_of(slice) && table.on(Field::DecreaseBatchSizeIfNeeded) && global > slice {
        global = global / slice * slice;
        let by_itself = table
            .chosen::<Software>()
            .is_some_and(|software| matches!(software, Software::Litgpt | Software::LitgptPretrain));
        let rule = if by_itself {
            "rounded down to a multiple of micro batch x DP, as litgpt does (litgpt/args.py)"
        } else {
            "rounded down to a multiple of micro batch x DP (--decrease-batch-size-if-needed)"
        };
        table.overrule(Field::GlobalBatchSize, Int(global), rule);
    }
    // Megatron stops here as well. Rounding would estimate a batch that nobody asked for.
    if !global.is_multiple_of(slice) || global == 0 {
        let fields = [Field::GlobalBatchSize, Field::MicroBatchSize, Field::DataParallelSize];
        // Below one slice there is nothing to round to, so the message states a size and not a remainder.
        let is = if global < slice { "less than" } else { "no multiple of" };
        let message = format!("global batch {global} is {is} micro batch {micro} x DP {data} = {slice}");
        let nearest = nearest_multiple(global, slice);
        let hint = format!("{nearest} would do, or another multiple of {slice}");
        table.refuse(Code::GlobalBatch, &fields, message, &hint);
        return None;
    }
    let count = global / slice;
    let said = table.number(Field::NumMicroBatches);
    if is_stated_whole(table) && said != count {
        let fields =
            [Field::GlobalBatchSize, Field::MicroBatchSize, Field::NumMicroBatches, Field::DataParallelSize];
        let batch = slice.saturating_mul(said);
        let message = format!(
            "global batch {global} is not micro batch {micro} x accumulation {said} x DP {data} = {batch}; DeepSpeed's engine refuses that"
        );
        table.refuse(
            Code::GlobalBatch,
            &fields,
            message,
            &format!("{batch} would do, or accumulation over {count}"),
        );
        return None;
    }
    // Otherwise overruled: Megatron also ignores a stated number that disagrees with the batch.
    table.overrule(Field::NumMicroBatches, Int(count), "global batch / (micro batch x DP)");
    ramp_up(table, slice, global);
    Some(Batch { micro, global, count, pack: None })
}

/// `--step-batch-size-schedule "0:768 250B:1536"`: the size after the last threshold is used.
fn schedule(table: &mut Table) {
    let text = table.word(Field::StepBatchSizeSchedule).to_owned();
    if text.is_empty() {
        return;
    }
    if table.has(Field::GlobalBatchSize) {
        let fields = [Field::GlobalBatchSize, Field::StepBatchSizeSchedule];
        let message = "a batch-size schedule and a global batch size exclude each other".to_owned();
        table.refuse(Code::BatchGivenTwice, &fields, message, "leave --global-batch-size out");
        return;
    }
    // The last step is the longest part of the run, whose memory and step time matter.
    let mut steps = text.split([' ', ',']).filter(|step| !step.is_empty());
    let last = steps.next_back().and_then(|step| step.rsplit(':').next()?.trim().parse::<u64>().ok());
    match last.filter(|size| *size > 0) {
        Some(size) => {
            table.derive(Field::GlobalBatchSize, Int(size), "the last size of step_batch_size_schedule")
        }
        None => table.warn(
            Code::BadSchedule,
            Field::StepBatchSizeSchedule,
            "step_batch_size_schedule is not of the form 0:768 250B:1536",
        ),
    }
}

/// A growing batch is estimated at its final size (`num_microbatches_calculator.py`, until core 0.17).
fn ramp_up(table: &mut Table, slice: u64, global: u64) {
    let ramp = table.counts(Field::RampupBatchSize);
    if ramp.is_empty() {
        return;
    }
    let [start, increment, _] = *ramp.as_slice() else {
        let message = format!("rampup_batch_size has {} numbers", ramp.len());
        let hint = "three: start batch size, increment, ramp-up samples";
        table.refuse(Code::Rampup, &[Field::RampupBatchSize], message, hint);
        return;
    };
    if increment == 0 || start > global || !(global - start).is_multiple_of(increment) {
        let message = format!("a batch cannot ramp up from {start} by {increment} to {global}");
        let fields = [Field::RampupBatchSize, Field::GlobalBatchSize];
        table.refuse(Code::Rampup, &fields, message, "");
    // A run whose batch has grown past this works, so this is a warning and not an error.
    } else if !start.is_multiple_of(slice) || !increment.is_multiple_of(slice) {
        let message = format!(
            "a batch that ramps up from {start} by {increment} is not always a multiple of micro batch x DP = {slice}: a run from the start would stop"
        );
        table.warn(Code::Rampup, Field::RampupBatchSize, &message);
    }
}
