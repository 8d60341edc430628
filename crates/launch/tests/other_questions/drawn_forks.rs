//! Misreadings found in a draw of files for pre-training or reinforcement learning: keys and flags of forks.

use super::{said, script, stopped, value};
use shardscope_launch::Asked;
use shardscope_launch::Resolution;
use shardscope_plan::Field;

const VERL: &str = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=Qwen/Qwen2.5-3B \
    data.train_batch_size=128 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 actor_rollout_ref.rollout.name=vllm \
    actor_rollout_ref.rollout.n=16 trainer.n_gpus_per_node=8 trainer.nnodes=1";

fn verl(more: &str) -> Resolution {
    script(&format!("{VERL} actor_rollout_ref.actor.ppo_mini_batch_size=64 {more}\n"))
}

/// Search-R1, OpenManus-RL, MemAgent, TTRL, PRIME and agent-lightning were estimated as verl's own loop.
#[test]
fn programs_made_of_verl_with_other_samples_stop_by_their_keys() {
    assert!(verl("").plan.is_some());
    for (name, on, off) in [
        ("actor_rollout_ref.rollout.n_agent", "5", "null"),
        ("trainer.do_search", "True", "False"),
        ("env.env_name", "Webshop", "null"),
        ("env.max_steps", "15", "1"),
        ("recurrent.enable", "memory", "null"),
        ("actor_rollout_ref.rollout.do_vote", "True", "False"),
        ("reward_model.model.update", "after", "none"),
        ("agentlightning.trace_aggregator.level", "transition", "null"),
    ] {
        stopped(&verl(&format!("{name}={on}")), &[name]);
        assert!(verl(&format!("{name}={off}")).plan.is_some(), "{name}={off}");
    }
}

/// Search-R1's samples: the start of a prompt, and responses with what was found between them (a script of its
/// repository, `scripts/nq_hotpotqa/v0.2/train_grpo.sh`, with other numbers of turns).
#[test]
fn samples_of_search_r1_are_known() {
    let of = |turns: u64| {
        let text = format!(
            "python3 -m verl.trainer.main_ppo data.train_batch_size=512 data.max_prompt_length=4096 data.max_response_length=500 \
             data.max_start_length=2048 data.max_obs_length=500 algorithm.adv_estimator=grpo \
             actor_rollout_ref.model.path=Qwen/Qwen2.5-3B actor_rollout_ref.model.enable_gradient_checkpointing=true \
             actor_rollout_ref.model.use_remove_padding=True actor_rollout_ref.actor.ppo_mini_batch_size=256 \
             actor_rollout_ref.actor.ppo_micro_batch_size=64 actor_rollout_ref.rollout.log_prob_micro_batch_size=128 \
             actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.tensor_model_parallel_size=1 \
             actor_rollout_ref.ref.log_prob_micro_batch_size=128 actor_rollout_ref.rollout.n_agent=5 \
             actor_rollout_ref.actor.state_masking=true trainer.n_gpus_per_node=8 trainer.nnodes=1 max_turns={turns} \
             retriever.url=http://127.0.0.1:8000/retrieve retriever.topk=3\n"
        );
        let read = script(&text);
        assert!(read.plan.is_some(), "{:?}", read.diagnostics);
        [
            Field::SeqLength,
            Field::RolloutsPerPrompt,
            Field::GlobalBatchSize,
            Field::MicroBatchSize,
            Field::EvaluationBatchSize,
            Field::LogProbTokens,
        ]
        .map(|field| value(&read, field))
    };
    // The context of a turn, 4,096 and 500 tokens, is longer than a sample of two turns.
    assert_eq!(of(2), ["4548", "5", "256", "8", "", "73536"]);
    // Of four turns no more than 4,096 tokens are kept.
    assert_eq!(of(4), ["6144", "5", "256", "8", "16", ""]);
}

/// ToRL's mini-batch of 1,024 prompts is limited to the 128 that exist.
#[test]
fn a_mini_batch_is_no_larger_than_what_is_rolled_out() {
    let of = |prompts: &str| {
        let text = format!("{VERL} actor_rollout_ref.actor.ppo_mini_batch_size={prompts}\n");
        value(&script(&text), Field::GlobalBatchSize)
    };
    assert_eq!(of("64"), "1024");
    assert_eq!(of("128"), "2048");
    assert_eq!(of("1024"), "2048");
    // The default of 256 is limited as well.
    assert_eq!(value(&script(&format!("{VERL}\n")), Field::GlobalBatchSize), "2048");
}

const SHAPE: &str = "--num-layers 22 --hidden-size 2176 --num-attention-heads 16 --seq-length 4096 --micro-batch-size 1 \
    --global-batch-size 64 --bf16 --swiglu";

fn proposal(resolution: &Resolution, field: Field) -> Option<&str> {
    resolution.questions.iter().find(|question| question.asks == Asked::Setting(field))?.proposal.as_deref()
}

