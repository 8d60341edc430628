//! Public files that were answered and read again beside their programs' sources.

use super::{said, script, stopped, value};
use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::Field;
use shardscope_source::{Code, Source};

fn asks(read: &Resolution) -> Vec<(&str, Option<&str>)> {
    read.questions.iter().map(|question| (question.name(), question.proposal.as_deref())).collect()
}

/// THUDM/slime `scripts/models/qwen3-1.7B.sh` and NVIDIA/Megatron-LM `examples/rl/model_configs/nemotron5_8b.sh`: options whose command,
/// and with it `--bf16`, is in another file. They were answered in fp32.
#[test]
fn options_without_their_command_leave_the_precision_open() {
    const OPTIONS: &str = "--num-layers 28 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 1 \
        --vocab-size 151936";
    let of = |more: &str| {
        said("model.sh", &format!("MODEL_ARGS=(\n  {OPTIONS} {more}\n)\n"), &[("world_size", "8")])
    };
    assert_eq!(asks(&of("")), [("bf16", Some("true"))]);
    for stated in ["--bf16", "--fp16", "--params-dtype fp32"] {
        assert!(of(stated).plan.is_some(), "{stated}: {:?}", of(stated).diagnostics);
    }
    // A program beside them starts the training, in bf16 as slime does.
    let program = "import subprocess\nsubprocess.run('python train.py --rollout-batch-size 8 --n-samples-per-prompt 8 \
        --rollout-max-response-len 1024 --global-batch-size 64 --actor-num-nodes 1 --actor-num-gpus-per-node 8', shell=True)\n";
    let model = format!("MODEL_ARGS=(\n  {OPTIONS}\n)\n");
    let source = Source::from_files([("run.py", program), ("model.sh", model.as_str())]);
    let beside = read(&Request { source: &source, environment: &Environment::default(), overrides: &[] });
    assert!(!beside.questions.iter().any(|asked| asked.name() == "bf16"), "{:?}", beside.questions);
    // No more than three questions, as for a launcher's template.
    let model = OPTIONS.replace("--seq-length 2048 --micro-batch-size 1 ", "");
    let bare = said("model.sh", &format!("MODEL_ARGS=(\n  {model}\n)\n"), &[]);
    assert_eq!(
        asks(&bare).iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        ["bf16", "seq_length", "world_size"]
    );
    // A command that states none trains in fp32, as Megatron-LM does.
    let whole = script(&format!("torchrun --nproc_per_node 8 pretrain_gpt.py {OPTIONS}\n"));
    assert!(whole.plan.is_some() && value(&whole, Field::ParamsDtype) == "fp32", "{:?}", whole.diagnostics);
    // Options of `train_rl.py --perform-rl-step`, whose switch is in that command, too.
    stopped(&of("--bf16 --grpo-group-size 16"), &["--grpo-group-size"]);
    let switched_off =
        script(&format!("torchrun --nproc_per_node 8 pretrain_gpt.py {OPTIONS} --grpo-group-size 16\n"));
    assert!(switched_off.plan.is_some(), "{:?}", switched_off.not_modelled);
}

/// EleutherAI/gpt-neox `configs/llama/30B.yml`: a model alone, which `deepy.py` joins with files that turn fp16 on.
#[test]
fn a_model_of_gpt_neox_alone_leaves_the_precision_open() {
    let of = |more: &str| {
        let text = format!(
            "pipe_parallel_size: 0\nmodel_parallel_size: 4\nnum_layers: 60\nhidden_size: 6656\nnum_attention_heads: 52\nseq_length: 2048\n\
             max_position_embeddings: 2048\npos_emb: rotary\nno_weight_tying: true\nmake_vocab_size_divisible_by: 1\n\
             padded_vocab_size: 32000\n{more}"
        );
        said("30B.yml", &text, &[("world_size", "8")])
    };
    assert_eq!(asks(&of("")), [("fp16", Some("true"))]);
    let fp16 = "fp16:\n  enabled: true\n";
    assert!(!asks(&of(fp16)).iter().any(|(name, _)| *name == "fp16"));
    let whole = of("train_micro_batch_size_per_gpu: 1\noptimizer:\n  type: Adam\n");
    assert!(!asks(&whole).iter().any(|(name, _)| *name == "fp16"), "{:?}", asks(&whole));
}

