//! Full fine-tuning under unsloth, whose compiled layers are compared with recorded runs in
//! `kept_by_unsloth_compiled.rs`: programs, and what the backward pass of such a layer holds.

use shardscope::estimate::{memory, parameters};
use shardscope::launch::Resolution;
use shardscope::operators::{Operator, Saved, Symbols};
use shardscope::plan::{BaseTraining, NumberFormat, Plan, Quantization};

use super::kept_by_unsloth_compiled::{TEXT, resolved};
use super::kept_by_unsloth_fp32::leaf;

/// `python_scripts/Qwen3_(0_6B)-Phone_Deployment.py` of unslothai/notebooks, shortened, without its quantization-aware
/// training.
const WHOLE: &str = r#"
from unsloth import FastLanguageModel
model, tokenizer = FastLanguageModel.from_pretrained(model_name = "unsloth/Qwen3-0.6B", max_seq_length = 1024, full_finetuning = True)
from trl import SFTTrainer, SFTConfig
trainer = SFTTrainer(
    model = model, tokenizer = tokenizer, train_dataset = dataset,
    args = SFTConfig(per_device_train_batch_size = 2, gradient_accumulation_steps = 4, max_steps = 100, optim = "adamw_8bit"),
)
trainer.train()
"#;

fn whole(from: &str, to: &str, accelerator: &str) -> Resolution {
    assert!(WHOLE.contains(from), "{from}");
    resolved(&WHOLE.replace(from, to), &[("accelerator", accelerator)])
}

fn plan(read: Resolution) -> Plan {
    assert!(read.not_modelled.is_empty(), "{:?}", read.not_modelled);
    read.plan.unwrap_or_else(|| panic!("{:?}", read.diagnostics))
}

fn formats(plan: &Plan) -> (NumberFormat, NumberFormat, Option<NumberFormat>) {
    let recipe = plan.recipe();
    (recipe.params_dtype, recipe.grads_dtype, recipe.transformers.autocast)
}

#[test]
fn all_weights_train_in_bf16_or_in_fp32() {
    use NumberFormat::{Bf16, Fp16, Fp32};
    let plain = plan(resolved(WHOLE, &[]));
    assert_eq!(formats(&plain), (Bf16, Bf16, Some(Bf16)));
    let recipe = plain.recipe();
    assert!(recipe.fusions.compiled_layers && recipe.offload.layer_inputs);
    assert_eq!((recipe.tuning.base, recipe.tuning.quantization), (BaseTraining::All, Quantization::None));
    // The tied embedding counts once.
    let layer = 1024 * (2 * 2048 + 2 * 1024 + 3 * 3072) + 2 * 1024 + 2 * 128;
    assert_eq!(parameters(&plain).trained.get(), 151_936 * 1024 + 28 * layer + 1024);
    let on = "full_finetuning = True";
    let wide = "full_finetuning = True, float32_mixed_precision = True";
    let asked = "full_finetuning = True, dtype = torch.float32";
    assert_eq!(formats(&plan(whole(on, wide, "A100-SXM-80GB"))), (Fp32, Fp32, Some(Bf16)));
    assert_eq!(formats(&plan(whole(on, asked, "A100-SXM-80GB"))), (Fp32, Fp32, Some(Bf16)));
    // A T4 has no bf16: fp16 becomes fp32, and requested fp32 stays without autocast.
    assert_eq!(formats(&plan(whole(on, on, "T4"))), (Fp32, Fp32, Some(Fp16)));
    assert_eq!(formats(&plan(whole(on, wide, "T4"))), (Fp32, Fp32, Some(Fp16)));
    assert_eq!(formats(&plan(whole(on, asked, "T4"))), (Fp32, Fp32, None));
    // The trainer's fp16 is ignored if the model is in bf16.
    let half = ("max_steps = 100", "max_steps = 100, fp16 = True");
    assert_eq!(formats(&plan(whole(half.0, half.1, "A100-SXM-80GB"))), (Bf16, Bf16, Some(Bf16)));
    // Neither 4 bits nor adapters have an effect in addition to it.
    let four = plan(whole(on, "full_finetuning = True, load_in_4bit = True", "A100-SXM-80GB"));
    assert_eq!(four.recipe().tuning, plain.recipe().tuning);
    let adapted =
        WHOLE.replace("from trl", "model = FastLanguageModel.get_peft_model(model, r = 16, target_modules = [\"q_proj\", \"lm_head\"])\nfrom trl");
    assert_eq!(plan(resolved(&adapted, &[])).recipe().tuning, plain.recipe().tuning);
}

