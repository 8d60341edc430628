//! What a program does, judging by its name: training of a decoder, training of something else, or no training at all.

use crate::{Effect, Reading};
use shardscope_bash::base_name;
use shardscope_plan::Field;

/// What a program is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Training, or a name that says nothing else.
    Training,
    /// Something that holds neither gradients nor optimizer states.
    NoTraining(&'static str),
    /// Training of something other than a decoder by next-token prediction.
    OtherTraining(Effect, &'static str),
    /// Training of layers that a stated pattern describes.
    HybridTraining(&'static str),
}

const GENERATES: &str = "a text generation program, not a training run";
const SERVES: &str = "a server, not a training run";
const EVALUATES: &str = "an evaluation, not a training run";
const CONVERTS: &str = "a checkpoint conversion, not a training run";
const SETS_UP: &str = "software installation, not a training run";
const CHECKS: &str = "a hardware check, not a training run";
const PREPARES: &str = "data preparation, not a training run";

/// Words of program names, and what such programs are for.
const VERBS: &[(&str, &str)] = &[
    (
        "inference infer generate generation generater generator chat chatbot predict sample sampling rollout text_generation \
         run_generation",
        GENERATES,
    ),
    (
        "server serve serving vllm sglang api app webui web-ui webchat deploy gradio launch_server worker",
        SERVES,
    ),
    ("eval evaluation evaluate evaluator lm_eval benchmark perplexity ppl mmlu humaneval", EVALUATES),
    (
        "convert converter conversion roundtrip export merge quantize quantization prune pruning hf2mcore mcore2hf hf2megatron megatron2hf \
         ckpt checkpoint consolidate reshard torchdist",
        CONVERTS,
    ),
    ("test tests diagnostics", CHECKS),
    ("preprocess preprocessing tokenize prepare download make_dataset analyze validate_data", PREPARES),
];

/// What the names of programs begin with that make data.
const PREPARING: [&str; 8] =
    ["pack", "prepare", "preprocess", "process", "build", "make", "download", "tokenize"];

/// First words of programs that do something with a trained model. Not `chat`: nanochat's `chat_sft.py` trains one.
const DONE_WITH: [&str; 7] = ["eval", "evaluate", "evaluation", "infer", "inference", "merge", "convert"];

/// Programs that install software.
const INSTALLERS: [&str; 8] = ["pip", "pip3", "apt-get", "apt", "conda", "mamba", "micromamba", "dnf"];

/// Whether a program installs software.
pub(super) fn installs(program: &str) -> Option<&'static str> {
    INSTALLERS.contains(&base_name(program)).then_some(SETS_UP)
}

/// Words that mark a program as training, whatever else its name says.
const TRAINS: &str =
    "train training pretrain pretraining finetune finetuning sft posttrain trainer tune tuning sft_trainer";

/// Megatron-LM's `pretrain_mamba.py`, which is `pretrain_hybrid.py` since 2026, and programs of forks named after them.
const HYBRID: &str = "layers other than attention and MLP";
const VISION: &str = "a vision model in addition to or in place of the decoder";
const PREFERENCES: &str = "a reference model, and perhaps a reward model, besides the trained one";

/// Words in the names of programs that train something else.
const OTHERS: &[(&str, Effect, &str)] = &[
    (
        "bert squad glue t5 ict biencoder retro mlm esm esm2 esm1nv geneformer",
        Effect::Model,
        "a model other than a decoder-only language model",
    ),
    // Pai-Megatron-Patch's program, whose pattern names the layers after Mamba
    // (`megatron_patch/model/qwen3_next/layer_specs.py`).
    ("pretrain_qwen3_next", Effect::Model, "Qwen3-Next's gated delta nets and gated attention"),
    (
        "vlm vl vl2 llava internvl multimodal clip vision cogvlm mllama qwen2vl qwen25vl pixtral imagenet dit sora opensora \
         whisper",
        Effect::Model,
        VISION,
    ),
    ("dpo ppo grpo rlhf kto orpo rloo reinforce gspo dapo", Effect::Memory, PREFERENCES),
    ("reward rm orm", Effect::Model, "a reward head in place of the LM head"),
    // OpenRLHF's takes its loss of the LM head's logits (`openrlhf/trainer/prm_trainer.py`), TRL's has a head for classes.
    ("prm", Effect::Memory, "a process reward model, whose loss is of marked tokens alone"),
    // HyeongminMoon/ChatLLM: `fastchat/train/train_lora_custom.py`.
    (
        "train_lora_custom",
        Effect::Model,
        "an embedding and an output layer that the program trains beside its adapters (ChatLLM)",
    ),
    ("distill distillation", Effect::Memory, "a teacher model (distillation)"),
];

/// Programs that train with OLMo-core, whatever else their names say: its own scripts, and open-instruct's that build
/// on it.
const OLMO_CORE: [&str; 5] = [
    "open_instruct/dpo.py",
    "open_instruct/olmo_core_finetune.py",
    "open_instruct/grpo.py",
    "src/scripts/train/",
    "src/scripts/official/",
];

/// Whether a program casts every weight that is not quantized to fp32 before adapters are added: MedicalGPT's, for
/// fp16 (`training/dpo_training.py`: over all parameters that require a gradient, which are all of them then).
pub(super) fn casts_to_fp32(program: &str) -> bool {
    base_name(program) == "dpo_training.py"
}

/// Programs whose arguments say what stands beside the decoder, for which there is a reader: InternVL's.
const READ: [&str; 1] = ["internvl_chat_finetune"];

/// Whether a program trains with OLMo-core.
pub(super) fn is_olmo_core(program: &str) -> bool {
    OLMO_CORE.iter().any(|known| program.contains(known))
}

/// Whether a program trains a model with a vision tower that Megatron-Bridge builds, whose reader says what stands beside the decoder.
pub(super) fn is_bridged(reading: &Reading, program: &str) -> bool {
    purpose(program) == Purpose::OtherTraining(Effect::Model, VISION)
        && reading.value(Field::VisionModules).is_some()
}

/// What a program is for, by its path or module.
pub(super) fn purpose(program: &str) -> Purpose {
    let is_module = !program.ends_with(".py") && program.contains('.');
    // The packages around a module say less than its own name (`verl.trainer.main_generation`,
    // `recipe.partial_rollout.main_ppo`).
    let own = program.rsplit_once('.').filter(|_| is_module).map(|(_, own)| purpose(own));
    if let Some(Purpose::NoTraining(what)) = own {
        return Purpose::NoTraining(what);
    }
    let name = if is_module { program } else { base_name(program) };
    let name = name.strip_suffix(".py").unwrap_or(name).to_ascii_lowercase();
    let words: Vec<&str> = name.split(['_', '-', '.']).filter(|word| !word.is_empty()).collect();
    let has = |list: &str| list.split_ascii_whitespace().any(|known| words.contains(&known) || name == known);
    let begins = |list: &str| {
        list.split_ascii_whitespace().any(|known| words.iter().any(|word| word.starts_with(known)))
    };
    let is_named = matches!(own, Some(Purpose::OtherTraining(..)));
    // Megatron-Bridge's `pack_sft_data.py`: what it prepares is named, not what it does.
    if words.first().is_some_and(|first| PREPARING.contains(first)) && words.last() == Some(&"data") {
        return Purpose::NoTraining(PREPARES);
    }
    let trains = is_named || has(TRAINS) || begins("pretrain finetune");
    // `eval_sft_sanity.py`, `merge_finetuned.py`: what was trained is named after what is done with it.
    let first = words.first().filter(|first| DONE_WITH.contains(first) && !begins("train pretrain"));
    if !trains || first.is_some() {
        for (verbs, what) in VERBS {
            if first
                .map_or_else(|| has(verbs), |first| verbs.split_ascii_whitespace().any(|verb| verb == *first))
            {
                return Purpose::NoTraining(what);
            }
        }
    }
    // Converters of checkpoints are named after both formats (`deepseek_v3_hf_to_mg.py`).
    const FORMATS: [&str; 7] = ["hf", "mg", "mcore", "megatron", "nemo", "huggingface", "meta"];
    let between = name.split_once("_to_").filter(|(from, to)| {
        let ends = |text: &str, last: bool| {
            let mut words = text.split(['_', '-', '.']);
            let word = if last { words.next_back() } else { words.next() };
            word.is_some_and(|word| FORMATS.contains(&word))
        };
        ends(from, true) && ends(to, false)
    });
    if !trains && between.is_some() {
        return Purpose::NoTraining(CONVERTS);
    }
    // BioNeMo's protein models (`examples/protein/esm1nv/pretrain.py`).
    if program.contains("/esm1nv/") || program.contains("/esm2/") {
        return Purpose::OtherTraining(Effect::Model, "a model other than a decoder-only language model");
    }
    // Megatron's zero-shot tasks, the prompting of a dialogue model (`tasks/msdp/main.py`), and its tools other than
    // training.
    if program.ends_with("tasks/main.py") || program.ends_with("tasks/msdp/main.py") {
        return Purpose::NoTraining(EVALUATES);
    }
    if program.contains("tools/checkpoint/") || program.contains("checkpoint_convert") {
        return Purpose::NoTraining(CONVERTS);
    }
    if READ.contains(&name.as_str()) {
        return Purpose::Training;
    }
    for (kinds, effect, what) in OTHERS {
        if has(kinds) {
            return Purpose::OtherTraining(*effect, what);
        }
    }
    if has("mamba hybrid") { Purpose::HybridTraining(HYBRID) } else { Purpose::Training }
}

#[cfg(test)]
mod tests {
    use super::{Purpose, purpose};

    #[test]
    fn training_is_distinguished_from_what_is_none() {
        for name in [
            "pretrain_gpt.py",
            "train.py",
            "src/train_bash.py",
            "posttrain_gpt.py",
            "examples/run_clm.py",
            "main.py",
            "torchtitan.train",
            "areal.launcher.local",
            "agentic.rollout.train_agent",
            "train_and_eval.py",
            "eval_and_train.py",
            "scripts.chat_sft",
            "pretrain_llama.py",
        ] {
            assert_eq!(purpose(name), Purpose::Training, "{name}");
        }
        for name in [
            "inference.py",
            "evaluation.py",
            "tools/run_text_generation_server.py",
            "gpt_dynamic_inference.py",
            "convert_ckpt.py",
            "tools/checkpoint/convert.py",
            "tools/preprocess_data.py",
            "torch-distributed-gpu-test.py",
            "lm_eval",
            "vllm.entrypoints.openai.api_server",
            "verl.trainer.main_generation",
            "recipe.r1.main_eval",
            "sglang.launch_server",
            "tasks/main.py",
            "./tasks/msdp/main.py",
            "../analyze_data.py",
            "utils.validate_data",
            "generate_samples_gpt.py",
            "/opt/Megatron-Bridge/scripts/training/pack_sft_data.py",
            "../../tools/run_mamba_text_generation_server.py",
            "hf2mcore_qwen2.5.py",
            "/w/deepseek_v3_hf_to_mg.py",
            "examples/conversion/hf_megatron_roundtrip_multi_gpu.py",
            "llama_megatron_to_hf.py",
            "app",
            "web-ui",
            "rollout",
            "scripts/eval_sft_sanity.py",
            "merge_finetuned.py",
        ] {
            assert!(matches!(purpose(name), Purpose::NoTraining(_)), "{name}: {:?}", purpose(name));
        }
        for name in [
            "pretrain_vlm.py",
            "pretrain_bert.py",
            "pretrain_qwen3_next.py",
            "distill_mamba.py",
            "train_ppo.py",
            "recipe.partial_rollout.main_ppo",
            "pretrain_retro.py",
            "run_mlm.py",
            "esm2/scripts/train_esm2.py",
            "/workspace/bionemo/examples/protein/esm1nv/pretrain.py",
        ] {
            assert!(matches!(purpose(name), Purpose::OtherTraining(..)), "{name}");
        }
        for name in ["pretrain_mamba.py", "pretrain_hybrid.py"] {
            assert!(matches!(purpose(name), Purpose::HybridTraining(_)), "{name}");
        }
    }
}