/// marin-community/MarinSkyRL at a559688: `skyrl-train/skyrl_train/config/ppo_base_config.yaml` has `enforce_eager: true`, and
/// `workers/megatron/megatron_model_wrapper.py` calls `from_parallel_logits_to_logprobs` with `chunk_size=None`.
#[test]
fn keys_of_an_early_skyrl_tell_its_defaults() {
    let of = |engine: &str, more: &str| {
        script(&format!(
            "uv run -m skyrl_train.entrypoints.main_base trainer.policy.model.path=Qwen/Qwen2.5-7B trainer.strategy=megatron \
             trainer.placement.policy_num_gpus_per_node=8 trainer.placement.colocate_all=true trainer.train_batch_size=128 \
             trainer.policy_mini_batch_size=64 trainer.micro_train_batch_size_per_gpu=1 generator.n_samples_per_prompt=4 \
             trainer.max_prompt_length=512 generator.sampling_params.max_generate_length=1024 {engine} {more}\n"
        ))
    };
    let shown =
        |read: &Resolution| [Field::RolloutCudaGraphs, Field::LossKind].map(|field| value(read, field));
    let today = "generator.inference_engine.num_engines=8";
    let early = "generator.num_inference_engines=8 generator.backend=vllm";
    assert_eq!(shown(&of(today, "")), ["true", "distributed_wide_chunks"]);
    assert_eq!(shown(&of(early, "")), ["false", "distributed"]);
    assert_eq!(shown(&of(early, "generator.enforce_eager=false"))[0], "true");
    // Graphs are turned on beside adapters (`entrypoints/main_base.py`).
    assert_eq!(shown(&of(early, "trainer.policy.model.lora.rank=32"))[0], "true");
}

/// FlagOpen/FlagScale `examples/qwen2_5/conf/rl/0_5b.yaml`, whose submodule is verl 8b33abd84 of June 30, 2025:
/// `verl/trainer/config/ppo_trainer.yaml` there has `enforce_eager: True` and `max_num_seqs: 1024`.
#[test]
fn files_of_flagscale_are_of_its_own_verl() {
    const FILE: &str = "algorithm:\n  adv_estimator: grpo\ndata:\n  train_batch_size: 1024\n  max_prompt_length: 512\n  \
        max_response_length: 1024\nactor_rollout_ref:\n  model:\n    path: Qwen/Qwen2.5-0.5B-Instruct\n    use_remove_padding: true\n    \
        enable_gradient_checkpointing: true\n  actor:\n    ppo_mini_batch_size: 256\n    ppo_micro_batch_size_per_gpu: 4\n    \
        use_kl_loss: true\n    fsdp_config:\n      param_offload: false\n  rollout:\n    name: vllm\n    tensor_model_parallel_size: 2\n    \
        gpu_memory_utilization: 0.6\n    n: 5\ntrainer:\n  n_gpus_per_node: 8\n  nnodes: 1\n";
    let of = |more: &str| said("rl.yaml", &format!("{more}{FILE}"), &[]);
    let shown = |read: &Resolution| {
        [Field::RolloutCudaGraphs, Field::RolloutSequences].map(|field| value(read, field))
    };
    assert_eq!(shown(&of("")), ["true", "256"]);
    let flagscale = of(
        "config-path: config\nconfig-name: ppo_trainer.yaml\nappend_kargs:\n  actor_rollout_ref:\n    rollout:\n      trust_remote_code: true\n",
    );
    assert_eq!(shown(&flagscale), ["false", "1024"]);
    let unread = flagscale.diagnostics.iter().find(|said| said.code == Code::KeysNotRead);
    assert!(!unread.is_some_and(|said| said.message.contains("config-")), "{unread:?}");
}

/// oumi at d8ed077, `src/oumi/train.py`: `skip_prepare_dataset`, so that TRL's `max_length` does not act; its data sets cut samples at
/// `tokenizer.model_max_length`.
#[test]
fn oumis_samples_are_as_long_as_its_tokenizer_takes() {
    let of = |model: &str, more: &str| {
        let text = format!(
            "model:\n  model_name: HuggingFaceTB/SmolLM2-1.7B-Instruct\n{model}data:\n  train:\n    datasets:\n      - dataset_name: a\n\
             training:\n  trainer_type: TRL_SFT\n  per_device_train_batch_size: 2\n  output_dir: b\n{more}"
        );
        said("train.yaml", &text, &[("world_size", "1")])
    };
    assert_eq!(asks(&of("", "")), [("seq_length", Some("4096"))]);
    assert_eq!(value(&of("  model_max_length: 2048\n", ""), Field::SeqLength), "2048");
}

