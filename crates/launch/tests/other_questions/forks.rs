//! Forks of Megatron-LM and recipe files, each with the settings that decided its outcome.

use super::{MODEL, said, script, stopped, value};
use shardscope_plan::Field;
use shardscope_source::Code;

/// HYGON-AI/Megatron-LM-das, `examples/llama3/train_llama3_8B.sh` at 0685d1f550: mpirun starts the script, whose
/// variables for nodes belong to its torchrun branch.
#[test]
fn a_world_that_mpirun_sets_is_asked_for_with_what_fits() {
    let text = format!(
        "WORLD_SIZE=$OMPI_COMM_WORLD_SIZE\nLAUNCH_BACKEND=${{launch_backend:-\"mpirun\"}}\nNNODES=${{NNODES:-1}}\n\
         GPUS_PER_NODE=${{GPUS_PER_NODE:-8}}\nRANKS=(--rank $OMPI_COMM_WORLD_RANK --world-size ${{WORLD_SIZE}} --local-rank 0 \
         --dist-url tcp://${{1}}:${{2}})\nif [[ \"$LAUNCH_BACKEND\" == \"mpirun\" ]]; then\n  APP=\"python -u pretrain_gpt.py {MODEL} \
         --tensor-model-parallel-size 2 ${{RANKS[@]}}\"\nelse\n  APP=\"torchrun --nnodes $NNODES --nproc_per_node $GPUS_PER_NODE \
         pretrain_gpt.py {MODEL}\"\nfi\n${{launch_with_binding}} ${{LOCAL_RANK}} ${{APP}}\n"
    );
    let open = said("train.sh", &text, &[]);
    let asked: Vec<(&str, Option<&str>)> =
        open.questions.iter().map(|asked| (asked.name(), asked.proposal.as_deref())).collect();
    assert_eq!(asked, [("num_nodes", Some("1"))]);
    assert!(open.plan.is_none());
    let set = said("train.sh", &text, &[("num_nodes", "2")]);
    let shown =
        [Field::NumNodes, Field::GpusPerNode, Field::DataParallelSize].map(|field| value(&set, field));
    assert_eq!(shown, ["2", "8", "8"], "{:?}", set.diagnostics);
}

/// HabanaAI/Megatron-LM at 13c28deafa, `examples/llama/pretrain_llama.sh`: options that are off do not stop, and
/// checkpoint checks are not settings.
#[test]
fn gaudis_kernels_stop_once() {
    let off = "--use-torch-compile=0 --use-fused-sdpa-with-recompute 0 --use-fast-softmax 1 --verify-checkpoint \
               --verify-checkpoint-model-type LLAMA --use-fused-rmsnorm 1";
    let run = script(&format!(
        "torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py {MODEL} {off} --use-fused-sdpa 1\n"
    ));
    stopped(&run, &["--use-fused-sdpa"]);
    assert_eq!(run.not_modelled.len(), 1, "{:?}", run.not_modelled);
}

/// yanring/Megatron-MoE-ModelZoo at e8650517d6, `model_configs/benchmarking/Qwen3-Next-80B-A3B.yaml`: the former name
/// of the flag `--experimental-attention-variant`.
#[test]
fn the_older_name_of_the_gated_delta_rule_is_read_by_its_sizes() {
    let text = |kind: &str| {
        format!(
            "MODEL_ARGS:\n  --num-layers: 48\n  --hidden-size: 2048\n  --num-attention-heads: 16\n  --seq-length: 4096\n  \
             --micro-batch-size: 1\n  --global-batch-size: 256\n  --bf16: true\n  --swiglu: true\n  --vocab-size: 151936\n  \
             --linear-attention-type: {kind}\n  --linear-attention-freq: 4\n  --linear-conv-kernel-dim: 4\n  \
             --linear-key-head-dim: 128\n  --linear-value-head-dim: 128\n  --linear-num-key-heads: 16\n  \
             --linear-num-value-heads: 32\n  --attention-output-gate: true\n"
        )
    };
    let known = said("a.yaml", &text("gated_delta_net"), &[("world_size", "64")]);
    assert!(known.not_modelled.is_empty(), "{:?}", known.not_modelled);
    let plan = known.plan.as_ref().unwrap_or_else(|| panic!("{:?}", known.diagnostics));
    let linear = plan.model().mixers.pattern.iter().filter(|mixer| mixer.is_linear()).count();
    assert_eq!(linear, 36);
    stopped(&said("a.yaml", &text("mamba"), &[("world_size", "64")]), &["--linear-attention-type"]);
}

