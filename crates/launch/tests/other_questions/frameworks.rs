//! Pre-training frameworks other than Megatron: those with their own layers and defaults, and those that stop by name.

use super::pretraining::asked;
use super::{launch, said, script, stopped, value};
use shardscope_plan::Field;

const NANOTRON: &str = "model:\n  dtype: bfloat16\n  model_config:\n    hidden_size: 512\n    intermediate_size: 2048\n    \
    num_attention_heads: 8\n    num_hidden_layers: 2\n    vocab_size: 32000\ntokens:\n  sequence_length: 256\n  \
    micro_batch_size: 4\nparallelism:\n  dp: 4\n  tp: 2\n  pp: 1\n";

/// huggingface/nanotron, `examples/moe/config_llamoe.yaml`: formerly read as a dense model.
#[test]
fn experts_of_nanotrons_example_and_other_recomputation_stop_it() {
    assert!(said("a.yaml", NANOTRON, &[]).plan.is_some());
    let experts = NANOTRON.replace("    vocab_size", "    moe_num_experts: 4\n    vocab_size");
    stopped(&said("a.yaml", &experts, &[]), &["model.model_config.moe_num_experts"]);
    let more = |key: &str| said("a.yaml", &format!("{NANOTRON}  {key}\n"), &[]);
    assert!(more("tp_recompute_allgather: true").plan.is_some());
    stopped(&more("tp_recompute_allgather: false"), &["parallelism.tp_recompute_allgather"]);
    stopped(&more("moe_layer_recompute: true"), &["parallelism.moe_layer_recompute"]);
}

/// huggingface/nanotron, `src/nanotron/config/config.py`: a text without `dtype` was formerly read as fp32 weights, and
/// the name of its only adaptive optimizer as an unknown key.
#[test]
fn nanotron_keeps_weights_in_bf16_and_names_its_optimizer() {
    let silent = said("a.yaml", &NANOTRON.replace("  dtype: bfloat16\n", ""), &[]);
    assert_eq!(value(&silent, Field::Bf16), "true");
    let whole = said("a.yaml", &NANOTRON.replace("bfloat16", "float32"), &[]);
    assert_ne!(value(&whole, Field::Bf16), "true");
    let named = |name: &str| {
        let text = format!("{NANOTRON}optimizer:\n  optimizer_factory:\n    name: {name}\n");
        said("a.yaml", &text, &[])
    };
    let usual = named("adamW");
    assert!(usual.plan.is_some() && value(&usual, Field::NotRead).is_empty());
    stopped(&named("sgd"), &["optimizer.optimizer_factory.name"]);
}

/// Ascend/MindSpeed-LLM, `examples/mindspore/deepseek3`: experts were formerly sharded over tensor-parallel ranks
/// regardless, with a mark.
#[test]
fn what_mindspeed_does_otherwise_stops_it() {
    let read = |more: &str| script(&launch("pretrain_gpt.py", more));
    let usual = read("--ai-framework pytorch --structured-logs --structured-logs-dir logs");
    assert!(usual.plan.is_some());
    assert_eq!(value(&usual, Field::NotRead), "");
    for flag in ["ai-framework mindspore", "moe-tp-extend-ep", "mla-mm-split"] {
        let name = flag.split(' ').next().unwrap_or(flag);
        stopped(&read(&format!("--{flag}")), &[&format!("--{name}")]);
    }
}

const FOUNDRY: &str = "max_seq_len: 2048\nmodel:\n  name: mpt_causal_lm\n  d_model: 1536\n  n_heads: 12\n  n_layers: 24\n  \
    vocab_size: 50257\ntrain_loader:\n  name: text\nglobal_train_batch_size: 256\ndevice_train_microbatch_size: 4\n\
    precision: amp_bf16\n";

