//! Megatron's hybrid models, each layer of which is one block: what their patterns say beside the blocks
//! (`megatron/core/models/hybrid/hybrid_layer_allocation.py`, August 2026).

use super::table::Table;
use crate::SettingValue::{Int, Text};
use shardscope_plan::Field;
use shardscope_source::Code;

/// Most layers that a pattern is made for.
const MOST: u64 = 4096;

/// Spells a pattern out: its bars are the bounds of pipeline stages, its slashes stand in front of depths of multi-token prediction,
/// and its signs say how many layers there are.
pub(super) fn spell_out(table: &mut Table) {
    of_ratios(table);
    if !table.has(Field::HybridOverridePattern) {
        return;
    }
    let stated = table.word(Field::HybridOverridePattern).to_owned();
    let mut parts = stated.split('/');
    let main = parts.next().unwrap_or("");
    let depths = parts.filter(|part| !part.is_empty()).count() as u64;
    if depths > 0 {
        let rule = "patterns behind slashes in hybrid_override_pattern";
        table.overrule(Field::MtpNumLayers, Int(depths), rule);
    }
    let blocks: String = main.chars().filter(|sign| *sign != '|').collect();
    table.derive(
        Field::NumLayers,
        Int(blocks.chars().count() as u64),
        "the signs of hybrid_override_pattern",
    );
    if main.contains('|') {
        let rule = "the bars of hybrid_override_pattern";
        table.derive(Field::PipelineModelParallelLayout, Text(stages(main)), rule);
    }
    if blocks != stated {
        let rule = "of hybrid_override_pattern, the blocks of its layers";
        table.overrule(Field::HybridOverridePattern, Text(blocks), rule);
    }
}

/// The stages of a pattern with bars, as a layout of pipelines writes them.
fn stages(main: &str) -> String {
    let layers = main.split('|').map(|stage| "t".repeat(stage.chars().count())).collect::<Vec<_>>().join("|");
    format!("E{layers}L")
}

/// The pattern that ratios of attention and of MLPs come to (`pattern_from_ratios`), as Megatron-LM spread layers before it had
/// patterns.
fn of_ratios(table: &mut Table) {
    let ratios =
        [Field::HybridAttentionRatio, Field::HybridMlpRatio].map(|field| table.real(field).unwrap_or(0.0));
    if table.has(Field::HybridOverridePattern) || ratios.iter().all(|ratio| *ratio <= 0.0) {
        return;
    }
    if ratios[0] + ratios[1] > 1.0 {
        let fields = [Field::HybridAttentionRatio, Field::HybridMlpRatio];
        let message =
            "attention and MLP layers together exceed all layers (hybrid_attention_ratio, hybrid_mlp_ratio)";
        return table.refuse(Code::LayerPattern, &fields, message.to_owned(), "");
    }
    let Some(layers) = table.count(Field::NumLayers).filter(|layers| *layers <= MOST) else { return };
    let pattern = from_ratios(layers, ratios);
    let rule = "from hybrid_attention_ratio and hybrid_mlp_ratio, spread as Megatron-LM does";
    table.derive(Field::HybridOverridePattern, Text(pattern), rule);
}

/// `round` of Python, whose ties go to the even number.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
fn part(layers: u64, ratio: f64) -> u64 {
    (layers as f64 * ratio).round_ties_even() as u64
}

#[allow(clippy::cast_precision_loss)]
fn from_ratios(layers: u64, [attention, mlp]: [f64; 2]) -> String {
    let attends = part(layers, attention);
    let mut mixers = layers.saturating_sub(attends);
    let section = mixers as f64 / (attends + 1) as f64;
    let mut signs = vec!['M'; usize::try_from(layers).unwrap_or(0)];
    let mut left = section;
    for sign in &mut signs {
        if left < 0.5 {
            *sign = '*';
            left += section;
        } else {
            left -= 1.0;
        }
    }
    let dense = part(layers, mlp);
    if dense > 0 {
        mixers = mixers.saturating_sub(dense);
        let ratio = mixers as f64 / dense as f64;
        let mut left = ratio;
        for sign in signs.iter_mut().filter(|sign| **sign == 'M') {
            if left < 0.5 {
                *sign = '-';
                left += ratio;
            } else {
                left -= 1.0;
            }
        }
    }
    signs.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::{from_ratios, stages};

    /// By `pattern_from_ratios` of megatron/core/models/hybrid/hybrid_layer_allocation.py, which was run.
    #[test]
    fn ratios_are_spread_as_megatron_does() {
        for (layers, ratios, pattern) in PATTERNS {
            assert_eq!(from_ratios(*layers, *ratios), *pattern, "{layers} {ratios:?}");
        }
    }

    const PATTERNS: &[(u64, [f64; 2], &str)] = &[
        (56, [0.08, 0.5], "M-M-M--M-M*-M-M-M-M--M*-M-M-M-M-M*--M-M-M-M-M*-M--M-M-M-"),
        (24, [0.08, 0.5], "M-M-M--*M-M-M-M-*M--M-M-"),
        (12, [0.25, 0.25], "MM*-MM*-M*M-"),
        (52, [0.07, 0.44], "M-M-M-M-M-*MM-M-M-M-*M-M-M-M-M-*M-M-M-MM-*M-M-M-M-M-"),
        (10, [0.5, 0.0], "M*M*M**M*M"),
        (8, [0.0, 0.5], "M-M-M-M-"),
        (5, [0.1, 0.3], "MM-M-"),
        (
            98,
            [0.08, 0.5],
            "M-M-M--M-M*-M-M-M--M-*M-M-M-M--M*-M-M-M-M--*M-M-M-M-M-*-M-M-M-M-M*--M-M-M-M-*M--M-M-M-M*-M--M-M-M-",
        ),
        (6, [0.25, 0.25], "M*-M*-"),
        (7, [0.3333, 0.3333], "MM*-*M-"),
    ];

    #[test]
    fn bars_are_bounds_of_stages() {
        assert_eq!(stages("M-M-|M-M*-"), "Etttt|tttttL");
    }
}
