//! Rollouts by the model that trains, by transformers' `generate` (TRL without vLLM): its key/value cache grows by a token at a time
//! beside all that the trainer leaves. Recorded runs: `tests/data/activations/generation_peak.tsv`.

use shardscope_explain::{Breakdown, Explanation, Formula};
use shardscope_operators::Symbols;
use shardscope_plan::{AttentionKernel, DataEngine, DpSharding, LinearModule, Plan, Quantization, Rollout};
use shardscope_units::{Bytes, Count, Quantity};

use crate::parameters::parameters;

const GENERATE: &str = "transformers/generation/utils.py:GenerationMixin._sample";
const CACHED: &str = "transformers/cache_utils.py:DynamicLayer.update";
const MODULES: &str = "transformers/models/llama/modeling_llama.py, without gradients";
/// Bytes of an fp32 number.
const FLOAT: u64 = 4;
/// Bytes of a torch index (int64).
const INDEX: u64 = 8;
/// What autocast casts to. Unit: byte.
const HALF: u64 = 2;

static CACHE: Formula = Formula::new(
    "2·L·R·T·K·B",
    "Keys and values of R sequences of T tokens, in the type of the weights.",
    CACHED,
)
.letters(&[
    ("L", "layers of the model"),
    ("K", "width of all keys, or of all values, per rank: k · d"),
    ("R", "sequences of a round of rollouts on the accelerator"),
    ("T", "tokens of each in the cache"),
    ("B", "bytes per element"),
]);
static PROMPTS: Formula = Formula::new(
    "R·p·(m + (4·h + 2·d)·B + z) + 8·R + 16",
    "A layer's pass over R prompts of p tokens: its MLP at the fullest m bytes a token; the embeddings, the layer's input, the stream and what the norm made of it; cosines and sines; numbers and a mask.",
    MODULES,
)
.letters(&[("h", "hidden size"), ("d", "head dimension"), 
    ("R", "sequences of a round of rollouts on the accelerator"),
    ("p", "tokens per prompt"),
    ("m", "bytes of a token in the MLP"),
    ("B", "bytes per element"),
    ("z", "bytes of a token's numbers, and of its row of the mask where attention is given one"),
]);
static ATTENDED: Formula = Formula::new(
    "R·p·(m + (3·h + 2·d)·B + z) + 8·R + 16",
    "Attention over R prompts of p tokens under autocast: queries, keys and values, repeated for every query head, and their copies in 16 bits, m bytes a token; the embeddings, the layer's input and what the norm made of it; cosines and sines; numbers and a mask.",
    MODULES,
)
.letters(&[("h", "hidden size"), ("d", "head dimension"), 
    ("R", "sequences of a round of rollouts on the accelerator"),
    ("p", "tokens per prompt"),
    ("m", "bytes of a token in attention"),
    ("B", "bytes per element"),
    ("z", "bytes of a token's numbers, and of its row of the mask where attention is given one"),
]);
static GROWN: Formula = Formula::new(
    "R·(T - 1)·K·B",
    "The last layer's values without the new token, which the cache concatenates with it into a copy.",
    CACHED,
)
.letters(&[
    ("K", "width of all keys, or of all values, per rank: k · d"),
    ("R", "sequences of a round of rollouts on the accelerator"),
    ("T", "tokens of each in the cache"),
    ("B", "bytes per element"),
]);
static WHOLE: Formula = Formula::new(
    "f·h·Bc",
    "A dequantized weight, for one GEMM.",
    "bitsandbytes/autograd/_functions.py:MatMul4Bit",
)
.letters(&[
    ("f", "FFN hidden size per rank"),
    ("h", "hidden size"),
    ("Bc", "bytes per element in GEMMs: 2 under autocast, else B"),
]);
static SAMPLED: Formula = Formula::new(
    "8·R·V",
    "Logits and probabilities of the previous token, fp32, which stay referenced until the next ones exist.",
    GENERATE,
)
.letters(&[
    ("V", "padded vocabulary size per rank"),
    ("R", "sequences of a round of rollouts on the accelerator"),
]);
static LOGITS: Formula = Formula::new(
    "R·V·(B + 4 + g)",
    "Logits of the next token, their copy in fp32, and g bytes per logit that temperature and top-k/top-p filters hold beside them.",
    GENERATE,
)
.letters(&[("V", "padded vocabulary size per rank"), 
    ("R", "sequences of a round of rollouts on the accelerator"),
    ("B", "bytes per element"),
    ("g", "bytes that sampling holds of each logit"),
]);
static NARROW: Formula = Formula::new("2·R·V", "Logits of the next token.", GENERATE).letters(&[
    ("V", "padded vocabulary size per rank"),
    ("R", "sequences of a round of rollouts on the accelerator"),
]);
static CASTS: Formula = Formula::new(
    "2·W",
    "Copies in 16 bits of W elements of weights, which autocast caches until the forward pass is over.",
    "aten/src/ATen/autocast_mode.cpp:cached_cast",
)
.letters(&[("W", "elements of weights")]);
static GATHERED: Formula = Formula::new(
    "P·w",
    "All weights, gathered for generation, beside the shards.",
    "trl/models/utils.py:unwrap_model_for_generation, ds3_gather_for_generation",
)
.letters(&[("P", "parameters"), ("w", "bytes per element")]);

