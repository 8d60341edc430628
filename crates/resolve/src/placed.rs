//! Models that a process loads onto several GPUs, or onto one by its number, where several processes need one each.

use super::table::Table;
use crate::Effect;
use shardscope_plan::{Field, Word, word};

/// Whether more than one GPU is stated; open numbers count as one.
fn has_several(table: &Table) -> bool {
    let machines = table.degree(Field::NumNodes).saturating_mul(table.degree(Field::GpusPerNode));
    table.degree(Field::WorldSize).max(machines) > 1
}

/// accelerate refuses a model on several GPUs in any distributed run, and quantized weights on another GPU than the rank's
/// (`accelerator.py:prepare_model`); in one process it is a pipeline without overlap, or `torch.nn.DataParallel`.
pub(super) fn lacking(table: &mut Table) {
    if !has_several(table) {
        return;
    }
    let Some(map) = table.chosen::<word::DeviceMap>() else { return };
    let what = match map {
        word::DeviceMap::Layers => {
            "layers that one process spreads over its GPUs, with which several processes do not start; one GPU, or a device_map \
             of each process's own, is modelled"
        }
        word::DeviceMap::Numbered if !table.is_unset_or(&[word::BaseQuantization::None]) => {
            "quantized weights that every process loads onto the same GPU, with which several do not start; one GPU, or a \
             device_map of each process's own, is modelled"
        }
        word::DeviceMap::Numbered => return,
    };
    table.lack(Field::DeviceMap, map.word(), Effect::Memory, what);
}
