//! Adapters on linear layers of vision towers: what they keep compared with recorded runs, to the byte, and the
//! consequences for a plan.

use serde_json::Value;
use shardscope::estimate::{memory, parameters};
use shardscope::launch::Resolution;
use shardscope::operators::{Operator, Saved, SectionKind, Symbols, WeightRole};
use shardscope::plan::{Plan, TowerGradients};
use shardscope::source::Source;

use super::drafts::int;
use super::formats::resolved;
use super::formula::evaluate;

/// `tests/record/vision_lora.py`.
const RECORDED: &str = include_str!("../data/activations/vision_lora.jsonl");

fn read(name: &str, text: &str, set: &[(&str, &str)]) -> Resolution {
    let set: Vec<_> = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    resolved(&Source::from_files([(name, text)]), &set)
}

/// The plan of a recorded run, with recomputed layers.
fn plan_of(case: &Value) -> Plan {
    let patches = int(case, "patches").to_string();
    let parts = case["parts"].as_str().expect("parts");
    let names = [("projector", "multi_modal_projector"), ("deep", "deepstack_merger_list")];
    let frozen = names.iter().filter(|(part, _)| !parts.contains(part)).map(|(_, name)| *name);
    let frozen = frozen.collect::<Vec<_>>().join(" ");
    let dropout = case["dropout"].to_string();
    let mut set = vec![
        ("software", "hf_transformers"),
        ("world_size", "1"),
        ("seq_length", "512"),
        ("micro_batch_size", "1"),
        ("params_dtype", "bf16"),
        ("image_patches", patches.as_str()),
        ("attn_implementation", if case["attention"] == "flash" { "flash_attention_2" } else { "sdpa" }),
        ("gradient_checkpointing", "true"),
        ("train_type", "lora"),
        ("lora_rank", "8"),
        ("lora_dropout", dropout.as_str()),
        ("lora_target_modules", "all-linear"),
        ("vision_adapters", "true"),
        ("adapter_dtype", case["adapters"].as_str().expect("a format")),
    ];
    if !frozen.is_empty() {
        set.push(("frozen_modules", frozen.as_str()));
    }
    if case["adapters"] == "bf16" {
        // DeepSpeed casts adapters with the model.
        set.extend([("data_parallel_engine", "deepspeed"), ("zero_stage", "2"), ("autocast", "bf16")]);
    } else {
        set.push(("autocast", if case["autocast"] == true { "bf16" } else { "none" }));
    }
    let resolution = read("config.json", &case["config"].to_string(), &set);
    resolution.plan.unwrap_or_else(|| {
        panic!("{}: {:?} {:?}", case["type"], resolution.diagnostics, resolution.not_modelled)
    })
}

fn bytes(x: &Symbols<'_>, saved: &[Saved]) -> u64 {
    for saved in saved {
        let value = evaluate(saved.formula.expression, &|name| x.value(name));
        assert_eq!(saved.bytes.get() as f64, value, "{}", saved.name);
    }
    saved.iter().map(|saved| saved.bytes.get()).sum()
}

#[test]
fn recorded_adapters_are_met_to_the_byte() {
    let mut compared = 0;
    for line in RECORDED.lines() {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let name = format!(
            "{} {} {} {} {}",
            case["type"], case["parts"], case["adapters"], case["dropout"], case["autocast"]
        );
        let plan = plan_of(&case);
        let x = Symbols::new(&plan);
        let vision = plan.model().vision.expect("a tower");
        assert_eq!(vision.gradients, TowerGradients::Adapted, "{name}");
        let patches = int(&case, "patches");
        // Mergers after some of its layers keep the same streams as the norms of the next layers.
        let deepstack = case["type"] == "qwen3_vl" && case["autocast"] == false;
        let shared = if deepstack { patches * x.vision_width() * 2 } else { 0 };
        assert_eq!(bytes(&x, &Operator::VisionLayer.saved(&x)) - shared, int(&case, "layer"), "{name}");
        // Checkpoints hold the rotation tables as arguments, which autograd's count omits.
        let width = match case["type"].as_str().unwrap_or_default() {
            name if name.starts_with("qwen") => 8,
            "mistral3" => 4,
            _ => 0,
        };
        let tables = width * patches * x.vision_width() / vision.kept.expect("what it keeps").heads;
        let ends = bytes(&x, &Operator::VisionEnds.saved(&x));
        assert_eq!(ends - tables, int(&case, "recomputed"), "{name}");
        assert_eq!(int(&case, "decoder"), 0, "{name}");
        let mut adapters = 0;
        for (kind, times) in [(SectionKind::VisionLayer, vision.layers), (SectionKind::VisionEnds, 1)] {
            for weight in kind.weights(&x) {
                assert_ne!(weight.role, WeightRole::Trained, "{name}");
                let count = times * weight.count().get();
                adapters += if weight.role == WeightRole::Adapter { count } else { 0 };
            }
        }
        assert_eq!(adapters, int(&case, "trained"), "{name}");
        compared += 1;
    }
    assert_eq!(compared, 72 + 36);
}

