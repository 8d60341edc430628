//! What a rank holds and sends under torchtitan's choices of formats and of where the optimizer steps, and what its selective
//! checkpointing keeps of layers with experts and with latent attention: as recorded (`tests/record/titan_states.py`,
//! `tests/record/selective_experts.py`).

use shardscope::estimate::traffic::{Parallelism, traffic};
use shardscope::estimate::{memory, parameters};
use shardscope::operators::Collective;
use shardscope::plan::{Plan, Software};
use shardscope::source::Source;

use crate::drafts::Draft;
use crate::formats::resolved;

const STATES: &str = include_str!("../data/torch/titan_states.tsv");
const KEPT: &str = include_str!("../data/activations/selective_experts.tsv");

/// Micro-batches of a step: the second finds the gradients of the first, so that all of them are there at the peak.
const MICRO_BATCHES: u64 = 2;

/// Llama 3 8B on eight accelerators.
fn llama(training: &str, optimizer: &str) -> Plan {
    llama_on(8, training, optimizer)
}

fn llama_on(gpus: u64, training: &str, optimizer: &str) -> Plan {
    let float8 = if training.contains("float8") { "\"quantize.linear.float8\"" } else { "" };
    let text = format!(
        "[model]\nname = \"llama3\"\nflavor = \"8B\"\nconverters = [{float8}]\n[training]\nlocal_batch_size = 1\nglobal_batch_size = 16\nseq_len = 1024\n{training}\n\
         [activation_checkpoint]\nmode = \"full\"\n[optimizer]\nname = \"AdamW\"\n{optimizer}\n\
         [parallelism]\ndata_parallel_shard_degree = {gpus}\n"
    );
    let set = [("accelerator", "H100-SXM".to_owned()), ("gpus_per_node", gpus.to_string())]
        .map(|(name, value)| (name.to_owned(), value));
    let read = resolved(&Source::from_files([("a.toml", text.as_str())]), &set);
    assert!(read.not_modelled.is_empty(), "{:?}", read.not_modelled);
    read.plan.unwrap_or_else(|| panic!("{:?}", read.diagnostics))
}

/// Bytes that `collective` moves in a step, on one rank.
fn sent(plan: &Plan, collective: Collective) -> u64 {
    let ledger = traffic(plan);
    let data = ledger.dimension(Parallelism::Data);
    let sent = data.into_iter().flat_map(|data| &data.operations);
    sent.filter(|sent| sent.collective == collective).map(|sent| sent.bytes().get() * sent.calls(0)).sum()
}

#[test]
fn shards_gradients_and_moments_are_as_recorded() {
    let mut rows = 0;
    for line in STATES.lines().filter(|line| !line.starts_with('#')) {
        let cells: Vec<&str> = line.split('\t').collect();
        let number = |index: usize| cells[index].parse::<u64>().expect("a number");
        let [layer, embedding, norm, output, layers] = [3, 4, 5, 6, 7].map(number);
        let recorded = layers * layer + embedding + norm + output;
        // Bytes per parameter, of both ranks together.
        let each = |index: usize, ranks: u64| {
            assert_eq!(number(index) * ranks % recorded, 0, "{line}");
            number(index) * ranks / recorded
        };
        let within = cells[2] == "backward";
        let plan = llama(
            &format!("dtype = \"{}\"\nmixed_precision_reduce = \"{}\"", cells[0], cells[1]),
            &format!("early_step_in_backward = {within}"),
        );
        let count = parameters(&plan).total.get();
        let totals = memory(&plan).ranks[0].totals;
        assert_eq!(totals.parameters.get() * 8, count * each(8, 2), "{line}");
        assert_eq!(totals.gradients.get() * 8, count * each(9, 2), "{line}");
        assert_eq!(totals.optimizer.get() * 8, count * each(11, 2), "{line}");
        let reduced = sent(&plan, Collective::ReduceScatter);
        assert_eq!(reduced, MICRO_BATCHES * count * each(13, 1), "{line}");
        // A hook finds no more than one unit's gradients.
        assert!(!within || number(10) * 2 <= layer.max(embedding).max(output) * each(8, 2), "{line}");
        rows += 1;
    }
    assert_eq!(rows, 8);
}

