//! What an inference engine's cache holds: keys and values of every token, only of the most recent tokens in layers
//! with a window, and one state per sequence in layers with a linear mixer.

use shardscope_plan::{LinearMixer, Mixer, Model, Rollout, RolloutEngine};
use shardscope_units::{Bytes, Count};

/// Bytes of a cached element: both engines cache in the model's 16-bit format by default.
const WIDTH: u64 = 2;
/// Bytes of an element of a linear mixer's state: fp32, as in the configurations of Qwen3.5 (`mamba_ssm_dtype`) and
/// Nemotron-H (`mamba_ssm_cache_dtype`) and in vLLM's `kda_state_dtype`. vLLM uses half as much if a configuration is
/// silent.
const STATE_WIDTH: u64 = 4;
/// Tokens of a block of vLLM's cache (`vllm/config/cache.py:CacheConfig.DEFAULT_BLOCK_SIZE`).
const BLOCK: u64 = 16;
/// SGLang's `swa_full_tokens_ratio`, in tenths: token capacity of windowed layers relative to that of the others.
const WINDOWED_TENTHS: u64 = 8;
/// SGLang's `mamba_full_memory_ratio`, in tenths: bytes for states relative to those for keys and values.
const STATE_TENTHS: u64 = 9;
/// States that SGLang reserves per running request, because it also caches states of the prefix
/// (`MAMBA_CACHE_SIZE_MAX_RUNNING_REQUESTS_RATIO`).
const STATES_OF_REQUEST: u64 = 3;

/// How many tokens and rollouts of one length a cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    /// Tokens in rollouts of that length.
    pub(super) tokens: u64,
    /// Whole rollouts.
    pub(super) rollouts: u64,
}

/// Layers by what an engine rank caches for them, and the sizes.
struct Cached {
    full: u64,
    windowed: u64,
    linear: u64,
    /// Bytes of one token in one layer of attention to the whole sequence.
    row: u64,
    /// The same with a window; differs in Gemma 4.
    window_row: u64,
    /// Bytes of one sequence in one linear mixer.
    state: u64,
    /// Tokens of the window.
    window: u64,
    /// Whether the window is a chunk, which ends where the next one begins.
    chunked: bool,
}

impl Cached {
    fn new(model: &Model, tensor: u64) -> Self {
        let count = |asked: fn(Mixer) -> bool| model.count_layers(|kind| asked(kind.mixer));
        let window = model.mixers.window;
        Self {
            // An earlier layer's keys and values are cached once.
            full: count(|mixer| mixer.attends() && !mixer.is_windowed() && !mixer.borrows()),
            windowed: count(|mixer| mixer.is_windowed() && !mixer.borrows()),
            linear: count(Mixer::is_linear),
            row: row(model, tensor, false).get().max(1),
            window_row: row(model, tensor, true).get().max(1),
            state: model.mixers.linear.as_ref().map_or(1, |mixer| state(mixer, tensor).get().max(1)),
            window: window.map_or(u64::MAX, |window| window.tokens),
            chunked: window.is_some_and(|window| window.chunked),
        }
    }
}

/// What a cache of `bytes` holds.
pub(super) fn held(model: &Model, rollout: &Rollout, bytes: Bytes) -> Held {
    let cached = Cached::new(model, rollout.tensor);
    let length = rollout.length.max(1);
    match rollout.engine {
        RolloutEngine::Vllm | RolloutEngine::Transformers => paged(&cached, length, bytes.get()),
        RolloutEngine::Sglang => pooled(&cached, length, bytes.get()),
    }
}

