//! What earlier draws of public files found and left.

use super::{said, script, stopped, value};
use shardscope_launch::Asked;
use shardscope_plan::Field;

/// LLaMA-Factory trains a loaded adapter on, of its own rank; new ones only where what is loaded can be merged. The rank of new
/// ones was read for all.
#[test]
fn adapters_that_llama_factory_loads_have_a_rank_of_their_own() {
    let of = |more: &str, overrides: &[(&str, &str)]| {
        let text = format!(
            "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\ndo_train: true\nfinetuning_type: lora\nlora_target: all\ncutoff_len: 2048\n\
             per_device_train_batch_size: 1\ngradient_accumulation_steps: 8\nbf16: true\ndataset: a\ntemplate: qwen\n{more}"
        );
        said("run.yaml", &text, &[&[("world_size", "2")], overrides].concat())
    };
    assert_eq!(value(&of("", &[]), Field::LoraRank), "8");
    let loaded = "adapter_name_or_path: saves/sft\n";
    let asked = of(loaded, &[]);
    assert!(asked.plan.is_none() && asked.not_modelled.is_empty(), "{:?}", asked.not_modelled);
    assert!(asked.questions.iter().any(|asked| asked.asks == Asked::Setting(Field::LoraRank)));
    assert!(of(loaded, &[("lora_rank", "64")]).plan.is_some());
    // A rank in the text is that of new adapters.
    let stated = of(&format!("{loaded}lora_rank: 16\n"), &[]);
    let rank = stated.questions.iter().find(|asked| asked.asks == Asked::Setting(Field::LoraRank));
    assert_eq!(rank.and_then(|asked| asked.proposal.as_deref()), Some("16"));
    let fresh = format!("{loaded}create_new_adapter: true\n");
    assert_eq!(value(&of(&fresh, &[]), Field::LoraRank), "8");
    assert!(of(&fresh, &[]).plan.is_some());
    stopped(
        &of(&fresh, &[("zero_stage", "3"), ("data_parallel_engine", "deepspeed")]),
        &["adapter_name_or_path"],
    );
    stopped(&of(&format!("{fresh}quantization_bit: 4\n"), &[]), &["adapter_name_or_path"]);
}

/// liuzy1019/SchemaShift-GRPO `run_deepseek7b_llm_pfppo.sh`: the blank behind a backslash is escaped, a comment follows, and bash
/// ends the command. The options below were read as if they were passed on.
#[test]
fn a_backslash_before_a_comment_does_not_continue_a_line() {
    let of = |end: &str| {
        script(&format!(
            "torchrun --nproc_per_node 8 pretrain_gpt.py {} {end}\n  --tensor-model-parallel-size 2\n",
            super::MODEL
        ))
    };
    assert!(of("\\").plan.is_some());
    for end in ["\\ # two ranks", "\\  # two ranks", "\\\t# two ranks", "\\  #two"] {
        let read = of(end);
        assert!(read.plan.is_none(), "{end}");
        assert!(
            read.diagnostics.iter().any(|said| said.message.contains("escapes the blank before a comment")),
            "{end}: {:?}",
            read.diagnostics
        );
    }
    let dotted = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=gae \\  # [\"gae\"]\n    data.train_batch_size=256 \\\n    \
        trainer.nnodes=1\n";
    assert!(
        script(dotted)
            .diagnostics
            .iter()
            .any(|said| said.message.contains("escapes the blank before a comment"))
    );
    // A name with a blank before a hash, and a comment behind a command that ends there.
    let plain = format!("cd My\\ #1\ntorchrun --nproc_per_node 8 pretrain_gpt.py {} # all\n", super::MODEL);
    assert!(script(&plain).plan.is_some(), "{:?}", script(&plain).diagnostics);
}

