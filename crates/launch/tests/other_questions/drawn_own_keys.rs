//! Keys of programs derived from a framework that change nothing, each verified in that program's source, and values at
//! which they would.

use super::{MODEL, said, script, stopped};
use shardscope_launch::Resolution;

const VERL: &str = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B \
    data.max_prompt_length=512 data.max_response_length=1024 actor_rollout_ref.actor.ppo_mini_batch_size=64 \
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 actor_rollout_ref.model.use_remove_padding=True \
    actor_rollout_ref.rollout.name=vllm trainer.n_gpus_per_node=8 trainer.nnodes=1";

/// The plan with additional words is the same as without them.
#[track_caller]
fn same(of: impl Fn(&str) -> Resolution, more: &[&str]) {
    let plain = of("").plan.unwrap_or_else(|| panic!("no plan without the key"));
    for more in more {
        let read = of(more);
        let plan =
            read.plan.unwrap_or_else(|| panic!("{more}: {:?} {:?}", read.not_modelled, read.diagnostics));
        assert_eq!(plan.recipe().rollout, plain.recipe().rollout, "{more}");
        assert_eq!(plan.recipe().tuning, plain.recipe().tuning, "{more}");
        assert_eq!(plan.recipe().overlap, plain.recipe().overlap, "{more}");
        assert_eq!(plan.model(), plain.model(), "{more}");
        assert_eq!(plan.layout(), plain.layout(), "{more}");
    }
}

/// Functions of one number per token or sample (`core_algos.py`, `ray_trainer.py` of each program).
#[test]
fn how_programs_of_verl_weigh_tokens_holds_nothing() {
    let run = |more: &str| script(&format!("{VERL} {more}"));
    same(
        run,
        &[
            "actor_rollout_ref.actor.k_percent=0.2 actor_rollout_ref.actor.ppo_kl_coef=1",
            "algorithm.lead_alpha=1.0 algorithm.lead_beta=0.95 algorithm.lead_lstar_mode=max_sym",
            "algorithm.use_grpopp=True algorithm.grpopp_config.alpha=0.75 actor_rollout_ref.actor.use_grpopp=True",
            "cdas.enable=true cdas.warmup_steps=1 cdas.extra_samples=0",
            "actor_rollout_ref.actor.add_loaction_bonus=True actor_rollout_ref.actor.ppl_delta=0.1",
            "trainer.rejection_sample=True trainer.rejection_sample_multiplier=1",
        ],
    );
    // Skywork-OR1 takes this multiple of the prompts (`ray_trainer.py:train_batch_size`).
    let multiplied = "trainer.rejection_sample=True trainer.rejection_sample_multiplier=2";
    stopped(&run(multiplied), &["trainer.rejection_sample_multiplier"]);
    // SimKO's loss takes log-probabilities of several tokens at each position.
    stopped(&run("actor_rollout_ref.actor.simko=True"), &["actor_rollout_ref.actor.simko"]);
}

/// `megatron/core/pipeline_parallel/schedules.py`: without it, messages between interleaved stages are waited for
/// during warm-up and flush; the schedule always hides sends behind passes.
#[test]
fn sends_of_warm_up_and_flush_are_behind_passes() {
    let run = |more: &str| {
        script(&format!(
            "torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py {MODEL} --pipeline-model-parallel-size 4 \
             --num-layers-per-virtual-pipeline-stage 4 {more}\n"
        ))
    };
    same(run, &["--overlap-p2p-communication-warmup-flush"]);
    let plan = run("--overlap-p2p-communication-warmup-flush").plan.expect("a plan");
    assert!(plan.recipe().overlap.pipeline);
}

/// `megatron/mpu/mappings.py:_reduce` returns before it casts if a group has one rank (`configs/125M-dmoe.yml`).
#[test]
fn one_tensor_rank_sends_nothing_in_fp32() {
    let run = |ranks: u64| {
        let text = format!(
            "{{\"num_layers\": 12, \"hidden_size\": 768, \"num_attention_heads\": 12, \"seq_length\": 2048, \
             \"max_position_embeddings\": 2048, \"pos_emb\": \"rotary\", \"norm\": \"layernorm\", \
             \"model_parallel_size\": {ranks}, \"pipe_parallel_size\": 1, \"train_micro_batch_size_per_gpu\": 4, \
             \"precision\": \"bfloat16\", \"fp32_allreduce\": true, \"optimizer\": {{\"type\": \"Adam\"}}}}"
        );
        said("neox.yml", &text, &[("vocab_size", "50257"), ("world_size", "8")])
    };
    let one = run(1);
    assert!(one.plan.is_some(), "{:?} {:?}", one.not_modelled, one.diagnostics);
    stopped(&run(2), &["fp32_allreduce"]);
}

