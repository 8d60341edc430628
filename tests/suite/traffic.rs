//! The ledger: figures computed by hand, and those of the 2023 analysis tool with the correct ones next to the wrong
//! ones. The walk through full schedules is in `traffic_walk/`.

use super::formula::evaluate;
use shardscope::estimate::collective::Algorithm;
use shardscope::estimate::traffic::{Detour, Operation, Parallelism, Traffic, traffic, warnings};
use shardscope::launch::plan_from_flags;
use shardscope::operators::{Collective, Symbols};
use shardscope::plan::{DpSharding, Plan};
use shardscope::topology::Link;
use shardscope::units::{Bytes, Count};

/// The 2023 tool's example as it printed it: 32 layers, vocabulary 50257 padded to 50432.
const EXAMPLE: &str = "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --num-layers 32 \
    --hidden-size 4096 --num-attention-heads 32 --seq-length 2048 --max-position-embeddings 2048 \
    --micro-batch-size 4 --global-batch-size 512 --use-flash-attn --use-distributed-optimizer --swiglu --bf16 \
    --vocab-size 50257";

const MIB_64: u64 = 2048 * 4 * 4096 * 2;

#[track_caller]
fn plan(flags: &str, world: u64) -> Plan {
    plan_from_flags(flags, world, 8, "H800-SXM").expect("a plan")
}

fn example() -> (Plan, Traffic) {
    let plan = plan(EXAMPLE, 16);
    let ledger = traffic(&plan);
    (plan, ledger)
}

fn find<'a>(traffic: &'a Traffic, of: Parallelism, name: &str, tensor: &str) -> &'a Operation {
    let operations = &traffic.dimension(of).expect("it sends").operations;
    operations
        .iter()
        .find(|operation| operation.name == name && operation.tensor == tensor)
        .unwrap_or_else(|| panic!("no {name} {tensor}"))
}

/// Audit item 16: 4 messages per GPU and micro-batch were counted, also on the end stages, and summed over GPUs: 2048
/// and 128 GiB. There are 2(p-1)m = 64 per pipeline, and 8 pipelines.
#[test]
fn the_tools_pipeline_is_four_times_too_much() {
    let (_, ledger) = example();
    let pipeline = ledger.dimension(Parallelism::Pipeline).unwrap();
    let (printed_calls, printed_gib) = (2048, 128);
    assert_eq!((pipeline.cluster.calls, pipeline.cluster.bytes), (512, Bytes::gib(32)));
    assert_eq!((printed_calls / pipeline.cluster.calls, printed_gib / 32), (4, 4));
    assert_eq!((pipeline.groups, pipeline.group_size, pipeline.link), (8, 2, Link::Network));
    let output = find(&ledger, Parallelism::Pipeline, "stage output", "activation");
    assert_eq!((&*output.shape, output.bytes().get()), (&[2048, 4, 4096][..], MIB_64));
    assert_eq!((output.calls(0), output.calls(1)), (32, 0), "the last stage sends no activation");
}

/// Audit items 17 and 18: weights were gathered with 4 bytes per parameter (6.4 GiB instead of 3.2), and one GPU's 2
/// operations and 12.8 GiB were given as the cluster's.
#[test]
fn the_tools_all_gather_is_twice_too_much_and_of_one_gpu() {
    let (_, ledger) = example();
    let gather = find(&ledger, Parallelism::Data, "dense parameters", "weights");
    let scatter = find(&ledger, Parallelism::Data, "dense parameters", "gradients");
    let real_parameters = 1_718_757_376;
    assert_eq!(scatter.bytes().get(), 4 * real_parameters, "6.4 GiB, as printed");
    assert_eq!(gather.bytes().get(), 2 * real_parameters, "3.2 GiB, 6.4 printed");
    assert_eq!((gather.collective, scatter.collective), (Collective::AllGather, Collective::ReduceScatter));
    let data = ledger.dimension(Parallelism::Data).unwrap();
    assert_eq!(data.per_gpu().calls, 2, "2 operations printed as the cluster's are one GPU's");
    let (first, last) = (1_718_757_376_u64, 1_710_376_960);
    assert_eq!((data.cluster.calls, data.cluster.bytes.get()), (32, 8 * 6 * (first + last)));
    assert_eq!((data.groups, data.group_size, data.link), (4, 4, Link::Fast));
}

