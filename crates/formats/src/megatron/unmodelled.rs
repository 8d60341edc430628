//! Flags of Megatron-LM that change a figure but that no estimator models, each with a description. Values at which a
//! flag changes nothing are listed with it.

use std::sync::OnceLock;

use crate::Effect;
use shardscope_source::LaterText;

/// In a program with the feature `tables-later` no such flag is known until the table is supplied.
pub static TABLE: LaterText = LaterText::new(
    "unmodelled.txt",
    if cfg!(feature = "tables-later") { None } else { Some(include_str!("unmodelled.txt")) },
);

/// A flag that is read and not modelled.
#[derive(Debug)]
pub(super) struct Unmodelled {
    /// Without dashes.
    pub(super) name: &'static str,
    /// What it would change.
    pub(super) effect: Effect,
    /// Values at which it changes nothing, separated by blanks; a switch that is off never changes anything.
    harmless: &'static str,
    /// Description that follows "not modelled:".
    pub(super) message: &'static str,
}

/// All such flags.
fn unmodelled() -> &'static [Unmodelled] {
    static ALL: OnceLock<Vec<Unmodelled>> = OnceLock::new();
    ALL.get_or_init(|| {
        TABLE.text().lines().filter(|line| !line.starts_with('#')).filter_map(stated).collect()
    })
}

/// Parses a line of the table.
fn stated(line: &'static str) -> Option<Unmodelled> {
    let mut parts = line.splitn(4, '|').map(str::trim);
    let (name, effect) = (parts.next()?, Effect::named(parts.next()?)?);
    Some(Unmodelled { name, effect, harmless: parts.next()?, message: parts.next()? })
}

/// Layer specifications that are the transformer's own, or that only repeat what other flags state
/// (`megatron/core/models/gpt/gpt_layer_specs.py`; MindSpeed-LLM `mindspeed_llm/tasks/models/spec/`).
const PLAIN_SPECS: [&str; 14] = [
    "megatron.core.models.gpt.gpt_layer_specs",
    "local",
    "te",
    "qwen3_spec",
    "qwen3_moe_spec",
    "deepseek_spec",
    "glm45_moe_spec",
    "phi35_moe_spec",
    "hunyuan_large_spec",
    "ling_spec",
    "bailing_spec",
    "seed_oss_spec",
    // Layers of one block each; the pattern states which ones, and flags state the mixers' sizes.
    "mamba_stack_spec",
    "hybrid_stack_spec",
];

/// The flag of a name without dashes, if it is not modelled at this value.
pub(super) fn find(name: &str, value: &str) -> Option<&'static Unmodelled> {
    /// A layer specification, by module and name.
    const SPEC: Unmodelled = Unmodelled {
        name: "spec",
        effect: Effect::Model,
        harmless: "",
        message: "an unknown layer specification",
    };
    if name == "spec" {
        let plain = |part: &str| {
            PLAIN_SPECS.iter().any(|known| part == *known || part.ends_with(&format!(".{known}")))
        };
        return (!value.split_ascii_whitespace().any(plain)).then_some(&SPEC);
    }
    let found = unmodelled().iter().find(|known| known.name == name)?;
    let harmless = |word: &str| word.eq_ignore_ascii_case(value);
    (value != "false" && !found.harmless.split_ascii_whitespace().any(harmless)).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::{find, unmodelled};
    use crate::megatron::flags;
    use shardscope_plan::Field;

    #[test]
    fn every_one_is_a_flag_without_a_setting() {
        assert_eq!(unmodelled().len(), 57);
        for known in unmodelled() {
            let flag = flags::find(known.name).unwrap_or_else(|| panic!("{}", known.name));
            let setting = Field::named(flag.dest.unwrap_or(flag.name));
            assert!(setting.is_none(), "{} is modelled as {setting:?}", known.name);
        }
    }

    #[test]
    fn harmless_values_are_distinguished_from_others() {
        assert!(find("use-sharp", "true").is_some() && find("use-sharp", "false").is_none());
        assert!(find("pipeline-model-parallel-comm-backend", "nccl").is_none());
        assert!(find("spec", "mindspeed_llm.tasks.models.spec.qwen3_spec layer_spec").is_none());
        assert!(find("spec", "mine.mamba mamba_spec").is_some());
        assert!(find("lr", "1e-4").is_none());
    }
}
