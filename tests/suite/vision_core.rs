//! Vision towers made of Megatron core's layers: what they keep and hold, compared with recorded runs and with a
//! decoder's layers of the same sizes, and which plans with one are rejected.

use serde_json::Value;
use shardscope::operators::{Operator, Saved, SectionKind, Symbols, layer_operators};
use shardscope::plan::*;

use super::drafts::{Draft, draft, even_stages, int};
use super::formula::evaluate;

/// `tests/record/vision_core.py`.
const RECORDED: &str = include_str!("../data/activations/vision_core.jsonl");

/// A decoder of three layers with the recorded tower, on this many tensor ranks.
fn recorded(case: &Value, gradients: TowerGradients) -> Draft {
    let config = &case["config"];
    let [h, f, out, depth] =
        ["hidden_size", "intermediate_size", "out_hidden_size", "depth"].map(|name| int(config, name));
    let side = int(config, "patch_size");
    let values = int(config, "in_channels") * int(config, "temporal_patch_size") * side * side;
    let deep = config["deepstack_visual_indexes"].as_array().expect("a list").len() as u64;
    let merged = 4 * h;
    let linear = merged * merged + merged + merged * out;
    let deep_projector = deep * (2 * merged + linear + out);
    let projector = 2 * h + linear + out;
    let layer = 4 * h * h + 4 * h + 2 * h * f + f + h + 4 * h;
    let embedding = values * h + h + int(config, "num_position_embeddings") * h;
    let kept = VisionKept {
        heads: int(config, "num_heads"),
        ffn: f,
        patch_values: values,
        cut_layer: 4 * h * h + 3 * h + 2 * h * f + f,
        cut_ends: (1 + deep) * linear,
        projector,
        deep_projector,
        deep_mergers: deep,
        ..VisionKept::default()
    };
    let mut draft = draft();
    (draft.model.hidden_size, draft.model.num_layers) = (out, 3);
    draft.model.vision = Some(VisionTower {
        parameters: embedding + depth * layer + projector + deep_projector,
        layers: depth,
        layer_parameters: layer,
        hidden_size: h,
        patches_per_token: 4,
        dtype: None,
        projector: None,
        gradients,
        projector_trains: gradients == TowerGradients::Trained,
        deep_trains: gradients == TowerGradients::Trained && deep > 0,
        kept: Some(kept),
        liger: TowerLiger::None,
        recomputed: true,
        image_patches: Some(int(case, "patches")),
        modules: TowerModules::Core,
        in_engine_alone: false,
        follows_formats: false,
    });
    let tensor = int(case, "tp");
    (draft.layout.tensor, draft.layout.world_size, draft.layout.expert_data) = (tensor, tensor, tensor);
    draft.layout.stages = even_stages(3, 1, 0);
    draft.recipe.software = Software::MegatronCoreTe;
    draft.recipe.micro_batch_size = 1;
    if case["recompute"] == true {
        draft.recipe.recompute = Recompute::Uniform { num_layers: 1, distribute: false };
    }
    draft
}

fn bytes(x: &Symbols<'_>, saved: &[Saved]) -> u64 {
    for saved in saved {
        let value = evaluate(saved.formula.expression, &|name| x.value(name));
        assert_eq!(saved.bytes.get() as f64, value, "{}", saved.name);
    }
    saved.iter().map(|saved| saved.bytes.get()).sum()
}

/// Bytes that a section of this kind keeps, also by its formulas.
pub(crate) fn of(x: &Symbols<'_>, kind: SectionKind) -> u64 {
    kind.kept_operators(x).iter().map(|operator| bytes(x, &operator.saved(x))).sum()
}

