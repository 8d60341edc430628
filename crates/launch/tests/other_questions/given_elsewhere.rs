//! Settings that lie in a file which the text does not give, and names that only some models' layers have.

use super::{Environment, Field, Request, Source, read, said, value};
use shardscope_launch::Resolution;
use shardscope_source::Code;

fn tells(read: &Resolution, code: Code) -> bool {
    read.diagnostics.iter().any(|said| said.code == code)
}

/// A file that a variable names says what trains: its program's defaults are no answer.
#[test]
fn a_file_that_a_variable_names_is_not_its_programs_defaults() {
    let answers = [
        ("model", "meta-llama/Llama-2-7b-hf"),
        ("world_size", "8"),
        ("seq_length", "2048"),
        ("micro_batch_size", "1"),
    ];
    for line in [
        "llamafactory-cli train $1\n",
        "CONFIG_FILE=\"$1\"\naccelerate launch --num_processes 8 open_instruct/finetune.py \"$CONFIG_FILE\"\n",
        "accelerate launch --num_machines 1 --num_processes 8 open_instruct/finetune.py \"$CONFIG_FILE\"\n",
        "CONFIG=$2\naccelerate launch --num_machines 1 --num_processes 8 --mixed_precision bf16 open_instruct/dpo_tune_cache.py $CONFIG\n",
    ] {
        let read = said("run.sh", line, &answers);
        assert!(read.plan.is_none(), "{line}: a verdict all the same");
        assert!(tells(&read, Code::MissingFile), "{line}: {:?}", read.diagnostics);
    }
    // Options are no file, whatever they configure.
    let options = said("run.sh", "torchrun --nproc_per_node 8 pretrain_gpt.py $MODEL_CONFIG_ARGS\n", &[]);
    assert!(!tells(&options, Code::MissingFile), "{:?}", options.diagnostics);
    // Beside the file it is the one that is meant.
    let file = "model_name_or_path: meta-llama/Llama-2-7b-hf\nuse_lora: true\nlora_rank: 16\nmax_seq_length: 1024\n\
                per_device_train_batch_size: 2\ngradient_accumulation_steps: 4\n";
    let line =
        "accelerate launch --num_machines 1 --num_processes 8 open_instruct/finetune.py \"$CONFIG_FILE\"\n";
    let source = Source::from_files([("run.sh", line), ("mine.yaml", file)]);
    let read = read(&Request { source: &source, environment: &Environment::default(), overrides: &[] });
    assert!(!tells(&read, Code::MissingFile), "{:?}", read.diagnostics);
    assert_eq!(value(&read, Field::SeqLength), "1024");
}

/// open-instruct's programs have no option for it: accelerate's file says what is sharded.
#[test]
fn files_of_open_instruct_leave_sharding_to_the_launch() {
    let file = "model_name_or_path: meta-llama/Llama-2-7b-hf\nuse_slow_tokenizer: true\nmax_seq_length: 4096\n\
                preprocessing_num_workers: 8\nper_device_train_batch_size: 1\ngradient_accumulation_steps: 2\n\
                with_tracking: true\ndataset_mixer:\n  a/b: 1.0\n";
    let read = said("mine.yaml", file, &[("world_size", "8")]);
    let asked: Vec<&str> = read.questions.iter().map(|asked| asked.name()).collect();
    assert_eq!((asked, read.plan.is_some()), (vec!["zero_stage"], false), "{:?}", read.diagnostics);
}