/// QualityDPO, `scripts/dpo_trainer.py:dpo_loss`: computed from the same sums of log-probabilities as DPO's own.
#[test]
fn losses_over_sums_of_log_probabilities_keep_what_dpo_does() {
    let run = |loss: &str| {
        let loss = if loss.is_empty() { "sigmoid" } else { loss };
        let text = format!(
            "model_name_or_path: Qwen/Qwen2.5-7B\ntorch_dtype: bfloat16\nattn_implementation: flash_attention_2\nbf16: true\n\
             beta: 0.01\nloss_type: {loss}\nrun_name: a-dpo\nlearning_rate: 2.0e-7\nper_device_train_batch_size: 2\n\
             gradient_accumulation_steps: 4\ngradient_checkpointing: true\nmax_length: 1024\nmax_prompt_length: 512\n"
        );
        said("dpo.yaml", &text, &[("zero_stage", "0"), ("world_size", "8")])
    };
    same(run, &["noisy-tolerant-4-6", "noisy-tolerant-4-6-threshold2", "noisy-tolerant-4-6-agrilla"]);
    stopped(&run("noisy-tolerant-9"), &["loss_type"]);
}

/// AMoPO's fork of LLaMA-Factory and ToolBench's of FastChat.
#[test]
fn terms_of_a_pairs_loss_and_condensed_positions_hold_nothing() {
    let pairs = |more: &str| {
        let text = format!(
            "model_name_or_path: Qwen/Qwen2.5-0.5B-Instruct\nstage: dpo\ndo_train: true\nfinetuning_type: lora\nlora_target: all\n\
             pref_beta: 0.1\npref_loss: sigmoid\ncutoff_len: 1024\nper_device_train_batch_size: 1\n\
             gradient_accumulation_steps: 1\n{more}\n"
        );
        said("dpo.yaml", &text, &[("world_size", "8")])
    };
    same(pairs, &["is_caldpo: true"]);
    let condensed = |more: &str| {
        script(&format!(
            "torchrun --nproc_per_node=2 toolbench/train/train_mem.py --model_name_or_path huggyllama/llama-7b --bf16 True \
             --per_device_train_batch_size 2 --gradient_accumulation_steps 8 --fsdp 'full_shard auto_wrap' \
             --fsdp_transformer_layer_cls_to_wrap LlamaDecoderLayer --model_max_length 8192 --gradient_checkpointing True {more}"
        ))
    };
    same(condensed, &["--source_model_max_length 2048"]);
}

/// Options of programs around transformers' Trainer, of TRL, LLaMA-Factory and verl whose sources only use them for
/// data, samples or names, and others that stop by their effect. `bnb_4bit_compute_type` is not a keyword of
/// `BitsAndBytesConfig`, which ignores it.
#[test]
fn options_of_public_programs_are_recognised_by_what_they_do() {
    let trainer = |program: &str, more: &str| {
        script(&format!(
            "torchrun --nproc_per_node 8 {program} --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 2 \
             --gradient_accumulation_steps 4 --model_max_length 2048 --bf16 True {more}\n"
        ))
    };
    let tuned = |more: &str| trainer("train.py", more);
    same(
        tuned,
        &[
            "--private True --tag lomo",
            "--apply_instruct_masks --token_scaled_loss --tokenized_mds_train a",
            "--batch_method naive --pack_loss True",
            "--subset all",
        ],
    );
    for (more, by) in [
        ("--rrhf_weight 1", "rrhf_weight"),
        // Both programs decide about adapters or formats themselves (`build_model`, `reward_training.py`).
        ("--init_weights True", "init_weights"),
        ("--contextualize plain", "contextualize"),
        ("--vision_tower_aux a/b --image_size_aux 768", "vision_tower_aux"),
        ("--config_overrides_json x.json", "config_overrides_json"),
        ("--per_device_max_tokens 65536", "per_device_max_tokens"),
        ("--batch_method pack --pack_loss True", "batch_method"),
        ("--fix_llm True", "fix_llm"),
        (
            "--conv_style internvl2_5 --force_image_size 448 --down_sample_ratio 0.5 --max_dynamic_patch 6 --use_thumbnail True \
             --ps_version v2",
            "vision_tower",
        ),
        ("--medusa_num_heads 5 --medusa_num_layers 1 --medusa_scheduler constant", "medusa_num_heads"),
    ] {
        let read = tuned(more);
        assert!(read.not_modelled.iter().any(|item| item.name == by), "{more}: {:?}", read.not_modelled);
        assert!(read.not_modelled.iter().all(|item| !item.message.contains("unknown option")), "{more}");
    }
    let kept = |word: &str| tuned(&format!("--{word}")).plan.map(|plan| plan.recipe().recompute.clone());
    assert_eq!(kept("grad_checkpoint True"), kept("gradient_checkpointing True"));
    assert_ne!(kept("grad_checkpoint True"), kept("grad_checkpoint False"));
    let recipe = |more: &str| {
        let text = format!(
            "model_name_or_path: Qwen/Qwen2.5-7B\nper_device_train_batch_size: 2\nlearning_rate: 1.0e-5\nmax_length: 2048\n\
             bf16: true\n{more}"
        );
        said("sft.yaml", &text, &[("zero_stage", "0"), ("world_size", "8")])
    };
    same(recipe, &["w_bits: 16\n", "choose_type: max_min\n", "private: true\n"]);
    stopped(&recipe("w_bits: 4\nw_clip_ratio: 0.95\n"), &["w_bits"]);
    stopped(&recipe("sam_device: cuda:7\nsam_checkpoint: sam2.pt\n"), &["sam_checkpoint"]);
    let factory = |more: &str| {
        said(
            "sft.yaml",
            &format!(
                "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\nfinetuning_type: full\ncutoff_len: 2048\n\
                 per_device_train_batch_size: 1\ngradient_accumulation_steps: 4\nbf16: true\n{more}"
            ),
            &[("world_size", "8")],
        )
    };
    same(factory, &["attn: fa2\n"]);
    stopped(&factory("attn: eager\n"), &["attn"]);
    // A launcher divides it if no micro-batch is stated.
    same(factory, &["global_batch_size: 32\n"]);
    let divided = "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\nfinetuning_type: full\ncutoff_len: 2048\nbf16: true\n\
                   global_batch_size: 64\n";
    stopped(&said("sft.yaml", divided, &[("world_size", "8")]), &["global_batch_size"]);
    let run = |more: &str| script(&format!("{VERL} {more}"));
    same(
        run,
        &[
            "+actor_rollout_ref.model.torch_dtype=bfloat16 +actor_rollout_ref.model.attn_implementation=flash_attention_2",
            "actor_rollout_ref.rollout.num_llm_calls_available=1",
            "actor_rollout_ref.actor.state_masking=True retriever.topk=3",
        ],
    );
    stopped(&run("actor_rollout_ref.rollout.led.d=8"), &["actor_rollout_ref.rollout.led.d"]);
    stopped(&run("hinter.num_hints=4"), &["hinter.num_hints"]);
    stopped(&run("tool.env=search"), &["tool.env"]);
}