/// mosaicml/llm-foundry at 8c8dd48f72, `scripts/train/yamls/pretrain/gpt2-small.yaml`: a position table as long as the
/// run's samples.
#[test]
fn positions_that_llm_foundry_sets_are_rows_of_the_table() {
    let text = |model: &str, key: &str| {
        format!(
            "max_seq_len: 2048\nmodel:\n  name: hf_causal_lm\n  pretrained_model_name_or_path: {model}\n  config_overrides:\n    \
             {key}: 2048\n  pretrained: false\ntrain_loader:\n  name: text\nglobal_train_batch_size: 256\n\
             device_train_microbatch_size: 16\nprecision: amp_bf16\nfsdp_config:\n  sharding_strategy: FULL_SHARD\n"
        )
    };
    let small = said("a.yaml", &text("gpt2", "n_positions"), &[("world_size", "8")]);
    assert_eq!(value(&small, Field::MaxPositionEmbeddings), "2048");
    let plan = small.plan.as_ref().unwrap_or_else(|| panic!("{:?}", small.diagnostics));
    assert_eq!(plan.model().max_position_embeddings, 2048);
    stopped(
        &said("a.yaml", &text("meta-llama/Meta-Llama-3-8B", "max_seq_len"), &[("world_size", "8")]),
        &["model.config_overrides.max_seq_len"],
    );
}

/// mosaicml/llm-foundry at its last commit, `scripts/train/yamls/finetune/mpt-7b_dolly_sft.yaml` and
/// `mpt-30b-instruct.yaml`: MPT checkpoints come with llm-foundry's own code, whose attention the run chooses; Llama's
/// configuration has no such names, so `llmfoundry/utils/config_utils.py:set_config_overrides` raises.
#[test]
fn a_checkpoint_of_mpt_runs_llm_foundrys_own_code() {
    let text = |model: &str, more: &str| {
        format!(
            "max_seq_len: 2048\nmodel:\n  name: hf_causal_lm\n  pretrained_model_name_or_path: {model}\n{more}\
             train_loader:\n  name: finetuning\neval_loader:\n  name: finetuning\nglobal_train_batch_size: 64\n\
             device_eval_batch_size: 8\ndevice_train_microbatch_size: 8\nprecision: amp_bf16\n\
             fsdp_config:\n  sharding_strategy: FULL_SHARD\n  activation_checkpointing: true\n"
        )
    };
    let implementation = |name: &str| {
        format!(
            "  config_overrides:\n    max_seq_len: 2048\n    attn_config:\n      attn_impl: {name}\n      attn_uses_sequence_id: false\n"
        )
    };
    // The shape of mosaicml/mpt-7b (`scripts/train/yamls/pretrain/mpt-7b.yaml`, except for its vocabulary rows).
    let shape = [
        ("world_size", "8"),
        ("num_layers", "32"),
        ("hidden_size", "4096"),
        ("ffn_hidden_size", "16384"),
        ("num_attention_heads", "32"),
        ("vocab_size", "50432"),
    ];
    let kernel = |more: &str| {
        let run = said("a.yaml", &text("mosaicml/mpt-7b", more), &shape);
        assert!(run.not_modelled.is_empty(), "{:?}", run.not_modelled);
        let fields = [Field::AttentionKernel, Field::PositionEmbeddingType, Field::AddBiasLinear];
        fields.map(|field| value(&run, field))
    };
    assert_eq!(kernel(&implementation("flash")), ["flash", "alibi", "false"]);
    assert_eq!(kernel(&implementation("torch")), ["unfused", "alibi", "false"]);
    assert_eq!(kernel(""), ["unfused", "alibi", "false"]);
    let run = |model: &str, more: &str| said("a.yaml", &text(model, more), &shape);
    let other = "  config_overrides:\n    attn_config:\n      sliding_window_size: 4\n";
    stopped(&run("mosaicml/mpt-7b", other), &["model.config_overrides.attn_config.sliding_window_size"]);
    let within = "  config_overrides:\n    attn_config:\n      attn_uses_sequence_id: true\n";
    stopped(&run("mosaicml/mpt-7b", within), &["model.config_overrides.attn_config.attn_uses_sequence_id"]);
    stopped(
        &run("meta-llama/Meta-Llama-3-8B", &implementation("flash")),
        &["model.config_overrides.max_seq_len"],
    );
    // Evaluation with four times as many sequences, whose logits are not counted.
    let text = text("mosaicml/mpt-30b", &implementation("flash"))
        .replace("device_train_microbatch_size: 8", "device_train_microbatch_size: 2");
    stopped(&said("a.yaml", &text, &shape), &["evaluation_batch_size"]);
}

