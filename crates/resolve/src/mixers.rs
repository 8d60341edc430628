//! The token mixer of each layer, from the settings.

use super::frequency::pattern;
use super::table::Table;
use crate::SettingValue::{Bool, Int};
use shardscope_plan::{Field, FullHeads, LinearKind, LinearMixer, Mixer, Mixers, Window, Word, word};
use shardscope_source::Code;

/// Symbols of Megatron's hybrid patterns (`megatron/core/ssm/mamba_hybrid_layer_allocation.py:Symbols`, core 0.16).
const SIGNS: &str = "M*-E";
/// The symbols of the patterns, for messages.
const HINT: &str = "a sign for each layer: M for Mamba-2, * for attention, - for an MLP, E for experts";

/// The mixers; none if the settings contradict each other.
pub(super) fn mixers(table: &mut Table) -> Option<Mixers> {
    let stated = table.count(Field::NumLayers)?;
    // Outer none: the pattern is refused; inner none: there is no such pattern.
    let pattern = match of_hybrid(table, stated)? {
        Some(pattern) => pattern,
        None => of_layers(table, stated)?,
    };
    // In a hybrid pattern a layer is a mixer or an MLP, never both.
    let single_block = table.has(Field::HybridOverridePattern);
    let windowed = pattern.contains(&Mixer::Windowed);
    let linear = pattern.iter().any(|mixer| mixer.is_linear());
    Some(Mixers {
        // Only asked for if a layer has it: a window without windowed layers changes nothing.
        window: if windowed { Some(window(table)?) } else { None },
        linear: if linear { Some(linear_mixer(table)?) } else { None },
        pattern,
        single_block,
        output_gate: table.on(Field::AttentionOutputGate),
        full: full(table),
    })
}

/// Heads of attention to the whole sequence, if they are stated apart from the others.
fn full(table: &Table) -> Option<FullHeads> {
    let &[groups, width] = table.counts(Field::FullAttentionHeads).as_slice() else { return None };
    let keys_as_values = table.listed().contains(&word::ModuleVariant::KeysAsValues);
    Some(FullHeads { groups, width, keys_as_values })
}

/// The layers of a hybrid pattern that have experts, if there is such a pattern.
pub(super) fn experts(table: &Table) -> Option<Vec<bool>> {
    table
        .has(Field::HybridOverridePattern)
        .then(|| table.word(Field::HybridOverridePattern).chars().map(|sign| sign == 'E').collect())
}

/// The mixers of a hybrid pattern, whose layers have one block each.
fn of_hybrid(table: &mut Table, stated: u64) -> Option<Option<Vec<Mixer>>> {
    if !table.has(Field::HybridOverridePattern) {
        return Some(None);
    }
    let signs = table.word(Field::HybridOverridePattern).to_owned();
    let fields = [Field::HybridOverridePattern, Field::NumLayers];
    if let Some(sign) = signs.chars().find(|sign| !SIGNS.contains(*sign)) {
        let message = format!("hybrid_override_pattern has an unknown symbol {sign:?}");
        table.refuse(Code::LayerPattern, &fields, message, HINT);
        return None;
    }
    let length = signs.chars().count() as u64;
    if length != stated {
        let message = format!("hybrid_override_pattern has {length} layers, but the model has {stated}");
        table.refuse(Code::LayerPattern, &fields, message, HINT);
        return None;
    }
    // E is a layer of experts without a mixer; the dash of a dense MLP is a sign that `Mixer` supports.
    let mixer = |sign| if sign == 'E' { Mixer::None } else { Mixer::of_sign(sign).unwrap_or(Mixer::None) };
    Some(Some(signs.chars().map(mixer).collect()))
}

/// The mixers of a pattern of signs, of Megatron's frequencies, or of a window over all layers.
fn of_layers(table: &mut Table, stated: u64) -> Option<Vec<Mixer>> {
    // Readers of config.json write out the pattern; Megatron's frequencies are only used without it.
    if table.has(Field::MixerPattern) {
        let read = Mixers::read(table.word(Field::MixerPattern));
        if read.is_none() {
            let message = format!("mixer_pattern {} has an unknown symbol", table.word(Field::MixerPattern));
            table.refuse(Code::LayerPattern, &[Field::MixerPattern], message, "signs: * w M P -");
        }
        return read;
    }
    let mut layers = vec![Mixer::Attention; usize::try_from(stated).ok()?];
    if table.has(Field::AttentionWindow) || table.has(Field::WindowSize) {
        mark(table, Field::WindowAttnSkipFreq, Mixer::Windowed, &mut layers, stated)?;
    }
    if table.has(Field::LinearAttentionFreq) {
        mark(table, Field::LinearAttentionFreq, Mixer::Linear, &mut layers, stated)?;
    }
    // No pattern means attention in every layer, so that equal models compare equal.
    Some(if layers.iter().all(|mixer| *mixer == Mixer::Attention) { Vec::new() } else { layers })
}

