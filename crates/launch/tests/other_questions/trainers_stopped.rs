//! Other trainings with a trainer's options, and batches of evaluations and of few GPUs.

use super::{said, script, stopped, value};
use shardscope_plan::Field;

#[test]
fn other_trainings_by_a_trainers_words_stop() {
    let text = |more: &str| {
        script(&format!(
            "torchrun --nproc_per_node 8 run.py --model_name_or_path google/gemma-2-9b --max_length 512 \
             --per_device_train_batch_size 2 --gradient_accumulation_steps 1 --bf16 {more}"
        ))
    };
    assert!(text("").plan.is_some(), "{:?}", text("").diagnostics);
    // FlagEmbedding/examples/finetune/embedder/decoder_only/base.sh: two queries with eight passages each were read as
    // two sequences.
    stopped(&text("--train_group_size 8 --query_max_len 512"), &["train_group_size", "query_max_len"]);
    // VILA/longvila/train/4_extend_llm_512k.sh: LongLoRA's adapters.
    stopped(&text("--low_rank_training True"), &["low_rank_training"]);
    assert!(text("--low_rank_training False").plan.is_some());
    // bigscience/jz/slurms_scripts/preprocess_lmt5.slurm
    stopped(&text("--model_type t5"), &["model_type"]);
    // LMFlow/configs/iterative_dpo.yaml, and examples/ascend/qwen3_5_full_sft_fsdp2.yaml of LLaMA-Factory.
    stopped(
        &text("--do_dpo_align True --reward_model_name_or_path r"),
        &["do_dpo_align", "reward_model_name_or_path"],
    );
    stopped(&text("--use_v1_kernels true"), &["use_v1_kernels"]);
    // llm-foundry/scripts/train/yamls/finetune/t5-small_dolly_sft.yaml: an encoder-decoder, for which a model was
    // asked.
    let t5 = "max_seq_len: 1024\nmodel:\n  name: hf_t5\n  pretrained_model_name_or_path: t5-small\nglobal_train_batch_size: 96\n\
        device_train_microbatch_size: 16\ntrain_loader:\n  name: finetuning\nprecision: amp_bf16\n";
    stopped(&said("t5.yaml", t5, &[]), &["model.name"]);
    // bigscience/experiments/gpt2-hf-ds/hf_ds_gpt2_perf_n16.slurm: its own sizes and checkpointing.
    stopped(&text("--config_overrides n_layer=64,gradient_checkpointing=true"), &["config_overrides"]);
    // mlcommons/training_results_v5.0/Lenovo/benchmarks/bert/run_test.sh
    stopped(&text("--max_predictions_per_seq 76"), &["max_predictions_per_seq"]);
    // awsome-distributed-training/3.test_cases/23.SMHP-esm2/3.train_fsdp.sh: a protein encoder, whose model was asked
    // for.
    let esm = script(
        "torchrun --nproc_per_node 4 train.py --config_name facebook/esm2_t30_150M_UR50D --bf16 True --max_seq_length 512 \
         --gradient_accumulation_steps 16 --per_device_train_batch_size 8",
    );
    stopped(&esm, &["config_name"]);
    // accelerate/tests/test_configs/0_28_0_mpi.yaml
    let file = "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_CPU\nnum_machines: 4\nnum_processes: 16\nuse_cpu: true\n";
    stopped(&said("a.yaml", file, &[]), &["distributed_type", "use_cpu"]);
}

/// alignment-handbook's `recipes/zephyr-7b-beta/dpo/config_full.yaml` evaluates pairs in larger batches than in
/// training.
#[test]
fn pairs_of_larger_evaluations_are_counted() {
    let file = |name: &str, batch: &str| {
        let text = format!(
            "model_name_or_path: Qwen/Qwen2.5-7B\nper_device_train_batch_size: {batch}\nper_device_eval_batch_size: 8\nbeta: 0.01\n\
             learning_rate: 5e-7\nbf16: true\nmax_length: 1024\neval_strategy: steps\noutput_dir: data/{name}\n"
        );
        said("config.yaml", &text, &[("zero_stage", "0"), ("world_size", "8")])
    };
    let dpo = file("zephyr-7b-dpo-full", "4");
    assert!(dpo.plan.is_some(), "{:?}", dpo.not_modelled);
    assert_eq!(value(&dpo, Field::EvaluationBatchSize), "8");
    stopped(&file("zephyr-7b-kto\nrpo_alpha: 0", "4"), &["evaluation_batch_size"]);
    assert!(file("zephyr-7b-kto", "4").plan.is_some());
    // trl/trainer/kto_trainer.py rejects it.
    stopped(&file("zephyr-7b-kto", "1"), &["per_device_train_batch_size"]);
}