/// Phi-2's layers are q_proj, k_proj, v_proj, dense, fc1 and fc2 (`transformers/models/phi/modeling_phi.py`).
#[test]
fn adapters_are_on_layers_that_the_model_has() {
    let recipe = |model: &str| {
        let text = format!(
            "recipe: TrainFinetuneRecipeForNextTokenPrediction\nstep_scheduler:\n  global_batch_size: 16\n  local_batch_size: 2\nmodel:\n  \
             _target_: nemo_automodel.NeMoAutoModelForCausalLM.from_pretrained\n  pretrained_model_name_or_path: {model}\npeft:\n  \
             _target_: nemo_automodel.components._peft.lora.PeftConfig\n  target_modules: '*_proj'\n  dim: 16\n"
        );
        let read = said("recipe.yaml", &text, &[("world_size", "8"), ("seq_length", "1024")]);
        value(&read, Field::LoraTargetModules)
    };
    assert_eq!(recipe("microsoft/phi-2"), "q_proj k_proj v_proj");
    assert_eq!(recipe("meta-llama/Llama-3.2-1B"), "q_proj k_proj v_proj o_proj gate_proj up_proj down_proj");
    let line = |targets: &str| {
        let text = format!(
            "python train.py --model_name_or_path microsoft/phi-2 --use_peft --lora_r 16 --lora_target_modules {targets} \
             --per_device_train_batch_size 2 --max_seq_length 512 --output_dir o --bf16\n"
        );
        value(&said("run.sh", &text, &[]), Field::LoraTargetModules)
    };
    assert_eq!(line("q_proj,v_proj,o_proj,gate_proj,up_proj,down_proj"), "q_proj v_proj");
    assert_eq!(line("q_proj,v_proj,dense,fc2"), "q_proj v_proj dense fc2");
}

/// NeMo 1: Apex's distributed Adam completes bf16 weights by 16 bits, where Megatron's holds them in fp32 once more.
#[test]
fn apexs_distributed_adam_keeps_remainders() {
    let with = |more: &str| {
        let text = format!(
            "trainer: {{num_nodes: 1, devices: 8, precision: bf16}}\nmodel:\n  mcore_gpt: true\n  num_layers: 12\n  hidden_size: 1024\n  \
             num_attention_heads: 16\n  encoder_seq_length: 1024\n  micro_batch_size: 1\n  global_batch_size: 32\n  vocab_size: 32000\n  \
             megatron_amp_O2: true\n  sync_batch_comm: false\n  grad_div_ar_fusion: true\n{more}"
        );
        said("nemo.yaml", &text, &[])
    };
    let apex = "  optim:\n    name: distributed_fused_adam\n    bucket_cap_mb: 125\n    contiguous_grad_buffer: true\n";
    let read = with(apex);
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    assert_eq!(value(&read, Field::UsePrecisionAwareOptimizer), "true");
    assert!(!tells(&read, Code::KeysNotRead), "{:?}", read.diagnostics);
    let other = with("  optim:\n    name: mcore_distributed_optim\n    ddp_bucket_size: 40000000\n");
    assert_eq!(value(&other, Field::UsePrecisionAwareOptimizer), "false");
    let stored = with(&format!("  fp8: true\n  fp8_params: true\n{apex}"));
    assert_eq!(value(&stored, Field::UsePrecisionAwareOptimizer), "false");
}

/// The first Qwen's own code (`modeling_qwen.py`) has one projection for queries, keys and values, and turns itself to bf16.
#[test]
fn the_first_qwen_runs_code_of_its_own() {
    let line = |model: &str| {
        let text = format!(
            "python finetune.py --model_name_or_path {model} --data_path d.json --bf16 True --output_dir o \
             --per_device_train_batch_size 1 --gradient_accumulation_steps 8 --evaluation_strategy no --model_max_length 512 \
             --gradient_checkpointing True --lazy_preprocess True --use_lora\n"
        );
        said("run.sh", &text, &[("model", "Qwen/Qwen1.5-7B-Chat")])
    };
    let first = line("Qwen/Qwen-7B-Chat");
    assert_eq!(value(&first, Field::FusedQkv), "true");
    assert_eq!(value(&first, Field::ParamsDtype), "bf16");
    assert!(first.questions.is_empty(), "{:?}", first.questions);
    assert!(first.plan.is_some(), "{:?}", first.diagnostics);
    assert_eq!(value(&line("Qwen/Qwen1.5-7B-Chat"), Field::FusedQkv), "");
}

