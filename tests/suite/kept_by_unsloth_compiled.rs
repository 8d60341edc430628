//! What a decoder layer that unsloth compiles as one region keeps, with adapters or with all weights training, compared
//! with recorded runs of its modules, equal to the byte; and programs with its `FastModel` and `FastVisionModel`.

use serde_json::Value;
use shardscope::bash::Environment;
use shardscope::estimate::{memory, parameters};
use shardscope::launch::{Request, Resolution, read};
use shardscope::operators::{Symbols, layer_operators};
use shardscope::plan::*;
use shardscope::source::Source;

use super::drafts::{Draft, draft, even_stages, int, kept, recorded_shape};
use super::recorded::{Recorded, formulas};

const RECORDED: &str = include_str!("../data/activations/unsloth_compiled.jsonl");
/// The recorded adapters' rank.
const RANK: u64 = 8;
/// The shape whose graph, broken at attention, keeps the residual stream after attention in addition to the layer's
/// input.
const BROKEN: &str = "gemma3-b2-s160-";

fn cases() -> impl Iterator<Item = Value> {
    RECORDED.lines().skip(1).map(|line| serde_json::from_str(line).expect("JSON"))
}

fn modules(case: &Value) -> LoraModules {
    let names = case["targets"].as_array().expect("names").iter().map(|name| name.as_str().expect("a name"));
    names.fold(LoraModules::default(), |set, name| set.named(name).expect("a module"))
}

pub(crate) fn drafted(case: &Value) -> Draft {
    let mut draft = draft();
    let model = &mut draft.model;
    recorded_shape(model, case);
    let gemma = case["arch"] == "gemma3";
    model.qk_layernorm = gemma || ["qwen3", "qwen3_vl", "lfm2"].iter().any(|arch| case["arch"] == *arch);
    if case["arch"] == "lfm2" {
        let wide = model.hidden_size;
        model.mixers.pattern = vec![Mixer::Attention, Mixer::Linear, Mixer::Attention];
        model.mixers.linear = Some(LinearMixer {
            kind: LinearKind::ShortConvolution,
            key_heads: 1,
            value_heads: 1,
            key_width: wide,
            value_width: wide,
            convolution: 3,
            rank: 0,
            biases: [false; 3],
            norm: false,
        });
    }
    if gemma {
        model.activation = Activation::Geglu;
        model.arrangement.norm_product = NormProduct::PlusOne;
        model.arrangement.norm_places = NormPlaces::Around;
    }
    draft.layout.stages = even_stages(int(case, "layers"), 1, 0);
    let recipe = &mut draft.recipe;
    recipe.software = Software::Unsloth;
    recipe.fusions.compiled_layers = true;
    recipe.dp_sharding = DpSharding::Replicated;
    recipe.micro_batch_size = int(case, "b");
    recipe.num_micro_batches = 2;
    recipe.global_batch_size = 2 * recipe.micro_batch_size;
    let half = match case["half"].as_str() {
        Some("float16") => Some(NumberFormat::Fp16),
        Some("float32") => None,
        _ => Some(NumberFormat::Bf16),
    };
    let held = if case["full"] == "float32" { NumberFormat::Fp32 } else { half.expect("16 bits") };
    recipe.params_dtype = held;
    recipe.grads_dtype = held;
    recipe.transformers.autocast = half;
    let masked = case["masked"] == true || case["joined"] == true;
    recipe.attention_kernel = if gemma { AttentionKernel::Flash } else { AttentionKernel::Sdpa };
    recipe.transformers.padding_mask = masked;
    recipe.loss = LossKind::FusedLinear;
    if case["full"].is_string() {
        recipe.tuning = Tuning { input_gradients: true, ..Tuning::default() };
        return draft;
    }
    recipe.tuning = Tuning {
        base: BaseTraining::None,
        lora: Some(Lora {
            rank: RANK,
            dora: false,
            dropout: false,
            dtype: NumberFormat::Fp32,
            modules: modules(case),
            drops_result: false,
            library: AdapterLibrary::Peft,
            kernels: AdapterKernels::default(),
        }),
        quantization: if case["nf4"] == true {
            Quantization::FourBit { double: true }
        } else {
            Quantization::None
        },
        input_gradients: true,
        ..Tuning::default()
    };
    draft
}

