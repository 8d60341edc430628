//! What ranks share, as stated in files of accelerate, FSDP and DeepSpeed.

use super::{said, script, stopped, value};
use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::{Field, NumberFormat, Software};
use shardscope_source::{Code, Source};

#[test]
fn what_accelerate_shards_stands_in_a_file_that_is_asked_for() {
    let text = "accelerate launch --num_processes 8 --config_file configs/fsdp2.yaml train.py --model_name_or_path Qwen/Qwen2.5-7B \
        --per_device_train_batch_size 1 --gradient_accumulation_steps 8 --max_length 2048 --bf16 true --num_train_epochs 1";
    let resolution = script(text);
    assert!(resolution.plan.is_none(), "the file decides what ranks share");
    assert!(resolution.questions.iter().any(|question| question.name() == "zero_stage"));
}

/// trl's `multi_gpu.yaml`: the ranks hold copies, in a format that the file leaves to its program. It was estimated
/// with Megatron's bf16 weights plus fp32 ones, 18 bytes each.
#[test]
fn accelerates_copies_have_the_format_that_their_program_loads() {
    let text = "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nmixed_precision: bf16\nnum_machines: 1\nnum_processes: 8\n";
    let given = [("model", "Qwen/Qwen2.5-7B"), ("seq_length", "2048"), ("micro_batch_size", "1")];
    let open = said("multi_gpu.yaml", text, &given);
    assert!(open.plan.is_none());
    let asked: Vec<_> =
        open.questions.iter().map(|asked| (asked.name(), asked.proposal.as_deref())).collect();
    assert_eq!(asked, [("params_dtype", Some("bf16"))]);
    for format in [NumberFormat::Bf16, NumberFormat::Fp32] {
        let answered = [&given[..], &[("params_dtype", format.name())]].concat();
        let read = said("multi_gpu.yaml", text, &answered);
        let recipe = read.plan.as_ref().expect("a plan").recipe();
        assert_eq!((recipe.software, recipe.params_dtype), (Software::HfTransformers, format));
    }
    let halves = said("fp16.yaml", &text.replace("bf16", "fp16"), &given);
    assert_eq!(halves.questions[0].proposal.as_deref(), Some("fp32"));
    // Sharding casts the weights, and a trainer's own options state their format.
    let policy = "fsdp_config:\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n";
    let sharded = format!("{}\n{policy}", text.replace("MULTI_GPU", "FSDP"));
    assert!(said("fsdp.yaml", &sharded, &given).plan.is_some());
    let script = "accelerate launch --config_file a.yaml train.py --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 1 \
        --gradient_accumulation_steps 8 --max_length 2048 --bf16 true --num_train_epochs 1";
    let source = Source::from_files([("a.yaml", text), ("run.sh", script)]);
    let both = read(&Request { source: &source, environment: &Environment::default(), overrides: &[] });
    assert!(both.questions.is_empty() && both.plan.is_some(), "{:?}", both.questions);
}

/// Without a wrapping policy the entire model is one unit, and by size an MLP may be one: both were given the figures
/// of layers.
#[test]
fn units_of_fsdp_that_are_no_layers_stop() {
    let file = |policy: &str| {
        let config = format!(
            "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nmixed_precision: bf16\nnum_machines: 1\nnum_processes: 8\n\
             fsdp_config:\n{policy}  fsdp_sharding_strategy: FULL_SHARD\n  fsdp_min_num_params: 100000000\n"
        );
        said(
            "acc.yaml",
            &config,
            &[("model", "Qwen/Qwen2.5-7B"), ("seq_length", "2048"), ("micro_batch_size", "1")],
        )
    };
    let policy = |word: &str| file(&format!("  fsdp_auto_wrap_policy: {word}\n"));
    assert!(policy("TRANSFORMER_BASED_WRAP").not_modelled.is_empty());
    for word in ["NO_WRAP", "SIZE_BASED_WRAP"] {
        stopped(&policy(word), &["fsdp_config.fsdp_auto_wrap_policy"]);
    }
    // A file that states none leaves it at accelerate's default, NO_WRAP.
    stopped(&file(""), &["distributed_type"]);
}

