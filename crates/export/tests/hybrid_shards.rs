//! Trainers that shard inside groups of ranks, with copies of the shards between them (HSDP), each in its own words.

use shardscope_bash::Environment;
use shardscope_export::{
    ACCELERATE_FILE, TITAN_FILE, accelerate_command, accelerate_yaml, torchtitan_command, torchtitan_toml,
};
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::{DpSharding, Field, Plan};
use shardscope_source::Source;

fn said(files: &[(&str, &str)]) -> Resolution {
    let source = Source::from_files(files.iter().copied());
    let overrides = [("accelerator".to_owned(), "H100-SXM".to_owned())];
    read(&Request { source: &source, environment: &Environment::default(), overrides: &overrides })
}

fn plan(files: &[(&str, &str)]) -> Plan {
    let resolution = said(files);
    resolution
        .plan
        .unwrap_or_else(|| panic!("{files:?}: {:?} {:?}", resolution.not_modelled, resolution.diagnostics))
}

/// Copies, ranks that share one of them, and what they share.
fn groups(plan: &Plan) -> (u64, u64, DpSharding) {
    let layout = plan.layout();
    (layout.distributed_optimizer_instances, layout.dense_shards(), plan.recipe().dp_sharding)
}

fn stopped(files: &[(&str, &str)], name: &str) {
    let resolution = said(files);
    assert!(resolution.plan.is_none(), "a verdict all the same");
    let reported = resolution.not_modelled.iter().any(|item| item.is_called(name));
    assert!(reported, "{name} among {:?}; {:?}", resolution.not_modelled, resolution.diagnostics);
}

fn titan(parallelism: &str) -> String {
    format!(
        "[job]\ndump_folder = \"out\"\n[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 1\n\
         seq_len = 8192\n[parallelism]\n{parallelism}\n[activation_checkpoint]\nmode = \"full\"\n"
    )
}

const TITAN: &str = "torchrun --nnodes 4 --nproc_per_node 8 -m torchtitan.train --job.config_file train.toml";

/// `parallel_dims.py`: -1 shards over the remaining ranks, and context-parallel ranks shard too.
#[test]
fn torchtitan_replicates_what_its_other_ranks_share() {
    let of = |parallelism: &str| {
        let toml = titan(parallelism);
        groups(&plan(&[("run.sh", TITAN), ("train.toml", &toml)]))
    };
    let whole = DpSharding::Parameters;
    assert_eq!(of("data_parallel_replicate_degree = 4"), (4, 8, whole));
    assert_eq!(of("data_parallel_replicate_degree = 4\ndata_parallel_shard_degree = 8"), (4, 8, whole));
    let of_tensors = "data_parallel_replicate_degree = 2\ntensor_parallel_degree = 2";
    assert_eq!(of(of_tensors), (2, 8, whole));
    let of_sequences =
        "data_parallel_replicate_degree = 4\ndata_parallel_shard_degree = 1\ncontext_parallel_degree = 8";
    assert_eq!(of(of_sequences), (4, 8, whole));
    let copies = "data_parallel_replicate_degree = 32\ndata_parallel_shard_degree = 1";
    assert_eq!(of(copies), (1, 32, DpSharding::Replicated));
    let kept = "data_parallel_replicate_degree = 4\nfsdp_reshard_after_forward = \"never\"";
    assert_eq!(of(kept), (4, 8, DpSharding::Gradients));
}

#[test]
fn torchtitans_file_says_copies_again() {
    let toml = titan("data_parallel_replicate_degree = 4\nfsdp_reshard_after_forward = \"always\"");
    let first = said(&[("run.sh", TITAN), ("train.toml", &toml)]);
    let exported = torchtitan_toml(&first);
    assert_eq!(exported.unsaid, [], "{}", exported.text);
    let command = torchtitan_command(&first);
    let again = plan(&[("run.sh", &command), (TITAN_FILE, &exported.text)]);
    assert_eq!(groups(&again), (4, 8, DpSharding::Parameters), "{}", exported.text);
}