/// stas00/ml-engineering at 744d01e18b, `orchestration/slurm/launchers/{srun,torchrun}-launcher.slurm`: the program
/// they start trains nothing, and nothing is asked.
#[test]
fn a_launcher_of_a_check_is_stated_in_one_sentence() {
    for command in [
        "srun --wait=60 bash -c \"RANK=\\$SLURM_PROCID LOCAL_RANK=\\$SLURM_LOCALID python -u torch-distributed-gpu-test.py\"",
        "srun bash -c \"python -u -m torch.distributed.run --nproc_per_node 8 --nnodes $SLURM_NNODES torch-distributed-gpu-test.py\"",
    ] {
        let text = format!(
            "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=8\n#SBATCH --gres=gpu:8\n{command}\n"
        );
        let run = said("a.slurm", &text, &[]);
        let errors: Vec<&str> = run.diagnostics.iter().map(|said| said.message.as_str()).collect();
        assert!(
            errors.contains(&"torch-distributed-gpu-test.py is a hardware check, not a training run"),
            "{errors:?}"
        );
        assert!(run.questions.is_empty() && run.not_modelled.is_empty(), "{:?}", run.questions);
    }
}

/// yanring/Megatron-MoE-ModelZoo, `sbatch_benchmarking.sh`: files under the names by which a user finds them.
#[test]
fn files_are_named_without_the_folder_that_a_run_finds() {
    let text = "export WORKSPACE=$(dirname \"$(readlink -f \"$0\")\")\nsource \"${WORKSPACE}/runtime_configs/benchmarking/common.conf\"\n\
                source \"${WORKSPACE}/runtime_configs/benchmarking/runtime.conf\"\n";
    let run = said("sbatch_benchmarking.sh", text, &[]);
    let error = run.diagnostics.iter().find(|said| said.hint.is_some()).expect("an error");
    assert!(
        error
            .message
            .ends_with("runtime_configs/benchmarking/common.conf, runtime_configs/benchmarking/runtime.conf")
            && !error.message.contains('$'),
        "{}",
        error.message
    );
    assert_eq!(
        error.hint.as_deref(),
        Some("paste or drop runtime_configs/benchmarking/common.conf beside this text")
    );
}

/// accelerate's own keys offload; nothing passes on DeepSpeed's groups under `deepspeed_config`
/// (`accelerate/utils/launch.py`, 1.12.0).
#[test]
fn groups_of_deepspeed_in_accelerates_file_offload_nothing() {
    let text = |offload: &str| {
        format!(
            "deepspeed_config:\n  gradient_accumulation_steps: 4\n  zero_stage: 3\n{offload}distributed_type: DEEPSPEED\n\
             mixed_precision: bf16\nnum_machines: 1\nnum_processes: 8\n"
        )
    };
    let answers = [("model", "Qwen/Qwen2.5-7B"), ("seq_length", "2048"), ("micro_batch_size", "1")];
    let nested = said("a.yaml", &text("  offload_optimizer:\n    device: cpu\n"), &answers);
    assert!(nested.plan.is_some(), "{:?}", nested.not_modelled);
    assert_ne!(value(&nested, Field::OffloadOptimizer), "true");
    let reported = |run: &shardscope_launch::Resolution| {
        run.diagnostics
            .iter()
            .any(|said| said.message.contains("it takes deepspeed_config.offload_optimizer_device"))
    };
    assert!(reported(&nested));
    let own = said("a.yaml", &text("  offload_optimizer_device: cpu\n"), &answers);
    assert_eq!(value(&own, Field::OffloadOptimizer), "true");
    assert!(!reported(&own));
}

