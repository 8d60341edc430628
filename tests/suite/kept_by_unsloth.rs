//! What unsloth's autograd functions keep for backward, compared with recorded calls of them, equal to the byte; a
//! notebook computed by hand; and the maximum lengths that unsloth published.

use serde_json::Value;
use shardscope::bash::Environment;
use shardscope::estimate::{memory, parameters};
use shardscope::launch::{Request, Resolution, read};
use shardscope::operators::{Operator, Symbols, layer_operators};
use shardscope::plan::*;
use shardscope::source::Source;
use shardscope::units::Bytes;

use super::drafts::{Draft, draft, even_stages, int, kept, recorded_shape};
use super::recorded::{Recorded, formulas};

const RECORDED: &str = include_str!("../data/activations/unsloth.jsonl");
/// The recorded adapters' rank.
const RANK: u64 = 8;

fn cases() -> impl Iterator<Item = Value> {
    RECORDED.lines().skip(1).map(|line| serde_json::from_str(line).expect("JSON"))
}

fn drafted(case: &Value) -> Draft {
    let mut draft = draft();
    let model = &mut draft.model;
    recorded_shape(model, case);
    model.qk_layernorm = case["arch"] == "qwen3";
    if case["arch"] == "gemma" {
        model.activation = Activation::Geglu;
        model.arrangement.norm_product = NormProduct::PlusOne;
    }
    if case["arch"] == "gemma2" {
        model.activation = Activation::Geglu;
        model.arrangement.norm_product = NormProduct::PlusOne;
        model.arrangement.norm_places = NormPlaces::Around;
        model.arrangement.attention_softcap = true;
    }
    draft.layout.stages = even_stages(int(case, "layers"), 1, 0);
    let recipe = &mut draft.recipe;
    recipe.software = Software::Unsloth;
    recipe.dp_sharding = DpSharding::Replicated;
    recipe.micro_batch_size = int(case, "b");
    recipe.num_micro_batches = 2;
    recipe.global_batch_size = 2 * recipe.micro_batch_size;
    recipe.params_dtype = NumberFormat::Bf16;
    recipe.grads_dtype = NumberFormat::Bf16;
    recipe.transformers.autocast = Some(NumberFormat::Bf16);
    let capped = case["arch"] == "gemma2";
    recipe.attention_kernel = if capped { AttentionKernel::Unfused } else { AttentionKernel::Flash };
    recipe.loss = LossKind::FusedLinear;
    recipe.tuning = Tuning {
        base: BaseTraining::None,
        lora: Some(Lora {
            rank: RANK,
            dora: false,
            dropout: false,
            dtype: NumberFormat::Fp32,
            modules: LoraModules::ALL,
            drops_result: false,
            library: AdapterLibrary::Peft,
            kernels: AdapterKernels::default(),
        }),
        embedding: case["trains"] == true,
        head: case["trains"] == true,
        input_gradients: true,
        ..Tuning::default()
    };
    draft
}

#[test]
fn recorded_functions_are_met_to_the_byte() {
    let mut recorded = Recorded::default();
    for case in cases() {
        let plan = drafted(&case).plan();
        let x = Symbols::new(&plan);
        let operators = layer_operators(&x, plan.model().layer_kind(0));
        let outside = kept(&x, &[Operator::Embedding, Operator::FinalNorm, Operator::OutputLayer]);
        let layer = kept(&x, &operators);
        for (what, ours) in [("layer0", layer), ("layer1", layer), ("layer2", layer), ("outside", outside)] {
            recorded.check(&case, what, ours);
        }
        formulas(&case, &x, &operators);
    }
    assert_eq!(recorded.equal(), 48);
}

