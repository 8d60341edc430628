//! What the host launches if graphs capture modules of a layer, and what it launches to cast experts' tokens.

use shardscope::estimate::compute::{Cost, Device, Passes, passes};
use shardscope::launch::plan_from_flags;
use shardscope::operators::{Captured, Operator, SectionKind, Symbols};
use shardscope::plan::{CudaGraphs, GraphModules, LinearKind, Plan};

const MODEL: &str = "--num-layers 4 --hidden-size 1024 --num-attention-heads 16 --ffn-hidden-size 4096 --seq-length 512 \
    --max-position-embeddings 512 --micro-batch-size 1 --vocab-size 32000 --bf16 --swiglu --disable-bias-linear \
    --num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 2048 --moe-grouped-gemm --global-batch-size 16 \
    --moe-token-dispatcher-type alltoall --expert-model-parallel-size 4";

const PADDED: &str = "--moe-expert-capacity-factor 1 --moe-pad-expert-input-to-capacity";

fn plan(more: &str) -> Plan {
    plan_from_flags(&format!("{MODEL} {more}"), 8, 8, "H100-SXM").expect("a plan")
}

fn issued(plan: &Plan, operator: Operator) -> [[f64; 2]; 3] {
    let device = Device::new(plan.cluster(), plan.recipe());
    let Passes { forward, input_gradient, weight_gradient, .. } =
        passes(&device, &Symbols::new(plan), SectionKind::EVERY_LAYER, &[operator]);
    [forward, input_gradient, weight_gradient].map(|cost: Cost| [cost.operators, cost.launches])
}

fn near(found: [[f64; 2]; 3], expected: [[f64; 2]; 3], what: &str) {
    for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
        assert!((found - expected).abs() < 1e-9, "{what}: {found} is not {expected}");
    }
}

const ATTENTION: [Operator; 2] = [Operator::InputNorm, Operator::SelfAttention];
const DENSE: [Operator; 2] = [Operator::PreMlpNorm, Operator::Mlp];

#[test]
fn graphs_capture_the_modules_that_are_named() {
    let nothing = [[0.0; 2]; 3];
    let graphed = |modules: &str| format!("--cuda-graph-impl transformer_engine {modules}");
    let plain = plan("");
    for (modules, attention, dense, norm) in [
        ("", true, true, true),
        ("--cuda-graph-modules attn", true, false, false),
        ("--cuda-graph-modules mlp", false, true, false),
        ("--cuda-graph-modules attn moe_router moe_preprocess", true, false, true),
        ("--cuda-graph-modules moe_router moe_preprocess", false, false, true),
        ("--cuda-graph-scope full", true, true, true),
        ("--cuda-graph-scope attn", true, false, false),
    ] {
        let plan = plan(&graphed(modules));
        for (operators, captured) in
            [(&ATTENTION[..], attention), (&DENSE, dense), (&[Operator::PreExpertsNorm], norm)]
        {
            for operator in operators {
                let expected = if captured { nothing } else { issued(&plain, *operator) };
                near(issued(&plan, *operator), expected, &format!("{modules}: {}", operator.name()));
            }
        }
        // The ends are not part of any layer's graph.
        near(issued(&plan, Operator::OutputLayer), issued(&plain, Operator::OutputLayer), "the output layer");
    }
}

