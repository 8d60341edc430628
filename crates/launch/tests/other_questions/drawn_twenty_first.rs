//! Misreadings found in the twenty-first draw of public files.

use super::{said, script, stopped, value};
use shardscope_launch::{Asked, Resolution};
use shardscope_plan::Field;

fn asks(read: &Resolution, field: Field) -> bool {
    read.questions.iter().any(|question| question.asks == Asked::Setting(field))
}

/// TamerSoliman/open-r1 `config_ioi_ANNOTATED.yaml` (TRL 0.18): rollouts of a server of their own were put on the GPUs that train, as
/// TRL has them since 1.0. Without `beta` a reference is held up to 0.18 and not since 0.19.
#[test]
fn grpo_before_trl_one_generates_on_a_server_and_leaves_its_reference_open() {
    let of = |more: &str| {
        let text = format!(
            "model_name_or_path: Qwen/Qwen2.5-1.5B-Instruct\ntorch_dtype: bfloat16\nbf16: true\nuse_vllm: true\nnum_generations: 14\n\
             per_device_train_batch_size: 16\ngradient_accumulation_steps: 4\nmax_completion_length: 2048\n{more}"
        );
        said("grpo.yaml", &text, &[("world_size", "8")])
    };
    let apart = |more: &str| value(&of(more), Field::RolloutGpus);
    assert_eq!(apart("beta: 0.01\nmax_prompt_length: 1024\n"), "0");
    assert_eq!(apart("beta: 0.01\nmax_prompt_length: 1024\nvllm_mode: colocate\n"), "");
    assert_eq!(apart("beta: 0.01\n"), "");
    assert!(asks(&of("max_prompt_length: 1024\n"), Field::RlReference));
    assert!(!asks(&of("beta: 0.0\nmax_prompt_length: 1024\n"), Field::RlReference));
    assert!(!asks(&of(""), Field::RlReference));
}

/// A program that names the release has its default, with or without a limit of prompts: 0.04 in 0.17, 0.0 in 0.19 and 0.23.
/// Transformers 4 runs with releases of both kinds.
#[test]
fn grpos_reference_is_that_of_the_release_that_a_text_names() {
    let of = |installs: &str, arguments: &str| {
        let text = format!(
            "{installs}\nimport torch\nfrom transformers import AutoModelForCausalLM\nfrom trl import GRPOConfig, GRPOTrainer\n\
             model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-1.5B', torch_dtype=torch.bfloat16)\n\
             args = GRPOConfig(per_device_train_batch_size=8, bf16=True, max_completion_length=512{arguments})\n\
             trainer = GRPOTrainer(model=model, args=args, reward_funcs=f)\ntrainer.train()\n"
        );
        let read = said("train.py", &text, &[("world_size", "1")]);
        (value(&read, Field::RlReference), asks(&read, Field::RlReference))
    };
    let (held, none) = (("device".to_owned(), false), ("none".to_owned(), false));
    for arguments in ["", ", max_prompt_length=512"] {
        assert_eq!(of("# pip install trl==0.17.0", arguments), held);
        assert_eq!(of("# pip install trl==0.18.2", arguments), held);
        assert_eq!(of("# pip install trl==0.19.0", arguments), none);
        assert_eq!(of("# since trl 0.19.0\n# pip install transformers==4.51.3 trl==0.17.0", arguments), held);
        assert_eq!(of("# pip install transformers==4.57.1 trl==0.23.0", arguments), none);
        assert!(of("# pip install transformers==4.51.3", arguments).1);
    }
    assert_eq!(of("", ""), none);
    assert!(of("", ", warmup_ratio=0.1").1);
    assert_eq!(of("# pip install trl==0.17.0", ", beta=0.0"), none);
}

