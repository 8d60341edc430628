//! Figures computed by hand from what the frameworks do, to the byte: each detects a change that once passed every
//! other test.

use shardscope::estimate::time::{exact_step_seconds, time};
use shardscope::estimate::traffic::{Parallelism, Traffic, traffic};
use shardscope::estimate::{memory, parameters};
use shardscope::explain::Breakdown;
use shardscope::launch::{Argument, megatron, resolve};
use shardscope::plan::{CudaGraphs, PipelineSchedule, Plan};
use shardscope::schedule::Order;
use shardscope::units::{Bytes, Seconds};

use super::drafts::{draft, even_stages};
use super::sweeping::sweep;

#[track_caller]
fn plan(flags: &str, set: &[(&str, &str)]) -> Plan {
    // All in one node.
    let world = set.iter().find(|(name, _)| *name == "world_size").map_or("1", |(_, value)| *value);
    let set: Vec<_> = [("accelerator", "H100-SXM"), ("gpus_per_node", world)]
        .iter()
        .chain(set)
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let resolution = resolve(&[megatron::read(&Argument::split(flags))], &set);
    resolution.plan.unwrap_or_else(|| panic!("{:?}", resolution.diagnostics))
}

/// The value of the leaf called `label`, at any depth.
fn leaf(node: &Breakdown<Bytes>, label: &str) -> Option<u64> {
    if node.label() == label {
        return Some(node.value().get());
    }
    node.children().iter().find_map(|child| leaf(child, label))
}

fn leaves(plan: &Plan, label: &str) -> Vec<Option<u64>> {
    memory(plan).ranks.iter().map(|rank| leaf(&rank.breakdown, label)).collect()
}

/// Layers of `4·h² + 3·h·f + 2·h` parameters: LLaMA's, without biases.
const LLAMA: &str = "--num-layers 8 --hidden-size 1024 --ffn-hidden-size 4096 --num-attention-heads 16 --seq-length 2048 \
    --max-position-embeddings 2048 --micro-batch-size 2 --vocab-size 32000 --bf16 --swiglu --disable-bias-linear \
    --normalization RMSNorm --position-embedding-type rope --untie-embeddings-and-output-weights";
/// `s·b·h` in bf16: one activation of it.
const STREAM: u64 = 2048 * 2 * 1024 * 2;

/// Layers of `12·h² + 13·h`: GPT-2's, with biases.
const GPT: &str = "--num-layers 12 --hidden-size 2048 --num-attention-heads 16 --seq-length 1024 \
    --max-position-embeddings 1024 --micro-batch-size 1 --vocab-size 51200 --bf16";
/// Its parameters: layers, word and position tables, final norm.
const GPT_PARAMETERS: u64 = 12 * (12 * 2048 * 2048 + 13 * 2048) + (51_200 + 1_024) * 2048 + 2 * 2048;

/// DualPipe runs half of the micro-batches through each of a rank's two chunks: the parts of a step are the busy time
/// of the slowest rank, according to the reference that processes every event in turn, and all parts together are the
/// step.
#[test]
fn dualpipes_pieces_are_the_time_at_work() {
    let mut draft = draft();
    draft.model.num_layers = 8;
    draft.model.hidden_size = 2048;
    draft.model.ffn_hidden_size = 8192;
    draft.model.seq_length = 2048;
    draft.layout.pipeline = 4;
    draft.layout.world_size = 4;
    draft.layout.virtual_pipeline = 2;
    draft.layout.schedule = PipelineSchedule::DualPipe;
    draft.layout.stages = even_stages(8, 4, 0);
    let own = draft.layout.stages.stages.clone();
    for (stage, other) in draft.layout.stages.stages.iter_mut().zip(own.iter().rev()) {
        stage.chunks.extend_from_slice(&other.chunks);
    }
    draft.recipe.num_micro_batches = 12;
    draft.recipe.global_batch_size = 12;
    draft.recipe.cuda_graphs = CudaGraphs::Iteration;
    let plan = draft.plan();
    let time = time(&plan);
    let times = sweep(&Order::new(time.schedule.shape), &time.schedule.durations);
    let at_work = |stage: &Vec<(f64, f64)>| stage.iter().map(|(start, end)| end - start).sum::<f64>();
    let busiest = times.iter().map(at_work).fold(0.0, f64::max);
    let part = |name: &str| time.breakdown.child(name).expect("a part").value().get();
    // No other communication, no recomputation, no waiting for the host: only arithmetic remains.
    let (compute, none) = (part("compute"), ["recompute", "tensor", "context", "expert"].map(part));
    assert_eq!(none, [0.0; 4]);
    assert!((compute / busiest - 1.0).abs() < 1e-9, "{compute} in pieces, {busiest} at work");
    let whole = times.iter().flatten().map(|(_, end)| *end).fold(0.0, f64::max);
    assert!((time.schedule.pipeline.get() / whole - 1.0).abs() < 1e-12);
    let pieces: Seconds = time.breakdown.children().iter().map(Breakdown::value).sum();
    assert!((pieces.get() / exact_step_seconds(&plan).get() - 1.0).abs() < 1e-9);
}