/// Qwen2.5-VL-7B in ms-swift, whose default freezes tower and merger.
const SWIFT: &str = "NPROC_PER_NODE=8 swift sft --model Qwen/Qwen2.5-VL-7B-Instruct --train_type lora --torch_dtype bfloat16 \
    --target_modules all-linear --lora_rank 8 --max_length 4096 --per_device_train_batch_size 1 --gradient_accumulation_steps 2 \
    --attn_impl flash_attn --deepspeed zero2";

/// Programs determine which parts have adapters: ms-swift by what it freezes, TRL uses every linear layer.
#[test]
fn adapters_stand_where_programs_put_them() {
    let set = [("image_patches", "4096"), ("vision_input_grads", "false")];
    let trained = |text: &str| {
        let resolution = read("run.sh", text, &set);
        let plan = resolution
            .plan
            .unwrap_or_else(|| panic!("{text}: {:?} {:?}", resolution.diagnostics, resolution.not_modelled));
        let counted = parameters(&plan);
        let totals = memory(&plan).ranks[0].totals;
        (counted.trained.get(), totals.peak_allocated.get())
    };
    let (alone, lower) = trained(&format!("{SWIFT}\n"));
    // Published with rank 8: "trainable params: 20,185,088".
    assert_eq!(alone, 20_185_088);
    let (with_tower, higher) = trained(&format!("{SWIFT} --freeze_vit false\n"));
    let layer = 8 * (1280 + 3840 + 1280 + 1280 + 3 * (1280 + 3420));
    assert_eq!(with_tower - alone, 32 * layer);
    assert!(higher > lower);
    let (all, _) = trained(&format!("{SWIFT} --freeze_vit false --freeze_aligner false\n"));
    assert_eq!(all - with_tower, 8 * (5120 + 5120 + 5120 + 3584));
    let trl = "accelerate launch --num_processes 8 trl/scripts/sft.py --model_name_or_path Qwen/Qwen2.5-VL-7B-Instruct --use_peft \
        --lora_target_modules all-linear --lora_r 8 --per_device_train_batch_size 1 --gradient_accumulation_steps 2 \
        --max_length 4096 --dtype bfloat16 --bf16 --gradient_checkpointing";
    assert_eq!(trained(&format!("{trl}\n")).0, all);
}

/// ms-swift's `lora_llm`: adapters in the decoder, without dropout, and full training of tower and aligner.
#[test]
fn a_tower_trains_beside_adapters_of_the_decoder() {
    let set = [("image_patches", "4096")];
    let text = SWIFT.replace("--train_type lora", "--tuner_type lora_llm --lora_dropout 0.1");
    let resolution = read("run.sh", &format!("{text}\n"), &set);
    let plan = resolution
        .plan
        .unwrap_or_else(|| panic!("{:?} {:?}", resolution.diagnostics, resolution.not_modelled));
    let vision = plan.model().vision.expect("a tower");
    assert_eq!(vision.gradients, TowerGradients::Trained);
    assert!(!plan.recipe().tuning.lora.expect("adapters").dropout);
    let adapters = 20_185_088;
    assert_eq!(parameters(&plan).trained.get(), adapters + vision.parameters);
    let totals = memory(&plan).ranks[0].totals;
    // DeepSpeed holds everything in bf16, and for trained weights gradients, fp32 copies and moments sharded over eight
    // GPUs.
    let trained = adapters + vision.parameters;
    assert_eq!(totals.parameters.get(), 2 * (8_292_166_656 + adapters));
    assert_eq!((totals.gradients.get(), totals.optimizer.get()), (2 * trained / 8, 12 * trained / 8));
}

/// `tests/record/vision_unquantized.py`.
const UNQUANTIZED: &str = include_str!("../data/activations/vision_unquantized.tsv");