/// accelerate's file that a launch names is asked for beside the pasted program, too, with options or without.
#[test]
fn a_launchs_file_counts_beside_its_program() {
    let parsed = "from trl import SFTConfig, SFTTrainer, ModelConfig, ScriptArguments, TrlParser\n\
        parser = TrlParser((ScriptArguments, SFTConfig, ModelConfig))\nscript_args, training_args, model_args = parser.parse_args_and_config()\n\
        trainer = SFTTrainer(model=model_args.model_name_or_path, args=training_args, train_dataset=data)\ntrainer.train()\n";
    let written = "from trl import SFTConfig, SFTTrainer\n\
        trainer = SFTTrainer(model='Qwen/Qwen2.5-7B', args=SFTConfig(max_length=2048, per_device_train_batch_size=2, bf16=True), train_dataset=data)\n\
        trainer.train()\n";
    let options =
        " --model_name_or_path Qwen/Qwen2.5-7B --max_length 2048 --per_device_train_batch_size 2 --bf16";
    let launch = "accelerate launch --num_processes 8 --config_file recipes/zero3.yaml sft.py";
    let engine = "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\nmixed_precision: bf16\n\
        num_machines: 1\nnum_processes: 8\n";
    for (program, options) in [(parsed, options), (written, "")] {
        let line = format!("{launch}{options}\n");
        let with = |files: &[(&str, &str)]| {
            let source = Source::from_files(files.iter().copied());
            read(&Request { source: &source, environment: &Environment::default(), overrides: &[] })
        };
        let open = with(&[("run.sh", &line), ("sft.py", program)]);
        let asked: Vec<&str> = open.questions.iter().map(|asked| asked.name()).collect();
        assert_eq!(
            (asked, open.plan.is_some()),
            (vec!["zero_stage"], false),
            "{line}: {:?}",
            open.diagnostics
        );
        let whole = with(&[("run.sh", &line), ("sft.py", program), ("zero3.yaml", engine)]);
        assert!(whole.plan.is_some(), "{line}: {:?} {:?}", whole.questions, whole.diagnostics);
        assert_eq!(
            [Field::ZeroStage, Field::DataParallelEngine].map(|field| value(&whole, field)),
            ["3", "deepspeed"]
        );
    }
}

/// accelerate's version of FSDP is 1 unless its file says otherwise.
#[test]
fn a_file_of_fsdp_is_of_the_first_version_unless_it_is_called_otherwise() {
    for (file, engine) in
        [("fsdp_config_qlora.yaml", "fsdp1"), ("fsdp2.yaml", "fsdp2"), ("zero2.yaml", "deepspeed")]
    {
        let line = format!(
            "accelerate launch --num_processes 8 --config_file configs/{file} train.py --model_name_or_path Qwen/Qwen2.5-7B --max_length 2048 \
             --per_device_train_batch_size 2 --bf16 --output_dir o\n"
        );
        assert_eq!(value(&said("run.sh", &line, &[]), Field::DataParallelEngine), engine, "{file}");
    }
}

/// A number of processes that is not known is no option of torchrun, whose default is one node; an empty list of devices is none.
#[test]
fn launchers_leave_open_what_a_text_leaves_open() {
    let asks = |text: &str| {
        let read = said("run.sh", text, &[]);
        read.questions.iter().map(|asked| asked.name().to_owned()).collect::<Vec<String>>()
    };
    let options = "train.py --model_name_or_path Qwen/Qwen2.5-7B --max_length 2048 --per_device_train_batch_size 2 --bf16 --output_dir o\n";
    assert_eq!(asks(&format!("torchrun --nproc-per-node ${{count}} {options}")), ["gpus_per_node"]);
    // Behind a switch a variable may be options.
    let switched = format!("python -m torch.distributed.launch --use_env $DISTRIBUTED_ARGS {options}");
    assert!(!asks(&switched).is_empty());
    let devices = asks(&format!("DEVICES=\"\"\ndeepspeed --include localhost:$DEVICES {options}"));
    assert!(devices.iter().any(|name| name == "gpus_per_node" || name == "world_size"), "{devices:?}");
}

