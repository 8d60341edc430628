//! What builds the model under verl's Megatron engine, and the fusions that it turns on. None of them goes through Megatron-LM's
//! arguments, whose defaults differ from those of `TransformerConfig`.

use super::super::leaves::Leaves;
use super::verl_early;
use super::verl_keys::{ACTOR, at};
use crate::Origin;
use shardscope_plan::Field;

/// Who makes Megatron core's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Builder {
    /// verl's own, the default to 0.6 (`verl/models/mcore/config_converter.py`).
    Converter,
    /// mbridge, the default of 0.7 and 0.8.
    Mbridge,
    /// Megatron-Bridge, the default since 0.9.
    Bridge,
}

impl Builder {
    /// As the text says, or as the release does whose keys it has (`use_mbridge` and `vanilla_mbridge` in
    /// `verl/trainer/config/engine/megatron.yaml` of 0.7.0 to 0.9.1, `_generated_ppo_megatron_trainer.yaml` of 0.5.0 and 0.6.0).
    pub(super) fn of(leaves: &Leaves<'_>) -> Self {
        let flag = |key: &str| leaves.flag(&at(ACTOR, &format!("megatron.{key}")));
        match (flag("use_mbridge"), flag("vanilla_mbridge")) {
            (Some(false), _) => Self::Converter,
            (_, Some(false)) => Self::Bridge,
            (_, Some(true)) => Self::Mbridge,
            (None, None) if verl_early::is_to_six(leaves) => Self::Converter,
            // Stated, as it had to be before 0.7, or beside a key of 0.6 to 0.8.
            (Some(true), None) => Self::Mbridge,
            (None, None) if verl_early::is_to_eight(leaves) => Self::Mbridge,
            _ => Self::Bridge,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Converter => "verl's own converter (the default up to 0.6)",
            Self::Mbridge => "mbridge (verl's default in 0.7 and 0.8)",
            Self::Bridge => "Megatron-Bridge (verl's default since 0.9)",
        }
    }

    /// Whether a model of this `model_type` in its `config.json` has its activation fused with its bias, its dropout with its bias, and
    /// its rotation fused: mbridge 0.15.1 (`core/bridge.py:_build_base_config`, `models`), Megatron-Bridge (`models/*/*_bridge.py` and
    /// `*_provider.py`). What none of them states is off in `TransformerConfig`.
    fn fuses(self, family: &str) -> [bool; 3] {
        const BRIDGED: [&str; 17] = [
            "llama",
            "nemotron",
            "deepseek_v2",
            "deepseek_v3",
            "kimi_k2",
            "kimi_k25",
            "glm4_moe",
            "glm4_moe_lite",
            "glm4v_moe",
            "gpt_oss",
            "qwen2_5_omni",
            "qwen3_vl",
            "qwen3_vl_moe",
            "qwen3_5",
            "qwen3_5_text",
            "qwen3_5_moe",
            "qwen3_5_moe_text",
        ];
        match self {
            Self::Converter => {
                let both = ["qwen2_moe", "qwen3_moe", "mixtral", "deepseek_v3"].contains(&family);
                [both, both, family == "mixtral"]
            }
            Self::Mbridge => {
                let both = ["deepseek_v3", "qwen2_moe", "qwen3_moe", "glm4_moe", "glm4v", "glm4v_moe"]
                    .contains(&family);
                [both, both, false]
            }
            Self::Bridge => {
                let activation = BRIDGED.contains(&family);
                let alone = family == "gpt_oss" || family == "qwen3_vl" || family.starts_with("qwen3_5");
                [activation, activation && !alone, matches!(family, "llama" | "nemotron")]
            }
        }
    }
}

/// States the fusions of the model that the text names; of one that it does not name, those of the dense Qwen models.
pub(super) fn fusions(leaves: &mut Leaves<'_>) {
    let builder = Builder::of(leaves);
    let named = leaves.get("actor_rollout_ref.model.path");
    let model = named.and_then(|leaf| shardscope_catalog::find(&leaf.value).model());
    let family = model.and_then(|model| model.model_type()).unwrap_or_default();
    let word = |on: bool| if on { "true" } else { "false" };
    let [activation, dropout, rotation] = builder.fuses(&family).map(word);
    let why = format!("built by {}", builder.name());
    leaves.state_all(
        &[
            (Field::BiasSwigluFusion, activation),
            (Field::BiasDropoutFusion, dropout),
            (Field::ApplyRopeFusion, rotation),
        ],
        Origin::Default,
        &why,
    );
    if builder != Builder::Bridge {
        // `ModelParallelConfig`'s default, which neither changes.
        leaves.state(Field::GradientAccumulationFusion, "false", Origin::Default, &why);
    }
}
