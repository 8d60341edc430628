//! Vision towers that train, or that gradients pass: what they keep against recorded runs, to the byte, and what follows for a plan.

use serde_json::Value;
use shardscope::estimate::traffic::{Parallelism, traffic};
use shardscope::estimate::{memory, parameters};
use shardscope::launch::Resolution;
use shardscope::operators::{Account, Operator, Saved, SectionKind, Symbols};
use shardscope::plan::Plan;
use shardscope::source::Source;

use super::drafts::int;
use super::formats::resolved;
use super::formula::evaluate;

/// `tests/record/vision_trained.py`.
const RECORDED: &str = include_str!("../data/activations/vision_trained.jsonl");

fn read(name: &str, text: &str, set: &[(&str, &str)]) -> Resolution {
    let set: Vec<_> = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    resolved(&Source::from_files([(name, text)]), &set)
}

/// The plan of a recorded run.
fn plan_of(case: &Value, recomputes: bool) -> Plan {
    let (patches, trained) = (int(case, "patches").to_string(), case["way"] == "trained");
    let mut set = vec![
        ("software", "hf_transformers"),
        ("world_size", "1"),
        ("seq_length", "512"),
        ("micro_batch_size", "1"),
        ("params_dtype", "bf16"),
        ("image_patches", patches.as_str()),
        ("attn_implementation", if case["attention"] == "flash" { "flash_attention_2" } else { "sdpa" }),
    ];
    if !trained {
        set.extend([
            ("frozen_modules", "vision_tower multi_modal_projector"),
            ("vision_input_grads", "true"),
        ]);
    }
    set.push(("autocast", if case["autocast"] == true { "bf16" } else { "none" }));
    set.push(("gradient_checkpointing", if recomputes { "true" } else { "false" }));
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

/// What the sections of the tower keep.
fn tower(plan: &Plan) -> u64 {
    let x = Symbols::new(plan);
    let layers = plan.model().vision.expect("a tower").layers;
    let of = |kind: SectionKind| {
        let operators = kind.kept_operators(&x);
        operators.iter().map(|operator| bytes(&x, &operator.saved(&x))).sum::<u64>()
    };
    layers * of(SectionKind::VisionLayer) + of(SectionKind::VisionEnds)
}

#[test]
fn recorded_towers_are_met_to_the_byte() {
    let mut compared = 0;
    for line in RECORDED.lines() {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let name = format!("{} {} {} {}", case["type"], case["way"], case["autocast"], case["attention"]);
        // No hook reaches the embedding of patches of these types.
        if int(&case, "tower") == 0 {
            assert_eq!(case["way"], "hooked", "{name}");
            continue;
        }
        let plan = plan_of(&case, false);
        let x = Symbols::new(&plan);
        assert_eq!(tower(&plan), int(&case, "tower"), "{name}");
        // Mergers behind some of its layers keep the same streams as the norms of the layers behind them: one here.
        let deepstack = case["type"] == "qwen3_vl" && case["autocast"] == false;
        let shared = if deepstack { int(&case, "patches") * x.vision_width() * 2 } else { 0 };
        let layer = bytes(&x, &Operator::VisionLayer.saved(&x));
        assert_eq!(layer - shared, int(&case, "layer"), "{name}");
        // Checkpoints hold the tables of rotations as arguments, which autograd's count leaves out.
        let recomputed = plan_of(&case, true);
        let qwen = case["type"].as_str().is_some_and(|name| name.starts_with("qwen"));
        let heads = plan.model().vision.and_then(|tower| tower.kept).map_or(1, |kept| kept.heads);
        let tables = if qwen { 8 * int(&case, "patches") * x.vision_width() / heads } else { 0 };
        assert_eq!(tower(&recomputed) - tables, int(&case, "recomputed"), "{name}");
        assert_eq!(int(&case, "decoder"), 0, "{name}");
        compared += 1;
    }
    assert_eq!(compared, 80);
}

/// Parameters of the tower and the projector of Qwen2.5-VL-7B, and of the whole model (its page: `safetensors.total`).
const TOWER: u64 = 676_550_144;
const WHOLE: u64 = 8_292_166_656;

/// Qwen2.5-VL-7B in ms-swift with nothing frozen, on eight GPUs under DeepSpeed.
const SWIFT: &str = "NPROC_PER_NODE=8 swift sft --model Qwen/Qwen2.5-VL-7B-Instruct --train_type full --torch_dtype bfloat16 \
    --freeze_vit false --freeze_aligner false --max_length 4096 --per_device_train_batch_size 1 \
    --gradient_accumulation_steps 2 --attn_impl flash_attn";

#[track_caller]
fn swift(more: &str, patches: &str) -> Plan {
    let resolution = read("run.sh", &format!("{SWIFT} {more}\n"), &[("image_patches", patches)]);
    resolution.plan.unwrap_or_else(|| panic!("{:?} {:?}", resolution.diagnostics, resolution.not_modelled))
}

/// All weights have a gradient and states, those of the tower like others.
#[test]
fn a_tower_that_trains_has_gradients_and_states() {
    let plan = swift("--deepspeed zero2", "3008");
    let counted = parameters(&plan);
    assert_eq!((counted.total.get(), counted.trained.get()), (WHOLE, WHOLE));
    assert_eq!(counted.accounts.get(Account::VisionTower).get(), TOWER);
    let totals = memory(&plan).ranks[0].totals;
    assert_eq!(totals.parameters.get(), 2 * WHOLE);
    // Master weights and both moments in fp32, over eight ranks.
    assert_eq!(totals.optimizer.get(), 12 * WHOLE / 8);
    let frozen = swift(
        "--deepspeed zero2 --freeze_vit true --freeze_aligner true --gradient_checkpointing false",
        "3008",
    );
    assert_eq!(parameters(&frozen).trained.get(), WHOLE - TOWER);
    let before = memory(&frozen).ranks[0].totals;
    assert_eq!(totals.optimizer.get() - before.optimizer.get(), 12 * TOWER / 8);
}

/// At stage 3 the layers of a tower that trains are gathered for backward too, and their gradients are scattered.
#[test]
fn a_sharded_tower_that_trains_is_gathered_twice() {
    let plan = swift("--deepspeed zero3", "3008");
    let layer = plan.model().vision.expect("a tower").layer_parameters;
    let sent = traffic(&plan);
    let data = sent.dimension(Parallelism::Data).expect("messages of data parallelism");
    let of: Vec<_> =
        data.operations.iter().filter(|sent| sent.shape.iter().product::<u64>() == layer).collect();
    let calls: u64 = of.iter().map(|sent| sent.per_iteration[0]).sum();
    assert_eq!(calls, 32 * 2 * 3, "32 layers and two micro-batches: two gathers and a reduction each");
}

/// What a tower keeps grows with the patches of a sample, and by the input of each layer alone where layers are recomputed.
#[test]
fn images_are_part_of_the_peak() {
    let peak = |more: &str, patches: &str| memory(&swift(more, patches)).ranks[0].totals.peak_allocated.get();
    let plan = swift("--deepspeed zero2", "4096");
    let vision = plan.model().vision.expect("a tower");
    let ends = vision.kept.expect("what it keeps").ends;
    let more = 32 * 4096 * 1280 * 2 + 1024 * ends;
    assert_eq!(peak("--deepspeed zero2", "8192") - peak("--deepspeed zero2", "4096"), more);
    let whole = "--deepspeed zero2 --gradient_checkpointing false";
    assert!(peak(whole, "8192") - peak(whole, "4096") > 8 * more);
}

/// ms-swift checkpoints decoder and tower apart, LLaMA-Factory layers that train alone.
#[test]
fn a_tower_may_be_kept_beside_a_decoder_that_is_recomputed() {
    let plan = swift("--deepspeed zero2 --vit_gradient_checkpointing false", "4096");
    let x = Symbols::new(&plan);
    let whole = swift("--deepspeed zero2 --gradient_checkpointing false", "4096");
    assert_eq!(tower(&plan), tower(&whole));
    let frozen = "model_name_or_path: Qwen/Qwen2.5-VL-7B-Instruct\nstage: sft\nfinetuning_type: lora\nlora_target: all\n\
        cutoff_len: 4096\nper_device_train_batch_size: 1\nbf16: true\ntemplate: qwen2_vl\n";
    let set = [("world_size", "1"), ("vision_input_grads", "true"), ("image_patches", "3008")];
    let hooked = read("train.yaml", frozen, &set).plan.expect("a plan");
    let within = Symbols::new(&hooked);
    assert!(within.recomputes_layers() && !within.recomputes_tower() && !x.recomputes_tower());
    let each = bytes(&within, &Operator::VisionLayer.saved(&within));
    // Norms' inputs in fp32 and their statistics, queries, keys, the fused projection's output, the attention's and its
    // log-sum-exp, and three tensors of the MLP.
    assert_eq!(each, 3008 * (8 * 1280 + 8 + 2 * 6 * 1280 + 4 * 16 + 6 * 3420));
    assert!(tower(&hooked) > 32 * each);
}

/// What is asked, with a proposal, and what stops by name.
#[test]
fn what_a_tower_keeps_is_asked_for_or_stops() {
    let ask = |more: &str| read("run.sh", &format!("{SWIFT} {more}\n"), &[]);
    let open = ask("--deepspeed zero2");
    let question = open.questions.iter().find(|asked| asked.name == "image_patches").expect("a question");
    // The sequence holds 4,096 tokens of four patches each, fewer than the model's processor lets through.
    assert_eq!(question.proposal.as_deref(), Some("16384"));
    assert!(open.plan.is_none() && open.not_modelled.is_empty());
    // Qwen's processors take the most pixels from the environment: 1,003,520 over 14 x 14, in whole tokens.
    let text = format!("MAX_PIXELS=1003520 {SWIFT} --deepspeed zero2\n");
    let told = read("run.sh", &text, &[]);
    let question = told.questions.iter().find(|asked| asked.name == "image_patches").expect("a question");
    assert_eq!(question.proposal.as_deref(), Some("5120"));
    let without = read("run.sh", &text.replace("Qwen2.5-VL-7B", "Qwen2.5-7B"), &[]);
    assert!(without.plan.is_some(), "{:?}", without.diagnostics);
    let stops = |more: &str, set: &[(&str, &str)], words: &str| {
        let resolution = read("run.sh", &format!("{SWIFT} {more}\n"), set);
        let said: Vec<_> = resolution.not_modelled.iter().map(|item| item.message.as_str()).collect();
        assert!(
            resolution.plan.is_none() && said.iter().any(|said| said.contains(words)),
            "{more}: {said:?}"
        );
    };
    stops("--deepspeed zero2 --freeze_vit true", &[], "a part of it trains");
    stops("--deepspeed zero2 --freeze_aligner true", &[], "a part of it trains");
    stops("--train_type lora --target_modules all-linear", &[], "a part of it trains");
    stops("--deepspeed zero2 --optim adafactor", &[], "shapes of its weights");
    stops("--deepspeed zero2 --use_liger_kernel true", &[], "Liger's kernels");
    stops("--deepspeed zero2", &[("image_patches", "0")], "no sample has an image");
    let apart = "--deepspeed zero2 --gradient_checkpointing false --vit_gradient_checkpointing true";
    stops(apart, &[], "its layers are recomputed and the decoder's are not");
    stops("--torch_dtype float32", &[("image_patches", "64")], "in fp32");
    stops("--deepspeed zero2 --model llava-hf/llava-1.5-7b-hf", &[], "of this type are not recorded");
}
