//! The software that a command is written for, inferred from its flags.
//!
//! The rule, first match wins:
//! 1. a DeepSpeed flag: Megatron-DeepSpeed;
//! 2. `--use-legacy-models`: legacy;
//! 3. `--transformer-impl local`: core with its own layers; `--transformer-impl transformer_engine`: core with
//!    Transformer Engine;
//! 4. `--use-mcore-models`: core with Transformer Engine; `--attention-head-type`: legacy (bigcode's fork of 2022,
//!    which had `--fim-rate` long before core);
//! 5. a flag that first came with core 0.6 or later: core with Transformer Engine (its default since 0.6);
//! 6. a flag gone since 23.06 or earlier, or `--use-flash-attn` (which only the legacy models read): legacy;
//! 7. otherwise core with Transformer Engine.

use super::flags::Flag;
use super::release::Release;
use crate::{Effect, NotModelled, Reading};
use shardscope_plan::{Field, Software};

/// The information that flags give about the release.
#[derive(Debug, Default)]
pub(super) struct Signs {
    /// The newest first release of any flag, and that flag.
    since: Option<(Release, &'static str)>,
    /// The oldest last release of any flag, and that flag.
    until: Option<(Release, &'static str)>,
    deepspeed: Option<String>,
}

impl Signs {
    pub(super) fn see(&mut self, flag: &Flag) {
        if let Some(since) = flag.since
            && self.since.is_none_or(|(youngest, _)| since > youngest)
        {
            self.since = Some((since, flag.name));
        }
        if let Some(until) = flag.until
            && self.until.is_none_or(|(oldest, _)| until < oldest)
        {
            self.until = Some((until, flag.name));
        }
    }

    pub(super) fn see_unknown(&mut self, name: &str) {
        if name.starts_with("deepspeed")
            || matches!(name, "zero-stage" | "no-pipeline-parallel" | "ds-sequence-parallel-size")
        {
            self.deepspeed.get_or_insert_with(|| name.to_owned());
        }
    }
}

/// The software, and how it was inferred.
pub(super) fn software(signs: &Signs, reading: &Reading) -> Option<(Software, String)> {
    let says = |field, value: &str| reading.value(field) == Some(value);
    let inferred = |software, by: String| Some((software, format!("inferred from {by}")));
    if let Some(flag) = &signs.deepspeed {
        return inferred(Software::MegatronDeepspeed, format!("--{flag}"));
    }
    if says(Field::UseLegacyModels, "true") {
        return inferred(Software::MegatronLegacy, "--use-legacy-models".to_owned());
    }
    if says(Field::TransformerImpl, "local") {
        return inferred(Software::MegatronCoreLocal, "--transformer-impl local".to_owned());
    }
    if says(Field::TransformerImpl, "transformer_engine") {
        return inferred(Software::MegatronCoreTe, "--transformer-impl transformer_engine".to_owned());
    }
    if says(Field::UseMcoreModels, "true") {
        return inferred(Software::MegatronCoreTe, "--use-mcore-models".to_owned());
    }
    if says(Field::WholeKeys, "true") {
        return inferred(
            Software::MegatronLegacy,
            "--attention-head-type, of bigcode's fork of 2022".to_owned(),
        );
    }
    if let Some((release, flag)) = signs.since.filter(|(release, _)| *release >= Release::TRANSFORMER_ENGINE)
    {
        return inferred(Software::MegatronCoreTe, format!("--{flag}, there since {}", release.name()));
    }
    if let Some((release, flag)) = signs.until.filter(|(release, _)| *release <= Release::LAST_LEGACY) {
        return inferred(Software::MegatronLegacy, format!("--{flag}, gone since {}", release.name()));
    }
    if says(Field::UseFlashAttn, "true") {
        return inferred(
            Software::MegatronLegacy,
            "--use-flash-attn, which only the legacy models read".to_owned(),
        );
    }
    None
}

/// Stops the verdict at experts in a text from the time of the legacy models that also requests Transformer Engine:
/// `--use-flash-attn` belonged to those models, and no text for Megatron core leaves the router completely unset. The
/// layer that such a fork builds is its own (Zyphra's `moe_365.sh`).
pub(super) fn experts_of_old(reading: &mut Reading) {
    let says = |field, value: &str| reading.value(field) == Some(value);
    let old = says(Field::TransformerImpl, "transformer_engine")
        && says(Field::UseFlashAttn, "true")
        && !says(Field::UseMcoreModels, "true");
    let routed = reading.found.iter().any(|found| found.field.name().starts_with("moe_"));
    let experts = reading.found.iter().find(|found| found.field == Field::NumExperts);
    if let Some(found) = experts.filter(|_| old && !routed) {
        let what = "experts of Megatron's legacy models or a fork of them with Transformer Engine's layers";
        let item = NotModelled::new("--num-experts", &found.value, Effect::Model, what).at_some(found.span);
        reading.not_modelled.push(item);
    }
}

#[cfg(test)]
mod tests {
    use crate::Argument;
    use crate::megatron::read;
    use shardscope_plan::Software;

    #[track_caller]
    fn check(line: &str, expected: Option<Software>) {
        assert_eq!(read(&Argument::split(line)).software.map(|(software, _)| software), expected, "{line}");
    }

    #[test]
    fn the_flags_date_the_script() {
        check("--num-layers 24 --bf16", None);
        check("--use-flash-attn --swiglu --use-distributed-optimizer --bf16", Some(Software::MegatronLegacy));
        check("--use-flash-attn --use-mcore-models", Some(Software::MegatronCoreTe));
        check("--use-flash-attn --attention-backend auto", Some(Software::MegatronCoreTe));
        check("--transformer-impl local --attention-backend auto", Some(Software::MegatronCoreLocal));
        check("--DDP-impl local --num-layers 2", Some(Software::MegatronLegacy));
        check("--num-attention-heads 16 --attention-head-type multiquery", Some(Software::MegatronLegacy));
        check("--attention-head-type multiquery --fim-rate 0.5", Some(Software::MegatronLegacy));
        check("--fim-rate 0.5", Some(Software::MegatronCoreTe));
        check("--deepspeed --use-flash-attn", Some(Software::MegatronDeepspeed));
    }
}