/// modelscope/ms-swift `examples/train/grpo/plugin/treepo/tree_rollout.sh`: the server of rollouts is a command of the same text.
#[test]
fn the_server_that_a_text_starts_makes_its_rollouts() {
    let of = |server: &str| {
        script(&format!(
            "{server}CUDA_VISIBLE_DEVICES=2 swift rlhf --rlhf_type grpo --model Qwen/Qwen2.5-0.5B --use_vllm true --vllm_mode server \
             --vllm_server_host 127.0.0.1 --tuner_type full --torch_dtype bfloat16 --max_length 512 --max_completion_length 2048 \
             --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --num_generations 8\n"
        ))
    };
    let shown = |read: &Resolution| {
        [Field::RolloutGpus, Field::RolloutTensorParallelSize, Field::RolloutMemoryFraction]
            .map(|field| value(read, field))
    };
    assert_eq!(shown(&of(""))[0], "0");
    let server = of(
        "CUDA_VISIBLE_DEVICES=0,1 swift rollout --model Qwen/Qwen2.5-0.5B --vllm_tensor_parallel_size 2\n\n",
    );
    assert_eq!(shown(&server), ["2", "2", "0.9"]);
    let counted = of(
        "swift rollout --model Qwen/Qwen2.5-0.5B --vllm_data_parallel_size=4 --vllm_gpu_memory_utilization 0.8\n\n",
    );
    assert_eq!(shown(&counted), ["4", "1", "0.8"]);
}

/// `unsloth/models/llama.py`: copies of modules that train are cast from fp16 to fp32, and `UNSLOTH_RETURN_LOGITS` turns the fused loss off.
#[test]
fn what_unsloth_keeps_in_fp32_or_whole_stops_by_name() {
    let of = |before: &str, modules: &str| {
        let cell = format!(
            "{before}from unsloth import FastLanguageModel, UnslothTrainer, UnslothTrainingArguments\n\
             model, tokenizer = FastLanguageModel.from_pretrained(model_name = 'unsloth/mistral-7b-v0.3', max_seq_length = 2048, \
             load_in_4bit = True)\n\
             model = FastLanguageModel.get_peft_model(model, r = 16, target_modules = ['q_proj', 'v_proj'{modules}], lora_alpha = 32, \
             lora_dropout = 0, use_gradient_checkpointing = 'unsloth')\n\
             trainer = UnslothTrainer(model = model, args = UnslothTrainingArguments(per_device_train_batch_size = 2, \
             gradient_accumulation_steps = 8))\ntrainer.train()\n"
        );
        said("train.py", &cell, &[("accelerator", "T4"), ("whole_linears", "none")])
    };
    let names =
        |read: &Resolution| read.not_modelled.iter().map(|item| item.name.clone()).collect::<Vec<_>>();
    assert!(names(&of("", "")).is_empty(), "{:?}", names(&of("", "")));
    stopped(&of("", ", 'embed_tokens', 'lm_head'"), &["modules_to_save"]);
    stopped(&of("import os\nos.environ['UNSLOTH_RETURN_LOGITS'] = '1'\n", ""), &["unsloth_return_logits"]);
    assert!(names(&of("import os\nos.environ['UNSLOTH_RETURN_LOGITS'] = '0'\n", "")).is_empty());
}

/// XTuner's `tools/train.py` without `--deepspeed`: mmengine's `AmpOptimWrapper`, in fp16 with a scaler, which is not modelled.
#[test]
fn xtuner_without_deepspeed_stops_by_name() {
    let text = "from mmengine.optim import AmpOptimWrapper\nfrom torch.optim import AdamW\nfrom xtuner.model import SupervisedFinetune\n\
        from xtuner.engine.runner import TrainLoop\nfrom transformers import AutoModelForCausalLM\n\
        pretrained_model_name_or_path = 'mistralai/Mistral-7B-v0.1'\nmax_length = 2048\nbatch_size = 1\naccumulative_counts = 16\n\
        model = dict(type=SupervisedFinetune, llm=dict(type=AutoModelForCausalLM.from_pretrained, \
        pretrained_model_name_or_path=pretrained_model_name_or_path))\n\
        train_dataloader = dict(batch_size=batch_size)\n\
        optim_wrapper = dict(type=AmpOptimWrapper, optimizer=dict(type=AdamW, lr=2e-4), accumulative_counts=accumulative_counts, \
        dtype='float16')\ntrain_cfg = dict(type=TrainLoop, max_epochs=3)\n";
    let of = |stage: &str| said("config.py", text, &[("world_size", "8"), ("zero_stage", stage)]);
    assert!(of("2").plan.is_some(), "{:?} {:?}", of("2").not_modelled, of("2").questions);
    stopped(&of("0"), &["zero_stage"]);
}

