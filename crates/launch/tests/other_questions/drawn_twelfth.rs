//! Misreadings found in the twelfth draw of public files.

use super::{said, script, stopped, value};
use shardscope_plan::Field;

/// genggui001/Megatron-DeepSpeed-Llama `finetune_llama_7b_en.sh`: `pretrain_llama.py` builds `LlamaModelPipe` (RMSNorm,
/// gated SiLU, rotary positions, its own output layer), which no option mentions. It was read as GPT, with 5.4 billion
/// parameters instead of 6.7.
#[test]
fn a_program_that_is_named_after_a_family_builds_its_blocks_itself() {
    let of = |program: &str, more: &str| {
        script(&format!(
            "python -m torch.distributed.run --nproc_per_node 8 {program} --tensor-model-parallel-size 2 --num-layers 32 \
             --hidden-size 4096 --ffn-hidden-size 11008 --num-attention-heads 32 --seq-length 2048 --max-position-embeddings 2048 \
             --micro-batch-size 1 --global-batch-size 128 --fp16 --checkpoint-activations --pad-vocab-size-to 32128 {more}"
        ))
    };
    for program in ["pretrain_llama.py", "finetune_llama.py", "pretrain_llama31.py", "a/pretrain_qwen.py"] {
        stopped(&of(program, ""), &["program"]);
    }
    let gpt = of("pretrain_gpt.py", "");
    assert!(gpt.plan.is_some(), "{:?}", gpt.diagnostics);
    // If options state the blocks, these are used (Pai-Megatron-Patch's `pretrain_megatron_llama.py`).
    let stated = of("pretrain_llama.py", "--swiglu --normalization RMSNorm --use-rotary-position-embeddings");
    assert!(stated.plan.is_some(), "{:?}", stated.diagnostics);
}

const JANUARY: &str = "python -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=Qwen/Qwen2-7B-Instruct \
    data.train_batch_size=64 data.max_prompt_length=512 data.max_response_length=1024 actor_rollout_ref.actor.ppo_mini_batch_size=64 \
    actor_rollout_ref.model.use_remove_padding=True actor_rollout_ref.model.enable_gradient_checkpointing=True \
    actor_rollout_ref.rollout.name=vllm trainer.n_gpus_per_node=8 trainer.nnodes=1";

/// PsychFound `tinyzero/scripts/train_tiny_zero_grpo.sh`: verl of January 5 to 27, 2025, TinyZero, Logic-RL and
/// Search-R1 use `ppo_micro_batch_size // ranks * rollout.n` (`verl/workers/fsdp_workers.py`), later verl omits the
/// factor (#136). Fewer sequences than ranks leave none.
#[test]
fn a_micro_batch_over_all_ranks_is_multiplied_by_rollouts_in_early_verl() {
    let of = |more: &str| script(&format!("{JANUARY} {more}"));
    let asked = |more: &str| {
        let open = of(more);
        assert!(open.plan.is_none(), "{more}");
        let proposals: Vec<_> = open
            .questions
            .into_iter()
            .map(|question| (question.name().to_owned(), question.proposal))
            .collect();
        assert_eq!(proposals.len(), 1, "{more}: {proposals:?}");
        proposals[0].clone()
    };
    let name = Field::MicroBatchSize.name().to_owned();
    let micro = "actor_rollout_ref.actor.ppo_micro_batch_size";
    let five = "actor_rollout_ref.rollout.n=5";
    assert_eq!(asked(&format!("{micro}=16 {five}")), (name.clone(), Some("10".to_owned())));
    assert_eq!(asked(&format!("{micro}=4 {five}")), (name.clone(), Some("1".to_owned())));
    assert_eq!(asked(&format!("{micro}=4")), (name, Some("1".to_owned())));
    let shown = |more: &str| value(&of(more), Field::MicroBatchSize);
    assert_eq!(shown(&format!("{micro}=16")), "2");
    assert_eq!(shown(&format!("{micro}=16 {five} algorithm.use_kl_in_reward=False")), "2");
    assert_eq!(shown(&format!("{micro}=16 {five} trainer.val_before_train=False")), "2");
    assert_eq!(shown(&format!("{micro}_per_gpu=4 {five}")), "4");
    // With a key added to the configuration, it may be any release.
    assert_eq!(asked(&format!("{micro}=16 {five} +trainer.val_before_train=False")).1, Some("10".to_owned()));
}