/// Megatron's `--skip-train` and bigscience's `--eval-only` train nothing.
#[test]
fn an_evaluation_is_no_training() {
    let run = |more: &str| {
        let text = format!(
            "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 12 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 \
             --max-position-embeddings 1024 --micro-batch-size 2 --global-batch-size 64 --vocab-size 50257 --bf16 {more}\n"
        );
        said("run.sh", &text, &[])
    };
    assert!(run("").plan.is_some());
    for flag in ["--skip-train", "--zero-stage 0 --eval-only True"] {
        let read = run(flag);
        assert!(
            read.not_modelled.iter().any(|item| item.message.contains("an evaluation")),
            "{flag}: {:?}",
            read.not_modelled
        );
    }
}

/// bitsandbytes quantizes linear layers; the experts of a layer are one parameter in transformers 5.
#[test]
fn experts_under_bitsandbytes_stop() {
    let run = |model: &str| {
        let text = format!(
            "python train.py --model_name_or_path {model} --use_peft --load_in_4bit --lora_r 16 --lora_target_modules q_proj,v_proj \
             --per_device_train_batch_size 1 --max_length 1024 --output_dir o --bf16\n"
        );
        said("run.sh", &text, &[])
    };
    let stops = |read: &Resolution| {
        read.not_modelled.iter().any(|item| item.message.contains("bitsandbytes leaves in 16 bits"))
    };
    assert!(stops(&run("mistralai/Mixtral-8x7B-v0.1")));
    assert!(!stops(&run("Qwen/Qwen2.5-7B")));
}

/// torchtitan's small Qwen3 share one table for both ends (`models/qwen3/__init__.py:enable_weight_tying`).
#[test]
fn torchtitans_ends_are_tied_as_published() {
    let untied = |flavor: &str| {
        let text = format!(
            "def qwen3_mine() -> Trainer.Config:\n    return Trainer.Config(\n        hf_assets_path=\"./assets/hf/Qwen3-{flavor}\",\n        \
             model_spec=model_registry(\"{flavor}\"),\n        optimizer=default_adamw(lr=3e-4),\n        \
             training=TrainingConfig(num_tokens_per_microbatch_per_dp_rank=4096, max_context_length=4096, steps=100),\n    )\n"
        );
        value(
            &said("config_registry.py", &text, &[("world_size", "8")]),
            Field::UntieEmbeddingsAndOutputWeights,
        )
    };
    assert_eq!([untied("1.7B"), untied("8B")], ["false", "true"]);
}

/// nanotron trains on `tokens.sequence_length` whatever the model's limit is, and saved gathered inputs while the optimizer's arguments
/// stood by themselves.
#[test]
fn early_files_of_nanotron_are_read_as_their_release_did() {
    let run = |optimizer: &str| {
        let text = format!(
            "model:\n  dtype: bfloat16\n  model_config:\n    is_llama_config: true\n    hidden_size: 1024\n    intermediate_size: 4096\n    \
             num_hidden_layers: 8\n    num_attention_heads: 16\n    num_key_value_heads: 16\n    max_position_embeddings: 256\n    vocab_size: 32000\n\
             optimizer:\n  zero_stage: 0\n  accumulate_grad_in_fp32: true\n{optimizer}parallelism:\n  dp: 1\n  pp: 1\n  tp: 8\n  \
             tp_mode: REDUCE_SCATTER\n  tp_linear_async_communication: true\ntokens:\n  sequence_length: 1024\n  micro_batch_size: 2\n  \
             batch_accumulation_per_replica: 1\n"
        );
        let read = said("config.yaml", &text, &[]);
        [Field::GatheredInputs, Field::MaxPositionEmbeddings].map(|field| value(&read, field))
    };
    assert_eq!(run("  adam_beta1: 0.9\n  torch_adam_is_fused: true\n"), ["true", "1024"]);
    assert_eq!(
        run("  optimizer_factory:\n    name: adamW\n    adam_beta1: 0.9\n    torch_adam_is_fused: true\n"),
        ["false", "1024"]
    );
}

