//! What TRL's trainers make of adapters over quantized weights, which it changed twice.

use super::behind::{self, OF_OLDER_ROLLOUTS};
use super::dialect::Dialect;
use super::fused_head;
use crate::leaves::{Leaf, Leaves};
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::Field;

/// The key for a program whose trainer gets `peft_config`: `"built"`, or `"prepared"` where the program casts the model itself.
const BUILT: &str = "trl_builds_adapters";
const PREPARED_ITSELF: &str = "prepared";

/// The last releases whose trainers prepare a quantized model by PEFT's `prepare_model_for_kbit_training`, which casts all that is
/// not quantized to fp32 (`trl/models/utils.py:prepare_peft_model`, `trl/trainer/dpo_trainer.py:_prepare_peft_model`).
const PREPARED: [u64; 2] = [0, 24];
const PREPARED_BY_DPO: [u64; 2] = [0, 28];
/// KTO's (`trl/experimental/kto/kto_trainer.py`, `trl/trainer` before 0.26). ORPO's and CPO's do so in every release, 1.9 included, and
/// cast no adapters.
const PREPARED_BY_KTO: [u64; 2] = [1, 3];
/// The release whose function of that name casts norms alone.
const NORMS: [u64; 2] = [0, 25];
/// Up to these releases a 4-bit model under bf16 then gets embeddings and output layer back in bf16, and norms in fp32
/// (`trl/trainer/utils.py:peft_module_casting_to_bf16`).
const NORMS_ALONE: &str = "norms in fp32 beside embeddings in 16 bits, as TRL up to 0.25 (DPO: 0.28) leaves quantized models; later releases are modelled";
const NORMS_OF_KTO: &str = "norms in fp32 beside embeddings in 16 bits, as TRL's KTO up to 1.3 leaves quantized models; later releases are modelled";
const NORMS_OF_ODDS: &str =
    "norms in fp32 beside embeddings in 16 bits, as TRL's ORPO and CPO leave quantized models";
/// The first minor release all of whose trainers cast so: SFT's do from 0.7.5 on, DPO's from 0.7.10, and a text's release is known by two
/// numbers (`trl/trainer/sft_trainer.py`, `dpo_trainer.py` of 0.7.4 to 0.8.0).
const CAST_BY_ALL: [u64; 2] = [0, 8];
const BEFORE_CASTING: &str = "adapters over 4-bit weights under bf16 by TRL before 0.8, of which 0.7.5 (DPO: 0.7.10) began to cast embeddings and output layer back to bf16";
/// The first releases that cast trainable parameters over quantized weights to bf16 (huggingface/trl#4577, `trl/trainer`).
const CAST: [u64; 2] = [0, 26];
const CAST_BY_DPO: [u64; 2] = [0, 29];
const CAST_BY_KTO: [u64; 2] = [1, 4];

/// What preparing means for one of the trainers.
struct Trainer {
    /// The last release that prepares a model; none if all do.
    prepared: Option<[u64; 2]>,
    /// The first that casts adapters; none if none does.
    cast: Option<[u64; 2]>,
    norms: &'static str,
}

const OF_SFT: Trainer = Trainer { prepared: Some(PREPARED), cast: Some(CAST), norms: NORMS_ALONE };
const OF_DPO: Trainer =
    Trainer { prepared: Some(PREPARED_BY_DPO), cast: Some(CAST_BY_DPO), norms: NORMS_ALONE };
const OF_KTO: Trainer =
    Trainer { prepared: Some(PREPARED_BY_KTO), cast: Some(CAST_BY_KTO), norms: NORMS_OF_KTO };
const OF_ODDS: Trainer = Trainer { prepared: None, cast: None, norms: NORMS_OF_ODDS };

/// What a program's text tells of it.
pub(super) fn told(text: &str) -> Option<(&'static str, &'static str)> {
    const TRAINERS: [&str; 5] = ["SFTTrainer(", "DPOTrainer(", "KTOTrainer(", "ORPOTrainer(", "CPOTrainer("];
    let builds = TRAINERS.iter().any(|trainer| text.contains(trainer))
        && text.contains("peft_config=")
        && !text.contains("get_peft_model(");
    let itself = text.contains("prepare_model_for_kbit_training(");
    builds.then_some((BUILT, if itself { PREPARED_ITSELF } else { "built" }))
}

