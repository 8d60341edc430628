//! Never a different question: each text here was once read as another training, and is now read correctly, asked about
//! or stopped.

mod accumulation;
mod adapters;
mod automodel;
mod automodel_experts;
mod bridged;
mod computed;
mod device_maps;
mod drawn;
mod drawn_eighteenth;
mod drawn_fifteenth;
mod drawn_forks;
mod drawn_fourteenth;
mod drawn_frameworks;
mod drawn_last;
mod drawn_left_over;
mod drawn_nineteenth;
mod drawn_own_keys;
mod drawn_seventeenth;
mod drawn_thirteenth;
mod drawn_tuning;
mod drawn_twelfth;
mod drawn_twentieth;
mod drawn_twenty_fifth;
mod drawn_twenty_first;
mod drawn_twenty_second;
mod drawn_twenty_third;
mod forks;
mod foundry;
mod frameworks;
mod given_elsewhere;
mod grouped;
mod layer_kinds;
mod levanter;
mod lingua;
mod loops;
mod misread;
mod olmo;
mod olmo_core;
mod oumi;
mod own_code;
mod own_programs;
mod pairs;
mod pretraining;
mod primus;
mod read_again;
mod recomputed;
mod releases;
mod rl_releases;
mod rollouts;
mod sharding;
mod started;
mod taken_wrongly;
mod titan;
mod trainers;
mod trainers_stopped;
mod tuning;
mod unknown;
mod unsloth;
mod verl_sft;

use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::{Field, OffloadModule};
use shardscope_source::Source;

/// A dense model of about 8B parameters as Megatron's flags.
const MODEL: &str = "--num-layers 32 --hidden-size 4096 --ffn-hidden-size 12288 --num-attention-heads 32 --seq-length 4096 \
    --micro-batch-size 1 --global-batch-size 64 --vocab-size 151936 --bf16 --swiglu";

fn said(name: &str, text: &str, overrides: &[(&str, &str)]) -> Resolution {
    let source = Source::from_files([(name, text)]);
    let overrides: Vec<(String, String)> =
        overrides.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    read(&Request { source: &source, environment: &Environment::default(), overrides: &overrides })
}

fn script(text: &str) -> Resolution {
    said("run.sh", text, &[])
}

fn launch(program: &str, more: &str) -> String {
    format!("torchrun --nnodes 1 --nproc_per_node 8 {program} {MODEL} {more}\n")
}

/// Asserts that there is no verdict, and that one of the messages names each of these.
#[track_caller]
fn stopped(resolution: &Resolution, names: &[&str]) {
    assert!(resolution.plan.is_none(), "a verdict all the same");
    for name in names {
        let reported = resolution.not_modelled.iter().any(|item| item.is_called(name));
        assert!(reported, "{name} among {:?}; {:?}", resolution.not_modelled, resolution.diagnostics);
    }
}

fn value(resolution: &Resolution, field: Field) -> String {
    resolution.setting(field).map(|setting| setting.value.written()).unwrap_or_default()
}

#[test]
fn adapters_are_no_full_training() {
    stopped(
        &script(&launch("posttrain_gpt.py", "--lora-r 8 --lora-alpha 16 --lora-target-modules linear_qkv")),
        &["train_type"],
    );
    stopped(&script(&launch("pretrain_gpt.py", "--peft-scheme lora")), &["train_type"]);
    let trainer = script(
        "python train.py --model_name_or_path Qwen/Qwen3-8B --use_peft --lora_r 16 --per_device_train_batch_size 2 \
         --gradient_accumulation_steps 4 --max_length 2048 --bf16",
    );
    assert_eq!(value(&trainer, Field::TrainType), "lora");
    assert_eq!(value(&trainer, Field::LoraRank), "16");
    assert_eq!(value(&trainer, Field::Software), "hf_transformers");
}

#[test]
fn what_trains_nothing_has_no_gradients() {
    for program in [
        "tools/run_text_generation_server.py",
        "evaluation.py",
        "inference.py",
        "convert_ckpt.py",
        "examples/inference/gpt/gpt_dynamic_inference.py",
        "preprocess_data.py",
    ] {
        stopped(&script(&launch(program, "")), &["program"]);
    }
    assert!(script(&launch("pretrain_gpt.py", "")).plan.is_some());
    // The training among them is read.
    let both = format!(
        "{}{}",
        launch("convert_ckpt.py", "--tensor-model-parallel-size 2"),
        launch("pretrain_gpt.py", "")
    );
    assert!(script(&both).plan.is_some());
}

#[test]
fn a_vision_model_beside_the_decoder_is_not_left_out() {
    stopped(&script(&launch("pretrain_vlm.py", "")), &["program"]);
    stopped(&script(&launch("pretrain_gpt.py", "--freeze-ViT")), &["frozen_modules"]);
    stopped(&script(&launch("pretrain_gpt.py", "--vision-model-type clip")), &["vision-model-type"]);
}