/// vLLM: one pool of equally sized blocks, from which every group of layers takes its own
/// (`vllm/v1/core/kv_cache_utils.py:_get_kv_cache_groups_uniform_page_size`, `get_kv_cache_config_from_groups`). The
/// tokens per block grow until a layer's state fits into one block
/// (`vllm/model_executor/models/config.py:HybridAttentionMambaModelConfig`).
fn paged(cached: &Cached, length: u64, bytes: u64) -> Held {
    let attends = cached.full + cached.windowed > 0;
    // The widest row among the layers that there are; narrower ones have more tokens in a block of equal bytes
    // (`unify_kv_cache_spec_page_size`).
    let rows = [(cached.full, cached.row), (cached.windowed, cached.window_row)];
    let widest = rows.into_iter().filter(|(layers, _)| *layers > 0).map(|(_, row)| row).max();
    let widest = widest.unwrap_or(cached.row);
    let block = match cached.linear {
        0 => BLOCK,
        _ => BLOCK * cached.state.div_ceil(BLOCK.saturating_mul(widest)).max(1),
    };
    let page = if attends { block.saturating_mul(widest) } else { cached.state };
    let [whole, block] = [cached.row, cached.window_row].map(|row| block * (widest / row).max(1));
    let per_rollout = length.div_ceil(whole);
    // A sliding window begins inside a block and may end inside another.
    let last = if cached.chunked {
        cached.window.div_ceil(block)
    } else {
        cached.window.saturating_sub(1).div_ceil(block) + 1
    };
    let windowed = length.div_ceil(block).min(last);
    let kinds = [(cached.full, per_rollout), (cached.windowed, windowed), (cached.linear, 1)];
    let layers = || kinds.iter().map(|(layers, _)| *layers).filter(|layers| *layers > 0);
    let (least, most) = (layers().min().unwrap_or(1), layers().max().unwrap_or(1));
    // Groups have as many layers as the smallest kind, or as the largest if that is less than half again as many.
    let group = if most.saturating_mul(2) < least.saturating_mul(3) { most } else { least };
    let blocks = bytes / group.saturating_mul(page).max(1);
    let of_one: u64 =
        kinds.iter().map(|(layers, blocks)| layers.div_ceil(group).saturating_mul(*blocks)).sum();
    let tokens = u128::from(blocks) * u128::from(length) / u128::from(of_one.max(1));
    Held { tokens: u64::try_from(tokens).unwrap_or(u64::MAX), rollouts: blocks / of_one.max(1) }
}

/// SGLang: a pool for each kind of layer, with fixed size ratios
/// (`sglang/srt/model_executor/pool_configurator.py:HybridSWAPoolConfigurator`,
/// `sglang/srt/mem_cache/kv_cache_configurator.py`).
fn pooled(cached: &Cached, length: u64, bytes: u64) -> Held {
    let states = if cached.linear > 0 {
        let share = match cached.full + cached.windowed {
            0 => bytes,
            _ => bytes / (10 + STATE_TENTHS) * STATE_TENTHS,
        };
        Some(share / cached.linear.saturating_mul(cached.state))
    } else {
        None
    };
    let of_states =
        states.map_or(0, |states| states.saturating_mul(cached.linear).saturating_mul(cached.state));
    // In tenths of a layer to stay in integers; if all layers are windowed, there is no other pool to be a ratio of.
    let tenths = if cached.full > 0 { WINDOWED_TENTHS } else { 10 };
    let whole = (cached.full * 10).saturating_mul(cached.row);
    let cell = whole.saturating_add((cached.windowed * tenths).saturating_mul(cached.window_row));
    let tokens = (u128::from(bytes.saturating_sub(of_states)) * 10).checked_div(u128::from(cell));
    let tokens = tokens.map(|tokens| u64::try_from(tokens).unwrap_or(u64::MAX));
    let windowed = tokens.filter(|_| cached.windowed > 0).map(|tokens| {
        let room = u128::from(tokens) * u128::from(tenths) / 10;
        u64::try_from(room).unwrap_or(u64::MAX) / length.min(cached.window)
    });
    let full = tokens.filter(|_| cached.full > 0).map(|tokens| tokens / length);
    let by_states = states.map(|states| states / STATES_OF_REQUEST);
    let rollouts = [full, windowed, by_states].into_iter().flatten().min().unwrap_or(0);
    Held { tokens: tokens.unwrap_or_else(|| rollouts.saturating_mul(length)), rollouts }
}

/// Bytes of one token in one layer of a tensor rank: keys and values of its heads, at least one per rank; or the
/// latent of multi-latent attention, which every rank holds in full.
fn row(model: &Model, tensor: u64, windowed: bool) -> Bytes {
    let full = model.mixers.full.filter(|_| !windowed);
    let (groups, width) =
        full.map_or((model.num_query_groups, model.kv_channels), |full| (full.groups, full.width));
    let elements = match &model.latent {
        Some(latent) => latent.kv_lora_rank + latent.qk_pos_emb_head_dim,
        None => 2 * (groups / tensor.max(1)).max(1) * width,
    };
    Count::new(elements).bytes(WIDTH)
}

