//! Optimizers that project gradients to a lower rank (GaLore, APOLLO), and an optimizer's own arguments.

use super::dialect::Dialect;
use crate::leaves::{Leaf, Leaves};
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::Field;

/// LLaMA-Factory's switches, with the prefix of their settings (`llamafactory/hparams/finetuning_args.py`).
const SWITCHES: [(&str, &str, &str); 2] =
    [("use_galore", "galore", "galore"), ("use_apollo", "apollo", "apollo")];
/// LLaMA-Factory's settings of both that do not affect memory: the interval of new projections, and scales.
const IDLE: [&str; 4] = ["update_interval", "scale", "scale_type", "scale_front"];
/// Arguments that the Trainer passes to its optimizers by `optim_args` and that do not affect their memory.
const HARMLESS: &str = "lr betas beta1 beta2 beta3 eps alpha t_alpha t_beta3 weight_decay lr_decay dampening nesterov weight_lr_power r \
    max_lr decouple_lr update_proj_gap scale scale_type";

/// Reads which optimizer projects gradients, and how.
pub(super) fn read(leaves: &mut Leaves<'_>, dialect: Dialect) {
    for (switch, before, name) in SWITCHES {
        leaves.pass(switch);
        let Some(leaf) = leaves.yes(switch) else { continue };
        if dialect == Dialect::LlamaFactory {
            of_llama_factory(leaves, leaf, before, name);
        } else {
            let what = "training that changes part of the weights at a time";
            lack(leaves, leaf, what);
        }
        return;
    }
    let Some(leaf) = leaves.first(&["optim", "optimizer"]) else { return };
    let name = leaf.value.to_ascii_lowercase();
    if name.starts_with("galore_adamw") || name.starts_with("apollo_adamw") {
        if let Some(targets) = leaves.get("optim_target_modules") {
            leaves.say(Field::OptimTargets, &targets.value, targets);
        }
        if name.ends_with("layerwise") {
            leaves.switch(Field::StepInBackward, true, leaf);
        }
    }
    arguments(leaves, leaf, &name);
}

/// `train/trainer_utils.py:_create_galore_optimizer, _create_apollo_optimizer`, which replace the optimizer that
/// `optim` names: by an 8-bit AdamW if that one has 8 bits.
fn of_llama_factory(leaves: &mut Leaves<'_>, switch: &Leaf, before: &str, name: &str) {
    let optim = leaves.text("optim").unwrap_or("adamw_torch").to_owned();
    let known = match optim.as_str() {
        "adamw_torch" => Some(name.to_owned()),
        "adamw_bnb_8bit" | "adamw_8bit" | "paged_adamw_8bit" if name == "galore" => {
            Some("galore_8bit".to_owned())
        }
        _ => None,
    };
    let Some(known) = known else {
        return lack(leaves, switch, "an optimizer that LLaMA-Factory does not project gradients for");
    };
    let singular = leaves.text("apollo_proj") == Some("svd") && name == "apollo";
    leaves.reading.keep(&|found| found.field != Field::Optimizer);
    leaves.say(Field::Optimizer, if singular { "apollo_svd" } else { &known }, switch);
    let keys =
        [("rank", Field::OptimRank), ("target", Field::OptimTargets), ("proj_type", Field::OptimProjection)];
    for (key, field) in keys {
        leaves.take(&[&format!("{before}_{key}")], field);
    }
    leaves.turn_on(&format!("{before}_layerwise"), Field::StepInBackward);
    for key in IDLE {
        leaves.pass(&format!("{before}_{key}"));
    }
    let whose = "default of LLaMA-Factory";
    leaves.state(Field::OptimRank, "16", Origin::Default, whose);
    leaves.state(Field::OptimTargets, "all", Origin::Default, whose);
    let why = "LLaMA-Factory's groups: without weight decay, with it, projected";
    leaves.state(Field::OptimVectorsFirst, "true", Origin::Derived, why);
}

/// Arguments that `optim_args` passes to the optimizer (`transformers/trainer_optimizer.py:_parse_optim_args`).
fn arguments(leaves: &mut Leaves<'_>, optim: &Leaf, name: &str) {
    let Some(leaf) = leaves.get("optim_args") else { return };
    let projects = name.starts_with("galore") || name.starts_with("apollo");
    for pair in leaf.value.split(',').take(32) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        match (key.trim(), value.trim()) {
            ("rank", rank) if projects => leaves.say(Field::OptimRank, rank, leaf),
            ("proj_type", side) if projects => leaves.say(Field::OptimProjection, side, leaf),
            ("proj", "random") if name.starts_with("apollo") => {}
            ("proj", "svd") if name.starts_with("apollo") => {
                leaves.reading.keep(&|found| found.field != Field::Optimizer);
                leaves.say(Field::Optimizer, "apollo_svd", optim);
            }
            ("momentum", momentum) if name == "sgd" => leaves.say(Field::SgdMomentum, momentum, leaf),
            (key, _) if HARMLESS.split_ascii_whitespace().any(|known| known == key) => {}
            (key, _) => lack(leaves, leaf, &format!("an argument of the optimizer's own, {key}")),
        }
    }
}

fn lack(leaves: &mut Leaves<'_>, leaf: &Leaf, what: &str) {
    let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Memory, what).at_some(leaf.span);
    leaves.reading.not_modelled.push(item);
}
