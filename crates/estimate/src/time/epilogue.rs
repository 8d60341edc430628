//! The once-per-step part of a step: gradient reduction, gathering of weights, optimizer, tied embeddings.

use super::collective::Ring;
use super::overlap::{Bounds, beyond};
use super::parts::{ChunkParts, Setting};
use crate::compute::real;
use crate::constant::Constant;
use crate::memory::{sent_by_modules, sent_to_host};
use crate::parameters::RankParameters;
use shardscope_operators::Collective;
use shardscope_plan::{BaseTraining, Chunk, DpSharding, Embeddings, NumberFormat, OptimizerKind};
use shardscope_units::{Bytes, BytesPerSecond, Count, Quantity, Seconds};

/// Minimum number of parameters in a gradient bucket (`distributed_data_parallel_config.py:bucket_size`).
const BUCKET: u64 = 40_000_000;
/// The same minimum per data-parallel rank.
const BUCKET_PER_RANK: u64 = 1_000_000;

/// Rate at which a host updates offloaded optimizer states, per accelerator: its share of the host's memory bandwidth
/// (DeepSpeed's CPU Adam: 8e9 parameters over eight accelerators in 1.9 s, ml-engineering 2026).
const HOST_STATES: BytesPerSecond = BytesPerSecond::giga(25.0);

/// Rate of copies between an accelerator and its host, in each direction: PCIe 4 with 16 lanes. On faster links (PCIe
/// 5, NVLink-C2C) copies take less.
const HOST_COPY: BytesPerSecond = BytesPerSecond::giga(31.0);

/// The constants above, for the list of constants.
pub(crate) fn constants() -> Vec<Constant> {
    let bucket = "megatron/core/distributed/distributed_data_parallel_config.py:bucket_size";
    let mut all = vec![
        Constant::new(
            ("BUCKET", real(BUCKET), "elements"),
            "of the last gradient bucket, which nothing hides, at least",
            bucket,
        ),
        Constant::new(
            ("BUCKET_PER_RANK", real(BUCKET_PER_RANK), "elements"),
            "and for each data-parallel rank",
            bucket,
        ),
        Constant::new(
            ("HOST_STATES", HOST_STATES.get() / 1e9, "GB/s"),
            "rate at which a host updates offloaded optimizer states, per accelerator",
            "DeepSpeed's CPU Adam: 8e9 parameters over eight accelerators in 1.9 s (ml-engineering 2026)",
        ),
        Constant::new(
            ("HOST_COPY", HOST_COPY.get() / 1e9, "GB/s"),
            "rate of copies between an accelerator and its host, each way",
            "PCIe 4 x16 (ml-engineering, network/README.md); PCIe 5 and NVLink-C2C are faster",
        ),
    ];
    all.extend(super::updates::constants());
    all
}

/// Times of the epilogue on one stage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Epilogue {
    /// Exposed time of gradient reduction and of gathering weights.
    pub(super) data: Seconds,
    /// The optimizer step.
    pub(super) optimizer: Seconds,
}

