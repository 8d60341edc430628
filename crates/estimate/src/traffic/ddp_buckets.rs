//! Buckets of PyTorch's DistributedDataParallel (`torch/csrc/distributed/c10d/reducer.cpp:compute_bucket_assignment_by_size`):
//! tensors of one format one after the other, a bucket closed as soon as it holds as many bytes as its limit.

use crate::constant::Constant;
use shardscope_operators::{Creation, Order, Symbols, Weight, WeightRole};
use shardscope_plan::{Chunk, DdpBuckets, NumberFormat};
use shardscope_units::{Count, Quantity};

/// Bytes at which the first bucket is closed, so that a reduction starts early; a limit that is stated holds for it too
/// (`torch/nn/parallel/distributed.py:BucketCapacityConfig`, which accelerate does not tell of a limit that is PyTorch's own).
const FIRST_BUCKET: u64 = 1 << 20;

/// The constant above, for the list of constants.
pub(crate) fn constants() -> Vec<Constant> {
    vec![Constant::new(
        ("FIRST_BUCKET", Count::new(FIRST_BUCKET).number(), "bytes"),
        "at which PyTorch's DDP closes its first bucket of gradients",
        "torch/csrc/distributed/c10d/reducer.hpp:kDefaultFirstBucketBytes",
    )]
}

/// Elements of the trained tensors of a chunk in the order in which buckets are filled, and whether each is an adapter's.
fn tensors(x: &Symbols<'_>, chunk: &Chunk, rules: DdpBuckets) -> Vec<(u64, bool)> {
    let order = if rules.finds_unused { Order::Registered } else { Order::Used };
    let made = Creation::new(x, chunk, order);
    let trains = |weight: &&Weight| weight.role.trains() && !weight.copy;
    let shown = |weight: &Weight| (weight.count().get(), weight.role == WeightRole::Adapter);
    if rules.finds_unused {
        made.forwards().filter(trains).map(shown).collect()
    } else {
        made.backwards().filter(trains).map(shown).collect()
    }
}

/// How many tensors DDP reduces.
pub(super) fn count(x: &Symbols<'_>, chunk: &Chunk, rules: DdpBuckets) -> u64 {
    tensors(x, chunk, rules).len() as u64
}

/// The elements of each bucket of `chunk`, for each of these formats of gradients: where there are two, the second is that of
/// adapters.
pub(super) fn buckets(
    x: &Symbols<'_>,
    chunk: &Chunk,
    rules: DdpBuckets,
    formats: &[(NumberFormat, NumberFormat)],
) -> Vec<Vec<u64>> {
    let tensors = tensors(x, chunk, rules);
    let of = |(index, (_, sent)): (usize, &(NumberFormat, NumberFormat))| {
        let own = |adapter: bool| formats.len() == 1 || adapter == (index > 0);
        filled(
            tensors.iter().filter(|(_, adapter)| own(*adapter)).map(|(elements, _)| *elements),
            *sent,
            rules,
        )
    };
    formats.iter().enumerate().map(of).collect()
}

/// The elements of each bucket of tensors of these sizes, in the order in which they are reduced.
fn filled(sizes: impl Iterator<Item = u64>, sent: NumberFormat, rules: DdpBuckets) -> Vec<u64> {
    let (mut buckets, mut open) = (Vec::new(), 0_u64);
    for elements in sizes {
        open = open.saturating_add(elements);
        let first = buckets.is_empty() && rules.cap == DdpBuckets::CAP;
        let limit = if first { FIRST_BUCKET } else { rules.cap };
        if open.saturating_mul(sent.width()) >= limit {
            buckets.push(open);
            open = 0;
        }
    }
    buckets.extend((open > 0).then_some(open));
    // As registered they start from the embedding, whose gradient is the last (`distributed.py:_ddp_init_helper` turns them round).
    if rules.finds_unused {
        buckets.reverse();
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_closed_at_its_limit() {
        let of = |finds_unused: bool, sizes: &[u64]| {
            let rules = DdpBuckets { finds_unused, cap: DdpBuckets::CAP };
            filled(sizes.iter().copied(), NumberFormat::Fp32, rules)
        };
        let mebi = 1 << 18;
        assert_eq!(of(false, &[mebi - 1, 1, 24 * mebi, mebi, 5]), [mebi, 25 * mebi, 5]);
        assert_eq!(of(true, &[7 * mebi, 24 * mebi, mebi - 1, 3]), [25 * mebi + 2, 7 * mebi]);
        assert!(of(false, &[]).is_empty());
    }
}
