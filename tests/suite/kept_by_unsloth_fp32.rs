//! What a Gemma 3 layer keeps if unsloth trains it on a device without bf16, with residual stream and attention in
//! fp32, compared with recorded runs of its modules (`tests/record/unsloth_fp32.py`), equal to the byte; and its
//! notebook on a T4.

use serde_json::Value;
use shardscope::estimate::{memory, parameters};
use shardscope::explain::Breakdown;
use shardscope::operators::{Operator, Symbols, layer_operators};
use shardscope::plan::{AttentionKernel, NumberFormat};
use shardscope::units::Bytes;

use super::drafts::{Draft, kept};
use super::kept_by_unsloth_compiled::{TEXT, drafted, resolved};
use super::recorded::{Recorded, formulas};

/// Bytes of the first node with this name.
pub(crate) fn leaf(node: &Breakdown<Bytes>, label: &str) -> Option<u64> {
    if node.label() == label {
        return Some(node.value().get());
    }
    node.children().iter().find_map(|child| leaf(child, label))
}

const FP32: &str = include_str!("../data/activations/unsloth_fp32.jsonl");

fn drafted_in_fp32(case: &Value) -> Draft {
    let mut draft = drafted(case);
    let recipe = &mut draft.recipe;
    recipe.params_dtype = NumberFormat::Fp16;
    recipe.grads_dtype = NumberFormat::Fp16;
    recipe.transformers.autocast = None;
    recipe.fp32_residual = true;
    recipe.attention_kernel = AttentionKernel::Sdpa;
    draft
}

#[test]
fn gemma_in_fp32_between_its_modules_is_met_to_the_byte() {
    let mut recorded = Recorded::default();
    for line in FP32.lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let plan = drafted_in_fp32(&case).plan();
        let x = Symbols::new(&plan);
        let operators = layer_operators(&x, plan.model().layer_kind(0));
        for layer in ["layer0", "layer1", "layer2"] {
            recorded.check(&case, layer, kept(&x, &operators));
        }
        recorded.check(&case, "outside", kept(&x, &[Operator::FinalNorm]));
        // The full mask, one per sample, and cosines and sines in fp32.
        let tables = 2 * x.s * x.d * 4;
        recorded.check(&case, "shared", 4 * x.b * x.s * x.s + tables);
        formulas(&case, &x, &operators);
    }
    assert_eq!(recorded.equal(), 20);
}

#[test]
fn a_notebook_on_a_device_without_bf16_has_its_stream_in_fp32() {
    let read = resolved(TEXT, &[("accelerator", "T4")]);
    let plan = read.plan.unwrap_or_else(|| panic!("{:?} {:?}", read.not_modelled, read.diagnostics));
    assert!(read.not_modelled.is_empty(), "{:?}", read.not_modelled);
    // The value printed by the notebook on a T4.
    assert_eq!(parameters(&plan).trained.get(), 14_901_248);
    let recipe = plan.recipe();
    assert_eq!((recipe.params_dtype, recipe.transformers.autocast), (NumberFormat::Fp16, None));
    assert!(recipe.fp32_residual && recipe.offload.layer_inputs);
    let x = Symbols::new(&plan);
    let (n, h, f, heads, groups) = (4096, 2560, 10_240, 8 * 256, 4 * 256);
    assert_eq!((x.n, x.h, x.f, x.a * x.d, x.k * x.d), (n, h, f, heads, groups));
    // A layer by hand: the residual stream twice in fp32; in fp16 inputs and outputs of both branches, queries, keys,
    // attention's output, gate, up and their product; attention in fp32; and adapters of rank 8.
    let narrow = 2 * n * (4 * h + 2 * heads + groups + 3 * f);
    let wide = 4 * n * (2 * h + 2 * heads + 2 * groups);
    let statistics = 4 * n * (4 + 8 + 4 + 8);
    let adapters = 2 * 8 * (7 * n + 2 * (h + heads) + 2 * (h + groups) + 3 * (h + f));
    let operators = layer_operators(&x, plan.model().layer_kind(0));
    assert_eq!(kept(&x, &operators), narrow + wide + statistics + adapters);
    // Two masks for both samples in one row, two buffers for returning inputs, which are transferred in 16 bits.
    let found = memory(&plan);
    let part = |name: &str| leaf(&found.ranks[0].breakdown, name).unwrap_or(0);
    assert_eq!(part("masks of all tokens"), 2 * 4096 * 4096 * 4);
    assert_eq!(part("buffers of inputs copied back"), 2 * 2 * n * h);
    // It names no images, so its tower does not run; a program that does may have as many as fit into a sequence.
    assert_eq!(part("forward of the vision tower"), 0);
    let named = resolved(&format!("{TEXT}\nimage = None\n"), &[("accelerator", "T4")]).plan.expect("a plan");
    let found = memory(&named);
    assert!(leaf(&found.ranks[0].breakdown, "forward of the vision tower").is_some());
    // With images samples are padded, and have separate masks.
    assert_eq!(leaf(&found.ranks[0].breakdown, "masks of all tokens"), Some(2 * 2 * 2048 * 2048 * 4));
    // If bf16 or fp16 is requested it does the same; with adapters on the tower it is not known.
    let script = TEXT.replace("max_steps = 30", "max_steps = 30, bf16 = True");
    assert!(resolved(&script, &[("accelerator", "T4")]).not_modelled.is_empty());
    let images = TEXT.replace("= False, # Turn off for just text!", "= True,");
    let more = [("accelerator", "T4"), ("image_patches", "4096")];
    let read = resolved(&images, &more);
    assert_eq!(read.not_modelled.first().map(|item| item.name.as_str()), Some("vision_tower"));
}