impl Setting<'_> {
    /// The epilogue of the stage that holds `rank`'s parameters. `slack` is the time between the stage's last
    /// backward and that of the first stage.
    pub(super) fn epilogue(
        &self,
        rank: &RankParameters,
        whole: &ChunkParts,
        slack: [Seconds; 2],
    ) -> Epilogue {
        let plan = self.x.plan;
        let (reduce, gather) = self.reduction(rank);
        let overlap = plan.recipe().overlap;
        let (forward, backward) = (whole.forward.total(), whole.behind());
        let reduced = self.hidden(rank, reduce, overlap.grad_reduce, backward + slack[1]);
        let gathered = self.hidden(rank, gather, overlap.param_gather, forward + slack[0]);
        Epilogue { data: reduced + gathered, optimizer: self.optimizer(rank) }
    }

    /// The exposed part of data-parallel messages that take `time`, if they overlap (`on`) with `window`.
    fn hidden(&self, rank: &RankParameters, time: Seconds, on: bool, window: Seconds) -> Seconds {
        match self.overlaps.bounds {
            Bounds::Upper => time,
            Bounds::Lower => Seconds::ZERO,
            Bounds::Estimate if on => {
                // The last bucket is only full when backward is over, so this part of the reduction has nothing to
                // hide behind.
                let last = self.last_bucket(rank);
                beyond(time * (1.0 - last), window, self.contention(self.rings.data)) + time * last
            }
            Bounds::Estimate => time,
        }
    }

    /// How long a micro-batch waits for the reduction of its gradients, if ranks that only shard gradients (ZeRO-2)
    /// reduce them after each micro-batch.
    pub(super) fn reduced_at_once(&self, rank: &RankParameters, chunk: &ChunkParts) -> Seconds {
        if !self.reduces_at_once() {
            return Seconds::ZERO;
        }
        let scattered = self.summed(rank, Collective::ReduceScatter, self.x.recipe().reduce_dtype().width());
        self.hidden(rank, scattered, self.x.recipe().overlap.grad_reduce, chunk.behind())
    }

    fn reduces_at_once(&self) -> bool {
        let (plan, recipe) = (self.x.plan, self.x.recipe());
        // A single micro-batch is the same as once per step.
        let often = recipe.num_micro_batches > 1 && plan.reduces_each_backward();
        recipe.dp_sharding == DpSharding::Gradients && often && !self.moves_units()
    }

    /// Whether weights are gathered and gradients scattered unit by unit around the passes of a micro-batch. A pipeline of
    /// PyTorch's whose units stay gathered does so once, before its first micro-batch and behind its last.
    fn moves_units(&self) -> bool {
        let plan = self.x.plan;
        plan.gathers_units() && !(plan.stays_gathered() && plan.layout().pipeline > 1)
    }

    /// The time of `collective` on all trainable parameters, `width` bytes each, among data-parallel ranks and those
    /// of experts.
    fn summed(&self, rank: &RankParameters, collective: Collective, width: u64) -> Seconds {
        let groups = [(self.rings.data, rank.dense_trained()), (self.rings.expert_data, rank.expert_trained)];
        groups.iter().map(|(ring, count)| ring.time(&self.device, collective, count.bytes(width))).sum()
    }

    /// The time to all-reduce every gradient, each in its own format.
    fn summed_everywhere(&self, rank: &RankParameters) -> Seconds {
        let recipe = self.x.recipe();
        let widths = [recipe.reduce_dtype(), recipe.adapters_reduce_dtype()].map(NumberFormat::width);
        let [all, of_experts] = rank.adapters;
        let dense = Count::new(all.get().saturating_sub(of_experts.get()));
        let bytes = |trained: Count, adapters: Count| {
            Count::new(trained.get().saturating_sub(adapters.get())).bytes(widths[0])
                + adapters.bytes(widths[1])
        };
        let time = |ring: &Ring, bytes: Bytes| ring.time(&self.device, Collective::AllReduce, bytes);
        time(&self.rings.data, bytes(rank.dense_trained(), dense))
            + time(&self.rings.expert_data, bytes(rank.expert_trained, of_experts))
    }

    /// Times of gradient reduction and of gathering weights once per step, without any overlap.
    fn reduction(&self, rank: &RankParameters) -> (Seconds, Seconds) {
        let recipe = self.x.recipe();
        let gradient = recipe.reduce_dtype().width();
        let weight = match &recipe.fp8 {
            Some(fp8) if fp8.param_gather => 1,
            _ => self.x.width,
        };
        let sum = |collective: Collective, width: u64| self.summed(rank, collective, width);
        match recipe.dp_sharding {
            // Units are gathered and scattered around every micro-batch (`sharded_weights`), not once a step.
            _ if self.moves_units() => {
                let at_once = self.x.plan.sums_groups_at_once();
                (if at_once { Seconds::ZERO } else { self.across_groups(rank) }, Seconds::ZERO)
            }
            // Every replica steps all weights itself, so no gather follows.
            DpSharding::Replicated => (self.summed_everywhere(rank), Seconds::ZERO),
            DpSharding::OptimizerStates | DpSharding::Gradients | DpSharding::Parameters => {
                let scattered = if self.reduces_at_once() {
                    Seconds::ZERO
                } else {
                    sum(Collective::ReduceScatter, gradient)
                };
                (scattered + self.across_groups(rank), sum(Collective::AllGather, weight))
            }
        }
    }

    /// The time to sum all gradient shards across replica groups.
    fn across_groups(&self, rank: &RankParameters) -> Seconds {
        let layout = self.x.plan.layout();
        let shards =
            [(rank.dense_trained(), layout.dense_shards()), (rank.expert_trained, layout.expert_shards())];
        let width = self.x.recipe().reduce_dtype().width();
        let sent = |(count, shards): (Count, u64)| Count::new(count.get().div_ceil(shards)).bytes(width);
        let time = |bytes: Bytes| self.rings.across.time(&self.device, Collective::AllReduce, bytes);
        shards.into_iter().map(sent).map(time).sum()
    }

    /// The time to copy one micro-batch's saved tensors to the host; copying them back takes as long again. Both run
    /// on the compute stream, so nothing hides them (`torch/autograd/graph.py:save_on_cpu`; `Tensor.to` of
    /// LLaMA-Factory's checkpoints). The lower bound assumes them hidden.
    pub(super) fn copied_to_host(&self) -> Seconds {
        let offload = &self.x.recipe().offload;
        let sends = (offload.saved_tensors || offload.every_input) && self.overlaps.bounds != Bounds::Lower;
        let bytes = if sends { sent_to_host(self.x.plan) } else { Bytes::ZERO };
        Seconds::new(real(bytes.get()) / HOST_COPY.get())
    }

    /// The exposed part of copying a chunk's offloaded modules to the host and back for a micro-batch:
    /// `[forward, backward]`. Each direction has its own stream (`fine_grained_activation_offload.py`: `d2h_stream`,
    /// `h2d_stream`). Nothing waits for tensors on their way to the host except their own return, so both passes can
    /// hide them; returning tensors are requested one module ahead, and only backward can hide them.
    pub(super) fn offloaded(&self, chunk: &Chunk, parts: &ChunkParts) -> [Seconds; 2] {
        if self.x.recipe().offload.modules.is_empty() {
            return [Seconds::ZERO; 2];
        }
        let link = &self.x.plan.cluster().accelerator.host_link;
        let bytes = real(sent_by_modules(self.x.plan, chunk).get());
        let copied = Seconds::new(bytes / link.bandwidth.get().max(1.0));
        match self.overlaps.bounds {
            Bounds::Lower => [Seconds::ZERO; 2],
            Bounds::Upper => [copied; 2],
            Bounds::Estimate => {
                let back = beyond(copied, parts.behind(), 0.0);
                [beyond(copied, parts.forward.total() + parts.behind() + back, 0.0), back]
            }
        }
    }

    /// The share of the gradients that is only ready when the backward pass is over.
    fn last_bucket(&self, rank: &RankParameters) -> f64 {
        let ranks = self.rings.data.size;
        let bucket = BUCKET.max(BUCKET_PER_RANK.saturating_mul(ranks));
        (real(bucket) / real(rank.trained.get().max(1))).min(1.0)
    }

    /// Gradient norm and clipping, the update itself, and the cast back to the weights' format.
    fn optimizer(&self, rank: &RankParameters) -> Seconds {
        let plan = self.x.plan;
        let recipe = plan.recipe();
        let shards = |dense: bool| -> u64 {
            let layout = plan.layout();
            match (recipe.dp_sharding, dense) {
                (DpSharding::Replicated, _) => 1,
                (_, true) => layout.dense_shards(),
                (_, false) => layout.expert_shards(),
            }
        };
        let own = real(rank.dense_trained().get()) / real(shards(true))
            + real(rank.expert_trained.get()) / real(shards(false));
        let moments = match recipe.optimizer.kind {
            OptimizerKind::Adam => recipe.optimizer.exp_avg.width() + recipe.optimizer.exp_avg_sq.width(),
            OptimizerKind::AdamKahan => 3 * NumberFormat::Bf16.width(),
            OptimizerKind::Sgd => 0,
            OptimizerKind::SgdMomentum
            | OptimizerKind::Muon
            | OptimizerKind::Lion
            | OptimizerKind::SumOfSquares
            | OptimizerKind::Adagrad
            | OptimizerKind::AdamMini
            | OptimizerKind::Adafactor => recipe.optimizer.exp_avg.width(),
            OptimizerKind::AdEmaMix | OptimizerKind::Soap | OptimizerKind::Shampoo => {
                2 * recipe.optimizer.exp_avg.width() + recipe.optimizer.exp_avg_sq.width()
            }
        };
        if let Some(touched) = crate::memory::stepped_bytes(recipe) {
            let trained = recipe.tuning.lora.filter(|_| recipe.tuning.base == BaseTraining::None);
            let width = trained.map_or(recipe.params_dtype.width(), |lora| lora.dtype.width());
            return self.one_by_one(own).unwrap_or_else(|| self.device.optimizer(own * real(touched), width));
        }
        if let Some(update) = self.one_by_one(own) {
            return update;
        }
        let gradient = recipe.grads_dtype.width();
        // The norm reads the gradient, clipping reads and writes it; the update reads the gradient, reads and writes
        // master weights and moments, and the cast reads the masters and writes the weights.
        let states = recipe.optimizer.main_params.width() + moments;
        // 16-bit gradients are copied to fp32 first: read 2, write 4. Then four passes of 4 bytes: norm, clipping
        // twice, update. FSDP has cast them as it reduced them.
        let passes = 4 * crate::memory::gradient_passes(recipe);
        let copied = gradient < 4 && !recipe.software.semantics().casts_reduced_gradients;
        let main_gradient = if copied { gradient + 4 + passes } else { passes };
        let touched = main_gradient + 2 * states + recipe.optimizer.main_params.width() + self.x.width;
        // In that case the host's memory is the bottleneck, and the accelerators of a node share it.
        if recipe.offload.optimizer {
            return Seconds::new(own * real(touched) / HOST_STATES.get());
        }
        // The entire gradient buffer is zeroed.
        let zeroed = real(rank.trained.get()) * real(gradient);
        // Megatron's hybrid optimizer updates its host part after the device part
        // (`core/optimizer/cpu_offloading/hybrid_optimizer.py:step`).
        let host = recipe.optimizer.cpu_offload_fraction.clamp(0.0, 1.0);
        let whole = own * real(touched);
        self.device.stream(whole * (1.0 - host) + zeroed) + Seconds::new(whole * host / HOST_STATES.get())
    }

    /// The all-reduce of a tied embedding's gradient between first and last stage.
    pub(super) fn tied(&self) -> Seconds {
        let plan = self.x.plan;
        // On a single stage the tied weight is one tensor, whose two gradients are summed on the rank.
        if plan.model().embeddings != Embeddings::Tied || plan.layout().pipeline < 2 {
            return Seconds::ZERO;
        }
        let bytes = Bytes::new(self.x.v * self.x.h * plan.recipe().grads_dtype.width());
        let mut ring = self.rings.pipeline;
        // The embedding group always has two members: the first and the last stage.
        ring.size = 2;
        ring.together = ring.together.min(2);
        ring.time(&self.device, Collective::AllReduce, bytes)
    }

    /// Gathering and scattering of weights that are held as shards around one micro-batch of a chunk: the part that
    /// exceeds the arithmetic it overlaps with. `[forward, backward]`.
    pub(super) fn sharded_weights(&self, rank: &RankParameters, chunk: &ChunkParts) -> [Seconds; 2] {
        let (plan, recipe) = (self.x.plan, self.x.recipe());
        if !self.moves_units() {
            return [Seconds::ZERO; 2];
        }
        let groups = [(self.rings.data, rank.dense_count()), (self.rings.expert_data, rank.expert_count)];
        let trained =
            [(self.rings.data, rank.dense_trained()), (self.rings.expert_data, rank.expert_trained)];
        let sum = |groups: &[(Ring, Count); 2], collective: Collective, width: u64| -> Seconds {
            groups.iter().map(|(ring, count)| ring.time(&self.device, collective, count.bytes(width))).sum()
        };
        // Layers' linear weights may be gathered in 8 bits, in the same message.
        let narrower = rank.gathered_in_fp8.bytes(self.x.width.saturating_sub(1));
        let gathered = |groups: &[(Ring, Count); 2]| -> Seconds {
            let [(ring, dense), (expert_ring, experts)] = groups;
            let bytes = dense.bytes(self.x.width).less(narrower);
            ring.time(&self.device, Collective::AllGather, bytes)
                + expert_ring.time(&self.device, Collective::AllGather, experts.bytes(self.x.width))
        };
        let gather = gathered(&groups);
        let freed = Count::new(rank.dense_count().get().saturating_sub(rank.gathered_once.get()));
        // From secondary shards, or from those of the rank's own group: other groups hold the same.
        let near = if plan.layout().second_groups() > 1 { self.rings.second } else { self.rings.data };
        let again = [(near, freed), (self.rings.expert_data, rank.expert_count)];
        let again = if plan.stays_gathered() { Seconds::ZERO } else { gathered(&again) };
        // A step's first forward creates the secondary shards, or gathers what then stays.
        let at_first = plan.layout().second_groups() > 1 || !plan.gathers_each_micro_batch();
        let far = if at_first { 1.0 / real(recipe.num_micro_batches.max(1)) } else { 1.0 };
        let scatter = sum(&trained, Collective::ReduceScatter, recipe.reduce_dtype().width());
        let across = if plan.sums_groups_at_once() { self.across_groups(rank) } else { Seconds::ZERO };
        // The share of micro-batches with which gradients are reduced.
        let each = plan.reduces_each_backward();
        let part = if each { 1.0 } else { 1.0 / real(recipe.num_micro_batches.max(1)) };
        let ahead = chunk.forward.total();
        let back = chunk.behind();
        // The ring that moves the most data decides.
        let [dense, experts] = groups.map(|(ring, count)| real(count.get()) * real(u64::from(ring.size > 1)));
        let contention =
            self.contention(if experts > dense { self.rings.expert_data } else { self.rings.data });
        match self.overlaps.bounds {
            Bounds::Lower => [Seconds::ZERO; 2],
            Bounds::Upper => [gather * far + again * (1.0 - far), again + (scatter + across) * part],
            Bounds::Estimate => {
                let alone = beyond(again, back, contention) * (1.0 - part);
                // Sums across groups have a stream of their own (`all_reduce_stream` of FSDP2, `_all_reduce_stream` of FSDP1): they
                // run beside what the fast link carries within a group, and take turns with it where a group's ring crosses the
                // network too.
                let own = again + scatter;
                let sent = if self.rings.data.is_near() { own.greater(across) } else { own + across };
                let both = beyond(sent, back, contention) * part;
                let near = beyond(again, ahead, contention) * (1.0 - far);
                [beyond(gather, ahead, contention) * far + near, alone + both]
            }
        }
    }

    /// How much a hidden collective on `ring` slows down concurrent arithmetic, as a share of the collective's own
    /// time. NCCL runs a ring on as many channels, one multiprocessor each, as its slowest link has bandwidth for
    /// (`src/graph/search.cc`), so the share is proportionally smaller for a ring that goes through a single network
    /// card than for one on the fast link.
    fn contention(&self, ring: Ring) -> f64 {
        let (bandwidth, _) = ring.link(&self.device);
        self.device.calibration.contention * (bandwidth / self.device.fast.get()).min(1.0)
    }
}
