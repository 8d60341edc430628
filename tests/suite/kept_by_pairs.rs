//! What an encoder-decoder keeps for backward, compared with recorded runs of transformers and PEFT: equal to the byte, per layer of
//! either stack, shared by layers, and outside of them (`tests/record/encoder_decoder_layers.py`).

use serde_json::Value;
use shardscope::estimate::{kept_by_chunk, parameters};
use shardscope::operators::{EncoderPart, Operator, SectionKind, Symbols};
use shardscope::plan::*;

use super::drafts::{Draft, draft, even_stages, flag, int, kept};
use super::formula::evaluate;

const README: &str = include_str!("../../README.md");
const RECORDED: &str = include_str!("../data/activations/encoder_decoder.jsonl");
/// The recorded adapters' rank.
const RANK: u64 = 8;
/// Rows of the recorded tables of distances.
const BUCKETS: u64 = 32;

fn word<'a>(case: &'a Value, key: &str) -> &'a str {
    case[key].as_str().unwrap_or_default()
}

fn drafted(case: &Value) -> Draft {
    let mut draft = draft();
    let (activation, steps) = match word(case, "mlp") {
        "relu" => (Activation::Gelu, ActivationSteps::Relu),
        "gated-silu" => (Activation::Swiglu, ActivationSteps::Kernel),
        _ => (Activation::Geglu, ActivationSteps::NewGelu),
    };
    let drops = case["dropout"].as_f64().unwrap_or_default() > 0.0;
    let model = &mut draft.model;
    model.num_layers = int(case, "layers");
    model.hidden_size = int(case, "h");
    model.ffn_hidden_size = int(case, "f");
    (model.num_attention_heads, model.num_query_groups) = (int(case, "a"), int(case, "a"));
    model.kv_channels = int(case, "d");
    model.seq_length = int(case, "s");
    model.max_position_embeddings = model.seq_length;
    model.padded_vocab_size = int(case, "V");
    model.activation = activation;
    model.position_embedding = PositionEmbedding::None;
    model.embeddings = Embeddings::Tied;
    model.encoder = Some(Encoder {
        layers: int(case, "encoder_layers"),
        seq_length: int(case, "source"),
        buckets: BUCKETS,
    });
    model.arrangement = Arrangement {
        norm_product: NormProduct::Uncast,
        activation_steps: steps,
        dropout: Dropout { attention: drops, residual: drops, mlp: drops, embedding: drops },
        ..Arrangement::default()
    };
    draft.layout.stages = even_stages(draft.model.num_layers, 1, 0);
    let recipe = &mut draft.recipe;
    recipe.software = Software::HfTransformers;
    recipe.dp_sharding = DpSharding::Replicated;
    recipe.micro_batch_size = int(case, "b");
    recipe.num_micro_batches = 1;
    recipe.global_batch_size = recipe.micro_batch_size;
    recipe.params_dtype = if word(case, "dtype") == "fp32" { NumberFormat::Fp32 } else { NumberFormat::Bf16 };
    recipe.grads_dtype = recipe.params_dtype;
    recipe.loss = if flag(case, "autocast") { LossKind::Torch } else { LossKind::TorchNarrow };
    recipe.attention_kernel =
        if word(case, "attn") == "eager" { AttentionKernel::Unfused } else { AttentionKernel::Sdpa };
    if case["gc"].is_string() {
        recipe.recompute = Recompute::Uniform { num_layers: 1, distribute: false };
    }
    recipe.transformers = Transformers {
        autocast: flag(case, "autocast").then_some(NumberFormat::Bf16),
        padding_mask: flag(case, "padded"),
        cache: flag(case, "use_cache"),
        ..Transformers::default()
    };
    recipe.tuning = tuning(case, recipe.params_dtype);
    draft
}

fn tuning(case: &Value, dtype: NumberFormat) -> Tuning {
    let train = word(case, "train");
    if train == "full" {
        return Tuning::default();
    }
    let some = LoraModules::default().with(LinearModule::Query).with(LinearModule::Value);
    Tuning {
        base: BaseTraining::None,
        lora: Some(Lora {
            rank: RANK,
            dora: false,
            dropout: case["lora_dropout"].as_f64().unwrap_or(0.0) > 0.0,
            dtype: if flag(case, "adapter_fp32") { NumberFormat::Fp32 } else { dtype },
            modules: if train == "lora-all" { LoraModules::ALL } else { some },
            drops_result: false,
            library: AdapterLibrary::Peft,
            kernels: AdapterKernels::default(),
        }),
        embedding: false,
        head: false,
        copies: false,
        input_gradients: flag(case, "input_require_grads"),
        ..Tuning::default()
    }
}

/// Bytes of those tensors of `operator` that `of` chooses by name.
fn named(x: &Symbols<'_>, operator: Operator, of: impl Fn(&str) -> bool) -> u64 {
    operator.saved(x).iter().filter(|saved| of(saved.name)).map(|saved| saved.bytes.get()).sum()
}

