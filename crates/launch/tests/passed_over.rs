//! Settings that change a figure and had been passed over, read as something else, or stopped for another reason.

use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::OptimizerKind;
use shardscope_source::Source;

fn resolved(files: &[(&str, &str)], set: &[(&str, &str)]) -> Resolution {
    let source = Source::from_files(files.iter().copied());
    let set: Vec<_> = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    read(&Request { source: &source, environment: &Environment::default(), overrides: &set })
}

/// What stops the verdict: names, and messages.
fn stops(files: &[(&str, &str)]) -> Vec<(String, String)> {
    let read = resolved(files, &[("world_size", "8")]);
    read.not_modelled.iter().map(|item| (item.name.clone(), item.message.clone())).collect()
}

#[track_caller]
fn stops_by(command: &str, more: &str, what: &str) {
    assert!(stops(&[("run.sh", command)]).is_empty(), "{:?}", stops(&[("run.sh", command)]));
    let said = stops(&[("run.sh", &format!("{command} {more}"))]);
    assert!(said.len() == 1 && said[0].1.contains(what), "{more}: {said:?}");
}

const TRAINER: &str = "torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen2.5-7B --output_dir out \
    --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --bf16 --max_seq_length 2048 --num_train_epochs 1";
const VERL: &str = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B \
    actor_rollout_ref.actor.ppo_mini_batch_size=32 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 \
    actor_rollout_ref.rollout.name=vllm trainer.n_gpus_per_node=8 trainer.nnodes=1";
const VERL_SFT: &str = "torchrun --nproc_per_node 8 -m verl.trainer.fsdp_sft_trainer data.train_files=a data.max_length=2048 \
    data.train_batch_size=64 data.micro_batch_size_per_gpu=2 model.partial_pretrain=Qwen/Qwen2.5-7B";