/// A program as in unsloth's notebooks, with Llama 3 8B: rank and tokens are set by the test.
const PROGRAM: &str = r#"
from unsloth import FastLanguageModel
from trl import SFTTrainer, SFTConfig
max_seq_length = TOKENS # Choose any
dtype = None
load_in_4bit = True
model, tokenizer = FastLanguageModel.from_pretrained(
    model_name = "unsloth/llama-3-8b-bnb-4bit",
    max_seq_length = max_seq_length,
    dtype = dtype,
    load_in_4bit = load_in_4bit,
)
model = FastLanguageModel.get_peft_model(
    model,
    r = RANK,
    target_modules = ["q_proj", "k_proj", "v_proj", "o_proj",
                      "gate_proj", "up_proj", "down_proj",],
    lora_alpha = 16, lora_dropout = 0, bias = "none",
    use_gradient_checkpointing = "unsloth", # True or "unsloth" for very long context
)
trainer = SFTTrainer(
    model = model, tokenizer = tokenizer, train_dataset = dataset, max_seq_length = max_seq_length,
    args = SFTConfig(per_device_train_batch_size = SEQUENCES, gradient_accumulation_steps = 4, optim = "adamw_8bit"),
)
"#;

fn program(tokens: u64, sequences: u64, rank: u64) -> Resolution {
    program_of("unsloth/llama-3-8b-bnb-4bit", tokens, sequences, rank)
}

fn program_of(name: &str, tokens: u64, sequences: u64, rank: u64) -> Resolution {
    let text = PROGRAM.replace("unsloth/llama-3-8b-bnb-4bit", name);
    let text = text.replace("TOKENS", &tokens.to_string()).replace("RANK", &rank.to_string());
    let source =
        Source::from_files([("tune.py", text.replace("SEQUENCES", &sequences.to_string()).as_str())]);
    let set = [("accelerator".to_owned(), "A100-SXM-80GB".to_owned())];
    read(&Request { source: &source, environment: &Environment::default(), overrides: &set })
}

#[test]
fn a_notebook_gives_what_was_worked_out_by_hand() {
    let read = program(2048, 2, 16);
    let plan = read.plan.unwrap_or_else(|| panic!("{:?}", read.diagnostics));
    assert!(read.not_modelled.is_empty(), "{:?}", read.not_modelled);
    // The rank times inputs and outputs of q, k, v, o, gate, up and down, in 32 layers.
    let adapters = 16 * 32 * (8192 + 5120 + 5120 + 8192 + 18_432 + 18_432 + 18_432);
    let counted = parameters(&plan);
    assert_eq!(counted.trained.get(), adapters);
    // The value printed by unsloth's notebook for this model (unslothai/notebooks@bdda2efc7ad5,
    // `nb/Llama3_(8B)-Alpaca.ipynb`); with the model and these loaded it printed 5.594 GiB as reserved, which includes
    // blocks of the allocator.
    assert_eq!(adapters, 41_943_040);
    // Half a byte per weight of a linear layer, 8 bits per 64 of them and 32 bits per 256 of these; embedding, output
    // layer and norms in 16 bits; adapters in fp32.
    let linear: u64 = 32 * 4096 * (2 * 4096 + 2 * 1024 + 3 * 14_336);
    let quantized = linear / 2 + linear / 64 + linear / 64 / 256 * 4;
    let rest = 2 * (2 * 128_256 * 4096 + 65 * 4096);
    let totals = memory(&plan).ranks[0].totals;
    let ours = totals.parameters.get();
    let expected = quantized + rest + 4 * adapters;
    assert!(ours.abs_diff(expected) < 1 << 20, "{ours} {expected}");
    let printed = 5.594 * f64::from(1 << 30);
    let share = ours as f64 / printed;
    assert!((0.97..1.0).contains(&share), "{share}");
    assert_eq!(totals.gradients.get(), 4 * adapters);
    // The inputs of 31 layers are on the host.
    let recipe = plan.recipe();
    assert!(
        recipe.offload.layer_inputs
            && recipe.recompute == Recompute::Uniform { num_layers: 1, distribute: false }
    );
    // The loss needs 16 bytes per logit in its chunks, of which four fit into 4 GiB minus the gradient of the input, so
    // the peak is in the last layer's backward: of other layers only the input remains.
    let x = Symbols::new(&plan);
    let (n, h) = (4096, 4096);
    let (wanted, room) = (n * 128_256 * 16, (4_u64 << 30) - 2 * n * h);
    assert!(room < wanted && wanted <= 4 * room);
    assert_eq!((x.chunk_rows(), totals.activations.get()), (n / 4, 2 * n * h));
}