/// accelerate's file of both kinds of groups is read back as the plan it was written from.
#[test]
fn accelerates_file_says_groups_again() {
    for (version, more) in [
        (1, "  fsdp_sharding_strategy: HYBRID_SHARD_ZERO2\n"),
        (
            2,
            "parallelism_config:\n  parallelism_config_dp_replicate_size: 2\n  parallelism_config_dp_shard_size: 16\n",
        ),
    ] {
        let file = format!(
            "distributed_type: FSDP\nmixed_precision: bf16\nnum_machines: 4\nnum_processes: 32\nfsdp_config:\n  \
             fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  fsdp_version: {version}\n{more}"
        );
        let first = said(&[("run.sh", SFT), ("fsdp.yaml", &file)]);
        let exported = accelerate_yaml(&first);
        assert_eq!(exported.unsaid, [], "{}", exported.text);
        let command = accelerate_command(&first);
        let again = plan(&[("run.sh", &command), (ACCELERATE_FILE, &exported.text)]);
        assert_eq!(groups(&again), groups(first.plan.as_ref().expect("a plan")), "{}", exported.text);
    }
}

const SFT: &str = "accelerate launch --config_file fsdp.yaml sft.py --model_name_or_path Qwen/Qwen3-8B --max_length 4096 \
     --per_device_train_batch_size 2 --bf16 true --attn_implementation flash_attention_2";

/// FSDP1's strategies shard within a node; FSDP2 has a mesh (`accelerate/parallelism_config.py:fsdp_dim_names`).
#[test]
fn accelerates_files_say_groups_by_node_or_by_size() {
    let config = |version: u64, more: &str| {
        format!(
            "distributed_type: FSDP\nmixed_precision: bf16\nnum_machines: 4\nnum_processes: 32\nfsdp_config:\n  \
             fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  fsdp_version: {version}\n{more}"
        )
    };
    let of = |version, more: &str| {
        let file = config(version, more);
        groups(&plan(&[("run.sh", SFT), ("fsdp.yaml", &file)]))
    };
    for (word, sharding) in [
        ("HYBRID_SHARD", DpSharding::Parameters),
        ("4", DpSharding::Parameters),
        ("HYBRID_SHARD_ZERO2", DpSharding::Gradients),
        ("5", DpSharding::Gradients),
    ] {
        assert_eq!(of(1, &format!("  fsdp_sharding_strategy: {word}\n")), (4, 8, sharding), "{word}");
    }
    assert_eq!(of(1, "  fsdp_sharding_strategy: FULL_SHARD\n"), (1, 32, DpSharding::Parameters));
    let mesh = |copies: u64, shards: u64| {
        format!(
            "parallelism_config:\n  parallelism_config_dp_replicate_size: {copies}\n  \
             parallelism_config_dp_shard_size: {shards}\n"
        )
    };
    assert_eq!(of(2, &mesh(2, 16)), (2, 16, DpSharding::Parameters));
    let name = "parallelism_config.parallelism_config_dp_replicate_size";
    stopped(&[("run.sh", SFT), ("fsdp.yaml", &config(2, &mesh(32, 1)))], name);
    stopped(&[("run.sh", SFT), ("fsdp.yaml", &config(1, &mesh(2, 16)))], name);
    // The same as options of the launch, which used to be ignored.
    let options = "--parallelism_config_dp_replicate_size 2 --parallelism_config_dp_shard_size 16 --use_parallelism_config";
    let file = config(2, "");
    let launched = SFT.replace("fsdp.yaml", &format!("fsdp.yaml --fsdp_version 2 --use_fsdp {options}"));
    assert_eq!(
        groups(&plan(&[("run.sh", &launched), ("fsdp.yaml", &file)])),
        (2, 16, DpSharding::Parameters)
    );
    let tensors =
        SFT.replace("fsdp.yaml", "fsdp.yaml --use_parallelism_config --parallelism_config_tp_size 2");
    stopped(&[("run.sh", &tensors), ("fsdp.yaml", &file)], "parallelism_config.parallelism_config_tp_size");
}

