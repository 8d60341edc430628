//! Messages between replicas: gradients and weights.

use super::places::Kind;
use super::run::Share;
use super::walker::{Walker, layers_of_part};

impl Walker<'_> {
    /// Gradients and weights of one chunk.
    pub(super) fn replicas(&mut self, stage: u64, chunk: u64) {
        let run = *self.run;
        let part = chunk * run.p + stage;
        let (first, last) = (part == 0, part + 1 == run.p * run.v);
        let norm = if run.layer_norm { 2 * run.h } else { run.h };
        let width = run.h / run.a;
        let rows = (run.a + 2 * run.kv) * width / run.t;
        let gate = if run.swiglu { 2 } else { 1 };
        let bias = u64::from(run.bias);
        let mut layer = 2 * norm + rows * run.h + bias * rows + run.h * run.h / run.t + bias * run.h;
        let mut experts = 0;
        match run.moe {
            None => layer += (gate + 1) * run.f * run.h / run.t + bias * (gate * run.f / run.t + run.h),
            Some(moe) => {
                layer += moe.experts * run.h + (gate + 1) * moe.shared * run.h / run.t;
                let own = moe.experts / moe.e * (gate + 1) * moe.width * run.h / moe.et;
                if moe.e > 1 || moe.et != run.t {
                    experts = own;
                } else {
                    layer += own;
                }
            }
        }
        let words = run.vocab / run.t * run.h;
        let shared = if run.tied && run.p > 1 { words } else { 0 };
        let layers = layers_of_part(&run, part);
        if let Share::Weights(_) = run.share {
            // Without a pipeline one chunk has everything: each layer is a unit, and so are the ends.
            let mut units = vec![(Kind::DataContext, words + if run.learned { run.s * run.h } else { 0 })];
            for _ in 0..layers {
                units.extend([(Kind::DataContext, layer), (Kind::ExpertData, experts)]);
            }
            units.extend([(Kind::DataContext, norm), (Kind::DataContext, words)]);
            units
                .into_iter()
                .filter(|(_, elements)| *elements > 0)
                .for_each(|(kind, unit)| self.unit(kind, unit));
            return;
        }
        let mut dense = layers * layer;
        let mut own_bucket = 0;
        if first {
            dense += if run.learned { run.s * run.h } else { 0 };
            own_bucket += shared;
            dense += words - shared;
        }
        if last {
            dense += norm;
            own_bucket += shared;
            dense += if run.tied { 0 } else { words };
        }
        let experts = layers * experts;
        if run.share != Share::Nothing {
            self.reduce(Kind::DataContext, &[dense, own_bucket]);
        } else {
            self.reduce(Kind::DataContext, &[dense + own_bucket]);
        }
        self.reduce(Kind::ExpertData, &[experts]);
    }

    /// The part of a group of replicas within which they shard.
    fn within(&self, kind: Kind) -> Kind {
        match (self.run.share, kind) {
            (Share::Nothing | Share::States(1) | Share::Gradients(1) | Share::Weights(1), _) => kind,
            (_, Kind::ExpertData) => Kind::ExpertDataInstance,
            _ => Kind::DataContextInstance,
        }
    }

    /// Several groups reduce their gradient shards.
    fn across(&mut self, shard: u64) {
        if let Share::States(2..) | Share::Gradients(2..) | Share::Weights(2..) = self.run.share {
            self.collective("data", Kind::ExpertDataAcross, 4 * shard);
        }
    }

    /// An FSDP unit: gathered for forward and for backward of every micro-batch, with its gradients scattered after
    /// each.
    fn unit(&mut self, kind: Kind, elements: u64) {
        let kind = self.within(kind);
        for _ in 0..self.run.m {
            for width in [2, 2, 4] {
                self.collective("data", kind, width * elements);
            }
        }
        self.across(elements / self.places.of(kind, self.rank).len() as u64);
    }

    fn reduce(&mut self, kind: Kind, buckets: &[u64]) {
        for &elements in buckets.iter().filter(|elements| **elements > 0) {
            let kind = self.within(kind);
            // Sharded gradients are never held in full: they are scattered after every micro-batch.
            let often = if let Share::Gradients(_) = self.run.share { self.run.m } else { 1 };
            for _ in 0..often {
                self.collective("data", kind, 4 * elements);
            }
            if self.run.share == Share::Nothing {
                continue;
            }
            self.across(elements / self.places.of(kind, self.rank).len() as u64);
            self.collective("data", kind, 2 * elements);
        }
    }
}