/// huggingface/nanotron, `src/nanotron/trainer.py`: it asserts that the stages' length is the run's.
#[test]
fn a_stage_of_another_length_is_no_run_of_nanotrons() {
    let text = |length: u64| {
        format!(
            "data_stages:\n- name: Stable\n  sequence_length: {length}\n  start_training_step: 1\nmodel:\n  model_config:\n    \
             is_llama_config: true\n    hidden_size: 2048\n    intermediate_size: 8192\n    num_hidden_layers: 24\n    \
             num_attention_heads: 32\n    num_key_value_heads: 32\n    max_position_embeddings: 2048\n    vocab_size: 49152\n    \
             tie_word_embeddings: true\nparallelism: {{dp: 8, tp: 1, pp: 1}}\noptimizer: {{zero_stage: 0}}\n\
             tokens: {{batch_accumulation_per_replica: 4, micro_batch_size: 2, sequence_length: 2048, train_steps: 100}}\n"
        )
    };
    assert!(said("a.yaml", &text(2048), &[]).plan.is_some());
    stopped(&said("a.yaml", &text(8192), &[]), &["data_stages.0.sequence_length"]);
}

/// NVIDIA/Megatron-LM since core 0.19 (69c486825c), `transformer_config.py:__post_init__`. Hybrid models up to core 0.17 offload
/// nothing (GeodesicResearch/geodesic-megatron at df06386a22, `configs/pa_warm_start_sft_120b/*.yaml`).
#[test]
fn experts_offloaded_within_recomputed_layers_are_what_megatron_rejects() {
    let experts = "--num-experts 8 --moe-router-topk 2 --moe-grouped-gemm --expert-model-parallel-size 8 --sequence-parallel \
                   --tensor-model-parallel-size 1 --use-distributed-optimizer --transformer-impl transformer_engine";
    let again = "--recompute-granularity selective --recompute-modules core_attn moe shared_experts";
    let offload = "--fine-grained-activation-offloading --offload-modules expert_fc1 moe_act";
    let run = |more: &str| {
        script(&format!("torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py {MODEL} {experts} {more}\n"))
    };
    let both = run(&format!("{again} {offload}"));
    assert!(both.plan.is_none());
    let said = both.diagnostics.iter().find(|said| said.code == Code::OffloadModules).expect("a reason");
    assert!(said.hint.is_some() && said.span.is_some(), "{said:?}");
    assert!(run(offload).plan.is_some(), "{:?}", run(offload).diagnostics);
    assert!(run(again).plan.is_some());
    let hybrid = run(&format!(
        "{again} {offload} --hybrid-override-pattern MEM*MEME --mamba-num-heads 64 --num-layers 8"
    ));
    assert!(hybrid.plan.is_none());
    let said = hybrid.diagnostics.iter().find(|said| said.code == Code::OffloadModules).expect("a reason");
    assert!(said.hint.as_deref().is_some_and(|hint| hint.contains("0.17")), "{said:?}");
}

/// allenai/OLMo, `scripts/augusta/peteish1.sh`: OLMo's defaults are not reported for a file that is missing.
#[test]
fn defaults_are_not_said_of_a_file_that_is_not_here() {
    let text = "torchrun --nnodes 2 --nproc-per-node 8 scripts/train.py configs/peteish1-google.yaml --save_interval_ephemeral=10000 \
                --fsdp.sharding_strategy=FULL_SHARD --device_train_microbatch_size=4 --fused_loss=false\n";
    let run = said("peteish1.sh", text, &[]);
    assert!(
        run.diagnostics.iter().any(|said| said.message.contains("peteish1-google.yaml, which is not here"))
    );
    let of_defaults = run.not_modelled.iter().any(|item| item.sentence().contains("default of OLMo"));
    assert!(!of_defaults, "{:?}", run.not_modelled);
}
