//! Figures computed by hand at the turning points of conditions, or for parts that rarely occur: errors there would not
//! be noticed in random plans.

use shardscope::estimate::compute::{Device, calibration};
use shardscope::estimate::traffic::{Parallelism, traffic};
use shardscope::estimate::{Verdict, flops, memory, parameters, sent_to_host};
use shardscope::operators::{Account, Collective, Operator, Symbols};
use shardscope::plan::*;
use shardscope::units::{Bytes, Count};

use super::drafts::{Draft, draft, even_stages};

/// Sizes of the draft.
const HIDDEN: u64 = 256;
const FFN: u64 = 512;
const TOKENS: u64 = 64;
const HEADS: u64 = 8;
const HEAD: u64 = 32;
const VOCABULARY: u64 = 512;
/// Elements of a layer's matrices: queries, keys, values, output, and three in the gated MLP.
const MATRICES: u64 = 4 * HIDDEN * HIDDEN + 3 * HIDDEN * FFN;

/// The draft under unsloth, with adapters on all layers over 4 bits or over 16.
fn unsloth(quantization: Quantization) -> Draft {
    let mut draft = draft();
    draft.layout.stages = even_stages(2, 1, 0);
    let recipe = &mut draft.recipe;
    recipe.software = Software::Unsloth;
    recipe.dp_sharding = DpSharding::Replicated;
    recipe.grads_dtype = NumberFormat::Bf16;
    recipe.transformers.autocast = Some(NumberFormat::Bf16);
    recipe.loss = LossKind::FusedLinear;
    recipe.tuning = Tuning {
        base: BaseTraining::None,
        lora: Some(Lora {
            rank: 8,
            dora: false,
            dropout: false,
            dtype: NumberFormat::Fp32,
            modules: LoraModules::ALL,
            drops_result: false,
            library: AdapterLibrary::Peft,
            kernels: AdapterKernels::default(),
        }),
        embedding: false,
        head: false,
        input_gradients: true,
        quantization,
        ..Tuning::default()
    };
    draft
}

/// unsloth uses half of the free memory for a chunk's fp32 logits, and a number of chunks that is divisible by four
/// (`unsloth_zoo/fused_losses/cross_entropy_loss.py:_get_chunk_multiplier`).
#[test]
fn rows_of_a_chunk_follow_from_what_the_frozen_model_leaves_free() {
    // All hundred samples have 6,400 rows of 512 logits, with 16 bytes assumed for each: 52,428,800 bytes, 200 times
    // 262,144.
    const FREE: u64 = 262_144;
    let rows = |quantization, embeddings, held: u64| {
        let mut draft = unsloth(quantization);
        draft.model.embeddings = embeddings;
        (draft.recipe.micro_batch_size, draft.recipe.global_batch_size) = (100, 100);
        draft.cluster.accelerator.memory = Bytes::new(held + 2 * FREE);
        Symbols::new(&draft.plan()).chunk_rows()
    };
    let table = VOCABULARY * HIDDEN * 2;
    let four_bits = Quantization::FourBit { double: false };
    assert_eq!(rows(four_bits, Embeddings::Untied, 2 * MATRICES / 2 + 2 * table), 6_400 / 200);
    assert_eq!(rows(Quantization::None, Embeddings::Untied, 2 * MATRICES * 2 + 2 * table), 6_400 / 200);
    assert_eq!(rows(Quantization::None, Embeddings::Tied, 2 * MATRICES * 2 + table), 6_400 / 200);
}

/// Its kernels dequantize into a buffer for the largest weight: two bytes per element, and an fp32 constant per block
/// of 64.
#[test]
fn the_buffer_of_a_weight_in_full_is_of_the_largest_weight() {
    let buffer = |ffn| {
        let mut draft = unsloth(Quantization::FourBit { double: false });
        draft.model.ffn_hidden_size = ffn;
        let of = memory(&draft.plan());
        let tree = &of.ranks[0].breakdown;
        let buffer = leaf(tree, "buffer of a dequantized weight").expect("a buffer");
        buffer.value().get()
    };
    assert_eq!(buffer(FFN), HIDDEN * FFN * 2 + HIDDEN * FFN / 64 * 4);
    // The heads together are wider than the MLP.
    assert_eq!(buffer(128), HIDDEN * HEADS * HEAD * 2 + HIDDEN * HEADS * HEAD / 64 * 4);
}

type Tree = shardscope::explain::Breakdown<Bytes>;

