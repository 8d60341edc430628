//! Misreadings found in the twentieth draw of public files.

use super::{said, script, stopped, value};
use shardscope_bash::Environment;
use shardscope_launch::{Request, read};
use shardscope_plan::Field;
use shardscope_source::Source;

/// sarvamai/sarvam-open-instruct `mini.sh`: eager attention, and a sum beside the model's own loss. Flash attention and one loss were
/// read.
#[test]
fn open_instruct_without_flash_attention_is_eager_and_a_sum_keeps_two_losses() {
    let of = |more: &str| {
        let text = format!(
            "accelerate launch --mixed_precision bf16 --num_processes 1 open_instruct/finetune.py --model_name_or_path Qwen/Qwen2.5-7B \
             --max_seq_length 1024 --per_device_train_batch_size 1 --gradient_accumulation_steps 4 {more}"
        );
        script(&text)
    };
    let attention = |more: &str| value(&of(more), Field::AttnImplementation);
    assert_eq!(attention("--dataset_mixer_list a 1.0"), "flash_attention_2");
    assert_eq!(attention("--dataset_mixer_list a 1.0 --use_flash_attn True"), "flash_attention_2");
    assert_eq!(attention("--dataset_mixer_list a 1.0 --use_flash_attn False"), "eager");
    let undated = "--train_file a.jsonl --use_flash_attn False";
    stopped(&of(undated), &["use_flash_attn"]);
    stopped(&of("--dataset_name a --use_flash_attn False"), &["use_flash_attn"]);
    // An option that came with the change, or after it.
    assert_eq!(attention(&format!("{undated} --fused_optimizer")), "eager");
    // Liger's class got sdpa from March to August 2025.
    stopped(&of("--dataset_mixer_list a 1.0 --use_liger_kernel --use_flash_attn False"), &["use_flash_attn"]);
    let later =
        "--dataset_mixer_list a 1.0 --use_liger_kernel --sequence_parallel_size 1 --use_flash_attn False";
    assert_eq!(attention(later), "eager");
    assert!(of("--reduce_loss mean").plan.is_some());
    stopped(&of("--reduce_loss sum"), &["reduce_loss"]);
}

/// wade3han/open-instruct `tulu_3_preview_test.yaml`: a file of one of two programs for DPO, and the options of their commands.
#[test]
fn open_instructs_preferences_are_told_by_their_program() {
    let of = |key: &str| {
        let text = format!(
            "model_name_or_path: Qwen/Qwen2.5-7B\nuse_flash_attn: true\ngradient_checkpointing: true\nmax_seq_length: 2048\n\
             use_slow_tokenizer: true\nper_device_train_batch_size: 1\ngradient_accumulation_steps: 16\nwith_tracking: true\n\
             dataset_mixer_list: [a, '1.0']\n{key}"
        );
        said("run.yaml", &text, &[("zero_stage", "0"), ("world_size", "8")])
    };
    assert!(of("").plan.is_some(), "{:?}", of("").diagnostics);
    stopped(&of("dpo_beta: 5\n"), &["dpo_beta"]);
    stopped(&of("dpo_loss_type: dpo_norm\ndpo_beta: 5\n"), &["dpo_loss_type"]);
    let command = |kind: &str| {
        let text = format!(
            "accelerate launch --mixed_precision bf16 --num_processes 8 open_instruct/dpo_tune_cache.py --model_name_or_path \
             Qwen/Qwen2.5-7B --use_flash_attn --gradient_checkpointing --max_seq_length 2048 --per_device_train_batch_size 1 \
             --gradient_accumulation_steps 2 --dataset_mixer_list a 1.0 --dpo_loss_type {kind} --dpo_beta 5"
        );
        script(&text)
    };
    let read = command("dpo_norm");
    assert_eq!(
        [Field::TrainingObjective, Field::ReferenceModel].map(|field| value(&read, field)),
        ["dpo", "precomputed"]
    );
    assert!(read.not_modelled.is_empty(), "{:?}", read.not_modelled);
    stopped(&command("wpo"), &["dpo_loss_type"]);
}

