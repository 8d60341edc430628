//! Anything that is not modelled stops the verdict until the user continues without it.

use shardscope_bash::Environment;
use shardscope_launch::Argument;
use shardscope_launch::{Request, Resolution, megatron, minimal_settings, read, resolve};
use shardscope_plan::Marks;
use shardscope_source::{Code, Source};

const RUN: &str = "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --micro-batch-size 1 --bf16 \
    --vocab-size 1000 --world-size 8 --optimizer came";

fn resolved(line: &str, overrides: &[(&str, &str)]) -> Resolution {
    let overrides: Vec<(String, String)> =
        overrides.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    resolve(&[megatron::read(&Argument::split(line))], &overrides)
}

#[test]
fn what_is_not_modelled_stops_the_verdict_until_the_reader_goes_on() {
    let stopped = resolved(RUN, &[]);
    assert!(stopped.plan.is_none());
    let said: Vec<&str> = stopped.not_modelled.iter().map(|item| item.name.as_str()).collect();
    assert_eq!(said, ["optimizer"]);
    assert!(stopped.diagnostics.iter().any(|said| said.code == Code::NotModelled));
    let gone = resolved(RUN, &[("without", "--optimizer")]);
    let marks = gone.plan.as_ref().map(|plan| plan.recipe().marks.clone());
    let expected = Marks { without: vec!["optimizer".to_owned()], ..Marks::default() };
    assert_eq!(marks, Some(expected.clone()));
    assert_eq!(gone.not_modelled.len(), 1, "the document still names it");
    // A link with only settings carries the mark.
    let link = minimal_settings(&gone).expect("settings");
    assert!(link.iter().any(|(name, _)| name == "without"), "{link:?}");
    let opened = resolve(&[], &link).plan.expect("a plan");
    assert_eq!(opened.recipe().marks, expected);
}

/// Megatron-Bridge shards adapters of experts over expert tensor ranks; expert TP follows TP unless given
/// (`megatron/training/arguments.py`).
#[test]
fn adapters_beside_cut_experts_mark_the_verdict() {
    const MOE: &str = "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --micro-batch-size 1 --bf16 \
        --vocab-size 1000 --world-size 8 --num-experts 8 --moe-router-topk 2 --swiglu --tensor-model-parallel-size 2 \
        --sequence-parallel --transformer-impl transformer_engine";
    let lora = [("train_type", "lora"), ("adapter_library", "megatron-bridge")];
    let of = |more: &[(&str, &str)]| {
        let resolution = resolved(MOE, &[&lora[..], more].concat());
        let names: Vec<String> = resolution.not_modelled.iter().map(|item| item.name.clone()).collect();
        (names, resolution.plan)
    };
    let name = "adapters_over_expert_tensor_parallel";
    for more in [&[][..], &[("expert_tensor_parallel_size", "2")], &[("lora_target_modules", "linear_fc1")]] {
        let (names, plan) = of(more);
        assert_eq!(names, [name], "{more:?}");
        assert!(plan.is_none(), "{more:?}");
    }
    // When the user continues without it, the layout stays the same and the verdict is marked.
    let (_, plan) = of(&[("without", name)]);
    let plan = plan.expect("a plan");
    assert_eq!(
        (plan.layout().expert_tensor, plan.recipe().marks.without.as_slice()),
        (2, &[name.to_owned()][..])
    );
    assert!(plan.recipe().tuning.lora.is_some());
    for more in [
        &[("expert_tensor_parallel_size", "1")][..],
        &[("lora_target_modules", "linear_qkv")],
        &[("tensor_model_parallel_size", "1"), ("sequence_parallel", "false")],
    ] {
        let (names, plan) = of(more);
        assert_eq!((names.len(), plan.is_some()), (0, true), "{more:?}: {names:?}");
    }
}

#[test]
fn what_the_user_sets_takes_the_place_of_what_is_not_modelled() {
    assert!(resolved(RUN, &[("optimizer", "adam")]).plan.is_some());
    let other = resolved(RUN, &[("optimizer", "adam"), ("without", "train_type")]);
    assert!(other.plan.is_some_and(|plan| plan.recipe().marks.is_empty()), "a mark for what is not there");
}

