//! What torchtitan's trainer keeps and sends otherwise.

use super::{said, stopped, value};
use shardscope_plan::Field;

/// LambdaLabsML/torchtitan, `configs/llama3_70b-16xb200-64k.toml`: the key for what its trainer keeps was formerly
/// ignored, like the paths it writes to; converters other than float8's were skipped.
#[test]
fn what_torchtitans_trainer_keeps_otherwise_stops_it() {
    let read = |training: &str, model: &str, more: &str| {
        let text = format!(
            "[job]\ndump_folder = \"out\"\n[model]\nname = \"llama3\"\nflavor = \"8B\"\nhf_assets_path = \"a\"\n{model}\n[training]\n\
             seq_len = 8192\nmax_norm = 1.0\n{training}\n[float8]\nfilter_fqns = [\"output\"]\n{more}"
        );
        said("a.toml", &text, &[("world_size", "8")])
    };
    let usual = "[optimizer]\nname = \"AdamW\"\nimplementation = \"fused\"\nearly_step_in_backward = false\n";
    let plain = read("dtype = \"float32\"\nmixed_precision_reduce = \"float32\"", "converters = []", usual);
    assert!(plain.plan.is_some());
    assert_eq!(value(&plain, Field::NotRead), "");
    let half = read("dtype = \"bfloat16\"", "", "");
    assert!(half.plan.is_some());
    let formats = [Field::MainParamsDtype, Field::ExpAvgDtype, Field::ExpAvgSqDtype, Field::GradsDtype];
    assert_eq!(formats.map(|field| value(&half, field)), ["bf16", "bf16", "bf16", "fp32"]);
    let sent = read("mixed_precision_reduce = \"bfloat16\"", "", "");
    assert_eq!(formats.map(|field| value(&sent, field)), ["fp32", "fp32", "fp32", "bf16"]);
    // Without shards, DDP reduces gradients in the weights' format whatever the key says.
    let alone = "dtype = \"bfloat16\"\n[parallelism]\ndata_parallel_shard_degree = 1\ndata_parallel_replicate_degree = 8";
    assert_eq!(formats.map(|field| value(&read(alone, "", ""), field)), ["bf16"; 4]);
    let apart = alone.replace("dtype = ", "mixed_precision_reduce = ");
    assert_eq!(value(&read(&apart, "", ""), Field::GradsDtype), "fp32");
    let wide = "dtype = \"bfloat16\"\nmixed_precision_param = \"float32\"";
    stopped(&read(wide, "", ""), &["training.dtype"]);
    stopped(&read("dtype = \"float16\"", "", ""), &["training.dtype"]);
    stopped(&read("mixed_precision_reduce = \"float16\"", "", ""), &["training.mixed_precision_reduce"]);
    let within = "[optimizer]\nearly_step_in_backward = true\n";
    assert_eq!(value(&read("", "", within), Field::StepInBackward), "true");
    let together = read("", "", "[optimizer]\nimplementation = \"foreach\"\n");
    assert_eq!(value(&together, Field::OptimizerForeach), "true");
    stopped(&read("", "", &format!("{within}implementation = \"foreach\"\n")), &["optimizer.implementation"]);
    for (key, other) in [("name", "\"Muon\""), ("implementation", "\"for-loop\"")] {
        let more = format!("[optimizer]\n{key} = {other}\n");
        stopped(&read("", "", &more), &[&format!("optimizer.{key}")]);
    }
    stopped(&read("", "converters = [\"mx\"]", ""), &["model.converters"]);
    stopped(&read("", "converters = [\"float8\", \"mx\"]", ""), &["model.converters"]);
    let float8 = read("", "converters = [\"quantize.linear.float8\"]", "");
    assert_eq!(value(&float8, Field::Fp8), "e4m3");
    // The output layer is left in 16 bits by the estimates too; other filters are not read.
    assert!(float8.plan.is_some() && value(&float8, Field::NotRead).is_empty());
    let filtered = "[quantize.linear.float8]\nfilter_fqns = [\"output\", \"wo\"]\n";
    let more = read("", "converters = [\"quantize.linear.float8\"]", filtered);
    assert!(more.plan.is_some() && !value(&more, Field::NotRead).is_empty());
}

