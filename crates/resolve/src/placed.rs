//! Models that a process loads onto several GPUs, or onto one by its number, where several processes need one each.

use super::table::Table;
use crate::Effect;
use shardscope_plan::{Field, Word, word};

/// Whether more than one GPU is stated; open numbers count as one.
fn has_several(table: &Table) -> bool {
    let machines = table.degree(Field::NumNodes).saturating_mul(table.degree(Field::GpusPerNode));
    table.degree(Field::WorldSize).max(machines) > 1
}

/// Why a run of several GPUs is none of ranks, if it is not.
///
/// accelerate refuses a model on several GPUs in any distributed run, and quantized weights on another GPU than the rank's
/// (`accelerator.py:prepare_model`); in one process it is a pipeline without overlap, or `torch.nn.DataParallel`.
fn of_one_process(table: &Table) -> Option<(word::DeviceMap, &'static str)> {
    let map = table.chosen::<word::DeviceMap>()?;
    let quantized = !table.is_unset_or(&[word::BaseQuantization::None]);
    let what = match map {
        word::DeviceMap::Layers => {
            "layers that one process spreads over its GPUs, which are no ranks; one GPU, or a device_map of each process's own, is \
             modelled"
        }
        word::DeviceMap::Numbered if quantized => {
            "quantized weights that every process loads onto the same GPU, with which several do not start; one GPU, or a \
             device_map of each process's own, is modelled"
        }
        word::DeviceMap::Numbered => return None,
    };
    Some((map, what))
}

/// Whether one GPU is what such a text most likely runs on.
pub(super) fn is_alone(table: &Table) -> bool {
    of_one_process(table).is_some()
}

pub(super) fn lacking(table: &mut Table) {
    if let Some((map, what)) = of_one_process(table).filter(|_| has_several(table)) {
        table.lack(Field::DeviceMap, map.word(), Effect::Memory, what);
    }
}
