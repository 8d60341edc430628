//! No answer to a question that nobody asked: each of these was once read as another training, and is now read right, asked
//! about, or stopped with one sentence.

use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::{Field, Number};
use shardscope_source::Source;

/// A dense model of some 8B parameters as Megatron's flags.
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

/// Whether there is no verdict, and one of the sentences names each of these.
#[track_caller]
fn stopped(resolution: &Resolution, names: &[&str]) {
    assert!(resolution.plan.is_none(), "a verdict all the same");
    for name in names {
        let told = resolution.not_modelled.iter().any(|item| item.is_called(name));
        assert!(told, "{name} among {:?}; {:?}", resolution.not_modelled, resolution.diagnostics);
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
    // The training among them is the one that is read.
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

/// The stop says how much is left out, where the configuration states the tower's sizes and its type has rules.
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
    // What the function comes to: recipes/llama/h100/llama3.py of Megatron-Bridge.
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
fn heads_and_experts_of_forks_are_read() {
    let multi = script(&launch("pretrain_gpt.py", "--attention-head-type multiquery"));
    assert_eq!(value(&multi, Field::NumQueryGroups), "1");
    let experts =
        script(&launch("third_party/Megatron-LM/pretrain_gpt.py", "--moe-num-experts 64 --moe-top-k 2"));
    assert_eq!(
        (value(&experts, Field::NumExperts), value(&experts, Field::MoeRouterTopk)),
        ("64".into(), "2".into())
    );
}

#[test]
fn mindspeed_runs_its_own_flash_attention() {
    let line = launch(
        "pretrain_gpt.py",
        "--use-flash-attn --transformer-impl local --use-fused-rmsnorm --use-fused-swiglu",
    );
    assert_eq!(value(&script(&line), Field::AttentionKernel), "flash");
    // Megatron core's own layers have none elsewhere.
    let other = launch("pretrain_gpt.py", "--use-flash-attn --transformer-impl local");
    assert_eq!(value(&script(&other), Field::AttentionKernel), "unfused");
}

#[test]
fn optimizers_are_not_taken_for_adam() {
    for optimizer in ["galore_adamw", "came", "lomo"] {
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
            "distributed_type: FSDP\nmixed_precision: bf16\nnum_machines: 1\nnum_processes: 8\nfsdp_config:\n  fsdp_version: 2\n  {key}\n"
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
    stopped(
        &said("fsdp.yaml", &config("fsdp_sharding_strategy: HYBRID_SHARD"), &[]),
        &["fsdp_config.fsdp_sharding_strategy"],
    );
}

#[test]
fn layers_of_another_kind_stop_the_verdict() {
    for more in [
        "--hybrid-layer-pattern M*ME",
        "--is-hybrid-model",
        "--heterogeneous-layers-config-path a.json",
        "--spec mine layer_spec",
    ] {
        let name = more.split(' ').next().unwrap_or(more);
        stopped(&script(&launch("pretrain_gpt.py", more)), &[name]);
    }
    assert!(script(&launch("pretrain_gpt.py", "--spec local")).plan.is_some());
}

#[test]
fn a_pattern_of_hybrid_layers_is_a_plan() {
    let more = "--is-hybrid-model --spec megatron.core.models.mamba.mamba_layer_specs mamba_stack_spec --num-layers 6 \
        --hybrid-override-pattern M-M*M- --mamba-num-heads 16 --mamba-head-dim 64 --mamba-num-groups 4 --mamba-state-dim 64";
    let resolution = script(&launch("pretrain_mamba.py", more));
    let plan = resolution.plan.as_ref().unwrap_or_else(|| panic!("{:?}", resolution.diagnostics));
    let mixers = &plan.model().mixers;
    let linear = mixers.linear.expect("a mixer");
    let sizes =
        [linear.value_heads, linear.value_width, linear.key_heads, linear.key_width, linear.convolution];
    assert_eq!(sizes, [16, 64, 4, 64, 4]);
    assert!(mixers.single_block && linear.norm);
    assert_eq!(plan.model().count_layers(|kind| kind.mixer.is_linear()), 3);
    assert_eq!(plan.model().count_layers(|kind| kind.mixer.attends()), 1);
}

#[test]
fn an_option_that_nobody_knows_marks_the_verdict() {
    let resolution = script(&launch("pretrain_gpt.py", "--my-own-attention 3 --wandb-project x --save /a"));
    let marks = resolution.plan.as_ref().map(|plan| plan.recipe().marks.clone()).unwrap_or_default();
    assert_eq!(marks.not_read, ["--my-own-attention"]);
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
            .any(|question| question.name.contains("nodes") || question.name == "WORLD_SIZE")
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
    // Adapters beside experts cannot be cut further, and ways to train that no library has here stay out.
    assert!(
        script(&text.replace("--moe_grouped_gemm", "--expert_tensor_parallel_size 2 --moe_grouped_gemm"))
            .plan
            .is_none()
    );
    stopped(&script(&text.replace("tuner_type lora", "tuner_type lora --target_regex x")), &["target-regex"]);
    stopped(
        &script(&launch("pretrain_gpt.py", "--use-bridge --bridge-hf-model /models/x")),
        &["bridge-hf-model"],
    );
}

#[test]
fn what_a_trainer_spreads_or_trains_otherwise_is_not_taken_for_data_parallelism() {
    let swift = "swift sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type lora --max_length 2048 --learning_rate 1e-4 \
        --gradient_accumulation_steps 8 --per_device_train_batch_size 1";
    // One process over two devices, and two processes over four.
    stopped(&script(&format!("CUDA_VISIBLE_DEVICES=0,1 {swift}")), &["CUDA_VISIBLE_DEVICES"]);
    stopped(
        &script(&format!("CUDA_VISIBLE_DEVICES=0,1,2,3 NPROC_PER_NODE=2 {swift}")),
        &["CUDA_VISIBLE_DEVICES"],
    );
    let each = script(&format!("CUDA_VISIBLE_DEVICES=0,1 NPROC_PER_NODE=2 {swift}"));
    assert_eq!(value(&each, Field::WorldSize), "2");
    assert!(each.plan.is_some(), "{:?}", each.diagnostics);
    stopped(
        &script(&format!("CUDA_VISIBLE_DEVICES=0 {swift} --lisa_activated_layers 2")),
        &["lisa_activated_layers"],
    );
    stopped(&script(&format!("CUDA_VISIBLE_DEVICES=0 {swift} --tuner_backend unsloth")), &["tuner_backend"]);
}

#[test]
fn what_accelerate_shards_stands_in_a_file_that_is_asked_for() {
    let text = "accelerate launch --num_processes 8 --config_file configs/fsdp2.yaml train.py --model_name_or_path Qwen/Qwen2.5-7B \
        --per_device_train_batch_size 1 --gradient_accumulation_steps 8 --max_length 2048 --bf16 true --num_train_epochs 1";
    let resolution = script(text);
    assert!(resolution.plan.is_none(), "the file decides what ranks share");
    assert!(resolution.questions.iter().any(|question| question.name == "zero_stage"));
}

#[test]
fn rollouts_are_counted_over_all_accelerators_of_the_cluster() {
    let text = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=$HOME/models/Qwen/Qwen3-8B \
        actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.actor.ppo_micro_batch_size=16 \
        actor_rollout_ref.rollout.n=4 trainer.n_gpus_per_node=8 trainer.nnodes=2";
    let resolution = script(text);
    // One driver is started; Ray puts workers on all of them. 16 sequences over 16 ranks are one each.
    let [world, micro, global] = [Field::WorldSize, Field::MicroBatchSize, Field::GlobalBatchSize]
        .map(|field| value(&resolution, field));
    assert_eq!([world.as_str(), &micro, &global], ["16", "1", "256"]);
    assert_eq!(value(&resolution, Field::NumLayers), "36");
}

#[test]
fn a_file_of_a_preference_training_is_none_of_samples() {
    let file = |more: &str| {
        format!(
            "model_name_or_path: Qwen/Qwen2.5-7B\nper_device_train_batch_size: 2\nlearning_rate: 5e-7\nbf16: true\n\
             max_length: 1024\nbeta: 0.01\nmax_prompt_length: 512\n{more}\n"
        )
    };
    let read = |more: &str| said("config.yaml", &file(more), &[("world_size", "8")]);
    // Its names tell the trainer, or it is asked for; TRL's other trainers hold more than is modelled.
    assert_eq!(value(&read("output_dir: data/zephyr-7b-dpo-full"), Field::TrainingObjective), "dpo");
    stopped(&read("output_dir: data/zephyr-orpo-141b"), &["trainer"]);
    let open = read("output_dir: data/out");
    assert!(open.plan.is_none());
    let asked = open.questions.iter().find(|question| question.name == "training_objective");
    assert_eq!(asked.expect("a question").proposal.as_deref(), Some("dpo"));
    let answered = [("world_size", "8"), ("training_objective", "dpo")];
    assert!(said("config.yaml", &file(""), &answered).plan.is_some());
}

#[test]
fn heads_predictions_and_quantised_checkpoints_are_told_from_trainings_of_the_model() {
    let axolotl =
        "base_model: google/gemma-2-2b\nsequence_len: 2048\nmicro_batch_size: 2\nlearning_rate: 1e-5\n";
    stopped(&said("a.yaml", &format!("{axolotl}reward_model: true\n"), &[]), &["reward_model"]);
    let classifies = format!("{axolotl}model_type: AutoModelForSequenceClassification\n");
    stopped(&said("a.yaml", &classifies, &[]), &["model_type"]);
    assert!(said("a.yaml", &format!("{axolotl}model_type: LlamaForCausalLM\n"), &[]).not_modelled.is_empty());
    let predicts =
        "model_name_or_path: Qwen/Qwen2.5-7B\nfinetuning_type: lora\ndo_predict: true\ncutoff_len: 2048\n";
    stopped(&said("p.yaml", predicts, &[]), &["do_predict"]);
    let tuned = |model: &str| {
        let text = format!(
            "model_name_or_path: {model}\nfinetuning_type: lora\ndo_train: true\ncutoff_len: 2048\nbf16: true\n\
             per_device_train_batch_size: 1\n"
        );
        said("t.yaml", &text, &[("world_size", "1")])
    };
    stopped(&tuned("TechxGenus/Meta-Llama-3-8B-Instruct-GPTQ"), &["model_name_or_path"]);
    stopped(&tuned("unsloth/Qwen3-8B-unsloth-bnb-4bit"), &["model_name_or_path"]);
    let nf4 = tuned("unsloth/Qwen3-8B-bnb-4bit");
    let shown = [Field::BaseQuantization, Field::TrainType, Field::NumLayers].map(|field| value(&nf4, field));
    assert_eq!(shown, ["nf4", "qlora", "36"]);
}

#[test]
fn files_of_fsdp_and_trainers_of_verl_are_told_by_name() {
    let swift = "CUDA_VISIBLE_DEVICES=0,1 NPROC_PER_NODE=2 swift sft --model Qwen/Qwen3-8B --tuner_type full --max_length 2048 \
        --gradient_accumulation_steps 1 --per_device_train_batch_size 1 --fsdp";
    let file = script(&format!("{swift} ./examples/fsdp2.json"));
    assert!(file.plan.is_none() && file.questions.iter().any(|question| question.name == "zero_stage"));
    stopped(&script(&format!("{swift} ./activation_cpu_offload/fsdp2.json")), &["fsdp"]);
    assert_eq!(value(&script(&format!("{swift} fsdp2")), Field::DataParallelEngine), "fsdp2");
    let tuned = script(
        "torchrun --standalone --nnodes=1 --nproc_per_node=8 -m verl.trainer.fsdp_sft_trainer data.train_files=a.parquet \
         data.prompt_key=extra_info data.micro_batch_size_per_gpu=4 model.partial_pretrain=Qwen/Qwen2.5-7B trainer.project_name=p",
    );
    let shown = [Field::Software, Field::MicroBatchSize, Field::GlobalBatchSize, Field::SeqLength]
        .map(|field| value(&tuned, field));
    assert_eq!(shown, ["hf_transformers", "4", "256", "1024"]);
    // `MixedPrecision(reduce_dtype=torch.float32)` of verl/trainer/fsdp_sft_trainer.py, as in its fsdp_workers.py.
    let plan = tuned.plan.expect("a plan");
    assert_eq!([plan.recipe().module_dtype(), plan.recipe().reduce_dtype()], [Number::Bf16, Number::Fp32]);
}

#[test]
fn a_trainers_own_command_is_its_program_whatever_files_its_options_name() {
    let swift = "CUDA_VISIBLE_DEVICES=0,1 NPROC_PER_NODE=2 swift rlhf --rlhf_type grpo --model Qwen/Qwen2.5-3B-Instruct \
        --external_plugins examples/plugin/plugin.py --tuner_type full --use_vllm true --vllm_mode colocate \
        --vllm_max_model_len 4096 --max_completion_length 1024 --num_generations 8 --gradient_accumulation_steps 1 \
        --per_device_train_batch_size 8 --torch_dtype bfloat16";
    let read = script(swift);
    assert_eq!([Field::RlFramework, Field::WorldSize].map(|field| value(&read, field)), ["swift", "2"]);
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    let megatron = swift.replace("swift rlhf", "megatron rlhf");
    stopped(&script(&megatron), &["program"]);
}

#[test]
fn trainers_whose_modules_are_their_own_stop_the_verdict() {
    let automodel = |model: &str, more: &str| {
        let text = format!(
            "recipe: TrainFinetuneRecipeForNextTokenPrediction\nstep_scheduler: {{global_batch_size: 8, local_batch_size: 1}}\n\
             model:\n  _target_: nemo_automodel.NeMoAutoModelForCausalLM.from_pretrained\n  \
             pretrained_model_name_or_path: Qwen/Qwen2.5-7B\n{model}\ndistributed: {{strategy: fsdp2}}\n\
             dataset: {{seq_len: 4096}}\n{more}\n"
        );
        said("a.yaml", &text, &[("world_size", "8")])
    };
    stopped(&automodel("", ""), &["model.force_hf"]);
    stopped(&automodel("  force_hf: true", "peft: {dim: 16}"), &["peft"]);
    stopped(&automodel("  force_hf: true", "teacher_model: {a: b}"), &["recipe"]);
    let plain = automodel("  force_hf: true", "");
    assert!(plain.plan.is_some(), "{:?}", plain.diagnostics);
    assert_eq!(value(&plain, Field::LigerKernel), "true");
    let core = "torchrun --nproc_per_node 8 open_instruct/dpo.py --model_name_or_path Qwen/Qwen2.5-7B --max_seq_length 2048 \
        --per_device_train_batch_size 1 --gradient_accumulation_steps 1";
    stopped(&script(core), &["program"]);
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
    // A key that is written twice is read once.
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
fn deepspeed_chat_is_read_by_its_own_words() {
    let text = |more: &str| {
        format!(
            "ZERO_STAGE=$2\ndeepspeed --num_gpus 8 main.py --data_split 2,4,4 --model_name_or_path Qwen/Qwen2.5-7B \
             --per_device_train_batch_size 8 --max_seq_len 512 --gradient_accumulation_steps 1 --num_train_epochs 1 \
             --lr_scheduler_type cosine --deepspeed --data_path Dahoas/rm-static {more}\n"
        )
    };
    let tuned = script(&text("--zero_stage 3 --offload --gradient_checkpointing"));
    let shown = [Field::ZeroStage, Field::DataParallelEngine, Field::OffloadParam, Field::Fp16]
        .map(|field| value(&tuned, field));
    assert_eq!(shown, ["3", "deepspeed", "true", "true"]);
    assert!(!tuned.questions.iter().any(|question| question.name == "zero_stage"));
    assert_eq!(value(&script(&text("--zero_stage 2 --dtype bf16")), Field::Bf16), "true");
    // An argument of the call is asked for by its own name.
    let open = script(&text("--zero_stage $ZERO_STAGE"));
    assert!(open.questions.iter().any(|question| question.name == "$2"), "{:?}", open.questions);
    stopped(&script(&text("--zero_stage 2 --lora_dim 128")), &["lora_dim"]);
    stopped(&script(&text("--zero_stage 2 --num_padding_at_beginning 1")), &["num_padding_at_beginning"]);
    // A bare switch leaves the stage to the program.
    let bare = script(&text(""));
    let asked = bare.questions.iter().find(|question| question.name == "zero_stage").expect("a question");
    assert!(asked.prompt.contains("the program"), "{}", asked.prompt);
}

#[test]
fn trainers_that_are_not_modelled_are_named() {
    stopped(
        &script(
            "colossalai run --nproc_per_node 8 train.py --pretrained Qwen/Qwen2.5-7B --plugin zero2 --micro_batch_size 8",
        ),
        &["program"],
    );
    let prime = "[model]\nname = \"Qwen/Qwen3-8B\"\n[data]\nname = \"a\"\nseq_len = 1024\nbatch_size = 64\n\
                 micro_batch_size = 1\n[optim]\nlr = 1e-5\n[deployment]\nnum_train_gpus = 2\n";
    let read = said("sft.toml", prime, &[]);
    stopped(&read, &["framework"]);
    assert_eq!([Field::WorldSize, Field::SeqLength].map(|field| value(&read, field)), ["2", "1024"]);
    // A command of which nothing is known is no silence.
    stopped(&script("deepspeed train_x.py --job_name a --deepspeed --print_steps 100"), &["program"]);
}

#[test]
fn adapters_of_reinforcement_learning_under_megatron_are_megatron_bridges() {
    let miles = |more: &str| {
        format!(
            "ray job submit -- python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 --colocate {MODEL} \
             --hf-checkpoint /root/Qwen3-8B --num-rollout 100 --rollout-batch-size 32 --n-samples-per-prompt 8 \
             --use-dynamic-batch-size --max-tokens-per-gpu 9216 --rollout-num-gpus-per-engine 1 \
             --sglang-mem-fraction-static 0.4 --attention-backend flash --lora-rank 32 --lora-alpha 32 --lora-dropout 0.0 \
             --target-modules all-linear --advantage-estimator grpo --entropy-coef 0.00 {more}"
        )
    };
    let read = script(&miles(""));
    let shown = [Field::AdapterLibrary, Field::TrainType, Field::OffloadBetweenPhases]
        .map(|field| value(&read, field));
    assert_eq!(shown, ["megatron-bridge", "lora", "weights optimizer"]);
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    assert_eq!(value(&read, Field::NotRead), "");
    let canonical = script(&miles("--lora-type canonical_lora"));
    assert_eq!(value(&canonical, Field::AdapterLibrary), "megatron-bridge-canonical");
    stopped(&script(&miles("--exclude-modules o_proj")), &["exclude-modules"]);
    // PPO's estimator brings a critic, and is no matter of sampling.
    assert_eq!(value(&script(&miles("").replace("grpo", "ppo")), Field::NotRead), "--advantage-estimator");
    let verl = |more: &str| {
        format!(
            "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=Qwen/Qwen2-7B \
             actor_rollout_ref.actor.strategy=megatron actor_rollout_ref.actor.ppo_mini_batch_size=64 \
             actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 actor_rollout_ref.rollout.n=4 trainer.n_gpus_per_node=8 \
             trainer.nnodes=1 data.max_prompt_length=512 data.max_response_length=512 \
             actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2 actor_rollout_ref.model.lora.rank=64 \
             actor_rollout_ref.model.lora.alpha=128 actor_rollout_ref.model.lora.lora_A_init_method=kaiming {more}"
        )
    };
    let read = script(&verl(""));
    let shown = [Field::AdapterLibrary, Field::LoraRank, Field::LoraAlpha].map(|field| value(&read, field));
    assert_eq!(shown, ["megatron-bridge", "64", "128"]);
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    stopped(
        &script(&verl("actor_rollout_ref.model.lora.type=vlm_lora")),
        &["actor_rollout_ref.model.lora.type"],
    );
}

#[test]
fn llama_cookbook_is_read_by_its_own_words() {
    let tuned = |launch: &str, more: &str| {
        script(&format!(
            "{launch} --use_peft --peft_method lora --model_name meta-llama/Llama-3.1-8B --batch_size_training 2 {more}"
        ))
    };
    let sharded =
        tuned("torchrun --nnodes 1 --nproc_per_node 8 finetuning.py", "--enable_fsdp --context_length 2048");
    let shown = [Field::DataParallelEngine, Field::ZeroStage, Field::GradientCheckpointing, Field::TrainType]
        .map(|field| value(&sharded, field));
    assert_eq!(shown, ["fsdp1", "3", "true", "lora"]);
    let shown = [Field::LoraRank, Field::LoraTargetModules, Field::SeqLength, Field::UseCache]
        .map(|field| value(&sharded, field));
    assert_eq!(shown, ["8", "q_proj v_proj", "2048", "false"]);
    assert!(sharded.plan.is_some(), "{:?}", sharded.diagnostics);
    let alone = tuned("python -m llama_recipes.finetuning", "--quantization 8bit");
    let shown = [Field::BaseQuantization, Field::GradientCheckpointing, Field::UseCache, Field::SeqLength]
        .map(|field| value(&alone, field));
    assert_eq!(shown, ["int8", "false", "true", "4096"]);
    stopped(&tuned("python -m llama_recipes.finetuning", "--peft_method llama_adapter"), &["peft_method"]);
    stopped(
        &tuned("torchrun --nproc_per_node 8 finetuning.py", "--enable_fsdp --fsdp_config.hsdp"),
        &["fsdp_config.hsdp"],
    );
}

#[test]
fn groups_and_tasks_that_change_what_is_trained_stop_the_verdict() {
    let axolotl = |more: &str| {
        let text = format!(
            "base_model: Qwen/Qwen3-8B\nsequence_len: 2048\nmicro_batch_size: 1\nlearning_rate: 1e-5\nbf16: true\n{more}\n"
        );
        said("a.yaml", &text, &[("world_size", "8")])
    };
    assert!(axolotl("").plan.is_some());
    stopped(&axolotl("qat:\n  weight_dtype: nvfp4\n  group_size: 16"), &["qat"]);
    stopped(&axolotl("diffusion:\n  num_diffusion_steps: 128"), &["diffusion"]);
    stopped(&axolotl("fused_attn_kernel: true"), &["fused_attn_kernel"]);
    let megatron = |task: &str| {
        script(&format!(
            "NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen3-8B --tuner_type full --task_type {task} --micro_batch_size 1 \
             --global_batch_size 16 --max_length 2048 --bf16 true"
        ))
    };
    assert!(megatron("causal_lm").not_modelled.is_empty());
    stopped(&megatron("embedding"), &["task-type"]);
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

/// torchtitan cut a local batch into as many micro-batches as pipeline ranks until pull request 1073 (April 2025), and cuts
/// it into micro-batches of one sequence since.
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