/// imHuicongZhang/nanotron `raw_diversity_oriented_seed43_ep2.yaml`: a template's switch was taken for off.
#[test]
fn a_switch_that_a_template_leaves_open_is_not_off() {
    let of = |recompute: &str, more: &str| {
        let text = format!(
            "model:\n  dtype: bfloat16\n  model_config:\n    is_llama_config: true\n    hidden_size: 2048\n    num_hidden_layers: 28\n    \
             num_attention_heads: 16\n    num_key_value_heads: 16\n    intermediate_size: 5632\n    vocab_size: 32000\n    \
             tie_word_embeddings: true\n    max_position_embeddings: 2048\ntokens:\n  micro_batch_size: 32\n  \
             batch_accumulation_per_replica: 8\n  sequence_length: 2048\noptimizer:\n  accumulate_grad_in_fp32: true\n  zero_stage: 0\n\
             parallelism:\n  dp: 4\n  tp: 1\n  pp: 1\n  pp_engine: 1f1b\n  tp_mode: REDUCE_SCATTER\n  recompute_layer: {recompute}\n{more}"
        );
        said("run.yaml", &text, &[])
    };
    assert!(of("false", "").plan.is_some());
    assert_eq!(value(&of("true", ""), Field::RecomputeGranularity), "full");
    for open in ["'{{RECOMPUTE_LAYER}}'", "${RECOMPUTE}", "<RECOMPUTE>"] {
        stopped(&of(open, ""), &["parallelism.recompute_layer"]);
    }
    // Without tensor-parallel ranks nothing is gathered over them (tongyao-zhu/nanotron).
    let alone = of("true", "  tp_recompute_allgather: false\n");
    assert!(alone.plan.is_some(), "{:?}", alone.diagnostics);
}

/// hewenyu/unsloth-fine `train_couplets.py` loads a model in 4 bits and trains it without adapters. unsloth's default ones were
/// read.
#[test]
fn unsloth_without_adapters_is_not_answered_for_its_default_ones() {
    let of = |loads: &str, adapts: &str| {
        let text = format!(
            "from unsloth import FastLanguageModel\nfrom transformers import Trainer, TrainingArguments\nmodel, tokenizer = \
             FastLanguageModel.from_pretrained(model_name='unsloth/mistral-7b-v0.3', max_seq_length=1024, {loads})\n{adapts}\n\
             args = TrainingArguments(output_dir='out', per_device_train_batch_size=4, gradient_accumulation_steps=4)\n\
             Trainer(model=model, args=args, train_dataset=data).train()\n"
        );
        said("train.py", &text, &[])
    };
    let adapts = "model = FastLanguageModel.get_peft_model(model, r=16, target_modules=['q_proj', 'v_proj'])";
    let read = of("load_in_4bit=True", adapts);
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    stopped(&of("load_in_4bit=True", ""), &["get_peft_model"]);
}

/// jpli02/torchtitan `graph_trainer/run_train.sh`: another trainer of the same configurations.
#[test]
fn torchtitans_graph_trainer_stops_by_name() {
    let of = |module: &str, config: &str| {
        script(&format!(
            "torchrun --nproc_per_node=8 -m torchtitan.train --module {module} --config {config}"
        ))
    };
    assert!(of("llama3", "llama3_8b").plan.is_some());
    for config in ["llama3_8b", "graph_trainer_llama3_debugmodel"] {
        let read = of("graph_trainer.llama3", config);
        assert!(
            read.not_modelled.iter().any(|item| item.message.contains("GraphTrainer")),
            "{:?}",
            read.diagnostics
        );
    }
}

/// y-okochi/Megatron-Bridge `qwen3_14b_continued_pretrain.yaml`: samples of 8,192 tokens under a recipe of 4,096.
#[test]
fn samples_of_another_length_than_the_recipes_are_refused() {
    let of = |more: &str| {
        let text = format!(
            "python scripts/training/run_recipe.py --recipe llama3_8b_pretrain_config train.micro_batch_size=1 {more}"
        );
        script(&text)
    };
    let plain = of("");
    assert!(plain.not_modelled.is_empty(), "{:?}", plain.diagnostics);
    let length = value(&plain, Field::SeqLength);
    assert!(of(&format!("dataset.sequence_length={length}")).not_modelled.is_empty());
    stopped(&of("dataset.sequence_length=1234"), &["dataset.sequence_length"]);
    assert!(of("dataset.sequence_length=4096 model.seq_length=4096").not_modelled.is_empty());
}

