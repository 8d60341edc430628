//! When FSDP reduces gradients, and gathers weights, under trainers that accumulate over micro-batches; and balancing losses that
//! trainers take of models with experts by themselves.

use super::{said, script, value};
use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::{Field, RouterLoss};
use shardscope_source::Source;

const AXOLOTL: &str = "base_model: meta-llama/Llama-3.1-8B\nsequence_len: 2048\nmicro_batch_size: 2\nbf16: true\n\
    gradient_accumulation_steps: 4\n";

fn axolotl(more: &str) -> Resolution {
    said("a.yaml", &format!("{AXOLOTL}{more}"), &[("world_size", "8")])
}

fn trainer(more: &str) -> Resolution {
    script(&format!(
        "torchrun --nproc_per_node 8 train.py --model_name_or_path meta-llama/Llama-3.1-8B --bf16 True \
         --per_device_train_batch_size 1 --gradient_accumulation_steps 8 --model_max_length 2048 {more}"
    ))
}

/// Whether whole gradients wait, and whether each micro-batch gathers its weights.
fn of(resolution: Resolution) -> [bool; 2] {
    let plan = resolution.plan.unwrap_or_else(|| panic!("{:?}", resolution.diagnostics));
    [plan.recipe().defers_reduction(), plan.gathers_each_micro_batch()]
}

/// `accelerate/accelerator.py:no_sync`; FSDP1's stage 2 then keeps what it gathered
/// (`_runtime_utils.py:_should_free_in_backward`), FSDP2's does not (`_fsdp_param_group.py:post_backward`).
#[test]
fn the_trainer_holds_whole_gradients_between_micro_batches() {
    let layers = "--fsdp_transformer_layer_cls_to_wrap LlamaDecoderLayer";
    assert_eq!(of(trainer(&format!("--fsdp 'full_shard auto_wrap' {layers}"))), [true, true]);
    assert_eq!(of(trainer(&format!("--fsdp 'shard_grad_op auto_wrap' {layers}"))), [true, false]);
    let second = |reshards: &str| {
        axolotl(&format!("fsdp_version: 2\nfsdp_config:\n  reshard_after_forward: {reshards}\n"))
    };
    assert_eq!(of(second("true")), [true, true]);
    assert_eq!(of(second("false")), [true, true]);
    assert!(!of(trainer(""))[0]);
}

#[test]
fn sync_each_batch_reduces_them_with_every_micro_batch() {
    let synced = "accelerator_config:\n  gradient_accumulation_kwargs:\n    sync_each_batch: true\n";
    let sharded = "fsdp:\n  - shard_grad_op\n  - auto_wrap\nfsdp_config:\n  fsdp_transformer_layer_cls_to_wrap: LlamaDecoderLayer\n";
    assert_eq!(of(axolotl(sharded)), [true, false]);
    assert_eq!(of(axolotl(&format!("{sharded}{synced}"))), [false, true]);
    // Without FSDP it is still named.
    let replicas = axolotl(synced);
    assert!(
        replicas.not_modelled.iter().any(|item| item.name.ends_with("sync_each_batch")),
        "{:?}",
        replicas.not_modelled
    );
}

#[test]
fn accelerates_file_says_so_as_well() {
    let file = "distributed_type: FSDP\nmixed_precision: bf16\nnum_machines: 1\nnum_processes: 8\nfsdp_config:\n  fsdp_version: 1\n  \
        fsdp_sharding_strategy: SHARD_GRAD_OP\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n";
    let command = "accelerate launch --config_file fsdp.yaml train.py --model_name_or_path meta-llama/Llama-3.1-8B --bf16 True \
        --per_device_train_batch_size 1 --gradient_accumulation_steps 8 --model_max_length 2048";
    let source = Source::from_files([("fsdp.yaml", file), ("run.sh", command)]);
    let both = read(&Request { source: &source, environment: &Environment::default(), overrides: &[] });
    assert_eq!(value(&both, Field::DeferReduction), "true");
    assert_eq!(of(both), [true, false]);
    // DeepSpeed reduces with every backward pass, whatever a context says.
    let zero = trainer("--deepspeed zero3.json");
    assert_eq!(value(&zero, Field::DeferReduction), "");
}

#[test]
fn loops_of_their_own_reduce_with_every_micro_batch() {
    let cookbook = script(
        "torchrun --nnodes 1 --nproc_per_node 8 finetuning.py --enable_fsdp --model_name meta-llama/Llama-3.1-8B \
         --batch_size_training 1 --gradient_accumulation_steps 4 --context_length 2048 --fsdp_config.pure_bf16",
    );
    assert_eq!(value(&cookbook, Field::DeferReduction), "");
}

fn balances(resolution: &Resolution) -> Option<RouterLoss> {
    let plan = resolution.plan.as_ref().unwrap_or_else(|| panic!("{:?}", resolution.diagnostics));
    plan.recipe().moe.router_loss
}

#[test]
fn balancing_losses_that_trainers_take_by_themselves_are_counted() {
    let trl = |more: &str| {
        script(&format!(
            "accelerate launch --num_processes 8 trl/scripts/sft.py --model_name_or_path Qwen/Qwen3-30B-A3B --max_length 2048 \
             --per_device_train_batch_size 1 --gradient_accumulation_steps 4 {more}"
        ))
    };
    assert_eq!(balances(&trl("")), Some(RouterLoss::Layers));
    assert_eq!(balances(&trl("--router_aux_loss_coef 0.0")), None);
    // An argument of an older release.
    assert_eq!(balances(&trl("--warmup_ratio 0.1")), None);
    let openrlhf = script(
        "deepspeed --module openrlhf.cli.train_sft --max_len 2048 --train_batch_size 64 --micro_train_batch_size 1 \
         --pretrain Qwen/Qwen3-30B-A3B --zero_stage 3 --bf16",
    );
    assert_eq!(value(&openrlhf, Field::RouterLoss), "joined");
    assert_eq!(balances(&trainer("")), None);
    // A configuration may ask for it by itself.
    let config = |on: &str| {
        let file = format!(
            "{{\"model_type\": \"mixtral\", \"hidden_size\": 4096, \"intermediate_size\": 14336, \"num_hidden_layers\": 32, \
             \"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"num_local_experts\": 8, \"num_experts_per_tok\": 2, \
             \"vocab_size\": 32000, \"output_router_logits\": {on}}}"
        );
        value(&said("config.json", &file, &[]), Field::RouterLoss)
    };
    assert_eq!([config("true"), config("false")], ["layers", ""]);
}