#[test]
fn recorded_layers_are_met_to_the_byte() {
    let mut recorded = Recorded::default();
    for case in cases() {
        let plan = drafted(&case).plan();
        let x = Symbols::new(&plan);
        // On a CPU, attention writes its output in a different layout than the next projection reads, which keeps a
        // copy for its adapter. If its weight trains the copy is made again, unless there is a graph break in between.
        let read = case["arch"] == "gemma3" || case["full"].is_null();
        let copied = if read && (!case["full"].is_null() || modules(&case).has(LinearModule::Output)) {
            2 * x.n * x.a * x.d
        } else {
            0
        };
        // On a CPU Gemma 3's attention breaks the graph. For the part after it the partitioner keeps the layer's input
        // or, at the same cost, the residual stream, which it only does for this shape: in a single graph the input is
        // already kept.
        let broken = case["id"].as_str().is_some_and(|id| id.starts_with(BROKEN));
        let stream = if broken { x.width * x.n * x.h } else { 0 };
        for (index, layer) in (0..).zip(["layer0", "layer1", "layer2"]) {
            let kind = plan.model().layer_kind(index);
            let operators = layer_operators(&x, kind);
            let beside = if kind.mixer.attends() { copied + stream } else { 0 };
            recorded.check(&case, layer, kept(&x, &operators) + beside);
            formulas(&case, &x, &operators);
        }
    }
    assert_eq!(recorded.equal(), 228);
}

/// `python_scripts/Gemma3_(4B).py` of unslothai/notebooks, shortened, without the checkpoint whose layers are partly
/// quantized.
pub(crate) const TEXT: &str = r#"
from unsloth import FastModel
model, tokenizer = FastModel.from_pretrained(
    model_name = "unsloth/gemma-3-4b-it",
    max_seq_length = 2048,
    load_in_4bit = True,
    load_in_8bit = False,
    full_finetuning = False,
    use_exact_model_name = True,
)
model = FastModel.get_peft_model(
    model,
    finetune_vision_layers     = False, # Turn off for just text!
    finetune_language_layers   = True,
    finetune_attention_modules = True,
    finetune_mlp_modules       = True,
    r = 8,
    lora_alpha = 8,
    lora_dropout = 0,
    bias = "none",
    random_state = 3407,
)
from trl import SFTTrainer, SFTConfig
trainer = SFTTrainer(
    model = model, tokenizer = tokenizer, train_dataset = dataset, eval_dataset = None,
    args = SFTConfig(
        dataset_text_field = "text", per_device_train_batch_size = 2, gradient_accumulation_steps = 4,
        max_steps = 30, learning_rate = 2e-4, optim = "adamw_8bit", report_to = "none",
    ),
)
trainer.train()
"#;

/// `FastLanguageModel` has no functions for this model and passes it on, without adapters on its tower
/// (`unsloth/models/loader.py`, `llama.py`).
#[test]
fn a_gemma_3_that_fast_language_model_loads_is_compiled() {
    let scoped = TEXT.find("    finetune_vision_layers").zip(TEXT.find("    r = 8")).expect("switches");
    let plain = TEXT.replace(&TEXT[scoped.0..scoped.1], "").replace("FastModel", "FastLanguageModel");
    let read = resolved(&plain, &[]);
    let plan = read.plan.unwrap_or_else(|| panic!("{:?} {:?}", read.not_modelled, read.diagnostics));
    assert!(read.not_modelled.is_empty(), "{:?}", read.not_modelled);
    let other = resolved(TEXT, &[]).plan.expect("a plan");
    assert_eq!((plan.model(), plan.recipe()), (other.model(), other.recipe()));
    // A model whose layers are not known stops as before.
    assert!(!resolved(&plain.replace("gemma-3-4b-it", "gemma-3n-E4B-it"), &[]).not_modelled.is_empty());
}

