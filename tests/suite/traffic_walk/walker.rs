//! The messages of one rank, one by one, as Megatron's code sends them.

use super::places::{Kind, Places};
use super::run::{Again, Dispatch, Moe, Ring, Run, Split};
use std::collections::BTreeMap;

/// The messages of a rank, in the order in which it sends them.
#[derive(Default)]
pub(super) struct Log {
    pub(super) sums: BTreeMap<(&'static str, Kind), (u64, u64)>,
    /// Per kind of group: its collectives, in order.
    pub(super) order: BTreeMap<Kind, Vec<u64>>,
    pub(super) sent: Vec<(u64, u64)>,
    pub(super) received: Vec<(u64, u64)>,
}

impl Log {
    pub(super) fn collective(&mut self, of: &'static str, kind: Kind, members: &[u64], bytes: u64) {
        if members.len() > 1 {
            let sum = self.sums.entry((of, kind)).or_default();
            sum.0 += 1;
            sum.1 += bytes;
            self.order.entry(kind).or_default().push(bytes);
        }
    }

    fn send(&mut self, of: &'static str, kind: Kind, to: u64, bytes: u64) {
        let sum = self.sums.entry((of, kind)).or_default();
        sum.0 += 1;
        sum.1 += bytes;
        self.sent.push((to, bytes));
    }
}

/// One rank's view of the run.
pub(super) struct Walker<'a> {
    pub(super) run: &'a Run,
    pub(super) places: &'a Places,
    pub(super) rank: u64,
    pub(super) log: Log,
}

impl Walker<'_> {
    /// A collective of this rank's group of a kind; none where the rank is alone in it.
    pub(super) fn collective(&mut self, of: &'static str, kind: Kind, bytes: u64) {
        self.log.collective(of, kind, self.places.of(kind, self.rank), bytes);
    }

    fn tensor(&mut self, bytes: u64) {
        self.collective("tensor", Kind::Tensor, bytes);
    }

    fn expert(&mut self, kind: Kind, bytes: u64) {
        self.collective("expert", kind, bytes);
    }

    /// Bytes of the residual stream, for the full sequence of the context rank.
    fn stream(&self) -> u64 {
        self.run.s / self.run.c * self.run.b * self.run.h * 2
    }

    /// A step of the context ring: each rank sends to the next, and receives from the previous one.
    fn ring(&mut self, bytes: u64) {
        let members = self.places.of(Kind::Context, self.rank);
        let here = members.iter().position(|rank| *rank == self.rank).unwrap();
        let next = members[(here + 1) % members.len()];
        let before = members[(here + members.len() - 1) % members.len()];
        for _ in 1..members.len() {
            self.log.send("context", Kind::Context, next, bytes);
            self.log.received.push((before, bytes));
        }
    }

    fn core_attention(&mut self, backward: bool) {
        let run = *self.run;
        if run.c == 1 {
            return;
        }
        let tokens = run.s / run.c * run.b;
        let (wide, narrow) = (tokens * run.h / run.t * 2, tokens * run.h / run.a * run.kv / run.t * 2);
        match run.ring {
            Ring::PointToPoint => {
                for _ in 0..=u64::from(backward) {
                    self.ring(2 * narrow);
                }
            }
            Ring::AllGather => {
                // Forward gathers keys and values; backward gathers both and scatters both gradients.
                for _ in 0..if backward { 4 } else { 2 } {
                    self.collective("context", Kind::Context, run.c * narrow);
                }
            }
            Ring::AllToAll => {
                for bytes in [wide, narrow, narrow, wide] {
                    self.collective("context", Kind::Context, bytes);
                }
            }
        }
    }

    /// A pair of column- and row-parallel layers.
    fn pair_forward(&mut self, between: impl FnOnce(&mut Self)) {
        let bytes = self.stream();
        if self.run.sp {
            self.tensor(bytes);
        }
        between(self);
        self.tensor(bytes);
    }

    fn pair_backward(&mut self, between: impl FnOnce(&mut Self)) {
        let bytes = self.stream();
        if self.run.sp {
            self.tensor(bytes);
        }
        between(self);
        self.tensor(bytes);
        if self.run.sp {
            self.tensor(bytes);
        }
    }

    fn layer_forward(&mut self) {
        self.pair_forward(|walker| walker.core_attention(false));
        self.feed_forward();
    }

    fn feed_forward(&mut self) {
        match self.run.moe {
            None => self.pair_forward(|_| {}),
            Some(moe) => {
                self.route(moe, false);
                if moe.shared > 0 {
                    self.pair_forward(|_| {});
                }
            }
        }
    }

    fn layer_backward(&mut self) {
        match self.run.moe {
            None => self.pair_backward(|_| {}),
            Some(moe) => {
                if moe.shared > 0 {
                    self.pair_backward(|_| {});
                }
                self.route(moe, true);
            }
        }
        self.pair_backward(|walker| walker.core_attention(true));
    }

    /// Tokens to their experts and back, or their gradients in the opposite direction.
    fn route(&mut self, moe: Moe, backward: bool) {
        let run = *self.run;
        let tokens = run.s / run.c * run.b / if run.sp { run.t } else { 1 };
        let row = run.h * 2;
        let both = moe.et * moe.e;
        match moe.dispatch {
            Dispatch::AllGather => {
                if !backward {
                    self.expert(Kind::TensorExpert, both * tokens * moe.experts);
                }
                self.expert(Kind::TensorExpert, both * tokens * moe.experts * 4);
                self.expert(Kind::TensorExpert, both * tokens * row);
                self.expert(Kind::TensorExpert, both * tokens * row);
            }
            Dispatch::AllToAll => {
                let copies = tokens * moe.topk;
                if !backward {
                    self.expert(Kind::TensorExpert, both * moe.experts * 8);
                }
                // To the experts and back, and the probabilities in one direction.
                self.expert(Kind::Expert, copies * row);
                self.expert(Kind::Expert, copies * 4);
                self.expert(Kind::ExpertTensor, moe.et * copies * row);
                self.expert(Kind::ExpertTensor, moe.et * copies * 4);
                self.expert(Kind::ExpertTensor, moe.et * copies * row);
                self.expert(Kind::Expert, copies * row);
            }
            Dispatch::Flex => {
                let copies = tokens * moe.topk.min(moe.e) * moe.et;
                self.expert(Kind::TensorExpert, copies * row);
                self.expert(Kind::TensorExpert, copies * row);
            }
        }
    }

    fn embedding(&mut self, backward: bool) {
        let bytes = self.stream();
        if !backward || self.run.sp {
            self.tensor(bytes);
        }
    }

    fn output_layer(&mut self, backward: bool) {
        let bytes = self.stream();
        let tokens = self.run.s / self.run.c * self.run.b;
        if backward {
            self.tensor(bytes);
            if self.run.sp {
                self.tensor(bytes);
            }
            return;
        }
        if self.run.sp {
            self.tensor(bytes);
        }
        self.tensor(tokens * 4);
        if self.run.fused_loss {
            self.tensor(2 * tokens * 4);
        } else {
            self.tensor(tokens * 4);
            self.tensor(tokens * 4);
        }
    }
}