/// bigscience-workshop/bigscience `train/tr4-1B3-rotary`: IDRIS starts a job on the accelerators that its account names.
#[test]
fn an_account_and_remarks_name_accelerators() {
    let of = |before: &str| {
        script(&format!(
            "#!/bin/bash\n{before}\ntorchrun --nproc_per_node 4 pretrain_gpt.py --num-layers 24 --hidden-size 2048 \
             --num-attention-heads 16 --seq-length 2048 --micro-batch-size 1 --fp16 --vocab-size 50257\n"
        ))
    };
    assert_eq!(value(&of("#SBATCH --account=six@v100"), Field::Accelerator), "V100-SXM2-32GB");
    assert_eq!(value(&of("#SBATCH --account=six"), Field::Accelerator), "H100-SXM");
    let told = |before: &str| {
        let read = of(before);
        let said = read.diagnostics.into_iter().find(|said| said.code == Code::AcceleratorInComment);
        said.and_then(|said| said.hint).unwrap_or_default()
    };
    assert_eq!(told("# B200 (SCHMIDT) colocate"), "if that is where it runs, set accelerator to B200");
    assert_eq!(told("# 512 H20(96GB)"), "if that is where it runs, set accelerator to H20");
    assert_eq!(
        told("#SBATCH --job-name=tr8b-104B-cl-a100"),
        "if that is where it runs, set accelerator to A100-SXM-80GB"
    );
    assert_eq!(told("#SBATCH --job-name=tr8b-104B"), "");
    assert_eq!(told("# faster than on B200"), "");
}

/// What was told as perhaps changing the estimate and cannot: keys beside a switch that is off, or that say again what is stated.
#[test]
fn what_cannot_change_an_estimate_does_not_mark_it() {
    let unread = |read: &Resolution| {
        let codes = [Code::KeysNotRead, Code::UnknownFlags];
        let said = read.diagnostics.iter().filter(|said| codes.contains(&said.code));
        said.map(|said| said.message.clone()).collect::<Vec<_>>()
    };
    // NVIDIA/NeMo-Framework-Launcher `conf/training/gpt3/7b_improved.yaml`.
    let nemo = |sharp: &str, fp8: &str| {
        let text = format!(
            "trainer:\n  num_nodes: 1\n  devices: 8\n  precision: bf16\nmodel:\n  mcore_gpt: true\n  micro_batch_size: 1\n  global_batch_size: 8\n  \
             encoder_seq_length: 2048\n  num_layers: 2\n  hidden_size: 512\n  num_attention_heads: 8\n  vocab_size: 32000\n  \
             sharp: {sharp}\n  fsdp: False\n  fsdp_grad_reduce_dtype: 32\n  fsdp_sharded_checkpoint: False\n  fp8: {fp8}\n  \
             fp8_e4m3: False\n  fp8_wgrad: True\n"
        );
        unread(&said("7b.yaml", &text, &[]))
    };
    assert_eq!(nemo("False", "False"), Vec::<String>::new());
    assert!(
        nemo("False", "True").iter().any(|message| message.contains("fp8_wgrad")),
        "{:?}",
        nemo("False", "True")
    );
    // huggingface/peft `accelerate_ds_zero3_cpu_offload_config.yaml`.
    let accelerate = |backend: &str| {
        let text = format!(
            "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nmixed_precision: bf16\nnum_processes: 2\ndynamo_backend: '{backend}'\n"
        );
        said("accelerate.yaml", &text, &[])
    };
    assert_eq!(unread(&accelerate("NO")), Vec::<String>::new());
    stopped(&accelerate("INDUCTOR"), &["dynamo_backend"]);
    // hiyouga/LLaMA-Factory `examples/train_full/mossvl_full_sft.yaml`.
    let factory = |kwargs: &str| {
        let text = format!(
            "model_name_or_path: Qwen/Qwen2.5-7B\nfinetuning_type: full\ncutoff_len: 2048\nper_device_train_batch_size: 1\nbf16: true\n\
             output_dir: a\nuse_reentrant_gc: false\ngradient_checkpointing_kwargs:\n  use_reentrant: {kwargs}\n"
        );
        said("full.yaml", &text, &[("world_size", "8")])
    };
    assert_eq!(unread(&factory("false")), Vec::<String>::new());
    stopped(&factory("true"), &["gradient_checkpointing_kwargs.use_reentrant"]);
    // Zyphra/Megatron-LM `examples/megarun_slurm/equisizing_suite/moe_1p3B_8E_bare.sh`.
    let zyphra = script(
        "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 \
         --micro-batch-size 1 --bf16 --vocab-size 50277 --tokenizer-type HFAutoTokenizer --hf_autotokenizer_model EleutherAI/gpt-neox-20b\n",
    );
    assert_eq!(unread(&zyphra), Vec::<String>::new());
}