/// Audit item 19: 64 all-reduces per micro-batch were counted; the embedding adds one on the first stage, the output
/// layer one on the last, and the loss three small ones. 4 per layer is correct.
#[test]
fn the_tools_tensor_messages_lack_the_ends() {
    let (_, ledger) = example();
    let tensor = ledger.dimension(Parallelism::Tensor).unwrap();
    let large = |stage: usize| -> u64 {
        let own = tensor.operations.iter().filter(|operation| operation.bytes().get() == MIB_64);
        own.map(|operation| operation.per_micro_batch[stage]).sum()
    };
    let small: u64 = tensor
        .operations
        .iter()
        .filter(|operation| operation.name == "cross_entropy")
        .map(|operation| operation.per_micro_batch[1])
        .sum();
    assert_eq!((large(0), large(1), small), (65, 65, 3), "64 printed");
    let in_layers = |operation: &&Operation| operation.name.starts_with("linear");
    let layers: u64 = tensor.operations.iter().filter(in_layers).map(|operation| operation.calls(0)).sum();
    assert_eq!(layers, 2048, "of the layers alone, as printed");
    assert_eq!(layers * MIB_64, Bytes::gib(128).get(), "of the layers alone, as printed");
    assert_eq!(16 * layers, 32_768, "of the cluster's layers, as printed");
    assert_eq!(tensor.cluster.calls, 16 * 2048 + 16 * 32 + 8 * 3 * 32);
}

/// Audit item 20: the tied embedding's all-reduce was missing: 394 MiB per step.
#[test]
fn the_tool_lacks_the_tied_embedding() {
    let (_, ledger) = example();
    let tied = find(&ledger, Parallelism::Embedding, "word_embeddings", "gradients");
    assert_eq!(tied.bytes(), Bytes::mib(394));
    assert_eq!(ledger.dimension(Parallelism::Embedding).unwrap().cluster.calls, 16);
}

/// Audit item 21: the tool's volumes are message sizes. A ring of 4 sends 3/4 of a reduce-scatter's message; over two
/// ranks an all-reduce sends as much as the message size.
#[test]
fn message_size_and_wire_stand_side_by_side() {
    let (_, ledger) = example();
    let scatter = find(&ledger, Parallelism::Data, "dense parameters", "gradients");
    assert_eq!(scatter.wire(Algorithm::Ring).get(), 3 * 1_718_757_376);
    let output = find(&ledger, Parallelism::Tensor, "linear_fc2", "output");
    assert_eq!(output.wire(Algorithm::Ring), output.bytes());
    assert_eq!(output.wire(Algorithm::InSwitch).get(), MIB_64 * 3 / 2);
}

/// Audit item 17 again: a grand total of different quantities (34818 calls, 2188.8 GiB). Ours adds up the operations in
/// which each GPU takes part, and counts sends at the sender.
#[test]
fn the_grand_total_adds_like_with_like() {
    let (_, ledger) = example();
    let sum = |of: fn(&Traffic) -> Vec<u64>| of(&ledger).iter().sum::<u64>();
    let calls = sum(|ledger| ledger.dimensions.iter().map(|dimension| dimension.cluster.calls).collect());
    assert_eq!(ledger.cluster().calls, calls);
    let by_stage: u64 = ledger.stages().iter().map(|stage| 8 * stage.bytes.get()).sum();
    assert_eq!(ledger.cluster().bytes.get(), by_stage);
    assert_ne!(calls, 34_818);
}

#[track_caller]
fn per_layer(flags: &str, world: u64, expected: &[(Collective, u64)]) {
    let plan = plan(flags, world);
    let ledger = traffic(&plan);
    let layers = plan.layout().stages.stages[0].layers();
    let of = |collective| -> u64 {
        let tensor = ledger.dimension(Parallelism::Tensor).unwrap();
        let own = tensor.operations.iter().filter(|operation| operation.collective == collective);
        own.filter(|operation| operation.name.starts_with("linear"))
            .map(|operation| operation.per_micro_batch[0])
            .sum()
    };
    for &(collective, calls) in expected {
        assert_eq!(of(collective), calls * layers, "{}", collective.name());
    }
}

/// The table of collectives per layer (Megatron-LM `tensor_parallel/layers.py`, `mappings.py`).
#[test]
fn tensor_parallel_calls_per_layer() {
    use Collective::{AllGather, AllReduce, ReduceScatter};
    let base = "--tensor-model-parallel-size 4 --num-layers 8 --hidden-size 1024 --num-attention-heads 16 \
        --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 8 --bf16 \
        --vocab-size 32000 --transformer-impl transformer_engine";
    let with = |more: &str| format!("{base} {more}");
    per_layer(&with(""), 8, &[(AllReduce, 4), (AllGather, 0), (ReduceScatter, 0)]);
    per_layer(&with("--sequence-parallel"), 8, &[(AllReduce, 0), (AllGather, 6), (ReduceScatter, 4)]);
    let full = "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1";
    per_layer(&with(full), 8, &[(AllReduce, 6)]);
    let both = format!("--sequence-parallel {full}");
    per_layer(&with(&both), 8, &[(AllReduce, 0), (AllGather, 8), (ReduceScatter, 6)]);
    per_layer(&with("--recompute-granularity selective"), 8, &[(AllReduce, 4)]);
}

