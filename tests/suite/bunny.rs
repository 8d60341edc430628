//! Bunny: LLaVA's ways to train with SigLIP's tower, compared with figures computed by hand.

use shardscope::estimate::{memory, parameters};
use shardscope::launch::Resolution;
use shardscope::operators::{Operator, Symbols};
use shardscope::plan::Plan;
use shardscope::source::Source;

use super::drafts::kept;
use super::formats::resolved;
use super::formula::evaluate;

/// A line of its kind, with SigLIP's tower and a decoder whose attention is PyTorch's kernel.
const LINE: &str = "deepspeed bunny/train/train.py --deepspeed ./script/deepspeed/zero3.json --model_type llama3-8b \
    --model_name_or_path meta-llama/Meta-Llama-3-8B-Instruct --version llama --data_path a.json --image_folder images \
    --vision_tower google/siglip-so400m-patch14-384 --mm_projector_type mlp2x_gelu --image_aspect_ratio pad \
    --group_by_modality_length False --bf16 True --per_device_train_batch_size 8 --gradient_accumulation_steps 2 \
    --model_max_length 2048 --gradient_checkpointing True";

fn read(more: &str, set: &[(&str, &str)]) -> Resolution {
    let set: Vec<_> = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    resolved(&Source::from_files([("run.sh", format!("{LINE} {more}\n").as_str())]), &set)
}

#[track_caller]
fn plan(more: &str, stage: &str) -> Plan {
    let resolution = read(more, &[("world_size", "8"), ("zero_stage", stage)]);
    resolution
        .plan
        .unwrap_or_else(|| panic!("no plan: {:?} {:?}", resolution.diagnostics, resolution.not_modelled))
}

/// Parameters of Llama 3 8B, of SigLIP's tower at 384 pixels, and of the projector: 1,152 · 4,096 + 4,096 and
/// 4,096 · 4,096 + 4,096.
const DECODER: u64 = 8_030_261_248;
const TOWER: u64 = 428_225_600;
const PROJECTOR: u64 = 21_504_000;

#[test]
fn its_ways_to_train_are_counted_as_by_hand() {
    let full = plan("", "3");
    assert_eq!(parameters(&full).total.get(), DECODER + TOWER + PROJECTOR);
    assert_eq!(parameters(&full).trained.get(), DECODER + PROJECTOR);
    let totals = memory(&full).ranks[0].totals;
    assert_eq!(totals.optimizer.get(), 12 * (DECODER + PROJECTOR) / 8);
    // All of SigLIP's tokens become tokens of the decoder.
    for (more, samples) in [("", 8), ("--per_device_train_batch_size 1", 1)] {
        let plan = plan(more, "3");
        let x = Symbols::new(&plan);
        assert_eq!(kept(&x, &[Operator::Projector]), samples * 729 * (1152 + 2 * 4096) * 2);
        assert_eq!(kept(&x, &[Operator::Embedding]), samples * (2048 - 729) * 8);
        let alive = &Operator::VisionLayer.transients(&x)[0];
        assert_eq!(alive.bytes().get(), (108 + 2 * 28) * samples * 729 * 1152);
        let value = evaluate(alive.tensors[0].formula.expression, &|name| x.value(name));
        assert_eq!(alive.bytes().get() as f64, value);
    }
    let first = plan("--tune_mm_mlp_adapter True --version plain", "2");
    assert_eq!(parameters(&first).trained.get(), PROJECTOR);
    // Adapters on every linear layer of the decoder, of 8 key heads.
    let lora = plan("--lora_enable True --lora_r 128 --lora_alpha 256 --mm_projector_lr 2e-5", "3");
    let adapters = 32 * 128 * (2 * (4096 + 4096) + 2 * (4096 + 1024) + 3 * (4096 + 14_336));
    assert_eq!(parameters(&lora).trained.get(), adapters + PROJECTOR);
    let clip = plan("--vision_tower openai/clip-vit-large-patch14-336", "3");
    assert_eq!(kept(&Symbols::new(&clip), &[Operator::Projector]), 8 * 576 * (1024 + 2 * 4096) * 2);
}

#[test]
fn what_differs_stops_by_name() {
    let two = [("world_size", "8"), ("zero_stage", "2")];
    for (more, name) in [
        ("--model_type phi-2 --model_name_or_path microsoft/phi-2", "model_type"),
        ("--use_s2 True", "use_s2"),
        ("--unfreeze_vision_tower True", "unfreeze_vision_tower"),
        ("--freeze_backbone True", "freeze_backbone"),
        ("--freeze_mm_mlp_adapter True", "freeze_mm_mlp_adapter"),
        ("--mm_projector_type minigpt", "mm_projector_type"),
        ("--bf16 False", "bf16"),
        ("--tune_mm_mlp_adapter True --lora_enable True", "tune_mm_mlp_adapter"),
        ("--vision_tower /weights/EVA02_CLIP_L_336_psz14_s6B.pt", "vision_tower"),
    ] {
        let resolution = read(more, &two);
        let stops = resolution.not_modelled.iter().any(|item| item.name == name);
        assert!(resolution.plan.is_none() && stops, "{more}: {:?}", resolution.not_modelled);
    }
}