/// Copies of embedding and output layer that train in addition to adapters, as in
/// `nb/Mistral_(7B)-Text_Completion.ipynb`, which printed 603,979,776 trainable parameters for Mistral 7B v0.3 with
/// adapters of rank 128.
#[test]
fn ends_that_train_are_copies_in_bf16_and_their_originals_are_away() {
    let resolved = |text: &str| {
        let source = Source::from_files([("tune.py", text)]);
        let set = [("accelerator".to_owned(), "A100-SXM-80GB".to_owned())];
        read(&Request { source: &source, environment: &Environment::default(), overrides: &set })
    };
    let text = PROGRAM.replace("unsloth/llama-3-8b-bnb-4bit", "unsloth/mistral-7b-v0.3");
    let text = text.replace("TOKENS", "2048").replace("RANK", "128").replace("SEQUENCES", "2");
    let plain = resolved(&text).plan.expect("a plan");
    let text = text.replace("\"down_proj\",]", "\"down_proj\", \"embed_tokens\", \"lm_head\",]");
    let read = resolved(&text);
    assert!(read.not_modelled.is_empty(), "{:?}", read.not_modelled);
    let plan = read.plan.unwrap_or_else(|| panic!("{:?}", read.diagnostics));
    assert_eq!(parameters(&plan).trained.get(), 603_979_776);
    let ends = 2 * 32_768 * 4096;
    let [with, without] = [&plan, &plain].map(|plan| memory(plan).ranks[0].totals);
    // The same weights, which now train: gradients in bf16, and states of a byte and two constants per 256, except for
    // the embedding's, which transformers' Trainer keeps in fp32.
    assert_eq!(with.parameters, without.parameters);
    assert_eq!(with.gradients.get() - without.gradients.get(), 2 * ends);
    let more = with.optimizer.get() - without.optimizer.get();
    assert_eq!(more, ends / 2 * 8 + ends / 2 * 2 + ends / 2 / 256 * 8);
    // With a separate learning rate the embedding is in a group created by unsloth, with all states in 8 bits.
    let grouped =
        resolved(&text.replace("SFTConfig(", "UnslothTrainingArguments(embedding_learning_rate = 1e-5, "));
    let totals = memory(&grouped.plan.expect("a plan")).ranks[0].totals;
    assert_eq!(totals.optimizer.get() - without.optimizer.get(), 2 * ends + ends / 256 * 8);
}

/// `nb/Gemma2_(9B)-Alpaca.ipynb` of unslothai/notebooks, shortened: the scores that its layers keep, and masks of the
/// model's full length. What Inductor held for the same region on an H200 in backward in addition to what it keeps
/// (PyTorch 2.11, allocator's bytes): samples, tokens, heads, key groups, bytes, with 256 numbers per head.
const IN_BACKWARD: [(u64, u64, u64, u64, u64); 3] =
    [(1, 2048, 8, 4, 130_023_424), (2, 2048, 16, 8, 520_093_696), (2, 1024, 8, 4, 62_914_560)];