/// What is there while the model generates, at the fullest moment of it, beside what the trainer leaves.
pub(super) struct OwnRollouts {
    /// Keys and values of all sequences at their full length.
    pub(super) cache: Bytes,
    /// Tokens in it.
    pub(super) tokens: u64,
    /// Every part, explained.
    pub(super) parts: Vec<Breakdown<Bytes>>,
}

fn part(
    label: &'static str,
    bytes: Bytes,
    formula: &'static Formula,
    symbols: &[(&'static str, u64)],
) -> Breakdown<Bytes> {
    let given: Vec<(&'static str, f64)> =
        symbols.iter().map(|(letter, count)| (*letter, Count::new(*count).number())).collect();
    Breakdown::leaf(label, bytes).because(Explanation::new(formula, &given))
}

/// Sizes that the moments are worked out from.
struct Sizes<'a> {
    x: &'a Symbols<'a>,
    rows: u64,
    /// Tokens of a prompt.
    prompt: u64,
    /// Tokens in the cache when the last one is made.
    tokens: u64,
    /// Bytes of an element of weights, stream and cache.
    width: u64,
    /// Whether autocast casts what linear layers read.
    casts: bool,
    /// Bytes that sampling holds of each logit.
    sampling: u64,
}

impl Sizes<'_> {
    fn cache(&self, tokens: u64) -> Breakdown<Bytes> {
        let (x, rows) = (self.x, self.rows);
        let bytes = Count::of_shape(&[2 * x.model().num_layers, rows, tokens, x.k, x.d]).bytes(self.width);
        let layers = x.model().num_layers;
        let given = [("L", layers), ("R", rows), ("T", tokens), ("K", x.k * x.d), ("B", self.width)];
        part("key/value cache", bytes, &CACHE, &given)
    }

    /// Elements of a layer's linear weights.
    fn of_layer(&self) -> u64 {
        let x = self.x;
        x.h * (2 * x.a * x.d + 2 * x.k * x.d + 3 * x.f)
    }

    fn casts(&self, weights: u64) -> Option<Breakdown<Bytes>> {
        let bytes = Count::new(weights).bytes(HALF);
        self.casts.then(|| part("weights in 16 bits", bytes, &CASTS, &[("W", weights)]))
    }

    /// Bytes of a token in the MLP: both halves and their product, or the second half while its adapter is added to it.
    fn of_mlp(&self) -> u64 {
        let x = self.x;
        let narrow = if self.casts { HALF } else { self.width };
        let adapted =
            x.recipe().tuning.lora.is_some_and(|lora| {
                lora.modules.has(LinearModule::Gate) || lora.modules.has(LinearModule::Up)
            });
        let copied = if self.width < FLOAT { FLOAT * x.h } else { 0 };
        let of_adapter = 2 * x.f * self.width + 2 * FLOAT * x.f + copied;
        let product = 3 * x.f * narrow;
        if adapted { product.max(of_adapter) } else { product }
    }

    /// What a pass over the prompts holds: `of_token` bytes in the module that runs, and so many times the hidden size around it.
    fn pass(
        &self,
        label: &'static str,
        formula: &'static Formula,
        of_token: u64,
        streams: u64,
    ) -> Breakdown<Bytes> {
        let (x, rows, prompt, width) = (self.x, self.rows, self.prompt, self.width);
        let masked = x.recipe().attention_kernel == AttentionKernel::Sdpa;
        let numbers = 2 * INDEX + if masked { prompt } else { 0 };
        let each = of_token + (streams * x.h + 2 * x.d) * width + numbers;
        let bytes =
            Count::of_shape(&[rows, prompt, each]).bytes(1) + Count::of_shape(&[rows + 2]).bytes(INDEX);
        let given = [
            ("R", rows),
            ("p", prompt),
            ("m", of_token),
            ("h", x.h),
            ("d", x.d),
            ("B", width),
            ("z", numbers),
        ];
        part(label, bytes, formula, &given)
    }

    fn prompts(&self) -> Vec<Breakdown<Bytes>> {
        let x = self.x;
        let mut out =
            vec![self.cache(self.prompt), self.pass("prompts in a layer", &PROMPTS, self.of_mlp(), 4)];
        out.extend(self.casts((x.model().num_layers * self.of_layer()).saturating_sub(x.f * x.h)));
        out
    }

    /// Attention over the prompts, whose inputs autocast copies.
    fn attended(&self) -> Vec<Breakdown<Bytes>> {
        let (x, wide, narrow) = (self.x, self.x.a * self.x.d, self.x.k * self.x.d);
        // Queries, their copy and the output; keys and values as they came, and repeated; their copies.
        let own = (FLOAT + HALF + HALF) * wide + 2 * FLOAT * narrow;
        let of_keys = if x.k < x.a { 2 * (FLOAT + HALF) * wide } else { HALF * (narrow + narrow) };
        let mut out =
            vec![self.cache(self.prompt), self.pass("prompts in attention", &ATTENDED, own + of_keys, 3)];
        let behind = x.h * (wide + 3 * x.f);
        out.extend(self.casts((x.model().num_layers * self.of_layer()).saturating_sub(behind)));
        out
    }

    /// Whether the base's layers are unpacked one by one.
    fn whole(&self) -> Option<Breakdown<Bytes>> {
        let x = self.x;
        let given = [("f", x.f), ("h", x.h), ("Bc", x.compute_width)];
        let bytes = Count::of_shape(&[x.f, x.h]).bytes(x.compute_width);
        let packed = x.recipe().tuning.quantization != Quantization::None;
        packed.then(|| part("a quantized weight in full", bytes, &WHOLE, &given))
    }

    fn sampled(&self) -> Breakdown<Bytes> {
        let bytes = Count::of_shape(&[self.rows, self.x.v]).bytes(2 * FLOAT);
        part("logits and probabilities before", bytes, &SAMPLED, &[("R", self.rows), ("V", self.x.v)])
    }

    fn grown(&self) -> Vec<Breakdown<Bytes>> {
        let (x, rows, width) = (self.x, self.rows, self.width);
        let bytes = Count::of_shape(&[rows, self.tokens.saturating_sub(1), x.k, x.d]).bytes(width);
        let given = [("R", rows), ("T", self.tokens), ("K", x.k * x.d), ("B", width)];
        let mut out = vec![self.cache(self.tokens), self.sampled()];
        let grown = part("values before they grow", bytes, &GROWN, &given);
        out.push(self.whole().filter(|whole| whole.value() > bytes).unwrap_or(grown));
        let behind = x.h * (x.a * x.d + 3 * x.f);
        out.extend(self.casts((x.model().num_layers * self.of_layer()).saturating_sub(behind)));
        out
    }

    /// The output layer's product while weights are cast.
    fn product(&self) -> Vec<Breakdown<Bytes>> {
        let (x, rows) = (self.x, self.rows);
        let bytes = Count::of_shape(&[rows, x.v]).bytes(HALF);
        let logits = part("logits of the next token", bytes, &NARROW, &[("R", rows), ("V", x.v)]);
        let mut out = vec![self.cache(self.tokens), self.sampled(), logits];
        out.extend(self.casts(x.model().num_layers * self.of_layer() + x.v * x.h));
        out
    }

    /// Logits and what they are sampled by. Accelerate hands them on in fp32 under autocast.
    fn logits(&self) -> Vec<Breakdown<Bytes>> {
        let (x, rows) = (self.x, self.rows);
        let given = [("R", rows), ("V", x.v), ("B", self.width), ("g", self.sampling)];
        let bytes = Count::of_shape(&[rows, x.v]).bytes(self.width + FLOAT + self.sampling);
        let logits = part("logits of the next token", bytes, &LOGITS, &given);
        vec![self.cache(self.tokens), self.sampled(), logits]
    }
}

/// What `rollout`'s round holds at its fullest moment: while the prompts run through a layer, when the last layer's cache grows by the
/// last token, or when that token's logits are made. Numbers and activations of one token a sequence are left out.
pub(super) fn own_rollouts(plan: &Plan, rollout: &Rollout) -> OwnRollouts {
    let x = &Symbols::new(plan);
    let recipe = x.recipe();
    // PEFT's wrapper is gone around: `generate` runs the model within it, which accelerate has not wrapped.
    let casts = recipe.autocasts() && recipe.tuning.lora.is_none() && x.compute_width < x.width;
    let sizes = Sizes {
        x,
        rows: rollout.sequences,
        prompt: rollout.length.saturating_sub(rollout.response).max(1),
        // The last token is never read.
        tokens: rollout.length.saturating_sub(1).max(1),
        width: x.width,
        casts,
        sampling: rollout.sampling,
    };
    let sum = |parts: &[Breakdown<Bytes>]| -> Bytes { parts.iter().map(Breakdown::value).sum() };
    let mut moments = vec![sizes.prompts(), sizes.grown(), sizes.logits()];
    if casts {
        moments.extend([sizes.attended(), sizes.product()]);
    }
    let mut parts = moments.into_iter().max_by_key(|parts| sum(parts)).unwrap_or_default();
    let gathers =
        recipe.transformers.engine == DataEngine::DeepSpeed && recipe.dp_sharding == DpSharding::Parameters;
    if gathers {
        let count = parameters(plan).total;
        let bytes = count.bytes(x.width);
        parts.push(part(
            "weights gathered to generate",
            bytes,
            &GATHERED,
            &[("P", count.get()), ("w", x.width)],
        ));
    }
    let cache = sizes.cache(sizes.tokens).value();
    OwnRollouts { cache, tokens: sizes.rows.saturating_mul(sizes.tokens), parts }
}