/// The router's product, and its selection kernels: 20 forward and 12 backward.
#[test]
fn graphs_of_the_router_leave_the_experts_to_the_host() {
    let graphs = "--cuda-graph-impl transformer_engine --cuda-graph-modules moe_router moe_preprocess";
    let router = [[2.0, 21.0], [2.0, 13.0], [0.0, 1.0]];
    let less = |plain: [[f64; 2]; 3], captured: [[f64; 2]; 3]| {
        std::array::from_fn(|pass| std::array::from_fn(|at| plain[pass][at] - captured[pass][at]))
    };
    let plain = issued(&plan(""), Operator::Experts);
    near(issued(&plan(graphs), Operator::Experts), less(plain, router), "the router");
    // Full-layer graphs exclude experts, unless the number of their tokens is known.
    near(
        issued(&plan("--cuda-graph-impl transformer_engine"), Operator::Experts),
        plain,
        "experts without a capacity",
    );
    for modules in ["", "--cuda-graph-modules attn moe"] {
        let padded = plan(&format!("{PADDED} --cuda-graph-impl transformer_engine {modules}"));
        near(issued(&padded, Operator::Experts), [[0.0; 2]; 3], "padded experts");
    }
    // Shared experts are captured with the router, unless they overlap with the exchange.
    let shared = "--moe-shared-expert-intermediate-size 2048";
    let [alone, graphed] =
        ["", graphs].map(|graphs| issued(&plan(&format!("{shared} {graphs}")), Operator::Experts));
    near(graphed, less(plain, router), "what is left beside shared experts");
    assert!(alone[0][1] > plain[0][1]);
    let beside = format!("{shared} --moe-shared-expert-overlap");
    let [alone, graphed] =
        ["", graphs].map(|graphs| issued(&plan(&format!("{beside} {graphs}")), Operator::Experts));
    near(graphed, less(alone, router), "shared experts beside the exchange");
}

#[test]
fn spellings_of_before_2026_mean_what_they_meant() {
    let graphs = |more: &str| plan(&format!("--cuda-graph-impl local {more}")).recipe().cuda_graphs;
    assert_eq!(graphs(""), CudaGraphs::Layers(GraphModules::LAYER));
    assert_eq!(graphs("--cuda-graph-scope full_iteration"), CudaGraphs::Iteration);
    assert_eq!(
        graphs("--cuda-graph-scope full_iteration_inference"),
        CudaGraphs::Layers(GraphModules::LAYER)
    );
    let mixer = GraphModules { mixer: true, ..GraphModules::default() };
    assert_eq!(graphs("--cuda-graph-modules mamba"), CudaGraphs::Layers(mixer));
    assert_eq!(plan("--cuda-graph-modules attn").recipe().cuda_graphs, CudaGraphs::None);
    // A word that names no module is reported, and the others apply.
    assert_eq!(
        graphs("--cuda-graph-modules attn everything"),
        CudaGraphs::Layers(GraphModules { attention: true, ..GraphModules::default() })
    );
}

#[test]
fn mixers_are_captured_by_their_own_name() {
    let plan = plan("");
    let x = Symbols::new(&plan);
    let captured = |operator: Operator, name: &str| operator.captured(&x, GraphModules::from_names(&[name]));
    for kind in LinearKind::ALL {
        let state_space = matches!(kind, LinearKind::Mamba | LinearKind::Mamba2);
        let (own, other) = if state_space { ("mamba", "attn") } else { ("attn", "mamba") };
        assert_eq!(captured(Operator::Linear(kind), own), Captured::Whole, "{}", kind.name());
        assert_eq!(captured(Operator::Linear(kind), other), Captured::Nothing, "{}", kind.name());
    }
    assert_eq!(captured(Operator::InputNorm, "mamba"), Captured::Whole);
    assert_eq!(captured(Operator::InputNorm, "mlp"), Captured::Nothing);
    assert_eq!(captured(Operator::PreExpertsNorm, "moe"), Captured::Whole);
}

/// Both products of two experts: one call in each direction for the cast, and, except under delayed scaling, one launch
/// within it per expert.
#[test]
fn casts_of_experts_tokens_are_launched() {
    let with = |mut plain: [[f64; 2]; 3], casts: [f64; 2]| {
        plain[0][1] += casts[0];
        plain[1][1] += casts[1];
        plain
    };
    let plain = issued(&plan(""), Operator::Experts);
    for (recipe, each) in [("delayed", 1.0), ("tensorwise", 1.3), ("blockwise", 1.3)] {
        let plan = plan(&format!("--fp8-format hybrid --fp8-recipe {recipe}"));
        near(issued(&plan, Operator::Experts), with(plain, [2.0 * each; 2]), recipe);
    }
    // Two linear layers of attention: their norm may cast its output, and their gradients are cast by separate calls.
    let fp8 = plan("--fp8-format hybrid --fp8-recipe tensorwise");
    let attention = issued(&plan(""), Operator::SelfAttention);
    near(issued(&fp8, Operator::SelfAttention), with(attention, [0.0, 2.0]), "attention");
}