fn calls(traffic: &Traffic, of: Parallelism, name: &str) -> u64 {
    let operations = &traffic.dimension(of).expect("it sends").operations;
    operations
        .iter()
        .filter(|operation| operation.name == name)
        .map(|operation| operation.per_micro_batch[0])
        .sum()
}

/// Full recomputation repeats the forward all-reduces of a layer, only those of its own kind: of eight layers, every
/// other one with experts, four have an `fc2` whose output is reduced over tensor ranks (once in forward, once in
/// recomputation) and all have a `proj`.
#[test]
fn recomputation_repeats_each_kind_of_layer_by_its_own_number() {
    let moe = "--num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 512 --moe-layer-freq ([0,1]*4) --moe-grouped-gemm \
        --expert-tensor-parallel-size 1 --moe-token-dispatcher-type alltoall --tensor-model-parallel-size 2";
    let full = "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1";
    let block = "--recompute-granularity full --recompute-method block --recompute-num-layers 3";
    let of = |more: &str| {
        let plan = plan(&format!("{LLAMA} {moe} {more} --sequence-parallel"), &[("world_size", "2")]);
        let traffic = traffic(&plan);
        let of = |name, tensor: &str| -> u64 {
            let operations = &traffic.dimension(Parallelism::Tensor).expect("it sends").operations;
            let own = operations.iter().filter(|one| one.name == name && one.tensor == tensor);
            own.map(|one| one.per_micro_batch[0]).sum()
        };
        [of("linear_fc2", "output"), of("linear_proj", "output")]
    };
    assert_eq!(of(""), [4, 8]);
    assert_eq!(of(full), [8, 16], "once more for each");
    // The first three layers: dense, experts, dense.
    assert_eq!(of(block), [4 + 2, 8 + 3]);
}

/// DeepSpeed sends its gradients in buckets of 500 million elements and a remainder: every element once.
#[test]
fn deepspeeds_buckets_hold_every_gradient() {
    for zero in ["0", "1"] {
        let set = [("software", "megatron_deepspeed"), ("world_size", "4"), ("zero_stage", zero)];
        let plan = plan(GPT, &set);
        assert_eq!(parameters(&plan).ranks[0].count.get(), GPT_PARAMETERS);
        let traffic = traffic(&plan);
        let operations = &traffic.dimension(Parallelism::Data).expect("it sends").operations;
        let gradients =
            operations.iter().filter(|one| one.tensor == "gradients" && one.name == "dense parameters");
        let mut buckets: Vec<(u64, u64)> =
            gradients.map(|one| (one.shape.iter().product(), one.calls(0))).collect();
        buckets.sort_unstable();
        assert_eq!(buckets, [(GPT_PARAMETERS - 500_000_000, 1), (500_000_000, 1)], "ZeRO {zero}");
        let sent = calls(&traffic, Parallelism::Data, "dense parameters");
        assert_eq!(sent, 0, "once a step, not for each micro-batch");
    }
}

/// FSDP holds the gathered weights of two layers while one runs, two bytes each, of `4·h² + 3·h·f + 2·h` elements.
#[test]
fn two_layers_are_gathered_at_once() {
    let sharded = [("software", "torchtitan"), ("world_size", "8"), ("zero_stage", "3")];
    let layer = 4 * 1024 * 1024 + 3 * 1024 * 4096 + 2 * 1024;
    // The loss over a small vocabulary is small: the peak is in a layer.
    let in_layers = plan(LLAMA, &[&sharded[..], &[("vocab_size", "1024")]].concat());
    assert_eq!(leaves(&in_layers, "gathered weights of two layers"), [Some(2 * layer * 2)]);
    assert_eq!(leaves(&in_layers, "gradients of a layer"), [Some(layer * 2)]);
    assert_eq!(leaves(&in_layers, "gradients being reduced"), [Some(layer * 4)]);
    // Otherwise it is at the loss, where only the last layer is gathered and none has gradients yet.
    let at_loss = plan(LLAMA, &sharded);
    assert_eq!(leaves(&at_loss, "gathered weights of the layer"), [Some(layer * 2)]);
    assert_eq!(leaves(&at_loss, "gradients of a layer"), [None]);
}

