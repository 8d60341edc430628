//! What a decoder layer keeps beside adapters that unsloth compiles as one region, against recorded runs of its modules, equal to the
//! byte; and programs around its `FastModel` and `FastVisionModel`.

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
/// Rank of the recorded adapters.
const RANK: u64 = 8;
/// The case whose graph, broken at attention, keeps the stream behind attention and the layer's input.
const BROKEN: &str = "gemma3-b2-s160-7";

fn cases() -> impl Iterator<Item = Value> {
    RECORDED.lines().skip(1).map(|line| serde_json::from_str(line).expect("JSON"))
}

fn modules(case: &Value) -> LoraModules {
    let names = case["targets"].as_array().expect("names").iter().map(|name| name.as_str().expect("a name"));
    names.fold(LoraModules::default(), |set, name| set.named(name).expect("a module"))
}

fn drafted(case: &Value) -> Draft {
    let mut draft = draft();
    let model = &mut draft.model;
    recorded_shape(model, case);
    let gemma = case["arch"] == "gemma3";
    model.qk_layernorm = gemma || case["arch"] == "qwen3_vl";
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
    let half = if case["half"] == "float16" { NumberFormat::Fp16 } else { NumberFormat::Bf16 };
    recipe.params_dtype = half;
    recipe.grads_dtype = half;
    recipe.transformers.autocast = Some(half);
    let masked = case["masked"] == true;
    recipe.attention_kernel = if masked { AttentionKernel::Sdpa } else { AttentionKernel::Flash };
    recipe.loss = LossKind::FusedLinear;
    recipe.tuning = Tuning {
        base: BaseTraining::None,
        lora: Some(Lora {
            rank: RANK,
            dora: false,
            dropout: false,
            dtype: NumberFormat::Fp32,
            modules: modules(case),
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
        let operators = layer_operators(&x, plan.model().layer_kind(0));
        // A CPU's attention makes its output in another layout than the projection behind it reads, which keeps a copy for its adapter.
        let copied = if modules(&case).has(LinearModule::Output) { 2 * x.n * x.a * x.d } else { 0 };
        // On a CPU Gemma 3's attention breaks the graph. Of the part behind it the partitioner keeps the layer's input or, at the same
        // price, the stream, which this shape alone has it do: in one graph the input is kept already.
        let stream = if case["id"] == BROKEN { 2 * x.n * x.h } else { 0 };
        for layer in ["layer0", "layer1", "layer2"] {
            recorded.check(&case, layer, kept(&x, &operators) + copied + stream);
        }
        formulas(&case, &x, &operators);
    }
    assert_eq!(recorded.equal(), 57);
}

/// `python_scripts/Gemma3_(4B).py` of unslothai/notebooks in short, without the checkpoint whose layers are quantized in part.
const TEXT: &str = r#"
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

/// `python_scripts/Qwen2.5_VL_(7B)-Vision.py` in short, likewise.
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

fn resolved(text: &str, more: &[(&str, &str)]) -> Resolution {
    let source = Source::from_files([("tune.py", text)]);
    let mut set = vec![("accelerator".to_owned(), "A100-SXM-80GB".to_owned())];
    set.retain(|(name, _)| more.iter().all(|(other, _)| name != other));
    set.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    read(&Request { source: &source, environment: &Environment::default(), overrides: &set })
}

/// Parameters that train as unsloth's notebooks printed them (unslothai/notebooks@bdda2efc7ad5, `nb/Gemma3_(4B).ipynb`,
/// `Gemma3_(27B)_A100-Conversational`, `Gemma3_(4B)-Vision`, `Qwen2.5_VL_(7B)-Vision`, `Qwen3_VL_(8B)-Vision`): model, rank, whether
/// adapters stand beside the tower too.
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
    // 28 layers of the decoder; 32 of the tower, whose queries, keys and values are one projection.
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
    assert!(
        stopped("full_finetuning = False", "full_finetuning = True").contains(&"full_finetuning".to_owned())
    );
    assert!(stopped("gemma-3-4b-it", "Phi-4-mini-instruct").contains(&"unsloth".to_owned()));
    assert!(
        stopped("optim = \"adamw_8bit\"", "optim = \"adamw_8bit\"), other = GRPOConfig(")
            .contains(&"fast_inference".to_owned())
    );
    assert_eq!(stopped("lora_dropout = 0", "lora_dropout = 0.05"), ["lora_dropout"]);
    let old = resolved(TEXT, &[("accelerator", "V100-SXM2-32GB")]);
    assert_eq!(old.not_modelled.first().map(|item| item.name.as_str()), Some("compiled_layers"));
}
