//! TinyLLaVA Factory: its recipes, towers and connectors, compared with figures computed by hand.

use shardscope::estimate::{kept_by_chunk, memory, parameters};
use shardscope::launch::Resolution;
use shardscope::operators::{Operator, Symbols};
use shardscope::plan::Plan;
use shardscope::source::Source;

use super::drafts::kept;
use super::formats::resolved;

/// A line of its kind, with another recipe in `more`.
const LINE: &str = "deepspeed tinyllava/train/train.py --deepspeed ./scripts/zero3.json --data_path a.json \
    --image_folder images --is_multimodal True --model_name_or_path microsoft/phi-2 --vision_tower2 '' \
    --mm_vision_select_layer -2 --image_aspect_ratio square --attn_implementation flash_attention_2 \
    --per_device_train_batch_size 8 --gradient_accumulation_steps 4 --model_max_length 2048 --gradient_checkpointing True";
const SIGLIP: &str = "--vision_tower google/siglip-so400m-patch14-384 --connector_type mlp2x_gelu";
const FULL: &str = "--conv_version phi --training_recipe common --tune_type_llm full --tune_type_vision_tower frozen \
    --tune_vision_tower_from_layer 0 --tune_type_connector full --fp16 True";
const PRETRAIN: &str = "--conv_version pretrain --training_recipe common --tune_type_llm frozen --tune_type_connector full \
    --fp16 True";
const LORA: &str = "--training_recipe lora --tune_type_llm lora --tune_type_connector full --lora_r 128 --lora_alpha 256 \
    --bf16 True";

fn read(words: &[&str], set: &[(&str, &str)]) -> Resolution {
    let set: Vec<_> = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let text = format!("{LINE} {}\n", words.join(" "));
    resolved(&Source::from_files([("run.sh", text.as_str())]), &set)
}

#[track_caller]
fn plan(words: &[&str], stage: &str) -> Plan {
    let resolution = read(words, &[("world_size", "8"), ("zero_stage", stage)]);
    resolution
        .plan
        .unwrap_or_else(|| panic!("no plan: {:?} {:?}", resolution.diagnostics, resolution.not_modelled))
}

/// Parameters of Phi-2, of SigLIP's tower at 384 pixels with its pooling head, and of the connector between them:
/// 1,152 · 2,560 + 2,560 and 2,560 · 2,560 + 2,560.
const DECODER: u64 = 2_779_683_840;
const TOWER: u64 = 428_225_600;
const CONNECTOR: u64 = 9_507_840;

#[test]
fn its_recipes_are_counted_as_by_hand() {
    let full = plan(&[SIGLIP, FULL], "3");
    let counted = parameters(&full);
    assert_eq!(counted.total.get(), DECODER + TOWER + CONNECTOR);
    assert_eq!(counted.trained.get(), DECODER + CONNECTOR);
    let totals = memory(&full).ranks[0].totals;
    assert_eq!(totals.optimizer.get(), 12 * (DECODER + CONNECTOR) / 8);
    // 8 samples of 728 patches: SigLIP's first is left out like a class token.
    let x = Symbols::new(&full);
    assert_eq!(kept(&x, &[Operator::Projector]), 8 * 728 * (1152 + 2 * 2560) * 2);
    assert_eq!(kept(&x, &[Operator::Embedding]), 8 * (2048 - 728) * 8);
    assert_eq!(Operator::VisionLayer.transients(&x)[0].bytes().get(), (108 + 2 * 28) * 8 * 729 * 1152);
    // A frozen decoder leaves the connector alone.
    let first = plan(&[SIGLIP, PRETRAIN], "2");
    assert_eq!(parameters(&first).trained.get(), CONNECTOR);
    let totals = memory(&first).ranks[0].totals;
    assert_eq!(totals.parameters.get(), 2 * (DECODER + TOWER + CONNECTOR));
    assert_eq!(totals.optimizer.get(), 12 * CONNECTOR / 8);
    assert!(
        kept_by_chunk(&first, &first.layout().stages.stages[0].chunks[0]).get() > 32 * 8 * 2048 * 2560 * 2
    );
    // Adapters on query, key, value, output and both of the MLP's, of 32 layers.
    let lora = plan(&[SIGLIP, LORA], "2");
    let adapters = 32 * 128 * (8 * 2560 + 2 * (2560 + 10_240));
    assert_eq!(parameters(&lora).trained.get(), adapters + CONNECTOR);
    // CLIP's class token is left out.
    let clip = "--vision_tower openai/clip-vit-large-patch14-336 --connector_type linear";
    let clip = plan(&[clip, FULL], "3");
    assert_eq!(parameters(&clip).total.get(), DECODER + 303_507_456 + 1024 * 2560 + 2560);
    assert_eq!(kept(&Symbols::new(&clip), &[Operator::Projector]), 8 * 576 * 1024 * 2);
}

