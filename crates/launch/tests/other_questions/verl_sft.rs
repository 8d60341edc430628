//! verl's supervised trainers: which of them reads a command, and what each of them does with it.

use super::{script, stopped, value};
use shardscope_launch::Resolution;
use shardscope_plan::Field;

const WORDS: &str = "data.train_batch_size=64 data.max_length=4096 optim.lr=1e-5";

fn engines(more: &str) -> Resolution {
    script(&format!(
        "torchrun --nnodes=1 --nproc_per_node=8 -m verl.trainer.sft_trainer {WORDS} model.path=Qwen/Qwen2.5-7B {more}\n"
    ))
}

fn yaml(text: &str) -> Resolution {
    super::said("mine.yaml", text, &[])
}

fn fsdp(program: &str, more: &str) -> Resolution {
    script(&format!(
        "torchrun --nnodes=1 --nproc_per_node=8 -m verl.trainer.{program} {WORDS} data.micro_batch_size_per_gpu=2 \
         model.partial_pretrain=Qwen/Qwen2.5-7B {more}\n"
    ))
}

/// `sft_trainer_ray.py` makes a pool of `trainer.n_gpus_per_node` workers on each of `trainer.nnodes`, 1 and 1 by default.
#[test]
fn rays_workers_are_as_many_as_the_keys_say() {
    let world = |more: &str| {
        let read = script(&format!(
            "python3 -m verl.trainer.sft_trainer_ray {WORDS} model.path=Qwen/Qwen2.5-7B {more}\n"
        ));
        assert!(read.plan.is_some(), "{more}: {:?} {:?}", read.not_modelled, read.questions);
        value(&read, Field::WorldSize)
    };
    assert_eq!(world("trainer.n_gpus_per_node=8 trainer.nnodes=2"), "16");
    assert_eq!(world("trainer.n_gpus_per_node=8"), "8");
    assert_eq!(world(""), "1");
}

/// `workers/config/optimizer.py:build_optimizer`.
#[test]
fn an_optimizer_of_another_module_stops() {
    for word in [
        "optim.optimizer_impl=torchao.optim",
        "optim.optimizer=SGD",
        "optim.override_optimizer_config.fused=true",
    ] {
        stopped(&engines(word), &[word.split('=').next().unwrap_or_default()]);
    }
    let usual = "optim.optimizer=AdamW optim.optimizer_impl=torch.optim optim.override_optimizer_config=null";
    assert!(engines(usual).plan.is_some());
}

/// `model.partial_pretrain` is a key of the FSDP trainer alone.
#[test]
fn one_trainer_reads_a_command() {
    for program in ["fsdp_sft_trainer", "sft_trainer"] {
        let read = fsdp(program, "engine.strategy=fsdp data.max_token_len_per_gpu=8192");
        let fields = [Field::DataParallelEngine, Field::SeqLength, Field::MicroBatchSize, Field::Packing];
        assert_eq!(fields.map(|field| value(&read, field)), ["fsdp2", "4096", "2", "false"], "{program}");
        assert_ne!(value(&read, Field::LossKind), "in_place_logits", "{program}");
        let unread = value(&read, Field::NotRead);
        assert!(unread.contains("engine.strategy"), "{unread}");
        assert!(unread.contains("data.max_token_len_per_gpu"), "{unread}");
    }
    assert_eq!(value(&engines(""), Field::LossKind), "in_place_logits");
}

/// `engine/fsdp/transformer_impl.py` asserts that samples are not padded, `rearrange_micro_batches` that each fits a micro-batch.
#[test]
fn samples_over_engines_are_joined_and_fit_a_micro_batch() {
    stopped(&engines("data.pad_mode=right"), &["data.pad_mode"]);
    let longest = |more: &str| value(&engines(more), Field::RolloutLength);
    assert_eq!(longest("data.pad_mode=no_padding"), "4096");
    assert_eq!(longest("data.max_token_len_per_gpu=2048"), "2048");
    let shared = "data.max_token_len_per_gpu=2048 engine.ulysses_sequence_parallel_size=2";
    assert_eq!(longest(shared), "4096");
}

