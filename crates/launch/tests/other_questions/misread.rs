//! Releases, launches and modules that were taken for their relatives.

use super::{said, stopped, value};
use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::Field;
use shardscope_source::Source;

/// KTOTrainer of TRL up to 1.3, and ORPOTrainer and CPOTrainer of every release, prepare a 4-bit model and turn its embeddings back to
/// bf16 (`trl/experimental/kto/kto_trainer.py`, `orpo`, `cpo`); 16 bits were read for all that is not quantized.
#[test]
fn norms_that_preference_trainers_of_trl_cast_are_told() {
    let of = |installs: &str, kind: &str, bits: &str, more: &str| {
        let text = format!(
            "# pip install {installs}\nimport torch\nfrom peft import LoraConfig\nfrom transformers import AutoModelForCausalLM, \
             BitsAndBytesConfig\nfrom trl import {kind}Config, {kind}Trainer\nbnb = BitsAndBytesConfig({bits})\n\
             model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-7B', quantization_config=bnb, dtype=torch.bfloat16)\n\
             peft = LoraConfig(r=16, target_modules=['q_proj', 'v_proj'])\n\
             args = {kind}Config(per_device_train_batch_size=2, gradient_accumulation_steps=8, max_length=1024{more})\n\
             trainer = {kind}Trainer(model=model, args=args, peft_config=peft)\ntrainer.train()\n"
        );
        said("train.py", &text, &[("world_size", "1")])
    };
    let (four, eight) = ("load_in_4bit=True, bnb_4bit_quant_type='nf4'", "load_in_8bit=True");
    for (installs, kind) in [
        ("trl==1.3.0", "KTO"),
        ("trl==0.24.0", "KTO"),
        ("trl==1.9.0", "ORPO"),
        ("trl==0.24.0", "ORPO"),
        ("trl==1.9.0", "CPO"),
    ] {
        let norms = of(installs, kind, four, ", bf16=True");
        assert!(norms.not_modelled.is_empty(), "{installs} {kind}: {:?}", norms.not_modelled);
        for field in [Field::UpcastNonQuantized, Field::UpcastNorms] {
            assert_eq!(value(&norms, field), "true", "{installs} {kind}: {field:?}");
        }
        assert_ne!(value(&norms, Field::AdapterDtype), "bf16", "{installs} {kind}");
        let whole = of(installs, kind, eight, ", bf16=True");
        assert!(whole.not_modelled.is_empty(), "{installs} {kind}: {:?}", whole.not_modelled);
        assert_eq!(value(&whole, Field::UpcastNonQuantized), "true", "{installs} {kind}");
        assert_ne!(value(&whole, Field::AdapterDtype), "bf16", "{installs} {kind}");
    }
    let later = of("trl==1.4.0", "KTO", four, ", bf16=True");
    assert!(later.not_modelled.is_empty(), "{:?}", later.not_modelled);
    assert_eq!(value(&later, Field::AdapterDtype), "bf16");
    assert_eq!(value(&later, Field::UpcastNorms), "");
}

const FAST: &str = "from unsloth import FastLanguageModel\nfrom trl import SFTTrainer, SFTConfig\n\
    model, tokenizer = FastLanguageModel.from_pretrained(model_name='Qwen/Qwen2.5-7B', max_seq_length=2048@LOADS)\n\
    model = FastLanguageModel.get_peft_model(model, r=16, target_modules=['q_proj', 'k_proj', 'v_proj', 'o_proj'], lora_alpha=16, \
    lora_dropout=0, use_gradient_checkpointing='unsloth')\n\
    args = SFTConfig(per_device_train_batch_size=2, gradient_accumulation_steps=4, bf16=True)\n\
    trainer = SFTTrainer(model=model, args=args)\ntrainer.train()\n";

/// unsloth spreads a model in one process as transformers does; ranks were counted. Under a launcher each process has a quantized
/// model to itself (`unsloth/models/loader_utils.py:prepare_device_map`).
#[test]
fn layers_that_unsloth_spreads_are_no_ranks() {
    let whole = |loads: &str| FAST.replace("@LOADS", loads);
    let on = |loads: &str, gpus: &str| said("train.py", &whole(loads), &[("world_size", gpus)]);
    let launched = |line: &str, loads: &str| -> Resolution {
        let text = whole(loads);
        let source = Source::from_files([("run.sh", line), ("train.py", text.as_str())]);
        read(&Request { source: &source, environment: &Environment::default(), overrides: &[] })
    };
    let stops = |read: &Resolution, name: &str| read.not_modelled.iter().any(|item| item.is_called(name));
    for map in ["auto", "balanced"] {
        for bits in [", load_in_4bit=True", ", load_in_4bit=False"] {
            let loads = format!("{bits}, device_map='{map}'");
            assert!(stops(&on(&loads, "2"), "device_map"), "{loads}");
            assert!(!stops(&on(&loads, "1"), "device_map"), "{loads}");
            let ranks = launched("torchrun --nproc_per_node 2 train.py\n", &loads);
            assert_eq!(stops(&ranks, "device_map"), bits.ends_with("False"), "{loads}");
        }
    }
    for loads in [", load_in_4bit=True", ", load_in_4bit=True, device_map='sequential'"] {
        assert!(!stops(&on(loads, "2"), "device_map"), "{loads}");
        let one = launched("CUDA_VISIBLE_DEVICES=0,1 python train.py\n", loads);
        assert!(stops(&one, "CUDA_VISIBLE_DEVICES"), "{:?}", one.not_modelled);
    }
}

