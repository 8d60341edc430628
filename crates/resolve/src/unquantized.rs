//! Linear layers that a quantized checkpoint does not quantize, by the names listed in its configuration.

use super::lacking_modules::has_liger;
use super::objective::has_head;
use super::table::Table;
use crate::Effect;
use shardscope_plan::{Field, LinearModule, LoraModules, Software, UnquantizedLinears, word};

/// Modules outside a decoder's layers, none of which is quantized here: the output layer, and parts of towers.
const OUTSIDE: &str = "lm_head embed_tokens multi_modal_projector merger modality_projection vision_tower vision_model visual router";
/// Prefixes of a layer's number, in text models and in decoders of multimodal ones.
const LAYERS: [&str; 4] =
    ["model.layers.", "model.language_model.layers.", "language_model.model.layers.", "layers."];

const ATTENTION: [LinearModule; 4] =
    [LinearModule::Query, LinearModule::Key, LinearModule::Value, LinearModule::Output];
const MLP: [LinearModule; 3] = [LinearModule::Gate, LinearModule::Up, LinearModule::Down];

/// The modules within a layer that `name` matches, following
/// `transformers/quantizers/quantizers_utils.py:should_convert_module`.
fn within(name: &str) -> Option<LoraModules> {
    let all = |modules: &[LinearModule]| {
        modules.iter().fold(LoraModules::default(), |all, module| all.with(*module))
    };
    let one = |name: &str| LoraModules::default().named(name).filter(|_| name.ends_with("_proj"));
    match name.split_once('.') {
        None if name.is_empty() => Some(all(&ATTENTION).with(MLP[0]).with(MLP[1]).with(MLP[2])),
        None if name == "self_attn" => Some(all(&ATTENTION)),
        None if name == "mlp" => Some(all(&MLP)),
        None => one(name),
        Some(("self_attn" | "mlp", name)) => one(name),
        Some(_) => None,
    }
}

/// The modules that the listed names leave unquantized in each of `layers` layers; or the first name that means
/// something else.
fn read<'n>(names: &[&'n str], layers: u64) -> Result<Vec<LoraModules>, &'n str> {
    let mut whole = vec![LoraModules::default(); usize::try_from(layers).unwrap_or(0)];
    let outside = |name: &str| OUTSIDE.split_ascii_whitespace().any(|known| name == known);
    for &name in names.iter().filter(|name| **name != "none") {
        if outside(name.rsplit('.').next().unwrap_or(name)) {
            continue;
        }
        let below = LAYERS.iter().find_map(|start| name.strip_prefix(start));
        let (of, rest) = match below {
            Some(below) => {
                let (number, rest) = below.split_once('.').unwrap_or((below, ""));
                let at = number.parse::<usize>().map_err(|_| name)?;
                (whole.get_mut(at..=at).ok_or(name)?, rest)
            }
            // A name without a layer means the modules of all layers that end in it.
            None => (&mut whole[..], name),
        };
        let modules = within(rest).ok_or(name)?;
        for layer in of {
            *layer = [ATTENTION.as_slice(), &MLP]
                .concat()
                .into_iter()
                .filter(|module| modules.has(*module))
                .fold(*layer, LoraModules::with);
        }
    }
    Ok(whole)
}

/// Reports cases that are not known: unquantized modules that differ between layers, or whose weights are sharded.
pub(super) fn lacking(table: &mut Table, software: Software) {
    norms_alone(table, software);
    let names = table.words(Field::WholeLinears);
    let some = |name: &&str| *name != "none";
    if !names.iter().any(some) || !table.is_any(&[word::BaseQuantization::Nf4, word::BaseQuantization::Fp4]) {
        return;
    }
    let unlike = table.number(Field::NumExperts) > 0
        || table.has(Field::LinearMixer)
        || table.on(Field::MultiLatentAttention)
        || table.number(Field::MtpNumLayers) > 0;
    let spread = table.number(Field::ZeroStage) > 2
        || table.is_any(&[word::DataParallelEngine::Fsdp1, word::DataParallelEngine::Fsdp2]);
    let layers = table.number(Field::NumLayers);
    let fault = match read(&names, layers) {
        Err(name) => Some(format!("a quantized checkpoint's list of layers in 16 bits that names {name}")),
        Ok(_) if !names.contains(&"lm_head") => {
            Some("a quantized checkpoint whose output layer is quantized too".to_owned())
        }
        Ok(_) if unlike => Some("layers of several kinds of which some are quantized".to_owned()),
        Ok(_) if spread => Some("layers of which some are quantized, sharded over ranks".to_owned()),
        Ok(_) => None,
    };
    if let Some(message) = fault {
        table.lack(Field::WholeLinears, "", Effect::Memory, &message);
    }
}

/// The linear layers that are not quantized.
pub(super) fn unquantized(table: &Table) -> UnquantizedLinears {
    let layers = table.number(Field::NumLayers);
    UnquantizedLinears::from_layers(&read(&table.words(Field::WholeLinears), layers).unwrap_or_default())
}

/// Norms in fp32 beside embeddings and output layer in 16 bits were recorded with 4-bit layers of Llama, Mistral and Qwen under bf16, and
/// with adapters on these layers alone: those of the ends would be cast too (`trl/trainer/utils.py:peft_module_casting_to_bf16`).
fn norms_alone(table: &mut Table, software: Software) {
    if !table.on(Field::UpcastNorms) {
        return;
    }
    let four = table.is_any(&[word::BaseQuantization::Nf4, word::BaseQuantization::Fp4]);
    let ends = ["lm_head", "embed_tokens", "wte", "wpe"];
    let adapted = [Field::LoraTargetModules, Field::ModulesToSave]
        .iter()
        .any(|field| table.words(*field).iter().any(|name| ends.iter().any(|end| name.contains(end))));
    // Gemma's norms return their input's format, and the stream stays in 16 bits.
    let on = [
        Field::MultiLatentAttention,
        Field::PostNorms,
        Field::NormsOverHeads,
        Field::Fp32Norms,
        Field::WideNorms,
        // Phi-3's projections: one module each, with other tensors.
        Field::FusedQkv,
        Field::FusedGateUp,
    ];
    let others = on.iter().any(|field| table.on(*field))
        || table.has(Field::VisionTower)
        || table.number(Field::NumExperts) > 0
        || table.has(Field::LinearMixer)
        || table.has(Field::Normalization) && !table.is(word::Normalization::RmsNorm)
        || !table.words(Field::ModuleVariants).is_empty()
        || !table.word(Field::UnrecordedModules).is_empty();
    // DeepSpeed's engine casts all of a model, and FSDP's shards are prepared by nobody.
    let alone = table.is_unset_or(&[word::DataParallelEngine::Ddp]);
    // Liger's norms return their input's format (`liger_kernel/ops/rms_norm.py:rms_norm_forward`), and a head in place of the output
    // layer is cast by other rules.
    let replaced = software != Software::HfTransformers || has_liger(table) || has_head(table);
    if replaced || !four || adapted || others || !alone || !table.is(word::Autocast::Bf16) {
        let message = "norms in fp32 beside embeddings in 16 bits (TRL up to 0.25, in DPO 0.28, and its KTO, ORPO and CPO) in other \
                       layers than transformers' own 4-bit ones of Llama, Mistral and Qwen, with adapters or another head on the ends, with \
                       Liger's kernels, or under DeepSpeed or FSDP";
        table.lack(Field::UpcastNorms, "true", Effect::Memory, message);
    }
}