/// `sft_trainer.yaml` of v0.3.0.post1, v0.4.0 and v0.4.1.
#[test]
fn defaults_of_the_fsdp_trainer_are_those_of_the_release() {
    let of = |release: &str| fsdp("fsdp_sft_trainer", &format!("\n{release}"));
    let fields = |release: &str| {
        let read = of(release);
        [Field::DataParallelEngine, Field::GradientCheckpointing].map(|field| value(&read, field))
    };
    assert_eq!(fields(""), ["fsdp2", "true"]);
    assert_eq!(fields("pip install verl==0.3.0"), ["fsdp1", "false"]);
    assert_eq!(fields("pip install verl==0.5.0"), ["fsdp2", "true"]);
    let between = of("pip install verl==0.4.0");
    assert!(between.questions.iter().any(|question| question.prompt.contains("since 0.4.1")));
    let stated = "model.enable_gradient_checkpointing=False\npip install verl==0.4.0";
    let read = fsdp("fsdp_sft_trainer", stated);
    assert!(read.plan.is_some() && value(&read, Field::GradientCheckpointing) == "false");
}

/// `workers/engine/fsdp/utils.py:create_device_mesh`.
#[test]
fn groups_of_the_world_are_no_replicas() {
    for size in ["-1", "8", "16"] {
        let read = engines(&format!("engine.fsdp_size={size}"));
        assert!(read.plan.is_some(), "{size}: {:?}", read.not_modelled);
        assert!(matches!(value(&read, Field::NumDistributedOptimizerInstances).as_str(), "" | "1"), "{size}");
    }
    let half = engines("engine.fsdp_size=4");
    assert!(half.plan.is_some(), "{:?}", half.not_modelled);
    assert_eq!(value(&half, Field::NumDistributedOptimizerInstances), "2");
    stopped(&engines("engine.fsdp_size=3"), &["engine.fsdp_size"]);
}

/// The supervised trainer over engines counts micro-batches in tokens, whatever its command leaves out
/// (`verl/trainer/config/sft_trainer_engine.yaml`, `verl/workers/engine/utils.py:prepare_micro_batches`).
#[test]
fn micro_batches_over_engines_are_packs_of_tokens() {
    let verl = |more: &str| {
        script(&format!(
            "torchrun --nproc_per_node=8 -m verl.trainer.sft_trainer data.train_batch_size=256 data.max_length=4096 \
             data.micro_batch_size_per_gpu=4 model.path=Qwen/Qwen2.5-7B optim.lr=1e-5 {more}"
        ))
    };
    for (more, tokens, packs) in [
        ("", "8192", "16"),
        ("engine.strategy=fsdp2", "8192", "16"),
        ("data.max_token_len_per_gpu=16384", "16384", "8"),
        // Ranks that share a sequence share a pack.
        ("engine.ulysses_sequence_parallel_size=2", "16384", "16"),
    ] {
        let read = verl(more);
        assert!(read.plan.is_some(), "{more}: {:?}", read.not_modelled);
        assert_eq!(
            (value(&read, Field::SeqLength), value(&read, Field::NumMicroBatches)),
            (tokens.to_owned(), packs.to_owned())
        );
        assert_eq!(value(&read, Field::LossKind), "in_place_logits");
    }
    let even = verl("data.use_dynamic_bsz=False");
    assert_eq!(
        (value(&even, Field::SeqLength), value(&even, Field::MicroBatchSize)),
        ("4096".to_owned(), "4".to_owned())
    );
    assert_eq!(value(&even, Field::LossKind), "in_place_logits");
    stopped(&verl("model.use_remove_padding=False"), &["model.use_remove_padding"]);
    let held = verl("engine.model_dtype=bfloat16 data.use_dynamic_bsz=False");
    assert_eq!(value(&held, Field::ParamsDtype), "bf16");
    assert!(
        verl("engine.strategy=fsdp2 engine.forward_prefetch=True data.use_dynamic_bsz=False").plan.is_some()
    );
    stopped(
        &verl("engine.reshard_after_forward=False data.use_dynamic_bsz=False"),
        &["engine.reshard_after_forward"],
    );
}

