//! What plain PyTorch modules keep for backward, compared with recorded runs of transformers, PEFT and TRL: equal to
//! the byte, per layer, shared by layers, and outside of them.

use serde_json::Value;
use shardscope::estimate::{kept_by_chunk, memory, parameters};
use shardscope::operators::{Operator, Symbols, layer_operators};
use shardscope::plan::*;

use super::drafts::{Draft, draft, even_stages, flag, int, kept, recorded_shape};
use super::formula::evaluate;

const RECORDED: &str = include_str!("../data/activations/huggingface.jsonl");
/// The same with DoRA adapters.
const DORA: &str = include_str!("../data/activations/dora.jsonl");
/// The same with NeMo Automodel's adapters and loss.
const AUTOMODEL: &str = include_str!("../data/activations/automodel.jsonl");
/// Its own modules, and its memory-efficient adapters.
const OWN: &str = include_str!("../data/activations/automodel_own.jsonl");
/// Layers whose modules are checkpointed one by one.
const MODULES: &str = include_str!("../data/activations/checkpointed_modules.jsonl");
/// Number of experts and experts per token in the recorded mixtures.
const EXPERTS: [u64; 2] = [4, 2];
/// The recorded adapters' rank.
const RANK: u64 = 8;

/// The recorded runs.
fn recorded() -> impl Iterator<Item = &'static str> {
    [RECORDED, DORA, AUTOMODEL, OWN].into_iter().flat_map(|runs| runs.lines().skip(1))
}

fn word<'a>(case: &'a Value, key: &str) -> &'a str {
    case[key].as_str().unwrap_or_default()
}

fn is_any(case: &Value, key: &str, words: &[&str]) -> bool {
    words.contains(&word(case, key))
}

fn drafted(case: &Value) -> Draft {
    let mut draft = draft();
    shape(&mut draft.model, case);
    draft.layout.stages = even_stages(draft.model.num_layers, 1, 0);
    let recipe = &mut draft.recipe;
    recipe.software = if case["own"] == true { Software::Automodel } else { Software::HfTransformers };
    recipe.dp_sharding = DpSharding::Replicated;
    recipe.micro_batch_size = int(case, "b");
    // The second micro-batch of a step finds the gradients of the first one.
    recipe.num_micro_batches = 2;
    recipe.global_batch_size = 2 * recipe.micro_batch_size;
    recipe.params_dtype = if word(case, "dtype") == "fp32" { NumberFormat::Fp32 } else { NumberFormat::Bf16 };
    recipe.grads_dtype = recipe.params_dtype;
    recipe.loss =
        if word(case, "loss").contains("chunked") { LossKind::FusedLinear } else { LossKind::Torch };
    recipe.attention_kernel = match word(case, "attn") {
        "eager" => AttentionKernel::Unfused,
        "fa2" => AttentionKernel::Flash,
        _ => AttentionKernel::Sdpa,
    };
    if case["gc"].is_string() {
        recipe.recompute = Recompute::Uniform { num_layers: 1, distribute: false };
    }
    recipe.transformers = Transformers {
        autocast: flag(case, "autocast").then_some(NumberFormat::Bf16),
        padding_mask: flag(case, "padded"),
        cache: flag(case, "use_cache"),
        counts_tokens: flag(case, "num_items"),
        experts: match word(case, "experts") {
            "batched_mm" => ExpertKernel::Batched,
            "eager" => ExpertKernel::Loop,
            _ => ExpertKernel::Grouped,
        },
        fp32_accumulation: word(case, "loss").ends_with("accum32"),
        ..Transformers::default()
    };
    recipe.tuning = tuning(case, recipe.params_dtype);
    draft
}

fn shape(model: &mut Model, case: &Value) {
    let arch = word(case, "arch");
    recorded_shape(model, case);
    model.qk_layernorm = is_any(case, "arch", &["qwen3", "qwen3_moe"]);
    if arch == "gpt_neox" {
        model.normalization = Normalization::LayerNorm;
        model.activation = Activation::Gelu;
        model.linear_bias = LinearBias::All;
    }
    if arch == "qwen2" {
        model.linear_bias = LinearBias::QkvOnly;
    }
    let gemma = arch == "gemma2";
    if gemma {
        model.activation = Activation::Geglu;
        model.embeddings = Embeddings::Tied;
    }
    if is_any(case, "arch", &["mixtral", "qwen3_moe"]) {
        model.experts = Some(Experts {
            num_experts: EXPERTS[0],
            router_topk: EXPERTS[1],
            ffn_hidden_size: model.ffn_hidden_size,
            pattern: (0..model.num_layers).map(|_| true).collect(),
            shared_expert_intermediate_size: None,
            shared_expert_gate: false,
            latent_size: None,
            groups: None,
        });
    }
    model.arrangement = Arrangement {
        fused_qkv: is_any(case, "arch", &["phi3", "gpt_neox"]),
        fused_gate_up: arch == "phi3",
        parallel_residual: arch == "gpt_neox",
        norm_places: if gemma { NormPlaces::Around } else { NormPlaces::InFront },
        norm_product: if gemma { NormProduct::PlusOne } else { NormProduct::Rounded },
        norms_over_heads: false,
        fp32_rotation: false,
        attention_softcap: gemma,
        final_softcap: gemma,
        normalized_routing: arch == "mixtral",
        fp32_routing: arch == "mixtral",
        rotary_percent: if arch == "gpt_neox" { 0.25 } else { 1.0 },
        ..Arrangement::default()
    };
}

