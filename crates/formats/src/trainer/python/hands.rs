//! Changes that a program makes to the model itself, beyond its arguments.

use super::known::Known;
use crate::Effect;

/// Ways of changing a model, recognized by parts of a line.
const HANDS: [(&[&str], Effect, &str); 8] = [
    (
        &[".requires_grad_(", ".requires_grad = "],
        Effect::Model,
        "parts of the model that the program freezes or trains",
    ),
    (
        &[
            "module.to(",
            "param.data.to(",
            "param.to(",
            "model.half(",
            "model.bfloat16(",
            "model.float(",
            "model.to(torch.",
            "model.to(dtype",
        ],
        Effect::Memory,
        "parts of the model that the program casts to another dtype",
    ),
    (&["model.lm_head = "], Effect::Memory, "a custom output layer"),
    (
        &[
            "def compute_loss(",
            "def training_step(",
            "compute_loss_func=",
            ".compute_loss = ",
            ".compute_loss=",
            ".training_step = ",
            ".training_step=",
        ],
        Effect::Memory,
        "a custom loss or training step",
    ),
    (&["(nn.Module):", "(torch.nn.Module):"], Effect::Model, "custom modules"),
    (
        &["optimizers=(", "optimizers = (", "def create_optimizer("],
        Effect::Memory,
        "an optimizer that the program creates",
    ),
    (
        &["apply_liger_kernel_to_", "AutoLigerKernelForCausalLM.", "torch.compile(model"],
        Effect::Memory,
        "kernels that the program patches into the model",
    ),
    (
        &["DataParallel(", "DataParallelPlugin(", "DeepSpeedPlugin("],
        Effect::Memory,
        "how the program distributes the model across GPUs",
    ),
];

/// The first change of each kind, as far as conditions on the options allow it; `adapted`: adapters train, so
/// that the rest is frozen anyway.
pub(super) fn of_its_own<'a>(
    text: &'a str,
    known: &Known<'_>,
    adapted: bool,
) -> Vec<(&'a str, Effect, &'static str)> {
    /// Lines whose conditions are examined.
    const LOOKED_AT: usize = 64;
    /// The head of a loop over trainable parameters.
    const TRAINED: &str = "for param in filter(lambda p: p.requires_grad, model.parameters()):";
    // The position at which the last trainer is created; heads of trainer classes look alike.
    let heads = |at: &usize| {
        let before = text.get(..*at).unwrap_or_default();
        before.rsplit('\n').next().unwrap_or_default().trim_start().starts_with("class ")
    };
    let handed = text.rmatch_indices("Trainer(").map(|(at, _)| at).take(LOOKED_AT).find(|at| !heads(at));
    // Most programs have none of these signs: lines are only searched for those that occur at all.
    let signs = HANDS.map(|(signs, effect, what)| {
        (signs.iter().copied().filter(|sign| text.contains(sign)).collect::<Vec<_>>(), effect, what)
    });
    let mut found: Vec<(&str, Effect, &str)> = Vec::new();
    if signs.iter().all(|(signs, ..)| signs.is_empty()) {
        return found;
    }
    let (mut at, mut looked) = (0, 0);
    for line in text.split_inclusive('\n') {
        let start = at + line.len() - line.trim_start().len();
        at += line.len();
        let words = line.split('#').next().unwrap_or_default().trim();
        for (signs, effect, what) in &signs {
            let (effect, what) = (*effect, *what);
            if found.iter().any(|(_, _, known)| *known == what) {
                continue;
            }
            let Some(sign) = signs.iter().find(|sign| words.contains(**sign)) else { continue };
            // A function of the module itself that is no method takes the place of none of the trainer's, unless it is
            // assigned to one, which is a sign of its own.
            let of_module =
                text.get(..start).is_none_or(|before| before.is_empty() || before.ends_with('\n'));
            let behind =
                text.get(start..).and_then(|rest| rest.split_once(sign)).map_or("", |(_, rest)| rest);
            let is_method = behind.trim_start().starts_with("self") || behind.trim_start().starts_with('*');
            if sign.starts_with("def ") && of_module && !is_method {
                continue;
            }
            // A hook on the input of the first layer, which checkpointing over frozen weights requires.
            let hook = words.contains("output.requires_grad_") || words.contains("def ");
            let freezes = words.ends_with("False") || words.contains("requires_grad_(False)");
            let hook = hook && !sign.starts_with("def ");
            if hook || freezes && adapted || words.starts_with("from ") || words.contains("(None, None)") {
                continue;
            }
            // Trainable parameters cast to fp32: PEFT holds adapters in fp32 anyway (`autocast_adapter_dtype`).
            let of_trained = words.starts_with("param.data = param.data.to(torch.float32)")
                && text.get(..start).is_some_and(|before| before.trim_end().ends_with(TRAINED));
            // Compiled after the trainer received the model: the trainer's own model is not compiled.
            let too_late = *sign == "torch.compile(model" && handed.is_some_and(|handed| handed < start);
            if of_trained && adapted || too_late {
                continue;
            }
            looked += 1;
            if looked <= LOOKED_AT && known.runs(text, start, at) == Some(false) {
                continue;
            }
            let name = sign.trim_start_matches("def ").trim_start_matches(['.', '(']);
            let name = name.split('(').next().unwrap_or(name).trim_matches(['.', ')', ':', ' ', '=']);
            found.push((name, effect, what));
        }
    }
    found
}