/// Kernel-Coder `scripts/rl/run_verl.sh`: `max_model_len=8192` with prompts of 8,192 tokens and responses of 16,384,
/// which no response can reach (`vllm_async_server.py:generate`).
#[test]
fn no_sequence_is_longer_than_what_the_rollout_engine_takes() {
    let of = |more: &str| {
        let read =
            script(&format!("{JANUARY} actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 {more}"));
        assert!(read.plan.is_some(), "{:?}", read.diagnostics);
        [Field::SeqLength, Field::RolloutLength].map(|field| value(&read, field))
    };
    assert_eq!(of(""), ["1536", "1536"]);
    assert_eq!(of("actor_rollout_ref.rollout.max_model_len=1024"), ["1024", "1024"]);
    assert_eq!(of("actor_rollout_ref.rollout.max_model_len=4096"), ["1536", "1536"]);
    // Padded sequences are as long as prompt and response together.
    let padded =
        "actor_rollout_ref.model.use_remove_padding=False actor_rollout_ref.rollout.max_model_len=1024";
    assert_eq!(of(padded), ["1536", "1536"]);
}

/// Vako `axolotl.yaml` states neither bf16 nor fp16: `bf16` of axolotl is "auto" (`utils/schemas/config.py`), which
/// means bf16 if the accelerator supports it (`utils/config:resolve_dtype`). It was read as without autocast.
#[test]
fn axolotls_precision_is_auto_where_nothing_is_said() {
    let of = |more: &str| {
        let text = format!(
            "base_model: Qwen/Qwen2.5-1.5B\nsequence_len: 2048\nmicro_batch_size: 1\ngradient_accumulation_steps: 8\nadapter: qlora\n\
             load_in_4bit: true\nlora_r: 16\nlora_target_linear: true\ngradient_checkpointing: true\noptimizer: adamw_torch\n{more}"
        );
        let read = said("a.yml", &text, &[("world_size", "1")]);
        assert!(read.plan.is_some(), "{:?}", read.diagnostics);
        value(&read, Field::Autocast)
    };
    assert_eq!(of(""), "bf16");
    assert_eq!(of("bf16: auto\n"), "bf16");
    assert_eq!(of("fp16: true\n"), "fp16");
    assert_eq!(of("bf16: false\n"), "none");
    assert_eq!(of("bf16:\n"), "none");
}

/// Firefly `train_args/ds_z3_config.json`: the Trainer fills in "auto" values and adds no section
/// (`transformers/integrations/deepspeed.py:trainer_config_process`). A file with only `fp16` was read as bf16.
#[test]
fn a_deepspeed_file_without_bf16_runs_in_fp16() {
    let of = |sections: &str| {
        let text = format!(
            "{{{sections} \"zero_optimization\": {{\"stage\": 3}}, \"train_micro_batch_size_per_gpu\": \"auto\", \"train_batch_size\": \"auto\"}}"
        );
        let given = [("model", "Qwen/Qwen2.5-7B"), ("seq_length", "2048"), ("world_size", "8")];
        let read = said("ds.json", &text, &given);
        assert!(read.plan.is_some(), "{:?}", read.diagnostics);
        value(&read, Field::Autocast)
    };
    assert_eq!(of("\"fp16\": {\"enabled\": \"auto\"},"), "fp16");
    assert_eq!(of("\"bf16\": {\"enabled\": \"auto\"},"), "bf16");
    assert_eq!(of("\"fp16\": {\"enabled\": \"auto\"}, \"bf16\": {\"enabled\": \"auto\"},"), "bf16");
}

