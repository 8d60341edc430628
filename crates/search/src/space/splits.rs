//! Ways to distribute a model's layers over a number of stages, as far as the software can express them.

use crate::dimension::{Choices, Dimension};
use shardscope_plan::hints::divisors;
use shardscope_plan::limits::MAX_PIPELINE_PARTS;
use shardscope_plan::{Plan, StageSplit, Variant};

/// A split and the chunks per rank that it is tried with.
pub(super) type Way = (StageSplit, u64);

/// Layers by which the stages between first and last may exceed an even share.
const ABOVE_EVEN: u64 = 2;

/// The most chunks per rank for written-out stages.
const MAX_WRITTEN_CHUNKS: u64 = 8;

/// Every way to distribute the layers of `plan` over `p` stages, with `own` chunks per rank if the schedule fixes
/// them.
pub(super) fn ways(plan: &Plan, base: &Variant, choices: &Choices, p: u64, own: Option<u64>) -> Vec<Way> {
    let mut out: Vec<Way> = Vec::new();
    let splits = choices.get(Dimension::Split);
    let chunks = choices.get(Dimension::VirtualPipeline);
    let mut take = |split: StageSplit, v: u64| {
        let fits = chunks.allow(v, base.virtual_pipeline) && p.saturating_mul(v) <= MAX_PIPELINE_PARTS;
        if fits && !out.iter().any(|(one, chunks)| *one == split && *chunks == v) {
            out.push((split, v));
        }
    };
    if p == base.pipeline && own.is_none_or(|own| own == base.virtual_pipeline) {
        take(base.split.clone(), base.virtual_pipeline);
    }
    if p == 1 {
        take(StageSplit::EVEN, 1);
        return out;
    }
    let layers = plan.model().num_layers;
    let each = |per: u64| own.map_or_else(|| divisors(per), |own| vec![own]);
    if !splits.vary() {
        // With the split as stated, chunks may still differ: the stated ends count as they do now.
        if let StageSplit::Even { account_for_embedding, account_for_loss } = base.split {
            let total = layers + u64::from(account_for_embedding) + u64::from(account_for_loss);
            if total.is_multiple_of(p) {
                each(total / p).into_iter().for_each(|v| take(base.split.clone(), v));
            }
        }
        return out;
    }
    let uneven = plan.recipe().software.semantics().offers.uneven_stages;
    for (account_for_embedding, account_for_loss) in
        [(false, false), (false, true), (true, false), (true, true)]
    {
        let ends = u64::from(account_for_embedding) + u64::from(account_for_loss);
        if (uneven || ends == 0) && (layers + ends).is_multiple_of(p) {
            let split = StageSplit::Even { account_for_embedding, account_for_loss };
            each((layers + ends) / p).into_iter().for_each(|v| take(split.clone(), v));
        }
    }
    if uneven {
        for (first, last, common) in ends(layers, p) {
            let split = StageSplit::Ends { first: Some(first), last: Some(last) };
            let fitting = own.map_or_else(|| divisors(common), |own| vec![own]);
            fitting.into_iter().for_each(|v| take(split.clone(), v));
        }
        // There is no placement of multi-token prediction in written-out stages that is known to be as good.
        if plan.model().mtp_num_layers == 0 && own.is_none() {
            for v in 1..=layers.div_ceil(p).min(MAX_WRITTEN_CHUNKS) {
                for counted in [[0, 0], [0, 1], [1, 1]] {
                    if let Some(text) = written(layers, p, v, counted) {
                        take(StageSplit::Layout(text), v);
                    }
                }
            }
        }
    }
    out
}