/// One scattered gradient fewer of a step's peak, and less to pass over: an optimizer within backward neither waits for all
/// gradients nor takes their norm.
#[test]
fn a_step_within_backward_leaves_no_gradients() {
    let [usual, within] =
        ["false", "true"].map(|on| llama("dtype = \"bfloat16\"", &format!("early_step_in_backward = {on}")));
    let [before, after] = [&usual, &within].map(|plan| memory(plan).ranks[0].totals);
    let shards = parameters(&usual).total.get() * 2 / 8;
    assert_eq!(before.gradients.get(), shards);
    assert_eq!(after.gradients.get(), 0);
    assert!(after.peak_allocated < before.peak_allocated);
    // PyTorch's foreach makes roots of all second moments at once, in their format; over two ranks they are the peak.
    let foreach = |training: &str| llama_on(2, training, "implementation = \"foreach\"");
    let named = |plan: &Plan, name: &str| below(&memory(plan).ranks[0].breakdown, name);
    let roots = |training: &str| named(&foreach(training), "roots of second moments");
    // Within backward each parameter is stepped alone.
    let mut alone = Draft::new(&foreach("dtype = \"bfloat16\""));
    alone.recipe.transformers.steps_in_backward = true;
    assert_eq!(named(&alone.plan(), "roots of second moments"), 0);
    // Software whose modules step their own parameters has no main parameters, whatever is stated.
    assert!(alone.recipe.steps_narrow_shards());
    alone.recipe.software = Software::HfTransformers;
    assert!(!alone.recipe.steps_narrow_shards());
    assert_eq!(roots("dtype = \"bfloat16\""), 4 * shards);
    assert_eq!(roots("dtype = \"float32\""), 8 * shards);
}

/// Bytes below `label`, at any depth.
fn below(node: &shardscope::explain::Breakdown<shardscope::units::Bytes>, label: &str) -> u64 {
    if node.label() == label {
        return node.value().get();
    }
    node.children().iter().map(|child| below(child, label)).sum()
}

