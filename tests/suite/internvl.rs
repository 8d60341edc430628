//! InternVL: what its own modules keep compared with recorded runs, to the byte, and scripts of its program compared with figures
//! computed by hand.

use serde_json::Value;
use shardscope::estimate::{kept_by_chunk, memory, parameters};
use shardscope::launch::Resolution;
use shardscope::operators::{Operator, Saved, SectionKind, Symbols};
use shardscope::plan::{Plan, TowerGradients};
use shardscope::source::Source;

use super::drafts::{flag, int, kept};
use super::formats::resolved;
use super::formula::evaluate;

/// `tests/record/internvl_own.py`.
const RECORDED: &str = include_str!("../data/activations/internvl_own.jsonl");

fn given(set: &[(&str, &str)]) -> Vec<(String, String)> {
    set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn plan_of(case: &Value) -> Plan {
    let way = case["way"].as_str().expect("a way");
    let parts =
        [("tower", "vision_tower"), ("projector", "multi_modal_projector"), ("decoder", "language_model")];
    let frozen =
        parts.iter().filter(|(part, _)| !(way.contains(part) || way == "lora" && *part == "decoder"));
    let frozen = match frozen.map(|(_, name)| *name).collect::<Vec<_>>().join(" ") {
        none if none.is_empty() => "none".to_owned(),
        some => some,
    };
    let (patches, samples) = (int(case, "patches").to_string(), int(case, "samples").to_string());
    let set = given(&[
        ("software", "hf_transformers"),
        ("world_size", "1"),
        ("seq_length", "96"),
        ("micro_batch_size", &samples),
        ("params_dtype", "bf16"),
        ("image_patches", &patches),
        ("attn_implementation", "flash_attention_2"),
        ("autocast", "none"),
        ("vision_input_grads", "false"),
        ("frozen_modules", &frozen),
        ("gradient_checkpointing", if flag(case, "checkpointed") { "true" } else { "false" }),
    ]);
    let files = Source::from_files([("config.json", case["config"].to_string().as_str())]);
    let resolution = resolved(&files, &set);
    resolution
        .plan
        .unwrap_or_else(|| panic!("{case}: {:?} {:?}", resolution.diagnostics, resolution.not_modelled))
}

fn bytes(x: &Symbols<'_>, saved: &[Saved]) -> u64 {
    for saved in saved {
        let value = evaluate(saved.formula.expression, &|name| x.value(name));
        assert_eq!(saved.bytes.get() as f64, value, "{}", saved.name);
    }
    saved.iter().map(|saved| saved.bytes.get()).sum()
}

/// Whatever the decoder does, tower and projector keep the same.
#[test]
fn recorded_towers_of_its_own_code_are_met_to_the_byte() {
    let mut compared = 0;
    for line in RECORDED.lines() {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let name = format!("{} {} {}", case["kind"], case["way"], case["checkpointed"]);
        let plan = plan_of(&case);
        let x = Symbols::new(&plan);
        let layers = plan.model().vision.expect("a tower").layers;
        let of = |kind: SectionKind| -> u64 {
            kind.kept_operators(&x).iter().map(|operator| bytes(&x, &operator.saved(&x))).sum()
        };
        let alone = plan.model().vision.is_some_and(|tower| tower.projects_alone());
        let projector = if alone { bytes(&x, &Operator::Projector.saved(&x)) } else { 0 };
        let ours = layers * of(SectionKind::VisionLayer) + of(SectionKind::VisionEnds) + projector;
        assert_eq!(ours, int(&case, "tower"), "{name}");
        if !flag(&case, "checkpointed") {
            assert_eq!(bytes(&x, &Operator::VisionLayer.saved(&x)), int(&case, "layer"), "{name}");
        }
        // Beside them a byte for each token, whether an image's stands there, and one for each tile that a gradient comes from.
        let samples = int(&case, "samples");
        let trains = u64::from(case["way"].as_str().is_some_and(|way| way.contains("projector")));
        assert_eq!(int(&case, "outside"), samples * (96 + trains * int(&case, "tiles")), "{name}");
        compared += 1;
    }
    assert_eq!(compared, 32);
}

/// `internvl_chat/shell/internvl2.5/2nd_finetune/internvl2_5_26b_dynamic_res_2nd_finetune_lora.sh` (OpenGVLab/InternVL at
/// 2410d1dbf208), and others with other options.
const TUNING: &str = "torchrun --nnodes=1 --nproc_per_node=2 internvl/train/internvl_chat_finetune.py \
    --conv_style internvl2_5 --use_fast_tokenizer False --meta_path ./shell/data/internvl_1_2_finetune_custom.json \
    --overwrite_output_dir True --force_image_size 448 --max_dynamic_patch 6 --down_sample_ratio 0.5 --drop_path_rate 0.0 \
    --vision_select_layer -1 --dataloader_num_workers 4 --bf16 True --num_train_epochs 1 --per_device_train_batch_size 2 \
    --gradient_accumulation_steps 4 --learning_rate 2e-5 --weight_decay 0.05 --max_seq_length 8192 --do_train True \
    --grad_checkpoint True --group_by_length True --dynamic_image_size True --use_thumbnail True --ps_version v2 \
    --deepspeed zero_stage3_config.json";
const LORA: &str = "--model_name_or_path OpenGVLab/InternVL2_5-26B --freeze_llm True --freeze_mlp True --freeze_backbone True \
    --use_llm_lora 16";
const FULL: &str = "--model_name_or_path ./pretrained/InternVL3-8B --freeze_llm False --freeze_mlp False --freeze_backbone True";

fn read(more: &str, set: &[(&str, &str)]) -> Resolution {
    let mut set = given(set);
    set.push(("zero_stage".to_owned(), "3".to_owned()));
    resolved(&Source::from_files([("run.sh", format!("{TUNING} {more}\n").as_str())]), &set)
}

#[track_caller]
fn plan(more: &str, set: &[(&str, &str)]) -> Plan {
    let resolution = read(more, set);
    resolution
        .plan
        .unwrap_or_else(|| panic!("no plan: {:?} {:?}", resolution.diagnostics, resolution.not_modelled))
}

/// InternViT-6B: 45 layers of 4 h² + 3 h, of 2 h f + f + h and of 4 h, h 3,200 and f 12,800, and outside of them (588 + 1,027) h; and
/// `mlp1` onto 6,144: a norm of 12,800, 12,800 · 6,144 + 6,144 and 6,144² + 6,144.
const VIT_6B: u64 = 5_536_496_000;
const MLP_26B: u64 = 116_429_824;

#[test]
fn its_scripts_are_counted_as_by_hand() {
    let lora = plan(LORA, &[]);
    let vision = lora.model().vision.expect("a tower");
    assert_eq!(vision.parameters, VIT_6B + MLP_26B);
    assert_eq!(vision.gradients, TowerGradients::None);
    // The joined projection of queries, keys and values has one pair of matrices.
    let adapters = 48 * 16 * (6144 + 8192 + 2 * 6144 + 3 * (6144 + 16_384));
    assert_eq!(parameters(&lora).trained.get(), adapters);
    assert_eq!(lora.recipe().tuning.lora.map(|lora| lora.rank), Some(16));
    let x = Symbols::new(&lora);
    assert_eq!(kept(&x, &[Operator::Projector, Operator::VisionLayer]), 0);

    // Tiles: 6, and the image as a whole.
    let asked = read(FULL, &[]);
    let proposal = asked.questions.iter().find_map(|question| question.proposal.clone());
    assert_eq!(proposal.as_deref(), Some("7168"), "{:?}", asked.questions);
    let full = plan(FULL, &[("image_patches", "7168")]);
    let mlp = 2 * 4096 + 4096 * 3584 + 3584 + 3584 * 3584 + 3584;
    let vision = full.model().vision.expect("a tower");
    assert_eq!(vision.parameters, 304_012_288 + mlp);
    let counted = parameters(&full);
    assert_eq!(counted.total.get() - counted.trained.get(), 304_012_288);
    let totals = memory(&full).ranks[0].totals;
    assert_eq!(totals.optimizer.get(), 12 * counted.trained.get() / 2);
    let x = Symbols::new(&full);
    assert_eq!(kept(&x, &[Operator::Projector]), 2 * 1792 * (16 * 1024 + 8 + 4 * 3584));

    // Its first stages: the projector alone, or the tower with it, before a decoder that gradients only pass.
    let layers = |plan: &Plan| kept_by_chunk(plan, &plan.layout().stages.stages[0].chunks[0]).get();
    for (more, trained) in [("", mlp), ("--freeze_backbone False", mlp + 304_012_288)] {
        let first = plan(&format!("{FULL} --freeze_llm True {more}"), &[("image_patches", "7168")]);
        assert_eq!(parameters(&first).trained.get(), trained, "{more}");
        assert_eq!(memory(&first).ranks[0].totals.optimizer.get(), 12 * trained / 2, "{more}");
        assert!(layers(&first) > 28 * 2 * 8192 * 3584 * 2, "{more}");
    }
}

/// `internvl_chat/shell/mini_internvl/domain_adaptation/internvl2_4b_phi3_3_8b_dynamic_res_finetune_bdd.sh`: all trains, in packs.
#[test]
fn packs_have_their_own_length_and_tiles() {
    let all = "--model_name_or_path ./pretrained/InternVL2-4B --freeze_llm False --freeze_mlp False --freeze_backbone False \
               --per_device_train_batch_size 1 --use_packed_ds True --num_images_expected 48 --max_packed_tokens 16384 \
               --drop_path_rate 0.1";
    let packed = plan(all, &[]);
    let (model, vision) = (packed.model(), packed.model().vision.expect("a tower"));
    assert_eq!((model.seq_length, vision.image_patches), (16_384, Some(48 * 1024)));
    assert_eq!(parameters(&packed).trained.get(), parameters(&packed).total.get());
    // 24 inputs of layers of the tower, each of 48 tiles with a token of their own before them.
    let x = Symbols::new(&packed);
    let ends = SectionKind::VisionEnds.kept_operators(&x);
    let inputs = ends
        .iter()
        .flat_map(|operator| operator.saved(&x))
        .find(|saved| saved.name == "inputs of vision layers");
    assert_eq!(inputs.map(|saved| saved.bytes.get()), Some(24 * 48 * 1025 * 1024 * 2));
}

#[test]
fn what_is_not_modelled_stops_by_name() {
    let stopped = |more: &str| {
        let read = read(&format!("{LORA} {more}"), &[]);
        read.not_modelled.iter().map(|item| item.name.clone()).collect::<Vec<_>>()
    };
    assert!(stopped("").is_empty(), "{:?}", stopped(""));
    for (more, name) in [
        ("--use_packed_ds True", "use_packed_ds"),
        ("--use_backbone_lora 16", "use_backbone_lora"),
        ("--unfreeze_vit_layers -4", "unfreeze_vit_layers"),
        ("--unfreeze_lm_head True", "unfreeze_lm_head"),
        ("--force_image_size 224", "force_image_size"),
        ("--vision_select_layer -4", "vision_select_layer"),
        ("--use_liger True", "use_liger"),
        ("--use_custom_flash_attn True", "use_custom_flash_attn"),
        ("--conv_style internvl3_5_gpt_oss", "conv_style"),
        ("--bf16 False", "bf16"),
    ] {
        assert_eq!(stopped(more), [name], "{more}");
    }
    for off in [
        "--use_packed_ds False",
        "--use_custom_flash_attn False --split_annotations True",
        "--use_backbone_lora 0",
        "--unfreeze_vit_layers 0",
    ] {
        assert!(stopped(off).is_empty(), "{off}");
    }
    // Another program's model, which is put together of a tower and a decoder.
    let apart =
        read("--vision_path ./InternViT-300M-448px --llm_path Qwen/Qwen2.5-7B --freeze_mlp False", &[]);
    assert!(apart.plan.is_none() && apart.not_modelled.iter().any(|item| item.name == "vision_path"));
    // A decoder alone is not the whole.
    let alone = read(&format!("{LORA} --model_name_or_path Qwen/Qwen2.5-7B"), &[]);
    assert!(alone.not_modelled.iter().any(|item| item.name == "vision_tower"), "{:?}", alone.not_modelled);
    assert!(alone.plan.is_none());
    // Without flash attention, which the program wants, nothing is said of scores.
    let trained = "--freeze_backbone False --freeze_mlp False --freeze_llm False --use_llm_lora 0";
    let whole = plan(&format!("{LORA} {trained}"), &[("image_patches", "1024")]);
    assert_eq!(whole.model().vision.map(|tower| tower.gradients), Some(TowerGradients::Trained));
    let autocast = [("image_patches", "1024"), ("data_parallel_engine", "ddp"), ("autocast", "bf16")];
    let cast = read(&format!("{LORA} {trained}"), &autocast);
    assert!(
        cast.not_modelled.iter().any(|item| item.message.contains("under autocast")),
        "{:?}",
        cast.not_modelled
    );
    let scores = [("image_patches", "1024"), ("attn_implementation", "sdpa")];
    assert!(read(&format!("{LORA} {trained}"), &scores).plan.is_none());
}