/// NeMo-RL's workers trust the code of every repository, and its newer one trains Automodel's modules where their weights can be handed
/// on one by one (`nemo_rl/models/automodel/setup.py:_maybe_set_force_hf`), which are those of experts; transformers' were taken.
#[test]
fn modules_of_nemo_rls_workers_are_told_apart() {
    let of = |model: &str, more: &str| {
        let text = format!(
            "defaults: grpo_math_1B.yaml\npolicy:\n  model_name: {model}\n  dtensor_cfg:\n{more}cluster:\n  gpus_per_node: 8\n  \
             num_nodes: 4\ngrpo:\n  num_prompts_per_step: 64\n"
        );
        said("grpo.yaml", &text, &[])
    };
    let (newer, older) = ("    _v2: true\n", "    _v2: false\n");
    for model in ["Qwen/Qwen3-30B-A3B", "openai/gpt-oss-20b"] {
        stopped(&of(model, newer), &["policy.dtensor_cfg._v2"]);
        for other in [older, "    _v2: true\n    automodel_kwargs:\n      force_hf: true\n"] {
            let read = of(model, other);
            assert!(read.not_modelled.is_empty(), "{model} {other}: {:?}", read.not_modelled);
        }
    }
    for model in ["Qwen/Qwen3-8B", "mistralai/Mixtral-8x7B-v0.1"] {
        let read = of(model, newer);
        assert!(read.not_modelled.is_empty(), "{model}: {:?}", read.not_modelled);
    }
    for model in ["microsoft/Phi-3-mini-4k-instruct", "nvidia/NVIDIA-Nemotron-Nano-9B-v2"] {
        stopped(&of(model, older), &["policy.model_name"]);
        stopped(&of(model, newer), &["policy.model_name"]);
    }
}

/// Shared functions of Megatron-Bridge's performance recipes (`perf_recipes/qwen_vl/common.py`) assign settings that are known; their
/// recipes stopped at the calls and had no model.
#[test]
fn shared_functions_of_bridges_vision_recipes_are_followed() {
    let of = |ends: &str| {
        let text = format!(
            "from megatron.bridge.perf_recipes.qwen_vl.common import *\n\n\ndef own_pretrain_config() -> ConfigContainer:\n    \
             cfg = qwen3_vl_30b_a3b_pretrain_mock_config()\n    cfg.mixed_precision = _perf_precision('bf16')\n    cfg.model.moe_a2a_overlap = True\n    \
             cfg.model.freeze_language_model = False\n    cfg.model.freeze_vision_model = False\n    \
             cfg.comm_overlap = CommOverlapConfig(tp_comm_overlap=False)\n    _benchmark_common(cfg)\n    {ends}(cfg)\n    return cfg\n"
        );
        said("qwen3_vl.py", &text, &[])
    };
    for ends in ["_finalize_qwen3_vl", "_finalize_qwen3_vl_with_moe_a2a_and_overlap"] {
        let read = of(ends);
        let names: Vec<&str> = read.not_modelled.iter().map(|item| item.name.as_str()).collect();
        assert!(!names.contains(&"recipe") && !names.contains(&"model.moe_a2a_overlap"), "{ends}: {names:?}");
        assert_eq!(value(&read, Field::NumLayers), "48", "{ends}");
        assert_eq!(value(&read, Field::CudaGraphModules), "moe_router moe_preprocess", "{ends}");
    }
    stopped(&of("_finalize_another"), &["recipe"]);
}

/// Whether a model checkpoints layers is asked where the text does not decide the condition of its call; it stopped the verdict of a
/// program with a parser, and was passed over in one without.
#[test]
fn checkpointing_under_an_open_condition_is_asked_for() {
    let of = |before: &str, condition: &str, more: &str| {
        let text = format!(
            "import json, torch\nfrom transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n{before}\
             model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-0.5B', torch_dtype=torch.bfloat16)\n\
             if {condition}:\n    model.gradient_checkpointing_enable()\n\
             arguments = TrainingArguments('out', per_device_train_batch_size=2, bf16=True{more})\n\
             trainer = Trainer(model=model, args=arguments)\ntrainer.train()\n"
        );
        said("train.py", &text, &[("world_size", "1"), ("seq_length", "512")])
    };
    let asks = |read: &Resolution| {
        read.questions.iter().any(|asked| asked.name() == Field::GradientCheckpointing.name())
    };
    let file = "cfg = json.load(open('c.json'))\n";
    for more in ["", ", gradient_checkpointing=False"] {
        let read = of(file, "cfg['checkpoint']", more);
        assert!(asks(&read) && read.not_modelled.is_empty(), "{more}: {:?}", read.not_modelled);
    }
    assert!(!asks(&of(file, "cfg['checkpoint']", ", gradient_checkpointing=True")));
    for (condition, expected) in [("True", "true"), ("False", "false")] {
        let read = of(file, condition, "");
        assert!(!asks(&read), "{condition}");
        assert_eq!(value(&read, Field::GradientCheckpointing), expected, "{condition}");
    }
}