/// What the decoder's layers share, by name; the rest of the tensors beside the embedding is first kept in a layer.
fn is_shared(name: &str) -> bool {
    name != "buckets of distances"
}

#[test]
fn recorded_encoder_decoders_are_met_to_the_byte() {
    let (mut runs, mut layers, mut wrong) = (0, 0, Vec::new());
    for line in RECORDED.lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let id = word(&case, "id");
        let plan = drafted(&case).plan();
        let x = Symbols::new(&plan);
        let checkpointed = plan.recipe().recompute != Recompute::None;
        let encoder = plan.model().encoder.expect("an encoder");
        let mut check = |what: &str, ours: u64| {
            let recorded = case["kept"][what].as_u64().unwrap_or(0);
            if ours != recorded {
                wrong.push(format!("{id}: {what}: {recorded} recorded, {ours} here"));
            }
        };
        let positions = Operator::Encoder { part: EncoderPart::Positions, first: false };
        // A table of distances is looked up in the first layer of a stack.
        let own = [positions, Operator::Positions].map(|of| named(&x, of, |name| !is_shared(name)));
        let shared = [positions, Operator::Positions].map(|of| named(&x, of, is_shared));
        // Only one layer of two in the recorded encoders is handed the distances.
        let handed =
            if checkpointed { named(&x, positions, |name| name == "numbers of distances") } else { 0 };
        // What checkpoints of its layers hold.
        let inputs = named(&x, positions, |name| name == "inputs of encoder layers");
        let mut sum = own.iter().chain(&shared).sum::<u64>();
        for index in 0..encoder.layers {
            let kind = if index == 0 { SectionKind::FirstEncoderLayer } else { SectionKind::EncoderLayer };
            let ours = kept(&x, &kind.kept_operators(&x));
            sum += ours;
            let input = inputs / encoder.layers;
            let first = if index == 0 { own[0] } else { handed };
            check(&format!("encoder{index}"), ours + input + first);
            layers += 1;
        }
        check("encoder", shared[0] - handed - inputs);
        let kind = SectionKind::Layer(plan.model().layer_kind(0));
        for index in 0..plan.model().num_layers {
            let at = if index == 0 { x.in_first_trained_layer() } else { x };
            let ours = if checkpointed { x.n * x.h * x.width } else { kept(&at, &kind.operators(&x)) };
            sum += ours;
            check(&format!("decoder{index}"), ours + if index == 0 { own[1] } else { 0 });
            layers += 1;
        }
        check("decoder", shared[1]);
        let ends = |part| Operator::Encoder { part, first: false };
        let outside = kept(
            &x,
            &[
                ends(EncoderPart::Embedding),
                ends(EncoderPart::FinalNorm),
                Operator::Embedding,
                Operator::FinalNorm,
                Operator::OutputLayer,
            ],
        );
        check("outside", outside);
        let stage = &plan.layout().stages.stages[0].chunks[0];
        assert_eq!(kept_by_chunk(&plan, stage).get(), sum + outside, "{id}: all of it");
        let counted = parameters(&plan);
        let rank = &counted.ranks[0];
        let [trained, frozen] = ["trained_params", "frozen_params"].map(|key| int(&case, key));
        assert_eq!([rank.trained.get(), rank.count.get() - rank.trained.get()], [trained, frozen], "{id}");
        runs += 1;
    }
    assert!(wrong.is_empty(), "{} of {runs} runs:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
    assert!(runs == 84 && layers == 420, "{runs} runs and {layers} layers compared");
    let row =
        README.lines().find(|line| line.starts_with("| encoder-decoders")).expect("a row of the README");
    assert!(row.contains(&format!("PEFT, {runs} |")), "{row}");
}

/// Each tensor's formula gives its bytes in every operator.
#[test]
fn formulas_give_the_same_bytes() {
    for line in RECORDED.lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let plan = drafted(&case).plan();
        let x = Symbols::new(&plan);
        for kind in [
            SectionKind::FirstEncoderLayer,
            SectionKind::EncoderLayer,
            SectionKind::EncoderEnds,
            SectionKind::Embedding,
            SectionKind::Layer(plan.model().layer_kind(0)),
        ] {
            for operator in kind.operators(&x) {
                let x = x.of(operator);
                for saved in operator.saved(&x) {
                    let value = evaluate(saved.formula.expression, &|name| x.value(name));
                    assert_eq!(value, saved.bytes.get() as f64, "{} {}", operator.name(), saved.name);
                }
                for point in operator.transients(&x) {
                    for saved in &point.tensors {
                        let value = evaluate(saved.formula.expression, &|name| x.value(name));
                        assert_eq!(value, saved.bytes.get() as f64, "{} {}", operator.name(), saved.name);
                    }
                }
            }
        }
    }
}