/// axolotl's templates leave `fsdp` and `fsdp_config` empty if nothing is sharded.
#[test]
fn an_empty_group_for_fsdp_shards_nothing() {
    let text = "base_model: meta-llama/Meta-Llama-3-8B\nsequence_len: 8192\nmicro_batch_size: 1\nadapter: lora\nlora_r: 8\n\
        lora_target_linear: true\nbf16: auto\nfsdp:\nfsdp_config:\nspecial_tokens:\n  pad_token: x\n";
    let empty = said("a.yml", text, &[("world_size", "8")]);
    let without = said("a.yml", &text.replace("fsdp:\nfsdp_config:\n", ""), &[("world_size", "8")]);
    for field in [Field::ZeroStage, Field::DataParallelEngine, Field::LoraKernels] {
        assert_eq!(value(&empty, field), value(&without, field), "{field:?}");
    }
    assert_eq!(empty.plan, without.plan);
    let group = "fsdp_config:\n  fsdp_sharding_strategy: FULL_SHARD\n";
    let sharded = said("a.yml", &text.replace("fsdp_config:\n", group), &[("world_size", "8")]);
    assert_eq!(
        (value(&sharded, Field::ZeroStage), value(&sharded, Field::DataParallelEngine)),
        ("3".into(), "fsdp1".into())
    );
}

/// Buffers and messages of DeepSpeed's ZeRO++ and MiCS stopped nothing, while its keys for clipping and logs marked
/// every answer.
#[test]
fn deepspeeds_own_ways_stop_and_its_logs_do_not() {
    let file = |more: &str| {
        let text = format!(
            "{{\"train_micro_batch_size_per_gpu\": \"auto\", \"gradient_clipping\": \"auto\", \"wall_clock_breakdown\": false, \
             \"steps_per_print\": 10, \"bf16\": {{\"enabled\": \"auto\"}}, \"zero_optimization\": {{\"stage\": 3{more}}}}}"
        );
        said("ds.json", &text, &[("world_size", "8"), ("model", "Qwen/Qwen2.5-7B"), ("seq_length", "4096")])
    };
    let plain = file("");
    assert!(plain.plan.is_some(), "{:?}", plain.diagnostics);
    assert_eq!(value(&plain, Field::NotRead), "");
    stopped(&file(", \"mics_shard_size\": 8"), &["zero_optimization.mics_shard_size"]);
    // ZeRO++'s second shards, which 1 turns off; a second file may leave weights on the host.
    let second = |size: u64, more: &str| file(&format!(", \"zero_hpz_partition_size\": {size}{more}"));
    let groups = |size: u64| second(size, "").plan.expect("a plan").layout().second_groups();
    assert_eq!([1, 4, 8, 16].map(groups), [0, 2, 1, 1]);
    assert!(second(3, "").plan.is_none(), "groups that do not divide the ranks");
    let host = ", \"offload_param\": {\"device\": \"cpu\"}";
    stopped(&second(8, host), &[Field::SecondWeightShards.name()]);
    // OpenRLHF's option for it.
    let open = |more: &str| {
        script(&format!(
            "deepspeed --num_nodes 2 --num_gpus 8 --module openrlhf.cli.train_sft --pretrain Qwen/Qwen2.5-7B --max_len 4096 \
             --zero_stage 3 --zpg 8 --bf16 --flash_attn --micro_train_batch_size 1 --train_batch_size 64 --dataset a {more}"
        ))
    };
    let plan = open("").plan.expect("a plan");
    assert_eq!((plan.layout().second_shards, plan.layout().second_groups()), (8, 2));
    stopped(&open("--lora_rank 8"), &[Field::SecondWeightShards.name()]);
    stopped(&file(", \"zero_quantized_gradients\": true"), &["zero_optimization.zero_quantized_gradients"]);
}

/// DeepSpeed's own checkpoints are called by Megatron's forks; transformers calls PyTorch's, so that a file for DeepSpeed
/// (1998frankchen/TravelMind `src/configs/ds_config.json`, shortened) changes nothing there.
#[test]
fn transformers_does_not_call_deepspeeds_checkpoints() {
    let text = r#"{"train_micro_batch_size_per_gpu": "auto", "bf16": {"enabled": true}, "zero_optimization": {"stage": 2},
        "activation_checkpointing": {"partition_activations": true, "cpu_checkpointing": true}}"#;
    let given = [("world_size", "8"), ("model", "Qwen/Qwen2.5-7B"), ("seq_length", "4096")];
    let read = said("ds.json", text, &given);
    let without = read.diagnostics.iter().filter(|said| said.code == Code::NoEffect).count();
    assert!(read.plan.is_some() && without == 2, "{:?}", read.diagnostics);
    let megatron = [&given[..], &[("software", "megatron_deepspeed")]].concat();
    stopped(&said("ds.json", text, &megatron), &[Field::CpuCheckpointing.name()]);
}