/// shamanez/verl `run_qwen1_5b_gdpo.sh`: a rank trains on two samples at once, and takes log-probabilities of sixteen, which fill a
/// pack.
#[test]
fn packs_of_log_probabilities_may_be_larger_than_those_of_few_samples() {
    let of = |mini: u32, more: &str| {
        let text = format!(
            "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=32 data.max_prompt_length=2048 \
             data.max_response_length=1024 actor_rollout_ref.model.path=Qwen/Qwen2.5-1.5B-Instruct \
             actor_rollout_ref.model.use_remove_padding=True actor_rollout_ref.actor.ppo_mini_batch_size={mini} \
             actor_rollout_ref.actor.use_dynamic_bsz=True actor_rollout_ref.actor.use_kl_loss=False \
             actor_rollout_ref.model.enable_gradient_checkpointing=True actor_rollout_ref.rollout.name=vllm \
             actor_rollout_ref.rollout.gpu_memory_utilization=0.6 actor_rollout_ref.rollout.n=4 \
             actor_rollout_ref.rollout.tensor_model_parallel_size=1 trainer.n_gpus_per_node=8 trainer.nnodes=1 {more}"
        );
        let read = script(&text);
        [Field::SeqLength, Field::LogProbTokens, Field::EvaluationBatchSize].map(|field| value(&read, field))
    };
    // Packs of 16,384 tokens, of 16 samples of 3,072; two of them are in a mini-batch.
    assert_eq!(of(4, ""), ["6144", "16384", ""]);
    assert_eq!(of(32, ""), ["16384", "", ""]);
    let stated = "actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu=12288";
    assert_eq!(of(4, stated), ["6144", "", "2"]);
    // No more than all samples have.
    let stated = "actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu=999999";
    assert_eq!(of(32, stated), ["16384", "", "3"]);
}

/// zhshgmail/AReaL `boba_grpo_vllm.yaml`: no sample is longer than the engine's context.
#[test]
fn the_rollout_engines_context_bounds_samples_of_areal() {
    let of = |engine: &str| {
        let text = format!(
            "allocation_mode: vllm.d4p1t2+d8p1t1\ncluster: {{n_nodes: 2, n_gpus_per_node: 8}}\nrollout: {{max_concurrent_rollouts: 400}}\n\
             gconfig: {{n_samples: 16, max_new_tokens: 30720}}\nactor:\n  path: deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B\n  \
             gradient_checkpointing: true\n  dtype: bfloat16\n  mb_spec: {{max_tokens_per_mb: 32768}}\n  backend: fsdp\n  \
             ppo_n_minibatches: 4\n  kl_ctl: 0.0\n{engine}train_dataset: {{batch_size: 512}}\n"
        );
        said("run.yaml", &text, &[])
    };
    assert_eq!(
        value(&of("vllm: {max_model_len: 32768, gpu_memory_utilization: 0.9}\n"), Field::RolloutLength),
        "32768"
    );
    assert!(of("vllm: {gpu_memory_utilization: 0.9}\n").plan.is_none());
}

/// simingh124/Megatron-LM `train_qwen3_0p6b_mlm_mvp.sh`: `--vocab-size` beside a tokenizer that has files.
#[test]
fn megatron_takes_the_vocabulary_of_hugging_faces_files() {
    let of = |tokenizer: &str| {
        let text = format!(
            "torchrun --nproc_per_node 2 pretrain_gpt.py --use-mcore-models --num-layers 28 --hidden-size 1024 --ffn-hidden-size 3072 \
             --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 32768 --micro-batch-size 1 --global-batch-size 2 \
             --bf16 --swiglu --vocab-size 151936 --make-vocab-size-divisible-by 128 {tokenizer}"
        );
        script(&text)
    };
    let size = |tokenizer: &str| value(&of(tokenizer), Field::VocabSize);
    assert_eq!(size("--tokenizer-type HuggingFaceTokenizer --tokenizer-model Qwen/Qwen3-0.6B"), "151669");
    assert_eq!(size("--tokenizer-type NullTokenizer"), "151936");
    let unknown = of("--tokenizer-type HuggingFaceTokenizer --tokenizer-model /data/ours");
    assert_eq!(value(&unknown, Field::VocabSize), "151936");
    assert!(unknown.diagnostics.iter().any(|said| said.message.contains("--vocab-size is not read")));
}