#[test]
fn interleaving_adds_boundaries() {
    let base = "--pipeline-model-parallel-size 4 --num-layers 16 --hidden-size 1024 --num-attention-heads 16 \
        --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 16 --bf16 \
        --vocab-size 32000 --transformer-impl transformer_engine";
    let messages = |more: &str| {
        let ledger = traffic(&plan(&format!("{base} {more}"), 8));
        let pipeline = ledger.dimension(Parallelism::Pipeline).unwrap();
        pipeline.cluster.calls / pipeline.groups
    };
    let m = 8;
    assert_eq!(messages(""), 2 * 3 * m);
    assert_eq!(messages("--num-layers-per-virtual-pipeline-stage 2"), 2 * 7 * m);
}

/// Every message's size equals its formula.
#[test]
fn sizes_are_what_their_formulas_say() {
    let mut compared = 0;
    for seed in 0..80 {
        compared += sizes_hold(&super::traffic_walk::random_plan(seed));
    }
    assert!(compared > 800, "only {compared}");
}

#[track_caller]
fn sizes_hold(plan: &Plan) -> u32 {
    let x = Symbols::new(plan);
    let mut compared = 0;
    for operation in traffic(plan).dimensions.iter().flat_map(|dimension| &dimension.operations) {
        let elements = Count::of_shape(&operation.shape).get();
        let lookup = |name: &str| if name == "elements" { Some(elements) } else { x.value(name) };
        let expected = evaluate(operation.formula.expression, &lookup);
        let bytes = operation.bytes().get();
        assert_eq!(expected, bytes as f64, "{} {}", operation.name, operation.tensor);
        assert!(operation.explain(&x).symbols.len() >= operation.formula.names().len());
        compared += 1;
    }
    compared
}

const SMALL: &str = "--num-layers 8 --hidden-size 1024 --ffn-hidden-size 4096 --num-attention-heads 16 \
    --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 32 --bf16 \
    --vocab-size 32000 --untie-embeddings-and-output-weights --disable-bias-linear --normalization RMSNorm \
    --position-embedding-type rope --swiglu --transformer-impl transformer_engine";

/// Parameters of one of these layers: QKV and output projection, gated MLP, two norms.
const SMALL_LAYER: u64 = 4 * 1024 * 1024 + 3 * 4096 * 1024 + 2 * 1024;

/// ZeRO-2 reduces gradients after every micro-batch, and gathers weights once.
#[test]
fn sharded_gradients_are_reduced_for_every_micro_batch() {
    let mut draft = super::drafts::Draft::new(&plan(&format!("{SMALL} --use-distributed-optimizer"), 8));
    draft.recipe.dp_sharding = DpSharding::Gradients;
    let ledger = traffic(&draft.plan());
    let scatter = find(&ledger, Parallelism::Data, "dense parameters", "gradients");
    let gather = find(&ledger, Parallelism::Data, "dense parameters", "weights");
    assert_eq!((scatter.most_calls_per_micro_batch(), scatter.calls(0), gather.calls(0)), (1, 4, 1));
    let parameters = 8 * SMALL_LAYER + 1024 + 2 * 32000 * 1024;
    assert_eq!(scatter.bytes().get(), 4 * parameters.next_multiple_of(128));
}

/// ZeRO-3 and FSDP gather every layer in forward and backward and scatter its gradients, for each micro-batch.
#[test]
fn sharded_weights_are_gathered_unit_by_unit() {
    let mut draft = super::drafts::Draft::new(&plan(&format!("{SMALL} --use-distributed-optimizer"), 8));
    draft.recipe.dp_sharding = DpSharding::Parameters;
    let ledger = traffic(&draft.plan());
    let data = ledger.dimension(Parallelism::Data).unwrap();
    let layers: Vec<&Operation> =
        data.operations.iter().filter(|operation| operation.shape[0] == SMALL_LAYER).collect();
    assert_eq!(layers.len(), 3, "gathered forward, gathered backward, scattered");
    assert!(layers.iter().all(|operation| operation.calls(0) == 8 * 4));
    let units = 8 * SMALL_LAYER + 1024 + 2 * 32000 * 1024;
    assert_eq!(data.per_gpu().bytes.get(), 4 * (2 + 2 + 4) * units);
}

