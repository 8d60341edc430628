//! A random run, in plain numbers, and its flags.

use shardscope::launch::plan_from_flags;
use shardscope::plan::Plan;

/// A small random number generator (xorshift64*), so that every run uses the same plans.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33
    }
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[(self.roll() % from.len() as u64) as usize]
    }
    fn flip(&mut self) -> bool {
        self.roll() % 2 == 1
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Ring {
    PointToPoint,
    AllGather,
    AllToAll,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Dispatch {
    AllGather,
    AllToAll,
    Flex,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Again {
    Nothing,
    CoreAttention,
    /// The dense MLP, or the experts including shared ones.
    FeedForward,
    Uniform,
    Block(u64),
}

/// What replicas shard.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Share {
    Nothing,
    /// Optimizer states, in this many groups.
    States(u64),
    /// Gradients too, in this many groups.
    Gradients(u64),
    /// Weights too, in this many groups: Megatron's FSDP.
    Weights(u64),
}

/// How layers are distributed over the parts of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Split {
    Even,
    /// Embedding and loss count as a layer each.
    Counted(bool, bool),
    /// Number of layers in the first and the last stage.
    Ends(u64, u64),
}

/// A random run, in plain numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) t: u64,
    pub(super) p: u64,
    pub(super) c: u64,
    pub(super) d: u64,
    pub(super) v: u64,
    pub(super) m: u64,
    pub(super) b: u64,
    pub(super) s: u64,
    pub(super) h: u64,
    pub(super) a: u64,
    pub(super) kv: u64,
    pub(super) f: u64,
    pub(super) vocab: u64,
    pub(super) layers: u64,
    pub(super) sp: bool,
    pub(super) learned: bool,
    pub(super) tied: bool,
    pub(super) bias: bool,
    pub(super) layer_norm: bool,
    pub(super) swiglu: bool,
    pub(super) fused_loss: bool,
    pub(super) share: Share,
    pub(super) split: Split,
    /// Rank order with data parallelism after the pipeline.
    pub(super) pipeline_inside: bool,
    pub(super) again: Again,
    pub(super) ring: Ring,
    /// Experts, top-k, expert size, expert tensor size, width, shared width, dispatcher.
    pub(super) moe: Option<Moe>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Moe {
    pub(super) experts: u64,
    pub(super) topk: u64,
    pub(super) e: u64,
    pub(super) et: u64,
    pub(super) width: u64,
    pub(super) shared: u64,
    pub(super) dispatch: Dispatch,
}

impl Run {
    pub(super) fn random(seed: u64) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        for _ in 0..4 {
            dice.roll();
        }
        let dice = &mut dice;
        let (t, p, c, d) =
            (dice.pick(&[1, 2, 4]), dice.pick(&[1, 2, 4]), dice.pick(&[1, 1, 2]), dice.pick(&[1, 2, 4]));
        let v = if p > 1 { dice.pick(&[1, 1, 2]) } else { 1 };
        let mut sp = t > 1 && dice.flip();
        let mut moe = None;
        if dice.roll().is_multiple_of(3) {
            let et = dice.pick(&[t, t, 1]);
            let wide: Vec<u64> = [1, 2, 4].into_iter().filter(|e| (t * c * d) % (et * e) == 0).collect();
            let e = dice.pick(&wide);
            let dispatch =
                dice.pick(&[Dispatch::AllGather, Dispatch::AllToAll, Dispatch::AllToAll, Dispatch::Flex]);
            // The fused dispatcher needs more than one rank.
            let dispatch = if e * et == 1 { Dispatch::AllToAll } else { dispatch };
            let shared = dice.pick(&[0, 512]);
            moe = Some(Moe { experts: 8, topk: dice.pick(&[1, 2]), e, et, width: 256, shared, dispatch });
            sp = t > 1;
        }
        let each = dice.pick(&[1, 2, 3]);
        let (split, layers) = split(dice, p, v, each);
        let ring = dice.pick(&[Ring::PointToPoint, Ring::AllGather, Ring::AllToAll]);
        let bias = moe.is_none() && dice.flip();
        let share = share(dice, p, d * c, moe.map_or(d * c, |moe| t * c * d / (moe.et * moe.e)));
        Self {
            t,
            p,
            c,
            d,
            v,
            m: p * dice.pick(&[1, 2, 3]),
            b: dice.pick(&[1, 2]),
            s: dice.pick(&[256, 512]),
            h: 1024,
            a: 16,
            kv: dice.pick(&[16, 8]),
            f: 2048,
            vocab: 32768,
            layers,
            sp,
            learned: dice.flip(),
            // An FSDP unit does not share its weights with another.
            tied: dice.flip() && !matches!(share, Share::Weights(_)),
            bias,
            layer_norm: dice.flip(),
            swiglu: dice.flip(),
            fused_loss: dice.flip(),
            share,
            split,
            pipeline_inside: dice.roll().is_multiple_of(3)
                && (p == 1 || t * c == moe.map_or(t, |moe| moe.et * moe.e)),
            again: dice.pick(&[
                Again::Nothing,
                Again::CoreAttention,
                Again::FeedForward,
                Again::Uniform,
                Again::Block(1),
                Again::Block(2),
            ]),
            ring,
            moe,
        }
    }

    fn flags(&self) -> String {
        let mut flags = format!(
            "--tensor-model-parallel-size {} --pipeline-model-parallel-size {} --context-parallel-size {} --num-layers {} \
             --hidden-size {} --num-attention-heads {} --group-query-attention --num-query-groups {} --ffn-hidden-size {} \
             --seq-length {} --max-position-embeddings {} --vocab-size {} --micro-batch-size {} --global-batch-size {} \
             --bf16 --transformer-impl transformer_engine --no-async-tensor-model-parallel-allreduce",
            self.t,
            self.p,
            self.c,
            self.layers,
            self.h,
            self.a,
            self.kv,
            self.f,
            self.s,
            self.s,
            self.vocab,
            self.b,
            self.b * self.d * self.m,
        );
        let mut add = |yes: bool, flag: &str| {
            if yes {
                flags.push(' ');
                flags.push_str(flag);
            }
        };
        add(self.v > 1, &format!("--num-virtual-stages-per-pipeline-rank {}", self.v));
        match self.split {
            Split::Even => {}
            Split::Counted(embedding, loss) => {
                add(embedding, "--account-for-embedding-in-pipeline-split");
                add(loss, "--account-for-loss-in-pipeline-split");
            }
            Split::Ends(first, last) => add(
                true,
                &format!(
                    "--decoder-first-pipeline-num-layers {first} --decoder-last-pipeline-num-layers {last}"
                ),
            ),
        }
        add(self.pipeline_inside, "--use-tp-pp-dp-mapping");
        add(self.sp, "--sequence-parallel");
        add(!self.learned, "--position-embedding-type rope");
        add(!self.tied, "--untie-embeddings-and-output-weights");
        add(!self.bias, "--disable-bias-linear");
        add(!self.layer_norm, "--normalization RMSNorm");
        add(self.swiglu, "--swiglu");
        add(self.fused_loss, "--cross-entropy-loss-fusion --cross-entropy-fusion-impl native");
        match self.share {
            Share::Nothing => {}
            Share::States(groups) => add(
                true,
                &format!("--use-distributed-optimizer --num-distributed-optimizer-instances {groups}"),
            ),
            Share::Gradients(groups) | Share::Weights(groups) => add(
                true,
                &format!(
                    "--use-megatron-fsdp --data-parallel-sharding-strategy {} --num-distributed-optimizer-instances {groups} --ckpt-format fsdp_dtensor",
                    if matches!(self.share, Share::Weights(_)) {
                        "optim_grads_params"
                    } else {
                        "optim_grads"
                    },
                ),
            ),
        }
        match self.again {
            Again::Nothing => {}
            Again::CoreAttention => {
                add(true, "--recompute-granularity selective --recompute-modules core_attn")
            }
            Again::FeedForward => {
                let module = if self.moe.is_some() { "moe" } else { "mlp" };
                add(true, &format!("--recompute-granularity selective --recompute-modules {module}"))
            }
            Again::Uniform => {
                add(true, "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1")
            }
            Again::Block(n) => add(
                true,
                &format!("--recompute-granularity full --recompute-method block --recompute-num-layers {n}"),
            ),
        }
        match self.ring {
            Ring::PointToPoint => {}
            Ring::AllGather => add(self.c > 1, "--cp-comm-type all_gather"),
            Ring::AllToAll => add(self.c > 1, "--cp-comm-type a2a"),
        }
        if let Some(moe) = self.moe {
            let dispatcher = match moe.dispatch {
                Dispatch::AllGather => "allgather",
                Dispatch::AllToAll => "alltoall",
                Dispatch::Flex => "flex",
            };
            add(
                true,
                &format!(
                    "--num-experts {} --moe-router-topk {} --expert-model-parallel-size {} --expert-tensor-parallel-size {} \
                     --moe-ffn-hidden-size {} --moe-token-dispatcher-type {dispatcher} --moe-router-dtype fp32 --moe-grouped-gemm",
                    moe.experts, moe.topk, moe.e, moe.et, moe.width
                ),
            );
            add(moe.shared > 0, &format!("--moe-shared-expert-intermediate-size {}", moe.shared));
        }
        flags
    }

    /// The number of features.
    pub(super) const FEATURES: usize = 21;

    /// The named features that it has, so that a test can check that each occurred.
    pub(super) fn features(&self) -> Vec<&'static str> {
        let groups = match self.share {
            Share::Nothing => 1,
            Share::States(groups) | Share::Gradients(groups) | Share::Weights(groups) => groups,
        };
        let dispatch = self.moe.map(|moe| moe.dispatch);
        let all = [
            (self.sp, "sequence"),
            (self.v > 1, "interleaved"),
            (self.tied && self.p > 1, "tied ends"),
            (matches!(self.split, Split::Counted(..)), "ends counted"),
            (matches!(self.split, Split::Ends(..)), "ends of other sizes"),
            (self.pipeline_inside && self.p > 1 && self.d > 1, "other order of ranks"),
            (matches!(self.share, Share::States(_)), "optimizer states shared"),
            (matches!(self.share, Share::Gradients(_)), "gradients shared"),
            (matches!(self.share, Share::Weights(_)), "weights shared"),
            (groups > 1, "groups of replicas"),
            (self.c > 1 && self.ring == Ring::PointToPoint, "ring"),
            (self.c > 1 && self.ring == Ring::AllGather, "gathered keys"),
            (self.c > 1 && self.ring == Ring::AllToAll, "exchanged heads"),
            (dispatch == Some(Dispatch::AllGather), "gathered tokens"),
            (dispatch == Some(Dispatch::AllToAll), "exchanged tokens"),
            (dispatch == Some(Dispatch::Flex), "fused dispatch"),
            (self.moe.is_some_and(|moe| moe.shared > 0), "shared experts"),
            (self.again == Again::CoreAttention, "attention again"),
            (self.again == Again::FeedForward, "MLP or experts again"),
            (self.again == Again::Uniform, "layers again"),
            (matches!(self.again, Again::Block(_)), "some layers again"),
        ];
        all.into_iter().filter_map(|(has, name)| has.then_some(name)).collect()
    }

    pub(super) fn world(&self) -> u64 {
        self.t * self.p * self.c * self.d
    }

    #[track_caller]
    pub(super) fn plan(&self) -> Plan {
        let per_node = if self.world().is_multiple_of(8) { 8 } else { 1 };
        plan_from_flags(&self.flags(), self.world(), per_node, "H100-SXM")
            .unwrap_or_else(|reasons| panic!("{reasons:?}\n{}", self.flags()))
    }
}