/// SimPO's Gemma 2 of 9B evaluates with eager attention, whose scores of 16 heads are few beside 256,000 logits; those of
/// Llama's 32 heads, of which four tensors may be alive, are not beside 128,256.
#[test]
fn larger_evaluations_with_few_scores_are_counted() {
    let file = |model: &str, length: u64| {
        let text = format!(
            "model_name_or_path: {model}\nattn_implementation: eager\nbeta: 10\ngamma_beta_ratio: 0.5\nbf16: true\n\
             eval_strategy: steps\ngradient_checkpointing: true\nlearning_rate: 8.0e-7\nmax_length: {length}\n\
             per_device_train_batch_size: 2\nper_device_eval_batch_size: 4\noutput_dir: outputs/simpo\n"
        );
        said("config.yaml", &text, &[("zero_stage", "0"), ("world_size", "8")])
    };
    let few = file("google/gemma-2-9b-it", 2048);
    assert!(few.plan.is_some(), "{:?}", few.diagnostics);
    stopped(&file("google/gemma-2-9b-it", 8192), &["evaluation_batch_size"]);
    stopped(&file("meta-llama/Meta-Llama-3-8B", 2048), &["evaluation_batch_size"]);
}

/// For a batch too small for eight GPUs the number that can share it is proposed:
/// scripts/train/yamls/finetune/mpt-7b_dolly_sft.yaml of llm-foundry.
#[test]
fn a_small_batch_proposes_fewer_gpus() {
    let file = |global: u64| {
        let text = format!(
            "{{\"train_micro_batch_size_per_gpu\": 8, \"train_batch_size\": {global}, \"bf16\": {{\"enabled\": true}}, \
             \"zero_optimization\": {{\"stage\": 2}}}}"
        );
        let asked = said("ds.json", &text, &[("model", "Qwen/Qwen2.5-7B"), ("seq_length", "4096")]);
        let question = asked.questions.into_iter().find(|question| question.name() == "world_size");
        question.and_then(|question| question.proposal)
    };
    assert_eq!(file(48).as_deref(), Some("6"));
    assert_eq!(file(8).as_deref(), Some("1"));
    assert_eq!(file(256).as_deref(), Some("8"));
}

/// `trust_remote_code` runs the code in the repository of MPT and of Falcon's first checkpoints, by the `auto_map` of
/// their `config.json`.
#[test]
fn code_of_a_models_own_repository_stops_by_name() {
    let line = |model: &str, more: &str| {
        script(&format!(
            "torchrun --nproc_per_node 8 train.py --model_name_or_path {model} --bf16 --gradient_checkpointing \\\n  \
             --per_device_train_batch_size 1 --max_seq_length 1024 --attn_implementation eager {more} --output_dir out"
        ))
    };
    stopped(&line("mosaicml/mpt-7b", "--trust_remote_code True"), &["trust_remote_code"]);
    stopped(&line("tiiuae/falcon-7b-instruct", "--trust_remote_code True"), &["trust_remote_code"]);
    // Programs that pass it in their code: ms-swift, and xLAM's `train_sft.py`.
    let swift = |model: &str| {
        script(&format!(
            "NPROC_PER_NODE=8 swift sft --model {model} --train_type full --torch_dtype bfloat16 --max_length 1024 \
             --per_device_train_batch_size 1 --attn_impl eager --output_dir out"
        ))
    };
    stopped(&swift("tiiuae/falcon-7b"), &["model"]);
    assert!(!swift("Qwen/Qwen3-8B").not_modelled.iter().any(|item| item.is_called("model")));
    let xlam = |model: &str| {
        script(&format!(
            "torchrun --nproc_per_node 8 src/foundation_modeling/train/train_sft.py --model_name {model} --model_save_id c \
             --ds_stage 2 --weight_precision bf16 --gradient_accumulation_steps 1 --per_device_train_batch_size 1"
        ))
    };
    stopped(&xlam("mosaicml/mpt-7b"), &["model_name"]);
    assert!(xlam("Qwen/Qwen3-8B").not_modelled.is_empty());
    for (model, more) in [("mosaicml/mpt-7b", ""), ("Qwen/Qwen3-8B", "--trust_remote_code True")] {
        let said = line(model, more).not_modelled;
        assert!(!said.iter().any(|item| item.is_called("trust_remote_code")), "{said:?}");
    }
}