/// Multi-latent attention gathers latents instead of the residual stream; a depth of multi-token prediction adds a
/// look-up, a projection, a layer, an output layer and a loss.
#[test]
fn latent_attention_and_multi_token_prediction() {
    let flags = format!(
        "{SMALL} --tensor-model-parallel-size 2 --sequence-parallel --multi-latent-attention --q-lora-rank 512 \
         --kv-lora-rank 256 --qk-head-dim 64 --qk-pos-emb-head-dim 32 --v-head-dim 64 --mtp-num-layers 1"
    );
    let plan = plan(&flags, 2);
    let ledger = traffic(&plan);
    let (n, width) = (1024, 2);
    let check = |name: &str, tensor: &str, columns: u64, calls: u64| {
        let operations = &ledger.dimension(Parallelism::Tensor).unwrap().operations;
        let own = operations.iter().filter(|one| one.name == name && one.tensor == tensor);
        let (found, sizes): (Vec<u64>, Vec<u64>) =
            own.map(|one| (one.per_micro_batch[0], one.bytes().get())).unzip();
        assert_eq!(found.iter().sum::<u64>(), calls, "{name} {tensor}");
        assert!(sizes.iter().all(|size| *size == n * columns * width), "{name} {tensor}");
    };
    // 8 layers and that of the depth.
    for tensor in ["input", "input again", "input gradient"] {
        check("linear_q_up_proj", tensor, 512, 9);
        check("linear_kv_up_proj", tensor, 256, 9);
        check("linear_fc1", tensor, 1024, 9);
        check("mtp.eh_proj", tensor, 2048, 1);
        check("output_layer", tensor, 1024, 2);
    }
    check("linear_kv_down_proj", "rotated keys", 32, 9);
    check("linear_kv_down_proj", "rotated key gradient", 32, 9);
    check("linear_proj", "output", 1024, 9);
    check("linear_proj", "output gradient", 1024, 9);
    check("mtp.eh_proj", "output", 1024, 1);
    check("word_embeddings", "output", 1024, 2);
    sizes_hold(&plan);
    sizes_hold(&super::traffic::plan(&format!("{flags} --context-parallel-size 2"), 4));
}

/// Hierarchical context parallelism exchanges heads in the inner groups and uses a ring in the outer ones.
#[test]
fn hierarchical_context_parallelism() {
    let flags = format!(
        "{SMALL} --context-parallel-size 8 --cp-comm-type a2a+p2p --hierarchical-context-parallel-sizes 4 2"
    );
    let plan = plan(&flags, 8);
    let ledger = traffic(&plan);
    let context = ledger.dimension(Parallelism::Context).unwrap();
    let calls = |ranks: u64| -> u64 {
        let own = context.operations.iter().filter(|operation| operation.ranks == ranks);
        own.map(|operation| operation.per_micro_batch[0]).sum()
    };
    assert_eq!(calls(4), 8 * 8, "four tensors and their gradients, per layer");
    assert_eq!(calls(2), 8 * 3, "one step of the ring each way, gradients with it");
    sizes_hold(&plan);
}

#[test]
fn optimizer_instances_add_up_their_shards() {
    let flags = "--tensor-model-parallel-size 2 --num-layers 4 --hidden-size 1024 --num-attention-heads 16 \
        --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 16 --bf16 \
        --vocab-size 32000 --use-distributed-optimizer --num-distributed-optimizer-instances 2 \
        --transformer-impl transformer_engine --ckpt-format torch_dist";
    let ledger = traffic(&plan(flags, 16));
    let scatter = find(&ledger, Parallelism::Data, "dense parameters", "gradients");
    let across = find(&ledger, Parallelism::Data, "dense parameters", "gradient shards");
    assert_eq!((scatter.ranks, across.ranks), (4, 2));
    assert_eq!(across.bytes().get() * 4, scatter.bytes().get());
}

