//! What transformers' layers keep if axolotl's LoRA functions replace PEFT's modules, compared with recorded calls of
//! them: equal to the byte in every layer and outside of them.

use serde_json::Value;
use shardscope::operators::{Operator, Symbols, layer_operators};
use shardscope::plan::*;

use super::drafts::{Draft, draft, even_stages, flag, int, kept, recorded_shape};
use super::recorded::{Recorded, formulas};

const RECORDED: &str = include_str!("../data/activations/axolotl.jsonl");
/// The recorded adapters' rank.
const RANK: u64 = 8;

fn drafted(case: &Value) -> Draft {
    let mut draft = draft();
    let model = &mut draft.model;
    recorded_shape(model, case);
    model.qk_layernorm = case["arch"] == "qwen3";
    if case["arch"] == "qwen2" {
        model.linear_bias = LinearBias::QkvOnly;
    }
    draft.layout.stages = even_stages(int(case, "layers"), 1, 0);
    let recipe = &mut draft.recipe;
    recipe.software = Software::HfTransformers;
    recipe.dp_sharding = DpSharding::Replicated;
    recipe.micro_batch_size = int(case, "b");
    recipe.num_micro_batches = 2;
    recipe.global_batch_size = 2 * recipe.micro_batch_size;
    recipe.params_dtype = NumberFormat::Bf16;
    recipe.grads_dtype = NumberFormat::Bf16;
    recipe.loss = LossKind::Torch;
    recipe.attention_kernel = AttentionKernel::Sdpa;
    recipe.transformers.autocast = flag(case, "autocast").then_some(NumberFormat::Bf16);
    recipe.transformers.counts_tokens = false;
    let words: Vec<&str> =
        case["kernels"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    recipe.tuning = Tuning {
        base: BaseTraining::None,
        lora: Some(Lora {
            rank: RANK,
            dora: false,
            dropout: case["lora_dropout"].as_f64() > Some(0.0),
            dtype: if flag(case, "adapter_fp32") { NumberFormat::Fp32 } else { NumberFormat::Bf16 },
            modules: LoraModules::ALL,
            drops_result: false,
            library: AdapterLibrary::Peft,
            kernels: AdapterKernels::named(&words).expect("known kernels"),
        }),
        embedding: false,
        head: false,
        input_gradients: true,
        ..Tuning::default()
    };
    draft
}

#[test]
fn recorded_functions_are_met_to_the_byte() {
    let mut recorded = Recorded::default();
    for line in RECORDED.lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let plan = drafted(&case).plan();
        let x = Symbols::new(&plan);
        let operators = layer_operators(&x, plan.model().layer_kind(0));
        let layer = kept(&x, &operators);
        let outside = kept(&x, &[Operator::Embedding, Operator::FinalNorm, Operator::OutputLayer]);
        let first = kept(&x.in_first_trained_layer(), &operators);
        for (what, ours) in [("layer0", first), ("layer1", layer), ("layer2", layer), ("outside", outside)] {
            recorded.check(&case, what, ours);
        }
        formulas(&case, &x, &operators);
    }
    assert_eq!(recorded.equal(), 288);
}