#[test]
fn what_is_not_known_of_it_stops_by_name() {
    let stopped =
        |read: Resolution| read.not_modelled.first().map(|item| item.name.clone()).unwrap_or_default();
    let on = "full_finetuning = True";
    assert_eq!(stopped(whole(on, "full_finetuning = False, load_in_4bit = False", "L4")), "get_peft_model");
    assert_eq!(stopped(whole(on, "full_finetuning = True, dtype = torch.float16", "L4")), "dtype");
    let script = WHOLE.replace(
        "from trl",
        "model = FastLanguageModel.get_peft_model(model, r = 16, use_gradient_checkpointing = True)\nfrom trl",
    );
    assert_eq!(stopped(resolved(&script, &[])), "use_gradient_checkpointing");
    assert_eq!(stopped(whole(on, "full_finetuning = True, qat_scheme = \"int4\"", "L4")), "qat_scheme");
    // A tower, and Gemma 3 on a GPU without bf16.
    let images = WHOLE.replace("Qwen3-0.6B", "Qwen2.5-VL-3B-Instruct");
    assert!(resolved(&images, &[]).not_modelled.iter().any(|item| item.name == "train_type"));
    assert!(whole("Qwen3-0.6B", "gemma-3-1b-it", "A100-SXM-80GB").not_modelled.is_empty());
    assert!(
        whole("Qwen3-0.6B", "gemma-3-1b-it", "T4").not_modelled.iter().any(|item| item.name == "train_type")
    );
}

/// `unsloth/trainer.py`: padding_free is the default.
#[test]
fn samples_of_text_share_a_row_and_its_mask() {
    let masks = |from: &str, to: &str, accelerator: &str| {
        let plan = plan(whole(from, to, accelerator));
        let mask =
            Operator::SelfAttention.saved(&Symbols::new(&plan)).into_iter().find(|kept| kept.name == "mask");
        let shared = leaf(&memory(&plan).ranks[0].breakdown, "masks of all tokens");
        (shared, mask.map(|kept| kept.bytes.get()))
    };
    let two = "per_device_train_batch_size = 2";
    let row = 2048 * 2048;
    assert_eq!(masks(two, two, "A100-SXM-80GB"), (Some(row), None));
    assert_eq!(masks(two, two, "T4"), (Some(row), Some(2 * row)));
    let one = "per_device_train_batch_size = 1";
    assert_eq!(masks(two, one, "A100-SXM-80GB"), (None, None));
    assert_eq!(masks(two, one, "T4"), (None, Some(2 * 1024 * 1024)));
    // Gemma 3's flex attention has block masks.
    assert_eq!(masks("Qwen3-0.6B", "gemma-3-1b-it", "A100-SXM-80GB"), (None, None));
}

fn held(plan: &Plan, operator: Operator, name: &str) -> Vec<Saved> {
    let points = operator.transients(&Symbols::new(plan));
    points
        .iter()
        .flat_map(|point| point.tensors.iter().filter(|tensor| tensor.name == name).copied())
        .collect()
}

/// A region's backward is a single autograd node, which returns the gradients of all its weights at its end.
#[test]
fn gradients_of_a_layer_are_there_at_once() {
    let of = |text: &str, operator| {
        let found = held(&plan(resolved(text, &[])), operator, "gradients of the layer's weights so far");
        found.iter().map(|tensor| tensor.bytes.get()).collect::<Vec<_>>()
    };
    let mlp = 2 * 3 * 1024 * 3072;
    assert_eq!(of(WHOLE, Operator::Mlp), [0_u64; 0]);
    assert_eq!(of(WHOLE, Operator::SelfAttention), [mlp; 3]);
    assert_eq!(of(WHOLE, Operator::InputNorm), [mlp + 2 * 1024 * (2 * 2048 + 2 * 1024)]);
    // Those of a single micro-batch stay in place, and frozen weights have none.
    let single = WHOLE.replace("gradient_accumulation_steps = 4", "gradient_accumulation_steps = 1");
    assert_eq!(of(&single, Operator::InputNorm), [0_u64; 0]);
    assert_eq!(of(TEXT, Operator::InputNorm), [0_u64; 0]);
}

/// In AOTAutograd's graph of a recorded layer's backward every product with adapters is in bf16, although adapters are
/// in fp32.
#[test]
fn the_gradient_of_an_adapters_input_is_in_16_bits() {
    for accelerator in ["A100-SXM-80GB", "T4"] {
        let plan = plan(resolved(TEXT, &[("accelerator", accelerator)]));
        let (n, h, f, heads) = (4096, 2560, 10_240, 8 * 256);
        for (operator, widths) in [(Operator::Mlp, [f, h]), (Operator::SelfAttention, [heads, h])] {
            let found = held(&plan, operator, "gradient of an adapter's input");
            let bytes: Vec<u64> = found.iter().map(|tensor| tensor.bytes.get()).collect();
            assert_eq!(bytes, widths.map(|width| 2 * n * width), "{accelerator}");
        }
    }
}
