//! A random run, in plain numbers, and its flags.

use shardscope::launch::plan_from_flags;
use shardscope::plan::Plan;

/// A small generator of numbers (xorshift64*), so that every run sees the same plans.
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
    Uniform,
    Block(u64),
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
    pub(super) sharded: bool,
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
            // The fused dispatcher wants more than one rank.
            let dispatch = if e * et == 1 { Dispatch::AllToAll } else { dispatch };
            let shared = dice.pick(&[0, 512]);
            moe = Some(Moe { experts: 8, topk: dice.pick(&[1, 2]), e, et, width: 256, shared, dispatch });
            sp = t > 1;
        }
        let layers = p * v * dice.pick(&[1, 2, 3]);
        let ring = dice.pick(&[Ring::PointToPoint, Ring::AllGather, Ring::AllToAll]);
        let bias = moe.is_none() && dice.flip();
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
            tied: dice.flip(),
            bias,
            layer_norm: dice.flip(),
            swiglu: dice.flip(),
            fused_loss: dice.flip(),
            sharded: dice.flip(),
            again: dice.pick(&[Again::Nothing, Again::CoreAttention, Again::Uniform, Again::Block(1)]),
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
        add(
            self.v > 1,
            &format!("--num-layers-per-virtual-pipeline-stage {}", self.layers / (self.p * self.v)),
        );
        add(self.sp, "--sequence-parallel");
        add(!self.learned, "--position-embedding-type rope");
        add(!self.tied, "--untie-embeddings-and-output-weights");
        add(!self.bias, "--disable-bias-linear");
        add(!self.layer_norm, "--normalization RMSNorm");
        add(self.swiglu, "--swiglu");
        add(self.fused_loss, "--cross-entropy-loss-fusion --cross-entropy-fusion-impl native");
        add(self.sharded, "--use-distributed-optimizer");
        match self.again {
            Again::Nothing => {}
            Again::CoreAttention => {
                add(true, "--recompute-granularity selective --recompute-modules core_attn")
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