/// Forks of Megatron-LM, each with the option that enables the difference in its sources (`megatron/arguments.py`).
#[test]
fn forks_of_megatron_stop_by_what_they_change() {
    let run = |more: &str| {
        script(&format!("torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py {MODEL} {more}\n"))
    };
    for (more, by) in [
        ("--rope-alpha 2", "--rope-alpha"),
        (
            "--use-lf-gate --lf-conv2d-group 1 --lf-conv2d-num-pad 1 --norm-dtype RMSNorm --flash-attn-drop 0.1",
            "--use-lf-gate",
        ),
        ("--gumbel-scale-range 1e2 5e2 --N 2 --M 4 --weight-reg 1e-5 --mask-only", "--mask-only"),
        ("--hetero-mode pp --use-hetnet --hetero-pipeline-stages 1 16 16", "--hetero-mode"),
        ("--use-dpp --node-ips 192.168.0.1 --workload 4 --multi-node", "--use-dpp"),
        (
            "--model-running-mode difflm-noshift --base-model vanilla --mask-token 50277",
            "--model-running-mode",
        ),
        ("--t5-swiglu", "--t5-swiglu"),
        ("--no-cuda", "--no-cuda"),
    ] {
        let read = run(more);
        assert!(read.not_modelled.iter().any(|item| item.name == by), "{more}: {:?}", read.not_modelled);
        assert!(
            read.not_modelled.iter().all(|item| !item.message.contains("unknown option")),
            "{more}: {:?}",
            read.not_modelled
        );
    }
}

/// A fragment of custom settings with TRL's rollouts and no model was read as Megatron's options (mist's recipes). The
/// model and what is trained are asked for.
#[test]
fn rollouts_of_trl_without_a_model_are_no_options_of_megatron() {
    let text = "bf16: true\nper_device_train_batch_size: 8\ngradient_accumulation_steps: 8\nnum_generations: 8\nmax_prompt_length: 256\n\
                max_completion_length: 1024\nbeta: 0.0\ngradient_checkpointing: true\nseed: 42\n";
    let read = said("grpo.yaml", text, &[]);
    let asked: Vec<&str> = read.questions.iter().map(|question| question.name()).collect();
    assert_eq!(asked, ["train_type", "zero_stage", "model", "world_size"]);
    assert!(read.not_modelled.is_empty(), "{:?}", read.not_modelled);
    let answers =
        [("train_type", "full"), ("model", "Qwen/Qwen2.5-1.5B"), ("zero_stage", "0"), ("world_size", "8")];
    let plan = said("grpo.yaml", text, &answers).plan.expect("a plan");
    let rollout = plan.recipe().rollout.as_ref().expect("rollouts");
    assert_eq!((rollout.length, plan.layout().data), (1280, 8));
}
