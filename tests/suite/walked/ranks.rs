//! Every parameter tensor of every rank, one by one.

use std::collections::BTreeMap;

use shardscope::plan::{
    AttentionSoftmax, Embeddings, FeedForward, LinearBias, Mixer, Model, Normalization, Plan,
    PositionEmbedding, Software,
};

/// What the ranks hold.
pub(super) struct Walked {
    /// Parameters of the model, each counted on one of the ranks that hold it.
    pub(super) total: u64,
    /// The parameters used by one token.
    pub(super) active: u64,
    /// What each rank of a pipeline stage holds.
    pub(super) ranks: Vec<Held>,
}

/// What one rank holds.
pub(super) struct Held {
    pub(super) stage: u64,
    pub(super) held: u64,
    pub(super) of_experts: u64,
}

/// Identifies a tensor: its module, its name, the expert to which it belongs, and which piece of it.
type Key = (u64, &'static str, u64, u64);

/// Modules outside the layers, with numbers above every layer's.
const WORDS: u64 = 1 << 40;
const ENDS: u64 = WORDS + 1;
const DEPTHS: u64 = WORDS + 2;

/// A rank's position and its tensors.
struct Rank<'a> {
    plan: &'a Plan,
    tensor: u64,
    expert: u64,
    expert_tensor: u64,
    module: u64,
    held: Vec<(Key, u64, bool)>,
}

pub(super) fn walk(plan: &Plan) -> Walked {
    let layout = plan.layout();
    let mut pieces: BTreeMap<Key, u64> = BTreeMap::new();
    let mut ranks: Vec<Held> = Vec::new();
    for rank in 0..layout.world_size {
        let mut place = Rank {
            plan,
            tensor: rank % layout.tensor,
            expert: rank / layout.expert_tensor % layout.expert,
            expert_tensor: rank % layout.expert_tensor,
            module: 0,
            held: Vec::new(),
        };
        // In Megatron's default order the ranks of a stage are adjacent.
        let stage = rank / (layout.world_size / layout.pipeline);
        for chunk in &layout.stages.stages[stage as usize].chunks {
            if chunk.embedding {
                place.embedding();
            }
            for layer in chunk.layers.clone() {
                place.module = layer;
                place.layer(layer);
            }
            if chunk.mtp_layers > 0 && !chunk.embedding {
                place.embedding();
            }
            for depth in 0..chunk.mtp_layers {
                place.depth(depth);
            }
            place.ends(chunk);
        }
        let held = place.held.iter().map(|(_, elements, _)| elements).sum();
        let of_experts = place.held.iter().filter(|(.., own)| *own).map(|(_, elements, _)| elements).sum();
        match ranks.get(stage as usize) {
            Some(other) => assert_eq!((other.held, other.of_experts), (held, of_experts), "rank {rank}"),
            None => ranks.push(Held { stage, held, of_experts }),
        }
        pieces.extend(place.held.into_iter().map(|(key, elements, _)| (key, elements)));
    }
    let total = pieces.values().sum();
    let topk = plan.model().experts.as_ref().map_or(0, |experts| experts.router_topk);
    // Expert 0 stands for tensors outside experts; a token uses as many experts as it is routed to.
    let active = pieces.iter().filter(|((_, _, expert, _), _)| *expert <= topk).map(|(_, elements)| elements);
    Walked { total, active: active.sum(), ranks }
}