/// The names of the settings that stop a command with `more` added to a dense model's settings.
fn stops(more: &str) -> Vec<String> {
    let line = format!("{} {more}", RUN.replace(" --optimizer came", ""));
    resolved(&line, &[])
        .not_modelled
        .into_iter()
        .map(|item| item.name.trim_start_matches("--").to_owned())
        .collect()
}

#[test]
fn flags_of_forks_stop_mark_or_change_nothing() {
    // MindSpeed's overlap of experts with their exchanges, Gaudi's kernels, Hygon's messages.
    for flag in ["moe-alltoall-overlap-comm", "moe-fb-overlap", "use-fused-sdpa true", "use-quantize-comm"] {
        let name = flag.split(' ').next().unwrap_or_default();
        assert_eq!(stops(&format!("--{flag}")), [name], "{flag}");
    }
    // DeepSpeed's MoE layer is not Megatron's; without experts its capacities have no effect.
    let experts = "--deepspeed --zero-stage 1 --num-experts 8 --topk 1 --moe-train-capacity-factor 1.0";
    assert_eq!(stops(experts), ["num-experts"]);
    assert_eq!(
        stops("--deepspeed --zero-stage 1 --num-experts 1 --moe-min-capacity 4"),
        Vec::<String>::new()
    );
}

#[test]
fn unknown_settings_whose_names_tell_stop_in_every_format() {
    assert_eq!(stops("--cut-experts-in-halves 2"), ["cut-experts-in-halves"]);
    assert_eq!(stops("--cut-experts-in-halves false"), Vec::<String>::new());
    // The next flag is not the value of a switch.
    let line = format!("{} --freeze-half --log-interval 1", RUN.replace(" --optimizer came", ""));
    let item = resolved(&line, &[]).not_modelled.into_iter().next().expect("stopped");
    assert_eq!((item.name.as_str(), item.value.as_str()), ("--freeze-half", ""));
    // llm-foundry's MPT with experts was answered as a dense model.
    let text = "max_seq_len: 128\nmodel:\n  name: mpt_causal_lm\n  d_model: 128\n  ffn_config: {ffn_type: mb_dmoe, moe_num_experts: 4}\n  \
        n_heads: 2\n  n_layers: 2\n  vocab_size: 50368\ntrain_loader:\n  name: text\nglobal_train_batch_size: 8\n\
        device_train_microbatch_size: 1\nprecision: amp_bf16\n";
    let source = Source::from_files([("config.yaml", text)]);
    let environment = Environment::default();
    let read = read(&Request { source: &source, environment: &environment, overrides: &[] });
    assert!(
        read.not_modelled.iter().any(|item| item.name.ends_with("ffn_config.ffn_type")),
        "{:?}",
        read.not_modelled
    );
}

/// An encoder-decoder stops by name, with its parameters if there are counting rules for its type.
#[test]
fn an_encoder_decoder_is_reported_with_its_parameters() {
    let said = |config: &str| {
        let source = Source::from_files([("config.json", config)]);
        let found = read(&Request { source: &source, environment: &Environment::default(), overrides: &[] });
        assert!(found.plan.is_none());
        let errors = found.diagnostics.iter().filter(|said| said.code == Code::NotEstimated);
        errors.map(|said| said.message.clone()).collect::<Vec<_>>().join("; ")
    };
    // facebook/bart-large
    let bart = r#"{"model_type":"bart","is_encoder_decoder":true,"vocab_size":50265}"#;
    assert_eq!(
        said(bart),
        "bart is an encoder and a decoder, 406,291,456 parameters as transformers 5 builds it"
    );
    let other = r#"{"model_type":"seamless_m4t","is_encoder_decoder":true}"#;
    assert_eq!(said(other), "seamless_m4t is not a decoder-only transformer of attention and MLP layers");
}
