//! Misreadings found in the seventeenth draw of public files, and questions that the text already answers.

use super::{said, script, stopped, value};
use shardscope_plan::Field;

/// owaski/HPO `sft-llama3.1-8b-instruct-1n8g-megatron.yaml`: the weights' format is `policy.precision`; the optimizer has
/// a switch of its own. bf16 weights were read as fp32.
#[test]
fn nemo_rls_weights_are_in_the_policys_precision() {
    let read = |precision: &str, switch: &str| {
        said(
            "sft.yaml",
            &format!(
                "sft: {{max_num_steps: 250}}\npolicy:\n  model_name: meta-llama/Llama-3.1-8B-Instruct\n  \
                 train_global_batch_size: 32\n  train_micro_batch_size: 2\n  max_total_sequence_length: 1024\n  \
                 precision: {precision}\n  dtensor_cfg: {{enabled: false}}\n  megatron_cfg:\n    enabled: true\n    \
                 tensor_model_parallel_size: 2\n    pipeline_model_parallel_size: 2\n    context_parallel_size: 1\n    \
                 optimizer: {{optimizer: adam, bf16: {switch}, fp16: false, params_dtype: float32, \
                 use_distributed_optimizer: true}}\n    distributed_data_parallel_config: {{grad_reduce_in_fp32: false}}\n\
                 cluster: {{gpus_per_node: 8, num_nodes: 1}}\n"
            ),
            &[],
        )
    };
    for switch in ["true", "false"] {
        let read = read("bfloat16", switch);
        assert!(read.plan.is_some(), "{:?}", read.diagnostics);
        assert_eq!(value(&read, Field::ParamsDtype), "bf16");
        assert_eq!(value(&read, Field::GradsDtype), "bf16");
    }
    assert_eq!(value(&read("float32", "false"), Field::ParamsDtype), "fp32");
}

/// zixianwang2022/Megatron-LM `examples/gpt3/gpt_config.yaml`: a YAML file is validated like a command line, so that bf16
/// turns on fp32 gradients although the file says false. They were read as bf16.
#[test]
fn megatrons_yaml_cannot_turn_off_fp32_gradients_under_bf16() {
    let file = |half: &str| {
        format!(
            "language_model: {{num_layers: 24, hidden_size: 1024, num_attention_heads: 16, ffn_hidden_size: null}}\n\
             model_parallel: {{tensor_model_parallel_size: 1, pipeline_model_parallel_size: 1, {half}}}\n\
             micro_batch_size: 2\nglobal_batch_size: 128\nseq_length: 4096\nmax_position_embeddings: 4096\n\
             make_vocab_size_divisible_by: 128\ntokenizer_type: GPT2BPETokenizer\ntrain_iters: 10\noptimizer: adam\n\
             accumulate_allreduce_grads_in_fp32: false\n"
        )
    };
    let of = |half: &str| said("gpt_config.yaml", &file(half), &[("world_size", "8")]);
    assert_eq!(value(&of("bf16: true, fp16: false"), Field::GradsDtype), "fp32");
    assert_eq!(value(&of("bf16: false, fp16: true"), Field::GradsDtype), "fp16");
}

/// kojimano/Megatron-DeepSpeed-ABCI `examples/azure/run-1t.sh`: a vocabulary file in a folder below `$PWD`. That of a
/// model of the same shape, 51,200, was assumed for GPT-2's.
#[test]
fn a_vocabulary_file_is_known_by_its_name_in_any_folder() {
    let run = |file: &str| {
        script(&format!(
            "BASE=$PWD/dataset/\ndeepspeed --num_nodes 1 --num_gpus 8 pretrain_gpt.py --num-layers 128 --hidden-size 25600 \
             --num-attention-heads 160 --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 \
             --global-batch-size 8 --train-iters 1000 --vocab-file $BASE/{file} --fp16 --deepspeed --zero-stage 3\n"
        ))
    };
    assert_eq!(value(&run("gpt2-vocab.json"), Field::VocabSize), "50257");
    assert_ne!(value(&run("words.json"), Field::VocabSize), "50257");
}

