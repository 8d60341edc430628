//! Vision towers that train, or through which gradients pass: what they keep compared with recorded runs, to the byte,
//! and the consequences for a plan.

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

/// `tests/record/vision_parts.py`.
const PARTS: &str = include_str!("../data/activations/vision_parts.jsonl");

/// `tests/record/vision_liger.py`.
const LIGER: &str = include_str!("../data/activations/vision_liger.jsonl");

/// The plan of a recorded run.
fn plan_of(case: &Value, recomputes: bool) -> Plan {
    let patches = int(case, "patches").to_string();
    let way: Vec<&str> = case["way"].as_str().expect("a way").split(' ').collect();
    let parts = [
        ("tower", "vision_tower"),
        ("projector", "multi_modal_projector"),
        ("deep", "deepstack_merger_list"),
    ];
    let frozen = parts.iter().filter(|(part, _)| !way.contains(part) && way != ["trained"]);
    let frozen = frozen.map(|(_, name)| *name).collect::<Vec<_>>().join(" ");
    let mut set = vec![
        ("software", "hf_transformers"),
        ("world_size", "1"),
        ("seq_length", "512"),
        ("micro_batch_size", "1"),
        ("params_dtype", "bf16"),
        ("image_patches", patches.as_str()),
        ("attn_implementation", if case["attention"] == "flash" { "flash_attention_2" } else { "sdpa" }),
    ];
    if let Some(scope) = case["liger"].as_str() {
        set.extend([("liger_kernel", "true"), ("vision_liger", scope)]);
    }
    if !frozen.is_empty() {
        set.push(("frozen_modules", frozen.as_str()));
    }
    // In these types the hook finds no patch embedding.
    let hookless = ["qwen3_vl", "qwen3_5"].iter().any(|name| case["type"] == *name);
    if way.contains(&"hooked") {
        set.push(("vision_input_grads", if hookless { "false" } else { "true" }));
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

/// What the tower's sections keep.
fn tower(plan: &Plan) -> u64 {
    let x = Symbols::new(plan);
    let layers = plan.model().vision.expect("a tower").layers;
    let of = |kind: SectionKind| {
        let operators = kind.kept_operators(&x);
        operators.iter().map(|operator| bytes(&x, &operator.saved(&x))).sum::<u64>()
    };
    let apart = Operator::Projector.saved(&x).iter().map(|saved| saved.bytes.get()).sum::<u64>();
    let alone = plan.model().vision.is_some_and(|tower| tower.projects_alone());
    let projector = if alone { apart } else { 0 };
    layers * of(SectionKind::VisionLayer) + of(SectionKind::VisionEnds) + projector
}

/// What towers keep with Liger's norms in their layers, or in all instances of the class.
#[test]
fn recorded_norms_of_liger_are_met_to_the_byte() {
    let mut compared = 0;
    for line in LIGER.lines() {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let name = format!("{} {} {} {}", case["type"], case["way"], case["liger"], case["autocast"]);
        let plan = plan_of(&case, false);
        assert_eq!(tower(&plan), int(&case, "tower"), "{name}");
        let x = Symbols::new(&plan);
        assert_eq!(bytes(&x, &Operator::VisionLayer.saved(&x)), int(&case, "layer"), "{name}");
        compared += 1;
    }
    assert_eq!(compared, 12);
}

/// Liger's norms are in the tower where the program puts them: the Trainer patches a built model, 2U1's program patches
/// classes; for Qwen3-VL's towers none of its kernels keeps less.
#[test]
fn liger_stands_in_towers_as_programs_put_it_there() {
    use shardscope::plan::TowerLiger;
    let set = [("image_patches", "64")];
    let of = |text: &str, set: &[(&str, &str)]| {
        let resolution = read("run.sh", text, set);
        let plan = resolution
            .plan
            .unwrap_or_else(|| panic!("{:?} {:?}", resolution.diagnostics, resolution.not_modelled));
        plan.model().vision.expect("a tower").liger
    };
    let swift = format!("{SWIFT} --deepspeed zero2 --use_liger_kernel true\n");
    assert_eq!(of(&swift, &set), TowerLiger::Layers);
    assert_eq!(of(&swift.replace("Qwen2.5-VL-7B", "Qwen3-VL-8B"), &set), TowerLiger::None);
    let series = "deepspeed --num_gpus 8 src/train/train_sft.py --deepspeed zero3.json --model_id Qwen/Qwen2.5-VL-3B-Instruct --bf16 True \
        --freeze_vision_tower False --freeze_llm False --freeze_merger False --per_device_train_batch_size 1 \
        --gradient_accumulation_steps 4\n";
    let more = [("image_patches", "64"), ("seq_length", "4096"), ("zero_stage", "3")];
    assert_eq!(of(series, &more), TowerLiger::Class);
    let frozen =
        series.replace("--freeze_vision_tower False", "--freeze_vision_tower True --use_liger False");
    let resolution = read("run.sh", &frozen, &more);
    let plan = resolution.plan.unwrap_or_else(|| panic!("{:?}", resolution.not_modelled));
    let vision = plan.model().vision.expect("a tower");
    assert!(vision.projects_alone() && vision.liger == TowerLiger::None);
    // A merger with a Liger norm, after a frozen tower, was not recorded.
    let stopped =
        read("run.sh", &series.replace("--freeze_vision_tower False", "--freeze_vision_tower True"), &more);
    assert!(
        stopped.plan.is_none()
            && stopped.not_modelled.iter().any(|item| item.message.contains("Liger's kernels"))
    );
}

/// What towers and projectors keep if one of them trains without the other.
#[test]
fn recorded_parts_are_met_to_the_byte() {
    let mut compared = 0;
    for line in PARTS.lines() {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let name = format!("{} {} {}", case["type"], case["way"], case["autocast"]);
        let plan = plan_of(&case, false);
        assert_eq!(tower(&plan), int(&case, "tower"), "{name}");
        assert_eq!(int(&case, "decoder"), 0, "{name}");
        // Every parameter is counted once, and trains if its part does.
        let vision = plan.model().vision.expect("a tower");
        let x = Symbols::new(&plan);
        let mut weights = [0, 0];
        for (kind, times) in [
            (SectionKind::VisionLayer, vision.layers),
            (SectionKind::VisionEnds, 1),
            (SectionKind::Embedding, 1),
        ] {
            for weight in kind.weights(&x) {
                if weight.account == Account::VisionTower {
                    weights[usize::from(weight.role.trains())] += times * weight.count().get();
                }
            }
        }
        let kept = vision.kept.expect("what it keeps");
        let way = case["way"].as_str().unwrap_or_default();
        let deep = u64::from(way.contains("deep")) * kept.deep_projector;
        let trained = if way.contains("tower") {
            vision.parameters - kept.projector - kept.deep_projector + deep
        } else {
            kept.projector + deep
        };
        assert_eq!(weights, [vision.parameters - trained, trained], "{name}");
        compared += 1;
    }
    assert_eq!(compared, 48);
}

#[test]
fn recorded_towers_are_met_to_the_byte() {
    let mut compared = 0;
    let mut masked = Vec::new();
    for line in RECORDED.lines() {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let name = format!("{} {} {} {}", case["type"], case["way"], case["autocast"], case["attention"]);
        // No hook reaches the patch embedding of these types.
        if int(&case, "tower") == 0 {
            assert_eq!(case["way"], "hooked", "{name}");
            continue;
        }
        if case["type"] == "mistral3" && case["attention"] == "sdpa" {
            masked.push(int(&case, "tower") - 2 * int(&case, "patches").pow(2));
            continue;
        }
        let plan = plan_of(&case, false);
        let x = Symbols::new(&plan);
        assert_eq!(tower(&plan), int(&case, "tower"), "{name}");
        // SDPA runs keep the same except for a 16-bit mask of all patches, which stops the verdict, and RNG states.
        if case["type"] == "mistral3" {
            masked.retain(|bytes| {
                bytes + 16 * plan.model().vision.map_or(0, |tower| tower.layers) != tower(&plan)
            });
        }
        // Mergers after some of its layers keep the same streams as the norms of the next layers: one here.
        let deepstack = case["type"] == "qwen3_vl" && case["autocast"] == false;
        let shared = if deepstack { int(&case, "patches") * x.vision_width() * 2 } else { 0 };
        let layer = bytes(&x, &Operator::VisionLayer.saved(&x));
        assert_eq!(layer - shared, int(&case, "layer"), "{name}");
        // Checkpoints hold the rotation tables as arguments, which autograd's count omits.
        let recomputed = plan_of(&case, true);
        let width = match case["type"].as_str().unwrap_or_default() {
            name if name.starts_with("qwen") => 8,
            "mistral3" => 4,
            _ => 0,
        };
        let heads = plan.model().vision.and_then(|tower| tower.kept).map_or(1, |kept| kept.heads);
        let tables = width * int(&case, "patches") * x.vision_width() / heads;
        assert_eq!(tower(&recomputed) - tables, int(&case, "recomputed"), "{name}");
        assert_eq!(int(&case, "decoder"), 0, "{name}");
        compared += 1;
    }
    assert_eq!((compared, masked), (88, Vec::new()));
}

/// Parameters of Qwen2.5-VL-7B's tower and projector, and of the entire model (its page: `safetensors.total`).
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

/// All weights have a gradient and states, including those of the tower.
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

/// At stage 3 the layers of a trained tower are also gathered for backward, and their gradients are scattered.
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

/// What a tower keeps grows with the patches per sample, and only by the input of each layer if layers are recomputed.
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

/// ms-swift checkpoints decoder and tower separately, LLaMA-Factory only layers that train.
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
    // log-sum-exp, and three tensors in the MLP.
    assert_eq!(each, 3008 * (8 * 1280 + 8 + 2 * 6 * 1280 + 4 * 16 + 6 * 3420));
    assert!(tower(&hooked) > 32 * each);
}

/// Qwen's own program and ms-swift freeze the tower while the merger trains: 44,574,464 of 676,550,144 parameters.
#[test]
fn a_projector_trains_behind_a_frozen_tower() {
    const MERGER: u64 = 1280 + 5120 * 5120 + 5120 + 5120 * 3584 + 3584;
    let open =
        read("run.sh", &format!("{SWIFT} --deepspeed zero2 --freeze_vit true\n"), &[("image_patches", "64")]);
    assert!(open.questions.iter().any(|asked| asked.name() == "vision_input_grads"), "{:?}", open.questions);
    let of = |hooked: &str, more: &str| {
        let set = [("image_patches", "4096"), ("vision_input_grads", hooked)];
        let resolution = read("run.sh", &format!("{SWIFT} {more}\n"), &set);
        resolution
            .plan
            .unwrap_or_else(|| panic!("{:?} {:?}", resolution.diagnostics, resolution.not_modelled))
    };
    let alone = of("false", "--deepspeed zero2 --freeze_vit true");
    let counted = parameters(&alone);
    assert_eq!((counted.total.get(), counted.trained.get()), (WHOLE, WHOLE - TOWER + MERGER));
    let totals = memory(&alone).ranks[0].totals;
    assert_eq!(totals.parameters.get(), 2 * WHOLE);
    // ZeRO-2 shards bf16 gradients, moments and fp32 copies over eight GPUs.
    assert_eq!(totals.gradients.get(), 2 * (WHOLE - TOWER + MERGER) / 8);
    assert_eq!(totals.optimizer.get(), 12 * (WHOLE - TOWER + MERGER) / 8);
    // Normalised inputs, those of both linear layers and of the activation, and the window index.
    assert_eq!(tower(&alone), 1024 * (4 * 8 * 1280 + 8));
    let hooked = of("true", "--deepspeed zero2 --freeze_vit true");
    assert_eq!(parameters(&hooked).trained, counted.trained);
    assert!(tower(&hooked) > 32 * 4096 * 1280 * 2);
    // In the opposite case only the merger is frozen.
    let other = of("false", "--deepspeed zero2 --freeze_aligner true");
    assert_eq!(parameters(&other).trained.get(), WHOLE - MERGER);
    let qwen = "torchrun --nproc_per_node=8 qwenvl/train/train_qwen.py --deepspeed zero3.json --bf16 --tune_mm_vision False \
        --tune_mm_mlp True --tune_mm_llm True --per_device_train_batch_size 1 --gradient_accumulation_steps 4 \
        --model_max_length 4096 --model_name_or_path";
    let counts = |model: &str| {
        let set = [("image_patches", "64"), ("zero_stage", "3")];
        let resolution = read("run.sh", &format!("{qwen} {model}\n"), &set);
        let plan = resolution.plan.unwrap_or_else(|| panic!("{:?}", resolution.diagnostics));
        let counted = parameters(&plan);
        (counted.trained.get(), counted.accounts.get(Account::VisionTower).get(), counted.total.get())
    };
    let (trained, tower, total) = counts("Qwen/Qwen2.5-VL-7B-Instruct");
    assert_eq!((trained, tower), (total - TOWER + MERGER, TOWER));
    // Deepstack mergers are not part of Qwen3-VL's `visual.merger`, and stay frozen with the tower.
    let (trained, tower, total) = counts("Qwen/Qwen3-VL-8B-Instruct");
    let merger = 2 * 1152 + 4608 * 4608 + 4608 + 4608 * 4096 + 4096;
    assert_eq!(trained, total - tower + merger);
}

/// What is asked for, with a proposal, and what stops by name.
#[test]
fn what_a_tower_keeps_is_asked_for_or_stops() {
    let ask = |more: &str| read("run.sh", &format!("{SWIFT} {more}\n"), &[]);
    let open = ask("--deepspeed zero2");
    let question = open.questions.iter().find(|asked| asked.name() == "image_patches").expect("a question");
    // The sequence holds 4,096 tokens of four patches each, fewer than the model's processor accepts.
    assert_eq!(question.proposal.as_deref(), Some("16384"));
    assert!(open.plan.is_none() && open.not_modelled.is_empty());
    // Qwen's processors take the maximum number of pixels from the environment: 1,003,520 over 14 x 14, in full tokens.
    let text = format!("MAX_PIXELS=1003520 {SWIFT} --deepspeed zero2\n");
    let resolution = read("run.sh", &text, &[]);
    let question =
        resolution.questions.iter().find(|asked| asked.name() == "image_patches").expect("a question");
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
    stops("--train_type lora --target_modules q_proj up_proj", &[], "part of it trains");
    stops("--deepspeed zero2 --optim adafactor", &[], "shapes of its weights");
    stops("--deepspeed zero2 --use_liger_kernel true", &[("vision_liger", "")], "Liger's kernels");
    stops("--deepspeed zero2", &[("image_patches", "0")], "no sample has an image");
    let apart = "--deepspeed zero2 --gradient_checkpointing false --vit_gradient_checkpointing true";
    stops(apart, &[], "its layers are recomputed and the decoder's are not");
    stops("--torch_dtype float32", &[("image_patches", "64")], "in fp32");
    stops("--deepspeed zero2 --model llava-hf/llava-1.5-7b-hf", &[], "of this type are not recorded");
}
