//! Which layers a model has: what mixes tokens in each of them, and what follows it.

/// What mixes tokens in a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mixer {
    /// Attention to the whole sequence.
    Attention,
    /// Attention to a window or a chunk of it.
    Windowed,
    /// Linear attention or a state-space layer, whichever kind the model uses.
    Linear,
    /// Attention and the linear mixer side by side, added together (Falcon-H1).
    Both,
    /// Nothing: the layer is an MLP alone (Nemotron-H).
    None,
    /// Attention to the whole sequence with the keys and values of an earlier layer (Gemma 4 E2B).
    Borrowed,
    /// The same to a window.
    BorrowedWindowed,
}

impl Mixer {
    /// Every mixer.
    pub const ALL: [Self; 7] = [
        Self::Attention,
        Self::Windowed,
        Self::Linear,
        Self::Both,
        Self::None,
        Self::Borrowed,
        Self::BorrowedWindowed,
    ];

    /// Its symbol in a layer pattern; Megatron's symbol where it has one
    /// (`megatron/core/ssm/mamba_hybrid_layer_allocation.py:Symbols`).
    #[must_use]
    pub const fn sign(self) -> char {
        match self {
            Self::Attention => '*',
            Self::Windowed => 'w',
            Self::Linear => 'M',
            Self::Both => 'P',
            Self::None => '-',
            Self::Borrowed => 'A',
            Self::BorrowedWindowed => 'W',
        }
    }

    /// The mixer of a symbol; `None` if the symbol is not a mixer's.
    #[must_use]
    pub fn of_sign(sign: char) -> Option<Self> {
        Self::ALL.into_iter().find(|mixer| mixer.sign() == sign)
    }

    /// Whether it has attention heads.
    #[must_use]
    pub const fn attends(self) -> bool {
        matches!(self, Self::Attention | Self::Windowed | Self::Both) || self.borrows()
    }

    /// Whether its attention heads see only a window or a chunk of the sequence.
    #[must_use]
    pub const fn is_windowed(self) -> bool {
        matches!(self, Self::Windowed | Self::BorrowedWindowed)
    }

    /// Whether its keys and values are an earlier layer's.
    #[must_use]
    pub const fn borrows(self) -> bool {
        matches!(self, Self::Borrowed | Self::BorrowedWindowed)
    }

    /// Whether it has the linear mixer.
    #[must_use]
    pub const fn is_linear(self) -> bool {
        matches!(self, Self::Linear | Self::Both)
    }
}

/// What follows the mixer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FeedForward {
    /// A dense MLP.
    Dense,
    /// Routed experts.
    Moe,
    /// Nothing: the layer is a mixer alone (Nemotron-H, Mamba).
    None,
}

impl FeedForward {
    /// Every kind, in the order of [`LayerKind::index`].
    pub const ALL: [Self; 3] = [Self::Dense, Self::Moe, Self::None];

    /// Whether it is one dense MLP.
    #[must_use]
    pub const fn is_dense(self) -> bool {
        matches!(self, Self::Dense)
    }

    /// Whether tokens are routed to experts.
    #[must_use]
    pub const fn is_routed(self) -> bool {
        matches!(self, Self::Moe)
    }
}

/// What a transformer layer is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LayerKind {
    /// What mixes tokens.
    pub mixer: Mixer,
    /// What follows it.
    pub feed_forward: FeedForward,
}

impl LayerKind {
    /// Attention and a dense MLP.
    pub const DENSE: Self = Self { mixer: Mixer::Attention, feed_forward: FeedForward::Dense };
    /// Attention and routed experts.
    pub const MOE: Self = Self { mixer: Mixer::Attention, feed_forward: FeedForward::Moe };
    /// Every kind, mixer by mixer.
    pub const ALL: [Self; Mixer::ALL.len() * FeedForward::ALL.len()] = {
        let mut all = [Self::DENSE; Mixer::ALL.len() * FeedForward::ALL.len()];
        let mut at = 0;
        while at < all.len() {
            all[at] = Self {
                mixer: Mixer::ALL[at / FeedForward::ALL.len()],
                feed_forward: FeedForward::ALL[at % FeedForward::ALL.len()],
            };
            at += 1;
        }
        all
    };