/// manncodes/verl `recipe/entropy/7b_kl_cov.sh`: a round takes `gen_batch_size` prompts, of which DAPO's filter keeps fewer.
#[test]
fn a_round_of_verl_takes_the_prompts_of_its_own_batch() {
    let of = |own: &str| {
        let text = format!(
            "python3 -m verl.trainer.main_ppo data.train_batch_size=256 data.gen_batch_size={own} data.max_prompt_length=1024 \
             data.max_response_length=1024 actor_rollout_ref.model.path=Qwen/Qwen2.5-7B actor_rollout_ref.rollout.n=8 \
             actor_rollout_ref.actor.ppo_mini_batch_size=512 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8 \
             actor_rollout_ref.rollout.name=vllm trainer.n_gpus_per_node=8 trainer.nnodes=1"
        );
        [Field::RolloutPrompts, Field::GlobalBatchSize].map(|field| value(&script(&text), field))
    };
    // No mini-batch is larger than what trains.
    assert_eq!(of("768"), ["768", "2048"]);
    assert_eq!(of("null"), ["256", "2048"]);
}

/// itsuitsuki/verl `run_qwen3_5-35b-megatron.sh`: experts of verl were given Megatron core's own defaults.
#[test]
fn experts_under_verls_megatron_are_dispatched_as_verl_sets_them() {
    let of = |model: &str, more: &str| {
        let text = format!(
            "python3 -m verl.trainer.main_ppo --config-name=ppo_megatron_trainer.yaml data.train_batch_size=32 data.max_prompt_length=1024 \
             data.max_response_length=2048 actor_rollout_ref.model.path={model} actor_rollout_ref.actor.ppo_mini_batch_size=32 \
             actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2 \
             actor_rollout_ref.actor.megatron.expert_model_parallel_size=8 actor_rollout_ref.rollout.name=vllm \
             actor_rollout_ref.rollout.n=5 trainer.n_gpus_per_node=8 trainer.nnodes=1 {more}"
        );
        let fields =
            [Field::MoeTokenDispatcherType, Field::MoeRouterLoadBalancingType, Field::MoeGroupedGemm];
        fields.map(|field| value(&script(&text), field))
    };
    assert_eq!(of("Qwen/Qwen3-30B-A3B", ""), ["alltoall", "none", "true"]);
    let flex = "+actor_rollout_ref.actor.megatron.override_transformer_config.moe_token_dispatcher_type=flex";
    assert_eq!(of("Qwen/Qwen3-30B-A3B", flex), ["flex", "none", "true"]);
    assert_eq!(of("Qwen/Qwen3-8B", ""), ["", "", ""]);
    // mbridge's `glm4moe.py` alone leaves the loss on; Megatron-Bridge, the default since verl 0.9, has it turned off for every model.
    let mbridge = "actor_rollout_ref.actor.megatron.vanilla_mbridge=True";
    assert_eq!(of("zai-org/GLM-4.5-Air", mbridge), ["alltoall", "seq_aux_loss", "true"]);
    let of_eight = "reward_model.strategy=megatron";
    assert_eq!(of("zai-org/GLM-4.5-Air", of_eight), ["alltoall", "seq_aux_loss", "true"]);
    assert_eq!(of("zai-org/GLM-4.5-Air", ""), ["alltoall", "none", "true"]);
    let bridge = "actor_rollout_ref.actor.megatron.vanilla_mbridge=False";
    assert_eq!(of("zai-org/GLM-4.5-Air", bridge), ["alltoall", "none", "true"]);
}

