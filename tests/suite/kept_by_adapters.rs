//! What Megatron core's layers keep if their weights are frozen and they have Megatron-Bridge's adapters, compared with
//! recorded runs of both: equal to the byte in the first layer, in the others and outside of them; also the parameters
//! per rank.

use serde_json::Value;
use shardscope::estimate::parameters;
use shardscope::operators::{Operator, SectionKind, Symbols, layer_operators};
use shardscope::plan::*;

use super::drafts::{Draft, draft, even_stages, flag, int};
use super::formula::evaluate;

const RECORDED: &str = include_str!("../data/activations/megatron_lora.jsonl");

fn drafted(case: &Value, layers: u64) -> Draft {
    let mut draft = draft();
    let model = &mut draft.model;
    model.num_layers = layers;
    model.hidden_size = int(case, "h");
    model.ffn_hidden_size = int(case, "f");
    model.num_attention_heads = int(case, "a");
    model.num_query_groups = int(case, "k");
    model.kv_channels = model.hidden_size / model.num_attention_heads;
    model.seq_length = int(case, "s");
    model.padded_vocab_size = int(case, "vocab");
    model.normalization = Normalization::LayerNorm;
    draft.layout.tensor = int(case, "tp");
    draft.layout.expert_tensor = draft.layout.tensor;
    draft.layout.world_size = draft.layout.tensor;
    draft.layout.sequence_parallel = flag(case, "sp");
    draft.layout.stages = even_stages(layers, 1, 0);
    let recipe = &mut draft.recipe;
    recipe.software = Software::MegatronCoreLocal;
    recipe.micro_batch_size = int(case, "b");
    recipe.global_batch_size = recipe.micro_batch_size;
    recipe.params_dtype = NumberFormat::Bf16;
    recipe.attention_kernel = AttentionKernel::Unfused;
    recipe.fusions.bias_activation = false;
    recipe.fusions.masked_softmax = false;
    recipe.fusions.softmax_in_fp32 = false;
    recipe.fusions.rope = false;
    recipe.loss = LossKind::Unfused;
    if case["lora"].is_object() {
        recipe.tuning = tuning(case);
    }
    if case["frozen"] == true {
        let frozen = Tuning { base: BaseTraining::None, embedding: false, head: false, ..Tuning::default() };
        // Behind what makes images of it, which trains.
        recipe.tuning = Tuning { images: true, ..frozen };
    }
    draft
}

fn tuning(case: &Value) -> Tuning {
    let names = case["lora"]["modules"].as_array().expect("modules").iter().filter_map(Value::as_str);
    let modules = names.fold(LoraModules::default(), |all, name| all.named(name).expect("a module"));
    Tuning {
        base: BaseTraining::None,
        lora: Some(Lora {
            rank: int(&case["lora"], "r"),
            dora: false,
            dropout: case["lora"]["dropout"].as_f64() > Some(0.0),
            dtype: NumberFormat::Bf16,
            modules,
            drops_result: false,
            library: AdapterLibrary::MegatronBridge,
            kernels: AdapterKernels::default(),
        }),
        embedding: false,
        head: false,
        input_gradients: flag(case, "input_gradient"),
        ..Tuning::default()
    }
}

/// Bytes that `operators` keep, with each formula evaluated as well.
fn kept(x: &Symbols<'_>, operators: &[Operator]) -> u64 {
    let mut bytes = 0;
    for operator in operators {
        for saved in operator.saved(x) {
            let worked_out = evaluate(saved.formula.expression, &|name| x.value(name));
            assert_eq!(worked_out, saved.bytes.get() as f64, "{}: {}", saved.name, saved.formula.expression);
            bytes += saved.bytes.get();
        }
    }
    bytes
}

#[test]
fn frozen_layers_and_adapters_keep_what_was_recorded() {
    let mut lines = RECORDED.lines();
    let head: Value = serde_json::from_str(lines.next().expect("a head")).expect("JSON");
    let layers = int(&head, "layers");
    let mut count = 0;
    for line in lines {
        let recorded: Value = serde_json::from_str(line).expect("JSON");
        let case = &recorded["case"];
        let plan = drafted(case, layers).plan();
        let x = Symbols::new(&plan);
        let first = x.in_first_trained_layer();
        let kind = plan.model().layer_kind(0);
        let operators = layer_operators(&x, kind);
        let bytes = |place: &str| recorded["bytes"][place].as_u64().unwrap_or(0);
        // One causal mask for all layers, recorded in the first of them; ours counts one for each.
        let mask = int(case, "s") * int(case, "s");
        let masked = |x: &Symbols<'_>| {
            let saved = Operator::SelfAttention.saved(x);
            if saved.iter().any(|saved| saved.name == "causal mask") { mask } else { 0 }
        };
        let in_first = masked(&first);
        assert_eq!(kept(&first, &operators), bytes("layer0"), "layer 0 of {case}");
        assert_eq!(
            kept(&x, &operators),
            bytes("layer1") + if in_first > 0 { mask } else { 0 },
            "layer 1 of {case}"
        );
        let mut outside = 0;
        for section in [SectionKind::Embedding, SectionKind::FinalNorm, SectionKind::OutputLayer] {
            outside += kept(&x, &section.operators(&x));
        }
        assert_eq!(outside, bytes("outside"), "outside of the layers of {case}");
        let rank = parameters(&plan).ranks.remove(0);
        assert_eq!(rank.trained.get(), int(&recorded, "trained"), "trained parameters of {case}");
        assert_eq!(rank.count.get(), int(&recorded, "parameters"), "parameters of {case}");
        count += 1;
    }
    assert_eq!(count, 80);
}