/// Runs once objective and quantization are known.
pub(super) fn read(leaves: &mut Leaves<'_>, dialect: Dialect) {
    // TRL's own programs hand `peft_config` on where `use_peft` is set (`trl/scripts`).
    let built = leaves.get(BUILT).cloned().or_else(|| leaves.yes("use_peft").cloned());
    leaves.pass(BUILT);
    let quantized = matches!(leaves.reading.value(Field::BaseQuantization), Some("nf4" | "fp4" | "int8"));
    if dialect != Dialect::Trl || !quantized {
        return;
    }
    let odds =
        matches!(leaves.reading.value(Field::PreferenceLogits), Some("orpo" | "cpo" | "cpo_simpo" | "simpo"));
    let (trainer, builds) = match leaves.reading.value(Field::TrainingObjective) {
        None | Some("" | "sft") => (OF_SFT, true),
        Some("dpo") if odds => (OF_ODDS, true),
        Some("dpo") => (OF_DPO, true),
        Some("kto") => (OF_KTO, true),
        Some("policy") => (OF_SFT, false),
        _ => return,
    };
    let rolls_out = leaves.reading.value(Field::TrainingObjective) == Some("policy");
    // A text that only tells transformers 4 says no release of TRL (0.0).
    let release = behind::release(leaves).filter(|release| *release > [0, 0]);
    let older = if rolls_out {
        OF_OLDER_ROLLOUTS.iter().any(|key| leaves.has(key))
    } else {
        fused_head::is_of_older(leaves)
    };
    let prepared = trainer.prepared.is_none_or(|last| release.map_or(older, |release| release <= last));
    let norms = trainer.prepared == Some(PREPARED) && release == Some(NORMS) && !leaves.has(behind::AT_MOST);
    if let Some(built) = built.filter(|_| (prepared || norms) && builds) {
        let early = release.is_some_and(|release| release < CAST_BY_ALL);
        let said = if early { BEFORE_CASTING } else { trainer.norms };
        casts(leaves, &built, norms, early, said);
    }
    let Some(first) = trainer.cast else { return };
    // An argument that only transformers 4 has belongs to releases of both kinds.
    if release.is_some_and(|release| release >= first)
        || release.is_none() && !older && !behind::is_of_older(leaves)
    {
        let why = "TRL casts adapters over quantized weights to bf16 (huggingface/trl#4577); before 0.26, in DPO before \
                   0.29, in KTO before 1.4, PEFT's fp32 stays (adapter_dtype=fp32)";
        leaves.state(Field::AdapterDtype, "bf16", Origin::Default, why);
    }
}

/// What a trainer that prepares the model makes of what is not quantized.
fn casts(leaves: &mut Leaves<'_>, built: &Leaf, norms: bool, early: bool, said: &str) {
    let item = NotModelled::new("peft_config", "", Effect::Memory, said);
    let four = matches!(leaves.reading.value(Field::BaseQuantization), Some("nf4" | "fp4"));
    let open = leaves.get("bf16").is_some_and(|leaf| leaf.hole.is_some());
    if norms && built.value != PREPARED_ITSELF {
        leaves.reading.not_modelled.push(item);
        return;
    }
    let under_bf16 = four && leaves.reading.value(Field::Bf16) == Some("true");
    if early && under_bf16 {
        leaves.reading.not_modelled.push(item);
        return;
    }
    if four && open {
        leaves.reading.not_modelled.push(item.only_at(Field::Bf16, "true"));
    } else if under_bf16 {
        let why = "under bf16 they then cast embeddings and output layer of a 4-bit model back to bf16 (peft_module_casting_to_bf16)";
        leaves.state(Field::UpcastNorms, "true", Origin::Derived, why);
    }
    if !norms || under_bf16 {
        let why = "TRL's trainers up to 0.24 (DPO: 0.28, KTO: 1.3; ORPO and CPO: all) prepare a quantized model by \
                   prepare_model_for_kbit_training";
        leaves.state(Field::UpcastNonQuantized, "true", Origin::Derived, why);
    }
}

/// QLoRA's own program: of the weights that PEFT casts to fp32 for training over quantized ones, embeddings and output layer are
/// cast back with bf16, and adapters along with them (`qlora.py:get_accelerate_model`).
pub(super) fn cast_by_qlora(leaves: &mut Leaves<'_>) {
    let bf16 = matches!(leaves.reading.value(Field::Bf16), Some("true")) || leaves.flag("bf16") == Some(true);
    let why = if bf16 {
        "prepare_model_for_kbit_training, after which QLoRA's program casts all but norms back under bf16"
    } else {
        "prepare_model_for_kbit_training, whose fp32 QLoRA's program keeps without bf16"
    };
    leaves.state(Field::UpcastNonQuantized, "true", Origin::Derived, why);
    if bf16 {
        // Recorded over 4 bits, which is the default.
        if let Some(leaf) = leaves.get("bits").filter(|leaf| matches!(leaf.whole(), Some(8 | 16 | 32))) {
            let what = "norms in fp32 beside embeddings in bf16, as QLoRA's program leaves models with --bf16, over other weights than 4-bit ones";
            let item = NotModelled::new("bits", &leaf.value, Effect::Memory, what).at_some(leaf.span);
            leaves.reading.not_modelled.push(item);
        } else {
            leaves.state(Field::UpcastNorms, "true", Origin::Derived, why);
        }
        leaves.state(Field::AdapterDtype, "bf16", Origin::Derived, why);
    }
}