#[test]
fn recorded_towers_are_met_to_the_byte() {
    let mut compared = 0;
    for line in RECORDED.lines() {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let name = format!("TP {} {} {}", case["tp"], case["recompute"], case["config"]);
        let plan = recorded(&case, TowerGradients::Trained).plan();
        let x = Symbols::new(&plan);
        let layers = int(&case["config"], "depth");
        let kept = layers * of(&x, SectionKind::VisionLayer) + of(&x, SectionKind::VisionEnds);
        let recorded: u64 = case["layers"].as_array().expect("layers").iter().filter_map(Value::as_u64).sum();
        assert_eq!(kept, recorded + int(&case, "outside"), "{name}");
        // A layer whose input is not first kept by something outside.
        if case["recompute"] == false {
            assert_eq!(
                of(&x, SectionKind::VisionLayer),
                case["layers"][0].as_u64().expect("bytes"),
                "{name}"
            );
        }
        let local = |kind: SectionKind| {
            kind.weights(&x).map(|weight| weight.local.iter().product::<u64>()).sum::<u64>()
        };
        let parameters = layers * local(SectionKind::VisionLayer) + local(SectionKind::VisionEnds);
        assert_eq!(parameters, int(&case, "parameters"), "{name}");
        // Beside a decoder in fp8 its configuration has no fp8, so that it keeps the same.
        assert!(case["fp8"][0].is_null() && case["fp8"][1] == false, "{name}");
        let low = recorded_beside_fp8(&case);
        let w = Symbols::new(&low);
        assert_eq!(
            layers * of(&w, SectionKind::VisionLayer) + of(&w, SectionKind::VisionEnds),
            kept,
            "{name}"
        );
        // If frozen, it keeps nothing.
        assert_eq!(int(&case, "frozen"), 0);
        let frozen = recorded_frozen(&case);
        let y = Symbols::new(&frozen);
        assert_eq!(of(&y, SectionKind::VisionLayer) + of(&y, SectionKind::VisionEnds), 0, "{name}");
        // If its mergers alone train, they keep what they would beside it, and norms of deep layers' their inputs as well.
        let merging = recorded_merging(&case);
        let z = Symbols::new(&merging);
        assert_eq!(bytes(&z, &Operator::Projector.saved(&z)), int(&case, "merging"), "{name}");
        assert_eq!(of(&z, SectionKind::VisionLayer) + of(&z, SectionKind::VisionEnds), 0, "{name}");
        let of_parts = |operator: Operator| {
            let weights = operator.weights(&z);
            weights.iter().map(|weight| weight.local.iter().product::<u64>()).sum::<u64>()
        };
        let ends = of_parts(Operator::VisionEnds) + of_parts(Operator::Projector);
        assert_eq!(ends, local(SectionKind::VisionEnds), "{name}");
        compared += 1;
    }
    assert_eq!(compared, 18);
}

fn recorded_beside_fp8(case: &Value) -> Plan {
    let mut draft = recorded(case, TowerGradients::Trained);
    draft.recipe.fp8 =
        Some(Fp8 { format: "hybrid".to_owned(), recipe: Fp8Recipe::Tensorwise, param_gather: true });
    draft.plan()
}

fn recorded_merging(case: &Value) -> Plan {
    let mut draft = recorded(case, TowerGradients::None);
    if let Some(tower) = draft.model.vision.as_mut() {
        tower.projector_trains = true;
        tower.deep_trains = tower.kept.is_some_and(|kept| kept.deep_mergers > 0);
    }
    draft.recipe.tuning.projector = true;
    draft.plan()
}

fn recorded_frozen(case: &Value) -> Plan {
    recorded(case, TowerGradients::None).plan()
}

/// The positions at which images are inserted between words, and what decoder layers keep of the deep layers' features:
/// the recorded run had more words.
#[test]
fn recorded_places_of_images_are_met_to_the_byte() {
    for line in RECORDED.lines() {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let Some([tokens, plain, again]) =
            case["decoder"].as_array().map(|list| [0, 1, 2].map(|at| list[at].as_u64().expect("bytes")))
        else {
            panic!("{case}")
        };
        let mut draft = recorded(&case, TowerGradients::Trained);
        (draft.layout.tensor, draft.layout.world_size, draft.layout.expert_data) = (1, 1, 1);
        draft.model.seq_length = tokens;
        let kept = |draft: &Draft| {
            let plan = draft.plan();
            let x = Symbols::new(&plan);
            let saved = Operator::Embedding.saved(&x);
            let images: Vec<Saved> = saved.into_iter().filter(|saved| saved.name.contains("image")).collect();
            bytes(&x, &images)
        };
        draft.recipe.recompute = Recompute::None;
        assert_eq!(kept(&draft), plain, "{case}");
        draft.recipe.recompute = Recompute::Uniform { num_layers: 1, distribute: false };
        // Without deep layers' features a checkpoint only refers to the mask, which is kept anyway.
        assert_eq!(kept(&draft), again, "{case}");
    }
}