/// `sft_trainer.yaml` of v0.1, v0.2 and v0.3.0.post1, and what `fsdp_sft_trainer.py` of each makes of it. `examples/sft` to July 5,
/// 2025 state `trainer.default_hdfs_dir`.
#[test]
fn keys_of_before_0_4_tell_fsdp1_without_checkpointing() {
    let fields = |more: &str| {
        let read = fsdp("fsdp_sft_trainer", more);
        [Field::DataParallelEngine, Field::GradientCheckpointing].map(|field| value(&read, field))
    };
    // 0.4.1 has it as well, and checkpoints.
    let open = fsdp("fsdp_sft_trainer", "trainer.default_hdfs_dir=null");
    let asked =
        open.questions.iter().find(|asked| asked.name() == "gradient_checkpointing").expect("a question");
    assert_eq!((asked.proposal.as_deref(), open.plan.is_some()), (Some("false"), false));
    assert_eq!(fields("trainer.default_hdfs_dir=null\npip install verl==0.3.0"), ["fsdp1", "false"]);
    // Their own words count more, and keys of later releases.
    let stated = "trainer.default_hdfs_dir=null model.enable_gradient_checkpointing=True";
    assert_eq!(fields(stated), ["fsdp1", "true"]);
    for later in ["data.multiturn.tools_key=tools", "trainer.save_freq=10", "model.strategy=fsdp2"] {
        assert_eq!(fields(&format!("trainer.default_hdfs_dir=null {later}")), ["fsdp2", "true"], "{later}");
    }
    assert_eq!(fields("trainer.default_hdfs_dir=null\npip install verl==0.5.0"), ["fsdp2", "true"]);
    // A key that is added may be added to any release.
    assert_eq!(fields("+trainer.default_hdfs_dir=null"), ["fsdp2", "true"]);
}

/// A whole configuration, which lacks what the release lacks: `model.strategy` before 0.4, and in 0.1 micro-batches of a rank, of
/// which a rank takes its part (`_normalize_config_bsz`).
#[test]
fn a_settings_file_of_before_0_4_is_read_as_of_its_release() {
    let file = |data: &str, model: &str| {
        yaml(&format!(
            "data:\n  train_batch_size: 96\n  max_length: 512\n{data}model:\n  partial_pretrain: Qwen/Qwen2.5-0.5B\n  fsdp_config:\n    \
             wrap_policy:\n      min_num_params: 0\n    cpu_offload: False\n{model}optim:\n  lr: 1e-5\ntrainer:\n  total_epochs: 2\n  \
             default_local_dir: /tmp/mine\n"
        ))
    };
    let off = "  enable_gradient_checkpointing: False\n";
    let first = file("  micro_batch_size: 24\n", off);
    let values = [
        Field::DataParallelEngine,
        Field::GradientCheckpointing,
        Field::NumMicroBatches,
        Field::MicroBatchSize,
    ];
    assert_eq!(values.map(|field| value(&first, field)), ["fsdp1", "false", "4", ""]);
    let third = file("  micro_batch_size: null\n  micro_batch_size_per_gpu: 6\n", off);
    assert_eq!(values.map(|field| value(&third, field)), ["fsdp1", "false", "", "6"]);
    let fourth = file("  micro_batch_size_per_gpu: 6\n", "  strategy: fsdp2\n");
    assert_eq!(values.map(|field| value(&fourth, field)), ["fsdp2", "true", "", "6"]);
}

/// Since January 27, 2025 (#136) the trainer does not look at `data.micro_batch_size`.
#[test]
fn a_micro_batch_of_all_ranks_is_not_dropped_without_a_word() {
    let verl = |more: &str| {
        script(&format!(
            "torchrun --nnodes=1 --nproc_per_node=8 -m verl.trainer.fsdp_sft_trainer {WORDS} data.micro_batch_size=8 \
             model.partial_pretrain=Qwen/Qwen2.5-7B {more}\n"
        ))
    };
    let asked = verl("");
    assert!(
        asked
            .questions
            .iter()
            .any(|question| question.prompt.contains("data.micro_batch_size by the number of GPUs"))
    );
    for more in [
        "ulysses_sequence_parallel_size=2 use_remove_padding=true",
        "trainer.save_freq=10",
        "data.micro_batch_size_per_gpu=4",
    ] {
        let read = verl(more);
        assert_eq!(value(&read, Field::MicroBatchSize), "4", "{more}");
        let said =
            read.diagnostics.iter().any(|said| said.message.contains("has ignored data.micro_batch_size"));
        // It changes nothing, so that the verdict is not marked.
        assert!(said && value(&read, Field::NotRead).is_empty(), "{more}: {:?}", read.diagnostics);
    }
}