/// Bytes of one token in all attention layers of a tensor rank, while it is within every window.
#[must_use]
pub fn cached_token(model: &Model, tensor: u64) -> Bytes {
    let own = |mixer: Mixer| mixer.attends() && !mixer.borrows();
    let windowed = model.count_layers(|kind| own(kind.mixer) && kind.mixer.is_windowed());
    let whole = model.count_layers(|kind| own(kind.mixer)) - windowed;
    row(model, tensor, false) * whole + row(model, tensor, true) * windowed
}

/// Bytes of one sequence in a linear mixer of a tensor rank: the inputs that its convolution will still read, and its
/// state (`vllm/model_executor/layers/mamba/mamba_utils.py:MambaStateShapeCalculator`).
fn state(mixer: &LinearMixer, tensor: u64) -> Bytes {
    let tensor = tensor.max(1);
    // If the ranks do not divide Mamba-2's groups, each rank has one of its own (`extra_groups_for_head_shards`).
    let divides = mixer.key_heads.is_multiple_of(tensor);
    let keys = if divides { mixer.keys() / tensor } else { mixer.key_width };
    let values = mixer.values() / tensor;
    let channels = if mixer.kind.convolves_keys() { 2 * keys + values } else { values };
    let read = Count::of_shape(&[channels, mixer.convolution.saturating_sub(1)]);
    let kept =
        if mixer.kind.has_state() { Count::of_shape(&[values, mixer.key_width]) } else { Count::new(0) };
    read.bytes(WIDTH) + kept.bytes(STATE_WIDTH)
}

#[cfg(test)]
mod tests {
    use super::{Cached, Held, paged, pooled, state};
    use shardscope_plan::{LinearKind, LinearMixer};
    use shardscope_units::Bytes;

    /// Gemma 3 27B: 10 of 62 layers have full attention, with 16 key/value heads of 128.
    const GEMMA: Cached = Cached {
        full: 10,
        windowed: 52,
        linear: 0,
        row: 8192,
        window_row: 8192,
        state: 1,
        window: 1024,
        chunked: false,
    };
    /// Qwen3.5 35B-A3B: 10 of 40 layers have attention, with 2 key/value heads of 256; the others have 32 states of
    /// 128 by 128.
    const QWEN: Cached = Cached {
        full: 10,
        windowed: 0,
        linear: 30,
        row: 2048,
        window_row: 2048,
        state: 2_146_304,
        window: u64::MAX,
        chunked: false,
    };

    #[test]
    fn a_state_is_what_the_convolution_reads_and_a_matrix_for_each_head() {
        let mixer = LinearMixer {
            kind: LinearKind::GatedDeltaNet,
            key_heads: 16,
            value_heads: 32,
            key_width: 128,
            value_width: 128,
            convolution: 4,
            rank: 0,
            biases: [false; 3],
            norm: true,
        };
        assert_eq!(state(&mixer, 1), Bytes::new(QWEN.state));
        assert_eq!(state(&mixer, 1), Bytes::new(3 * (2 * 16 + 32) * 128 * 2 + 32 * 128 * 128 * 4));
        assert_eq!(state(&mixer, 2), Bytes::new(QWEN.state / 2));
        // A short convolution has no state but its inputs; Mamba's convolution reads only its channels.
        let short =
            LinearMixer { kind: LinearKind::ShortConvolution, value_heads: 1, value_width: 2048, ..mixer };
        assert_eq!(state(&short, 1), Bytes::new(3 * 2048 * 2));
        let mamba = LinearMixer { kind: LinearKind::Mamba, key_heads: 1, key_width: 16, ..short };
        assert_eq!(state(&mamba, 2), Bytes::new(3 * 1024 * 2 + 1024 * 16 * 4));
        // The single group of Mamba-2 is complete on every rank.
        let two = LinearMixer { kind: LinearKind::Mamba2, key_heads: 1, ..mixer };
        assert_eq!(state(&two, 4), Bytes::new(3 * (2 * 128 + 1024) * 2 + 1024 * 128 * 4));
    }

