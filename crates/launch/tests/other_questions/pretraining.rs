//! Pre-training: files that are not here, and what others than decoders are trained from.

use super::{MODEL, launch, said, script, stopped, value};
use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::Field;
use shardscope_source::Source;

fn asked(resolution: &Resolution) -> Vec<(&str, &str)> {
    let questions = resolution.questions.iter();
    questions.map(|asked| (asked.name.as_str(), asked.proposal.as_deref().unwrap_or(""))).collect()
}

/// microsoft/Megatron-DeepSpeed, `examples_deepspeed/MoE`: the engine shards as its file says, which `sed` makes of a template. Both
/// were once taken for a run that shards nothing.
#[test]
fn the_stage_of_a_file_that_is_not_here_is_asked_for() {
    let run = |more: &str| {
        format!(
            "{more}\ndeepspeed --num_nodes 1 --num_gpus 8 pretrain_gpt.py {MODEL} --deepspeed --deepspeed_config ds.json\n"
        )
    };
    let open = script(&run(""));
    assert!(open.plan.is_none());
    assert_eq!(asked(&open), [("zero_stage", "")]);
    let by_sed = "stage=2\nsed \"s/BATCH/64/\" T.json \\\n | sed \"s/ZERO_STAGE/${stage}/\" > ds.json";
    assert_eq!(asked(&script(&run(by_sed))), [("zero_stage", "2")]);
    assert_eq!(asked(&script(&run("sed 's/ZERO_STAGE/1/' T.json > ds.json"))), [("zero_stage", "1")]);
    // What writes the file itself, or says the stage as well, is asked nothing.
    let here = "cat > ds.json <<EOF\n{\"train_batch_size\": 64, \"zero_optimization\": {\"stage\": 1}}\nEOF";
    assert_eq!(asked(&script(&run(here))), []);
    assert!(
        script(&run("").replace("--deepspeed_config", "--zero-stage 1 --deepspeed_config")).plan.is_some()
    );
    // Without its switch the engine does not run.
    assert!(script(&run("").replace("--deepspeed ", "")).plan.is_some());
    // deepspeedai/DeepSpeedExamples, `training/bing_bert`: no word of Megatron's.
    let other =
        "deepspeed --num_gpus 8 deepspeed_train.py --cf bert.json --deepspeed --deepspeed_config ds.json\n";
    assert!(asked(&script(other)).iter().all(|(name, _)| *name != "zero_stage"));
    let on_host = run(here).replace("--deepspeed ", "--deepspeed --checkpoint-in-cpu ");
    stopped(&script(&on_host), &["--checkpoint-in-cpu"]);
}

/// NVIDIA/NeMo-Framework-Launcher, `examples/training/gpt/a100/40b_8node.sh`: once torchtitan's on one GPU.
const LAUNCHER: &str = "python3 launcher_scripts/main.py training=gpt3/40b stages=[training] data_dir=/d \
    training.run.name=40b training.trainer.num_nodes=8 training.model.global_batch_size=256 training.model.micro_batch_size=2 \
    training.model.pipeline_model_parallel_size=4 +training.model.optim.grad_sync_dtype=bf16\n";
const TRAINING: &str = "trainer:\n  devices: 8\n  num_nodes: 128\n  precision: bf16\nmodel:\n  encoder_seq_length: 2048\n  \
    max_position_embeddings: 2048\n  num_layers: 48\n  hidden_size: 8192\n  ffn_hidden_size: 32768\n  \
    num_attention_heads: 64\n  micro_batch_size: 4\n  global_batch_size: 2048\n  tensor_model_parallel_size: 2\n  \
    pipeline_model_parallel_size: 1\n  optim:\n    name: fused_adam\n";