/// Managed memory is outside of PyTorch's, and CUDA moves it to the host when the device is full.
#[test]
fn states_of_paged_optimizers_are_outside_of_the_peak() {
    let bytes = |optimizer: &str| {
        let text = format!(
            "python train.py --model_name_or_path Qwen/Qwen2.5-7B --optim {optimizer} --per_device_train_batch_size 1 --max_length 1024 \
             --output_dir o --bf16 --gradient_checkpointing\n"
        );
        let plan = said("run.sh", &text, &[]).plan.unwrap_or_else(|| panic!("{optimizer}"));
        plan.recipe().optimizer.paged
    };
    assert_eq!(["paged_adamw_8bit", "adamw_bnb_8bit", "paged_lion_32bit"].map(bytes), [true, false, true]);
}

/// LLaMA-Factory's second format (`src/llamafactory/v1`): all weights train in fp32 and are reduced so; its loss is its own.
#[test]
fn llama_factorys_second_format_trains_in_fp32() {
    let run = |more: &str| {
        let text = format!(
            "model: Qwen/Qwen3-0.6B\nmodel_class: llm\ndist_config: {{name: fsdp2}}\ntrain_dataset: a\nmicro_batch_size: 1\n\
             cutoff_len: 2048\nlearning_rate: 1e-4\n{more}"
        );
        said("v1.yaml", &text, &[("world_size", "4")])
    };
    let of = |read: &Resolution| {
        [Field::ParamsDtype, Field::Bf16, Field::ReduceDtype].map(|field| value(read, field))
    };
    let usual = run("");
    assert_eq!(of(&usual), ["fp32", "true", "fp32"]);
    assert!(
        usual.not_modelled.iter().any(|item| item.message.contains("second format")),
        "{:?}",
        usual.not_modelled
    );
    assert_eq!(of(&run("bf16: false\n"))[0], "fp32");
}

/// "auto" is filled in by transformers' Trainer alone; DeepSpeed drops it.
#[test]
fn openrlhfs_buckets_have_deepspeeds_size() {
    let run = |program: &str, more: &str| {
        let text = format!(
            "deepspeed --num_gpus 8 --module openrlhf.cli.{program} --pretrain Qwen/Qwen2.5-7B --micro_train_batch_size 2 --train_batch_size 128 \
             --max_len 2048 --zero_stage 3 --bf16 {more}\n"
        );
        value(&said("run.sh", &text, &[]), Field::ReduceBucketSize)
    };
    assert_eq!(run("train_sft", ""), "500000000");
}

/// slime runs transformers' modules for them, whole on every tensor rank.
#[test]
fn linear_attention_of_slime_stops_where_it_would_be_cut() {
    let run = |ranks: u32| {
        let text = format!(
            "ray job submit -- python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 --colocate --hf-checkpoint Qwen/Qwen3.5-9B \
             --rollout-batch-size 32 --n-samples-per-prompt 8 --rollout-max-response-len 8192 --global-batch-size 256 \
             --tensor-model-parallel-size {ranks} --sequence-parallel --use-dynamic-batch-size --max-tokens-per-gpu 9216 --advantage-estimator grpo\n"
        );
        let read = said("run.sh", &text, &[]);
        read.not_modelled.iter().any(|item| item.message.contains("slime leaves whole"))
    };
    assert_eq!([run(1), run(2)], [false, true]);
}