/// sbordt/litgpt `config_hub/pretrain/tinyllama.yaml`, shortened. `litgpt/pretrain.py:setup` takes all GPUs by default, and more than
/// one share each copy of the model within a node, compiled; on one the whole model is one graph, which stops.
#[test]
fn litgpts_pretraining_shards_within_nodes_and_compiles() {
    let of = |model: &str, more: &str| {
        let text = format!(
            "model_name: {model}\nout_dir: out\nprecision: bf16-mixed\ninitial_checkpoint_dir:\nresume: false\ntrain:\n  \
             global_batch_size: 512\n  micro_batch_size: 4\n  max_seq_length: 2048\n  tie_embeddings: false\n{more}"
        );
        said("pretrain.yaml", &text, &[])
    };
    for (model, layers) in [("tiny-llama-1.1b", "22"), ("micro-llama-300M", "12"), ("Llama-3.2-1B", "16")] {
        let command = format!("litgpt pretrain {model} --precision bf16-mixed --train.max_seq_length 2048\n");
        for open in [of(model, "devices: auto\n"), script(&command)] {
            assert!(open.not_modelled.is_empty(), "{model}: {:?}", open.not_modelled);
            assert!(open.plan.is_none(), "{model}: the number of GPUs is asked for");
        }
        let read = of(model, "devices: 8\nnum_nodes: 2\n");
        assert!(read.plan.is_some(), "{model}: {:?} {:?}", read.diagnostics, read.not_modelled);
        for (field, expected) in [
            (Field::Software, "litgpt_pretrain"),
            (Field::NumLayers, layers),
            (Field::CompiledLayers, "true"),
            (Field::ParamsDtype, "fp32"),
            (Field::Autocast, "bf16"),
            (Field::DataParallelEngine, "fsdp1"),
            (Field::ZeroStage, "3"),
            (Field::NumDistributedOptimizerInstances, "2"),
            (Field::DeferReduction, "true"),
            (Field::GradientCheckpointing, ""),
        ] {
            assert_eq!(value(&read, field), expected, "{model}: {field:?}");
        }
        stopped(&of(model, "devices: 1\n"), &["compiled_layers"]);
        let text = format!(
            "litgpt pretrain {model} --devices 8 --num_nodes 1 --precision bf16-mixed --train.max_seq_length 2048\n"
        );
        assert!(said("run.sh", &text, &[]).not_modelled.is_empty());
        for (name, value, field) in [
            ("compiled_layers", "false", "compiled_layers"),
            ("gradient_checkpointing", "true", "gradient_checkpointing"),
            ("train_type", "lora", "train_type"),
            ("lora_rank", "8", "train_type"),
        ] {
            stopped(&said("run.sh", &text, &[(name, value)]), &[field]);
        }
    }
    stopped(&of("pythia-14m", "devices: 1\n"), &["model_name", "compiled_layers"]);
}

/// SFTTrainer of TRL up to 0.25 and DPOTrainer up to 0.28 leave norms in fp32 and embeddings in bf16 of a 4-bit model under bf16
/// (`peft_module_casting_to_bf16`). 8 bits stay in fp32 throughout, with bf16 too. In 0.25 TRL's own function casts norms alone, and
/// leaves biases.
#[test]
fn norms_that_trl_casts_alone_are_told() {
    let of = |installs: &str, bits: &str, more: &str, before: &str| {
        let text = format!(
            "# pip install {installs}\nimport torch\nfrom peft import LoraConfig, prepare_model_for_kbit_training\nfrom transformers import AutoModelForCausalLM, \
             BitsAndBytesConfig\nfrom trl import SFTConfig, SFTTrainer\nbnb = BitsAndBytesConfig({bits})\n\
             model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-7B', quantization_config=bnb, dtype=torch.bfloat16)\n{before}\
             peft = LoraConfig(r=16, target_modules=['q_proj', 'v_proj'])\n\
             args = SFTConfig(per_device_train_batch_size=2, gradient_accumulation_steps=8, max_length=1024{more})\n\
             trainer = SFTTrainer(model=model, args=args, peft_config=peft)\ntrainer.train()\n"
        );
        said("train.py", &text, &[("world_size", "1")])
    };
    let (four, eight) = ("load_in_4bit=True, bnb_4bit_quant_type='nf4'", "load_in_8bit=True");
    let prepares = "model = prepare_model_for_kbit_training(model)\n";
    for (installs, bits, more, before) in
        [("trl==0.25.1", four, ", bf16=True", ""), ("trl==0.25.1", eight, ", bf16=False", "")]
    {
        stopped(&of(installs, bits, more, before), &["peft_config"]);
    }
    for (installs, more, before) in [
        ("trl==0.24.0", ", bf16=True", ""),
        // bf16 is TRL's default since 0.19.
        ("trl==0.20.0", "", ""),
        ("trl==0.24.0", ", bf16=True", prepares),
        ("trl==0.25.1", ", bf16=True", prepares),
    ] {
        let read = of(installs, four, more, before);
        assert!(read.not_modelled.is_empty(), "{installs}: {:?}", read.not_modelled);
        for field in [Field::UpcastNonQuantized, Field::UpcastNorms] {
            assert_eq!(value(&read, field), "true", "{installs} {more} {before}: {field:?}");
        }
    }
    // SFT's began to cast in 0.7.5, so that a release of 0.7 may be of either kind.
    stopped(&of("trl==0.7.4", four, ", bf16=True", ""), &["peft_config"]);
    assert!(of("trl==0.8.6", four, ", bf16=True", "").not_modelled.is_empty());
    // Adapters of the ends are cast along with them.
    let text = |targets: &str| {
        format!(
            "python sft.py --model_name_or_path Qwen/Qwen2.5-7B --dataset_name d --load_in_4bit --use_peft --lora_target_modules \
             {targets} --bf16 True --per_device_train_batch_size 2 --max_length 1024 --gradient_checkpointing\n"
        )
    };
    for (targets, stops) in [("q_proj v_proj", false), ("q_proj lm_head", true)] {
        let source = format!("pip install trl==0.24.0\n{}", text(targets));
        let read = said("run.sh", &source, &[("world_size", "1")]);
        let named = read.not_modelled.iter().any(|item| item.is_called("upcast_norms"));
        assert_eq!(named, stops, "{targets}: {:?}", read.not_modelled);
    }
    // Liger's norms return their input's format; other modules, and a head in place of the output layer, were not recorded.
    let source = format!("pip install trl==0.24.0\n{}", text("q_proj v_proj"));
    for (name, value) in [
        ("liger_kernel", "true"),
        ("liger_parts", "norms"),
        ("software", "unsloth"),
        ("training_objective", "reward"),
        ("training_objective", "classify"),
    ] {
        let read = said("run.sh", &source, &[("world_size", "1"), (name, value)]);
        stopped(&read, &["upcast_norms"]);
    }
    // Phi-3 has one module for queries, keys and values, and one for gate and up.
    let fused = format!(
        "pip install trl==0.24.0\n{}",
        text("o_proj").replace("Qwen/Qwen2.5-7B", "microsoft/Phi-3-mini-4k-instruct")
    );
    stopped(&said("run.sh", &fused, &[("world_size", "1")]), &["upcast_norms"]);
    for (installs, bits, more, before, upcast) in [
        ("trl==0.24.0", four, ", bf16=False", "", "true"),
        ("trl==0.18.0", four, "", "", "true"),
        ("trl==0.24.0", eight, ", bf16=True", "", "true"),
        ("trl==0.29.1", four, ", bf16=True", "", ""),
        ("trl==0.29.1", four, ", bf16=True", prepares, "true"),
        ("trl==1.15.0", four, ", bf16=True", "", ""),
    ] {
        let read = of(installs, bits, more, before);
        assert!(read.not_modelled.is_empty(), "{installs}: {:?}", read.not_modelled);
        assert_eq!(value(&read, Field::UpcastNonQuantized), upcast, "{installs} {bits} {more}");
        assert_eq!(value(&read, Field::UpcastNorms), "", "{installs} {bits} {more}");
    }
}