/// `transformers/training_args.py`: the words of `--fsdp` are the strategies of FSDP1.
#[test]
fn the_trainer_shares_within_a_node() {
    let of = |nodes: u64, word: &str| {
        let script = format!(
            "torchrun --nnodes {nodes} --nproc_per_node 8 sft.py --model_name_or_path Qwen/Qwen3-8B --max_length 4096 --bf16 true \
             --per_device_train_batch_size 2 --fsdp \"{word} auto_wrap\" --attn_implementation flash_attention_2"
        );
        groups(&plan(&[("run.sh", &script)]))
    };
    assert_eq!(of(2, "hybrid_shard"), (2, 8, DpSharding::Parameters));
    assert_eq!(of(2, "hybrid_shard_zero2"), (2, 8, DpSharding::Gradients));
    assert_eq!(of(1, "hybrid_shard"), (1, 8, DpSharding::Parameters));
    assert_eq!(of(2, "full_shard"), (1, 16, DpSharding::Parameters));
}

/// `components/distributed/mesh_utils.py`.
#[test]
fn automodel_has_copies_of_what_its_other_ranks_share() {
    let text = "step_scheduler: {global_batch_size: 64, local_batch_size: 1}\nmodel: {pretrained_model_name_or_path: \
                Qwen/Qwen2.5-7B, force_hf: true}\ndistributed: {strategy: fsdp2, dp_replicate_size: 2}\ndataset: {seq_len: 4096}\n";
    let source = Source::from_files([("a.yaml", text)]);
    let overrides = [("world_size", "16"), ("accelerator", "H100-SXM")];
    let overrides = overrides.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let run = read(&Request { source: &source, environment: &Environment::default(), overrides: &overrides });
    assert_eq!(groups(&run.plan.expect("a plan")), (2, 8, DpSharding::Parameters));
}

/// `torchtune/training/_distributed.py:ParallelDims`.
#[test]
fn torchtune_has_copies_of_what_its_other_ranks_share() {
    let file = |more: &str| {
        format!(
            "model:\n  _component_: torchtune.models.llama3_1.llama3_1_8b\ntokenizer: {{_component_: \
             torchtune.models.llama3.llama3_tokenizer, max_seq_len: 2048}}\nbatch_size: 2\noptimizer: {{_component_: \
             torch.optim.AdamW}}\ndtype: bf16\nenable_activation_checkpointing: true\n{more}\n"
        )
    };
    let launch = "tune run --nnodes 2 --nproc_per_node 8 full_finetune_distributed --config a.yaml";
    let of = |more: &str| groups(&plan(&[("run.sh", launch), ("a.yaml", &file(more))]));
    assert_eq!(of("data_parallel_replicate_dim: 2"), (2, 8, DpSharding::Parameters));
    assert_eq!(
        of("data_parallel_replicate_dim: 2\ndata_parallel_shard_dim: 8"),
        (2, 8, DpSharding::Parameters)
    );
    let alone = file("data_parallel_replicate_dim: 16\ndata_parallel_shard_dim: 1");
    stopped(&[("run.sh", launch), ("a.yaml", &alone)], "data_parallel_replicate_dim");
}