/// llm-jp's tokenizers of 100k and more tokens, read by the class for any SentencePiece file, were taken for Llama 2's.
#[test]
fn a_class_that_reads_a_file_has_no_vocabulary_of_its_own() {
    let of = |tokenizer: &str| {
        script(&format!("torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py {SHAPE} {tokenizer}\n"))
    };
    for file in ["--tokenizer-model src/v4_alpha_1.0.model", "--tokenizer-model $DIR/llm-jp.model"] {
        let open = of(&format!("--tokenizer-type Llama2Tokenizer {file}"));
        assert!(open.plan.is_none());
        assert_eq!(value(&open, Field::VocabSize), "", "{file}");
        assert_eq!(proposal(&open, Field::VocabSize), Some("32000"), "{file}");
    }
    let named = of("--tokenizer-type Llama2Tokenizer --tokenizer-model /data/llama2/tokenizer.model");
    assert_eq!(value(&named, Field::VocabSize), "32000");
    // An unknown type or file is no reason to assume GPT-2's.
    for other in
        ["--tokenizer-type HuggingFaceTokenizer --tokenizer-model $DIR", "--vocab-file /data/own.model"]
    {
        let open = of(other);
        assert!(open.plan.is_none(), "{other}");
        assert_eq!(proposal(&open, Field::VocabSize), Some("50257"), "{other}");
    }
    assert_eq!(value(&of("--tokenizer-type GPT2BPETokenizer"), Field::VocabSize), "50257");
    assert!(of("").plan.is_some());
}

/// The script runs once per rank, started by mpirun; it was read as one process on one GPU.
#[test]
fn ranks_of_mpirun_are_not_one_process() {
    let of = |more: &str| script(&format!("python pretrain_gpt.py {SHAPE} --vocab-size 99584 {more}\n"));
    assert_eq!(value(&of(""), Field::WorldSize), "1");
    let open = of("--use-mpi --use-z-loss");
    assert!(open.plan.is_none());
    assert!(open.questions.iter().any(|question| question.asks == Asked::Setting(Field::WorldSize)));
    assert!(value(&open, Field::NotRead).is_empty(), "both flags are known");
}

/// Megatron-DeepSpeed's experts are in every second layer and drop tokens.
#[test]
fn deepspeeds_experts_stop() {
    let of = |more: &str| {
        script(&format!(
            "deepspeed --num_nodes 1 --num_gpus 8 pretrain_gpt.py {SHAPE} --vocab-size 50257 --deepspeed --zero-stage 1 {more}\n"
        ))
    };
    assert!(of("").plan.is_some());
    assert!(of("--num-experts 1").plan.is_some());
    stopped(&of("--num-experts 64 --expert-interval 1 --moe-train-capacity-factor 1.0"), &["--num-experts"]);
}

/// GPT-NeoX's experts of DeepSpeed.
#[test]
fn neox_experts_that_drop_stop() {
    let of = |more: &str| {
        let text = format!(
            "pipe_parallel_size: 1\nmodel_parallel_size: 1\nnum_layers: 12\nhidden_size: 768\nnum_attention_heads: 12\n\
             seq_length: 2048\nmax_position_embeddings: 2048\ntrain_micro_batch_size_per_gpu: 4\n{more}"
        );
        said("125M.yml", &text, &[("world_size", "8"), ("vocab_size", "50257")])
    };
    assert!(of("").plan.is_some());
    stopped(&of("moe_num_experts: 4\nmoe_type: deepspeed\n"), &["moe_type"]);
    stopped(&of("moe_num_experts: 4\nmoe_token_dropping: true\n"), &["moe_token_dropping"]);
    assert!(of("moe_num_experts: 1\nmoe_type: deepspeed\n").plan.is_some());
}

fn nanotron(model: &str) -> Resolution {
    let text = format!(
        "parallelism:\n  dp: 8\n  tp: 1\n  pp: 1\n  tp_mode: REDUCE_SCATTER\n  recompute_granularity: SELECTIVE\ntokens:\n  \
         sequence_length: 4096\n  micro_batch_size: 1\n  batch_accumulation_per_replica: 1\noptimizer:\n  zero_stage: 0\n  \
         accumulate_grad_in_fp32: true\nmodel:\n{model}"
    );
    said("config.yaml", &text, &[("gpus_per_node", "8")])
}

const SMALL: &str =
    "hidden_size: 1024\n    num_hidden_layers: 24\n    num_attention_heads: 16\n    vocab_size: 32000";