#[test]
fn nemos_launcher_changes_the_file_that_it_names() {
    let open = script(LAUNCHER);
    assert!(open.plan.is_none());
    assert_eq!(value(&open, Field::Software), "megatron_core_te");
    let named = open.diagnostics.iter().any(|said| said.message.contains("40b.yaml, which is not here"));
    assert!(named, "{:?}", open.diagnostics);
    let source = Source::from_files([("run.sh", LAUNCHER), ("40b.yaml", TRAINING)]);
    let vocabulary = [("vocab_size".to_owned(), "50257".to_owned())];
    let request = Request { source: &source, environment: &Environment::default(), overrides: &vocabulary };
    let both = read(&request);
    assert!(both.plan.is_some(), "{:?}", both.diagnostics);
    for (field, expected) in [
        (Field::WorldSize, "64"),
        (Field::GlobalBatchSize, "256"),
        (Field::MicroBatchSize, "2"),
        (Field::TensorModelParallelSize, "2"),
        (Field::PipelineModelParallelSize, "4"),
        (Field::GradsDtype, "bf16"),
        (Field::NumLayers, "48"),
    ] {
        assert_eq!(value(&both, field), expected, "{field:?}");
    }
}

/// `launcher_scripts/conf` of the same repository: each was once a decoder that trains.
#[test]
fn nemos_other_files_are_no_training_of_a_decoder() {
    let file = |more: &str| said("a.yaml", &format!("{TRAINING}{more}"), &[("vocab_size", "50257")]);
    assert!(file("").plan.is_some());
    for (more, name) in [
        ("  mm_cfg:\n    llm:\n      freeze: true\n", "model.mm_cfg.llm.freeze"),
        ("  vision_pretraining_type: classify\n", "model.vision_pretraining_type"),
        ("  mcore_bert: true\n", "model.mcore_bert"),
        ("  encoder:\n    num_layers: 12\n", "model.encoder.num_layers"),
        ("  unet_config:\n    in_channels: 4\n", "model.unet_config.in_channels"),
        ("  retro:\n    num_neighbors: 2\n", "model.retro.num_neighbors"),
        ("  peft:\n    peft_scheme: ia3\n", "model.peft.peft_scheme"),
        ("  peft:\n    peft_scheme: lora\n    lora_tuning:\n      adapter_dim: 32\n", "train_type"),
    ] {
        stopped(&file(more), &[name]);
    }
    let (trains, _) = TRAINING.split_once("  optim:").expect("an optimizer");
    let evaluates = format!("{trains}inference:\n  greedy: true\n");
    stopped(&said("a.yaml", &evaluates, &[("vocab_size", "50257")]), &["inference.greedy"]);
    let converts = format!("{trains}run:\n  nemo_file_name: a.nemo\n");
    stopped(&said("a.yaml", &converts, &[("vocab_size", "50257")]), &["run.nemo_file_name"]);
    assert!(file("inference:\n  greedy: true\n").plan.is_some());
}

const NANOTRON: &str = "model:\n  dtype: bfloat16\n  model_config:\n    hidden_size: 512\n    intermediate_size: 2048\n    \
    num_attention_heads: 8\n    num_hidden_layers: 2\n    vocab_size: 32000\ntokens:\n  sequence_length: 256\n  \
    micro_batch_size: 4\nparallelism:\n  dp: 4\n  tp: 2\n  pp: 1\n";

/// huggingface/nanotron, `examples/moe/config_llamoe.yaml`: once a dense model.
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

const FOUNDRY: &str = "max_seq_len: 2048\nmodel:\n  name: mpt_causal_lm\n  d_model: 1536\n  n_heads: 12\n  n_layers: 24\n  \
    vocab_size: 50257\ntrain_loader:\n  name: text\nglobal_train_batch_size: 256\ndevice_train_microbatch_size: 4\n\
    precision: amp_bf16\n";

