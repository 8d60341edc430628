//! What a vision tower saves for backward, if it trains or gradients flow through it: matched to the byte with the
//! runs in `tests/data/activations/vision_trained.jsonl`.

use crate::{Saved, Symbols, Transient};
use shardscope_explain::Formula;
use shardscope_plan::{
    AttentionKernel, DataEngine, Kept, NumberFormat, TowerGradients, TowerLiger, VisionKept,
};
use shardscope_units::Bytes;

/// Bytes of an fp32 number.
const FLOAT: u64 = 4;

const LAYER: &str =
    "transformers: the tower's layers, recorded in tests/data/activations/vision_trained.jsonl";
const SDPA: &str = "aten/src/ATen/native/transformers/attention.cpp:scaled_dot_product_attention";
const FLASH: &str = "flash_attn/flash_attn_interface.py:FlashAttnVarlenFunc.forward";
const AUTOCAST: &str = "aten/src/ATen/autocast_mode.h:AT_FORALL_FP32, of which layer_norm is";

static NORM_INPUTS: Formula = Formula::new("2·ni·hi·B", "Inputs of both norms: the residual stream.", LAYER);
static WIDE_INPUTS: Formula = Formula::new("8·ni·hi", "Inputs of both norms in fp32.", LAYER);
static WIDE_WEIGHTS: Formula = Formula::new("16·hi", "Weights and biases of both norms in fp32.", AUTOCAST);
static MOMENTS: Formula = Formula::new(
    "16·ni",
    "Mean and reciprocal standard deviation of each token, in both norms, fp32.",
    LAYER,
);
static OWN_MOMENTS: Formula = Formula::new(
    "4·ni·B",
    "Mean and reciprocal standard deviation of each token, in both norms, in the input's own dtype.",
    "liger_kernel/ops/layer_norm.py:LigerLayerNormFunction",
);
static DEVIATIONS: Formula =
    Formula::new("8·ni", "The reciprocal RMS of each token, in both norms, fp32.", LAYER);
static NORMED: Formula =
    Formula::new("2·ni·hi·B", "Normalised inputs, for the gradients of both norms' weights.", LAYER);
static QUERY_INPUT: Formula =
    Formula::new("ni·hi·B", "The input of the query, key and value projections.", LAYER);
static QUERY_INPUTS: Formula = Formula::new(
    "3·ni·hi·B",
    "The input of the query, key and value projections, cast for each of the three.",
    AUTOCAST,
);
static QUERY_NORMS: Formula = Formula::new(
    "8·ni·hi",
    "Inputs of the norms of queries and of keys in fp32.",
    "internvl_chat/modeling_intern_vit.py:InternAttention; recorded in tests/data/activations/internvl_own.jsonl",
);
static QUERY_DEVIATIONS: Formula =
    Formula::new("8·ni", "The reciprocal RMS of each token's queries and of its keys, fp32.", LAYER);
static NORMED_QUERIES: Formula = Formula::new(
    "2·ni·hi·B",
    "Normalised queries and keys, for the gradients of both norms' weights.",
    LAYER,
);
static QUERIES: Formula = Formula::new("2·ni·hi·B", "Queries and keys.", SDPA);
static VALUES: Formula = Formula::new("ni·hi·B", "The values.", SDPA);
static VIEWED_VALUES: Formula =
    Formula::new("3·ni·hi·B", "The fused projection's output, of which the values are a view.", SDPA);