#[test]
fn capped_scores_are_one_compiled_region() {
    let read = program_of("unsloth/gemma-2-9b", 2048, 2, 16);
    let plan = read.plan.unwrap_or_else(|| panic!("{:?}", read.diagnostics));
    assert!(read.not_modelled.is_empty(), "{:?}", read.not_modelled);
    // The number for adapters of rank 16 on all linear layers: 42 layers of 3,584, 16 heads of 256 numbers, 8 for keys,
    // and 14,336.
    let layer = 16 * (2 * (3584 + 4096) + 2 * (3584 + 2048) + 3 * (3584 + 14_336));
    assert_eq!(parameters(&plan).trained.get(), 42 * layer);
    let x = Symbols::new(&plan);
    let operators = layer_operators(&x, plan.model().layer_kind(0));
    let scores = 2 * 2 * 16 * 2048 * 2048;
    let of_scores: u64 = operators
        .iter()
        .flat_map(|operator| operator.saved(&x))
        .filter(|saved| ["scores", "16-bit probabilities"].contains(&saved.name))
        .map(|saved| saved.bytes.get())
        .sum();
    assert_eq!(of_scores, 2 * scores);
    let found = memory(&plan);
    let temporaries =
        found.ranks[0].breakdown.child("peak_allocated").and_then(|tree| tree.child("temporaries"));
    let masks = temporaries.and_then(|part| part.child("masks of all tokens")).map(|part| part.value().get());
    assert_eq!(masks, Some(2 * 2048 * 2048 * 2));
    for (b, s, a, k, measured) in IN_BACKWARD {
        let case = serde_json::json!({"arch": "gemma2", "b": b, "s": s, "h": 2304, "a": a, "k": k, "d": 256, "f": 9216, "V": 1024, "layers": 3});
        let plan = drafted(&case).plan();
        let x = Symbols::new(&plan);
        let moments = Operator::SelfAttention.transients(&x);
        let moment =
            moments.iter().find(|moment| moment.name == "backward of the attention").expect("its backward");
        // Without the gradients of the residual stream and the output; the output itself is freed together with its
        // projection.
        let held: u64 = moment.tensors[2..].iter().map(|tensor| tensor.bytes.get()).sum();
        let wide = 2 * b * s * a * 256;
        assert_eq!(held - (moment.returned.get() - wide), measured);
    }
}

/// Values that unsloth's notebooks printed for other models (unslothai/notebooks@bdda2efc7ad5,
/// `nb/Phi_3.5_Mini-Conversational.ipynb`, `Phi_3_Medium-`, `CodeGemma_(7B)-Conversational.ipynb`, adapters of rank
/// 16): the trained parameters, and GiB reserved with the model and these loaded. In unsloth, Phi has separate
/// projections for queries, keys, values, gate and up. CodeGemma's were printed in April 2024, when each of its 28
/// layers had a cosine and a sine in fp32 for 8,192 positions of 256 numbers; today a single one has them. The same
/// holds for `Gemma2_(2B)-Alpaca.ipynb` and `Gemma2_(9B)-Alpaca.ipynb`.
const PRINTED: [(&str, u64, f64, u64); 5] = [
    ("unsloth/Phi-3.5-mini-instruct", 29_884_416, 2.285, 0),
    ("unsloth/Phi-3-medium-4k-instruct", 65_536_000, 7.504, 0),
    ("unsloth/codegemma-7b-bnb-4bit", 50_003_968, 5.967, 28 * 2 * 8192 * 256 * 4),
    ("unsloth/gemma-2-2b", 20_766_720, 2.697, 26 * 2 * 8192 * 256 * 4),
    ("unsloth/gemma-2-9b", 54_018_048, 6.576, 42 * 2 * 8192 * 256 * 4),
];

#[test]
fn adapters_of_phi_and_gemma_are_as_many_as_was_printed() {
    for (name, adapters, printed, tables) in PRINTED {
        let read = program_of(name, 2048, 2, 16);
        let plan = read.plan.unwrap_or_else(|| panic!("{name}: {:?}", read.diagnostics));
        assert!(read.not_modelled.is_empty(), "{name}: {:?}", read.not_modelled);
        assert_eq!(parameters(&plan).trained.get(), adapters, "{name}");
        let held = memory(&plan).ranks[0].totals.parameters + Bytes::new(tables);
        let held = held.in_gib();
        assert!((0.93..1.0).contains(&(held / printed)), "{name}: {held} GiB, {printed} reserved");
    }
}