/// verl makes Megatron core's configuration by libraries of its own, none of which takes Megatron-LM's defaults: the activation of a
/// dense Qwen is not fused with its bias under any of them, and keeps what it computes.
#[test]
fn models_of_verls_megatron_have_the_fusions_of_what_builds_them() {
    let of = |model: &str, more: &str| {
        let text = format!(
            "python3 -m verl.trainer.main_ppo --config-name=ppo_megatron_trainer.yaml data.train_batch_size=32 data.max_prompt_length=1024 \
             data.max_response_length=2048 actor_rollout_ref.model.path={model} actor_rollout_ref.actor.ppo_mini_batch_size=32 \
             actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2 \
             actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=5 trainer.n_gpus_per_node=8 trainer.nnodes=1 {more}"
        );
        let fields = [
            Field::BiasSwigluFusion,
            Field::BiasDropoutFusion,
            Field::ApplyRopeFusion,
            Field::GradientAccumulationFusion,
        ];
        fields.map(|field| value(&script(&text), field))
    };
    let [mbridge, converter] = ["vanilla_mbridge=True", "use_mbridge=False"]
        .map(|key| format!("actor_rollout_ref.actor.megatron.{key}"));
    let dense = "Qwen/Qwen2.5-7B-Instruct";
    assert_eq!(of(dense, ""), ["false", "false", "false", "true"]);
    for more in [&mbridge, &converter] {
        assert_eq!(of(dense, more), ["false"; 4]);
        assert_eq!(of("Qwen/Qwen3-30B-A3B", more), ["true", "true", "false", "false"]);
        assert_eq!(of("meta-llama/Llama-3.1-8B", more), ["false"; 4]);
    }
    assert_eq!(of("Qwen/Qwen3-30B-A3B", ""), ["false", "false", "false", "true"]);
    assert_eq!(of("meta-llama/Llama-3.1-8B", ""), ["true"; 4]);
    assert_eq!(of("mistralai/Mixtral-8x7B-v0.1", &converter), ["true", "true", "true", "false"]);
    let stated = "+actor_rollout_ref.actor.megatron.override_transformer_config.bias_activation_fusion=True";
    assert_eq!(of(dense, &format!("{mbridge} {stated}")), ["true", "false", "false", "false"]);
    // Rollouts that no server answers are of 0.6 at the latest.
    assert_eq!(
        of("Qwen/Qwen3-30B-A3B", "actor_rollout_ref.rollout.mode=sync"),
        ["true", "true", "false", "false"]
    );
}

/// tanghui315/unsloth-multigpu: two GPUs of a package around unsloth were read as one, and adapters of its program, which TRL's own
/// leaves unread, as none.
#[test]
fn a_package_that_starts_unsloths_processes_stops_and_a_rank_without_a_switch_is_asked_for() {
    let program = |starts: &str| {
        let text = format!(
            "from unsloth import FastLanguageModel\nimport unsloth_multigpu\nfrom trl import SFTConfig, SFTTrainer\n{starts}\
             model, tokenizer = FastLanguageModel.from_pretrained('Qwen/Qwen2.5-7B', max_seq_length=2048, load_in_4bit=True)\n\
             model = FastLanguageModel.get_peft_model(model, r=16, lora_alpha=32, target_modules=['q_proj'])\n\
             trainer = SFTTrainer(model=model, args=SFTConfig(per_device_train_batch_size=2, gradient_accumulation_steps=1, optim='adamw_8bit'))\n\
             trainer.train()\n"
        );
        said("train.py", &text, &[])
    };
    stopped(&program("unsloth_multigpu.enable_multi_gpu(num_gpus=2)\n"), &["enable_multi_gpu"]);
    assert!(program("").not_modelled.is_empty());
    let file = |more: &str| {
        let text = format!(
            "model_name_or_path: Qwen/Qwen2.5-7B\ndtype: bfloat16\nbf16: true\nper_device_train_batch_size: 4\n\
             gradient_accumulation_steps: 4\nlearning_rate: 1.0e-5\nmax_length: 2048\nlora_r: 16\n{more}"
        );
        said("sft.yaml", &text, &[("world_size", "8")])
    };
    assert!(asks(&file(""), Field::TrainType));
    assert_eq!(value(&file("use_peft: true\n"), Field::TrainType), "lora");
    assert_eq!(value(&file("use_peft: false\n"), Field::TrainType), "full");
}

/// BAfsharmanesh/torchtitan `debug_model.toml`: how many layers one in two are is known once the model is, which had stopped it: half of
/// the 28 of the answer.
#[test]
fn one_recomputed_layer_in_several_is_counted_once_the_model_is_known() {
    let of = |flavor: &str, option: &str| {
        let text = format!(
            "[model]\nname = \"llama3\"\nflavor = \"{flavor}\"\n[training]\nbatch_size = 8\nseq_len = 2048\nsteps = 10\n\
             [activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = \"{option}\"\n"
        );
        said("train.toml", &text, &[("world_size", "8"), ("model", "Qwen/Qwen2.5-7B")])
    };
    let named = of("debugmodel", "2");
    assert!(named.plan.is_some(), "{:?}", named.diagnostics);
    assert_eq!(value(&named, Field::RecomputeMethod), "block");
    assert_eq!(value(&named, Field::RecomputeNumLayers), "14");
    assert_eq!(value(&of("debugmodel", "3"), Field::RecomputeNumLayers), "9");
    assert_eq!(value(&of("debugmodel", "op"), Field::RecomputeGranularity), "selective");
    assert_eq!(value(&of("debugmodel", "1"), Field::RecomputeGranularity), "full");
    assert_eq!(value(&of("8B", "2"), Field::RecomputeNumLayers), "16");
}