/// Settings by hand that torchtitan does not offer, or whose hooks and gathered weights were not recorded.
#[test]
fn what_was_not_recorded_of_torchtitan_is_stopped() {
    let read = |degree: &str, more: &str, set: &[(&str, &str)]| {
        let text = format!(
            "[model]\nname = \"llama3\"\nflavor = \"8B\"\n{more}\n[training]\nseq_len = 8192\n[parallelism]\n{degree}\n"
        );
        said("a.toml", &text, &[&[("world_size", "8")], set].concat())
    };
    let [shards, copies, stays] = [
        "data_parallel_shard_degree = 8",
        "data_parallel_shard_degree = 1\ndata_parallel_replicate_degree = 8",
        "data_parallel_shard_degree = 8\nfsdp_reshard_after_forward = \"never\"",
    ];
    let within = &[("step_in_backward", "true")];
    assert!(read(shards, "", within).plan.is_some());
    assert!(read(stays, "", within).plan.is_some());
    stopped(&read(copies, "", within), &["step_in_backward"]);
    let float8 = "converters = [\"quantize.linear.float8\"]";
    let gathers = &[("fp8_param_gather", "true")];
    assert!(read(shards, float8, gathers).plan.is_some());
    for degree in [copies, stays] {
        stopped(&read(degree, float8, gathers), &["fp8_param_gather"]);
    }
    for software in ["torch_fsdp", "hf_transformers"] {
        stopped(&read(shards, float8, &[gathers[0], ("software", software)]), &["fp8_param_gather"]);
    }
    stopped(&read(shards, "", &[within[0], ("software", "torch_fsdp")]), &["step_in_backward"]);
    // PyTorch's Adam makes moments like its parameters.
    let half = read(shards, "", &[("main_params_dtype", "bf16")]);
    assert!(half.plan.is_some());
    assert_eq!([Field::ExpAvgDtype, Field::ExpAvgSqDtype].map(|field| value(&half, field)), ["bf16"; 2]);
    let apart = read(shards, "", &[("main_params_dtype", "bf16"), ("exp_avg_dtype", "fp32")]);
    assert_eq!(
        [Field::ExpAvgDtype, Field::ExpAvgSqDtype].map(|field| value(&apart, field)),
        ["fp32", "bf16"]
    );
    stopped(&read(shards, "", &[("main_params_dtype", "fp16")]), &["main_params_dtype"]);
    stopped(&read(shards, "", &[("exp_avg_dtype", "fp8")]), &["exp_avg_dtype"]);
    stopped(&read(shards, "", &[("loss_kind", "in_place_logits")]), &["loss_kind"]);
}

/// `filter_fqns` is empty by default (`components/quantization/float8.py`); the switch of 2024 left the output layer out.
#[test]
fn float8_without_a_filter_takes_the_output_layer_too() {
    let warned = |model: &str, float8: &str| {
        let text = format!(
            "[model]\nname = \"llama3\"\nflavor = \"8B\"\n{model}[training]\nseq_len = 8192\n[float8]\n{float8}"
        );
        let read = said("a.toml", &text, &[("world_size", "8")]);
        assert!(read.plan.is_some(), "{text}: {:?}", read.diagnostics);
        read.diagnostics.iter().any(|said| said.message.contains("converts the output layer too"))
    };
    let converted = "converters = [\"float8\"]\n";
    assert!(warned(converted, "") && warned(converted, "filter_fqns = []\n"));
    assert!(!warned(converted, "filter_fqns = [\"output\"]\n"));
    assert!(!warned("", "enable_float8_linear = true\n") && !warned("", ""));
}

/// `debug_model.toml` of 2025: one layer in two is recomputed, of a model that the file leaves to torchtitan's code. Once it is
/// named, the plan is that of the file that names it. The wrapper counts the layers of a stage and takes each second one
/// (`torchtitan/distributed/activation_checkpoint.py:_apply_layer_sac`).
#[test]
fn one_layer_in_several_waits_for_the_model() {
    let read = |flavor: &str, more: &str, answers: &[(&str, &str)]| {
        let text = format!(
            "[model]\nname = \"llama3\"\nflavor = \"{flavor}\"\n[training]\nlocal_batch_size = 1\nseq_len = 2048\n{more}\
             [activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = \"2\"\n"
        );
        said("debug_model.toml", &text, &[answers, &[("world_size", "8")][..]].concat())
    };
    let recomputed = |resolution: &shardscope_launch::Resolution| {
        [Field::RecomputeGranularity, Field::RecomputeMethod, Field::RecomputeNumLayers]
            .map(|field| value(resolution, field))
    };
    let model = ("model", "meta-llama/Llama-3.1-8B");
    let open = read("debugmodel", "", &[]);
    assert!(open.not_modelled.is_empty(), "{:?}", open.not_modelled);
    assert_eq!(open.questions.iter().map(|question| question.name()).collect::<Vec<_>>(), ["model"]);
    let named = read("debugmodel", "", &[model]);
    assert_eq!(recomputed(&named), ["full", "block", "16"]);
    let stated = read("8B", "", &[]);
    assert_eq!(recomputed(&named), recomputed(&stated));
    assert_eq!(
        named.plan.map(|plan| plan.recipe().recompute.clone()),
        stated.plan.map(|plan| plan.recipe().recompute.clone())
    );
    let staged = "[parallelism]\npipeline_parallel_degree = 2\n";
    assert_eq!(recomputed(&read("debugmodel", staged, &[model])), ["full", "block", "8"]);
    assert_eq!(recomputed(&read("8B", staged, &[])), ["full", "block", "8"]);
}