/// Sizes of the first and the last stage around equal middle ones, with no end larger than the middle, and a number
/// that divides all three.
fn ends(layers: u64, p: u64) -> Vec<(u64, u64, u64)> {
    let mut out = Vec::new();
    let even = layers / p;
    let between = p.saturating_sub(2);
    // The ends also hold embedding and output layer, so they get fewer layers than the middle, never more.
    let middles = if between == 0 { layers..=layers } else { even.max(1)..=even + ABOVE_EVEN };
    for middle in middles {
        let Some(rest) = layers.checked_sub(middle * between).filter(|rest| *rest >= 2) else { continue };
        for first in 1..rest {
            let last = rest - first;
            let near = |size: u64| between > 0 && size <= middle || size.abs_diff(even) <= ABOVE_EVEN;
            if near(first) && near(last) && !(first == last && (between == 0 || first == middle)) {
                let inner = if between == 0 { first } else { middle };
                out.push((first, last, common_divisor(common_divisor(first, last), inner)));
            }
        }
    }
    out
}

fn common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// Stages of `v` chunks, written out so that ranks differ by at most one layer, with the embedding and the loss
/// `counted` as this many layers; none if an even split expresses the same.
fn written(layers: u64, p: u64, v: u64, counted: [u64; 2]) -> Option<String> {
    let parts = p.checked_mul(v).filter(|parts| *parts <= MAX_PIPELINE_PARTS)?;
    let total = layers + counted[0] + counted[1];
    let (each, more) = (total / parts, total % parts);
    // If it divides evenly, it is just an even split; if some part has no layer, it does not help.
    if more == 0 || each == 0 {
        return None;
    }
    let mut sizes = Vec::new();
    for _ in 0..parts {
        sizes.push(each);
    }
    // The remaining layers go one to each part, stage by stage; the ends, which hold embedding and loss, come last.
    let order = (1..p - 1).chain([0, p - 1]);
    let places = (0..v).flat_map(|chunk| order.clone().map(move |stage| chunk * p + stage));
    for place in places.take(usize::try_from(more).ok()?) {
        *sizes.get_mut(usize::try_from(place).ok()?)? += 1;
    }
    *sizes.first_mut()? = sizes.first()?.checked_sub(counted[0])?;
    *sizes.last_mut()? = sizes.last()?.checked_sub(counted[1])?;
    Some(text(&sizes))
}

/// `sizes` in the syntax of `--pipeline-model-parallel-layout`, with equal neighbours combined.
fn text(sizes: &[u64]) -> String {
    let layers = |count: u64| match count {
        0 => String::new(),
        1 => "t".to_owned(),
        count => format!("t*{count}"),
    };
    let Some((last, before)) = sizes.split_last() else { return String::new() };
    let mut text = String::from("E");
    let mut rest = before;
    let mut first = true;
    while let Some(&size) = rest.first() {
        // The part after the E is written alone: repeating it would repeat the E.
        let run = if first { 1 } else { rest.iter().take_while(|other| **other == size).count() };
        let written = layers(size);
        if run > 1 && size > 0 {
            text.push_str(&format!("({}|)*{run}", "t".repeat(usize::try_from(size).unwrap_or(1))));
        } else {
            for _ in 0..run {
                text.push_str(&written);
                text.push('|');
            }
        }
        first = false;
        rest = rest.get(run..).unwrap_or_default();
    }
    text.push_str(&layers(*last));
    text.push('L');
    text
}

#[cfg(test)]
mod tests {
    use super::{ends, text, written};

    #[test]
    fn stages_are_written_out_evenly() {
        assert_eq!(text(&[2, 3, 3, 2]), "Et*2|(ttt|)*2t*2L");
        assert_eq!(text(&[0, 1, 1]), "E|t|tL");
        // 94 layers over 4 stages: 24 on the two middle ones, 23 on the ends.
        assert_eq!(written(94, 4, 1, [0, 0]).as_deref(), Some(text(&[23, 24, 24, 23]).as_str()));
        assert_eq!(written(96, 4, 1, [0, 0]), None);
        assert!(ends(94, 4).contains(&(23, 23, 1)));
        assert!(ends(126, 16).contains(&(7, 7, 1)), "{:?}", ends(126, 16));
        assert!(ends(61, 16).contains(&(3, 2, 1)), "{:?}", ends(61, 16));
    }
}
