//! Weights of ZeRO-3 that are gathered one by one, as DeepSpeed did before release 0.5.5: each by a call of its own that
//! host and device wait for (`partition_parameters.py:_allgather_param`, `stage3.py:fetch_sub_module` of v0.3.15).
//!
//! Such a call fills the whole weight with zeros, waits for the device (`torch.cuda.synchronize`), lists a view of it for
//! every rank, gathers into another tensor and copies each rank's part from there (`torch.distributed.all_gather` takes
//! lists); what the call prints reads the weight once more (`param.norm()` of an f-string). A gradient is scattered by
//! `torch.distributed.reduce_scatter`, which takes a list too. Nothing is gathered beside arithmetic: the next call waits
//! for the device, and `overlap_comm` was off by default.

use super::collective::Ring;
use super::parts::Setting;
use crate::compute::real;
use crate::constant::Constant;
use crate::flops::recomputed_layers;
use crate::gathered_alone::{Alone, REUSED, STAYS, gathered_alone};
use crate::parameters::RankParameters;
use shardscope_operators::{Collective, SectionKind, Weight, WeightGroup, section_counts};
use shardscope_units::{Bytes, Quantity, Seconds};

/// Host time of one gather over eight ranks before it is launched, and in its launch (deepspeedai/DeepSpeed, issue 1069:
/// "the pre_launch typically takes 130us, the launch takes 250us about", eight A100, release 0.3.16).
const MEASURED: [Seconds; 2] = [Seconds::microseconds(130.0), Seconds::microseconds(250.0)];
/// Ranks of that measurement.
const MEASURED_RANKS: f64 = 8.0;
/// Of it for each rank: a view of its part, and a copy of it, a kernel. From an operator's call to its launch PyTorch takes
/// 5 to 25 µs, of which a view, which launches nothing, takes the least.
const EACH_RANK: [Seconds; 2] = [Seconds::microseconds(5.0), Seconds::microseconds(15.0)];
/// Bytes that a gather moves on the device per byte of the weight: zeros written, a copy read and written, a norm.
const GATHER_MOVES: f64 = 4.0;
/// And a scatter: the gradient copied into one tensor.
const SCATTER_MOVES: f64 = 2.0;

/// The constants above, for the list of constants.
pub(crate) fn constants() -> Vec<Constant> {
    let micro = |time: Seconds| time.get() * 1e6;
    let issue = "deepspeedai/DeepSpeed, issue 1069: eight A100, release 0.3.16";
    let operator = "5 to 25 µs from an operator's call to its launch; a view launches nothing";
    let keys = "deepspeed/runtime/zero/constants.py";
    vec![
        Constant::new(
            ("MEASURED_BEFORE", micro(MEASURED[0]), "µs"),
            "host time before the launch of a gather of one weight over eight ranks (DeepSpeed before 0.5.5)",
            issue,
        ),
        Constant::new(("MEASURED_LAUNCH", micro(MEASURED[1]), "µs"), "and in its launch", issue),
        Constant::new(
            ("EACH_RANK_BEFORE", micro(EACH_RANK[0]), "µs"),
            "of the first for each rank",
            operator,
        ),
        Constant::new(
            ("EACH_RANK_LAUNCH", micro(EACH_RANK[1]), "µs"),
            "of the second for each rank",
            operator,
        ),
        Constant::new(
            ("STAYS", real(STAYS), "elements"),
            "of weights that such a ZeRO-3 shards, at least",
            keys,
        ),
        Constant::new(("REUSED", real(REUSED), "elements"), "up to whose use a gathered weight stays", keys),
    ]
}

/// Host time of one call over `ranks` ranks: before its launch, and in it.
fn host(ranks: f64) -> [Seconds; 2] {
    [0, 1].map(|part: usize| MEASURED[part] + EACH_RANK[part] * (ranks - MEASURED_RANKS))
}

impl Setting<'_> {
    /// What a micro-batch of the stage that holds `rank`'s parameters waits for in forward and backward, if each weight is
    /// gathered by itself; `part` is the share of micro-batches with which gradients are scattered.
    pub(super) fn each_weight(&self, rank: &RankParameters, part: f64) -> [Seconds; 2] {
        let x = &self.x;
        let stages = &x.plan.layout().stages.stages;
        let stage = usize::try_from(rank.pipeline_rank).ok().and_then(|index| stages.get(index));
        let [mut ahead, mut back] = [Seconds::ZERO; 2];
        for chunk in stage.into_iter().flat_map(|stage| &stage.chunks) {
            for (kind, times) in SectionKind::ALL.into_iter().zip(section_counts(x, chunk)) {
                if times == 0 {
                    continue;
                }
                let again = recomputed_layers(&x.recipe().recompute, kind, times, &chunk.layers);
                for Alone { weight, freed } in gathered_alone(x, kind) {
                    let gathered = self.gather_of(&weight);
                    ahead += gathered * real(times);
                    back += gathered * (real(times) + if freed { again } else { 0.0 });
                    if weight.role.trains() {
                        back += self.scatter_of(&weight) * (real(times) * part);
                    }
                }
            }
        }
        [ahead, back]
    }

    fn ring_of(&self, weight: &Weight) -> Ring {
        if weight.group == WeightGroup::Expert { self.rings.expert_data } else { self.rings.data }
    }

    fn gather_of(&self, weight: &Weight) -> Seconds {
        let (ring, bytes) = (self.ring_of(weight), weight.count().bytes(self.x.width));
        let [before, launch] = host(real(ring.size));
        // Copies are launched while the message moves, and run behind it.
        let moving = ring.time(&self.device, Collective::AllGather, bytes).greater(launch);
        before + moving + self.device.stream(bytes.number() * GATHER_MOVES)
    }

    /// The host prepares a scatter, a flat view and a part of it for every rank and their copies, while the device computes the
    /// two gradients before it; the message follows the copies.
    fn scatter_of(&self, weight: &Weight) -> Seconds {
        let (ring, elements) = (self.ring_of(weight), weight.count());
        let [before, launch] = host(real(ring.size));
        let prepared = before + EACH_RANK[0] * real(ring.size) + launch;
        let gradients = Seconds::new(4.0 * real(self.x.n) * elements.number() / self.device.half.get());
        let bytes: Bytes = elements.bytes(self.x.recipe().reduce_dtype().width());
        (prepared - gradients).greater(Seconds::ZERO)
            + ring.time(&self.device, Collective::ReduceScatter, bytes)
            + self.device.stream(bytes.number() * SCATTER_MOVES)
    }
}