    #[test]
    fn windowed_layers_take_blocks_of_their_window_alone() {
        // One group of 10 full-attention layers, six groups for 52 windowed layers, blocks of 16 tokens: 8,192 tokens
        // take 512 blocks, plus, in each of the six, 64 for the window and one more because it begins inside a block.
        let block = 10 * 16 * 8192;
        let one = 512 + 6 * 65;
        assert_eq!(paged(&GEMMA, 8192, block * one * 3), Held { tokens: 3 * 8192, rollouts: 3 });
        assert_eq!(paged(&GEMMA, 8192, block * (one * 3) - 1).rollouts, 2);
        // For rollouts shorter than the window, all groups need the same number.
        assert_eq!(paged(&GEMMA, 512, block * 7 * 32).rollouts, 1);
        // A chunk begins at a block boundary.
        let chunked = Cached { chunked: true, ..GEMMA };
        assert_eq!(paged(&chunked, 8192, block * (512 + 6 * 64)).rollouts, 1);
        // 13 and 12 layers form two groups of 13, not three of 12.
        let drafted = Cached { full: 13, windowed: 12, ..GEMMA };
        assert_eq!(paged(&drafted, 8192, 13 * 16 * 8192 * (512 + 65)).rollouts, 1);
        // Half again as many is too much: 12 layers next to 8 form two groups of 8
        // (`max_num_layers < min_num_layers * 1.5`).
        let half_more = Cached { full: 8, windowed: 12, ..GEMMA };
        assert_eq!(paged(&half_more, 8192, 8 * 16 * 8192 * (512 + 2 * 65)).rollouts, 1);
        let alone = Cached { full: 0, ..GEMMA };
        assert_eq!(paged(&alone, 8192, 52 * 16 * 8192 * 65).rollouts, 1);
    }

    #[test]
    fn narrower_layers_have_more_tokens_in_a_block_of_equal_bytes() {
        // Gemma 4 31B: 10 of 60 layers with 4 heads of 512, 50 with 16 of 256: keys and values of 8,192 and 16,384 bytes.
        let gemma = Cached { full: 10, windowed: 50, row: 8192, window_row: 16384, ..GEMMA };
        // Blocks of 32 and of 16 tokens; five groups of windowed layers.
        let block = 10 * 16 * 16384;
        assert_eq!(paged(&gemma, 8192, block * (256 + 5 * 65)), Held { tokens: 8192, rollouts: 1 });
        assert_eq!(paged(&gemma, 8192, block * (256 + 5 * 65) - 1).rollouts, 0);
        // Wider ones beside narrower windows (Gemma 4 E2B).
        let other = Cached { row: 16384, window_row: 8192, ..gemma };
        assert_eq!(paged(&other, 8192, block * (512 + 5 * 33)).rollouts, 1);
        let cell = 10 * 8192 + 50 * 16384 * 8 / 10;
        assert_eq!(pooled(&gemma, 8192, (cell + 1) * 81_920), Held { tokens: 81_920, rollouts: 10 });
    }

    #[test]
    fn a_linear_mixer_takes_one_block_of_a_sequence_and_makes_blocks_longer() {
        // vLLM sets 1,056 tokens per block for this model, so that a block holds a state.
        let block = 10 * 1056 * 2048;
        assert_eq!(paged(&QWEN, 8192, block * (8 + 3)), Held { tokens: 8192, rollouts: 1 });
        assert_eq!(paged(&QWEN, 8192, block * (8 + 3) - 1).rollouts, 0);
        let alone = Cached { full: 0, ..QWEN };
        assert_eq!(paged(&alone, 8192, 30 * QWEN.state * 5).rollouts, 5);
    }

    #[test]
    fn sglang_divides_its_cache_by_fixed_ratios() {
        // Windowed layers have room for eight tenths of the tokens.
        let cell = 10 * 8192 + 52 * 8192 * 8 / 10;
        let of = |tokens: u64| pooled(&GEMMA, 8192, (cell + 1) * tokens);
        assert_eq!(of(81_920), Held { tokens: 81_920, rollouts: 10 });
        // Rollouts shorter than the window fill that pool first.
        assert_eq!(pooled(&GEMMA, 1024, (cell + 1) * 10_240).rollouts, 8);
        let alone = Cached { full: 0, ..GEMMA };
        assert_eq!(pooled(&alone, 8192, 52 * 8192 * 3072), Held { tokens: 3072, rollouts: 3 });
        // Nine of 19 parts are states; a request takes three.
        let states = 30 * QWEN.state;
        let held = pooled(&QWEN, 8192, states * 19);
        assert_eq!(held, Held { tokens: states * 10 / (10 * 2048), rollouts: 3 });
        assert_eq!(pooled(&Cached { full: 0, ..QWEN }, 8192, states * 6).rollouts, 2);
        // The same if half of the attention layers have a window.
        let half = Cached { full: 5, windowed: 5, ..QWEN };
        assert_eq!(pooled(&half, 8192, states * 19).tokens, states * 10 * 10 / (5 * (10 + 8) * 2048));
    }
}