/// A split of `p` stages with `v` chunks each and about `each` layers per chunk, and the number of layers.
fn split(dice: &mut Dice, p: u64, v: u64, each: u64) -> (Split, u64) {
    match dice.pick(&[0, 0, 1, 2]) {
        1 if p > 1 => {
            let (embedding, loss) = (dice.flip(), dice.flip());
            let counted = u64::from(embedding) + u64::from(loss);
            (Split::Counted(embedding, loss), p * v * (each + 1) - counted)
        }
        2 if p > 1 && v == 1 => {
            let (first, last) = (dice.pick(&[1, 2, 3]), dice.pick(&[1, 2, 4]));
            (Split::Ends(first, last), first + last + (p - 2) * each)
        }
        _ => (Split::Even, p * v * each),
    }
}

/// What the replicas shard, in groups that divide those of dense weights and those of experts.
fn share(dice: &mut Dice, p: u64, dense: u64, experts: u64) -> Share {
    let wide: Vec<u64> =
        [1, 1, 2, 4].into_iter().filter(|n| dense.is_multiple_of(*n) && experts.is_multiple_of(*n)).collect();
    let groups = dice.pick(&wide);
    match dice.pick(&[0, 0, 1, 1, 2, 3]) {
        0 => Share::Nothing,
        // Megatron's FSDP is only drawn in the combination in which it was used: without a pipeline.
        2 if p == 1 => Share::Weights(groups),
        3 if p == 1 => Share::Gradients(groups),
        _ => Share::States(groups),
    }
}