/// DeepSpeed's own checkpoints in a file with numbers of its own are no sign of transformers, which never calls them: "has no effect" was said of
/// them, with a verdict.
#[test]
fn a_deepspeed_configuration_alone_with_its_own_checkpoints_asks_whose_they_are() {
    let of = |more: &str, software: Option<&'static str>| {
        let text = format!(
            "{{\"train_batch_size\": 8, \"train_micro_batch_size_per_gpu\": 1, \"gradient_accumulation_steps\": 8, \"bf16\": \
             {{\"enabled\": true}}, \"zero_optimization\": {{\"stage\": 2}}, \"activation_checkpointing\": {{{more}}}}}"
        );
        let answers = [("model", "Qwen/Qwen2.5-7B"), ("seq_length", "4096"), ("world_size", "1")];
        let software = software.map(|software| ("software", software));
        said("ds_config.json", &text, &answers.into_iter().chain(software).collect::<Vec<_>>())
    };
    let on = "\"partition_activations\": true, \"cpu_checkpointing\": true";
    let alone = of(on, None);
    stopped(&alone, &[Field::CpuCheckpointing.name()]);
    let hints = |read: &Resolution| {
        let mut hints = read.diagnostics.iter().filter_map(|said| said.hint.as_deref());
        hints.any(|hint| hint.contains("set software to hf_transformers"))
    };
    assert!(hints(&alone), "{:?}", alone.diagnostics);
    let chosen = of(on, Some("hf_transformers"));
    assert!(chosen.plan.is_some(), "{:?}", chosen.diagnostics);
    let without = of("\"cpu_checkpointing\": false", None);
    assert_eq!(value(&without, Field::Software), "hf_transformers");
    assert!(without.plan.is_some() && !hints(&without), "{:?}", without.diagnostics);
}

/// LLaMA-Factory `examples/extras/galore/llama3_full_sft.yaml`, shortened: the Trainer takes `galore_layerwise` on one
/// accelerator alone, and eight were proposed.
#[test]
fn updates_layer_by_layer_propose_one_accelerator() {
    let text = "model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct\nstage: sft\nfinetuning_type: full\nuse_galore: true\n\
        galore_target: all\ngalore_rank: 128\ncutoff_len: 2048\nper_device_train_batch_size: 1\n\
        gradient_accumulation_steps: 1\npure_bf16: true\n";
    let proposed = |more: &str| {
        let read = said("a.yaml", &format!("{text}{more}"), &[]);
        read.questions
            .iter()
            .find(|question| question.name() == "world_size")
            .and_then(|one| one.proposal.clone())
    };
    assert_eq!(proposed("galore_layerwise: true\n").as_deref(), Some("1"));
    assert_eq!(proposed("").as_deref(), Some("8"));
    assert!(
        said("a.yaml", &format!("{text}galore_layerwise: true\n"), &[("world_size", "1")]).plan.is_some()
    );
}

/// liziniu/ReMax `step1_supervised_finetuning/training_scripts/llama2/run_llama2_7b.sh`, shortened: DeepSpeed-Chat's
/// `--offload` sets `offload_param` at every stage (`dschat/utils/ds_utils.py`), and DeepSpeed applies it from stage 3
/// on.
#[test]
fn weights_are_on_the_host_from_stage_3_on() {
    let held = |stage: &str, more: &str| {
        let file = format!(
            "{{\"train_micro_batch_size_per_gpu\": \"auto\", \"bf16\": {{\"enabled\": true}}, \"zero_optimization\": \
             {{\"stage\": {stage}, \"offload_optimizer\": {{\"device\": \"cpu\"}}{more}}}}}"
        );
        let given = [("world_size", "8"), ("model", "Qwen/Qwen2.5-7B"), ("seq_length", "4096")];
        let plan = said("ds.json", &file, &given).plan.expect("a plan");
        plan.recipe().offload.parameters
    };
    let host = ", \"offload_param\": {\"device\": \"cpu\"}";
    assert!(held("3", host) && !held("3", ""));
    for stage in ["0", "1", "2"] {
        assert!(!held(stage, host), "stage {stage}");
    }
    let chat = |stage: &str| {
        let resolution = script(&format!(
            "deepspeed --num_gpus 8 main.py --model_name_or_path meta-llama/Llama-2-7b-hf --per_device_train_batch_size 16 \
             --data_split 2,4,4 --max_seq_len 512 --gradient_accumulation_steps 1 --zero_stage {stage} --deepspeed \
             --output_dir log/step1_sft --gradient_checkpointing --offload"
        ));
        let reported = resolution.diagnostics.iter().any(|said| said.code == Code::NoEffect);
        (resolution.plan.expect("a plan").recipe().offload.parameters, reported)
    };
    assert_eq!((chat("2"), chat("3")), ((false, true), (true, false)));
}