/// TrongNV2003/LLM-finetuning `cpt-conf.yaml`: model and adapters are in files that Hydra composes and that are not here.
#[test]
fn settings_that_hydra_composes_with_files_that_are_not_here_make_no_plan() {
    let text = "defaults:\n  - _self_\n  - model: qwen3\ntraining_arguments:\n  bf16: true\n  per_device_train_batch_size: 1\n  \
        gradient_accumulation_steps: 32\n  max_length: 2048\n  optim: adamw_torch_fused\n  num_train_epochs: 1\n  output_dir: x\n";
    let answers = [("world_size", "1"), ("model", "Qwen/Qwen2.5-7B"), ("train_type", "full")];
    assert!(said("cpt.yaml", text, &answers).plan.is_none());
    let alone = text.replace("defaults:\n  - _self_\n  - model: qwen3\n", "");
    assert!(said("cpt.yaml", &alone, &answers).plan.is_some());
}

/// kingjameschan/gemma-math-sft-grpo `01_sft.py`: what a dictionary says of checkpoints was passed over.
#[test]
fn a_programs_dictionary_says_whether_checkpoints_are_reentrant() {
    let of = |more: &str| {
        let text = format!(
            "import torch\nfrom transformers import AutoModelForCausalLM\nfrom trl import SFTConfig, SFTTrainer\nkinds = {{'use_reentrant': False}}\n\
             model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-7B', dtype=torch.bfloat16)\n\
             args = SFTConfig(per_device_train_batch_size=2, max_length=1024, bf16=True, gradient_checkpointing=True, overwrite_output_dir=True{more})\n\
             trainer = SFTTrainer(model=model, args=args)\ntrainer.train()\n"
        );
        value(&said("train.py", &text, &[("world_size", "1")]), Field::ReentrantCheckpoints)
    };
    assert_eq!(of(""), "true");
    assert_eq!(of(", gradient_checkpointing_kwargs={'use_reentrant': False}"), "false");
    assert_eq!(of(", gradient_checkpointing_kwargs=kinds"), "false");
}

/// wenhui-ml/ms-swift `sft_qwen3_0.6b.sh`: DeepSpeed's bf16 optimizer shards its states and sums gradients in fp32 where nothing else
/// is sharded. HJXA/ms-swift `test.sh`: the steps that ms-swift derives were proposed as 16 whatever the batch.
#[test]
fn deepspeed_at_stage_zero_and_the_batch_of_ms_swift() {
    let of = |stage: &str, model: &str| {
        let text = format!(
            "NPROC_PER_NODE=8 swift sft --model {model} --tuner_type full --dataset a --torch_dtype bfloat16 --max_length 4096 \
             --per_device_train_batch_size 4 --deepspeed {stage}"
        );
        script(&text)
    };
    let read = of("zero0", "Qwen/Qwen3-0.6B");
    let sums = |stage: &str| value(&of(stage, "Qwen/Qwen3-0.6B"), Field::GradsDtype);
    assert_eq!([sums("zero0"), sums("zero1"), sums("zero2")], ["fp32", "bf16", "bf16"]);
    let plan = read.plan.as_ref().expect("a plan");
    assert_eq!(plan.recipe().dp_sharding, shardscope_plan::DpSharding::OptimizerStates);
    let steps = |micro: &str, more: &str| {
        let text = format!(
            "NPROC_PER_NODE=2 swift sft --model Qwen/Qwen3-0.6B --tuner_type full --dataset a --torch_dtype bfloat16 --max_length 4096 \
             --per_device_train_batch_size {micro} {more}"
        );
        value(&script(&text), Field::NumMicroBatches)
    };
    assert_eq!([steps("1", ""), steps("3", ""), steps("32", "")], ["8", "3", "1"]);
    assert_eq!(steps("1", "--gradient_accumulation_steps 4"), "4");
    assert!(!asks(&of("zero2", "/data/unknown"), Field::NumMicroBatches));
}