/// yangjianxin1/Firefly at e22b406, `train.py:init_components`: transformers' own Trainer, started by torchrun or DeepSpeed, which holds no
/// output of the model for metrics.
#[test]
fn files_of_firefly_are_transformers_trainers() {
    let text = "{\"output_dir\": \"out\", \"model_name_or_path\": \"Qwen/Qwen1.5-7B\", \"train_file\": \"a.jsonl\", \"template_name\": \
        \"qwen\", \"num_train_epochs\": 1, \"per_device_train_batch_size\": 2, \"gradient_accumulation_steps\": 8, \"learning_rate\": 2e-4, \
        \"max_seq_length\": 1024, \"gradient_checkpointing\": true, \"optim\": \"adamw_torch\", \"bf16\": true, \"train_mode\": \"qlora\", \
        \"task_type\": \"sft\"}";
    let read = said("sft.json", text, &[("world_size", "2")]);
    assert!(read.plan.is_some(), "{:?} {:?}", read.questions, read.diagnostics);
    assert_eq!(
        [Field::PreferenceLogits, Field::SeqLength, Field::TrainType].map(|field| value(&read, field)),
        ["", "1024", "qlora"]
    );
}

/// RLHFlow/RLHF-Reward-Modeling `math-rm/llama-3.1-prm.yaml`, started with `--deepspeed ../deepspeed_configs/deepspeed_3.json`.
#[test]
fn an_axolotl_file_whose_engine_is_left_empty_asks_for_it() {
    let of = |more: &str, ranks: &str| {
        let text = format!(
            "base_model: meta-llama/Llama-3.1-8B-Instruct\nmicro_batch_size: 1\ngradient_accumulation_steps: 4\nsequence_len: 8192\n\
             bf16: auto\noptimizer: adamw_torch\ngradient_checkpointing: true\n{more}"
        );
        said("prm.yaml", &text, &[("world_size", ranks)])
    };
    let asked = of("deepspeed: #deepspeed/zero1.json # multi-gpu only\nfsdp:\n", "8");
    assert_eq!(asks(&asked), [("zero_stage", Some("1"))]);
    assert_eq!(asks(&of("deepspeed:\nfsdp:\nfsdp_config:\n", "8")), [("zero_stage", Some("0"))]);
    for (more, ranks) in
        [("deepspeed:\nfsdp:\n", "1"), ("", "8"), ("deepspeed:\nfsdp:\n  - full_shard\n  - auto_wrap\n", "8")]
    {
        assert!(asks(&of(more, ranks)).is_empty(), "{more:?} {:?}", asks(&of(more, ranks)));
    }
}

/// unslothai/notebooks `nb/Qwen2.5_VL_(7B)-Vision.ipynb`, whose own output prints 0.55 GiB less than a tower in 16 bits takes: a checkpoint in
/// 4 bits lists what it leaves whole (`llm_int8_skip_modules`), and `unsloth_zoo/peft_utils.py` had no tower among them before 2026.3.
#[test]
fn a_tower_that_a_checkpoint_does_not_leave_whole_stops() {
    let cell = "from unsloth import FastVisionModel\nfrom trl import SFTTrainer, SFTConfig\n\
        model, tokenizer = FastVisionModel.from_pretrained('unsloth/Qwen2.5-VL-7B-Instruct-bnb-4bit', load_in_4bit = True)\n\
        model = FastVisionModel.get_peft_model(model, finetune_vision_layers = False, r = 16, lora_alpha = 16, lora_dropout = 0)\n\
        trainer = SFTTrainer(model = model, args = SFTConfig(per_device_train_batch_size = 2, gradient_accumulation_steps = 4, \
        max_seq_length = 2048))\ntrainer.train()\n";
    let of = |list: &str| {
        said("vision.py", cell, &[("accelerator", "L4"), ("whole_linears", list), ("image_patches", "1024")])
    };
    assert!(
        of("lm_head visual").plan.is_some(),
        "{:?} {:?}",
        of("lm_head visual").not_modelled,
        of("lm_head visual").diagnostics
    );
    stopped(&of("lm_head merger"), &["vision_tower"]);
}