/// Sets `mixer` in the layers selected by a frequency: all but every N-th, or those marked by a list
/// (`megatron/core/transformer/utils.py:is_layer_window_attention`,
/// `megatron/core/models/gpt/experimental_attention_variant_module_specs.py:is_linear_attention_variant`).
fn mark(table: &mut Table, field: Field, mixer: Mixer, layers: &mut [Mixer], stated: u64) -> Option<()> {
    let asked = table.word(field).trim().to_owned();
    if let Ok(every) = asked.parse::<usize>() {
        // Counted from 1, as Megatron numbers layers: with 4, layers 4, 8, 12 keep full attention.
        for (index, layer) in (1..).zip(layers.iter_mut()) {
            if every == 0 || index % every != 0 {
                *layer = mixer;
            }
        }
        return Some(());
    }
    match pattern(&asked, stated) {
        Ok(marks) => {
            for (layer, marked) in layers.iter_mut().zip(marks) {
                if marked {
                    *layer = mixer;
                }
            }
            Some(())
        }
        Err(why) => {
            let message = why.of(field.name());
            table.refuse(
                Code::LayerPattern,
                &[field, Field::NumLayers],
                message,
                "4, or a list such as [1]*3+[0]*1",
            );
            None
        }
    }
}

/// Megatron's window is a pair: the number of visible tokens before and after a query.
fn window(table: &mut Table) -> Option<Window> {
    if !table.has(Field::AttentionWindow) && table.has(Field::WindowSize) {
        let text = table.word(Field::WindowSize);
        let digits: String =
            // `window_size` arrives as `(127, 0)` or `[127,0]`; the first number is the one that bounds memory and
            // FLOPs.
            text.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
        if let Ok(before) = digits.parse::<u64>() {
            table.derive(
                Field::AttentionWindow,
                Int(before.saturating_add(1)),
                "window_size and the token itself",
            );
        }
    }
    let Some(tokens) = table.count(Field::AttentionWindow) else {
        let message = "layers attend to a window whose size is not given".to_owned();
        table.refuse(Code::LayerPattern, &[Field::AttentionWindow], message, "attention_window=4096");
        return None;
    };
    Some(Window { tokens, chunked: table.on(Field::ChunkedAttention) })
}

/// The linear mixer, with Megatron's defaults for missing values (`transformer_config.py`, core 0.16).
fn linear_mixer(table: &mut Table) -> Option<LinearMixer> {
    // Megatron has two linear mixers, chosen by how they are requested; readers state any other kind.
    let delta = !table.has(Field::HybridOverridePattern);
    table.derive(
        Field::LinearMixer,
        if delta { LinearKind::GatedDeltaNet } else { LinearKind::Mamba2 }.value(),
        if delta { "Megatron's linear attention" } else { "the M of a hybrid pattern" },
    );
    let kind = table.chosen::<LinearKind>()?;
    let state_space = matches!(kind, LinearKind::Mamba2 | LinearKind::Mamba);
    let why = "default of Megatron-LM core 0.16";
    let hidden = table.count(Field::HiddenSize)?;
    let [key_heads, key_width, value_width] = if state_space { [8, 128, 64] } else { [16, 128, 128] };
    table.default(Field::LinearKeyHeadDim, Int(key_width), why);
    table.default(Field::LinearValueHeadDim, Int(value_width), why);
    table.default(Field::LinearNumKeyHeads, Int(key_heads), why);
    table.default(Field::LinearConvKernelDim, Int(4), why);
    if state_space {
        // Not derived from the default number of heads: Mamba's inner width is twice the hidden size.
        let width = table.degree(Field::LinearValueHeadDim).max(1);
        let rule = "twice the hidden size / the head dimension";
        table.derive(Field::LinearNumValueHeads, Int((2 * hidden / width).max(1)), rule);
        table.default(Field::LinearNorm, Bool(true), why);
    }
    table.default(Field::LinearNumValueHeads, Int(32), why);
    let biases = table.words(Field::LinearBiases);
    let has = |name: &str| biases.contains(&name);
    // MambaMixer only has a bias in its convolution.
    let stated = table.has(Field::LinearBiases);
    // A stated list is complete; without one MambaMixer's own biases apply.
    let biases = [has("in_proj"), if stated { has("conv1d") } else { state_space }, has("out_proj")];
    let mixer = LinearMixer {
        kind,
        key_heads: table.degree(Field::LinearNumKeyHeads),
        value_heads: table.degree(Field::LinearNumValueHeads),
        key_width: table.degree(Field::LinearKeyHeadDim),
        value_width: table.degree(Field::LinearValueHeadDim),
        convolution: table.number(Field::LinearConvKernelDim),
        rank: table.number(Field::LinearRank),
        biases,
        norm: table.on(Field::LinearNorm),
    };
    // Mamba-1 has no heads to share.
    if kind != LinearKind::Mamba && !mixer.value_heads.is_multiple_of(mixer.key_heads.max(1)) {
        let message = format!(
            "{} value heads of the linear mixer cannot share {} key heads evenly",
            mixer.value_heads, mixer.key_heads
        );
        let fields = [Field::LinearNumValueHeads, Field::LinearNumKeyHeads];
        table.refuse(
            Code::LayerPattern,
            &fields,
            message,
            "value heads that are a multiple of the key heads",
        );
        return None;
    }
    Some(mixer)
}