/// Words of TRL's rollouts beside a settings file are those of a Trainer's program; they were read as Megatron's, and stopped.
#[test]
fn rollouts_beside_a_settings_file_ask_for_that_file() {
    let line = "accelerate launch --num_processes 3 src/open_r1/grpo.py --config recipes/x.yaml --max_completion_length 1024 \
        --num_generations 12\n";
    let read = said("run.sh", line, &[]);
    assert!(read.not_modelled.is_empty(), "{:?}", read.not_modelled);
    assert!(read.diagnostics.iter().any(|said| said.message.contains("x.yaml")), "{:?}", read.diagnostics);
}

/// mbridge's `glm4moe.py` alone leaves a balancing loss on; beside a pasted configuration verl's command names no family, and none was
/// counted.
#[test]
fn a_pasted_configuration_of_glms_experts_stops_under_verls_megatron() {
    let config = |kind: &str| {
        format!(
            r#"{{"model_type": "{kind}", "hidden_size": 4096, "num_hidden_layers": 46, "num_attention_heads": 96,
            "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 10944, "moe_intermediate_size": 1408,
            "n_routed_experts": 128, "num_experts": 128, "num_experts_per_tok": 8, "n_shared_experts": 1, "first_k_dense_replace": 1,
            "vocab_size": 151552, "partial_rotary_factor": 0.5, "torch_dtype": "bfloat16"}}"#
        )
    };
    let of = |kind: &str, path: &str, more: &str| {
        let line = format!(
            "python3 -m verl.trainer.main_ppo --config-name=ppo_megatron_trainer.yaml data.train_batch_size=32 \
             data.max_prompt_length=1024 data.max_response_length=2048 actor_rollout_ref.model.path={path} \
             actor_rollout_ref.actor.ppo_mini_batch_size=32 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 \
             actor_rollout_ref.actor.megatron.expert_model_parallel_size=8 actor_rollout_ref.rollout.name=vllm \
             actor_rollout_ref.rollout.n=5 trainer.n_gpus_per_node=8 trainer.nnodes=4 {more}\n"
        );
        let config = config(kind);
        let source = Source::from_files([("run.sh", line.as_str()), ("config.json", config.as_str())]);
        read(&Request { source: &source, environment: &Environment::default(), overrides: &[] })
    };
    let name = Field::MoeRouterLoadBalancingType.name();
    let stops = |read: &Resolution| read.not_modelled.iter().any(|item| item.is_called(name));
    let mbridge = "actor_rollout_ref.actor.megatron.vanilla_mbridge=True";
    let glm = of("glm4_moe", "/data/mine", mbridge);
    assert!(stops(&glm), "{:?} {:?}", glm.not_modelled, glm.diagnostics);
    assert!(!stops(&of("qwen3_moe", "/data/mine", mbridge)));
    assert!(!stops(&of("glm4_moe", "zai-org/GLM-4.5-Air", mbridge)));
    // Megatron-Bridge, the default since verl 0.9, has no such loss for any model.
    assert!(!stops(&of("glm4_moe", "/data/mine", "")));
    let stated = "+actor_rollout_ref.actor.megatron.override_transformer_config.moe_router_load_balancing_type=seq_aux_loss";
    assert!(!stops(&of("glm4_moe", "/data/mine", &format!("{mbridge} {stated}"))));
}

/// Words that nobody knows tell nothing while the settings file beside them, which shows whose they are, is missing; beside it they stop.
#[test]
fn unknown_words_count_once_the_settings_file_is_there() {
    let line = "torchrun --nproc_per_node 8 train_mine.py --config mine.yaml --twist 3\n";
    let alone = said("run.sh", line, &[]);
    assert!(alone.not_modelled.is_empty() && alone.plan.is_none(), "{:?}", alone.not_modelled);
    assert!(
        alone.diagnostics.iter().any(|said| said.message.contains("mine.yaml")),
        "{:?}",
        alone.diagnostics
    );
    let file = "model_name_or_path: Qwen/Qwen2.5-7B\nper_device_train_batch_size: 2\ngradient_accumulation_steps: 2\nmax_seq_length: 2048\n\
        bf16: true\nlearning_rate: 1e-5\nnum_train_epochs: 1\n";
    let source = Source::from_files([("run.sh", line), ("mine.yaml", file)]);
    let both = read(&Request { source: &source, environment: &Environment::default(), overrides: &[] });
    assert!(both.not_modelled.iter().any(|item| item.name.contains("twist")), "{:?}", both.not_modelled);
}