/// mikustojk/LLaMA2-And-DeepSpeed-Training `ds_config.json`: a configuration with numbers, whose program is not here, was read as
/// Megatron-DeepSpeed's without a word.
#[test]
fn a_deepspeed_configuration_alone_is_of_no_megatron() {
    let text = "{\"train_batch_size\": 8, \"train_micro_batch_size_per_gpu\": 1, \"gradient_accumulation_steps\": 8, \"bf16\": \
                {\"enabled\": true}, \"zero_optimization\": {\"stage\": 2}, \"gradient_clipping\": 1.0}";
    let answers = [("model", "Qwen/Qwen2.5-7B"), ("seq_length", "4096")];
    let read = said("ds_config.json", text, &answers);
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    assert_eq!(
        [Field::Software, Field::WorldSize].map(|field| value(&read, field)),
        ["hf_transformers", "1"]
    );
    assert!(read.diagnostics.iter().any(|said| said.message.contains("no program is given")));
}

/// Only a text of Megatron's makes the configuration beside it Megatron-DeepSpeed's; the user's own Python file, or one that starts
/// nothing, does not.
#[test]
fn a_deepspeed_configuration_beside_another_program_is_of_no_megatron() {
    let config = "{\"train_batch_size\": 8, \"train_micro_batch_size_per_gpu\": 1, \"gradient_accumulation_steps\": 1, \"bf16\": \
                  {\"enabled\": true}, \"zero_optimization\": {\"stage\": 2}}";
    let beside = |name: &str, text: &str| {
        let source = Source::from_files([("ds_config.json", config), (name, text)]);
        let set = [("model", "Qwen/Qwen2.5-7B"), ("seq_length", "4096")];
        let overrides: Vec<_> = set.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let read =
            read(&Request { source: &source, environment: &Environment::default(), overrides: &overrides });
        let said = read.diagnostics.iter().any(|said| said.message.contains("no program is given"));
        (value(&read, Field::Software), said)
    };
    let transformers = ("hf_transformers".to_owned(), true);
    for program in [
        "import torch\nimport deepspeed\nengine, _, _, _ = deepspeed.initialize(model=model, config=path)\n",
        "import subprocess\nimport sys\nsubprocess.run(['deepspeed', 'train.py', '--seed', '1'])\n",
        "import torch\nimport deepspeed\nfor batch in loader:\n    loss = model(batch)\n    engine.backward(loss)\n",
        "import torch\nimport torch.optim\noptimizer = torch.optim.AdamW(parameters)\n",
    ] {
        assert_eq!(beside("my.py", program), transformers, "{program}");
    }
    assert_eq!(beside("notes.txt", "a run of last week\n"), transformers);
    let megatron = "deepspeed pretrain_gpt.py --num-layers 28 --hidden-size 3584 --num-attention-heads 28\n";
    assert_eq!(beside("run.sh", megatron), ("megatron_deepspeed".to_owned(), false));
}

/// wangwk699/axolotl-exp `qwen3-8b_codefeedback_adamw_s42_full_ft.yml`: FSDP's own checkpoints, which are not the reentrant ones of
/// axolotl's `gradient_checkpointing`.
#[test]
fn fsdps_own_checkpoints_are_not_reentrant_under_axolotl() {
    let of = |own: bool, fsdps: bool| {
        let text = format!(
            "base_model: Qwen/Qwen3-8B\ndatasets: [{{path: a.jsonl, type: alpaca}}]\nsequence_len: 2048\nsample_packing: true\n\
             micro_batch_size: 2\ngradient_accumulation_steps: 4\nbf16: true\ngradient_checkpointing: {own}\nattn_implementation: \
             flash_attention_2\noptimizer: adamw_torch_fused\nfsdp_version: 2\nfsdp_config:\n  offload_params: false\n  \
             auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  reshard_after_forward: true\n  activation_checkpointing: {fsdps}\n  \
             transformer_layer_cls_to_wrap: Qwen3DecoderLayer\n"
        );
        let read = said("run.yml", &text, &[("world_size", "8")]);
        [Field::RecomputeGranularity, Field::ReentrantCheckpoints].map(|field| value(&read, field))
    };
    assert_eq!(of(true, false), ["full", "true"]);
    assert_eq!(of(false, true), ["full", ""]);
}

/// What y-okochi/Megatron-Bridge's file also states changes no figure.
#[test]
fn garbage_collection_and_watched_gradients_mark_no_recipe() {
    let read = script(
        "python scripts/training/run_recipe.py --recipe llama3_8b_pretrain_config train.manual_gc=true train.manual_gc_interval=100 \
         train.manual_gc_eval=100 ddp.check_for_nan_in_grad=true ddp.average_in_collective=true",
    );
    assert_eq!(value(&read, Field::NotRead), "", "{:?}", read.diagnostics);
}