/// Megatron's HSDP: each unit's gradients are scattered within a group after every micro-batch, and a rank's shard is
/// reduced over the groups after the last one; the same holds if only gradients are sharded.
#[test]
fn groups_of_fsdp_add_up_their_shards_once_a_step() {
    let flags = |strategy: &str| {
        format!(
            "--tensor-model-parallel-size 2 --num-layers 4 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 \
             --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 32 --bf16 --vocab-size 32000 \
             --use-megatron-fsdp --data-parallel-sharding-strategy {strategy} --num-distributed-optimizer-instances 2 \
             --untie-embeddings-and-output-weights --transformer-impl transformer_engine --ckpt-format torch_dist"
        )
    };
    for strategy in ["optim_grads", "optim_grads_params"] {
        let ledger = traffic(&plan(&flags(strategy), 16));
        let data = ledger.dimension(Parallelism::Data).expect("replicas").operations.iter();
        let sums = |tensor: &str| -> Vec<(u64, u64, u64)> {
            let own = data.clone().filter(|one| one.tensor == tensor);
            own.map(|one| (one.ranks, one.shape[0], one.per_iteration[0])).collect()
        };
        // 8 replicas in 2 groups of 4, and 4 micro-batches.
        let (scattered, across) = (sums("gradients"), sums("gradient shards"));
        assert!(!scattered.is_empty(), "{strategy}");
        let expected = scattered.into_iter().map(|(ranks, elements, calls)| {
            assert_eq!((ranks, calls % 4), (4, 0), "{strategy}");
            (2, elements.div_ceil(4), calls / 4)
        });
        assert_eq!(across, expected.collect::<Vec<_>>(), "{strategy}");
    }
}

/// A balancing loss sums each layer's token counts over the ranks that share a sequence, in whichever pass records
/// gradients; the experts' biases follow once per step. A loss without weight sends nothing.
#[test]
fn balancing_adds_up_token_counts() {
    const MODEL: &str = "--num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 \
        --max-position-embeddings 2048 --micro-batch-size 2 --global-batch-size 16 --bf16 --vocab-size 50257 \
        --num-experts 16 --expert-model-parallel-size 2 --tensor-model-parallel-size 2 --sequence-parallel \
        --pipeline-model-parallel-size 2 --moe-layer-freq 2";
    type Counts = Vec<(Vec<u64>, u64, u64, Vec<u64>)>;
    let counts = |more: &str| -> Counts {
        let ledger = traffic(&plan(&format!("{MODEL} {more}"), 8));
        let own = &ledger.dimension(Parallelism::Scalars).expect("it sends").operations;
        let counts = own.iter().filter(|operation| operation.tensor == "token counts");
        counts.map(|one| (one.shape.to_vec(), one.width, one.ranks, one.per_iteration.clone())).collect()
    };
    let none = Counts::new();
    assert_eq!(counts(""), none, "the default weight is 0");
    // 2 routers per stage, 4 micro-batches of 2 for each of 2 replicas.
    let loss = (vec![16], 8, 2, vec![8, 8]);
    assert_eq!(counts("--moe-aux-loss-coeff 1e-2"), vec![loss.clone()]);
    let again = "--moe-aux-loss-coeff 1e-2 --recompute-granularity full --recompute-method uniform \
        --recompute-num-layers 1";
    assert_eq!(counts(again), [loss]);
    let sequence = "--moe-router-load-balancing-type seq_aux_loss --moe-aux-loss-coeff 1e-4 \
        --moe-router-enable-expert-bias --moe-router-score-function sigmoid";
    assert_eq!(counts(sequence), [(vec![32], 8, 2, vec![8, 8]), (vec![2, 16], 4, 4, vec![1, 1])]);
}

#[track_caller]
fn check_warnings(flags: &str, world: u64, expected: &[Detour]) {
    let base = "--num-layers 16 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 \
        --max-position-embeddings 2048 --micro-batch-size 1 --bf16 --vocab-size 32000 \
        --use-distributed-optimizer --transformer-impl transformer_engine";
    let plan = plan(&format!("{base} {flags}"), world);
    let found = warnings(&plan, &traffic(&plan));
    assert_eq!(found.iter().map(|warning| warning.detour).collect::<Vec<_>>(), expected);
    for warning in found {
        assert!(warning.wire >= warning.exposed && warning.wire > Bytes::ZERO);
    }
}

#[test]
fn detours_are_warned_of() {
    check_warnings("--tensor-model-parallel-size 8 --global-batch-size 16", 16, &[]);
    let wide = "--tensor-model-parallel-size 16 --global-batch-size 16";
    check_warnings(wide, 16, &[Detour::TensorLeavesDomain]);
    let experts = "--num-experts 16 --expert-model-parallel-size 16 --moe-token-dispatcher-type alltoall \
        --moe-router-topk 2 --moe-ffn-hidden-size 1024 --global-batch-size 16";
    check_warnings(experts, 16, &[Detour::ExpertsCrossNetwork]);
    let swapped = "--pipeline-model-parallel-size 4 --use-tp-pp-dp-mapping --global-batch-size 16";
    check_warnings(swapped, 32, &[Detour::PipelineInsideDataOutside]);
    check_warnings("--pipeline-model-parallel-size 4 --global-batch-size 16", 32, &[]);
}
