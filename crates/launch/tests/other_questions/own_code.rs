//! Models whose repository brings code of its own, which `trust_remote_code` runs in the place of transformers' modules.

use shardscope_launch::Resolution;

use super::said;

/// Whether the read stops because of it.
fn of_its_own(read: &Resolution) -> bool {
    let what = "the code in this model's repository, in the place of transformers' modules";
    let said = read.not_modelled.iter().any(|item| item.message == what);
    assert!(!said || read.plan.is_none(), "a verdict all the same");
    said
}

const AXOLOTL: &str = "base_model: MODEL\nadapter: lora\nlora_r: 16\nlora_target_linear: true\nsequence_len: 2048\n\
    micro_batch_size: 2\ngradient_accumulation_steps: 4\noptimizer: adamw_torch\nbf16: true\n\
    datasets:\n  - path: tatsu-lab/alpaca\n    type: alpaca\n";

fn axolotl(model: &str, more: &str) -> String {
    format!("{}{more}", AXOLOTL.replace("MODEL", model))
}

#[test]
fn trusted_code_of_a_repository_is_not_priced_as_transformers() {
    assert!(of_its_own(&said(
        "phi.yaml",
        &axolotl("microsoft/Phi-3-mini-4k-instruct", "trust_remote_code: true\n"),
        &[]
    )));
    for (model, more) in [
        ("microsoft/Phi-3-mini-4k-instruct", ""),
        // Neither has an `auto_map`.
        ("microsoft/phi-4", "trust_remote_code: true\n"),
        ("Qwen/Qwen2.5-7B", "trust_remote_code: true\n"),
    ] {
        let read = said("native.yaml", &axolotl(model, more), &[]);
        assert!(!of_its_own(&read), "{model} {more}");
    }
}

#[test]
fn a_copy_in_a_folder_brings_its_code_along() {
    let local = "torchrun --nproc_per_node 8 train.py --model_name_or_path /data/models/Phi-3-mini-4k-instruct --bf16 \
        --per_device_train_batch_size 1 --model_max_length 2048 --trust_remote_code True\n";
    assert!(of_its_own(&said("run.sh", local, &[])));
    let swift = "swift sft --model LLM-Research/Phi-3-mini-4k-instruct --train_type lora --dataset a --max_length 2048\n";
    assert!(of_its_own(&said("run.sh", swift, &[])));
    assert!(of_its_own(&said(
        "nemotron.yaml",
        &axolotl("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "trust_remote_code: true\n"),
        &[]
    )));
}

#[test]
fn openrlhf_trusts_every_repository_and_verl_those_it_is_told_to() {
    let openrlhf = "deepspeed --module openrlhf.cli.train_sft --max_len 2048 --dataset Open-Orca/OpenOrca \
        --train_batch_size 128 --micro_train_batch_size 2 --pretrain MODEL --zero_stage 2 --bf16\n";
    assert!(of_its_own(&said("sft.sh", &openrlhf.replace("MODEL", "microsoft/Phi-3-mini-4k-instruct"), &[])));
    let verl = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=256 \
        actor_rollout_ref.model.path=deepseek-ai/DeepSeek-V2-Lite actor_rollout_ref.actor.ppo_mini_batch_size=64 \
        actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 trainer.n_gpus_per_node=8 trainer.nnodes=1";
    let trusting = format!("{verl} actor_rollout_ref.model.trust_remote_code=True\n");
    assert!(of_its_own(&said("verl.sh", &trusting, &[])));
    let plain = said("verl.sh", &format!("{verl}\n"), &[]);
    assert!(!of_its_own(&plain));
    let megatron =
        said("verl.sh", &format!("{} actor_rollout_ref.actor.strategy=megatron\n", trusting.trim_end()), &[]);
    assert!(!of_its_own(&megatron));
}