/// mosaicml/llm-foundry, `scripts/train/yamls/pretrain`: once padded to 50,304 rows, and sharded without being told so.
#[test]
fn llm_foundry_pads_nothing_and_shards_where_it_is_told() {
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

/// pytorch/torchtitan, `torchtitan/experiments`: once Python that is not evaluated.
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
    // `to_graph_trainer_config` hands on the configuration of another registry, which is known by its name.
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

/// AI-Hypercomputer/maxtext, `src/maxtext/configs/tpu/v5p/64b.sh`: once a file that is not here, with one sequence for each rank.
const MAXTEXT: &str = "python3 -m maxtext.trainers.pre_train.train configs/base.yml steps=15 per_device_batch_size=3 \
    remat_policy=full global_parameter_scale=64 ici_fsdp_parallelism=-1 ici_tensor_parallelism=4 hardware=gpu \
    max_target_length=2048 base_output_directory=/out dataset_type=synthetic attention='flash' quantization=\"\"\n";

#[test]
fn maxtexts_command_is_its_base_with_changes() {
    let open = script(MAXTEXT);
    assert_eq!(asked(&open), [("world_size", "8")]);
    let names: Vec<_> = open.not_modelled.iter().map(|item| item.name.as_str()).collect();
    assert_eq!(names, ["framework"]);
    // Scale 64: twice two doublings of every size of `base.yml`.
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
    // Two layers of Gemma 2 are one of these.
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

/// stanford-crfm/levanter, `config/gpt2_small_fast.yaml` and `llama2_7b.yaml`: once GELU and biases under the name of Llama.
#[test]
fn levanters_models_are_theirs_by_their_type() {
    let file = |model: &str, trainer: &str| {
        let text = format!(
            "data:\n  tokenizer: gpt2\nmodel:\n  type: {model}\ntrainer:\n  train_batch_size: 256\n  mp: p=f32,c=bfloat16\n{trainer}"
        );
        said("a.yaml", &text, &[("world_size", "8"), ("without", "framework")])
    };
    let llama = file("llama", "");
    let plan = llama.plan.as_ref().unwrap_or_else(|| panic!("{:?}", llama.diagnostics));
    assert_eq!(plan.recipe().micro_batch_size, 32, "all samples of a device at once");
    let shown = [
        Field::NumLayers,
        Field::FfnHiddenSize,
        Field::Swiglu,
        Field::AddBiasLinear,
        Field::RecomputeGranularity,
    ]
    .map(|field| value(&llama, field));
    assert_eq!(shown, ["32", "11008", "true", "false", "full"]);
    let gpt2 = file("gpt2", "  per_device_parallelism: 4\n");
    let shown =
        [Field::HiddenSize, Field::FfnHiddenSize, Field::Swiglu, Field::AddBiasLinear, Field::MicroBatchSize]
            .map(|field| value(&gpt2, field));
    assert_eq!(shown, ["768", "3072", "false", "true", "4"]);
    stopped(&file("gemma", ""), &["model.type"]);
    stopped(&file("llama\n  gradient_checkpointing: offload", ""), &["model.gradient_checkpointing"]);
    let sophia = "optimizer:\n  type: sophia-h\n";
    stopped(&file("gpt2", sophia), &["optimizer.type"]);
    let uneven = file("llama", "  train_steps: 1\n");
    assert!(uneven.plan.is_some());
    let text = "model:\n  type: llama\ntrainer:\n  train_batch_size: 100\n";
    let refused =
        said("a.yaml", text, &[("world_size", "8"), ("without", "framework"), ("vocab_size", "32000")]);
    let told =
        refused.diagnostics.iter().any(|said| said.message.contains("global batch 100 is not a multiple"));
    assert!(refused.plan.is_none() && told, "{:?}", refused.diagnostics);
}

/// aws-neuron/neuronx-distributed-training, `examples/conf/hf_llama3_8B_SFT_config.yaml`: once nanotron's.
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

/// EleutherAI/gpt-neox, `configs/mamba/mamba-130M.yml`, `rwkv/170M.yml`, `gmlp_small.yml`, `20B.yml`: once layers of GPT.
#[test]
fn layers_of_gpt_neox_are_told_by_their_kind() {
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

/// `configs/local_setup.yml` and `text_generation.yml` of the same repository, which once asked for a model.
#[test]
fn paths_of_gpt_neox_are_no_training() {
    for text in [
        "{\n  \"data_path\": \"data/enwik8\",\n  \"vocab_file\": \"a\",\n  \"merge_file\": \"b\",\n  \"save\": \"c\"\n}\n",
        "text_gen_type: unconditional\nmaximum_tokens: 102\ntemperature: 1.0\n",
    ] {
        let read = said("local_setup.yml", text, &[]);
        assert!(read.questions.is_empty(), "{:?}", read.questions);
        assert!(read.diagnostics.iter().any(|said| said.message.contains("trains nothing")), "{text}");
    }
}

/// yanring/Megatron-MoE-ModelZoo, `ckpt_convert_scripts/DeepSeek-V3`; aws-samples, `3.test_cases/megatron/bionemo`; Pai's
/// `examples/baichuan/run_finetune_huggingface_baichuan.sh`; ColossalAI's `examples/tutorial/opt`: each once a decoder that trains.
#[test]
fn programs_of_other_purposes_are_told_by_their_names_and_options() {
    for (program, more) in [
        ("/w/deepseek_v3_hf_to_mg.py", "--target-tensor-model-parallel-size 1"),
        ("esm2/scripts/train_esm2.py", ""),
        ("examples/protein/esm1nv/pretrain.py", ""),
    ] {
        assert!(script(&launch("pretrain_gpt.py", "")).plan.is_some());
        stopped(&script(&launch(program, more)), &["program"]);
    }
    stopped(&script(&launch("finetune.py", "--transformer-type huggingface")), &["--transformer-type"]);
    assert!(script(&launch("finetune.py", "--transformer-type megatron")).plan.is_some());
    let opt = "torchrun --nproc_per_node 4 run_clm.py --model_name_or_path facebook/opt-125m --per_device_train_batch_size 16 \
        --block_size 1024 --mem_cap 0\n";
    stopped(&script(opt), &["program"]);
}

/// alibaba/Pai-Megatron-Patch, `examples/llama2/run_finetune_megatron_llama.sh`: written for releases whose parser has 1.
#[test]
fn layers_recomputed_as_one_are_asked_for_or_those_of_the_release() {
    let full = "--recompute-granularity full --recompute-method uniform";
    assert_eq!(asked(&script(&launch("pretrain_gpt.py", full))), [("recompute_num_layers", "1")]);
    let old = script(&launch("pretrain_gpt.py", &format!("{full} --DDP-impl local")));
    assert_eq!((old.plan.is_some(), value(&old, Field::RecomputeNumLayers)), (true, "1".into()));
}

/// `examples/qwen2/run_mcore_qwen2_moe.sh` of the same repository: a degree that only one size of model uses.
#[test]
fn degrees_behind_a_script_are_proposed_as_one() {
    let text = format!(
        "SIZE=$1\nA=$2\nB=$3\nC=$4\nEP=$5\nif [ $SIZE = 1B ]; then\n  MOE=\"\"\nelif [ $SIZE = A3B ]; then\n  \
         MOE=\"--num-experts 8 --expert-model-parallel-size $EP\"\nfi\ntorchrun --nproc_per_node 8 pretrain_gpt.py {MODEL} \
         --train-iters $A --tensor-model-parallel-size $B --pipeline-model-parallel-size $C --log-interval $A $MOE\n"
    )
    .replace("--micro-batch-size 1", "--micro-batch-size $A");
    let open = script(&text);
    let line =
        asked(&open).into_iter().find(|(name, _)| *name == "arguments").map(|(_, line)| line.to_owned());
    assert_eq!(line.as_deref(), Some("1B 1 1 1 1"), "{:?}", open.questions);
}

/// AMD-AGI/Primus, `examples/customer_package/run_llama3.1_8b_pretrain_mi355x.sh`: once Megatron's words alone, in fp32.
#[test]
fn an_experiment_of_primus_that_the_environment_names_is_asked_for() {
    let text = "export EXP=\"examples/megatron/configs/MI355X/llama3.1_8B-pretrain.yaml\"\nexport NNODES=1\n\
        bash ./examples/run_slurm_pretrain.sh --micro_batch_size 8 --global_batch_size 256 --seq_length 4096\n";
    let open = script(text);
    let named = open
        .diagnostics
        .iter()
        .any(|said| said.message.contains("llama3.1_8B-pretrain.yaml, which is not here"));
    assert!(open.plan.is_none() && named, "{:?}", open.diagnostics);
    let cli = text.replace(
        "./examples/run_slurm_pretrain.sh",
        "./primus-cli direct -- train pretrain --config \"$EXP\"",
    );
    assert!(script(&cli).diagnostics.iter().any(|said| said.message.contains("which is not here")));
    let experiment = "modules:\n  pre_trainer:\n    framework: megatron\n    config: pre_trainer.yaml\n    model: llama3.1_8B.yaml\n    \
        overrides:\n      seq_length: 8192\n      micro_batch_size: 4\n      recompute_granularity: full\n      recompute_method: block\n      \
        recompute_num_layers: 2\n";
    let source = Source::from_files([("run.sh", text), ("llama3.1_8B-pretrain.yaml", experiment)]);
    let world = [("world_size".to_owned(), "8".to_owned())];
    let both = read(&Request { source: &source, environment: &Environment::default(), overrides: &world });
    let shown = [Field::SeqLength, Field::MicroBatchSize, Field::RecomputeNumLayers, Field::ParamsDtype]
        .map(|field| value(&both, field));
    assert_eq!(shown, ["4096", "8", "2", "bf16"]);
    assert!(both.plan.is_some(), "{:?}", both.diagnostics);
}

/// FlagOpen/FlagScale, `examples/aquila/conf/train/7b.yaml`: once Megatron's own 10,880.
#[test]
fn flagscales_inner_width_is_a_multiple() {
    let model = MODEL.replace("--ffn-hidden-size 12288 ", "");
    let width = |more: &str| {
        let text = format!("torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py {model} {more}\n");
        value(&script(&text), Field::FfnHiddenSize)
    };
    assert_eq!(width(""), "10880");
    assert_eq!(width("--multiple-of 256"), "11008");
    assert_eq!(width("--multiple-of 4096 --hidden-dim-multiplier 1.3"), "16384");
    assert_eq!(width("--multiple-of 256 --ffn-hidden-size 512"), "512");
}

/// Ascend/MindSpeed-LLM, `examples/mcore/qwen3_moe/dpo_qwen3_30b_a3b_16K_A3_ptd.sh`; bigscience, `train/tr8b-104B/tr8b-104B-bnb.slurm`:
/// once trainings of the next token, and by Adam in fp32.
#[test]
fn preferences_and_small_states_of_forks_stop() {
    for name in ["--stage dpo", "--use-bnb-optimizer", "--add-output-layer-bias"] {
        stopped(&script(&launch("pretrain_gpt.py", name)), &[name.split(' ').next().unwrap_or(name)]);
    }
    let sft = script(&launch(
        "posttrain_gpt.py",
        "--stage sft --train-weighted-split-paths-path a --loss-on-targets-only",
    ));
    assert!(sft.plan.is_some_and(|plan| plan.recipe().marks.is_empty()));
}

/// HYGON-AI/Megatron-LM-das, `examples/GLM/run_glm5_300B.sh`: what lacks is the training, not the variables of its network.
#[test]
fn a_script_that_starts_another_asks_for_that_one() {
    let text = "source requirements/env.sh\nmpirun -np 8 --hostfile hosts bash -c 'source requirements/env.sh && \
        bash train_glm5_300B.sh localhost 25900 --data_path=/d'\n";
    let open = script(text);
    let first = open.diagnostics.first().map(|said| said.message.clone()).unwrap_or_default();
    assert!(first.contains("train_glm5_300B.sh, which is not here"), "{first}");
}