/// Layers of one part of the model, a chunk of a stage.
pub(super) fn layers_of_part(run: &Run, part: u64) -> u64 {
    let parts = run.p * run.v;
    let (first, last) = (part == 0, part + 1 == parts);
    match run.split {
        Split::Even => run.layers / parts,
        Split::Counted(embedding, loss) => {
            let each = (run.layers + u64::from(embedding) + u64::from(loss)) / parts;
            each - u64::from(embedding && first) - u64::from(loss && last)
        }
        Split::Ends(layers, _) if first => layers,
        Split::Ends(_, layers) if last => layers,
        Split::Ends(ahead, behind) => (run.layers - ahead - behind) / (parts - 2),
    }
}

impl Walker<'_> {
    pub(super) fn pass(&mut self, stage: u64, forward: bool, chunk: u64) {
        let run = *self.run;
        let part = chunk * run.p + stage;
        let parts = run.p * run.v;
        let (first, last) = (part == 0, part + 1 == parts);
        let layers = layers_of_part(&run, part);
        let message = self.stream() / if run.sp { run.t } else { 1 };
        let pipeline = self.places.of(Kind::Pipeline, self.rank);
        let neighbour = |part: u64| pipeline[(part % run.p) as usize];
        if forward {
            if first {
                self.embedding(false);
            } else {
                let from = neighbour(part - 1);
                self.log.received.push((from, message));
            }
            for _ in 0..layers {
                self.layer_forward();
            }
            if last {
                self.output_layer(false);
            } else {
                let to = neighbour(part + 1);
                self.log.send("pipeline", Kind::Pipeline, to, message);
            }
            return;
        }
        if last {
            self.output_layer(true);
        } else {
            let from = neighbour(part + 1);
            self.log.received.push((from, message));
        }
        for layer in (0..layers).rev() {
            match run.again {
                Again::Uniform => self.layer_forward(),
                Again::Block(n) if layer < n => self.layer_forward(),
                Again::CoreAttention => self.core_attention(false),
                Again::FeedForward => self.feed_forward(),
                _ => {}
            }
            self.layer_backward();
        }
        if first {
            self.embedding(true);
        } else {
            let to = neighbour(part - 1);
            self.log.send("pipeline", Kind::Pipeline, to, message);
        }
    }

    /// Once per step, after all micro-batches.
    pub(super) fn step(&mut self, stage: u64) {
        let run = *self.run;
        let (first, last) = (stage == 0, stage + 1 == run.p);
        let norm = if run.layer_norm { 2 * run.h } else { run.h };
        let layers: u64 = (0..run.v).map(|chunk| layers_of_part(&run, chunk * run.p + stage)).sum();
        if run.sp {
            let mut whole = layers * 2 * norm + if last { norm } else { 0 };
            if run.bias {
                whole += layers * 2 * run.h;
            }
            if let Some(moe) = run.moe {
                whole += layers * moe.experts * run.h;
            }
            self.tensor(4 * whole);
        }
        if run.tied && run.p > 1 && (first || last) {
            let bytes = run.vocab / run.t * run.h * 4;
            self.collective("embedding", Kind::Embedding, bytes);
        }
        for chunk in 0..run.v {
            self.replicas(stage, chunk);
        }
    }
}