static OUT: Formula = Formula::new("ni·hi·B", "The attention's output.", SDPA);
static LSE: Formula = Formula::new("4·ni·ai", "Log-sum-exp per head and token, fp32.", SDPA);
static TABLES: Formula = Formula::new(
    "ni·ci",
    "Cosines and sines in fp32 of inputs that FSDP casts for each layer.",
    "torch/distributed/fsdp/_fully_shard/_fsdp_state.py:_pre_forward, _runtime_utils.py:_pre_forward; recorded in tests/data/activations/vision_fsdp.jsonl",
);
static RNG: Formula = Formula::new("16", "The random number generator's state, two int64.", FLASH);
static JOINED: Formula = Formula::new(
    "ni·hi·B",
    "Outputs of attention joined over images and windows, which the output projection reads.",
    LAYER,
);
static FIRST_INPUT: Formula = Formula::new("ni·hi·B", "The MLP's input.", LAYER);
static GELU: Formula = Formula::new("ni·fi·B", "The activation's input.", LAYER);
static QUICK: Formula = Formula::new("2·ni·fi·B", "The activation's input and its sigmoid.", LAYER);
static GATED: Formula =
    Formula::new("3·ni·fi·B", "The activation's input, its output, and the other half.", LAYER);
static LAST_INPUT: Formula = Formula::new("ni·fi·B", "The input of the MLP's down projection.", LAYER);
static SCALED: Formula = Formula::new(
    "2·ni·hi·B",
    "Attention and MLP outputs before layer scale, for the gradients of its weights.",
    LAYER,
);
static ENDS: Formula = Formula::new(
    "ti·ei + oi",
    "The patch embedding, the rotary table and the projector.",
    "transformers, by the rules of the model's type; recorded in tests/data/activations/vision_trained.jsonl",
);
static PROJECTOR: Formula = Formula::new(
    "ti·ei + oi",
    "The projector, whose weights are trained.",
    "transformers, by the rules of the model's type; recorded in tests/data/activations/vision_parts.jsonl",
);
static INPUTS: Formula = Formula::new("Li·ni·hi·B", "Inputs of the fully recomputed layers.", LAYER);
static MLP_BACKWARD: Formula = Formula::new(
    "(2·hi + 3·fi)·ni·B",
    "Gradients of the stream, of the MLP's output, and within the MLP.",
    "torch.autograd",
);
static NORM_BACKWARD: Formula =
    Formula::new("12·ni·hi", "Three gradients in fp32 between a norm's operations.", "torch.autograd");

impl Symbols<'_> {
    /// A size of what the tower saves; 0 if unknown.
    pub(crate) fn tower_kept(&self, size: impl Fn(&VisionKept) -> u64) -> u64 {
        self.model().vision.and_then(|tower| tower.kept).map_or(0, |kept| size(&kept))
    }

    /// Tokens of the tower: patches, and the tokens before each image's.
    pub(crate) fn tower_tokens(&self) -> u64 {
        let (prefix, image) = (self.tower_kept(|kept| kept.prefix), self.tower_kept(|kept| kept.image));
        self.patches() + self.patches().checked_div(image).unwrap_or(0) * prefix
    }

    /// Patches that become one image token.
    fn patches_of_token(&self) -> u64 {
        self.model().vision.map_or(1, |tower| tower.patches_per_token)
    }

    /// Tokens that the decoder gets for images.
    pub(crate) fn image_tokens(&self) -> u64 {
        let group = self.model().vision.map_or(1, |tower| tower.patches_per_token);
        self.patches() / group.max(1)
    }

    /// Of these, those in this rank's part of the sequence where images lie side by side and fill it: at most so many.
    pub(crate) fn local_image_tokens(&self) -> u64 {
        self.image_tokens().min(self.s_local)
    }

    /// Bytes kept outside of the tower's layers: of each token that the decoder gets, and once.
    pub(crate) fn tower_ends(&self) -> [u64; 2] {
        let Some(kept) = self.model().vision.and_then(|tower| tower.kept) else { return [0; 2] };
        let class = self.model().vision.is_some_and(|tower| tower.liger == TowerLiger::Class);
        let wide = u64::from(norms_are_cast(self, &kept) && !class);
        // If each layer has its own tables, the originals are freed.
        let apart = if own_tables(self) { self.patches_of_token() * kept.tables } else { 0 };
        let tower = self.model().vision;
        let [projector, deep] =
            tower.map_or([0; 2], |tower| [tower.projector_trains, tower.deep_trains].map(u64::from));
        match self.tower_gradients() {
            TowerGradients::None => {
                let parts = [(projector, kept.merge), (deep, kept.deep)];
                let sum =
                    |of: fn(&Kept) -> u64| parts.iter().map(|(trains, part)| trains * of(part)).sum::<u64>();
                [sum(|part| part.each) + wide * sum(|part| part.wide), wide * sum(|part| part.once_wide)]
            }
            TowerGradients::Adapted => {
                [kept.ends_through + wide * kept.ends_wide, kept.once_through + wide * kept.once_wide]
            }
            TowerGradients::Through => {
                let more = projector * kept.merge_more + deep * kept.deep_more;
                let each = (kept.ends_through + more).saturating_sub(apart);
                [each + wide * kept.ends_wide, kept.once_through + wide * kept.once_wide]
            }
            TowerGradients::Trained => {
                let less = (1 - projector) * kept.merge_more + (1 - deep) * kept.deep_more;
                let less = less + if class { kept.ends_liger } else { 0 };
                let after =
                    if self.recipe().stream_dtype() == NumberFormat::Fp32 { kept.ends_after_wide } else { 0 };
                let each = (kept.ends + after).saturating_sub(less + apart);
                [each + wide * kept.ends_wide, kept.once + wide * kept.once_wide]
            }
        }
    }
}