impl Rank<'_> {
    fn model(&self) -> &Model {
        self.plan.model()
    }

    /// A tensor of `elements`, of which this rank holds piece `piece` of `pieces`.
    fn cut(&mut self, name: &'static str, elements: u64, piece: u64, pieces: u64) {
        assert_eq!(elements % pieces, 0, "{name}");
        self.held.push(((self.module, name, 0, piece), elements / pieces, false));
    }

    fn parallel(&mut self, name: &'static str, elements: u64) {
        self.cut(name, elements, self.tensor, self.plan.layout().tensor);
    }

    fn whole(&mut self, name: &'static str, elements: u64) {
        self.cut(name, elements, 0, 1);
    }

    fn norm(&mut self, [weight, bias]: [&'static str; 2], width: u64) {
        self.whole(weight, width);
        if self.model().normalization == Normalization::LayerNorm {
            self.whole(bias, width);
        }
    }

    fn embedding(&mut self) {
        let model = self.model();
        let (rows, width) = (model.padded_vocab_size, model.hidden_size);
        let learned = model.position_embedding == PositionEmbedding::LearnedAbsolute;
        let positions = model.max_position_embeddings;
        self.module = WORDS;
        self.parallel("words", rows * width);
        if learned {
            self.whole("positions", positions * width);
        }
    }

    fn ends(&mut self, chunk: &shardscope::plan::Chunk) {
        let model = self.model();
        let (rows, width) = (model.padded_vocab_size, model.hidden_size);
        let tied = model.embeddings == Embeddings::Tied;
        // The norm follows the last layer; multi-token prediction reads its output.
        let last_layer = chunk.layers.end == model.num_layers && !chunk.layers.is_empty();
        let norm = if model.mtp_num_layers > 0 { last_layer } else { chunk.output_layer };
        self.module = ENDS;
        if norm {
            self.norm(["final norm", "final norm bias"], width);
        }
        if chunk.output_layer {
            if !tied {
                self.parallel("output", rows * width);
            } else if self.plan.layout().pipeline > 1 {
                self.module = WORDS;
                self.parallel("words", rows * width);
            }
        }
    }

    fn depth(&mut self, depth: u64) {
        let width = self.model().hidden_size;
        self.module = DEPTHS + depth;
        self.norm(["embedding norm", "embedding norm bias"], width);
        self.norm(["hidden norm", "hidden norm bias"], width);
        self.parallel("joined", 2 * width * width);
        self.norm(["depth norm", "depth norm bias"], width);
        self.layer(self.model().num_layers - 1);
    }

    fn layer(&mut self, layer: u64) {
        let (width, kind) = (self.model().hidden_size, self.model().layer_kind(layer));
        if kind.mixer != Mixer::None {
            self.norm(["input norm", "input norm bias"], width);
        }
        match kind.mixer {
            Mixer::Linear => self.mamba2(),
            Mixer::None => {}
            _ if self.model().latent.is_some() => self.latent_attention(),
            _ => self.attention(),
        }
        if kind.feed_forward != FeedForward::None {
            self.norm(["mlp norm", "mlp norm bias"], width);
        }
        match kind.feed_forward {
            FeedForward::Moe => self.experts(),
            FeedForward::Dense => self.mlp(),
            FeedForward::None => {}
        }
    }

    /// Every head is complete on its rank, and so is every group
    /// (`megatron/core/ssm/mamba_mixer.py:MambaMixer.__init__`).
    fn mamba2(&mut self) {
        let model = self.model().clone();
        let Some(mixer) = model.mixers.linear else { return };
        let (width, inner) = (model.hidden_size, mixer.value_heads * mixer.value_width);
        let states = mixer.key_heads * mixer.key_width;
        let [projection, convolution, out] = mixer.biases;
        // z, x, B, C and dt.
        for (name, bias, columns) in [
            ("in z", "in z bias", inner),
            ("in x", "in x bias", inner),
            ("in b", "in b bias", states),
            ("in c", "in c bias", states),
            ("in dt", "in dt bias", mixer.value_heads),
        ] {
            self.parallel(name, columns * width);
            if projection {
                self.parallel(bias, columns);
            }
        }
        for (name, bias, channels) in [
            ("conv x", "conv x bias", inner),
            ("conv b", "conv b bias", states),
            ("conv c", "conv c bias", states),
        ] {
            self.parallel(name, channels * mixer.convolution);
            if convolution {
                self.parallel(bias, channels);
            }
        }
        for name in ["step bias", "decay", "skip"] {
            self.parallel(name, mixer.value_heads);
        }
        if mixer.norm {
            self.parallel("scan norm", inner);
        }
        self.parallel("out", width * inner);
        if out {
            self.whole("out bias", width);
        }
    }

    fn attention(&mut self) {
        let model = self.model().clone();
        let (heads, groups) = (model.num_attention_heads, model.num_query_groups);
        let (d, width) = (model.kv_channels, model.hidden_size);
        let mut rows = 0;
        for _ in 0..heads {
            rows += d; // a query
            rows += if model.mixers.output_gate { d } else { 0 };
        }
        for _ in 0..groups {
            rows += d + d; // a key and a value
        }
        self.parallel("qkv", rows * width);
        if model.linear_bias != LinearBias::None {
            self.parallel("qkv bias", rows);
        }
        if model.qk_layernorm {
            self.norm(["query norm", "query norm bias"], d);
            self.norm(["key norm", "key norm bias"], d);
        }
        self.projection(heads * d);
    }

    fn projection(&mut self, from: u64) {
        let (width, heads) = (self.model().hidden_size, self.model().num_attention_heads);
        if self.model().attention_softmax == AttentionSoftmax::Learnable {
            self.parallel("sinks", heads);
        }
        self.parallel("projection", width * from);
        if self.model().linear_bias == LinearBias::All {
            self.whole("projection bias", width);
        }
    }

    fn latent_attention(&mut self) {
        let model = self.model().clone();
        let Some(latent) = model.latent else { return };
        let (heads, width) = (model.num_attention_heads, model.hidden_size);
        let head = latent.qk_head_dim + latent.qk_pos_emb_head_dim;
        if let Some(rank) = latent.q_lora_rank {
            self.whole("query down", rank * width);
            if model.qk_layernorm {
                self.norm(["query norm", "query norm bias"], rank);
            }
            self.parallel("query up", heads * head * rank);
        } else {
            // Transformer Engine's query projection begins with a norm; Megatron's own has none.
            if model.qk_layernorm && self.plan.recipe().software == Software::MegatronCoreTe {
                self.norm(["query norm", "query norm bias"], width);
            }
            self.parallel("query", heads * head * width);
        }
        self.whole("key down", (latent.kv_lora_rank + latent.qk_pos_emb_head_dim) * width);
        if model.qk_layernorm {
            self.norm(["key norm", "key norm bias"], latent.kv_lora_rank);
        }
        self.parallel("key up", heads * (latent.qk_head_dim + latent.v_head_dim) * latent.kv_lora_rank);
        self.projection(heads * latent.v_head_dim);
    }

    /// The number of input matrices: gate and up, or one.
    fn halves(&self) -> u64 {
        if self.model().activation.is_gated() { 2 } else { 1 }
    }

    fn mlp(&mut self) {
        let (inner, width) = (self.model().ffn_hidden_size, self.model().hidden_size);
        let rows = self.halves() * inner;
        self.parallel("fc1", rows * width);
        self.parallel("fc2", width * inner);
        if self.model().linear_bias == LinearBias::All {
            self.parallel("fc1 bias", rows);
            self.whole("fc2 bias", width);
        }
    }

    fn experts(&mut self) {
        let model = self.model().clone();
        let Some(experts) = model.experts else { return };
        let (layout, width) = (self.plan.layout(), model.hidden_size);
        let (pieces, spread) = (layout.expert_tensor, layout.expert);
        let bias = model.linear_bias == LinearBias::All;
        self.whole("router", experts.num_experts * width);
        if bias {
            self.whole("router bias", experts.num_experts);
        }
        let inner = experts.ffn_hidden_size;
        let rows = self.halves() * inner;
        // A separate process group if they are distributed, or sharded differently from the dense layers.
        let own = spread > 1 || pieces != layout.tensor;
        let here = experts.num_experts / spread;
        for expert in self.expert * here..(self.expert + 1) * here {
            let mut hold = |name, elements: u64, pieces: u64| {
                assert_eq!(elements % pieces, 0, "{name}");
                let piece = if pieces > 1 { self.expert_tensor } else { 0 };
                self.held.push(((self.module, name, expert + 1, piece), elements / pieces, own));
            };
            hold("expert fc1", rows * width, pieces);
            hold("expert fc2", width * inner, pieces);
            if bias {
                hold("expert fc1 bias", rows, pieces);
                hold("expert fc2 bias", width, 1);
            }
        }
        if let Some(inner) = experts.shared_expert_intermediate_size {
            self.parallel("shared fc1", self.halves() * inner * width);
            self.parallel("shared fc2", width * inner);
            if experts.shared_expert_gate {
                self.whole("shared gate", width);
            }
        }
    }
}
