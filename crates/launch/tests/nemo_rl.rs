//! NeMo-RL: its workers on PyTorch and on Megatron, and what else shares their accelerators.

use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::{LossKind, NumberFormat, Recompute, RecomputeModule, Residence};
use shardscope_source::{Code, Source};

fn resolved(name: &str, text: &str) -> Resolution {
    let source = Source::from_files([(name, text)]);
    let environment = Environment::default();
    read(&Request { source: &source, environment: &environment, overrides: &[] })
}

/// Names of the settings that stop the verdict.
fn stopped_by(resolution: &Resolution) -> Vec<&str> {
    resolution.not_modelled.iter().map(|item| item.name.as_str()).collect()
}

/// A recipe of NeMo-RL on DTensor, with `more` below `policy.dtensor_cfg`.
fn dtensor(base: &str, more: &str) -> Resolution {
    let text = format!(
        "defaults: {base}\npolicy:\n  model_name: Qwen/Qwen2.5-7B\n  dtensor_cfg:\n    activation_checkpointing: true\n{more}\
         cluster:\n  gpus_per_node: 8\n  num_nodes: 2\ngrpo:\n  num_prompts_per_step: 64\n"
    );
    resolved("grpo.yaml", &text)
}

/// `MixedPrecisionPolicy(param_dtype, reduce_dtype=torch.float32, output_dtype=torch.float32)` of
/// `nemo_rl/models/automodel/setup.py`. Recorded with transformers 5.6.0 and torch 2.15 on a CPU: under reentrant
/// checkpointing every layer but the first saves its input in fp32.
#[test]
fn layers_of_nemo_rl_hand_on_fp32() {
    let run = dtensor("grpo_math_1B.yaml", "");
    assert!(stopped_by(&run).is_empty(), "{:?}", run.diagnostics);
    let plan = run.plan.unwrap_or_else(|| panic!("{:?}", run.diagnostics));
    assert_eq!(plan.recipe().reduce_dtype(), NumberFormat::Fp32);
    assert_eq!(plan.recipe().stream_dtype(), NumberFormat::Fp32);
    assert_eq!(plan.recipe().module_dtype(), NumberFormat::Bf16);
    // `torch_dtype=torch.float32` of its model's configuration, including adapters and their base weights.
    assert_eq!([plan.recipe().params_dtype, plan.recipe().grads_dtype], [NumberFormat::Fp32; 2]);
}

/// `checkpoint_wrapper` around `mlp`, `self_attn` and both norms (`nemo_rl/models/dtensor/parallelize.py`), if `_v2` is
/// off. Shards on the host are those of `CPUOffloadPolicy`.
#[test]
fn the_older_worker_of_nemo_rl_checkpoints_modules() {
    let modules = [RecomputeModule::Attention, RecomputeModule::Mlp, RecomputeModule::LayerNorm];
    let older = dtensor("grpo_math_1B.yaml", "    _v2: false\n    cpu_offload: true\n");
    assert!(stopped_by(&older).is_empty(), "{:?}", older.diagnostics);
    let plan = older.plan.unwrap_or_else(|| panic!("{:?}", older.diagnostics));
    assert_eq!(plan.recipe().recompute, Recompute::Selective(modules.to_vec()));
    assert!(plan.recipe().offload.parameters && plan.recipe().offload.optimizer);
    let based =
        dtensor("dapo-qwen2.5-7b.v2.yaml", "    tensor_parallel_size: 1\n    context_parallel_size: 1\n");
    let plan = based.plan.unwrap_or_else(|| panic!("{:?}", based.diagnostics));
    assert_eq!(plan.recipe().recompute, Recompute::Selective(modules.to_vec()));
    let cut = dtensor("grpo_math_1B.yaml", "    _v2: false\n    tensor_parallel_size: 2\n");
    assert_eq!(stopped_by(&cut), ["tensor_model_parallel_size"]);
}

/// A single depth of multi-token prediction, or none, has no other depth to share its layer with.
#[test]
fn a_lone_depth_of_nemo_rl_shares_its_layer_with_none() {
    let with = |depths: u64| {
        let text = format!(
            "defaults: grpo_math_1B.yaml\ngrpo:\n  num_prompts_per_step: 16\npolicy:\n  model_name: Qwen/Qwen2.5-7B\n  \
             megatron_cfg:\n    enabled: true\n    mtp_num_layers: {depths}\n    mtp_use_repeated_layer: true\n"
        );
        resolved("grpo.yaml", &text)
    };
    let name = "policy.megatron_cfg.mtp_use_repeated_layer";
    assert!(!stopped_by(&with(0)).contains(&name) && !stopped_by(&with(1)).contains(&name));
    assert!(stopped_by(&with(2)).contains(&name));
}