/// verl 0.7 leaves frozen weights on the accelerator beside offloaded adapters (Megatron), and no key tells it from 0.8.
#[test]
fn verls_frozen_weights_may_stay_beside_offloaded_adapters() {
    let of = |more: &str, overrides: &[(&str, &str)]| {
        let text = format!(
            "python3 -m verl.trainer.main_ppo --config-name=ppo_megatron_trainer algorithm.adv_estimator=grpo data.train_batch_size=128 \
             data.max_prompt_length=512 data.max_response_length=1024 actor_rollout_ref.model.path=Qwen/Qwen2.5-7B \
             actor_rollout_ref.actor.strategy=megatron actor_rollout_ref.actor.ppo_mini_batch_size=128 \
             actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 actor_rollout_ref.actor.megatron.use_mbridge=True \
             actor_rollout_ref.actor.megatron.vanilla_mbridge=False actor_rollout_ref.rollout.name=vllm \
             actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=2 trainer.n_gpus_per_node=8 trainer.nnodes=1 {more}\n"
        );
        said("run.sh", &text, overrides)
    };
    let warns = |read: &shardscope_launch::Resolution| {
        let said = read
            .diagnostics
            .iter()
            .find(|said| said.message.contains("moves frozen weights too since verl 0.8"));
        said.and_then(|said| said.hint.clone())
    };
    let (adapters, moved) =
        ("actor_rollout_ref.model.lora.rank=16", "actor_rollout_ref.actor.megatron.param_offload=True");
    let both = of(&format!("{adapters} {moved}"), &[]);
    assert_eq!(warns(&both).as_deref(), Some("if yours is older, set offload_between_phases to gradients"));
    assert_eq!(value(&both, Field::OffloadBetweenPhases), "weights gradients");
    let older = of(&format!("{adapters} {moved}"), &[("offload_between_phases", "gradients")]);
    assert_eq!(value(&older, Field::OffloadBetweenPhases), "gradients");
    for other in [adapters, moved] {
        assert_eq!(warns(&of(other, &[])), None, "{other}");
    }
}

/// verl takes adapters out of FSDP1 with the whole model gathered on every rank (`fsdp_utils.py:collect_lora_params`), 30 GB of a 7B
/// in fp32, unless it does so layer by layer; FSDP2 gathers one parameter at a time.
#[test]
fn adapters_of_verl_are_not_taken_out_for_nothing() {
    let run = |more: &str| {
        let text = format!(
            "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=256 \
             actor_rollout_ref.model.path=Qwen/Qwen2.5-7B actor_rollout_ref.actor.ppo_mini_batch_size=64 \
             actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 actor_rollout_ref.model.lora_rank=32 \
             actor_rollout_ref.rollout.name=vllm trainer.n_gpus_per_node=8 trainer.nnodes=1 {more}\n"
        );
        let read = said("verl.sh", &text, &[]);
        read.not_modelled.iter().any(|item| item.is_called("actor_rollout_ref.model.lora_rank"))
    };
    assert!(run(""));
    assert!(run("actor_rollout_ref.rollout.layered_summon=False"));
    for more in [
        "actor_rollout_ref.rollout.layered_summon=True",
        "actor_rollout_ref.actor.strategy=fsdp2",
        "actor_rollout_ref.actor.strategy=megatron",
        "actor_rollout_ref.model.lora_rank=0",
    ] {
        assert!(!run(more), "{more}");
    }
}