/// FSDP's gradients have the width of its reduction format: bf16 by default in accelerate, fp32 in verl.
#[test]
fn gradients_are_as_wide_as_they_are_reduced() {
    let layer = 4 * 1024 * 1024 + 3 * 1024 * 4096 + 2 * 1024;
    for (stated, width) in [(None, 2), (Some("fp32"), 4)] {
        let mut set = vec![
            ("software", "hf_transformers"),
            ("data_parallel_engine", "fsdp2"),
            ("world_size", "8"),
            ("zero_stage", "3"),
            ("vocab_size", "1024"),
        ];
        set.extend(stated.map(|stated| ("reduce_dtype", stated)));
        assert_eq!(
            leaves(&plan(LLAMA, &set), "gradients being reduced"),
            [Some(layer * width)],
            "{stated:?}"
        );
    }
}

/// nanotron's Llama rotates queries in place: if each head has its own keys, the reordered projection lives as long as
/// the queries do (`3·s·b·h`), in addition to the copies of keys and values that flash-attn reads. With groups, each
/// has its own tensor.
#[test]
fn queries_of_nanotron_hold_the_projection() {
    let nanotron = [("software", "nanotron"), ("world_size", "1")];
    let whole = plan(LLAMA, &nanotron);
    assert_eq!(leaves(&whole, "query in the projection"), [Some(3 * STREAM)]);
    assert_eq!([leaves(&whole, "key"), leaves(&whole, "value")], [[Some(STREAM)], [Some(STREAM)]]);
    let [software, world] = nanotron;
    let grouped = [software, world, ("group_query_attention", "true"), ("num_query_groups", "4")];
    let grouped = plan(LLAMA, &grouped);
    assert_eq!(leaves(&grouped, "query in the projection"), [None]);
    assert_eq!([leaves(&grouped, "query"), leaves(&grouped, "key")], [[Some(STREAM)], [Some(STREAM / 4)]]);
}

/// Its linear layers save the rank's own part of an input that they gathered into one buffer, and gather it again in backward
/// (`parallel/tensor_parallel/functional.py`, `tp_recompute_allgather`); before August 2024 they saved all of it.
#[test]
fn nanotron_gathers_inputs_again_unless_it_saved_them_whole() {
    let flags = format!("{LLAMA} --tensor-model-parallel-size 4 --sequence-parallel");
    let of = |more: &[(&str, &str)]| {
        plan(&flags, &[&[("software", "nanotron"), ("world_size", "4")][..], more].concat())
    };
    let (now, before) = (of(&[]), of(&[("gathered_inputs", "true")]));
    for label in ["linear_qkv input", "linear_fc1 input", "output_layer input"] {
        assert_eq!(leaves(&now, label), [Some(STREAM / 4)], "{label}");
        assert_eq!(leaves(&before, label), [Some(STREAM)], "{label}");
    }
    let buffer = "sequence-parallel gather buffer";
    assert_eq!([leaves(&now, buffer), leaves(&before, buffer)], [[Some(STREAM)], [None]]);
    // Two gathers in backward for each layer, and one for the output layer.
    let calls = |plan: &Plan| traffic(plan).dimension(Parallelism::Tensor).expect("it sends").per_gpu().calls;
    assert_eq!(calls(&now) - calls(&before), 2 * 8 + 1);
}

/// Its loss reads fp32 logits, the only ones that the model returns: the 16-bit ones are freed by then.
#[test]
fn logits_of_nanotron_are_in_fp32_alone() {
    let at_loss = plan(
        LLAMA,
        &[("software", "nanotron"), ("world_size", "1"), ("num_layers", "1"), ("vocab_size", "512000")],
    );
    let logits = 2 * 2048 * 512_000;
    assert_eq!(leaves(&at_loss, "fp32 logits"), [Some(4 * logits)]);
    assert_eq!(leaves(&at_loss, "loss softmax"), [Some(4 * logits)]);
    assert_eq!(leaves(&at_loss, "logits"), [None]);
}

/// torchao quantizes a linear layer's input again in backward and keeps it in 16 bits; Transformer Engine keeps 8 bits.
#[test]
fn inputs_under_fp8_are_as_wide_as_the_software_keeps_them() {
    for (software, width) in [("torchtitan", 2), ("megatron_core_te", 1)] {
        let set = [("software", software), ("world_size", "1")];
        let kept =
            leaves(&plan(&format!("{LLAMA} --fp8-format e4m3 --fp8-recipe mxfp8"), &set), "linear_fc2 input");
        assert_eq!(kept, [Some(2 * 2048 * 4096 * width)], "{software}");
    }
}