/// `deepspeed:` of LLaMA-Factory as a group of keys was ignored: ZeRO-2 with states on the host, estimated as plain
/// data parallelism.
#[test]
fn deepspeeds_configuration_among_a_trainers_keys_counts() {
    let text = "model_name_or_path: Qwen/Qwen2.5-7B-Instruct\nstage: sft\nfinetuning_type: lora\nlora_target: q_proj\ncutoff_len: 2048\n\
        per_device_train_batch_size: 1\ngradient_accumulation_steps: 16\nfp16: true\ndeepspeed:\n  zero_optimization:\n    stage: 2\n    \
        offload_optimizer:\n      device: cpu\n  fp16:\n    enabled: true\n  train_micro_batch_size_per_gpu: 2\n";
    let read = said("a.yaml", text, &[("world_size", "4")]);
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    let fields =
        [Field::DataParallelEngine, Field::ZeroStage, Field::OffloadOptimizer, Field::MicroBatchSize];
    assert_eq!(fields.map(|field| value(&read, field)), ["deepspeed", "2", "true", "1"]);
    let reduced = format!("{text}  communication_data_type: fp32\n");
    stopped(&said("a.yaml", &reduced, &[("world_size", "4")]), &["communication_data_type"]);
}

/// OpenCoder's `stage1_example.sh`: the variable with the number of nodes also decides the accumulation. It was asked
/// for without a proposal, and the nodes a second time.
#[test]
fn a_variable_that_decides_nodes_and_accumulation_is_asked_once() {
    let text = "BATCH_SIZE=4096\nMICRO_BATCH_SIZE=8\nGRAD_ACCU=$(($BATCH_SIZE / $WORLD_SIZE / $MICRO_BATCH_SIZE / 8))\n\
        torchrun --nproc_per_node 8 --nnodes $WORLD_SIZE finetune.py --model_name_or_path Qwen/Qwen2.5-7B --model_max_length 1216 \
        --per_device_train_batch_size $MICRO_BATCH_SIZE --gradient_accumulation_steps $GRAD_ACCU --gradient_checkpointing True --bf16 True\n";
    let open = script(text);
    let asked: Vec<_> =
        open.questions.iter().map(|asked| (asked.name(), asked.proposal.as_deref())).collect();
    assert_eq!(asked, [("WORLD_SIZE", Some("1"))]);
    let source = Source::new(text);
    for (nodes, steps) in [("1", "64"), ("4", "16")] {
        let variables = vec![("WORLD_SIZE".to_owned(), nodes.to_owned())];
        let environment = Environment { variables, ..Environment::default() };
        let answered = read(&Request { source: &source, environment: &environment, overrides: &[] });
        assert!(answered.plan.is_some() && answered.questions.is_empty(), "{:?}", answered.questions);
        let of = [Field::NumNodes, Field::NumMicroBatches, Field::GlobalBatchSize]
            .map(|field| value(&answered, field));
        assert_eq!(of, [nodes, steps, "4096"]);
    }
}

/// Qwen3-Coder's `sft_qwencoder.sh` divides its batch of 1,024 by the GPUs that it counts. One micro-batch was
/// proposed, which gives a step of 32 sequences.
#[test]
fn what_is_divided_by_counted_gpus_is_proposed_as_it_comes_out() {
    let text = |count: &str, more: &str| {
        format!(
            "{more}GPUS_PER_NODE=$({count})\nNNODES=1\nGRAD_ACCU=$((1024 / ($GPUS_PER_NODE*$NNODES) / 4))\n\
             torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NNODES train.py --model_name_or_path Qwen/Qwen2.5-Coder-1.5B \
             --model_max_length 1280 --per_device_train_batch_size 4 --gradient_accumulation_steps $GRAD_ACCU --bf16 True\n"
        )
    };
    for (count, more, devices, steps) in [
        ("python -c \"import torch; print(torch.cuda.device_count());\"", "", "8", "32"),
        ("nvidia-smi -L | wc -l", "", "8", "32"),
        ("nvidia-smi -L | wc -l", "# on one node of 4xA100-80GB\n", "4", "64"),
    ] {
        let open = script(&text(count, more));
        let asked: Vec<_> =
            open.questions.iter().map(|asked| (asked.name(), asked.proposal.as_deref())).collect();
        assert_eq!(asked, [("num_micro_batches", Some(steps)), ("gpus_per_node", Some(devices))]);
        let answers: Vec<(&str, &str)> =
            asked.iter().map(|(name, value)| (*name, value.expect("a proposal"))).collect();
        let answered = said("run.sh", &text(count, more), &answers);
        assert!(answered.plan.is_some(), "{:?}", answered.diagnostics);
        assert_eq!(value(&answered, Field::GlobalBatchSize), "1024");
    }
}
