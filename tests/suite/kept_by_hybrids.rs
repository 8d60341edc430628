//! What models of transformers keep for backward, type by type and layer by layer, recorded by
//! `tests/record/hybrid_layers.py` (versions are in the first line of its output). A pasted configuration is taken all
//! the way to the kept bytes.

use std::collections::BTreeSet;

use serde_json::Value;
use shardscope::operators::{Symbols, layer_operators};
use shardscope::plan::{ActivationSteps, Mixer, Normalization, PositionEmbedding, Router};
use shardscope::source::Source;
use shardscope::units::grouped;

use crate::formats::resolved;

const RECORDED: &str = include_str!("../data/activations/hybrid.jsonl");
const README: &str = include_str!("../../README.md");

#[test]
fn every_recorded_layer_keeps_what_the_engine_says() {
    let (mut layers, mut runs, mut types, mut off) = (0, 0_u64, BTreeSet::new(), Vec::new());
    for line in RECORDED.lines().skip(1) {
        let case: Value = serde_json::from_str(line).unwrap();
        let id = case["id"].as_str().unwrap();
        runs += 1;
        types.insert(case["type"].as_str().unwrap().split(':').next().unwrap().to_owned());
        let mut config = case["config"].clone();
        // The text after a colon describes the difference from the type's defaults.
        config["model_type"] = case["type"].as_str().unwrap().split(':').next().unwrap().into();
        let set = [
            ("software", "hf_transformers".to_owned()),
            ("seq_length", case["s"].to_string()),
            ("micro_batch_size", case["b"].to_string()),
            ("world_size", "1".to_owned()),
            ("params_dtype", case["dtype"].as_str().unwrap().to_owned()),
            ("autocast", case["autocast"].as_str().unwrap_or("none").to_owned()),
            ("attn_implementation", case["attn"].as_str().unwrap().to_owned()),
            ("experts_implementation", "grouped_mm".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value));
        let listed = case["adapts"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let adapts: Vec<&str> = listed.chain(case["adapts"].as_str()).collect();
        let mut set = set.to_vec();
        if !adapts.is_empty() {
            for (name, value) in [
                ("train_type", "lora"),
                ("adapter_library", "peft"),
                ("lora_rank", "8"),
                ("lora_dropout", "0"),
                ("lora_target_modules", &adapts.join(" ")),
            ] {
                set.push((name.to_owned(), value.to_owned()));
            }
        }
        let text = config.to_string();
        let resolution = resolved(&Source::from_files([("config.json", text.as_str())]), &set);
        let Some(plan) = resolution.plan else {
            off.push(format!("{id}: {:?} {:?}", resolution.not_modelled, resolution.diagnostics));
            continue;
        };
        let x = Symbols::new(&plan);
        // If only adapters train, the first layer's input requires no gradient: all later layers are equal to each
        // other.
        let first = u64::from(!adapts.is_empty());
        for index in first..plan.model().num_layers {
            let kind = plan.model().layer_kind(index);
            let kept = layer_operators(&x, kind).into_iter().flat_map(|operator| operator.saved(&x));
            let mut kept: u64 = kept.map(|saved| saved.bytes.get()).sum();
            // Cosines and sines belong to the only layer that rotates in this way; the engine counts them once for all.
            // Three-dimensional positions (Qwen3.5) come with the batch.
            let tokens = if id.starts_with("qwen3_5") { x.n } else { x.s };
            let type_unrotated = ["exaone", "cohere2", "cwm"].iter().any(|name| id.starts_with(name));
            let unrotated = case["config"]["no_rope_layers"].is_array() || type_unrotated;
            let alike = |at: &u64| {
                let other = plan.model().layer_kind(*at).mixer;
                other.attends() && other.is_windowed() == kind.mixer.is_windowed()
            };
            let rotates = (0..plan.model().num_layers).filter(|at| unrotated || alike(at));
            let rotary = plan.model().position_embedding == PositionEmbedding::Rope;
            if rotary && kind.mixer.attends() && rotates.count() == 1 {
                let width = if plan.model().arrangement.fp32_rotation { 4 } else { x.width };
                let rotated = if kind.mixer.is_windowed() { x.rotated } else { x.whole().rotated };
                kept += 2 * tokens * rotated * width;
            }
            // Keys and values that a later layer reads as well belong to no layer alone; autocast casts keys for each.
            let lends = case["config"]["num_kv_shared_layers"] == 4 && kind.mixer == Mixer::Attention;
            if lends && case["attn"] == "sdpa" {
                let (full, cast) = (x.whole(), u64::from(!case["autocast"].is_null()));
                kept -= (2 - cast) * x.n * full.k * full.d * x.compute_width;
            }
            // The recording used the CPU's autocast, which does not compute the third power in fp32.
            let gelu = plan.model().arrangement.activation_steps == ActivationSteps::NewGelu;
            if gelu && !plan.model().activation.is_gated() && plan.recipe().autocasts() {
                kept -= 6 * x.n * x.f;
            }
            // In fp32 its gate is a view of the fused projection's full output, which is held for it: not counted.
            let whole = case["dtype"] == "fp32" && case["autocast"].is_null();
            if id.starts_with("qwen3_next") && whole && kind.mixer.is_linear() {
                kept += 4 * x.n * (2 * x.linear.keys() + x.linear.values());
            }
            // On a CPU the statistics of a 16-bit LayerNorm have 16 bits; on a GPU, 32. (Under autocast both use fp32,
            // except for Nemotron's.)
            let narrow = case["autocast"].is_null() || id.starts_with("nemotron");
            let own = !plan.model().arrangement.fp32_layer_norm;
            if plan.model().normalization == Normalization::LayerNorm
                && case["dtype"] == "bf16"
                && narrow
                && own
            {
                let norms = if plan.model().arrangement.single_norm { 1 } else { 2 };
                kept -= norms * 4 * x.n;
            }
            let recorded = case["kept"][format!("layer{index}")].as_u64().unwrap();
            if kept != recorded {
                off.push(format!("{id}, layer {index}: {kept} for {recorded}"));
            }
            layers += 1;
        }
        // The number recorded with adapters includes them.
        if !adapts.is_empty() {
            continue;
        }
        let mut counted = shardscope::estimate::parameters(&plan).total.get();
        // The MLP's biases alone are not counted.
        if id.starts_with("gptj") {
            counted += plan.model().num_layers * (x.f + x.h);
        }
        if id.starts_with("gpt_neo-") {
            counted += plan.model().num_layers * (x.f + 2 * x.h);
        }
        let mut recorded = case["parameters"].as_u64().unwrap();
        // The correction of the experts' scores is a frozen parameter here, and a buffer elsewhere.
        if plan.model().arrangement.router == Router::Fp32Held {
            recorded -= plan.model().moe_layers() * x.moe.experts;
        }
        if counted != recorded {
            off.push(format!("{id}, parameters: {counted} for {recorded}"));
        }
    }
    assert!(off.is_empty(), "{}", off.join("\n"));
    assert!(layers >= 3800, "{layers}");
    // The README says how many there are.
    let said = format!("layers of {} model types of transformers", types.len());
    let counted = format!("recorded runs of transformers and PEFT, {}", grouped(runs));
    let row =
        README.lines().find(|line| line.contains(&said)).unwrap_or_else(|| panic!("no row with {said}"));
    assert!(row.contains(&counted), "{counted}: {row}");
}

#[test]
fn what_is_not_recorded_stops_by_name() {
    let lines = || RECORDED.lines().skip(1).map(|line| serde_json::from_str::<Value>(line).unwrap());
    let plan_of = |model_type: &str, set: &[(&str, &str)]| {
        let case = lines().find(|case| case["type"] == model_type).unwrap();
        let mut config = case["config"].clone();
        config["model_type"] = model_type.split(':').next().unwrap().into();
        let usual =
            [("seq_length", "128"), ("micro_batch_size", "1"), ("world_size", "1"), ("params_dtype", "bf16")];
        let set: Vec<_> =
            usual.iter().chain(set).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        resolved(&Source::from_files([("config.json", config.to_string().as_str())]), &set)
    };
    let adapted = |model_type, targets| {
        let lora = [("train_type", "lora"), ("lora_rank", "8"), ("lora_target_modules", targets)];
        plan_of(model_type, &[&[("software", "hf_transformers")], &lora[..]].concat())
    };
    for (model_type, targets, stops) in [
        ("lfm2", "q_proj v_proj", false),
        ("lfm2", "in_proj out_proj", false),
        ("lfm2", "q_proj out_proj", true),
        ("lfm2", "in_proj", true),
        ("bamba", "q_proj o_proj", false),
        ("bamba", "in_proj out_proj", true),
        ("llama", "q_proj in_proj", true),
    ] {
        let stopped = adapted(model_type, targets).not_modelled;
        assert_eq!(stops, !stopped.is_empty(), "{model_type}, {targets}: {stopped:?}");
    }
    // torch had no fused kernel for one key head of many queries, and its attention without one kept all scores.
    for (model_type, attention, stops) in [
        ("falcon", "sdpa", true),
        ("falcon", "flash_attention_2", false),
        ("falcon:new", "sdpa", false),
        ("mpt", "sdpa", true),
        ("gpt_neo", "sdpa", true),
    ] {
        let set = [("software", "hf_transformers"), ("attn_implementation", attention)];
        let stopped = plan_of(model_type, &set).not_modelled;
        assert_eq!(stops, stopped.iter().any(|item| item.is_called("attn_implementation")), "{stopped:?}");
    }
    // Heads of Gemma 4's full attention are wider than flash-attn takes, and only transformers' modules have them.
    for (model_type, set, stops) in [
        ("gemma4_text", ("software", "megatron_core"), true),
        ("gemma4_text:small", ("software", "automodel"), true),
        ("gemma4_text", ("attn_implementation", "flash_attention_2"), true),
        ("gemma4_text:apart", ("attn_implementation", "flash_attention_2"), false),
        ("gemma4_text:small", ("rollout_engine", "sglang"), true),
        ("gemma4_text:moe", ("attn_implementation", "sdpa"), false),
    ] {
        let set = if set.0 == "software" { vec![set] } else { vec![("software", "hf_transformers"), set] };
        let stopped = plan_of(model_type, &set).not_modelled;
        assert_eq!(stops, stopped.iter().any(|item| item.is_called("full_attention_heads")), "{stopped:?}");
    }
    let elsewhere = plan_of("apertus", &[("software", "megatron_core")]).not_modelled;
    assert!(elsewhere.iter().any(|item| item.is_called("module_variants")), "{elsewhere:?}");
    let elsewhere = plan_of("lfm2", &[("software", "megatron_core")]).not_modelled;
    assert!(elsewhere.iter().any(|item| item.is_called("linear_mixer")), "{elsewhere:?}");
}