/// `python_scripts/Qwen2.5_VL_(7B)-Vision.py`, shortened in the same way.
const VISION: &str = r#"
from unsloth import FastVisionModel
model, tokenizer = FastVisionModel.from_pretrained(
    "unsloth/Qwen2.5-VL-7B-Instruct", load_in_4bit = True, use_gradient_checkpointing = "unsloth", use_exact_model_name = True,
)
model = FastVisionModel.get_peft_model(
    model,
    finetune_vision_layers = True, finetune_language_layers = True, finetune_attention_modules = True, finetune_mlp_modules = True,
    r = 16, lora_alpha = 16, lora_dropout = 0, bias = "none", random_state = 3407, use_rslora = False, loftq_config = None,
)
from unsloth.trainer import UnslothVisionDataCollator
from trl import SFTTrainer, SFTConfig
trainer = SFTTrainer(
    model = model, tokenizer = tokenizer, data_collator = UnslothVisionDataCollator(model, tokenizer), train_dataset = dataset,
    args = SFTConfig(
        per_device_train_batch_size = 2, gradient_accumulation_steps = 4, max_steps = 30, optim = "adamw_8bit",
        remove_unused_columns = False, dataset_kwargs = {"skip_prepare_dataset": True}, max_length = 2048,
    ),
)
trainer.train()
"#;

pub(crate) fn resolved(text: &str, more: &[(&str, &str)]) -> Resolution {
    let source = Source::from_files([("tune.py", text)]);
    let mut set = vec![("accelerator".to_owned(), "A100-SXM-80GB".to_owned())];
    set.retain(|(name, _)| more.iter().all(|(other, _)| name != other));
    set.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    read(&Request { source: &source, environment: &Environment::default(), overrides: &set })
}

/// Trained parameters printed by unsloth's notebooks (unslothai/notebooks@bdda2efc7ad5, `nb/Gemma3_(4B).ipynb`,
/// `Gemma3_(27B)_A100-Conversational`, `Gemma3_(4B)-Vision`, `Qwen2.5_VL_(7B)-Vision`, `Qwen3_VL_(8B)-Vision`): model,
/// rank, whether the tower has adapters too.
const PRINTED: [(&str, u64, bool, u64); 5] = [
    ("unsloth/gemma-3-4b-it", 8, false, 14_901_248),
    ("unsloth/gemma-3-27b-it", 8, false, 56_758_272),
    ("unsloth/gemma-3-4b-pt", 16, true, 38_497_792),
    ("unsloth/Qwen2.5-VL-7B-Instruct", 16, true, 51_521_536),
    ("unsloth/Qwen3-VL-8B-Instruct", 16, true, 51_346_944),
];

#[test]
fn adapters_are_as_many_as_was_printed() {
    for (name, rank, images, printed) in PRINTED {
        let text = TEXT.replace("unsloth/gemma-3-4b-it", name).replace("r = 8,", &format!("r = {rank},"));
        let text = if images { text.replace("= False, # Turn off for just text!", "= True,") } else { text };
        let more = [("image_patches", "4096")];
        let read = resolved(&text, if images { &more } else { &[] });
        let plan = read.plan.unwrap_or_else(|| panic!("{name}: {:?}", read.diagnostics));
        assert!(read.not_modelled.is_empty(), "{name}: {:?}", read.not_modelled);
        assert_eq!(parameters(&plan).trained.get(), printed, "{name}");
    }
}

/// `python_scripts/LFM2.5_(1.2B)-Conversational.py`, shortened, which prints 11,108,352 of 1,181,448,960 parameters as
/// trainable.
const LIQUID: &str = r#"
from unsloth import FastLanguageModel
model, tokenizer = FastLanguageModel.from_pretrained(model_name = "unsloth/LFM2.5-1.2B-Instruct", max_seq_length = 2048, load_in_4bit = False)
model = FastLanguageModel.get_peft_model(
    model, r = 16, target_modules = ["q_proj", "k_proj", "v_proj", "out_proj", "in_proj", "w1", "w2", "w3"],
    lora_alpha = 16, lora_dropout = 0, bias = "none", use_gradient_checkpointing = "unsloth", random_state = 3407,
)
from trl import SFTTrainer, SFTConfig
trainer = SFTTrainer(
    model = model, tokenizer = tokenizer, train_dataset = dataset,
    args = SFTConfig(per_device_train_batch_size = 2, gradient_accumulation_steps = 4, max_steps = 60, optim = "adamw_8bit"),
)
trainer.train()
"#;