/// A tower layer equals a decoder layer of its sizes: LayerNorm, biases, and a GELU and rotation without their own
/// kernels. Its rotation tables are in fp32, the decoder's in its own format.
#[test]
fn a_layer_is_a_decoders_layer_of_its_sizes() {
    for line in RECORDED.lines() {
        let case: Value = serde_json::from_str(line).expect("JSON");
        if case["recompute"] == true {
            continue;
        }
        let plan = recorded(&case, TowerGradients::Trained).plan();
        let x = Symbols::new(&plan);
        let config = &case["config"];
        let mut twin = draft();
        let model = &mut twin.model;
        (model.hidden_size, model.ffn_hidden_size) =
            (int(config, "hidden_size"), int(config, "intermediate_size"));
        model.num_attention_heads = int(config, "num_heads");
        model.num_query_groups = model.num_attention_heads;
        model.kv_channels = model.hidden_size / model.num_attention_heads;
        (model.seq_length, model.linear_bias) = (int(&case, "patches"), LinearBias::All);
        (model.normalization, model.activation) = (Normalization::LayerNorm, Activation::Gelu);
        let tensor = int(&case, "tp");
        (twin.layout.tensor, twin.layout.world_size, twin.layout.expert_data) = (tensor, tensor, tensor);
        twin.recipe.software = Software::MegatronCoreTe;
        twin.recipe.micro_batch_size = 1;
        twin.recipe.fusions.rope = false;
        twin.recipe.fusions.bias_activation = false;
        twin.recipe.fusions.gradient_accumulation = false;
        let twin = twin.plan();
        let y = Symbols::new(&twin);
        let operators = layer_operators(&y, twin.model().layer_kind(0));
        let saved: Vec<Saved> = operators.iter().flat_map(|operator| operator.saved(&y)).collect();
        let angles: u64 = saved
            .iter()
            .filter(|saved| saved.name.starts_with("rotary"))
            .map(|saved| saved.bytes.get())
            .sum();
        let all: u64 = saved.iter().map(|saved| saved.bytes.get()).sum();
        assert_eq!(all + angles, of(&x, SectionKind::VisionLayer), "{case}");
        let count = |weights: Vec<shardscope::operators::Weight>| -> u64 {
            weights.iter().map(|weight| weight.local.iter().product::<u64>()).sum()
        };
        let weights = operators.iter().flat_map(|operator| operator.weights(&y)).collect();
        assert_eq!(count(weights), count(SectionKind::VisionLayer.weights(&x).collect()), "{case}");
        // The MLP's backward holds the same at each of its steps.
        let steps = Operator::VisionLayer.transients(&x);
        let of_mlp = Operator::Mlp.transients(&y);
        for (step, twin) in steps.iter().zip(&of_mlp) {
            assert_eq!(
                (step.name, step.bytes(), step.returned),
                (twin.name, twin.bytes(), twin.returned),
                "{case}"
            );
        }
        let attention = Operator::SelfAttention.transients(&y);
        assert_eq!(steps[3].bytes(), attention[1].bytes(), "{case}");
    }
}

/// No plan has such a tower in an unsupported combination, whoever makes it: searches try layouts that no text states.
#[test]
fn plans_with_what_is_not_known_are_refused() {
    let case: Value = serde_json::from_str(RECORDED.lines().next().expect("a run")).expect("JSON");
    let reasons = |change: &dyn Fn(&mut Draft), gradients: TowerGradients| {
        let mut draft = recorded(&case, gradients);
        draft.model.max_position_embeddings = draft.model.seq_length;
        (draft.cluster.gpus_per_node, draft.cluster.num_nodes) = (1, 1);
        change(&mut draft);
        let Draft { model, cluster, layout, recipe } = draft;
        let refused = Plan::new(model, cluster, layout, recipe).err().unwrap_or_default();
        refused.iter().map(|reason| reason.message.clone()).collect::<Vec<_>>().join("; ")
    };
    let trained = |change: &dyn Fn(&mut Draft)| reasons(change, TowerGradients::Trained);
    assert_eq!(trained(&|_| {}), "");
    let block =
        |draft: &mut Draft| draft.recipe.recompute = Recompute::Block { num_layers: 1, distribute: false };
    assert!(trained(&block).contains("of which some, groups or modules are recomputed"));
    let groups =
        |draft: &mut Draft| draft.recipe.recompute = Recompute::Uniform { num_layers: 2, distribute: false };
    assert!(trained(&groups).contains("of which some, groups or modules are recomputed"));
    // Nothing is kept for a frozen tower.
    assert_eq!(reasons(&block, TowerGradients::None), "");
    assert!(
        trained(&|draft| draft.recipe.dp_sharding = DpSharding::Gradients)
            .contains("whose gradients or weights")
    );
    assert!(
        trained(&|draft| draft.recipe.attention_kernel = AttentionKernel::Unfused)
            .contains("unfused attention")
    );
    assert!(trained(&|draft| draft.recipe.offload.activation_layers = 1).contains("on the host"));
    // Megatron-Bridge's tower is in 16 bits beside a decoder in fp8, mbridge's in what the decoder is in.
    let low = |draft: &mut Draft| {
        draft.recipe.fp8 =
            Some(Fp8 { format: "hybrid".to_owned(), recipe: Fp8Recipe::Tensorwise, param_gather: false });
    };
    let follows = |draft: &mut Draft| {
        low(draft);
        draft.model.vision.iter_mut().for_each(|tower| tower.follows_formats = true);
    };
    assert!(!trained(&low).contains("vision tower"), "{}", trained(&low));
    assert!(trained(&follows).contains("in the decoder's 8 or 4 bits"), "{}", trained(&follows));
}
