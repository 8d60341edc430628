//! levanter.

use super::{said, stopped, value};
use shardscope_plan::Field;

/// stanford-crfm/levanter, `config/gpt2_small_fast.yaml` and `llama2_7b.yaml`: formerly read with GELU and biases under
/// the name of Llama.
#[test]
fn levanters_models_are_theirs_by_their_type() {
    let file = |model: &str, trainer: &str| {
        let text = format!(
            "data:\n  tokenizer: gpt2\nmodel:\n  type: {model}\ntrainer:\n  train_batch_size: 256\n  mp: p=f32,c=bfloat16\n{trainer}"
        );
        said("a.yaml", &text, &[("world_size", "8"), ("without", "framework")])
    };
    assert_eq!(value(&file("llama", ""), Field::WatchedNorms), "true");
    for other in ["include_histograms: true", "watch_targets: [updates]"] {
        stopped(&file("llama", &format!("  watch:\n    {other}\n")), &["trainer.watch.interval"]);
    }
    let watch = "  watch:\n    interval: 0\n";
    let llama = file("llama", watch);
    assert_eq!(value(&llama, Field::Software), "levanter");
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
    // Norms without weights: other parameters, and another compiled step.
    let bare = |with: &str| {
        let model = format!("llama\n  use_layer_norm_weight: {with}");
        let text = format!(
            "data:\n  tokenizer: gpt2\nz_loss_weight: 0.0\nmodel:\n  type: {model}\ntrainer:\n  train_batch_size: 256\n  \
             mp: p=f32,c=bfloat16\n{watch}"
        );
        said("a.yaml", &text, &[("world_size", "8")])
    };
    stopped(&bare("false"), &["framework"]);
    assert!(bare("true").plan.is_some(), "a term of weight 0 is none");
    let sophia = "optimizer:\n  type: sophia-h\n";
    stopped(&file("gpt2", sophia), &["optimizer.type"]);
    let uneven = file("llama", &format!("  train_steps: 1\n{watch}"));
    assert!(uneven.plan.is_some());
    let text = "model:\n  type: llama\ntrainer:\n  train_batch_size: 100\n";
    let refused =
        said("a.yaml", text, &[("world_size", "8"), ("without", "framework"), ("vocab_size", "32000")]);
    let reported =
        refused.diagnostics.iter().any(|said| said.message.contains("global batch 100 is not a multiple"));
    assert!(refused.plan.is_none() && reported, "{:?}", refused.diagnostics);
}