/// nagix999/llm-finetuning `llama3_peft_qlora.ipynb` (TRL before 0.13, without bf16): SFTTrainer casts what is not quantized to fp32.
/// Since 0.26 it casts the adapters to bf16 instead; both were read as neither. h34v3nzc0dex/strix-halo-llm-finetune-guide: a release
/// in words.
#[test]
fn trl_casts_around_quantized_weights_as_its_release_does() {
    let of = |installs: &str, arguments: &str| {
        let text = format!(
            "{installs}import torch\nfrom peft import LoraConfig\nfrom transformers import AutoModelForCausalLM, BitsAndBytesConfig\n\
             from trl import SFTConfig, SFTTrainer\nbnb = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type='nf4')\n\
             model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-7B', quantization_config=bnb, dtype=torch.float16)\n\
             peft = LoraConfig(r=16, target_modules=['q_proj', 'v_proj'])\n\
             args = SFTConfig(per_device_train_batch_size=2, gradient_accumulation_steps=8{arguments})\n\
             trainer = SFTTrainer(model=model, args=args, peft_config=peft)\ntrainer.train()\n"
        );
        let read = said("train.py", &text, &[("world_size", "1")]);
        [Field::UpcastNonQuantized, Field::AdapterDtype].map(|field| value(&read, field))
    };
    let (now, before) = (", max_length=1024, bf16=True", ", max_seq_length=1024, bf16=False");
    assert_eq!(of("", now), ["", "bf16"]);
    assert_eq!(of("", before), ["true", "fp32"]);
    assert_eq!(of("# Tested with trl 0.29.1\n", now), ["", "bf16"]);
    assert_eq!(of("# Tested with trl 0.25.1\n", now), ["", "fp32"]);
    // Both kinds of releases have an argument of transformers 4.
    assert_eq!(of("", ", max_length=1024, bf16=True, warmup_ratio=0.1"), ["", "fp32"]);
}

/// Options of newer releases that were said to change nothing, or little.
#[test]
fn options_of_newer_releases_that_change_memory_are_not_passed_over() {
    let swift = |more: &str| {
        let text = format!(
            "NPROC_PER_NODE=2 swift sft --model Qwen/Qwen3-0.6B --tuner_type full --dataset a --torch_dtype bfloat16 --max_length 4096 {more}"
        );
        script(&text)
    };
    assert!(swift("--enable_dft_loss true").plan.is_some());
    stopped(&swift("--enable_dft_loss true --use_liger_kernel true"), &["enable_dft_loss"]);
    let megatron = |more: &str| {
        let text = format!(
            "NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen3-8B --micro_batch_size 1 --global_batch_size 16 --max_length 2048 {more}"
        );
        script(&text)
    };
    assert!(megatron("--bias_activation_fusion true").plan.is_some());
    stopped(&megatron("--bias_activation_fusion false"), &["bias_activation_fusion"]);
    let axolotl = |more: &str| {
        let text = format!(
            "base_model: Qwen/Qwen2.5-7B\nsequence_len: 4096\nmicro_batch_size: 2\ngradient_accumulation_steps: 4\nsample_packing: true\n\
             attn_implementation: sdpa\nbf16: true\ngradient_checkpointing: true\noptimizer: adamw_torch_fused\n{more}"
        );
        said("run.yaml", &text, &[("world_size", "1")])
    };
    assert!(
        axolotl("sdpa_varlen: true\n").plan.is_some(),
        "{:?}",
        axolotl("sdpa_varlen: true\n").diagnostics
    );
    stopped(&axolotl("sdpa_varlen: false\n"), &["sdpa_varlen"]);
}