/// The message says how much is left out, if the configuration states the tower's sizes and there are rules for its
/// type.
#[test]
fn a_vision_tower_is_left_out_with_its_count() {
    let read = |vision: &str, name: &str| {
        let text = format!(
            r#"{{"model_type":"qwen2_5_vl","text_config":{{"model_type":"qwen2_5_vl_text","hidden_size":3584,"num_hidden_layers":28,"num_attention_heads":28,"num_key_value_heads":4,"intermediate_size":18944,"vocab_size":152064}},"vision_config":{vision}}}"#
        );
        let resolution = said("config.json", &text, &[]);
        stopped(&resolution, &[name]);
        let item = resolution.not_modelled.iter().find(|item| item.name == name);
        item.map(|item| item.message.clone()).unwrap_or_default()
    };
    let stated = r#"{"depth":32,"hidden_size":1280,"intermediate_size":3420,"out_hidden_size":3584}"#;
    let counted = read(stated, "vision_tower");
    assert!(counted.contains("676,550,144 parameters in 32 layers"), "{counted}");
    let open = read(r#"{"depth":32}"#, "vision_config");
    assert!(!open.contains("parameters"), "{open}");
}

#[test]
fn a_recipe_by_name_is_not_fp32_on_one_gpu() {
    let bridge = script(
        "torchrun --nproc-per-node=8 --nnodes=4 run_recipe.py --recipe llama3_70b_pretrain_config train.micro_batch_size=1 model.seq_length=8192",
    );
    // The values that the function returns: recipes/llama/h100/llama3.py of Megatron-Bridge.
    assert!(bridge.plan.is_some(), "{:?}", bridge.diagnostics);
    for (field, expected) in [
        (Field::ParamsDtype, "bf16"),
        (Field::NumLayers, "80"),
        (Field::TensorModelParallelSize, "4"),
        (Field::PipelineModelParallelSize, "4"),
        (Field::VirtualPipelineModelParallelSize, "5"),
        (Field::ContextParallelSize, "2"),
        (Field::SequenceParallel, "true"),
        (Field::UseDistributedOptimizer, "true"),
        (Field::WorldSize, "32"),
    ] {
        assert_eq!(value(&bridge, field), expected, "{}", field.name());
    }
    stopped(
        &script(
            "nemo llm pretrain --factory llama3_8b trainer.num_nodes=1 trainer.devices=8 data.seq_length=8192",
        ),
        &["--factory"],
    );
}

#[test]
fn another_model_is_not_taken_for_one_whose_name_begins_alike() {
    let text = "model: deepseek-ai/DeepSeek-R1-Distill-Qwen-7B\ntuner_type: lora\nlearning_rate: 1e-4\n";
    let resolution = said("sft.yaml", text, &[]);
    assert_ne!(value(&resolution, Field::NumLayers), "61", "DeepSeek-R1 is another model");
}

#[test]
fn mindspeed_runs_its_own_flash_attention() {
    let line = launch(
        "pretrain_gpt.py",
        "--use-flash-attn --transformer-impl local --use-fused-rmsnorm --use-fused-swiglu",
    );
    assert_eq!(value(&script(&line), Field::AttentionKernel), "flash");
    // Elsewhere Megatron core's own layers have no flash attention.
    let other = launch("pretrain_gpt.py", "--use-flash-attn --transformer-impl local");
    assert_eq!(value(&script(&other), Field::AttentionKernel), "unfused");
}

#[test]
fn optimizers_are_not_taken_for_adam() {
    for optimizer in ["galore_adamw", "galore_adamw8bit_per_layer", "adam8bit_per_layer", "came", "lomo"] {
        stopped(&script(&launch("pretrain_gpt.py", &format!("--optimizer {optimizer}"))), &["optimizer"]);
    }
    for harmless in ["fusedadamw", "adamw", "fused_adam", "distributed_fused_adam"] {
        assert!(
            script(&launch("pretrain_gpt.py", &format!("--optimizer {harmless}"))).plan.is_some(),
            "{harmless}"
        );
    }
    let narrow = "--use-precision-aware-optimizer --use-distributed-optimizer --exp-avg-dtype torch.bfloat16";
    assert_eq!(value(&script(&launch("pretrain_gpt.py", narrow)), Field::ExpAvgDtype), "bf16");
    let eight = script(&launch("pretrain_gpt.py", "--optimizer adamw_torch_8bit"));
    assert_eq!(value(&eight, Field::Optimizer), "adamw_8bit");
}

#[test]
fn the_large_switches_of_fsdp_are_read() {
    let config = |key: &str| {
        format!(
            "distributed_type: FSDP\nmixed_precision: bf16\nnum_machines: 1\nnum_processes: 8\nfsdp_config:\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  fsdp_version: 2\n  {key}\n"
        )
    };
    let keeps = said("fsdp.yaml", &config("fsdp_reshard_after_forward: false"), &[]);
    assert_eq!(value(&keeps, Field::ZeroStage), "2");
    let recomputes = said("fsdp.yaml", &config("fsdp_activation_checkpointing: true"), &[]);
    assert_eq!(value(&recomputes, Field::RecomputeGranularity), "full");
    let offloads = said("fsdp.yaml", &config("fsdp_offload_params: true"), &[]);
    assert_eq!(
        [Field::OffloadParam, Field::OffloadOptimizer].map(|field| value(&offloads, field)),
        ["true"; 2]
    );
    // FSDP2 has meshes instead of strategies.
    stopped(
        &said("fsdp.yaml", &config("fsdp_sharding_strategy: HYBRID_SHARD"), &[]),
        &["fsdp_config.fsdp_sharding_strategy"],
    );
}

#[test]
fn going_on_without_it_marks_the_verdict() {
    let line = launch("posttrain_gpt.py", "--lora-r 8");
    let gone = said("run.sh", &line, &[("without", "train_type")]);
    let marks = gone.plan.as_ref().map(|plan| plan.recipe().marks.clone()).unwrap_or_default();
    assert_eq!(marks.without, ["train_type"], "{:?}", gone.diagnostics);
}

#[test]
fn an_experiments_overrides_win_over_the_models_file() {
    let experiment = "modules:\n  pre_trainer:\n    framework: megatron\n    config: pre_trainer.yaml\n    model: llama3_8B.yaml\n    overrides:\n      num_layers: 16\n      seq_length: 4096\n      micro_batch_size: 1\n";
    let model = "num_layers: 32\nhidden_size: 4096\nffn_hidden_size: 14336\nnum_attention_heads: 32\nvocab_size: 128256\n";
    for files in [
        [("exp.yaml", experiment), ("own_name.yaml", model)],
        [("own_name.yaml", model), ("exp.yaml", experiment)],
    ] {
        let source = Source::from_files(files);
        let resolution =
            read(&Request { source: &source, environment: &Environment::default(), overrides: &[] });
        assert_eq!(value(&resolution, Field::NumLayers), "16");
        assert_eq!(value(&resolution, Field::FfnHiddenSize), "14336");
    }
    assert_eq!(value(&said("exp.yaml", experiment, &[]), Field::NumLayers), "16");
}

#[test]
fn nodes_that_a_cluster_sets_are_asked_for() {
    let text = format!(
        "WORLD_SIZE=${{WORLD_SIZE:-1}}\ntorchrun --nnodes ${{WORLD_SIZE}} --nproc_per_node 8 pretrain_gpt.py {MODEL}\n"
    );
    let resolution = script(&text);
    assert!(resolution.plan.is_none(), "one node is only what the script falls back to");
    assert!(
        resolution
            .questions
            .iter()
            .any(|question| question.name().contains("nodes") || question.name() == "WORLD_SIZE")
    );
}

#[test]
fn megatron_under_another_trainers_name_is_no_trainer_of_transformers() {
    let text = "NPROC_PER_NODE=2 megatron sft --model Qwen/Qwen3-30B-A3B --tuner_type lora --lora_rank 8 --expert_model_parallel_size 2 \
        --moe_grouped_gemm true --micro_batch_size 1 --global_batch_size 16 --max_length 2048 --dataset_num_proc 4 --num_train_epochs 1";
    let resolution = script(text);
    assert_ne!(value(&resolution, Field::Software), "hf_transformers");
    assert_eq!(value(&resolution, Field::AdapterLibrary), "mcore-bridge");
    assert_eq!(value(&resolution, Field::LoraDropout), "0.05", "ms-swift's default");
    let lora = resolution.plan.as_ref().and_then(|plan| plan.recipe().tuning.lora).expect("adapters");
    assert_eq!((lora.rank, lora.dropout), (8, true));
    // Adapters of experts cannot be sharded further, and training methods that no library has here stay out.
    assert!(
        script(&text.replace("--moe_grouped_gemm", "--expert_tensor_parallel_size 2 --moe_grouped_gemm"))
            .plan
            .is_none()
    );
    stopped(&script(&text.replace("tuner_type lora", "tuner_type lora --target_regex x")), &["target-regex"]);
}

#[test]
fn sizes_under_other_names_are_read() {
    // LLaMA-Factory's second format, and its workers under Ray.
    let second = "model: Qwen/Qwen3-0.6B\nmodel_class: llm\ndist_config: {name: fsdp2}\ncp_mode: ulysses\ncp_size: 2\n\
                  train_dataset: a\nmicro_batch_size: 1\ncutoff_len: 2048\nlearning_rate: 1e-4\n";
    let read = said("v1.yaml", second, &[("world_size", "4")]);
    let shown = [Field::ContextParallelSize, Field::CpCommType].map(|field| value(&read, field));
    assert_eq!(shown, ["2", "a2a"]);
    let ray = "model_name_or_path: Qwen/Qwen3-4B\nfinetuning_type: lora\ndo_train: true\ncutoff_len: 2048\nbf16: true\n\
               ray_num_workers: 4\nlearning_rate: 1e-4\n";
    assert_eq!(value(&said("ray.yaml", ray, &[]), Field::WorldSize), "4");
    // A key that occurs twice is read once.
    let verl = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=Qwen/Qwen3-8B \
        actor_rollout_ref.actor.strategy=megatron actor_rollout_ref.actor.ppo_mini_batch_size=64 \
        actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 actor_rollout_ref.rollout.n=4 trainer.n_gpus_per_node=8 \
        actor_rollout_ref.actor.megatron.pipeline_model_parallel_size=4 trainer.nnodes=1 trainer.nnodes=1 \
        actor_rollout_ref.actor.megatron.override_transformer_config.num_layers_in_last_pipeline_stage=6";
    let read = script(verl);
    assert_eq!(value(&read, Field::DecoderLastPipelineNumLayers), "6");
    assert_eq!(value(&read, Field::NotRead), "");
}

#[test]
fn the_fsdp_example_of_awsome_distributed_training_is_read() {
    let run = |more: &str| {
        script(&format!(
            "torchrun --nproc_per_node=8 --nnodes=4 ../src/train.py --max_context_width=32768 --num_key_value_heads=8 \
             --intermediate_size=14336 --hidden_width=4096 --num_layers=32 --num_heads=32 --vocab_size=32768 \
             --train_batch_size=1 --max_steps=200 --sharding_strategy=full --dataset=allenai/c4 {more}"
        ))
    };
    let mistral = run("--model_type=mistral");
    let shown =
        [Field::HiddenSize, Field::NumQueryGroups, Field::SeqLength, Field::ParamsDtype, Field::ZeroStage]
            .map(|field| value(&mistral, field));
    assert_eq!(shown, ["4096", "8", "4096", "fp32", "3"]);
    let plan = mistral.plan.as_ref().expect("a plan");
    assert_eq!(plan.cluster().gpus(), 32);
    assert_eq!(value(&run("--model_type=mixtral"), Field::NumExperts), "8");
    let offloads = run("--model_type=llama_v3 --offload_activations=1");
    assert!(offloads.plan.expect("a plan").recipe().offload.saved_tensors);
    let none = run("--model_type=llama_v3 --offload_activations=1 --activation_checkpointing=0");
    stopped(&none, &["offload_saved_tensors"]);
    stopped(&run("--model_type=gpt_neox"), &["model_type"]);
}

/// Until pull request 1073 (April 2025) torchtitan split a local batch into as many micro-batches as pipeline ranks;
/// since then it splits it into micro-batches of one sequence.
#[test]
fn the_micro_batch_of_a_torchtitan_pipeline_follows_its_version() {
    let toml = |degree: &str| {
        format!(
            "[job]\ndump_folder = \"out\"\n[metrics]\nlog_freq = 10\n[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\n\
             batch_size = 32\nseq_len = 8192\ndata_parallel_shard_degree = 8\ntensor_parallel_degree = 1\n{degree}\n\
             [activation_checkpoint]\nmode = \"full\"\n"
        )
    };
    let micro = |degree: &str| {
        let read = said("8b.toml", &toml(degree), &[("world_size", "64"), ("accelerator", "H100-SXM")]);
        [Field::PipelineModelParallelSize, Field::MicroBatchSize, Field::NumMicroBatches]
            .map(|field| value(&read, field))
    };
    assert_eq!(micro("[experimental]\npipeline_parallel_degree = 8"), ["8", "4", "8"]);
    let stated = "[experimental]\npipeline_parallel_degree = 8\npipeline_parallel_microbatches = 16";
    assert_eq!(micro(stated), ["8", "2", "16"]);
    assert_eq!(micro("[parallelism]\npipeline_parallel_degree = 8"), ["8", "1", "32"]);
}

#[test]
fn modules_to_offload_say_nothing_without_their_switch() {
    let run = |more: &str| {
        script(&format!(
            "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 \
             --max-position-embeddings 32 --micro-batch-size 1 --bf16 --vocab-size 1000 --offload-modules core_attn {more}"
        ))
    };
    let modules = |more: &str| {
        let read = run(more);
        read.plan.unwrap_or_else(|| panic!("{:?}", read.diagnostics)).recipe().offload.modules
    };
    assert!(modules("").is_empty());
    assert!(modules("--fine-grained-activation-offloading").has(OffloadModule::CoreAttention));
}