/// mosaicml/llm-foundry, `scripts/train/yamls/pretrain`: formerly padded to 50,304 rows, and sharded without being told
/// to.
#[test]
fn llm_foundry_pads_nothing_and_shards_where_it_is_asked_to() {
    let read = |more: &str| said("a.yaml", &format!("{FOUNDRY}{more}"), &[("world_size", "8")]);
    let alone = read("");
    assert_eq!(value(&alone, Field::PaddedVocabSize), "50257");
    assert_eq!(value(&alone, Field::ZeroStage), "0");
    let pure = read("fsdp_config:\n  sharding_strategy: FULL_SHARD\n  mixed_precision: PURE\n");
    assert_eq!(
        (value(&pure, Field::ZeroStage), value(&pure, Field::ReduceDtype)),
        ("3".into(), String::new())
    );
    let usual = read("fsdp_config:\n  sharding_strategy: FULL_SHARD\n  mixed_precision: DEFAULT\n");
    assert_eq!(value(&usual, Field::ReduceDtype), "fp32");
    let full = read("fsdp_config:\n  sharding_strategy: FULL_SHARD\n  mixed_precision: FULL\n");
    stopped(&full, &["fsdp_config.mixed_precision"]);
    let scores = FOUNDRY.replace("  vocab_size", "  attn_config:\n    attn_impl: torch\n  vocab_size");
    assert_eq!(value(&said("a.yaml", &scores, &[("world_size", "8")]), Field::AttentionKernel), "unfused");
    let tuned = FOUNDRY.replace("mpt_causal_lm", "hf_causal_lm\n  pretrained_model_name_or_path: gpt2");
    assert_eq!(value(&said("a.yaml", &tuned, &[("world_size", "8")]), Field::DataParallelEngine), "ddp");
}

const REGISTRY: &str = "def base() -> Trainer.Config:\n    return Trainer.Config(hf_assets_path=\"./assets/hf/Llama-3.1-8B\",\n        \
    optimizer=default_adamw(lr=1e-4), training=TrainingConfig(num_tokens_per_microbatch_per_dp_rank=8192, \
    max_context_length=8192))\n";

/// pytorch/torchtitan, `torchtitan/experiments`: formerly reported as Python that is not evaluated.
#[test]
fn registries_of_torchtitans_other_trainers_are_read_and_named() {
    let registry = |returns: &str, value: &str| {
        format!("from torchtitan import x\n\n\ndef mine() -> {returns}:\n    return {value}\n")
    };
    let config = REGISTRY.split_once("return ").expect("a value").1.trim_end();
    let read = |text: &str| said("config_registry.py", text, &[("world_size", "8"), ("recipe", "mine")]);
    let own = read(&registry("Trainer.Config", config));
    assert!(own.plan.is_some(), "{:?}", own.diagnostics);
    let faults = config.replace(
        "Trainer.Config(",
        "FaultTolerantTrainer.Config(fault_tolerance=FaultTolerance(enable=True), ",
    );
    let groups = read(&registry("FaultTolerantTrainer.Config", &faults));
    assert_eq!(groups.plan, own.plan);
    let diloco = faults.replace("enable=True", "semi_sync_method=\"diloco\"");
    stopped(&read(&registry("FaultTolerantTrainer.Config", &diloco)), &["fault_tolerance.semi_sync_method"]);
    // `to_graph_trainer_config` passes on the configuration of another registry, which is known by name.
    let traced =
        read(&registry("GraphTrainer.Config", "to_graph_trainer_config(llama3_8b(), model_registry)"));
    stopped(&traced, &["trainer"]);
    assert_eq!(
        (value(&traced, Field::NumLayers), value(&traced, Field::SeqLength)),
        ("32".into(), "8192".into())
    );
    let backend = "TransformersBackendConfig(hf_model=\"Qwen/Qwen3-4B\", training=TrainingConfig(max_context_length=2048))";
    let transformers = read(&registry("TransformersBackendConfig", backend));
    stopped(&transformers, &["trainer"]);
    assert_eq!(value(&transformers, Field::NumLayers), "36");
    for returns in ["FluxTrainer.Config", "Controller.Config"] {
        stopped(&read(&registry(returns, config)), &["trainer"]);
    }
}

