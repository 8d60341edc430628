//! LLaVA: a projector that trains after a frozen CLIP tower, compared with recorded runs, and its scripts compared with
//! figures computed by hand.

use shardscope::estimate::{kept_by_chunk, memory, parameters};
use shardscope::launch::Resolution;
use shardscope::operators::{Operator, SectionKind, Symbols};
use shardscope::plan::{
    AdapterKernels, AdapterLibrary, AttentionKernel, BaseTraining, DpSharding, Lora, LoraModules,
    NumberFormat, Plan, Projector, Recompute, Software, TowerGradients, TowerLiger, TowerModules,
    Transformers, Tuning, VisionTower,
};
use shardscope::source::Source;

use super::drafts::{draft, even_stages, kept};
use super::formats::resolved;
use super::formula::evaluate;

/// What a small LLaVA keeps (`tests/record/llava.py`).
const RECORDED: &str = include_str!("../data/activations/llava.tsv");

/// The recorded model: what trains, the projector's layers, whether layers are checkpointed, samples.
fn small(way: &str, layers: u64, checkpointed: bool, samples: u64) -> Plan {
    let mut draft = draft();
    let model = &mut draft.model;
    (model.num_layers, model.hidden_size, model.ffn_hidden_size) = (3, 64, 160);
    (model.num_attention_heads, model.num_query_groups, model.kv_channels) = (4, 4, 16);
    (model.seq_length, model.padded_vocab_size) = (40, 320);
    let projector = Projector { layers, patches: 16, before: 1 };
    model.vision = Some(VisionTower {
        parameters: 60_000 + projector.parameters(48, 64),
        layers: 3,
        layer_parameters: 18_960,
        hidden_size: 48,
        patches_per_token: 1,
        dtype: None,
        projector: Some(projector),
        gradients: TowerGradients::None,
        projector_trains: false,
        deep_trains: false,
        liger: TowerLiger::None,
        kept: None,
        recomputed: true,
        image_patches: None,
        modules: TowerModules::Own,
        in_engine_alone: false,
        follows_formats: false,
    });
    draft.layout.stages = even_stages(3, 1, 0);
    let recipe = &mut draft.recipe;
    recipe.software = Software::HfTransformers;
    recipe.dp_sharding = DpSharding::Replicated;
    recipe.micro_batch_size = samples;
    recipe.num_micro_batches = 2;
    recipe.global_batch_size = 2 * samples;
    (recipe.params_dtype, recipe.grads_dtype) = (NumberFormat::Bf16, NumberFormat::Bf16);
    recipe.attention_kernel = AttentionKernel::Sdpa;
    if checkpointed {
        recipe.recompute = Recompute::Uniform { num_layers: 1, distribute: false };
    }
    recipe.transformers = Transformers::default();
    recipe.tuning = Tuning { projector: true, ..Tuning::default() };
    if way != "all" {
        let frozen = (BaseTraining::None, false, false);
        (recipe.tuning.base, recipe.tuning.embedding, recipe.tuning.head) = frozen;
    }
    if way == "lora" {
        recipe.tuning.lora = Some(Lora {
            rank: 8,
            dora: false,
            dropout: true,
            dtype: NumberFormat::Bf16,
            modules: LoraModules::ALL,
            drops_result: false,
            library: AdapterLibrary::Peft,
            kernels: AdapterKernels::default(),
        });
    }
    draft.plan()
}