    /// Its place in [`LayerKind::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        // In the order of the enums, by which `ALL` is filled.
        self.mixer as usize * FeedForward::ALL.len() + self.feed_forward as usize
    }
}

/// How far a windowed layer sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Tokens of the window, including the query's own, or of a chunk.
    pub tokens: u64,
    /// Whether the sequence is cut into chunks that do not attend to each other (Llama 4); otherwise the window
    /// slides.
    pub chunked: bool,
}

/// What mixes tokens, layer by layer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mixers {
    /// The mixers of the first layers, repeated to the last; empty means attention in every layer.
    pub pattern: Vec<Mixer>,
    /// How far windowed layers see.
    pub window: Option<Window>,
    /// The linear mixer of the model.
    pub linear: Option<LinearMixer>,
    /// Whether each layer is a single block: a layer with a mixer has no MLP, and one without a mixer has nothing
    /// else (Nemotron-H; Megatron's `--hybrid-override-pattern`).
    pub single_block: bool,
    /// Whether the attention's output is multiplied by a gate that its query projection produces along with the
    /// queries (`--attention-output-gate`; Qwen3-Next).
    pub output_gate: bool,
    /// Heads of attention to the whole sequence, where those of windowed layers differ (Gemma 4).
    pub full: Option<FullHeads>,
}

/// Heads of attention to the whole sequence in a model whose windowed layers have heads of another width. There are as many
/// query heads in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FullHeads {
    /// Key/value heads.
    pub groups: u64,
    /// Width of a head.
    pub width: u64,
    /// Whether the keys' projection gives the values too, before the keys' norm and rotation (`attention_k_eq_v`).
    pub keys_as_values: bool,
}

impl Mixers {
    /// The mixer of layer `index` (from 0).
    #[must_use]
    pub fn at(&self, index: u64) -> Mixer {
        let length = self.pattern.len() as u64;
        // The remainder by an empty pattern's length is `None`, which means attention.
        let place = index.checked_rem(length).and_then(|place| usize::try_from(place).ok());
        place.and_then(|place| self.pattern.get(place)).copied().unwrap_or(Mixer::Attention)
    }

    /// Parses a pattern of symbols; `None` if one of them is not a mixer's.
    #[must_use]
    pub fn read(signs: &str) -> Option<Vec<Mixer>> {
        signs.chars().map(Mixer::of_sign).collect()
    }

    /// The shortest pattern that repeats to `mixers`, as symbols; empty where all are attention.
    #[must_use]
    pub fn write(mixers: &[Mixer]) -> String {
        // This is the default and needs no setting.
        if mixers.iter().all(|mixer| *mixer == Mixer::Attention) {
            return String::new();
        }
        // The sequence equals itself shifted by the period; the last repetition may be cut short.
        let repeats = |period: &usize| mixers.iter().zip(mixers.iter().skip(*period)).all(|(a, b)| a == b);
        let period = (1..mixers.len()).find(repeats).unwrap_or(mixers.len());
        mixers.iter().take(period).map(|mixer| mixer.sign()).collect()
    }
}

/// Which linear mixer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinearKind {
    /// Gated delta rule (Qwen3-Next, Qwen3.5, OLMo hybrid): Yang et al. 2024.
    GatedDeltaNet,
    /// Kimi delta attention (Kimi-Linear): a gate for every channel of a key.
    KimiDelta,
    /// Mamba-2 (Nemotron-H, Granite 4, Bamba, Falcon-H1): Dao and Gu 2024. Its C and B play the roles of keys and
    /// queries, its groups of key heads, and its state size of the key width.
    Mamba2,
    /// Mamba (Jamba): Gu and Dao 2023. One value head with all channels; the key width is its state.
    Mamba,
    /// A short convolution between two gates (LFM2). One head with all channels; the gates play the roles of queries
    /// and keys.
    ShortConvolution,
}