/// Whether autocast casts the inputs of norms to fp32: LayerNorm is one of its fp32 operations, while RMSNorms are
/// written in Python. This also holds for weights that FSDP gathers in 16 bits, where products need no casts.
fn norms_are_cast(x: &Symbols<'_>, kept: &VisionKept) -> bool {
    let transformers = &x.recipe().transformers;
    transformers.autocast.is_some() && transformers.engine != DataEngine::DeepSpeed && !kept.rms_norms
}

/// Whether each layer saves its own rotary tables: an FSDP unit casts its inputs, and modules cast them back to fp32.
/// A recomputed layer casts within the recomputation.
fn own_tables(x: &Symbols<'_>) -> bool {
    x.recipe().shards_by_fsdp() && !x.recomputes_tower()
}

/// Which parts have gradients, and what is saved for them; `None` if none has.
fn tower_kept(x: &Symbols<'_>) -> Option<(TowerGradients, VisionKept)> {
    let tower = x.model().vision.filter(|tower| tower.gradients != TowerGradients::None)?;
    Some((tower.gradients, tower.kept?))
}

/// What one of its layers saves.
pub(super) fn layer(x: &Symbols<'_>) -> Vec<Saved> {
    let Some((gradients, kept)) = tower_kept(x) else { return Vec::new() };
    let trained = gradients == TowerGradients::Trained;
    let flash = x.recipe().attention_kernel == AttentionKernel::Flash;
    let (tokens, width) = (x.tower_tokens(), x.vision_width());
    let (heads, ffn) = (kept.heads, kept.ffn);
    let mut saved = Vec::with_capacity(20);
    let mut keep = |needed: bool, name, shape: &[u64], bytes, formula| {
        if needed {
            saved.push(Saved::new(name, shape, bytes, formula));
        }
    };
    let twice = [2, tokens, width];
    let once = [tokens, width];
    let liger = x.model().vision.is_some_and(|tower| tower.liger != TowerLiger::None);
    let cast = norms_are_cast(x, &kept) && !liger;
    let rms_norms = kept.rms_norms && !liger;
    if rms_norms || cast {
        keep(true, "inputs of norms in fp32", &twice, FLOAT, &WIDE_INPUTS);
    } else {
        keep(true, "inputs of norms", &twice, x.width, &NORM_INPUTS);
    }
    keep(kept.rms_norms, "statistics of norms", &[2, tokens], FLOAT, &DEVIATIONS);
    if liger {
        keep(!kept.rms_norms, "statistics of norms", &[4, tokens], x.width, &OWN_MOMENTS);
    } else {
        keep(!kept.rms_norms, "statistics of norms", &[4, tokens], FLOAT, &MOMENTS);
    }
    keep(cast, "weights of norms in fp32", &[4, width], FLOAT, &WIDE_WEIGHTS);
    keep(trained && rms_norms, "normalised inputs", &twice, x.width, &NORMED);
    // Autocast casts the norm's fp32 output for each projection that reads it.
    if trained && cast && !kept.fused_queries {
        keep(true, "inputs of queries, keys and values", &[3, tokens, width], x.width, &QUERY_INPUTS);
    } else {
        keep(trained, "input of queries, keys and values", &once, x.width, &QUERY_INPUT);
    }
    let cast = x.recipe().shards_by_fsdp() && kept.tables > 0;
    keep(cast, "cosines and sines", &[tokens, kept.tables], 1, &TABLES);
    if kept.query_norms {
        keep(true, "inputs of query and key norms in fp32", &twice, FLOAT, &QUERY_NORMS);
        keep(true, "statistics of query and key norms", &[2, tokens], FLOAT, &QUERY_DEVIATIONS);
        keep(trained, "normalised queries and keys", &twice, x.width, &NORMED_QUERIES);
    }
    keep(true, "queries and keys", &twice, x.width, &QUERIES);
    keep(kept.fused_queries, "values", &[3, tokens, width], x.width, &VIEWED_VALUES);
    keep(!kept.fused_queries, "values", &once, x.width, &VALUES);
    keep(true, "attention output", &once, x.width, &OUT);
    keep(true, "log-sum-exp", &[heads, tokens], FLOAT, &LSE);
    keep(flash, "random state", &[2], 2 * FLOAT, &RNG);
    keep(trained && kept.joined_output && !flash, "joined attention output", &once, x.width, &JOINED);
    keep(trained, "MLP input", &once, x.width, &FIRST_INPUT);
    let inner = [tokens, ffn];
    if kept.gated {
        keep(true, "gate, activated gate and up", &[3, tokens, ffn], x.width, &GATED);
    } else if kept.quick_gelu {
        keep(true, "activation input and sigmoid", &[2, tokens, ffn], x.width, &QUICK);
    } else {
        keep(true, "activation input", &inner, x.width, &GELU);
    }
    keep(trained, "input of the MLP's last projection", &inner, x.width, &LAST_INPUT);
    keep(trained && kept.scaled, "what is scaled", &twice, x.width, &SCALED);
    saved
}

