//! prime-rl's settings files: the defaults of its trainers, and what is not known about them.

use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::{Field, LossKind, NumberFormat, Objective, OptimizerKind, Plan, RolloutEngine};
use shardscope_source::Source;

fn resolved(text: &str) -> Resolution {
    let source = Source::from_files([("train.toml", text)]);
    let environment = Environment::default();
    read(&Request { source: &source, environment: &environment, overrides: &[] })
}

fn sft(model: &str, more: &str) -> String {
    format!(
        "max_steps = 10\n[model]\n{model}\n[data]\nname = \"x/y\"\nseq_len = 4096\nbatch_size = 32\n[optim]\nlr = 1e-5\n{more}"
    )
}

const QWEN: &str = "name = \"Qwen/Qwen3-4B\"";

#[track_caller]
fn plan(text: &str) -> Plan {
    let resolution = resolved(text);
    resolution.plan.unwrap_or_else(|| panic!("{:?} {:?}", resolution.diagnostics, resolution.not_modelled))
}

#[track_caller]
fn stopped_by(text: &str) -> Vec<String> {
    let resolution = resolved(text);
    assert!(resolution.plan.is_none(), "{text}");
    resolution.not_modelled.into_iter().map(|item| item.name).collect()
}

/// `ModelConfig`, `SFTDataConfig` and `SingleNodeDeploymentConfig` of `prime_rl/configs`.
#[test]
fn fine_tuning_does_what_its_configurations_say_unless_stated() {
    let plan = plan(&sft(QWEN, "[deployment]\nnum_train_gpus = 4\n"));
    let recipe = plan.recipe();
    assert_eq!((plan.layout().world_size, recipe.micro_batch_size, recipe.num_micro_batches), (4, 1, 8));
    assert_eq!((recipe.loss, recipe.tuning.objective), (LossKind::Tiled(8192), Objective::NextToken));
    assert_eq!([recipe.params_dtype, recipe.reduce_dtype()], [NumberFormat::Fp32; 2]);
    assert!(recipe.offload.saved_tensors && recipe.offload.states_for_step && !recipe.offload.optimizer);
    assert!(recipe.transformers.compiled_checkpoints);
    // The defaults are one GPU, and micro-batches of one row.
    assert_eq!(self::plan(&sft(QWEN, "")).layout().world_size, 1);
}

#[test]
fn what_is_said_counts() {
    let model = format!(
        "{QWEN}\noptimization_dtype = \"bfloat16\"\nac_offloading = \"None\"\noptim_cpu_offload = false\ncompile = \"None\"\n\
         fused_lm_head_token_chunk_size = 1024"
    );
    let plan = plan(&sft(
        &model,
        "[deployment]\ntype = \"multi_node\"\nnum_train_nodes = 4\nnodes_per_fsdp_group = 2\n",
    ));
    let recipe = plan.recipe();
    assert_eq!((plan.layout().world_size, plan.layout().distributed_optimizer_instances), (32, 2));
    assert_eq!((recipe.loss, recipe.params_dtype), (LossKind::Tiled(1024), NumberFormat::Bf16));
    assert!(!recipe.offload.saved_tensors && !recipe.offload.states_for_step);
    assert!(!recipe.transformers.compiled_checkpoints);
    let sgd = format!("{QWEN}\nfsdp_cpu_offload = true");
    let text = sft(&sgd, "").replace("lr = 1e-5", "type = \"sgd\"");
    let plan = self::plan(&text);
    assert_eq!(plan.recipe().optimizer.kind, OptimizerKind::SgdMomentum);
    assert!(plan.recipe().offload.parameters && !plan.recipe().offload.states_for_step);
}

/// A step's rollouts are packed into rows of `seq_len` tokens; vLLM has its own GPUs.
#[test]
fn reinforcement_learning_packs_rollouts() {
    let text = format!(
        "max_steps = 10\nseq_len = 8192\n[deployment]\nnum_train_gpus = 2\nnum_infer_gpus = 6\n[model]\n{QWEN}\n[orchestrator]\n\
         batch_size = 512\ngroup_size = 16\n[inference.vllm]\ntensor_parallel_size = 2\n"
    );
    let plan = plan(&text);
    let recipe = plan.recipe();
    assert_eq!(
        (plan.layout().world_size, plan.model().seq_length, recipe.sample_length),
        (2, 8192, Some(8192))
    );
    assert_eq!((recipe.num_micro_batches, recipe.tuning.objective), (256, Objective::Policy));
    let rollout = recipe.rollout.as_ref().unwrap_or_else(|| panic!("no rollouts"));
    assert_eq!((rollout.engine, rollout.own_gpus, rollout.tensor), (RolloutEngine::Vllm, Some(6), 2));
    // A table with nothing in it starts one too, by the defaults of its configuration (`entrypoints/rl.py`: `inference is not None`).
    let bare = self::plan(&text.replace(".vllm]\ntensor_parallel_size = 2\n", "]\n"));
    assert_eq!(bare.recipe().rollout.as_ref().and_then(|rollout| rollout.own_gpus), Some(6));
    // A server that the file does not start runs elsewhere.
    let apart = self::plan(&text.replace("[inference.vllm]\ntensor_parallel_size = 2\n", ""));
    assert_eq!(apart.recipe().rollout.as_ref().and_then(|rollout| rollout.own_gpus), Some(0));
    assert_eq!(
        stopped_by(&text.replace("[inference", "[trainer.model]\ncp = 2\n[inference")),
        ["trainer.model.cp"]
    );
}

/// Expert layers, transformers' layers with biases, adapters, and parts of layers were not recorded.
#[test]
fn what_was_not_recorded_stops() {
    let checkpoints = Field::CompiledCheckpoints.name();
    for name in ["Qwen/Qwen3-30B-A3B", "Qwen/Qwen2.5-7B", "google/gemma-2-9b"] {
        assert_eq!(stopped_by(&sft(&format!("name = \"{name}\""), "")), [checkpoints], "{name}");
    }
    for (more, key) in [
        ("ac = \"None\"", "compile"),
        ("[model.ac]\nmode = \"selective\"", "model.ac.mode"),
        ("[model.lora]\nrank = 16", "model.lora.rank"),
        ("full_offload = true", "model.full_offload"),
    ] {
        let stopped = stopped_by(&sft(&format!("{QWEN}\n{more}"), ""));
        assert!(stopped.iter().any(|name| name == key), "{more}: {stopped:?}");
    }
    let muon = sft(QWEN, "").replace("lr = 1e-5", "type = \"muon\"");
    assert_eq!(stopped_by(&muon), ["optim.type"]);
}