/// lmm-r1 `examples/scripts/train_iterative_dpo_llama.sh`: without `--flash_attn` the attention of OpenRLHF was eager
/// until August 15, 2025 (`openrlhf/models/actor.py` before c250c21a), and is flash attention since.
#[test]
fn openrlhfs_attention_depends_on_its_release_where_nothing_is_said() {
    let of = |more: &str| {
        script(&format!(
            "deepspeed --module openrlhf.cli.train_dpo --pretrain Qwen/Qwen2.5-7B --train_batch_size 128 --micro_train_batch_size 2 \
             --max_len 4096 --zero_stage 3 --bf16 --gradient_checkpointing --learning_rate 5e-7 {more}"
        ))
    };
    let asked = |more: &str| {
        of(more).questions.into_iter().map(|question| question.name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(asked(""), ["attn_implementation", "world_size"]);
    for more in ["--flash_attn", "--packing_samples", "--attn_implementation flash_attention_2"] {
        assert_eq!(asked(more), ["world_size"], "{more}");
    }
}

/// Scripts that wait until `${#free[@]}` accelerators are free: the number of fields into which an unknown output
/// splits is unknown too, and the branch that trains was treated as unreachable.
#[test]
fn how_many_elements_an_unknown_list_has_is_unknown() {
    const RUN: &str = "torchrun --standalone --nnodes=1 --nproc_per_node=2 -m verl.trainer.fsdp_sft_trainer data.train_batch_size=128 \
        data.max_length=6144 data.micro_batch_size_per_gpu=2 model.partial_pretrain=Qwen/Qwen3-0.6B";
    let listed = |list: &str| script(&format!("{list}\nif [ \"${{#free[@]}}\" -ge 2 ]; then\n{RUN}\nfi\n"));
    let lists = [
        "free=($(nvidia-smi -L))",
        "free=($FREE)",
        "free=()\nif [ -n \"$(nvidia-smi -L)\" ]; then free+=(0); fi",
        "mapfile -t free < <(nvidia-smi -L)",
    ];
    for list in lists {
        let read = listed(list);
        assert!(read.plan.is_some(), "{list}: {:?}", read.diagnostics);
    }
    // A quoted value is always one element, and two known elements are two.
    assert!(listed("free=(\"$FREE\")").plan.is_none());
    assert!(listed("free=(a b)").plan.is_some());
    assert!(listed("free=(a)").plan.is_none());
}

/// NeMo-RL's `grpo-gemma3-1b-it-1n8g-fsdp2tp1.yaml`: Gemma 3 has the windows of litgpt's table (`litgpt/config.py`,
/// `sliding_window_size`); the catalog rows had left them to the library, whose default is 4,096.
#[test]
fn gemma_threes_windows_are_its_own() {
    for (name, window) in [("1b-it", "512"), ("4b-it", "1024"), ("12b-it", "1024"), ("27b-it", "1024")] {
        let read = script(&format!(
            "torchrun --nproc_per_node 8 train.py --model_name_or_path google/gemma-3-{name} --per_device_train_batch_size 1 \
             --gradient_accumulation_steps 1 --max_length 2048 --bf16"
        ));
        assert_eq!(value(&read, Field::AttentionWindow), window, "{name}");
    }
}

/// ChatLLM `train_single.sh`: FastChat's `train_mem.py` patches in flash attention, LLaVA's requests it from
/// transformers. It was read as SDPA.
#[test]
fn fastchats_train_mem_turns_flash_attention_on() {
    let of = |program: &str| {
        let read = script(&format!(
            "torchrun --nproc_per_node=1 fastchat/train/{program} --model_name_or_path meta-llama/Llama-2-7b-hf --bf16 True \
             --per_device_train_batch_size 1 --gradient_accumulation_steps 1 --model_max_length 2048 --gradient_checkpointing True \
             --lazy_preprocess True --fsdp \"full_shard auto_wrap\" --fsdp_transformer_layer_cls_to_wrap LlamaDecoderLayer"
        ));
        value(&read, Field::AttnImplementation)
    };
    assert_eq!([of("train_mem.py"), of("train.py")], ["flash_attention_2", "sdpa"]);
}
