//! Vision towers under FSDP in frameworks of reinforcement learning that took their sharding from verl.

use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::Field;
use shardscope_source::Source;

/// The reading, with an answer to the question for the images of a sample where there is one.
fn resolved(name: &str, text: &str) -> Resolution {
    let source = Source::from_files([(name, text)]);
    let given = |overrides: &[(String, String)]| {
        read(&Request { source: &source, environment: &Environment::default(), overrides })
    };
    let open = given(&[]);
    if open.questions.iter().any(|question| question.name() == "image_patches") {
        return given(&[("image_patches".to_owned(), "1024".to_owned())]);
    }
    open
}

/// Names of the settings that stop the verdict.
fn stopped_by(resolution: &Resolution) -> Vec<&str> {
    resolution.not_modelled.iter().map(|item| item.name.as_str()).collect()
}

fn written(resolution: &Resolution, field: Field) -> Option<String> {
    resolution.setting(field).map(|setting| setting.value.written())
}

/// `skyrl/backends/skyrl_train/distributed/fsdp_utils.py:apply_fsdp2`: units are what transformers does not split, unless classes
/// are named; inputs require gradients with adapters (`workers/model_wrapper.py`).
#[test]
fn skyrl_gathers_a_towers_layers_one_by_one() {
    let with = |more: &str| {
        let text = format!(
            "python -m skyrl.train.entrypoints.main_base trainer.policy.model.path=Qwen/Qwen3-VL-8B-Instruct trainer.strategy=fsdp \
             trainer.placement.colocate_all=true trainer.placement.policy_num_gpus_per_node=8 trainer.placement.ref_num_gpus_per_node=8 \
             generator.inference_engine.num_engines=8 generator.inference_engine.tensor_parallel_size=1 \
             generator.inference_engine.backend=vllm generator.inference_engine.gpu_memory_utilization=0.8 \
             trainer.train_batch_size=128 trainer.policy_mini_batch_size=64 trainer.micro_forward_batch_size_per_gpu=4 \
             trainer.micro_train_batch_size_per_gpu=4 trainer.remove_microbatch_padding=false trainer.max_prompt_length=1024 \
             generator.sampling_params.max_generate_length=2048 generator.n_samples_per_prompt=4 \
             trainer.algorithm.advantage_estimator=grpo trainer.algorithm.use_kl_loss=false {more}\n"
        );
        resolved("run.sh", &text)
    };
    let whole = with("");
    let plan = whole.plan.as_ref().unwrap_or_else(|| panic!("{:?}", whole.diagnostics));
    assert!(plan.model().vision.is_some());
    assert_eq!(written(&whole, Field::VisionUnits).as_deref(), Some("unsplit"));
    assert_eq!(written(&whole, Field::VisionInputGrads).as_deref(), Some("false"));
    let classes =
        "trainer.policy.fsdp_config.wrap_policy.transformer_layer_cls_to_wrap=Qwen3VLTextDecoderLayer";
    assert_eq!(stopped_by(&with(classes)), ["vision_tower"]);
    // Without its tower: transformers takes Qwen3.5's decoder out of the checkpoint, and has no such class for Qwen3-VL.
    let alone = "trainer.policy.language_model_only=true generator.inference_engine.language_model_only=true";
    assert!(with(alone).plan.is_some_and(|plan| plan.model().vision.is_some()));
    for engine in ["fsdp", "megatron"] {
        let decoder =
            with(&format!("{alone} trainer.strategy={engine} trainer.policy.model.path=Qwen/Qwen3.5-9B"));
        let plan = decoder.plan.as_ref().unwrap_or_else(|| panic!("{engine}: {:?}", decoder.diagnostics));
        assert!(plan.model().vision.is_none(), "{engine}");
    }
    let both = with("trainer.policy.model.path=Qwen/Qwen3.5-9B");
    assert!(both.plan.is_some_and(|plan| plan.model().vision.is_some()), "{:?}", both.not_modelled);
}

/// `areal/engine/fsdp_utils/__init__.py:apply_fsdp2`, and `fsdp_engine.py:_apply_peft_wrapper`, which hooks the inputs.
#[test]
fn areal_gathers_a_towers_layers_one_by_one() {
    let with = |more: &str| {
        let text = format!(
            "experiment_name: a\ngconfig: {{n_samples: 4, max_new_tokens: 512}}\ntrain_dataset: {{batch_size: 32, max_length: 1024}}\n\
             cluster: {{n_nodes: 1, n_gpus_per_node: 8}}\nrollout: {{backend: 'sglang:d1p1t1'}}\nactor:\n  \
             path: Qwen/Qwen2.5-VL-3B-Instruct\n  backend: 'fsdp:d7p1t1'\n  gradient_checkpointing: true\n  kl_ctl: 0.0\n  \
             mb_spec: {{max_tokens_per_mb: 4096}}\n{more}sglang: {{mem_fraction_static: 0.8}}\n"
        );
        resolved("config.yaml", &text)
    };
    let whole = with("");
    let plan = whole.plan.as_ref().unwrap_or_else(|| panic!("{:?}", whole.diagnostics));
    assert!(plan.model().vision.is_some());
    assert_eq!(written(&whole, Field::VisionUnits).as_deref(), Some("unsplit"));
    assert_eq!(written(&whole, Field::VisionInputGrads).as_deref(), Some("false"));
    let classes = "  fsdp: {wrap_policy: {transformer_layer_cls_to_wrap: [Qwen2DecoderLayer]}}\n";
    assert!(stopped_by(&with(classes)).contains(&"vision_tower"));
}