fn tuning(case: &Value, dtype: NumberFormat) -> Tuning {
    let train = word(case, "train");
    let objective = if word(case, "kind") == "dpo" {
        Objective::Dpo { reference: Reference::Adapters }
    } else {
        Objective::NextToken
    };
    let full = Tuning { objective, ..Tuning::default() };
    if train == "full" {
        return full;
    }
    if train == "last1" {
        return Tuning { base: BaseTraining::Last(1), embedding: false, ..full };
    }
    let some = LoraModules::default().with(LinearModule::Query).with(LinearModule::Value);
    let ends = train == "lora-qv+emb";
    Tuning {
        base: BaseTraining::None,
        lora: Some(Lora {
            rank: RANK,
            dora: case["dora"].as_bool().unwrap_or(false),
            dropout: case["lora_dropout"].as_f64().unwrap_or(0.0) > 0.0 && case["drops_result"] != true,
            dtype: if flag(case, "adapter_fp32") { NumberFormat::Fp32 } else { dtype },
            modules: match train {
                "lora-all" => LoraModules::ALL,
                "lora-linear" => LoraModules::ALL.with(LinearModule::OutputLayer),
                _ => some,
            },
            drops_result: case["drops_result"] == true,
            library: AdapterLibrary::Peft,
            kernels: AdapterKernels {
                each: matches!(word(case, "adapter"), "efficient" | "joined"),
                mlp: word(case, "adapter") == "joined",
                ..AdapterKernels::default()
            },
        }),
        embedding: ends,
        head: ends,
        copies: ends,
        input_gradients: flag(case, "input_require_grads"),
        ..full
    }
}

/// On a CPU, where runs were recorded, PEFT casts fp32 adapter weights to 16 bits, and keeps the copies.
fn cpu_only(x: &Symbols<'_>) -> u64 {
    let tuning = &x.recipe().tuning;
    let adapted = tuning.lora.is_some_and(|lora| lora.modules.has(LinearModule::Experts));
    let narrow = x.adapter_width == 2 && x.width == 2;
    if adapted && narrow && x.moe.experts > 0 { 4 * RANK * (x.h + x.moe.experts) } else { 0 }
}

#[test]
fn recorded_runs_are_met_to_the_byte() {
    let (mut layers, mut runs, mut wrong) = (0, 0, Vec::new());
    for line in recorded() {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let id = word(&case, "id");
        let plan = drafted(&case).plan();
        let x = Symbols::new(&plan);
        let mut check = |what: &str, ours: u64| {
            let recorded = case["kept"][what].as_u64().unwrap_or(0);
            if ours != recorded {
                wrong.push(format!("{id}: {what}: {recorded} recorded, {ours} here"));
            }
        };
        if word(&case, "kind") == "loss" {
            let head = word(&case, "loss").starts_with("linear");
            let trained = head && !word(&case, "loss").contains("frozen");
            let mut draft = Draft::new(&plan);
            draft.recipe.tuning.head = trained;
            let plan = draft.plan();
            check("loss", kept(&Symbols::new(&plan), &[Operator::OutputLayer]));
            runs += 1;
            continue;
        }
        let checkpointed = plan.recipe().recompute != Recompute::None;
        let operators = layer_operators(&x, plan.model().layer_kind(0));
        let frozen = plan.recipe().tuning.frozen_layers(plan.model().num_layers);
        let (mut all, mut rotated) = (0, 0);
        let rotary = if checkpointed { 0 } else { 2 * x.s * x.rotated * x.width };
        for index in 0..plan.model().num_layers {
            let mut ours = if checkpointed {
                x.n * x.h * x.width
            } else if index < frozen {
                0
            } else if index == frozen {
                kept(&x.in_first_trained_layer(), &operators) + cpu_only(&x)
            } else {
                kept(&x, &operators) + cpu_only(&x)
            };
            // The only layer that uses the rotary table has kept it.
            rotated += u64::from(index >= frozen);
            if frozen + 1 == plan.model().num_layers && index == frozen {
                ours += rotary;
            }
            all += ours;
            check(&format!("layer{index}"), ours);
            layers += 1;
        }
        if rotated > 1 {
            check("shared", rotary);
            all += rotary;
        }
        let ends = kept(&x, &[Operator::Embedding, Operator::FinalNorm, Operator::OutputLayer]);
        // Automodel's labels are already shifted, without the token that pads those of a single sequence, and it
        // divides by a number where transformers keeps a one-element tensor: 8 bytes each.
        let beyond = if id.starts_with("automodel-") { 8 + 8 * u64::from(int(&case, "b") == 1) } else { 0 };
        check("outside", ends - beyond);
        let cpu = if checkpointed { 0 } else { (plan.model().num_layers - frozen) * cpu_only(&x) };
        let stage = &plan.layout().stages.stages[0].chunks[0];
        if !checkpointed {
            assert_eq!(kept_by_chunk(&plan, stage).get() + cpu, all + ends, "{id}: the whole chunk");
        }
        runs += 1;
    }
    assert!(wrong.is_empty(), "{} of {runs} runs:\n{}", wrong.len(), wrong[..wrong.len().min(30)].join("\n"));
    assert!(runs > 749 && layers > 2182, "{runs} runs and {layers} layers compared");
}