/// The first node called `label` below `tree`.
fn leaf<'a>(tree: &'a Tree, label: &str) -> Option<&'a Tree> {
    let below = |child| leaf(child, label);
    (tree.label() == label).then_some(tree).or_else(|| tree.children().iter().find_map(below))
}

/// Inputs are offloaded to the host if they are larger than 2 MiB in 16 bits (`unsloth_zoo/gradient_checkpointing.py`:
/// `new_size > MINIMUM_SIZE`).
#[test]
fn inputs_of_two_mebibytes_stay() {
    let buffers = |samples| {
        let mut draft = unsloth(Quantization::None);
        (draft.recipe.micro_batch_size, draft.recipe.global_batch_size) = (samples, samples);
        draft.recipe.recompute = Recompute::Uniform { num_layers: 1, distribute: false };
        draft.recipe.offload.layer_inputs = true;
        let of = memory(&draft.plan());
        leaf(&of.ranks[0].breakdown, "buffers of inputs copied back").map(|buffers| buffers.value().get())
    };
    // 64 samples of 64 tokens, 256 wide, are 2^20 elements.
    assert_eq!(buffers(64), None);
    assert_eq!(buffers(65), Some(65 * TOKENS * HIDDEN * 2 * 2));
}

/// With expandable segments the allocator holds the smallest fraction observed in addition to its first 920 MiB.
#[test]
fn segments_that_grow_leave_less_between_blocks() {
    let slack = |grows, capability| {
        let mut draft = draft();
        draft.recipe.expandable_segments = grows;
        draft.cluster.accelerator.capability = capability;
        let of = memory(&draft.plan());
        let slack = leaf(&of.ranks[0].breakdown, "allocator slack").expect("slack");
        let why = slack.why().expect("a reason");
        let moving = why.symbols.iter().find(|symbol| symbol.name == "N").expect("what moves").value;
        (slack.value().less(Bytes::mib(920)).get(), moving as u64)
    };
    let capability = Some(9);
    let (grown, moving) = slack(true, capability);
    assert_eq!(grown, (moving * 7).div_ceil(100));
    for (grows, capability) in [(false, capability), (true, None)] {
        let (held, moving) = slack(grows, capability);
        assert_eq!(held, (moving * 14).div_ceil(100));
    }
}

/// A plan that fills the device to the last byte fits; one byte more does not.
#[test]
fn what_fills_the_device_to_the_last_byte_fits() {
    let device = Bytes::gib(80);
    let one = Bytes::new(1);
    assert_eq!(Verdict::judge(device, device, device, 0.0), Verdict::Fits);
    assert_eq!(Verdict::judge(device + one, device, device, 0.0), Verdict::Tight);
    assert_eq!(Verdict::judge(device + one, device + one, device, 0.0), Verdict::OutOfMemory);
    let three_quarters = Bytes::gib(60);
    assert_eq!(Verdict::judge(three_quarters, three_quarters, device, 0.25), Verdict::Fits);
    assert_eq!(Verdict::judge(three_quarters + one, one, device, 0.25), Verdict::Tight);
}

/// 16 bytes of an input hold 8 numbers of 16 bits, 16 of 8 bits, or 32 of 4 bits.
#[test]
fn elements_in_sixteen_bytes_follow_from_the_format() {
    let run = |fp8: Option<Fp8Recipe>, low| {
        let mut draft = draft();
        draft.recipe.software = Software::MegatronCoreTe;
        draft.cluster.accelerator.peaks.fp4 = draft.cluster.accelerator.peaks.fp8;
        draft.recipe.fp8 = fp8.map(|recipe| Fp8 { format: "hybrid".into(), recipe, param_gather: false });
        let plan = draft.plan();
        Device::with(calibration(&plan.cluster().accelerator), plan.cluster(), plan.recipe()).run(low)
    };
    for recipe in [None, Some(Fp8Recipe::Delayed), Some(Fp8Recipe::Nvfp4)] {
        assert_eq!(run(recipe, false), 8);
    }
    assert_eq!(run(None, true), 8);
    assert_eq!(run(Some(Fp8Recipe::Delayed), true), 16);
    assert_eq!(run(Some(Fp8Recipe::Nvfp4), true), 32);
}