/// ms-swift tells bitsandbytes not to quantize tower and projector: recorded for five types, whose towers have no 4-bit
/// layer, two bytes per parameter, and keep the same as with a 16-bit decoder. TRL quantizes them together with the
/// decoder.
#[test]
fn towers_stay_in_16_bits_beside_a_quantized_decoder_of_ms_swift() {
    let mut compared = 0;
    for line in UNQUANTIZED.lines().skip(1) {
        let cells: Vec<u64> = line.split('\t').skip(1).map(|cell| cell.parse().expect("a number")).collect();
        let [quantized, linears, in_tower, parameters, bytes, hooked, plain] = cells[..] else {
            panic!("{line}")
        };
        assert_eq!((quantized, in_tower, bytes, hooked), (linears, 0, 2 * parameters, plain), "{line}");
        compared += 1;
    }
    assert_eq!(compared, 5);
    let set = [("image_patches", "4096"), ("vision_input_grads", "true"), ("world_size", "1")];
    let alone = SWIFT.replace("NPROC_PER_NODE=8 ", "").replace(" --deepspeed zero2", "");
    for more in ["", " --freeze_vit false", " --freeze_vit false --freeze_aligner false"] {
        let plan = |quantized: &str| {
            let resolution = read("run.sh", &format!("{alone}{more}{quantized}\n"), &set);
            resolution.plan.unwrap_or_else(|| {
                panic!("{more}: {:?} {:?}", resolution.diagnostics, resolution.not_modelled)
            })
        };
        let [whole, four] = ["", " --quant_method bnb --quant_bits 4"].map(plan);
        assert_eq!(parameters(&whole).trained, parameters(&four).trained, "{more}");
        let [x, y] = [&whole, &four].map(Symbols::new);
        let held = |x: &Symbols<'_>, kind: SectionKind| {
            let kept: u64 =
                kind.operators(x).iter().flat_map(|it| it.saved(x)).map(|it| it.bytes.get()).sum();
            let weights: u64 = kind.weights(x).map(|weight| weight.count().get()).sum();
            (kept, weights)
        };
        for kind in [SectionKind::VisionLayer, SectionKind::VisionEnds] {
            assert_eq!(held(&x, kind), held(&y, kind), "{more}");
        }
        let vision = four.model().vision.expect("a tower").parameters;
        let bytes = |plan: &Plan| memory(plan).ranks[0].totals.parameters.get();
        let adapters = parameters(&four).trained.get();
        // Only the linear layers within the decoder's layers are in 4 bits, not the embedding and output layer.
        let decoder = bytes(&four) - 2 * vision - 4 * adapters;
        assert_eq!(bytes(&whole) - 2 * vision - 4 * adapters, 2 * 7_615_616_512, "{more}");
        assert!((3 * 7_615_616_512 / 5..4 * 7_615_616_512 / 5).contains(&decoder), "{more}: {decoder}");
    }
    let trl = "accelerate launch trl/scripts/sft.py --model_name_or_path Qwen/Qwen2.5-VL-7B-Instruct --use_peft --load_in_4bit \
        --lora_target_modules all-linear --lora_r 8 --per_device_train_batch_size 1 --max_length 4096 --dtype bfloat16 --bf16 \
        --gradient_checkpointing\n";
    let stopped = read("run.sh", trl, &set).not_modelled;
    assert!(stopped.iter().any(|item| item.message.contains("with quantized layers")), "{stopped:?}");
}

/// Unknown combinations stop by name.
#[test]
fn other_adapters_in_towers_stop() {
    let stops = |more: &str, words: &str| {
        let set = [("image_patches", "4096"), ("vision_input_grads", "false")];
        let resolution = read("run.sh", &format!("{SWIFT} --freeze_vit false {more}\n"), &set);
        let said: Vec<_> = resolution.not_modelled.iter().map(|item| item.message.as_str()).collect();
        assert!(
            resolution.plan.is_none() && said.iter().any(|said| said.contains(words)),
            "{more}: {said:?}"
        );
    };
    stops("--gradient_checkpointing false", "its layers not recomputed");
    stops("--vit_gradient_checkpointing false", "its layers not recomputed");
    stops("--use_dora true", "DoRA");
    stops("--quant_method fp8", "in a quantization format of their own");
    stops("--target_modules q_proj up_proj", "has adapters");
    stops("--model llava-hf/llava-1.5-7b-hf", "has adapters");
}