impl LinearKind {
    /// Every kind.
    pub const ALL: [Self; 5] =
        [Self::GatedDeltaNet, Self::KimiDelta, Self::Mamba2, Self::Mamba, Self::ShortConvolution];

    /// The words of the setting, in the order of [`LinearKind::ALL`].
    pub const NAMES: &'static [&'static str] = &{
        let mut names = [""; Self::ALL.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = Self::ALL[at].name();
            at += 1;
        }
        names
    };

    /// Whether its convolution runs over queries and keys too, not only over values.
    #[must_use]
    pub const fn convolves_keys(self) -> bool {
        !matches!(self, Self::Mamba | Self::ShortConvolution)
    }

    /// Whether it carries a state from token to token, of value width by key width, in addition to the inputs of its
    /// convolution.
    #[must_use]
    pub const fn has_state(self) -> bool {
        !matches!(self, Self::ShortConvolution)
    }

    /// The word of the setting.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::GatedDeltaNet => "gated_delta_net",
            Self::KimiDelta => "kimi_delta_attention",
            Self::Mamba2 => "mamba2",
            Self::Mamba => "mamba",
            Self::ShortConvolution => "short_convolution",
        }
    }
}

/// A mixer whose work grows linearly with the sequence length. Sizes are of the full, unsharded layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinearMixer {
    /// Which kind of linear mixer.
    pub kind: LinearKind,
    /// Heads of queries and keys (`--linear-num-key-heads`; Mamba-2's groups).
    pub key_heads: u64,
    /// Heads of values (`--linear-num-value-heads`; Mamba-2's heads).
    pub value_heads: u64,
    /// Width of a query or key head (`--linear-key-head-dim`; a state-space layer's state).
    pub key_width: u64,
    /// Width of a value head (`--linear-value-head-dim`).
    pub value_width: u64,
    /// Tokens of the convolution (`--linear-conv-kernel-dim`); 0 if there is none.
    pub convolution: u64,
    /// Rank of the step's or the gate's low-rank projection; 0 if there is none.
    pub rank: u64,
    /// Biases of the input projection, of the convolution, and of the output projection.
    pub biases: [bool; 3],
    /// Whether a norm follows the mixer, before the output projection.
    pub norm: bool,
}

impl LinearMixer {
    /// Width of all queries, and of all keys.
    #[must_use]
    pub const fn keys(&self) -> u64 {
        self.key_heads * self.key_width
    }

    /// Width of all values.
    #[must_use]
    pub const fn values(&self) -> u64 {
        self.value_heads * self.value_width
    }
}

#[cfg(test)]
mod tests {
    use super::{LayerKind, Mixer, Mixers};

    #[test]
    fn kinds_stand_at_their_index() {
        for (index, kind) in LayerKind::ALL.into_iter().enumerate() {
            assert_eq!(kind.index(), index);
        }
    }

    #[test]
    fn a_pattern_is_written_as_short_as_it_repeats() {
        let read = |signs: &str| Mixers::read(signs).unwrap_or_default();
        assert_eq!(Mixers::write(&read("wwwww*wwwww*ww")), "wwwww*");
        assert_eq!(Mixers::write(&read("MMM*MMM*MM")), "MMM*");
        assert_eq!(Mixers::write(&read("M-M-M*-")), "M-M-M*-");
        assert_eq!(Mixers::write(&read("****")), "");
        assert_eq!(Mixers::write(&read("wwww")), "w");
        assert_eq!(Mixers::read("M?"), None);
        let mixers = Mixers { pattern: read("w*"), ..Mixers::default() };
        assert_eq!(
            [0, 1, 2].map(|index| mixers.at(index)),
            [Mixer::Windowed, Mixer::Attention, Mixer::Windowed]
        );
        assert_eq!(Mixers::default().at(7), Mixer::Attention);
    }
}