/// Maximum lengths that unsloth published for Llama 3.1 8B, one sequence at a time with adapters of rank 32 on all
/// linear layers over 4 bits (unsloth.ai/docs/basics/unsloth-benchmarks): GB of the GPU. The lengths are on a line,
/// 4,719 tokens per GB.
const PUBLISHED: [(f64, u64); 6] =
    [(12.0, 21_848), (16.0, 40_724), (24.0, 78_475), (40.0, 153_977), (48.0, 191_728), (80.0, 342_733)];

#[test]
fn published_lengths_are_met_within_an_eighth() {
    for (published, tokens) in PUBLISHED {
        let plan = program(tokens, 1, 32).plan.expect("a plan");
        let found = memory(&plan);
        let gib = found.ranks[0].totals.shown_on(found.capacity).in_gib();
        assert!(
            (gib / published - 1.0).abs() < 0.125,
            "{tokens} tokens: {gib:.2} GiB, {published} published"
        );
    }
}

#[test]
fn what_unsloth_does_in_another_way_stops_by_name() {
    let stopped = |from: &str, to: &str| {
        let text = PROGRAM
            .replace("TOKENS", "2048")
            .replace("RANK", "16")
            .replace("SEQUENCES", "2")
            .replace(from, to);
        let source = Source::from_files([("tune.py", text.as_str())]);
        let read = read(&Request { source: &source, environment: &Environment::default(), overrides: &[] });
        assert!(!read.not_modelled.is_empty(), "{to}");
    };
    stopped("load_in_4bit = load_in_4bit,", "load_in_8bit = True,");
    stopped("load_in_4bit = load_in_4bit,", "fast_inference = True,");
    stopped("unsloth/llama-3-8b-bnb-4bit", "unsloth/granite-3.1-8b-instruct");
    stopped(
        "\"down_proj\",]",
        "\"down_proj\", \"embed_tokens\", \"lm_head\"], use_gradient_checkpointing = True, other = [",
    );
    stopped("SFTConfig(", "GRPOConfig(");
}

/// `unsloth/_gpu_init.py` also patches `torch.cuda.is_bf16_supported`, which returns true on a T4, which has no bf16.
#[test]
fn a_program_that_asks_for_bf16_where_there_is_any_runs_on_a_t4_in_fp16() {
    let formats = |arguments: &str, accelerator: &str| {
        let text = PROGRAM
            .replace("TOKENS", "2048")
            .replace("RANK", "16")
            .replace("SEQUENCES", "2")
            .replace("SFTConfig(", &format!("SFTConfig({arguments}, "));
        let source = Source::from_files([("tune.py", text.as_str())]);
        let set = [("accelerator".to_owned(), accelerator.to_owned())];
        let read = read(&Request { source: &source, environment: &Environment::default(), overrides: &set });
        let stops: Vec<String> = read.not_modelled.iter().map(|item| item.name.clone()).collect();
        let recipe = read.plan.map(|plan| (plan.recipe().params_dtype, plan.recipe().transformers.autocast));
        (recipe, stops)
    };
    use NumberFormat::{Bf16, Fp16};
    for asks in [
        "fp16 = not is_bfloat16_supported(), bf16 = is_bfloat16_supported()",
        "fp16 = not torch.cuda.is_bf16_supported(), bf16 = torch.cuda.is_bf16_supported()",
    ] {
        assert_eq!(formats(asks, "T4"), (Some((Fp16, Some(Fp16))), vec![]), "{asks}");
        assert_eq!(formats(asks, "L4"), (Some((Bf16, Some(Bf16))), vec![]), "{asks}");
    }
    assert_eq!(formats("bf16 = True", "T4").1, ["bf16"]);
}