/// klhhhhh/MetaInit-LLM `scripts/124m_gpt_pretrain.sh`: NeMo 1 beneath a configuration of the user's own, with fp32 weights
/// under autocast. Both were passed over.
#[test]
fn nemo_beneath_a_file_of_the_users_own_asks_for_it() {
    let run = |folder: &str, o2: &str| {
        script(&format!(
            "torchrun --nnodes=1 --nproc_per_node=1 megatron_gpt_pretraining.py {folder} trainer.devices=1 \
             trainer.num_nodes=1 trainer.max_steps=500000 trainer.precision=bf16 model.transformer_engine=True \
             model.megatron_amp_O2={o2} model.micro_batch_size=96 model.global_batch_size=96 \
             model.tensor_model_parallel_size=1 model.pipeline_model_parallel_size=1 model.max_position_embeddings=1024 \
             model.encoder_seq_length=1024 model.hidden_size=768 model.ffn_hidden_size=3072 model.num_layers=12 \
             model.num_attention_heads=12 model.tokenizer.vocab_file=/data/gpt2-vocab.json model.optim.name=fused_adam\n"
        ))
    };
    let own = run("--config-path=/u/me/conf --config-name=megatron_gpt_config", "True");
    assert!(own.plan.is_none());
    let asked = "this training takes its settings from megatron_gpt_config.yaml, which is not here";
    assert!(own.diagnostics.iter().any(|said| said.message == asked), "{:?}", own.diagnostics);
    let bare = run("", "True");
    assert!(bare.plan.is_some(), "{:?}", bare.diagnostics);
    stopped(&run("", "False"), &["megatron_amp_O2"]);
}

/// flower418/connect4-selfplay-cot-rl `scripts/run_verl_grpo.sh`: verl loads the model under the attention that its own
/// configuration states. SDPA over joined samples was read as flash attention.
#[test]
fn verls_attention_is_the_one_of_the_models_configuration() {
    let run = |rest: &str| {
        script(&format!(
            "python -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=64 \
             data.max_prompt_length=4096 data.max_response_length=512 actor_rollout_ref.model.path=Qwen/Qwen2.5-0.5B-Instruct \
             actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 \
             actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.tensor_model_parallel_size=1 \
             actor_rollout_ref.rollout.n=4 actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=1 \
             trainer.n_gpus_per_node=1 trainer.nnodes=1 {rest}\n"
        ))
    };
    let of = |kind: &str| format!("+actor_rollout_ref.model.override_config.attn_implementation={kind}");
    let flash = run(&of("flash_attention_2"));
    assert!(flash.plan.is_some(), "{:?}", flash.diagnostics);
    stopped(
        &run(&format!("actor_rollout_ref.model.use_remove_padding=True {}", of("sdpa"))),
        &["actor_rollout_ref.model.override_config.attn_implementation"],
    );
    let padded = run(&format!("actor_rollout_ref.model.use_remove_padding=False {}", of("sdpa")));
    assert_eq!(value(&padded, Field::AttnImplementation), "sdpa");
}

/// mwill20/CLI-Tuner `configs/axolotl_config.yaml`: only `adapter: qlora` quantizes to 4 bits today; before transformers 5
/// bitsandbytes' own fp4 did. NF4 was assumed.
#[test]
fn four_bits_under_axolotls_plain_adapters_stop() {
    let of = |adapter: &str| {
        said(
            "config.yaml",
            &format!(
                "base_model: Qwen/Qwen2.5-Coder-7B-Instruct\nload_in_4bit: true\nadapter: {adapter}\nlora_r: 8\n\
                 lora_alpha: 16\nlora_dropout: 0.05\nlora_target_modules: [q_proj, v_proj, k_proj, o_proj]\n\
                 sequence_len: 512\nsample_packing: false\nmicro_batch_size: 1\ngradient_accumulation_steps: 4\n\
                 optimizer: adamw_bnb_8bit\nbf16: true\ngradient_checkpointing: true\n"
            ),
            &[("world_size", "1")],
        )
    };
    stopped(&of("lora"), &["load_in_4bit"]);
    let qlora = of("qlora");
    assert!(qlora.plan.is_some(), "{:?}", qlora.diagnostics);
}

/// SnackJJ/NutriMind `src/training/grpo/train_grpo.py`: a variable holds the trainer's class, by default one of the
/// program's own (`GiGPOTrainerV2`). TRL's was assumed.
#[test]
fn a_trainer_may_be_called_by_a_variable() {
    let program = |own: &str| {
        format!(
            "import argparse\nfrom peft import LoraConfig\nfrom trl import GRPOConfig, GRPOTrainer\n\
             from src.gigpo import GiGPOTrainerV2\ndef main():\n    own = {own}\n    if own:\n        \
             TrainerClass = GiGPOTrainerV2\n    else:\n        TrainerClass = GRPOTrainer\n    \
             config = GRPOConfig(num_generations=16, max_completion_length=6144, per_device_train_batch_size=1,\n        \
             gradient_accumulation_steps=16, bf16=True, gradient_checkpointing=True)\n    trainer = TrainerClass(\n        \
             model='Qwen/Qwen3-4B', args=config, reward_funcs=reward, train_dataset=data,\n        \
             peft_config=LoraConfig(r=16, target_modules=['q_proj', 'v_proj'], task_type='CAUSAL_LM'))\n    trainer.train()\n"
        )
    };
    let read =
        |own: &str| said("train_grpo.py", &program(own), &[("world_size", "1"), ("seq_length", "8192")]);
    stopped(&read("True"), &["GiGPOTrainerV2"]);
    let library = read("False");
    assert!(library.not_modelled.is_empty(), "{:?}", library.not_modelled);
}