#[test]
fn its_script_with_arguments_is_read_with_them() {
    let script = format!(
        "VT_VERSION=\"$1\"\nCN_VERSION=\"$2\"\nTRAIN_RECIPE=\"$3\"\n{LINE} --vision_tower $VT_VERSION \
         --connector_type $CN_VERSION --training_recipe $TRAIN_RECIPE --tune_type_llm full --fp16 True\n"
    );
    let call = "bash finetune.sh google/siglip-so400m-patch14-384 mlp2x_gelu common\n";
    let set =
        [("world_size", "8"), ("zero_stage", "3")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let alone = resolved(&Source::from_files([("finetune.sh", script.as_str())]), &set);
    assert!(alone.plan.is_none() && alone.not_modelled.is_empty(), "{:?}", alone.not_modelled);
    let mut asked: Vec<&str> = alone.questions.iter().map(|question| question.name()).collect();
    asked.sort_unstable();
    assert_eq!(asked, ["$1", "$2", "$3"]);
    let both = resolved(&Source::from_files([("train.sh", call), ("finetune.sh", script.as_str())]), &set);
    let plan = both.plan.unwrap_or_else(|| panic!("{:?}", both.diagnostics));
    assert_eq!(parameters(&plan).total.get(), DECODER + TOWER + CONNECTOR);
}

#[test]
fn what_its_recipes_do_besides_stops_by_name() {
    let two = [("world_size", "8"), ("zero_stage", "2")];
    for (more, name) in [
        ("--tune_type_vision_tower full", "tune_type_vision_tower"),
        ("--tune_type_vision_tower partially-tune", "tune_type_vision_tower"),
        ("--tune_type_connector frozen", "tune_type_connector"),
        ("--mm_vision_select_feature cls_patch", "mm_vision_select_feature"),
        ("--image_aspect_ratio anyres", "image_aspect_ratio"),
        ("--fp16 False", "fp16"),
        ("--connector_type qformer", "connector_type"),
        ("--training_recipe qlora_int4 --tune_type_llm qlora", "training_recipe"),
        ("--training_recipe common --tune_type_llm lora", "training_recipe"),
        (
            "--vision_tower mof:openai/clip-vit-large-patch14 --vision_tower2 mof:facebook/dinov2-large",
            "vision_tower",
        ),
        ("--vision_tower facebook/dinov2-large", "vision_tower"),
    ] {
        let resolution = read(&[SIGLIP, FULL, more], &two);
        let stops = resolution.not_modelled.iter().any(|item| item.name == name);
        assert!(resolution.plan.is_none() && stops, "{more}: {:?}", resolution.not_modelled);
    }
    // Left out, transformers 4.40 chooses by the decoder's class, of which Phi's has no kernel then.
    let text = format!("{LINE} {SIGLIP} {FULL}\n").replace("--attn_implementation flash_attention_2", "");
    let set = two.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let left_out = resolved(&Source::from_files([("run.sh", text.as_str())]), &set);
    assert_eq!(
        left_out.not_modelled.iter().map(|item| &*item.name).collect::<Vec<_>>(),
        ["attn_implementation"]
    );
    let ddp = read(&[SIGLIP, FULL], &[("world_size", "8"), ("data_parallel_engine", "ddp")]);
    assert!(ddp.plan.is_none());
}