/// stanford-crfm/levanter, `config/llama2_7b_continued.yaml` and options of `src/levanter/optim/config.py`: what no recorded
/// step had stops by its own name, and what changes no tensor does not.
#[test]
fn levanters_steps_unlike_the_recorded_stop_by_name() {
    let file = |trainer: &str, more: &str| {
        let text = format!(
            "data:\n  tokenizer: gpt2\nmodel:\n  type: llama\ntrainer:\n  train_batch_size: 256\n  \
             mp: p=f32,c=bfloat16\n  watch:\n    interval: 0\n{trainer}{more}"
        );
        said("a.yaml", &text, &[("world_size", "8")])
    };
    let named = |read: &shardscope_launch::Resolution, name: &str| {
        assert!(read.not_modelled.iter().all(|item| item.is_called(name)), "{:?}", read.not_modelled);
        stopped(read, &[name]);
    };
    let from = "initialize_from_hf: meta-llama/Llama-2-7b-hf\n";
    let own = "optimizer:\n  type: adam\n  learning_rate: 1.2e-5\n  weight_decay: 0.1\n  min_lr_ratio: 0.1\n  warmup: 0.01\n  \
        decay: 0.1\n  rewarmup: 0.05\n  cooldown: 0.4\n  cycles: [100, 200]\n  lr_schedule:\n    type: cosine\n    exponent: 2\n  \
        weight_decay_modules: [attn, mlp]\n  default_weight_decay_mask: false\n  beta1: 0.9\n  beta2: 0.95\n  epsilon: 1e-8\n  \
        max_grad_norm: 0.5\n  nesterov: false\n  skip_bad_steps: false\n  update_rms_clipping: null\n";
    let plain = file("", &format!("{from}use_hf_model_config: false\n{own}"));
    assert!(plain.plan.is_some() && plain.not_modelled.is_empty(), "{:?}", plain.diagnostics);
    assert_eq!(value(&plain, Field::Software), "levanter");
    assert!(file("  axis_resources: {}\n  model_averaging: null\n", "").plan.is_some());
    for (option, name) in [
        ("skip_bad_steps: true", "skip_bad_steps"),
        ("skip_bad_steps: 128", "skip_bad_steps"),
        ("skip_bad_steps:\n    sigma_factor: 6.0", "skip_bad_steps.sigma_factor"),
        ("clip_update_norm:\n    sigma_factor: 3.0", "clip_update_norm.sigma_factor"),
        ("skip_bad_steps: {}", "skip_bad_steps"),
        ("clip_update_norm: {}", "clip_update_norm"),
        ("update_rms_clipping: 1.0", "update_rms_clipping"),
        ("nesterov: true", "nesterov"),
        ("adamc_weight_decay: true", "adamc_weight_decay"),
        ("max_grad_norm: null", "max_grad_norm"),
        ("max_grad_norm: 0", "max_grad_norm"),
        ("haps_and_more: 3", "haps_and_more"),
    ] {
        named(&file("", &format!("optimizer:\n  {option}\n")), &format!("optimizer.{name}"));
    }
    for (key, name) in [
        ("axis_resources:\n    mlp: model", "axis_resources"),
        ("parameter_axis_resources:\n    embed: data", "parameter_axis_resources"),
        ("model_averaging:\n    type: ema\n    beta: 0.999", "model_averaging"),
        ("quantization:\n    int8: true", "quantization"),
        ("quantization: {}", "quantization"),
    ] {
        stopped(&file(&format!("  {key}\n"), ""), &[&format!("trainer.{name}"), "framework"]);
    }
}

/// `levanter/callbacks/watch.py:WatchConfig`: what is watched by default, and when nothing is.
#[test]
fn levanters_watched_tensors_may_be_written_out_or_be_none() {
    let of = |watch: &str| {
        let text = format!(
            "data:\n  tokenizer: gpt2\nmodel:\n  type: llama\ntrainer:\n  train_batch_size: 256\n  \
             mp: p=f32,c=bfloat16\n  watch:\n    {watch}\n"
        );
        said("a.yaml", &text, &[("world_size", "8")])
    };
    for (watch, watched) in [
        ("interval: 10", "true"),
        ("watch_targets: [grads, params]", "true"),
        ("watch_targets: grads, params", "true"),
        ("watch_targets: []", ""),
        ("include_norms: false", ""),
        ("interval: 0", ""),
    ] {
        let read = of(watch);
        assert!(read.not_modelled.is_empty(), "{watch}: {:?}", read.not_modelled);
        assert_eq!(value(&read, Field::WatchedNorms), watched, "{watch}");
    }
    for watch in ["watch_targets: [grads]", "include_norms: false\n    include_histograms: true"] {
        stopped(&of(watch), &["trainer.watch.interval"]);
    }
}