#[test]
fn what_torchtitan_does_not_start_is_refused() {
    let read = |parallelism: &str| {
        let text = format!(
            "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 8\nseq_len = 1024\n[optimizer]\n\
             early_step_in_backward = true\n[parallelism]\n{parallelism}\n"
        );
        let set = [("accelerator", "H100-SXM"), ("gpus_per_node", "8"), ("world_size", "8")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        resolved(&Source::from_files([("a.toml", text.as_str())]), &set)
    };
    assert!(read("data_parallel_shard_degree = 8").plan.is_some());
    let piped = read("data_parallel_shard_degree = 4\npipeline_parallel_degree = 2");
    assert!(piped.plan.is_none() && format!("{:?}", piped.diagnostics).contains("backward"));
}

/// Weights of layers that torchao converted are gathered in 8 bits beside norms in 16, gradients reduced as ever
/// (`tests/record/float8_gather.py`).
#[test]
fn float8_weights_are_gathered_in_bytes() {
    // Of Llama 3 8B: linear layers and norms of a layer.
    const LINEAR: u64 = 4096 * (2 * 4096 + 2 * 1024) + 3 * 4096 * 14_336;
    const NORMS: u64 = 2 * 4096;
    let mut rows = 0;
    for line in include_str!("../data/torch/float8_gather.tsv").lines().filter(|line| !line.starts_with('#'))
    {
        let cells: Vec<&str> = line.split('\t').collect();
        let number = |index: usize| cells[index].parse::<u64>().expect("a number");
        let units: Vec<u64> = cells[8].split(',').map(|bytes| bytes.parse().expect("bytes")).collect();
        let narrow = cells[1] == "true";
        let width = if narrow { 1 } else { 2 };
        assert_eq!(units[1], number(2) * width + number(3) * 2, "{line}");
        assert_eq!((units[0], units[4]), (number(4) * 2, (number(5) + number(6)) * 2), "{line}");
        let all = number(7) * (number(2) + number(3)) + number(4) + number(5) + number(6);
        assert_eq!(number(9), all * 4, "{line}");
        let plan = llama(
            &format!(
                "dtype = \"{}\"\n[quantize.linear.float8]\nenable_fsdp_float8_all_gather = {narrow}\nfilter_fqns = [\"output\"]",
                cells[0]
            ),
            "",
        );
        let each = LINEAR * width + NORMS * 2;
        let ledger = traffic(&plan);
        let data = ledger.dimension(Parallelism::Data).expect("messages");
        let layers = data.operations.iter().filter(|sent| {
            sent.collective == Collective::AllGather
                && sent.calls(0) == 32 * MICRO_BATCHES
                && sent.bytes().get() == each
        });
        assert_eq!(layers.count(), 2, "{line}");
        // The step time gathers as many in a byte each.
        let in_a_byte = if narrow { 32 * LINEAR } else { 0 };
        assert_eq!(parameters(&plan).ranks[0].gathered_in_fp8.get(), in_a_byte, "{line}");
        let reduced = MICRO_BATCHES * parameters(&plan).total.get() * 4;
        assert_eq!(sent(&plan, Collective::ReduceScatter), reduced, "{line}");
        let rank = &memory(&plan).ranks[0];
        let gathered = ["gathered weights of the layer", "gathered weights of two layers"]
            .map(|label| below(&rank.breakdown, label));
        assert!(gathered == [each, 0] || gathered == [0, 2 * each], "{line}: {gathered:?}");
        rows += 1;
    }
    assert_eq!(rows, 4);
}

/// A layer of one of the recorded kinds, and how many there are.
fn layers(kind: &str, count: &str) -> Plan {
    let common = "software=torchtitan accelerator=H100-SXM world_size=1 gpus_per_node=1 hidden_size=64 ffn_hidden_size=224 \
        num_attention_heads=4 seq_length=32 swiglu=true normalization=RMSNorm position_embedding_type=rope \
        add_bias_linear=false untie_embeddings_and_output_weights=true hidden_dropout=0 attention_dropout=0 \
        micro_batch_size=2 num_micro_batches=1 recompute_granularity=selective attention_kernel=flash bf16=true \
        optimizer=adam padded_vocab_size=512";
    let mut words: Vec<String> = common.split_whitespace().map(str::to_owned).collect();
    words.push(format!("num_layers={count}"));
    let more = match kind {
        "latent" => "",
        "narrow" | "narrow-shared" => "q_lora_rank=96",
        _ => "group_query_attention=true num_query_groups=2",
    };
    words.extend(more.split_whitespace().map(str::to_owned));
    if kind.starts_with("latent") || kind.starts_with("narrow") {
        let latent = "multi_latent_attention=true kv_lora_rank=48 qk_head_dim=32 qk_pos_emb_head_dim=16 v_head_dim=24 qk_layernorm=true";
        words.extend(latent.split_whitespace().map(str::to_owned));
    }
    if kind == "experts" || kind.ends_with("shared") {
        let experts = "num_experts=8 moe_router_topk=2 moe_ffn_hidden_size=96 moe_grouped_gemm=true";
        words.extend(experts.split_whitespace().map(str::to_owned));
    }
    if kind.ends_with("shared") {
        words.push("moe_shared_expert_intermediate_size=160".to_owned());
    }
    let settings: Vec<(String, String)> = words
        .iter()
        .filter_map(|word| word.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let resolution = shardscope::launch::resolve(&[], &settings);
    resolution
        .plan
        .unwrap_or_else(|| panic!("{kind}: {:?} {:?}", resolution.diagnostics, resolution.not_modelled))
}

#[test]
fn a_layer_keeps_every_second_product_whatever_its_kind() {
    for kind in ["experts", "shared", "latent", "narrow", "narrow-shared"] {
        let rows = KEPT.lines().filter_map(|line| line.strip_prefix(kind)?.strip_prefix('\t'));
        let bytes: u64 = rows
            .map(|row| {
                let (tensor, elements) = row.split_once('\t').expect("two cells");
                let width = if tensor == "statistics" { 4 } else { 2 };
                elements.parse::<u64>().expect("a number") * width
            })
            .sum();
        let with = |count: &str| memory(&layers(kind, count)).ranks[0].chunks[0].kept.get();
        assert!(bytes > 0, "{kind}");
        assert_eq!(with("2") - with("1"), bytes, "{kind}");
    }
}
