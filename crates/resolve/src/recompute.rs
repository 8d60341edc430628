//! What is recomputed in the backward pass.

use super::table::Table;
use crate::SettingValue::{Int, List, Text};
use crate::{Asked, Question};
use shardscope_plan::{Field, NamedTensor, NamedTensors, Recompute, RecomputeModule, Software, word};
use shardscope_source::Code;

/// What is recomputed; none if the settings contradict each other (`transformer_config.py:__post_init__`).
pub(super) fn recompute(table: &mut Table, software: Software) -> Option<Recompute> {
    let refuse = |table: &mut Table, message: &str, hint: &str| {
        let fields = [Field::RecomputeGranularity, Field::RecomputeMethod, Field::RecomputeNumLayers];
        table.refuse(Code::Recompute, &fields, message.to_owned(), hint);
        None
    };
    let method = table.chosen::<word::RecomputeMethod>();
    // DeepSpeed's files state it of its own checkpoints, which transformers does not call (`offload.rs`).
    let distribute = table.on(Field::DistributeSavedActivations) && software != Software::HfTransformers;
    // Partitioned over tensor ranks only if nothing but layer inputs is kept.
    if distribute && !table.is(word::RecomputeGranularity::Full) {
        let hint = "add --recompute-granularity full, or leave --distribute-saved-activations out";
        return refuse(table, "distributing saved activations needs full recomputation", hint);
    }
    match table.chosen::<word::RecomputeGranularity>() {
        None => Some(Recompute::None),
        Some(word::RecomputeGranularity::Selective) if method.is_some() => refuse(
            table,
            "selective recomputation applies to every layer and takes no method",
            "leave --recompute-method out, or take --recompute-granularity full",
        ),
        Some(word::RecomputeGranularity::Selective) => selective(table, software),
        Some(word::RecomputeGranularity::Full) if method.is_none() => refuse(
            table,
            "full recomputation needs a method",
            "add --recompute-method uniform (or block) and --recompute-num-layers",
        ),
        Some(word::RecomputeGranularity::Full) => {
            // The parser of Megatron-LM of 2023 and of forks from that time defaults to 1; the current one has no
            // default and requires a value.
            if table.is_old() && !table.is_open(Field::RecomputeNumLayers) {
                table.default(Field::RecomputeNumLayers, Int(1), "default of Megatron-LM until 2023");
            }
            let Some(num_layers) = table.count(Field::RecomputeNumLayers) else {
                // An open value already has its own question.
                if !table.is_open(Field::RecomputeNumLayers) {
                    table.ask(Question {
                        asks: Asked::Setting(Field::RecomputeNumLayers),
                        prompt: "Layers per recomputed group (releases without the flag take 1)?".to_owned(),
                        choices: Vec::new(),
                        proposal: Some("1".to_owned()),
                    });
                }
                return refuse(
                    table,
                    "full recomputation needs a number of layers",
                    "add --recompute-num-layers 1",
                );
            };
            // A block may recompute zero layers; a unit of zero layers has no meaning.
            if method != Some(word::RecomputeMethod::Block) && num_layers == 0 {
                return refuse(
                    table,
                    "uniform recomputation needs units of at least one layer",
                    "--recompute-num-layers 1",
                );
            }
            Some(match method {
                Some(word::RecomputeMethod::Block) => Recompute::Block { num_layers, distribute },
                Some(word::RecomputeMethod::Every) => Recompute::Every { period: num_layers, others: false },
                Some(word::RecomputeMethod::AllButEvery) => {
                    Recompute::Every { period: num_layers, others: true }
                }
                Some(word::RecomputeMethod::Uniform) | None => Recompute::Uniform { num_layers, distribute },
            })
        }
    }
}

/// Tensors that recomputed layers keep by name; none if a name is unknown.
pub(super) fn named_tensors(table: &mut Table) -> Option<NamedTensors> {
    let names: Vec<String> = table.words(Field::NamedTensors).into_iter().map(str::to_owned).collect();
    let unknown = names.iter().find(|name| NamedTensor::named(name).is_none());
    if let Some(unknown) = unknown {
        let message = unknown.clone() + " is not a tensor that layers keep by name";
        let known = NamedTensor::ALL.map(NamedTensor::name).join(", ");
        table.refuse(Code::Recompute, &[Field::NamedTensors], message, &("any of ".to_owned() + &known));
        return None;
    }
    Some(names.iter().filter_map(|name| NamedTensor::named(name)).collect())
}

/// None if a module is unknown, in which case Megatron does not start either (`transformer_config.py:__post_init__`).
fn selective(table: &mut Table, software: Software) -> Option<Recompute> {
    // Default of `--recompute-modules`.
    let core = List(vec![Text("core_attn".to_owned())]);
    table.default(Field::RecomputeModules, core, super::defaults::whose(software));
    let mut modules = Vec::new();
    let mut unknown = Vec::new();
    for name in table.words(Field::RecomputeModules) {
        match MODULES.iter().find(|(known, _)| *known == name) {
            Some((_, module)) => modules.push(*module),
            None => unknown.push(name),
        }
    }
    if !unknown.is_empty() {
        let message = "no modules that can be recomputed: ".to_owned() + &unknown.join(", ");
        let known = MODULES.map(|(known, _)| known).join(", ");
        let fields = [Field::RecomputeModules, Field::RecomputeGranularity];
        table.refuse(Code::Recompute, &fields, message, &("any of ".to_owned() + &known));
        return None;
    }
    // The legacy models recompute the core of their own attention, never that of the flash kernel.
    if software == Software::MegatronLegacy
        && table.on(Field::UseFlashAttn)
        && modules.contains(&RecomputeModule::CoreAttention)
    {
        table.warn(
            Code::NoEffect,
            Field::RecomputeGranularity,
            "the legacy models do not recompute flash attention",
        );
        return Some(Recompute::None);
    }
    Some(Recompute::Selective(modules))
}

/// Modules by Megatron's names, and by those of transformers for plain PyTorch modules.
const MODULES: [(&str, RecomputeModule); 8] = [
    ("self_attn", RecomputeModule::Attention),
    ("core_attn", RecomputeModule::CoreAttention),
    ("moe_act", RecomputeModule::MoeActivation),
    ("layernorm", RecomputeModule::LayerNorm),
    ("mla_up_proj", RecomputeModule::MlaUpProjection),
    ("mlp", RecomputeModule::Mlp),
    ("moe", RecomputeModule::Moe),
    ("shared_experts", RecomputeModule::SharedExperts),
];