/// Transformer Engine holds a weight in row and in column layout, with a one-byte scale per 32 elements (mxfp8) or 16
/// (nvfp4).
#[test]
fn copies_of_weights_have_their_scales() {
    let linear = 8 * (4 * 1024 * 1024 + 3 * 1024 * 4096);
    let cases = [
        ("--fp8-format e4m3 --fp8-recipe mxfp8", 2 * linear, Some(2 * linear / 32)),
        ("--fp4-format e2m1 --fp4-recipe nvfp4", linear, Some(2 * linear / 16)),
        ("--fp8-format hybrid --fp8-recipe delayed", 2 * linear, None),
    ];
    for (flags, copies, scales) in cases {
        let plan = plan(&format!("{LLAMA} {flags}"), &[("accelerator", "B200"), ("world_size", "1")]);
        assert_eq!(leaves(&plan, "fp8 copies of weights"), [Some(copies)], "{flags}");
        assert_eq!(leaves(&plan, "scales of weight blocks"), [scales], "{flags}");
    }
}

/// Eight layers recomputed in groups of three form three groups, the last with two: one more input is kept than with
/// groups of four.
#[test]
fn a_last_short_run_keeps_its_input() {
    let kept = |layers: u64| {
        let recompute = format!(
            "--recompute-granularity full --recompute-method uniform --recompute-num-layers {layers}"
        );
        memory(&plan(&format!("{LLAMA} {recompute}"), &[("world_size", "1")])).ranks[0].chunks[0].kept.get()
    };
    assert_eq!(kept(3) - kept(4), STREAM);
    assert_eq!(kept(2) - kept(3), STREAM);
    assert_eq!(kept(1) - kept(8), 7 * STREAM);
}

/// `--distribute-saved-activations` gathers the input of each of the three groups before it is recomputed.
#[test]
fn a_last_short_run_is_gathered_too() {
    let distributed = "--recompute-granularity full --recompute-method uniform --recompute-num-layers 3 \
        --distribute-saved-activations --tensor-model-parallel-size 2";
    let plan = plan(&format!("{LLAMA} {distributed}"), &[("world_size", "2")]);
    assert_eq!(calls(&traffic(&plan), Parallelism::Tensor, "checkpoint"), 3);
}

/// A stage that sends gradients still holds the previous one while the next micro-batch runs; the first stage sends
/// none, and with one micro-batch there is no previous one.
#[test]
fn only_stages_that_send_gradients_hold_the_one_before() {
    let of = |batch: u64| {
        let flags = format!("{LLAMA} --pipeline-model-parallel-size 4 --global-batch-size {batch}");
        leaves(&plan(&flags, &[("world_size", "4")]), "gradient sent before")
    };
    assert_eq!(of(8), [None, Some(STREAM), Some(STREAM), Some(STREAM)]);
    assert_eq!(of(2), [None; 4]);
}

/// DeepSpeed's bf16 optimizer reduces a flat fp32 copy of a bucket, if there are other ranks to reduce with; the blocks
/// of the first weights stay cached.
#[test]
fn deepspeed_reduces_a_flat_copy_in_fp32() {
    let of = |world: &str, label: &str| {
        let set = [("software", "megatron_deepspeed"), ("world_size", world), ("zero_stage", "1")];
        leaves(&plan(GPT, &set), label)[0]
    };
    assert_eq!(of("2", "flat copy to reduce"), Some(4 * 500_000_000), "of a bucket at most");
    assert_eq!(of("1", "flat copy to reduce").unwrap_or(0), 0, "alone there is nobody");
    assert_eq!(of("2", "blocks of the first weights"), Some(2 * GPT_PARAMETERS));
}

/// `getChosenWorkspaceSize` of PyTorch: 32 MiB from Hopper on, otherwise `:4096:2:16:8`, each for two handles.
#[test]
fn workspaces_are_pytorchs() {
    let workspaces = |accelerator: &str| {
        let plan = plan(GPT, &[("world_size", "1"), ("accelerator", accelerator)]);
        leaves(&plan, "cuBLAS workspaces")[0]
    };
    assert_eq!(workspaces("A100-SXM-80GB"), Some(2 * 8_519_680));
    assert_eq!(workspaces("H100-SXM"), Some(2 * 33_554_432));
}