/// An unknown engine that uses separate accelerators holds nothing on those that train; on the same ones it stops the
/// verdict.
#[test]
fn an_engine_of_nemo_rl_on_accelerators_of_its_own_stops_nothing() {
    let with = |colocated: &str| {
        let text = format!(
            "defaults: grpo_math_1B_megatron.yaml\ngrpo:\n  num_prompts_per_step: 16\npolicy:\n  model_name: Qwen/Qwen2.5-0.5B\n  \
             generation:\n    backend: trtllm\n    colocated: {colocated}\ncluster: {{gpus_per_node: 8, num_nodes: 2}}\n"
        );
        resolved("grpo.yaml", &text)
    };
    let apart = with("{enabled: false, resources: {num_nodes: 1, gpus_per_node: 8}}");
    assert_eq!(own_gpus_of(&apart), Some(0));
    assert_eq!(apart.plan.as_ref().map(|plan| plan.layout().world_size), Some(8));
    assert!(apart.diagnostics.iter().any(|said| said.code == Code::NotEstimated), "{:?}", apart.diagnostics);
    assert_eq!(stopped_by(&with("{enabled: true}")), ["policy.generation.backend"]);
}

/// `total_tokens_in_mbs` of `nemo_rl/distributed/batched_data_dict.py`: samples are padded to the longest; packed ones
/// (`sequence_packing`) form one sequence.
#[test]
fn tokens_of_nemo_rl_are_padded_samples_unless_they_are_packed() {
    let with = |group: &str, tokens: u64| {
        let both = |on: &str| if on == group { "true" } else { "false" };
        let text = format!(
            "defaults: grpo_math_1B.yaml\ngrpo:\n  num_prompts_per_step: 64\npolicy:\n  model_name: Qwen/Qwen2.5-7B\n  \
             max_total_sequence_length: 2048\n  sequence_packing: {{enabled: {}, train_mb_tokens: 16384}}\n  \
             dynamic_batching: {{enabled: {}, train_mb_tokens: {tokens}}}\ncluster: {{gpus_per_node: 8, num_nodes: 1}}\n",
            both("packing"),
            both("dynamic"),
        );
        let run = resolved("grpo.yaml", &text);
        let plan = run.plan.unwrap_or_else(|| panic!("{:?} {:?}", run.diagnostics, run.not_modelled));
        (plan.recipe().micro_batch_size, plan.model().seq_length, plan.recipe().sample_length)
    };
    assert_eq!(with("dynamic", 8192), (4, 2048, None));
    assert_eq!(with("packing", 8192), (1, 16384, Some(2048)));
    // Four samples of 1,500 tokens fill a micro-batch that two of 2,048 do not.
    assert_eq!(with("dynamic", 6000), (1, 6000, Some(2048)));
}

fn own_gpus_of(resolution: &Resolution) -> Option<u64> {
    let plan = resolution.plan.as_ref().unwrap_or_else(|| panic!("{:?}", resolution.diagnostics));
    plan.recipe().rollout.as_ref().and_then(|rollout| rollout.own_gpus)
}

/// The plans of Llama, Qwen2 and Qwen3 were recorded; with adapters, older workers with sharded sequences, user-defined
/// plans and chunks of tokens they were not.
#[test]
fn a_policy_of_nemo_rl_runs_over_tensor_ranks() {
    let cut = |more: &str| dtensor("grpo_math_1B.yaml", &format!("    tensor_parallel_size: 2\n{more}"));
    let run = cut("    sequence_parallel: true\n");
    assert!(stopped_by(&run).is_empty(), "{:?}", run.diagnostics);
    let plan = run.plan.unwrap_or_else(|| panic!("{:?}", run.diagnostics));
    assert_eq!([plan.layout().tensor, plan.layout().data], [2, 8]);
    assert!(plan.layout().sequence_parallel && plan.recipe().transformers.dtensor_plan);
    assert_eq!(plan.recipe().loss, LossKind::Distributed);
    let tensor = "tensor_model_parallel_size";
    assert_eq!(stopped_by(&cut("    lora_cfg: {enabled: true, dim: 8}\n")), [tensor]);
    let plan = "policy.dtensor_cfg.custom_parallel_plan";
    assert_eq!(stopped_by(&cut("    custom_parallel_plan: mine.plan\n")), [plan]);
    assert_eq!(stopped_by(&cut("  logprob_chunk_size: 1024\n")), ["policy.logprob_chunk_size"]);
    // Without checkpointing, because the older worker's own method stops the verdict.
    let older = |more: &str| {
        let text = format!(
            "defaults: sft.yaml\npolicy:\n  model_name: meta-llama/Llama-3.1-8B\n  max_total_sequence_length: 2048\n  dtensor_cfg:\n    \
             _v2: false\n    tensor_parallel_size: 2\n{more}cluster: {{gpus_per_node: 8, num_nodes: 1}}\n"
        );
        resolved("sft.yaml", &text)
    };
    assert!(older("").plan.is_some());
    assert_eq!(stopped_by(&older("    sequence_parallel: true\n")), [tensor]);
}