/// XGLM and Starcoder were read with Llama's layers, and a window as full attention.
#[test]
fn models_of_nanotron_that_are_no_llama_stop() {
    let of = |more: &str| nanotron(&format!("  model_config:\n    {SMALL}\n{more}"));
    let llama = of("    is_llama_config: true\n    intermediate_size: 2816\n");
    assert!(llama.plan.is_some(), "{:?}", llama.diagnostics);
    assert_eq!(value(&llama, Field::RecomputeGranularity), "");
    stopped(
        &of("    intermediate_size: 4096\n    activation_function: gelu\n"),
        &["model.model_config.activation_function"],
    );
    let star = "    is_starcoder2_config: true\n    grouped_query: true\n    num_kv_heads: 4\n    resid_pdrop: 0.0\n";
    assert!(of(&format!("{star}    sliding_window_size: 4096\n")).plan.is_some());
    stopped(
        &of(&format!("{star}    sliding_window_size: 2048\n")),
        &["model.model_config.sliding_window_size"],
    );
    stopped(&of(&star.replace("0.0", "0.1")), &["model.model_config.resid_pdrop"]);
    // Keys of its first versions.
    stopped(
        &nanotron("  hidden_size: 2048\n  num_attention_heads: 16\n  n_layer: 24\n"),
        &["model.hidden_size"],
    );
}

/// OpenRLHF's distillation of Llama 3 70B into 8B was estimated as fine-tuning.
#[test]
fn a_teacher_of_openrlhf_stops() {
    let of = |more: &str| {
        script(&format!(
            "deepspeed --num_gpus 8 --num_nodes 1 --module openrlhf.cli.train_kd --max_len 2048 --train_batch_size 256 \
             --micro_train_batch_size 2 --pretrain meta-llama/Meta-Llama-3-8B-Instruct --zero_stage 3 --bf16 --flash_attn {more}\n"
        ))
    };
    assert!(of("").plan.is_some());
    stopped(&of("--teacher_model meta-llama/Meta-Llama-3-70B-Instruct --kd_coef 0.4"), &["teacher_model"]);
    stopped(&of("--freeze_prefix visual"), &["freeze_prefix"]);
}

/// `--yaml-cfg` of Megatron-LM: the shape under `language_model` was asked for, and bf16 read as fp32.
#[test]
fn megatrons_settings_in_groups_of_a_file_are_read() {
    let text = "language_model:\n  num_layers: 24\n  hidden_size: 1024\n  num_attention_heads: 16\n  add_bias_linear: False\n\
        model_parallel:\n  tensor_model_parallel_size: 2\n  sequence_parallel: True\n  bf16: True\nmicro_batch_size: 2\n\
        global_batch_size: 128\nseq_length: 4096\nmake_vocab_size_divisible_by: 128\n";
    let read = said("gpt_config.yaml", text, &[("world_size", "8"), ("vocab_size", "50257")]);
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    for (field, expected) in [
        (Field::NumLayers, "24"),
        (Field::TensorModelParallelSize, "2"),
        (Field::ParamsDtype, "bf16"),
        (Field::AddBiasLinear, "false"),
    ] {
        assert_eq!(value(&read, field), expected, "{}", field.name());
    }
}

/// Norms of torchtitan's first models, and flame's sums of gradients.
#[test]
fn words_of_torchtitans_kin_stop() {
    let of = |more: &str| {
        let text = format!(
            "[model]\nname = \"llama3\"\nflavor = \"8B\"\n{more}[metrics]\nlog_freq = 10\n[parallelism]\ntensor_parallel_degree = 1\n"
        );
        said("train.toml", &text, &[("world_size", "8")])
    };
    assert!(of("norm_type = \"fused_rmsnorm\"\n").plan.is_some());
    stopped(&of("norm_type = \"layernorm\"\n"), &["model.norm_type"]);
    assert!(of("[training]\ngradient_accumulation_steps = 1\nvarlen = false\n").plan.is_some());
    let flame = of("[training]\ngradient_accumulation_steps = 4\nvarlen = true\n");
    stopped(&flame, &["training.gradient_accumulation_steps", "training.varlen"]);
}

/// The legacy models' experts take one token each, not two like core's.
#[test]
fn legacy_experts_take_the_best_one() {
    let of = |more: &str| {
        script(&format!(
            "torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py {SHAPE} --vocab-size 50257 --num-experts 8 \
             --expert-model-parallel-size 8 {more}\n"
        ))
    };
    let legacy = of("--use-flash-attn");
    assert_eq!(value(&legacy, Field::Software), "megatron_legacy");
    assert_eq!(value(&legacy, Field::MoeRouterTopk), "1");
    assert_eq!(value(&of("--use-mcore-models"), Field::MoeRouterTopk), "2");
}

/// verl's SPPO was given the critic of generalised advantage estimation.
#[test]
fn sppo_has_no_critic() {
    let of = |more: &str| {
        let text = format!(
            "algorithm:\n  adv_estimator: null\n{more}actor_rollout_ref:\n  model:\n    path: Qwen/Qwen2.5-3B\n  actor:\n    \
             ppo_mini_batch_size: 64\n    ppo_micro_batch_size_per_gpu: 1\n  rollout:\n    name: sglang\n"
        );
        value(&said("sppo_trainer.yaml", &text, &[]), Field::RlCritic)
    };
    assert_eq!(of("  sppo_eta: 1.0\n"), "none");
    assert_eq!(of(""), "device");
}