/// vinodkumartz/HealthAI-Finetune `finetune_llama3.ipynb`: settings in nested dictionaries, looked up by `get`.
#[test]
fn nested_dictionaries_are_looked_up() {
    let read = said(
        "train.py",
        "from unsloth import FastLanguageModel\nfrom trl import SFTTrainer\nfrom transformers import TrainingArguments\n\
         config = {'model': {'base': 'unsloth/llama-3-8b-Instruct-bnb-4bit', 'length': 2048, 'four': True},\n  \
         'lora': {'r': 16, 'dropout': 0, 'dtype': torch.float16},\n  'training': {'batch': 2, 'optim': 'adamw_8bit'}}\n\
         model, tokenizer = FastLanguageModel.from_pretrained(model_name=config.get('model').get('base'),\n  \
         max_seq_length=config.get('model').get('length'), dtype=config.get('lora').get('dtype'),\n  \
         load_in_4bit=config['model'].get('four', False))\n\
         model = FastLanguageModel.get_peft_model(model, r=config.get('lora').get('r'),\n  \
         target_modules=['q_proj', 'v_proj'], lora_dropout=config.get('lora').get('dropout'), \
         use_gradient_checkpointing=config.get('lora').get('checkpoints', True))\n\
         trainer = SFTTrainer(model=model, max_seq_length=config.get('model').get('length'), train_dataset=data,\n  \
         args=TrainingArguments(per_device_train_batch_size=config.get('training').get('batch'),\n  \
         gradient_accumulation_steps=4, fp16=not torch.cuda.is_bf16_supported(),\n  \
         bf16=torch.cuda.is_bf16_supported(), optim=config.get('training').get('optim')))\ntrainer.train()\n",
        &[("world_size", "1")],
    );
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    let of = |field| value(&read, field);
    let fields = [Field::LoraRank, Field::MicroBatchSize, Field::Optimizer, Field::SeqLength];
    assert_eq!(fields.map(of), ["16", "2", "adamw_8bit", "2048"]);
    // unsloth refuses bf16 over weights in fp16, whatever the accelerator supports.
    assert_eq!([Field::ParamsDtype, Field::Autocast].map(of), ["fp16", "fp16"]);
}

/// LeiLiLab/WALAR `train.sh`: the visible devices counted by awk.
#[test]
fn devices_are_counted_by_awk() {
    let read = script(
        "export CUDA_VISIBLE_DEVICES=4,5,6,7\nn=$(echo \"$CUDA_VISIBLE_DEVICES\" | awk -F',' '{print NF}')\n\
         torchrun --nproc_per_node $n sft.py --model_name_or_path Qwen/Qwen3-8B --max_length 2048 \
         --per_device_train_batch_size 1 --gradient_accumulation_steps 2 --bf16\n",
    );
    assert_eq!(value(&read, Field::GpusPerNode), "4");
}

/// MaxLSB/EasyTraining `configs/sft_config.yaml`: FSDP's settings are a dictionary among the Trainer's arguments, not another
/// way to train. The file was of no known framework.
#[test]
fn fsdps_dictionary_belongs_to_the_trainers_group() {
    let read = said(
        "sft_config.yaml",
        "model: {name: Qwen/Qwen3-4B, load_in_4bit: false, attn_implementation: flash_attention_2}\n\
         datasets:\n  - {name: a/b, split: train}\ntraining:\n  output_dir: out\n  per_device_train_batch_size: 2\n  \
         gradient_accumulation_steps: 4\n  bf16: true\n  packing: true\n  max_seq_length: 4096\n  fsdp: full_shard auto_wrap\n  \
         fsdp_config: {fsdp_version: 2, activation_checkpointing: true}\n",
        &[("world_size", "8"), ("train_type", "full")],
    );
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    let of = |field| value(&read, field);
    let fields =
        [Field::DataParallelEngine, Field::ZeroStage, Field::GradientCheckpointing, Field::SeqLength];
    assert_eq!(fields.map(of), ["fsdp2", "3", "true", "4096"]);
}