#[test]
fn what_a_small_llava_keeps_is_met_to_the_byte() {
    let (mut runs, mut wrong) = (0, Vec::new());
    for line in RECORDED.lines().skip(1).take_while(|line| !line.starts_with("tower")) {
        let cells: Vec<&str> = line.split('\t').collect();
        let numbers: Vec<u64> = cells[1..].iter().map(|cell| cell.parse().unwrap()).collect();
        let [layers, checkpointed, samples, projector, decoder, trained] = numbers[..] else {
            panic!("{line}")
        };
        let plan = small(cells[0], layers, checkpointed == 1, samples);
        let x = Symbols::new(&plan);
        let ours = kept(&x, &[Operator::Projector]);
        let all = kept_by_chunk(&plan, &plan.layout().stages.stages[0].chunks[0]).get();
        let trains = parameters(&plan).trained.get();
        // The rotary table is alive for the recomputed layers, but not a saved tensor: checkpointing holds it as an
        // argument.
        let table = checkpointed * 2 * x.s * x.rotated * x.width;
        if [ours, all - ours, trains] != [projector, decoder + table, trained] {
            wrong.push(format!("{line}: {ours} {} {trains}", all - ours));
        }
        for saved in SectionKind::Embedding.operators(&x).iter().flat_map(|operator| operator.saved(&x)) {
            let value = evaluate(saved.formula.expression, &|name| x.value(name));
            assert_eq!(saved.bytes.get() as f64, value, "{line}: {}", saved.name);
        }
        runs += 1;
    }
    assert!(wrong.is_empty() && runs == 24, "of {runs}:\n{}", wrong.join("\n"));
}

/// LLaVA-1.5's `scripts/v1_5/finetune.sh` and, with other options, its other scripts (haotian-liu/LLaVA at
/// c121f0432da2).
const TUNING: &str = "deepspeed llava/train/train_mem.py --deepspeed ./scripts/zero3.json \
    --model_name_or_path lmsys/vicuna-13b-v1.5 --version v1 --data_path ./playground/data/llava_v1_5_mix665k.json \
    --image_folder ./playground/data --vision_tower openai/clip-vit-large-patch14-336 \
    --pretrain_mm_mlp_adapter ./checkpoints/llava-v1.5-13b-pretrain/mm_projector.bin --mm_projector_type mlp2x_gelu \
    --mm_vision_select_layer -2 --mm_use_im_start_end False --mm_use_im_patch_token False --image_aspect_ratio pad \
    --group_by_modality_length True --bf16 True --output_dir ./checkpoints/llava-v1.5-13b --num_train_epochs 1 \
    --per_device_train_batch_size 16 --per_device_eval_batch_size 4 --gradient_accumulation_steps 1 \
    --evaluation_strategy no --learning_rate 2e-5 --weight_decay 0. --model_max_length 2048 --gradient_checkpointing True";

fn read(more: &str, set: &[(&str, &str)]) -> Resolution {
    let set: Vec<_> = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    resolved(&Source::from_files([("run.sh", format!("{TUNING} {more}\n").as_str())]), &set)
}

#[track_caller]
fn plan(more: &str, stage: &str) -> Plan {
    let resolution = read(more, &[("world_size", "8"), ("zero_stage", stage)]);
    resolution
        .plan
        .unwrap_or_else(|| panic!("no plan: {:?} {:?}", resolution.diagnostics, resolution.not_modelled))
}

/// Parameters of Vicuna-13B, of CLIP's tower at 336 pixels, and of the projector between them: 1,024 · 5,120 + 5,120
/// and
/// 5,120 · 5,120 + 5,120.
const DECODER: u64 = 13_015_864_320;
const TOWER: u64 = 303_507_456;
const PROJECTOR: u64 = 31_467_520;