/// AI-Hypercomputer/maxtext, `src/maxtext/configs/tpu/v5p/64b.sh`: formerly a missing file, with one sequence per rank.
const MAXTEXT: &str = "python3 -m maxtext.trainers.pre_train.train configs/base.yml steps=15 per_device_batch_size=3 \
    remat_policy=full global_parameter_scale=64 ici_fsdp_parallelism=-1 ici_tensor_parallelism=4 hardware=gpu \
    max_target_length=2048 base_output_directory=/out dataset_type=synthetic attention='flash' quantization=\"\"\n";

#[test]
fn maxtexts_command_is_its_base_with_changes() {
    let open = script(MAXTEXT);
    assert_eq!(asked(&open), [("world_size", "8")]);
    let names: Vec<_> = open.not_modelled.iter().map(|item| item.name.as_str()).collect();
    assert_eq!(names, ["framework"]);
    // Which of its settings no compiled step had.
    let message = &open.not_modelled[0].message;
    let unlike = "; no step was compiled with hardware gpu, tensor_model_parallel_size 4";
    assert!(message.ends_with(unlike), "{message}");
    // Scale 64: the number of layers and the widths of `base.yml` are each doubled twice.
    for (field, expected) in [
        (Field::NumLayers, "64"),
        (Field::HiddenSize, "8192"),
        (Field::NumAttentionHeads, "64"),
        (Field::FfnHiddenSize, "28672"),
        (Field::KvChannels, "128"),
        (Field::PaddedVocabSize, "32000"),
        (Field::Swiglu, "true"),
        (Field::TensorModelParallelSize, "4"),
        // Three sequences for each of the four devices that share them.
        (Field::MicroBatchSize, "12"),
        (Field::RecomputeGranularity, "full"),
        (Field::ZeroStage, "3"),
    ] {
        assert_eq!(value(&open, field), expected, "{field:?}");
    }
    let on = [("world_size", "8"), ("without", "framework")];
    let plan = said("run.sh", MAXTEXT, &on).plan.expect("a plan");
    assert_eq!(plan.layout().data, 2);
    let part = MAXTEXT.replace("per_device_batch_size=3", "per_device_batch_size=0.1");
    stopped(&script(&part), &["per_device_batch_size"]);
}

#[test]
fn maxtexts_files_of_models_are_their_own_layers() {
    let file = |more: &str| {
        let text = format!(
            "base_emb_dim: 4608\nbase_num_query_heads: 32\nbase_num_kv_heads: 16\nbase_mlp_dim: 36864\nbase_num_decoder_layers: 23\n\
             head_dim: 128\nvocab_size: 256128\n{more}"
        );
        said("a.yml", &text, &[("world_size", "8")])
    };
    // Two Gemma 2 layers form one of these.
    stopped(
        &file("decoder_block: gemma2\nmlp_activations: [\"gelu\",\"linear\"]\n"),
        &["decoder_block", "framework"],
    );
    let own = file("decoder_block: llama2\nlogits_via_embedding: true\n");
    assert_eq!(asked(&own), [("seq_length", "4096"), ("micro_batch_size", "1")]);
    assert_eq!(value(&own, Field::UntieEmbeddingsAndOutputWeights), "false");
    let gpt3 = file("decoder_block: gpt3\nmlp_activations: [\"gelu\"]\n");
    assert_eq!(
        (value(&gpt3, Field::Swiglu), value(&gpt3, Field::Normalization)),
        ("false".into(), "LayerNorm".into())
    );
    let latent = file(
        "decoder_block: deepseek\nattention_type: mla\nq_lora_rank: 0\nnum_experts: 8\nnum_experts_per_tok: 2\nbase_moe_mlp_dim: 2048\n",
    );
    let shown = [
        Field::MultiLatentAttention,
        Field::QLoraRank,
        Field::KvLoraRank,
        Field::NumExperts,
        Field::MoeFfnHiddenSize,
    ]
    .map(|field| value(&latent, field));
    assert_eq!(shown, ["true", "", "512", "8", "2048"]);
    stopped(&file("decoder_block: llama2\nquantization: fp8\n"), &["quantization"]);
}