/// The checkpoint's configuration of its shape.
const LIQUID_SHAPE: &str = r#"{"architectures": ["Lfm2ForCausalLM"], "model_type": "lfm2", "hidden_size": 2048, "num_hidden_layers": 16,
    "num_attention_heads": 32, "num_key_value_heads": 8, "block_ff_dim": 12288, "block_auto_adjust_ff_dim": true,
    "block_ffn_dim_multiplier": 1.0, "block_multiple_of": 256, "full_attn_idxs": [2, 5, 8, 10, 12, 14], "conv_L_cache": 3,
    "conv_bias": false, "vocab_size": 65536, "max_position_embeddings": 128000, "tie_embedding": true}"#;

fn liquid(text: &str, accelerator: &str) -> Resolution {
    let source = Source::from_files([("tune.py", text), ("config.json", LIQUID_SHAPE)]);
    let set = [("accelerator".to_owned(), accelerator.to_owned())];
    read(&Request { source: &source, environment: &Environment::default(), overrides: &set })
}

#[test]
fn a_model_that_unsloth_hands_on_has_convolutions_compiled_too() {
    let read = liquid(LIQUID, "L4");
    let plan = read.plan.unwrap_or_else(|| panic!("{:?} {:?}", read.not_modelled, read.diagnostics));
    assert!(read.not_modelled.is_empty(), "{:?}", read.not_modelled);
    let counted = parameters(&plan);
    assert_eq!((counted.trained.get(), counted.total.get()), (11_108_352, 1_181_448_960 - 11_108_352));
    assert!(plan.recipe().fusions.compiled_layers && plan.recipe().offload.layer_inputs);
    // Without a separate mask from Ampere on, and with that of padded micro-batches on older GPUs.
    assert!(!plan.recipe().transformers.padding_mask);
    assert!(liquid(LIQUID, "T4").plan.expect("a plan").recipe().transformers.padding_mask);
    // `Liquid_LFM2-Conversational.ipynb` has no adapters on convolutions and prints 9,142,272.
    let text = LIQUID.replace("FastLanguageModel", "FastModel");
    let targets = text.find("target_modules").zip(text.find("    lora_alpha")).expect("its targets");
    let text = text.replace(&text[targets.0..targets.1], "");
    let plan = liquid(&text, "T4").plan.expect("a plan");
    assert_eq!(parameters(&plan).trained.get(), 9_142_272);
    // Without its shape it is asked for, and a model that reads images is reported.
    assert_eq!(resolved(LIQUID, &[]).questions.first().map(|question| question.name()), Some("model"));
    assert!(resolved(LIQUID, &[]).not_modelled.is_empty());
    let images = LIQUID.replace("LFM2.5-1.2B-Instruct", "LFM2.5-VL-1.6B");
    assert!(!resolved(&images, &[]).not_modelled.is_empty());
}

/// `python_scripts/Oute_TTS_(1B).py`, shortened, with the Llama on which it is based, which prints 13,631,488
/// parameters as trainable.
#[test]
fn a_llama_that_fast_model_loads_is_compiled() {
    let text = TEXT.replace("unsloth/gemma-3-4b-it", "unsloth/Llama-3.2-1B");
    let scoped = text.find("    finetune_vision_layers").zip(text.find("    r = 8")).expect("switches");
    let text = text.replace(&text[scoped.0..scoped.1], "    target_modules = [\"q_proj\", \"v_proj\"],\n");
    let read = resolved(&text.replace("r = 8,", "r = 128,"), &[]);
    let plan = read.plan.unwrap_or_else(|| panic!("{:?} {:?}", read.not_modelled, read.diagnostics));
    assert!(read.not_modelled.is_empty(), "{:?}", read.not_modelled);
    assert_eq!(parameters(&plan).trained.get(), 13_631_488);
    assert!(plan.recipe().fusions.compiled_layers);
    for (more, name) in [
        (("packing", "true"), "packing"),
        (("num_experts", "8"), "compiled_layers"),
        (("fused_gate_up", "true"), "compiled_layers"),
    ] {
        let read = resolved(&text, &[more]);
        assert!(read.not_modelled.iter().any(|item| item.name == name), "{name}: {:?}", read.not_modelled);
    }
}