#[test]
fn its_scripts_are_counted_as_by_hand() {
    let tuned = plan("", "3");
    let counted = parameters(&tuned);
    assert_eq!(counted.total.get(), DECODER + TOWER + PROJECTOR);
    assert_eq!(counted.trained.get(), DECODER + PROJECTOR);
    let totals = memory(&tuned).ranks[0].totals;
    let trained = DECODER + PROJECTOR;
    assert_eq!(totals.gradients.get(), (2 * trained).div_ceil(8));
    assert_eq!(totals.optimizer.get(), 12 * trained / 8);
    // 16 samples of 2,048 tokens: 40 layer inputs, and the projector's.
    let x = Symbols::new(&tuned);
    assert_eq!(kept(&x, &[Operator::Projector]), 16 * 576 * (1024 + 2 * 5120) * 2);
    assert_eq!(kept(&x, &[Operator::Embedding]), 16 * (2048 - 576) * 8);
    // Pre-training: of 13 billion parameters only the projector's have a gradient.
    let words = "--tune_mm_mlp_adapter True";
    let first = plan(words, "2");
    assert_eq!(parameters(&first).trained.get(), PROJECTOR);
    let totals = memory(&first).ranks[0].totals;
    assert_eq!(totals.parameters.get(), 2 * (DECODER + TOWER + PROJECTOR));
    assert_eq!(totals.optimizer.get(), 12 * PROJECTOR / 8);
    assert!(
        kept_by_chunk(&first, &first.layout().stages.stages[0].chunks[0]).get() > 40 * 16 * 2048 * 5120 * 2
    );
    // Adapters on every linear layer of the decoder: 40 · 128 · (8 · 5,120 + 3 · (5,120 + 13,824)).
    let lora = plan("--lora_enable True --lora_r 128 --lora_alpha 256 --mm_projector_lr 2e-5", "3");
    let adapters = 40 * 128 * (8 * 5120 + 3 * (5120 + 13_824));
    assert_eq!(parameters(&lora).trained.get(), adapters + PROJECTOR);
    let quantized = plan("--lora_enable True --bits 4", "2");
    assert_eq!(parameters(&quantized).trained.get(), adapters / 2 + PROJECTOR);
}

/// LLaVA-1.5-7B. As transformers' `llava` type it is published with 7,063,427,072: with 64 rows more in both embeddings.
#[test]
fn seven_billion_are_those_of_the_published_model() {
    let small = plan("--model_name_or_path lmsys/vicuna-7b-v1.5", "3");
    assert_eq!(parameters(&small).total.get(), 7_063_427_072 - 2 * 64 * 4096);
}

/// DeepSpeed casts everything to fp16 like to bf16, and holds the same states beside it.
#[test]
fn fp16_holds_what_bf16_holds() {
    let [half, brain] = ["--bf16 False --fp16 True", ""].map(|more| memory(&plan(more, "3")).ranks[0].totals);
    assert_eq!(
        [half.parameters, half.gradients, half.optimizer],
        [brain.parameters, brain.gradients, brain.optimizer]
    );
}

/// The tower runs under no_grad before the decoder, and its own peak is below the overall peak.
#[test]
fn the_tower_passes_by_below_the_peak() {
    let towers = RECORDED.lines().skip_while(|line| !line.starts_with("tower\t")).skip(1);
    let counts = [(303_179_776, "12596224"), (TOWER, "12596224"), (428_225_600, "15239504")];
    for (line, (count, layer)) in towers.zip(counts) {
        let cells: Vec<&str> = line.split('\t').collect();
        assert_eq!((cells[1].parse(), cells[2]), (Ok(count), layer), "{line}");
        assert!(cells[3].parse::<f64>().unwrap() <= 108.0, "{line}");
    }
    for more in ["", "--tune_mm_mlp_adapter True", "--lora_enable True"] {
        let plan = plan(more, "3");
        let x = Symbols::new(&plan);
        let alive = Operator::VisionLayer.transients(&x)[0].bytes().get();
        assert_eq!(alive, (108 + 2 * 25) * 16 * 577 * 1024);
        let kept = kept_by_chunk(&plan, &plan.layout().stages.stages[0].chunks[0]).get();
        assert!(alive < kept, "{more}: {alive} of {kept}");
    }
}

#[test]
fn what_differs_from_its_scripts_stops_by_name() {
    let two = [("world_size", "8"), ("zero_stage", "2")];
    for more in [
        "--bf16 False",
        "--image_aspect_ratio anyres",
        "--mm_use_im_patch_token True",
        "--freeze_backbone True",
        "--mm_projector_type resampler",
        "--version v0",
        "--mm_tunable_parts mm_vision_tower,mm_mlp_adapter",
        "--vision_tower google/siglip-so400m-patch14-384",
        "--tune_mm_mlp_adapter True --lora_enable True",
        "--model_max_length 512",
    ] {
        let resolution = read(more, &two);
        assert!(resolution.plan.is_none() && !resolution.not_modelled.is_empty(), "{more}");
    }
    let ddp = read("", &[("world_size", "8"), ("data_parallel_engine", "ddp")]);
    assert!(ddp.plan.is_none());
}