/// With `use_hf_model_config`, and always where `main/sft.py` starts from a checkpoint, the model is the checkpoint's:
/// `config/llama2_7b_continued.yaml`, `config/sft_llama3.1_tulu3.yaml`.
#[test]
fn levanters_model_may_be_the_checkpoints() {
    let file = |trainer: &str, more: &str| {
        let text = format!(
            "data:\n  tokenizer: NousResearch/Llama-2-7b-hf\nmodel:\n  type: llama\n  hidden_dim: 1024\n  num_layers: 3\n  \
             num_kv_heads: 2\n  seq_len: 512\n  gradient_checkpointing: offload\n  use_layer_norm_weight: false\ntrainer:\n  \
             train_batch_size: 64\n  mp: p=f32,c=bfloat16\n{trainer}{more}"
        );
        said("a.yaml", &text, &[("world_size", "8")])
    };
    let sizes = [
        Field::NumLayers,
        Field::HiddenSize,
        Field::FfnHiddenSize,
        Field::NumAttentionHeads,
        Field::SeqLength,
        Field::VocabSize,
        Field::RecomputeGranularity,
    ];
    let continued = file("", "initialize_from_hf: true\nuse_hf_model_config: true\n");
    assert!(continued.plan.is_some(), "{:?}", continued.diagnostics);
    // The default of levanter's Llama, at the longest sequence of its configuration.
    let shown = sizes.map(|field| value(&continued, field));
    assert_eq!(shown, ["32", "4096", "11008", "32", "4096", "32000", "full"]);
    let named = file("", "initialize_from_hf: huggyllama/llama-7b\nuse_hf_model_config: true\n");
    assert_eq!(value(&named, Field::SeqLength), "2048");
    // Without, the file's model is trained from the checkpoint's weights.
    let own = file("", "initialize_from_hf: huggyllama/llama-7b\n");
    stopped(&own, &["model.gradient_checkpointing", "framework"]);
    assert_eq!(value(&own, Field::NumLayers), "3");
    // `main/sft.py` takes `model_name_or_path`, `max_seq_len`, and adds two tokens to Llama 3's.
    let sft = "initialize_from_hf: true\nmodel_name_or_path: meta-llama/Llama-3.1-8B\ntokenizer: meta-llama/Llama-3.1-8B-Instruct\n";
    let tuned = file("", &format!("{sft}max_seq_len: 4096\n"));
    assert!(tuned.plan.is_some(), "{:?}", tuned.diagnostics);
    let shown = sizes.map(|field| value(&tuned, field));
    assert_eq!(shown, ["32", "4096", "14336", "32", "4096", "128258", "full"]);
    assert_eq!(value(&file("", &format!("{sft}input_role: user\n")), Field::SeqLength), "2048");
    // Other tokenizers may have these tokens.
    let asked = file("", &format!("{}max_seq_len: 4096\n", sft.replace("3.1-8B-Instruct", "2-7b-hf")));
    assert!(asked.not_modelled.is_empty(), "{:?}", asked.diagnostics);
    assert_eq!(asked.questions.iter().map(|question| question.name()).collect::<Vec<_>>(), ["vocab_size"]);
    // A key that only these programs have says as much.
    for of_mixture in
        ["supervised_data:\n  tulu:\n    id: a\n", "mixture_block_size: 2048\n", "reinit_lm_head: false\n"]
    {
        let read =
            file("", &format!("initialize_from_hf: true\n{of_mixture}tokenizer: meta-llama/Llama-3.1-8B\n"));
        assert_eq!(value(&read, Field::NumLayers), "32", "{of_mixture}");
        assert_eq!(value(&read, Field::SeqLength), "2048", "{of_mixture}");
    }
    // Layers other than Llama's are refused: OLMo 2's, and a type that is not Llama's.
    for other in ["allenai/OLMo-2-1124-7B", "Qwen/Qwen2.5-7B"] {
        let read = file(
            "",
            &format!(
                "{}max_seq_len: 4096\n",
                sft.replace("meta-llama/Llama-3.1-8B\n", &format!("{other}\n"))
            ),
        );
        assert!(read.plan.is_none(), "{other}");
    }
    // `main/sft.py` refuses keys of `examples/alpaca`.
    stopped(&file("", "supervised_data:\n  id: a\nmax_tune_length: 2048\n"), &["max_tune_length"]);
}

/// An evaluation keeps nothing for backward, but its logits are of its own batch.
#[test]
fn levanters_evaluation_in_larger_batches_is_refused() {
    let plan = |parallelism: &str| {
        let text = format!(
            "data:\n  tokenizer: gpt2\nmodel:\n  type: llama\ntrainer:\n  train_batch_size: 256\n  mp: p=f32,c=bfloat16\n  \
             per_device_eval_parallelism: {parallelism}\n"
        );
        said("a.yaml", &text, &[("world_size", "8")])
    };
    for parallelism in ["-1", "1", "32"] {
        assert!(plan(parallelism).plan.is_some(), "{parallelism}: {:?}", plan(parallelism).diagnostics);
    }
    let refused = plan("33");
    let reported =
        refused.diagnostics.iter().any(|said| said.message.contains("in larger batches than training's"));
    assert!(refused.plan.is_none() && reported, "{:?}", refused.diagnostics);
}