/// verl's supervised trainer over engines makes the mesh that its other workers do.
#[test]
fn verls_supervised_trainer_shares_within_groups_of_a_size() {
    let of = |nodes: &str, machines: &str, size: &str| {
        let script = format!(
            "torchrun --nnodes {nodes} --nproc_per_node 8 -m verl.trainer.sft_trainer data.train_batch_size=64 data.use_dynamic_bsz=False \
             data.micro_batch_size_per_gpu=1 data.max_length=2048 model.path=Qwen/Qwen2.5-7B {machines} {size}"
        );
        said(&[("run.sh", &script)])
    };
    let stated = "trainer.nnodes=4 trainer.n_gpus_per_node=8";
    // What the launcher starts counts as much as what the trainer's own keys say.
    for machines in [stated, ""] {
        let shared = of("4", machines, "engine.fsdp_size=8").plan.expect("a plan");
        assert_eq!(groups(&shared), (4, 8, DpSharding::Parameters));
    }
    assert_eq!(groups(&of("4", stated, "engine.fsdp_size=-1").plan.expect("a plan")).0, 1);
    let unknown = of("$WORLD_SIZE", "", "engine.fsdp_size=8").not_modelled;
    assert!(unknown.iter().any(|item| item.is_called("engine.fsdp_size")));
}

#[test]
fn nodes_are_no_groups_where_nothing_says_so() {
    let resolution = said(&[
        ("run.sh", SFT),
        ("fsdp.yaml", "distributed_type: FSDP\nnum_machines: 4\nnum_processes: 32\n"),
    ]);
    assert!(
        resolution.setting(Field::ShardWithinNodes).is_none_or(|setting| setting.value.written() != "true")
    );
}

/// `lingua/distributed.py:get_device_mesh`; layers stay gathered.
#[test]
fn lingua_shares_within_groups_of_a_size() {
    let text = "name: mine\nsteps: 1000\noptim: {lr: 3e-3}\ndistributed: {fsdp_type: full_shard, compile: true, model_dtype: bf16, dp_shard: 4}\n\
                model: {dim: 2048, n_layers: 25, n_heads: 16, vocab_size: 128256}\ndata: {batch_size: 4, seq_len: 4096}\nprobe_freq: null\n";
    let source = Source::from_files([("a.yaml", text)]);
    let of = |gpus: &str| {
        let overrides = [("world_size", gpus), ("accelerator", "H100-SXM")];
        let overrides = overrides.map(|(name, value)| (name.to_owned(), value.to_owned()));
        read(&Request { source: &source, environment: &Environment::default(), overrides: &overrides })
    };
    assert_eq!(groups(&of("16").plan.expect("a plan")), (4, 4, DpSharding::Gradients));
    let uneven = of("6");
    assert!(uneven.plan.is_none());
    assert!(
        uneven.diagnostics.iter().any(|said| said.message.contains("groups of 4")),
        "{:?}",
        uneven.diagnostics
    );
}

/// `axolotl/utils/distributed.py:_get_parallel_config_kwargs`: only FSDP2 has a mesh.
#[test]
fn axolotl_has_copies_of_what_ranks_share() {
    let file = |version: u64, more: &str| {
        format!(
            "base_model: Qwen/Qwen3-8B\nsequence_len: 4096\nmicro_batch_size: 1\ngradient_accumulation_steps: 2\nbf16: true\noptimizer: \
             adamw_torch_fused\nflash_attention: true\nfsdp_version: {version}\nfsdp_config:\n  reshard_after_forward: true\n  \
             transformer_layer_cls_to_wrap: Qwen3DecoderLayer\n{more}\n"
        )
    };
    let launch = "torchrun --nnodes 2 --nproc_per_node 8 -m axolotl.cli.train a.yaml";
    let of = |more: &str| groups(&plan(&[("run.sh", launch), ("a.yaml", &file(2, more))]));
    assert_eq!(of(""), (1, 16, DpSharding::Parameters));
    assert_eq!(of("dp_shard_size: 4"), (4, 4, DpSharding::Parameters));
    assert_eq!(of("dp_replicate_size: 2"), (2, 8, DpSharding::Parameters));
    assert_eq!(of("dp_replicate_size: 2\ndp_shard_size: 8"), (2, 8, DpSharding::Parameters));
    stopped(&[("run.sh", launch), ("a.yaml", &file(1, "dp_shard_size: 4"))], "dp_shard_size");
}
