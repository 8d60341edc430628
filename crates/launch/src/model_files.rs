//! What slime's and miles' own files of models state beside a shape, which the catalog gives by the model's name where such a file is
//! not among the texts. Sources: `scripts/models/*.sh` of THUDM/slime at 624b824, `scripts/models/*.py` of radixark/miles at 31f1ca9
//! (printed in `tests/snapshots/model_args`).

use super::{Found, Origin, Reading, launch::Launch};
use shardscope_bash::{HoleKind, Script, base_name};
use shardscope_plan::Field;

/// The program of miles that prints what a file of a model states.
const PRINTS: &str = "model_args_utils.py";

/// Files of either that state `--no-rope-fusion`.
const NO_ROPE_FUSION: [&str; 20] = [
    "deepseek-v3",
    "deepseek-v3-5layer",
    "deepseek-v3-20layer",
    "deepseek-v32",
    "deepseek-v32-5layer",
    "deepseek-v4-flash",
    "deepseek-v4-flash-4layer",
    "deepseek-v4-pro",
    "glm4-9B",
    "glm4-32B",
    "glm4.7-30B-A3B",
    "glm4.7-flash",
    "gpt-oss-20b",
    "joyai-llm-flash",
    "kimi-k2",
    "kimi-k2-thinking",
    "kimi-k25",
    "kimi-k25_2layer",
    "minimax-m2",
    "moonlight",
];

/// The beginnings of their names, and what the vocabulary is padded to a multiple of (`--make-vocab-size-divisible-by`). Others leave
/// Megatron-LM's own.
const DIVISORS: [(&str, &str); 5] =
    [("glm4.7-", "64"), ("glm5-", "16"), ("glm5.1-", "16"), ("glm5.2-", "16"), ("nemotron-3-", "128")];

/// Files that state `--mtp-num-layers 1`; of slime's the first alone.
const DEPTHS: [&str; 7] = [
    "mimo-7B-rl",
    "glm4.7-flash",
    "qwen3-next-80B-A3B",
    "qwen3.5-35B-A3B",
    "qwen3.5-35B-A3B_lora",
    "qwen3.6-35B-A3B",
    "qwen3.6-35B-A3B_lora",
];

/// The name of such a file, and whether it is one of miles' Python.
fn named(script: &Script) -> Option<(String, bool)> {
    let printed = script.holes.iter().filter(|hole| hole.kind == HoleKind::Command).find_map(|hole| {
        let word = hole.name.split_once(PRINTS)?.1.trim_matches(['"', '\'', ' ']);
        let variable = word.strip_prefix('$').map(|name| name.trim_matches(['{', '}']));
        let name = match variable {
            Some(name) => script.variable(name)?.values.last()?.known()?.to_owned(),
            None => word.to_owned(),
        };
        Some((name, true))
    });
    let sourced = || {
        script.missing_files.iter().find_map(|(path, _)| {
            let name = base_name(path);
            // An environment's script may come first.
            if !path.contains("models/") && !path.contains("model_args") {
                return None;
            }
            let python = name.strip_suffix(".py").map(|name| (name.to_owned(), true));
            python.or_else(|| Some((name.strip_suffix(".sh")?.to_owned(), false)))
        })
    };
    printed.or_else(sourced)
}

/// States it, where the framework is one of these and the shape is the catalog's.
pub(super) fn tell(reading: &mut Reading, launch: &Launch) {
    let looked_up = |found: &Found| found.field == Field::NumLayers && found.origin == Origin::Catalog;
    if reading.value(Field::RlFramework) != Some("slime") || !reading.found.iter().any(looked_up) {
        return;
    }
    let Some((name, miles)) = named(&launch.script) else { return };
    let divisor = DIVISORS.iter().find(|(start, _)| name.starts_with(start)).map(|(_, divisor)| *divisor);
    let depths = DEPTHS.iter().position(|file| *file == name).is_some_and(|at| miles || at == 0);
    let stated = [
        (Field::ApplyRopeFusion, NO_ROPE_FUSION.contains(&name.as_str()).then_some("false")),
        (Field::MakeVocabSizeDivisibleBy, divisor),
        (Field::MtpNumLayers, depths.then_some("1")),
    ];
    let whose = if miles { "miles" } else { "slime" };
    for (field, value) in stated {
        if let Some(value) = value.filter(|_| reading.value(field).is_none()) {
            let found = Found::new(field, value, Origin::Derived);
            reading.take(found.note(format!("stated by scripts/models/{name} of {whose}")));
        }
    }
}