/// aws-neuron/neuronx-distributed-training, `examples/conf/hf_llama3_8B_SFT_config.yaml`: formerly read as nanotron's.
#[test]
fn trainium_is_no_gpu() {
    let text = "name: hf_llama\nmodel_source: hf\ntrainer:\n  devices: 32\n  num_nodes: 1\ndistributed_strategy:\n  \
        tensor_model_parallel_size: 32\n  sequence_parallel: True\ndata:\n  micro_batch_size: 1\n  global_batch_size: 64\n  \
        seq_length: 4096\nmodel:\n  model_config: /home/ubuntu/config.json\n  num_layers: 32\n  hidden_size: 4096\n";
    let read = said("a.yaml", text, &[("vocab_size", "128256"), ("num_attention_heads", "32")]);
    stopped(&read, &["framework"]);
    let shown = [Field::NumLayers, Field::SeqLength, Field::TensorModelParallelSize, Field::WorldSize]
        .map(|field| value(&read, field));
    assert_eq!(shown, ["32", "4096", "32", "32"]);
    assert!(said("a.yaml", NANOTRON, &[]).plan.is_some());
}

const NEOX: &str = "pipe_parallel_size: 0\nmodel_parallel_size: 1\nnum_layers: 24\nhidden_size: 768\nnum_attention_heads: 12\n\
    seq_length: 2048\nmax_position_embeddings: 2048\ntrain_micro_batch_size_per_gpu: 4\ncheckpoint_activations: true\n";

/// EleutherAI/gpt-neox, `configs/mamba/mamba-130M.yml`, `rwkv/170M.yml`, `gmlp_small.yml`, `20B.yml`: formerly read as
/// GPT layers.
#[test]
fn layers_of_gpt_neox_are_recognised_by_their_kind() {
    let read = |more: &str| {
        let text = NEOX.replace("model_parallel_size: 1\n", "");
        said("a.yml", &format!("{text}{more}"), &[("world_size", "8"), ("vocab_size", "50257")])
    };
    assert!(read("").plan.is_some());
    let plain = read("attention_config: [[[\"flash\"], 24]]\n");
    assert_eq!((plain.plan.is_some(), value(&plain, Field::AttentionKernel)), (true, "flash".into()));
    assert!(read("attention_config: [[[\"global\"], \"all\"]]\n").plan.is_some());
    for kind in ["mamba", "rwkv", "gmlp", "local"] {
        stopped(&read(&format!("attention_config: [[[\"{kind}\"], 24]]\n")), &["attention_config"]);
    }
    stopped(&read("te_mha: true\n"), &["te_mha"]);
    stopped(&read("use_bias_in_norms: false\n"), &["use_bias_in_norms"]);
    assert!(read("use_bias_in_norms: false\nnorm: rmsnorm\n").plan.is_some());
    let joined = read("gpt_j_residual: true\nmodel_parallel_size: 2\n");
    assert_eq!((joined.plan.is_some(), value(&joined, Field::ParallelResidual)), (true, "true".into()));
    stopped(&read("gpt_j_residual: true\ngpt_j_tied: true\n"), &["gpt_j_tied"]);
}

/// MindSpeed-LLM's trainer over FSDP2 (`examples/fsdp2/qwen3`), which is not Megatron's.
#[test]
fn mindspeeds_trainer_over_fsdp_stops_by_name() {
    let text = "model:\n  train_from_scratch: False\ndata:\n  cutoff_len: 4096\nparallel:\n  fsdp_modules:\n    - model.layers.{*}\n  \
        recompute: True\ntraining:\n  optimizer: adamw\n  max_steps: 2000\n";
    let read = said(
        "tune.yaml",
        text,
        &[("model", "Qwen/Qwen3-8B"), ("world_size", "8"), ("micro_batch_size", "1")],
    );
    assert_eq!(value(&read, Field::SeqLength), "4096");
    let what = read.not_modelled.iter().map(|item| item.message.as_str()).collect::<Vec<_>>();
    assert!(what.iter().any(|said| said.contains("MindSpeed-LLM's FSDP2 trainer")), "{what:?}");
    assert!(read.plan.is_none());
}