/// If nothing before the last layers trains, the norm after the embedding (BLOOM's) keeps nothing; if a copy of the
/// embedding trains in addition to adapters, it does.
#[test]
fn a_frozen_norm_behind_a_frozen_embedding_keeps_nothing() {
    let kept = |base, embedding, lora: bool| {
        let mut draft = unsloth(Quantization::None);
        let adapters = draft.recipe.tuning.lora;
        draft.recipe.software = Software::HfTransformers;
        draft.recipe.loss = LossKind::Torch;
        draft.model.arrangement.embedding_norm = true;
        let lora = if lora { adapters } else { None };
        draft.recipe.tuning = Tuning { base, embedding, lora, ..Tuning::default() };
        let plan = draft.plan();
        let kept = Operator::Embedding.saved(&Symbols::new(&plan));
        let normed = kept.iter().filter(|saved| saved.name.starts_with("embedding norm"));
        normed.map(|saved| saved.bytes.get()).sum::<u64>()
    };
    // The input in 16 bits, and mean and deviation per token.
    let all = TOKENS * HIDDEN * 2 + 2 * TOKENS * 4;
    assert_eq!(kept(BaseTraining::All, true, false), all);
    assert_eq!(kept(BaseTraining::Last(1), false, false), 0);
    assert_eq!(kept(BaseTraining::None, true, true), all);
    assert_eq!(kept(BaseTraining::None, false, true), 0);
}

/// FLOPs of a layer's forward pass over one micro-batch: two per element of its matrices and token, and attention.
const ATTENTION: u64 = 4 * HEADS * TOKENS * TOKENS * HEAD;
const FORWARD: u64 = 2 * TOKENS * MATRICES + ATTENTION;

/// Layers before the first one that trains have no backward pass, and nothing of them is recomputed.
#[test]
fn frozen_layers_only_run_forward() {
    let frozen = |base, layers: u64, recompute| {
        let mut draft = draft();
        draft.model.num_layers = layers;
        draft.layout.stages = even_stages(layers, 1, 0);
        draft.recipe.recompute = recompute;
        draft.recipe.tuning = Tuning { base, embedding: false, ..Tuning::default() };
        flops(&draft.plan())
    };
    let none = Recompute::None;
    let model = |base, layers| frozen(base, layers, none.clone()).model.get();
    // One more layer in front costs its forward pass.
    let more = model(BaseTraining::Last(1), 3) - model(BaseTraining::Last(1), 2);
    assert_eq!(more, FORWARD as f64);
    let more = model(BaseTraining::None, 3) - model(BaseTraining::None, 2);
    assert_eq!(more, FORWARD as f64);
    // One of two layers trains, whose scores and values are computed once more.
    let core = Recompute::Selective(vec![RecomputeModule::CoreAttention]);
    let of = frozen(BaseTraining::Last(1), 2, core);
    assert_eq!(of.hardware.get() - of.model.get(), ATTENTION as f64);
}

/// All accounts of a dense model are listed, including empty ones; those of a vision tower and an encoder only if there is one.
#[test]
fn accounts_are_reported_without_a_tower_that_is_not_there() {
    let counted = parameters(&draft().plan());
    let accounts: Vec<(Account, Count)> = counted.accounts.iter().collect();
    let beside = [Account::VisionTower, Account::Encoder];
    let all: Vec<Account> =
        Account::ALL.iter().copied().filter(|account| !beside.contains(account)).collect();
    assert_eq!(accounts.iter().map(|(account, _)| *account).collect::<Vec<_>>(), all);
    assert!(accounts.iter().any(|(_, count)| *count == Count::ZERO));
    assert_eq!(sent_to_host(&draft().plan()), Bytes::ZERO);
}

/// A gradient that is reduced on every replica is described as such, and so is one that is scattered.
#[test]
fn what_becomes_of_gradients_is_recognised_by_their_collective() {
    let accounts = |sharding| {
        let mut draft = draft();
        (draft.layout.world_size, draft.layout.data, draft.layout.expert_data) = (8, 8, 8);
        draft.recipe.global_batch_size = 8;
        draft.recipe.dp_sharding = sharding;
        let ledger = traffic(&draft.plan());
        let data = ledger.dimension(Parallelism::Data).expect("replicas");
        let gradients = data.operations.iter().find(|operation| operation.tensor == "gradients");
        let gradients = gradients.expect("gradients");
        (gradients.collective, gradients.formula.meaning)
    };
    let (collective, meaning) = accounts(DpSharding::Replicated);
    assert_eq!(collective, Collective::AllReduce);
    assert!(meaning.starts_with("All-reduce: every replica"), "{meaning}");
    let (collective, meaning) = accounts(DpSharding::OptimizerStates);
    assert_eq!(collective, Collective::ReduceScatter);
    assert!(meaning.starts_with("Reduce-scatter: each replica"), "{meaning}");
}