/// `transformers/training_args.py:__post_init__`, `trainer.py:_build_accelerator_args`.
#[test]
fn batches_that_accelerate_divides_or_counts_stop() {
    stops_by(TRAINER, "--split_batches True", "a micro-batch that all ranks share");
    let files = |more: &str| {
        let text = format!(
            "model_name_or_path: Qwen/Qwen2.5-7B\nper_device_train_batch_size: 2\nlearning_rate: 1e-5\nbf16: true\n\
             max_length: 2048\ndeepspeed: null\naccelerator_config:\n  {more}\n"
        );
        let said = stops(&[("sft.yaml", &text)]);
        said.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(files("split_batches: true"), ["accelerator_config.split_batches"]);
    assert!(files("split_batches: false").is_empty());
    let counted = files("gradient_accumulation_kwargs:\n    num_steps: 4");
    assert_eq!(counted, ["accelerator_config.gradient_accumulation_kwargs.num_steps"]);
}

/// `llamafactory/model/model_utils/moe.py:configure_moe`, `swift/trainers/seq2seq_trainer.py:_prepare_inputs`.
#[test]
fn a_load_balancing_loss_over_routers_stops() {
    let factory = "llamafactory-cli train --model_name_or_path Qwen/Qwen2.5-7B --stage sft --finetuning_type full --template qwen \
        --cutoff_len 2048 --per_device_train_batch_size 1 --bf16 true --output_dir out";
    stops_by(factory, "--moe_aux_loss_coef 0.001", "a load-balancing loss over the routers");
    assert!(stops(&[("run.sh", &format!("{factory} --moe_aux_loss_coef 0"))]).is_empty());
    let swift = "NPROC_PER_NODE=8 swift sft --model Qwen/Qwen2.5-7B --tuner_type full --torch_dtype bfloat16 --max_length 2048 \
        --per_device_train_batch_size 1 --attn_impl flash_attn";
    stops_by(swift, "--router_aux_loss_coef 1e-3", "a load-balancing loss over the routers");
    assert!(stops(&[("run.sh", &format!("{swift} --router_aux_loss_coef 0"))]).is_empty());
}

/// `verl/utils/fsdp_utils.py:get_fsdp_wrap_policy`.
#[test]
fn units_and_formats_of_verls_fsdp_other_than_the_usual_stop() {
    let own = "actor_rollout_ref.actor.fsdp_config";
    stops_by(VERL, &format!("{own}.wrap_policy.disable=True"), "FSDP units other than layers");
    stops_by(VERL, &format!("{own}.wrap_policy.min_num_params=1000000"), "FSDP units other than layers");
    assert!(stops(&[("run.sh", &format!("{VERL} {own}.wrap_policy.min_num_params=0"))]).is_empty());
    let second =
        format!("{VERL} actor_rollout_ref.actor.strategy=fsdp2 {own}.wrap_policy.min_num_params=1000000");
    assert!(stops(&[("run.sh", &second)]).is_empty());
    stops_by(VERL, &format!("{own}.dtype=float32"), "in another format than 16 bits");
    stops_by(VERL, &format!("{own}.mixed_precision.param_dtype=fp32"), "in another format than 16 bits");
    assert!(stops(&[("run.sh", &format!("{VERL} {own}.dtype=float16"))]).is_empty());
    // FSDP2, the default of the supervised trainer, has no such policy.
    let (first, policy) =
        (format!("{VERL_SFT} model.strategy=fsdp"), "model.fsdp_config.wrap_policy.min_num_params=5");
    stops_by(&first, policy, "FSDP units other than layers");
    assert!(stops(&[("run.sh", &format!("{VERL_SFT} {policy}"))]).is_empty());
    // Without adapters nothing excludes a module from them.
    assert!(stops(&[("run.sh", &format!("{VERL_SFT} model.exclude_modules=.*head.*"))]).is_empty());
    let adapters = format!("{VERL_SFT} model.lora_rank=8");
    stops_by(&adapters, "model.exclude_modules=.*head.*", "adapters with excluded modules");
}

/// Accelerate puts its own option, by default "none", where a file says "auto".
#[test]
fn auto_is_no_device_to_offload_to() {
    let file = |device: &str| {
        format!(
            "{{\"train_micro_batch_size_per_gpu\": \"auto\", \"train_batch_size\": \"auto\", \"bf16\": {{\"enabled\": \"auto\"}},
             \"zero_optimization\": {{\"stage\": 3, \"offload_optimizer\": {{\"device\": \"{device}\"}},
             \"offload_param\": {{\"device\": \"{device}\"}}}}}}"
        )
    };
    let command = format!("{TRAINER} --deepspeed ds.json");
    for (device, away) in [("auto", false), ("none", false), ("cpu", true)] {
        let read = resolved(&[("run.sh", &command), ("ds.json", &file(device))], &[]);
        let plan =
            read.plan.unwrap_or_else(|| panic!("{device}: {:?} {:?}", read.not_modelled, read.diagnostics));
        let offload = &plan.recipe().offload;
        assert_eq!((offload.optimizer, offload.parameters), (away, away), "{device}");
    }
}

/// PyTorch's SGD, with the momentum that the file states.
#[test]
fn momentum_of_deepspeeds_sgd_is_read() {
    let file = |momentum: &str| {
        format!(
            "{{\"train_micro_batch_size_per_gpu\": 2, \"gradient_accumulation_steps\": 4, \"bf16\": {{\"enabled\": true}},
             \"zero_optimization\": {{\"stage\": 2}}, \"optimizer\": {{\"type\": \"SGD\", \"params\": {{\"lr\": 0.1{momentum}}}}}}}"
        )
    };
    let kind = |momentum: &str| {
        let command = format!("{TRAINER} --deepspeed ds.json");
        let read = resolved(&[("run.sh", &command), ("ds.json", &file(momentum))], &[]);
        let plan = read.plan.unwrap_or_else(|| panic!("{:?} {:?}", read.not_modelled, read.diagnostics));
        plan.recipe().optimizer.kind
    };
    assert_eq!(kind(""), OptimizerKind::Sgd);
    assert_eq!(kind(", \"momentum\": 0.9"), OptimizerKind::SgdMomentum);
}

/// `openrlhf/trainer/prm_trainer.py`: the LM head stays, and its logits at marked tokens are the loss's.
#[test]
fn a_process_reward_model_stops_by_its_loss() {
    let old = "deepspeed --module openrlhf.cli.train_prm --pretrain mistralai/Mistral-7B-v0.1 --micro_train_batch_size 8 \
        --train_batch_size 256 --max_len 8192 --zero_stage 3 --param_dtype bf16 --packing_samples --gradient_checkpointing \
        --placeholder_token ки --reward_tokens + -";
    let said = stops(&[("run.sh", old)]);
    assert!(said.iter().all(|(_, what)| what.contains("process reward model")), "{said:?}");
    assert!(said.iter().any(|(_, what)| what.contains("the LM head's logits at marked tokens")), "{said:?}");
}

/// ChatLLM's programs train embedding and output layer beside adapters unless told otherwise.
#[test]
fn embeddings_that_train_beside_chatllms_adapters_stop() {
    let command = |program: &str, more: &str| {
        format!(
            "deepspeed --include localhost:0,1 {program} --model_name_or_path meta-llama/Llama-2-7b-hf --lora_r 8 --lora_alpha 32 \
             --lora_dropout 0.05 --lora_target_modules q_proj v_proj --data_path a.json --output_dir out --bf16 True \
             --per_device_train_batch_size 1 --gradient_accumulation_steps 1 --model_max_length 4096 --q_lora False \
             --gradient_checkpointing True --flash_attn True {more}"
        )
    };
    let own = "an embedding and an output layer that the program trains beside its adapters";
    let is_told = |text: &str| stops(&[("run.sh", text)]).iter().any(|(_, what)| what.contains(own));
    assert!(is_told(&command("fastchat/train/train_lora_custom.py", "")));
    assert!(is_told(&command("train.py", "--data_format chat-orca")));
    assert!(!is_told(&command("fastchat/train/train_lora.py", "")));
}

/// TRL's files leave what ranks shard to accelerate's: it is asked for, and a remark gives the proposal.
#[test]
fn a_lone_file_of_trl_asks_what_its_ranks_shard() {
    let trl = "model_name_or_path: Qwen/Qwen2.5-7B\nper_device_train_batch_size: 2\nlearning_rate: 1e-5\nbf16: true\nmax_length: 2048\n\
               gradient_accumulation_steps: 2\ngradient_checkpointing: true\n";
    let with = |files: &[(&str, &str)], overrides: &[(&str, &str)]| {
        let read = resolved(files, overrides);
        let asked = read.questions.iter().find(|asked| asked.name() == "zero_stage");
        (asked.and_then(|asked| asked.proposal.clone()), read.plan.is_some())
    };
    let eight = [("world_size", "8")];
    let asked = |files: &[(&str, &str)]| with(files, &eight);
    assert_eq!(asked(&[("sft.yaml", trl)]), (Some("0".to_owned()), false));
    for (remark, stage) in [
        ("# Config for 16 nodes of 8 H100s with FSDP1\n", "3"),
        ("# accelerate launch --config_file recipes/accelerate_configs/zero3.yaml sft.py\n", "3"),
        ("# ran under DeepSpeed ZeRO-2\n", "2"),
        ("# to use without FSDP or ZeRO-3\n", "0"),
        ("run_name: a#zero2\n", "0"),
        ("run_name: fsdp\n", "0"),
    ] {
        let text = format!("{remark}{trl}");
        assert_eq!(asked(&[("sft.yaml", &text)]), (Some(stage.to_owned()), false), "{remark}");
    }
    // One rank has nothing to share out, and an answer is one.
    for overrides in [
        &[("world_size", "1")][..],
        &[("gpus_per_node", "1"), ("num_nodes", "1")],
        &[("world_size", "8"), ("zero_stage", "3")],
    ] {
        assert_eq!(with(&[("sft.yaml", trl)], overrides), (None, true), "{overrides:?}");
    }
    // Where a launch is here it decides, and so does the file's own option.
    let replicated =
        "distributed_type: MULTI_GPU\nnum_machines: 1\nnum_processes: 8\nmixed_precision: bf16\n";
    assert_eq!(asked(&[("sft.yaml", trl), ("multi.yaml", replicated)]).0, None);
    let launch = ("run.sh", "torchrun --nproc_per_node 8 sft.py --config sft.yaml");
    assert_eq!(asked(&[("sft.yaml", trl), launch]).0, None);
    assert_eq!(asked(&[("sft.yaml", &format!("{trl}fsdp: full_shard auto_wrap\n"))]).0, None);
}

#[test]
fn what_tables_had_passed_over_stops() {
    let instruct = "accelerate launch --num_processes 8 open_instruct/finetune.py --model_name_or_path Qwen/Qwen2.5-7B \
        --max_seq_length 2048 --per_device_train_batch_size 1 --gradient_accumulation_steps 8";
    let said = stops(&[("run.sh", &format!("{instruct} --sync_each_batch"))]);
    assert!(
        said.iter().any(|(_, what)| what.contains("gradients reduced after every micro-batch")),
        "{said:?}"
    );
    let megatron = "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 \
        --seq-length 32 --max-position-embeddings 32 --micro-batch-size 1 --vocab-size 1000 --bf16";
    stops_by(megatron, "--output-layer-slice-num 8", "the output layer in slices");
    assert!(stops(&[("run.sh", &format!("{megatron} --output-layer-slice-num 1"))]).is_empty());
    let launcher =
        "distributed_type: MEGATRON_LM\nnum_machines: 1\nnum_processes: 8\nmixed_precision: bf16\n";
    let said = stops(&[("multi.yaml", launcher)]);
    assert!(said.iter().any(|(name, _)| name == "distributed_type"), "{said:?}");
}