#[test]
fn a_notebook_on_text_adapts_the_decoder_alone() {
    let read = resolved(TEXT, &[]);
    let plan = read.plan.unwrap_or_else(|| panic!("{:?}", read.diagnostics));
    assert!(read.not_modelled.is_empty(), "{:?}", read.not_modelled);
    let adapters = 8 * 34 * (2 * (2560 + 2048) + 2 * (2560 + 1024) + 3 * (2560 + 10_240));
    let (model, recipe) = (plan.model(), plan.recipe());
    assert_eq!(model.vision.expect("a tower").gradients, TowerGradients::None);
    assert!(recipe.fusions.compiled_layers && recipe.offload.layer_inputs);
    assert_eq!(recipe.attention_kernel, AttentionKernel::Flash);
    // The tower and the tied embedding are in 16 bits.
    let totals = memory(&plan).ranks[0].totals;
    let tower = model.vision.expect("a tower").parameters;
    let linear = 34 * 2560 * (2 * 2048 + 2 * 1024 + 3 * 10_240);
    let quantized = linear / 2 + linear / 64 + linear / 64 / 256 * 4;
    let least = 2 * (262_208 * 2560 + tower) + quantized + 4 * adapters;
    let ours = totals.parameters.get();
    assert!((least..least + (4 << 20)).contains(&ours), "{ours} {least}");
}

#[test]
fn a_notebook_on_images_adapts_the_tower_but_not_what_projects_it() {
    let read = resolved(VISION, &[("image_patches", "4096")]);
    let plan = read.plan.unwrap_or_else(|| panic!("{:?}", read.diagnostics));
    assert!(read.not_modelled.is_empty(), "{:?}", read.not_modelled);
    let tower = plan.model().vision.expect("a tower");
    assert_eq!((tower.gradients, tower.projector_trains), (TowerGradients::Adapted, false));
    assert_eq!(plan.recipe().attention_kernel, AttentionKernel::Sdpa);
    // 28 decoder layers; 32 layers of the tower, whose queries, keys and values share one projection.
    let decoder = 28 * (2 * (3584 + 3584) + 2 * (3584 + 512) + 3 * (3584 + 18_944));
    let images = 32 * ((1280 + 3840) + (1280 + 1280) + 3 * (1280 + 3420));
    assert_eq!(parameters(&plan).trained.get(), 16 * (decoder + images));
}

#[test]
fn what_is_not_known_of_compiled_modules_stops_by_name() {
    let stopped = |from: &str, to: &str| {
        assert!(TEXT.contains(from), "{from}");
        let read = resolved(&TEXT.replace(from, to), &[]);
        assert!(!read.not_modelled.is_empty(), "{to}");
        read.not_modelled.iter().map(|item| item.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(
        stopped("finetune_language_layers   = True", "finetune_language_layers   = False"),
        ["finetune_language_layers"]
    );
    let scoped = TEXT.find("    finetune_vision_layers").zip(TEXT.find("    r = 8")).expect("switches");
    let some = stopped(&TEXT[scoped.0..scoped.1], "finetune_mlp_modules = False,\n");
    assert_eq!(some[0], "finetune_vision_layers");
    assert_eq!(
        stopped("bias = \"none\",", "use_gradient_checkpointing = False,"),
        ["use_gradient_checkpointing"]
    );
    // Its tower would train too.
    assert_eq!(stopped("full_finetuning = False", "full_finetuning = True"), ["train_type", "vision_tower"]);
    assert!(stopped("gemma-3-4b-it", "Phi-4-mini-instruct").contains(&"unsloth".to_owned()));
    assert!(
        stopped("optim = \"adamw_8bit\"", "optim = \"adamw_8bit\"), other = GRPOConfig(")
            .contains(&"fast_inference".to_owned())
    );
    assert_eq!(stopped("lora_dropout = 0", "lora_dropout = 0.05"), ["lora_dropout"]);
    let old = resolved(TEXT, &[("accelerator", "V100-SXM2-32GB")]);
    assert_eq!(old.not_modelled.first().map(|item| item.name.as_str()), Some("compiled_layers"));
}