/// What a projector saves that trains after a tower for which nothing else is saved.
pub(super) fn projector(x: &Symbols<'_>) -> Vec<Saved> {
    let [each, once] = x.tower_ends();
    vec![Saved::new("within the projector", &[x.image_tokens() * each + once], 1, &PROJECTOR)]
}

/// What is saved outside of its layers, and their inputs if they are recomputed whole.
pub(super) fn ends(x: &Symbols<'_>) -> Vec<Saved> {
    if tower_kept(x).is_none() {
        return Vec::new();
    }
    let [each, once] = x.tower_ends();
    let mut saved = vec![Saved::new("outside of vision layers", &[x.image_tokens() * each + once], 1, &ENDS)];
    if x.recomputes_tower() {
        let layers = x.model().vision.map_or(0, |tower| tower.layers);
        let shape = [layers, x.tower_tokens(), x.vision_width()];
        // Offloaded ones leave nothing on the device.
        if !x.sends_input(x.tower_tokens() * x.vision_width()) {
            saved.push(Saved::new("inputs of vision layers", &shape, x.width, &INPUTS));
        }
    }
    saved
}

/// What a layer's backward pass holds in addition to what it saves.
pub(super) fn backward(x: &Symbols<'_>) -> Vec<Transient> {
    let Some((_, kept)) = tower_kept(x) else { return Vec::new() };
    let (tokens, width) = (x.tower_tokens(), x.vision_width());
    let inner = [tokens, 2 * width + 3 * kept.ffn];
    let mlp = Saved::new("gradients within a vision layer", &inner, x.width, &MLP_BACKWARD);
    let norm = Saved::new("gradients of a vision layer's norm", &[3, tokens, width], FLOAT, &NORM_BACKWARD);
    vec![Transient::new("backward of the vision tower", Bytes::ZERO, vec![mlp, norm])]
}