/// Logits filtered by sampling's top-k or top-p are sorted in training too.
#[test]
fn filtered_logits_of_nemo_rl_stop_by_name() {
    let with = |more: &str| dtensor("grpo_math_1B.yaml", &format!("  generation: {{{more}}}\n"));
    assert!(stopped_by(&with("top_p: 1.0, top_k: -1")).is_empty());
    assert_eq!(stopped_by(&with("top_p: 0.9")), ["policy.generation.top_p"]);
    assert_eq!(stopped_by(&with("top_k: 50")), ["policy.generation.top_k"]);
}

/// A critic under DTensor, as for the policy, trains in its own phase; one with a different model, or a sharded one, is
/// not modelled.
#[test]
fn a_critic_of_nemo_rl_has_a_phase() {
    let with = |more: &str| {
        let text = format!(
            "defaults: ppo_math_1B.yaml\npolicy:\n  model_name: Qwen/Qwen2.5-1.5B\n  max_total_sequence_length: 1024\n\
             value:\n{more}cluster: {{gpus_per_node: 8, num_nodes: 1}}\n"
        );
        resolved("ppo.yaml", &text)
    };
    let run = with("  train_micro_batch_size: 2\n");
    assert!(stopped_by(&run).is_empty(), "{:?}", run.diagnostics);
    let rollout = run.plan.as_ref().and_then(|plan| plan.recipe().rollout).expect("rollouts");
    assert_eq!(rollout.critic, Residence::Host);
    // The policy's micro-batches are counted in tokens, the critic's are two sequences of 1024.
    assert_eq!(rollout.critic_batch, Some(2048));
    assert!(rollout.offloads.weights && rollout.offloads.optimizer);
    for more in [
        "  model_name: Qwen/Qwen2.5-7B\n",
        "  dtensor_cfg: {tensor_parallel_size: 2}\n",
        "  dynamic_batching: {enabled: true}\n",
        "  dtensor_cfg: {activation_checkpointing: true}\n",
    ] {
        assert_eq!(stopped_by(&with(more)), ["value"], "{more}");
    }
}

/// Tensor parallelism of NeMo-RL's DTensor policies for a model whose plan was not recorded stops by name, and the user
/// may continue with only data parallelism.
#[test]
fn a_policy_of_nemo_rl_that_is_cut_stops_and_can_be_gone_on_with() {
    let text = "defaults: grpo_math_1B.yaml\npolicy:\n  model_name: mistralai/Mistral-7B-v0.3\n  dtensor_cfg:\n    tensor_parallel_size: 2\n\
        cluster:\n  gpus_per_node: 8\n  num_nodes: 2\ngrpo:\n  num_prompts_per_step: 64\n";
    let with = |overrides: &[(&str, &str)]| {
        let source = Source::from_files([("grpo.yaml", text)]);
        let environment = Environment::default();
        let overrides: Vec<(String, String)> =
            overrides.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        read(&Request { source: &source, environment: &environment, overrides: &overrides })
    };
    let cut = with(&[]);
    assert!(cut.plan.is_none());
    assert_eq!(stopped_by(&cut), ["tensor_model_parallel_size"]);
    assert!(cut.diagnostics.iter().all(|said| said.code != Code::DataParallelAlone), "{:?}", cut.diagnostics);
    let gone_on = with(&[("without", "tensor_model_parallel_size")]);
    let plan = gone_on.plan.unwrap_or_else(|| panic!("{:?}", gone_on.diagnostics));
    assert_eq!([plan.layout().tensor, plan.layout().data], [1, 16]);
    assert_eq!(plan.recipe().marks.without, ["tensor_model_parallel_size"]);
}

/// A deletion of Hydra's, and words for which the file has no place, were passed over in silence.
#[test]
fn words_that_have_no_place_in_the_file_stop() {
    let path = format!("{}/../../tests/data/formats/cases/nemo_rl/grpo.yaml", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::read_to_string(path).expect("the case");
    let with = |words: &str| {
        let script = format!("uv run examples/run_grpo_math.py --config c.yaml {words}\n");
        let source = Source::from_files([("c.yaml", file.as_str()), ("run.sh", &script)]);
        read(&Request { source: &source, environment: &Environment::default(), overrides: &[] })
    };
    let before = stopped_by(&with("")).len();
    for (words, name) in [
        ("~policy.dtensor_cfg.activation_checkpointing", "policy.dtensor_cfg.activation_checkpointing"),
        ("~policy.dtensor_cfg policy.max_total_sequence_length=2048", "policy.dtensor_cfg"),
        ("policy.max_total_sequence_length.x=1", "policy.max_total_sequence_length.x"),
    ] {
        let read = with(words);
        assert!(stopped_by(&read).contains(&name), "{words}: {:?}", read.not_modelled);
        assert!(read.plan.is_none(), "{words}");
    }
    let deep = with(&format!("policy.{}a=1", "a.".repeat(15_000)));
    assert!(deep.plan.is_none() && stopped_by(&deep).len() == before + 1);
    let set = with("policy.max_total_sequence_length=2048 policy.megatron_cfg.enabled=true");
    assert_eq!(stopped_by(&set).len(), before, "{:?}", set.not_modelled);
}