/// Attention, MLP and norms that are checkpointed one by one hold their inputs, and what they save during recomputation
/// is what they save without checkpointing.
#[test]
fn modules_computed_again_one_by_one_hold_their_inputs() {
    let mut layers = 0;
    for line in MODULES.lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let plan = |modules: &[RecomputeModule]| {
            let mut draft = drafted(&case);
            if !modules.is_empty() {
                draft.recipe.recompute = Recompute::Selective(modules.to_vec());
            }
            draft.plan()
        };
        let again = plan(&[RecomputeModule::Attention, RecomputeModule::Mlp, RecomputeModule::LayerNorm]);
        let whole = plan(&[]);
        let x = Symbols::new(&again);
        let operators = layer_operators(&x, again.model().layer_kind(0));
        assert_eq!(int(&case, "saved within"), 0);
        for held in case["held"].as_array().expect("layers") {
            assert_eq!(Some(kept(&x, &operators)), held.as_u64(), "{}", case["id"]);
            layers += 1;
        }
        assert_eq!(kept(&x.recomputed(), &operators), kept(&Symbols::new(&whole), &operators));
        for saved in operators.iter().flat_map(|operator| operator.saved(&x)) {
            assert_eq!(saved.bytes.get() as f64, evaluate(saved.formula.expression, &|name| x.value(name)));
        }
        // One module at a time: less than the full layer at once, and more than nothing.
        let peak = |plan: &Plan| memory(plan).ranks[0].totals.peak_allocated;
        let mut layer = Draft::new(&whole);
        layer.recipe.recompute = Recompute::Uniform { num_layers: 1, distribute: false };
        assert!(peak(&again) < peak(&whole) && peak(&layer.plan()) < peak(&whole));
        // The modules' work is repeated, the residual additions are not.
        let work = |operator: Operator| operator.work(&x).into_iter().map(|work| work.modules().is_empty());
        for operator in [Operator::SelfAttention, Operator::Mlp] {
            assert_eq!(work(operator).filter(|alone| *alone).count(), 1);
        }
    }
    assert_eq!(layers, 36);
}

#[test]
fn every_formula_works_out_to_its_bytes() {
    let mut formulas = 0;
    for line in recorded() {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let plan = drafted(&case).plan();
        let x = Symbols::new(&plan);
        let mut operators = layer_operators(&x, plan.model().layer_kind(0)).to_vec();
        operators.extend([Operator::Embedding, Operator::FinalNorm, Operator::OutputLayer]);
        for saved in operators.iter().flat_map(|operator| operator.saved(&x)) {
            let value = evaluate(saved.formula.expression, &|name| x.value(name));
            assert_eq!(saved.bytes.get() as f64, value, "{}: {}", case["id"], saved.name);
            let why = x.explain(saved.formula);
            assert!(why.symbols.len() == saved.formula.names().len(), "{}", saved.formula.expression);
            formulas += 1;
        }
    }
    assert!(formulas > 10_000, "only {formulas} formulas worked out");
}

#[test]
fn recorded_states_are_met_to_the_byte() {
    let mut runs = 0;
    for line in recorded() {
        let case: Value = serde_json::from_str(line).expect("JSON");
        if case["trained_params"].is_null() {
            continue;
        }
        let id = word(&case, "id");
        let plan = drafted(&case).plan();
        let counted = parameters(&plan);
        let rank = &counted.ranks[0];
        let [trained, frozen] = ["trained_params", "frozen_params"].map(|key| int(&case, key));
        assert_eq!([rank.trained.get(), rank.count.get() - rank.trained.get()], [trained, frozen], "{id}");
        assert_eq!(counted.trained.get(), trained, "{id}");
        let totals = memory(&plan).ranks[0].totals;
        let held = int(&case, "trained_param_bytes") + int(&case, "frozen_param_bytes");
        assert_eq!(totals.parameters.get(), held, "{id}: weights");
        assert_eq!(totals.gradients.get(), int(&case, "grad_bytes"), "{id}: gradients");
        assert_eq!(totals.optimizer.get(), int(&case, "adamw_moment_bytes"), "{id}: AdamW");
        runs += 1;
    }
    assert!(runs > 500, "only {runs} runs");
}
