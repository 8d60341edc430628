"""Records what autograd keeps of models of transformers, type by type and layer by layer, on a CPU.

    pip install torch==2.15.0 transformers==5.23.0 peft==0.21.2
    python hybrid_layers.py [TYPE...] > ../data/activations/hybrid.jsonl

Dropout on a GPU keeps a mask of one byte an element, and SDPA's kernels keep none at all, only the state of random
numbers; a CPU keeps noise in the type of what it drops. Stand-ins keep what a GPU does.
The kernels of flash-linear-attention and causal-conv1d need a GPU. Stand-ins take their place that keep what the
packages' sources say theirs keep (fla-core 0.6.0 ChunkGatedDeltaRuleFunction, causal-conv1d CausalConv1dFn); everything
around them is transformers' own. Every tensor that autograd packs and that is alive when the loss is there (what a router
works out its choice with is not) is taken once per storage, parameters left out, and counted to the layer whose forward
packs it first.
"""

import collections
import importlib
import json
import platform
import weakref

import torch
import transformers
from transformers import AttentionInterface, AutoConfig, AutoModelForCausalLM
from transformers.integrations import flash_attention
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, flash_attention_mask

CHUNK = 64


class Packed:
    """A tensor as a node of the graph holds it, which dies with the node."""

    def __init__(self, tensor):
        self.tensor = tensor


class Keep(torch.autograd.Function):
    """Keeps tensors and returns one of a shape."""

    @staticmethod
    def forward(ctx, make, *inputs):
        kept, out = make(*inputs)
        ctx.save_for_backward(*kept)
        ctx.inputs = len(inputs)
        return out

    @staticmethod
    def backward(ctx, gradient):
        return (None,) * (1 + ctx.inputs)


def convolution(x, weight, bias=None, activation=None, **_):
    """Keeps its input as it comes (causal_conv1d_interface.py:CausalConv1dFn)."""
    return Keep.apply(lambda x: ([x], torch.empty_like(x)), x)


def delta_rule(query, key, value, g, beta, **_):
    """Keeps unit queries and keys with their lengths, values, the summed decay, the step and the chunks' inverse; inputs
    are made contiguous first (fla input_guard)."""
    def make(q, k, v, g, beta):
        q, k, v, g, beta = (t.contiguous() for t in (q, k, v, g, beta))
        lengths = [torch.empty(t.shape[:-1], dtype=torch.float32) for t in (q, k)]
        inverse = torch.empty(*v.shape[:3], CHUNK, dtype=k.dtype)
        kept = [torch.empty_like(q), lengths[0], torch.empty_like(k), lengths[1], v, torch.empty_like(g), beta, inverse]
        return kept, torch.empty_like(v)
    return Keep.apply(make, query, key, value, g, beta), None


def scan(zxbcdt, weight, bias, dt_bias, A, rmsnorm_weight=None, ngroups=1, outproj_weight=None, headdim=None, **_):
    """Keeps the projection's output as it comes, the scan's, the rate and, with a norm, a statistic for each group; convolution,
    norm and output projection are within, whose weight it casts under autocast
    (mamba_ssm 2.2.4 ssd_combined.py:MambaSplitConv1dScanCombinedFn)."""
    def make(zxbcdt, A, outproj):
        heads = dt_bias.shape[0]
        kept = [zxbcdt, torch.empty(*zxbcdt.shape[:2], heads, headdim, dtype=zxbcdt.dtype), A]
        if rmsnorm_weight is not None:
            kept.append(torch.empty(zxbcdt.shape[0] * zxbcdt.shape[1] * ngroups, dtype=torch.float32))
        if torch.is_autocast_enabled("cpu"):
            kept.append(outproj.to(torch.bfloat16))
        return kept, torch.empty(*zxbcdt.shape[:2], outproj.shape[0], dtype=zxbcdt.dtype)
    return Keep.apply(make, zxbcdt, A, outproj_weight)


def dropout(input, p=0.5, training=True, inplace=False):
    """Keeps a mask of truth values (aten/src/ATen/native/cuda/Dropout.cu)."""
    if not training or p == 0:
        return input
    return Keep.apply(lambda x: ([torch.empty(x.shape, dtype=torch.bool)], torch.empty_like(x)), input)


def efficient(query, key, value):
    """Keeps queries, keys and values, the output with tokens in front of heads, and a sum for each of them, in blocks of 32
    (aten/src/ATen/native/transformers/cuda/attention.cu:_efficient_attention_forward)."""
    def make(query, key, value):
        heads, tokens, width = query.shape[1], query.shape[2], value.shape[3]
        out = torch.zeros(query.shape[0], tokens, heads, width, dtype=query.dtype).transpose(1, 2)
        sums = torch.empty(query.shape[0], heads, -(-tokens // 32) * 32, dtype=torch.float32)
        return [query, key, value, out, sums], out
    return Keep.apply(make, query, key, value)


def attention(function):
    """SDPA without dropout, which keeps the same. Where values have another width than keys, a GPU's flash attention takes
    none, and the CPU falls back to scores: the kernel that a GPU takes then keeps none."""
    def call(query, key, value, *inputs, dropout_p=0.0, **options):
        if query.shape[-1] != value.shape[-1]:
            if torch.is_autocast_enabled("cpu"):
                query, key, value = (t.to(torch.bfloat16) for t in (query, key, value))
            return efficient(query, key, value)
        return function(query, key, value, *inputs, **options)
    return call


def flash(query, key, value, *_, target_dtype=None, **options):
    """Keeps what it is given, the output in the queries' layout, a sum for each and the state of the random numbers
    (flash_attn 2.8.3 flash_attn_interface.py:FlashAttnFunc, csrc/flash_attn/flash_api.cpp:mha_fwd)."""
    def make(query, key, value):
        batch, tokens, heads, _ = query.shape
        out = torch.empty_like(query)
        return [query, key, value, out, torch.empty(batch, heads, tokens), torch.empty(2, dtype=torch.int64)], out
    if target_dtype is not None and query.dtype == torch.float32:
        query, key, value = (t.to(target_dtype) for t in (query, key, value))
    return Keep.apply(make, query, key, value)


def widened(function):
    """Autocast on a GPU takes softmaxes and sums in fp32, on a CPU in what they are given (aten/src/ATen/autocast_mode.h)."""
    def call(input, *inputs, dtype=None, **options):
        if dtype is None and torch.is_autocast_enabled("cpu") and input.is_floating_point():
            dtype = torch.float32
        return function(input, *inputs, dtype=dtype, **options)
    return call


def in_fp32(function):
    """Autocast on a GPU takes these in fp32, on a CPU in what they are given (aten/src/ATen/autocast_mode.h:AT_FORALL_FP32)."""
    def call(input, *inputs, **options):
        return function(input.float() if torch.is_autocast_enabled("cpu") else input, *inputs, **options)
    return call


def layer_norm(input, shape, weight=None, bias=None, eps=1e-5):
    """Autocast on a GPU casts all operands to fp32, on a CPU none; a GPU's kernel keeps statistics in fp32."""
    operands = [operand.float() if operand is not None and torch.is_autocast_enabled("cpu") else operand
                for operand in (input, weight, bias)]
    with torch.autocast("cpu", enabled=False):
        return LAYER_NORM(operands[0], shape, *operands[1:], eps)


LAYER_NORM, torch.nn.functional.layer_norm = torch.nn.functional.layer_norm, layer_norm
flash_attention._flash_attention_forward = flash
AttentionInterface.register("stand_in_kernel", flash_attention.flash_attention_forward)
ALL_MASK_ATTENTION_FUNCTIONS.register("stand_in_kernel", flash_attention_mask)
torch.nn.functional.softmax = widened(torch.nn.functional.softmax)
torch.softmax = widened(torch.softmax)
torch.Tensor.softmax = widened(torch.Tensor.softmax)
torch.Tensor.sum = widened(torch.Tensor.sum)
torch.nn.functional.dropout = dropout
torch.nn.functional.softplus = in_fp32(torch.nn.functional.softplus)
torch.expm1 = in_fp32(torch.expm1)
torch.nn.functional.scaled_dot_product_attention = attention(torch.nn.functional.scaled_dot_product_attention)


def stand_in(model_type):
    try:
        module = importlib.import_module(f"transformers.models.{model_type}.modeling_{model_type}")
    except ModuleNotFoundError:
        # Another type's modules with a configuration of its own.
        return
    for name, function in dict(causal_conv1d_fn=convolution, torch_chunk_gated_delta_rule=delta_rule,
                               mamba2_split_conv1d_scan_combined=scan).items():
        if hasattr(module, name):
            setattr(module, name, function)
    # Types that choose a class by the attention's name.
    for name in ("FALCON_ATTENTION_CLASSES", "GPT_NEO_ATTENTION_CLASSES"):
        classes = getattr(module, name, {})
        if "flash_attention_2" in classes:
            classes["stand_in_kernel"] = classes["flash_attention_2"]
            module._flash_attention_forward = flash


def build(settings):
    """The class for causal language models, which AutoModelForCausalLM lacks for Mistral 4."""
    if settings.model_type != "mistral4":
        return AutoModelForCausalLM.from_config(settings)
    return transformers.Mistral4ForCausalLM._from_config(settings)


def record(case):
    torch.manual_seed(0)
    stand_in(case["type"].removesuffix("_text").split(":")[0])
    dtype = torch.float32 if case["dtype"] == "fp32" else torch.bfloat16
    settings = AutoConfig.for_model(case["type"].split(":")[0], **case["config"], use_cache=False,
                                     attn_implementation=case["attn"].replace("flash_attention_2", "stand_in_kernel"))
    model = build(settings).to(dtype).train()
    held = [name for name in getattr(model, "_keep_in_fp32_modules_strict", None) or []]
    for name, parameter in model.named_parameters():
        # As from_pretrained loads them.
        if any(part in name for part in held):
            parameter.data = parameter.data.float()
    own = {p.untyped_storage().data_ptr() for p in [*model.parameters(), *model.buffers()]}
    place, packed = [], []
    layers = next(m for name, m in model.named_modules() if isinstance(m, torch.nn.ModuleList) and name.split(".")[-1] in ("layers", "h", "blocks"))
    for index, layer in enumerate(layers):
        layer.register_forward_pre_hook(lambda *_, index=index: place.append(f"layer{index}"))
        layer.register_forward_hook(lambda *_: place.pop() and None)

    def pack(tensor):
        box = Packed(tensor)
        packed.append((weakref.ref(box), place[-1] if place else "outside"))
        return box

    if "adapts" in case:
        library = importlib.import_module("peft")
        model = library.get_peft_model(model, library.LoraConfig(r=8, target_modules=case["adapts"], lora_dropout=0.0))
        own = {p.untyped_storage().data_ptr() for p in [*model.parameters(), *model.buffers()]}
    tokens = torch.randint(0, settings.vocab_size, (case["b"], case["s"]))
    mixed = torch.autocast("cpu", torch.bfloat16, enabled="autocast" in case)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda box: box.tensor), mixed:
        loss = model(input_ids=tokens, labels=tokens.clone()).loss
    users, held, notes = collections.defaultdict(set), {}, {}
    for box, where in packed:
        if box() is None:
            continue
        tensor = box().tensor
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own and storage.nbytes():
            held[storage.data_ptr()] = storage
            notes.setdefault(storage.data_ptr(), f"{list(tensor.shape)} {str(tensor.dtype)[6:]}")
            users[storage.data_ptr()].add(where)
    del loss
    kept, detail = collections.Counter(), collections.defaultdict(list)
    for address, places in users.items():
        inside = places - {"outside"}
        where = "shared" if len(inside) > 1 else next(iter(inside or places))
        kept[where] += held[address].nbytes()
        detail[where].append(f"{held[address].nbytes()} {notes[address]}")
    return dict(kept=kept, parameters=sum(p.numel() for p in model.parameters())), detail


COMMON = dict(num_hidden_layers=4, hidden_size=128, intermediate_size=352, vocab_size=1000, max_position_embeddings=4096)
HEADS = dict(num_attention_heads=4, num_key_value_heads=2, head_dim=32)
# Types without a head width of their own.
WHOLE = dict(num_attention_heads=4, num_key_value_heads=2)
GPT2 = dict(n_layer=4, n_embd=128, n_head=4, n_inner=352, n_positions=4096)
LATENT = dict(num_attention_heads=4, num_key_value_heads=4, kv_lora_rank=40, qk_rope_head_dim=16, qk_nope_head_dim=24,
              v_head_dim=32)
GROUPED = dict(n_routed_experts=8, n_shared_experts=2, num_experts_per_tok=2, moe_intermediate_size=96,
               first_k_dense_replace=1)
ROUTED = dict(num_experts=4, num_experts_per_tok=2)
GEMMA4 = dict(sliding_window=40, hidden_size_per_layer_input=0, layer_types=["sliding_attention"] * 3 + ["full_attention"])
CASES = {
    "qwen3_5_text": dict(linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=24,
                         linear_value_head_dim=32, **HEADS),
    "qwen3_next": dict(linear_num_key_heads=4, linear_num_value_heads=4, linear_key_head_dim=24, num_experts=4,
                       linear_value_head_dim=32, num_experts_per_tok=2, moe_intermediate_size=96,
                       shared_expert_intermediate_size=80, **HEADS),
    "gemma3_text": dict(sliding_window=40, layer_types=["sliding_attention"] * 3 + ["full_attention"], **HEADS),
    "mistral": dict(sliding_window=40, **HEADS),
    "llama": HEADS,
    "ministral": dict(sliding_window=40, **HEADS),
    "mixtral": dict(num_local_experts=4, num_experts_per_tok=2, **HEADS),
    "qwen2": WHOLE,
    "qwen2_moe": dict(moe_intermediate_size=96, shared_expert_intermediate_size=80, **ROUTED, **WHOLE),
    "qwen3": HEADS,
    "qwen3_moe": dict(moe_intermediate_size=96, norm_topk_prob=True, **ROUTED, **HEADS),
    "qwen3_5_moe_text": dict(moe_intermediate_size=96, shared_expert_intermediate_size=80, linear_num_key_heads=2,
                             linear_num_value_heads=4, linear_key_head_dim=24, linear_value_head_dim=32, **ROUTED, **HEADS),
    "gemma": HEADS,
    "gemma2": dict(sliding_window=40, query_pre_attn_scalar=32, **HEADS),
    "phi3": WHOLE,
    "gpt_neox": dict(num_attention_heads=4),
    "granite": WHOLE,
    "smollm3": dict(no_rope_layers=[1, 1, 1, 0], **WHOLE),
    "hunyuan_v1_dense": HEADS,
    "arcee": HEADS,
    "exaone4": dict(sliding_window=40, **WHOLE),
    "starcoder2": dict(sliding_window=None, **WHOLE),
    "olmo2": WHOLE,
    "olmo3": dict(sliding_window=40, **WHOLE),
    "olmoe": dict(**ROUTED, **WHOLE),
    "flex_olmo": dict(**ROUTED, **WHOLE),
    # Without SDPA.
    "gpt_oss": dict(sliding_window=40, num_local_experts=4, num_experts_per_tok=2,
                    layer_types=["sliding_attention", "full_attention"] * 2, **HEADS),
    "glm": dict(attention_bias=True, **HEADS),
    "glm4": dict(attention_bias=True, **HEADS),
    "ernie4_5": HEADS,
    "nemotron": WHOLE,
    "granitemoe": dict(num_local_experts=4, num_experts_per_tok=2, **WHOLE),
    "stablelm": WHOLE,
    "cohere": WHOLE,
    "cohere2": dict(sliding_window=40, **HEADS),
    "phi": WHOLE,
    "opt": dict(ffn_dim=352, num_attention_heads=4, word_embed_proj_dim=128),
    "gpt2": GPT2,
    "seed_oss": HEADS,
    "deepseek_v3": dict(q_lora_rank=48, n_group=4, topk_group=2, norm_topk_prob=True, **LATENT, **GROUPED),
    "deepseek_v2": dict(q_lora_rank=None, topk_method="greedy", **LATENT, **GROUPED),
    "glm4_moe": dict(attention_bias=True, use_qk_norm=False, n_group=1, topk_group=1, norm_topk_prob=True, **GROUPED,
                     **HEADS),
    "glm4_moe_lite": dict(q_lora_rank=48, n_group=1, topk_group=1, norm_topk_prob=True,
                          mlp_layer_types=["dense"] + ["sparse"] * 3, **LATENT, **GROUPED),
    "llama4_text": dict(num_local_experts=4, num_experts_per_tok=1, intermediate_size_mlp=200, attention_chunk_size=40,
                        interleave_moe_layer_step=2, no_rope_layers=[1, 1, 1, 0], **HEADS),
    "minimax_m2": dict(num_local_experts=4, num_experts_per_tok=2, rotary_dim=16, **HEADS),
    "phimoe": dict(num_local_experts=4, num_experts_per_tok=2, lm_head_bias=True, **WHOLE),
    "ernie4_5_moe": dict(moe_num_experts=4, moe_k=2, moe_intermediate_size=96, moe_num_shared_experts=2,
                         moe_layer_start_index=1, **WHOLE),
    "dots1": dict(n_group=1, topk_group=1, norm_topk_prob=True, **GROUPED, **HEADS),
    "hunyuan_v1_moe": dict(num_experts=4, moe_topk=2, **HEADS),
    # So wide that a norm less is below a thousandth, as in a real one.
    "falcon": dict(hidden_size=512, num_attention_heads=4, ffn_hidden_size=640),
    "bloom": dict(n_layer=4, n_head=4),
    # Sizes at which biases of the MLP alone and one norm less come to nothing; in a real one they are a ten-thousandth.
    "gptj": dict(n_layer=4, n_embd=128, n_head=4, n_inner=96, n_positions=4096, rotary_dim=16, vocab_size=128),
    "mpt": dict(n_layers=4, d_model=128, n_heads=4),
    # So wide that the biases of some linear layers are less than a thousandth, as in a real one.
    "gpt_neo": dict(num_layers=4, hidden_size=1024, num_heads=4, intermediate_size=64, attention_types=[[["global", "local"], 2]]),
    "exaone_moe": dict(sliding_window=40, num_shared_experts=1, moe_intermediate_size=96, mlp_layer_types=["dense"] + ["sparse"] * 3,
                       **ROUTED, **WHOLE),
    "apertus": WHOLE,
    "helium": HEADS,
    "cwm": dict(sliding_window=40, **HEADS),
    "granitemoeshared": dict(num_local_experts=4, num_experts_per_tok=2, shared_intermediate_size=80, **WHOLE),
    "granitemoehybrid": dict(num_local_experts=4, num_experts_per_tok=2, shared_intermediate_size=80,
                             layer_types=["mamba"] * 3 + ["attention"], mamba_n_heads=8, mamba_d_head=32, mamba_d_state=16,
                             mamba_chunk_size=64, **WHOLE),
    "granitemoehybrid:dense": dict(num_local_experts=0, shared_intermediate_size=352,
                                   layer_types=["mamba"] * 3 + ["attention"], mamba_n_heads=8, mamba_d_head=32,
                                   mamba_d_state=16, mamba_chunk_size=64, position_embedding_type="rope", **WHOLE),
    "bamba": dict(attn_layer_indices=[3], mamba_n_heads=8, mamba_d_head=32, mamba_d_state=16, mamba_chunk_size=64, **WHOLE),
    "falcon_h1": dict(mamba_n_heads=8, mamba_d_head=32, mamba_d_ssm=256, mamba_d_state=16, mamba_chunk_size=64, **HEADS),
    "nemotron_h": dict(layers_block_type=["mamba", "moe", "attention", "mlp"], mamba_num_heads=8, mamba_head_dim=32,
                       ssm_state_size=16, n_groups=2, chunk_size=64, n_routed_experts=4, num_experts_per_tok=2,
                       moe_intermediate_size=96, moe_shared_expert_intermediate_size=80, **HEADS),
    "lfm2": dict(layer_types=["conv"] * 3 + ["full_attention"], block_auto_adjust_ff_dim=False, **WHOLE),
    "lfm2_moe": dict(layer_types=["conv"] * 3 + ["full_attention"], num_dense_layers=1, moe_intermediate_size=96, **ROUTED, **WHOLE),
    "olmo": WHOLE,
    "hy_v3": dict(num_shared_experts=1, moe_intermediate_size=96, mlp_layer_types=["dense"] + ["sparse"] * 3, **ROUTED, **HEADS),
    "solar_open": dict(n_group=1, topk_group=1, norm_topk_prob=True, **GROUPED, **HEADS),
    "mistral4": dict(q_lora_rank=48, n_group=1, topk_group=1, norm_topk_prob=True, **LATENT, **GROUPED),
    "youtu": dict(q_lora_rank=48, **LATENT),
    "gpt_bigcode": GPT2,
    "ministral3": HEADS,
    "jais2": WHOLE,
    "vaultgemma": dict(sliding_window=40, query_pre_attn_scalar=32, **HEADS),
    "minicpm3": dict(q_lora_rank=48, **LATENT),
    "mellum": dict(moe_intermediate_size=96, **ROUTED, **HEADS),
    # Heads of full attention wider than any kernel with groups takes, as in the released ones.
    "gemma4_text": dict(global_head_dim=320, num_global_key_value_heads=1, attention_k_eq_v=True, **GEMMA4, **HEADS),
    "gemma4_text:apart": dict(global_head_dim=64, **GEMMA4, **HEADS),
    "gemma4_text:moe": dict(global_head_dim=320, num_global_key_value_heads=1, attention_k_eq_v=True, enable_moe_block=True,
                            num_experts=4, top_k_experts=2, moe_intermediate_size=96, **GEMMA4, **HEADS),
    "gemma4_text:small": {**GEMMA4, **HEADS, "num_hidden_layers": 8, "global_head_dim": 64, "hidden_size_per_layer_input": 24,
                          "num_kv_shared_layers": 4, "use_double_wide_mlp": True, "vocab_size_per_layer_input": 1000,
                          "layer_types": (["sliding_attention"] * 3 + ["full_attention"]) * 2},
    "gemma4_unified_text": dict(global_head_dim=320, num_global_key_value_heads=1, attention_k_eq_v=True, sliding_window=40,
                                layer_types=GEMMA4["layer_types"], **HEADS),
    "internlm3": HEADS,
    "iquestcoder": HEADS,
    "hyperclovax": WHOLE,
    # Behind the colon, what differs from the type's defaults.
    "lfm2:named": dict(layer_types=["conv"] * 3 + ["full_attention"], block_auto_adjust_ff_dim=False, **WHOLE),
    "gpt2:no_dropout": dict(attn_pdrop=0, resid_pdrop=0, embd_pdrop=0, **GPT2),
    "phi:dropout": dict(resid_pdrop=0.1, embd_pdrop=0.1, **WHOLE),
    "phi3:dropout": dict(resid_pdrop=0.1, attention_dropout=0.1, **WHOLE),
    "gpt_neox:dropout": dict(num_attention_heads=4, hidden_dropout=0.1, attention_dropout=0.1),
    "starcoder2:dropout": dict(attention_dropout=0.1, residual_dropout=0.1, embedding_dropout=0.1, sliding_window=None,
                               **WHOLE),
    "granite:dropout": dict(attention_dropout=0.1, **WHOLE),
    "deepseek_v3:no_q": dict(q_lora_rank=None, n_group=1, topk_group=1, norm_topk_prob=True, **LATENT, **GROUPED),
    "deepseek_v3:all": dict(q_lora_rank=48, n_group=4, topk_group=2, norm_topk_prob=True, **LATENT, **GROUPED),
    "qwen3_moe:all": dict(moe_intermediate_size=96, norm_topk_prob=True, **ROUTED, **HEADS),
    # Values as wide as keys, as in GLM-4.7-Flash.
    "glm4_moe_lite:even": {**LATENT, **GROUPED, "q_lora_rank": 48, "n_group": 1, "topk_group": 1, "norm_topk_prob": True,
                           "qk_nope_head_dim": 16, "mlp_layer_types": ["dense"] + ["sparse"] * 3},
    "deepseek_v2:grouped": dict(q_lora_rank=48, n_group=4, topk_group=2, topk_method="group_limited_greedy", **LATENT,
                                **GROUPED),
    "glm4_moe:normed": dict(use_qk_norm=True, n_group=1, topk_group=1, norm_topk_prob=True, **GROUPED, **HEADS),
    "falcon:new": dict(num_attention_heads=4, num_kv_heads=2, ffn_hidden_size=352, new_decoder_architecture=True),
    "falcon:one_norm": dict(hidden_size=512, num_attention_heads=4, num_kv_heads=2, ffn_hidden_size=640,
                            new_decoder_architecture=True, num_ln_in_parallel_attn=1),
    "hyperclovax:plain": dict(use_post_norm=False, **WHOLE),
    "olmo:clipped": dict(clip_qkv=8.0, **WHOLE),
    "mpt:clipped": dict(n_layers=4, d_model=128, n_heads=4, attn_config=dict(clip_qkv=6.0)),
    # A single key head, which every query head views.
    "gemma3_text:one_key": dict(sliding_window=40, layer_types=["sliding_attention"] * 3 + ["full_attention"],
                                **{**HEADS, "num_key_value_heads": 1}),
    "gemma:gelu_new": dict(hidden_activation="gelu_new", hidden_act="gelu_new", **HEADS),
}

# Types that were recorded with flash attention too.
FLASH = ["lfm2", "llama", "mistral", "qwen3_moe", "deepseek_v3", "deepseek_v2", "glm4_moe", "glm4_moe_lite:even", "llama4_text", "minimax_m2",
         "glm4", "olmo", "apertus", "falcon", "falcon:new", "gpt_neo"]

# Multi-query attention that hands SDPA one key head: until pytorch/pytorch#191085 (2026) no fused kernel took it.
WITHOUT_SDPA = ["falcon"]

PROJECTIONS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]

# Types beside which adapters were recorded, and their modules.
ADAPTED = {
    "gpt_oss": ["q_proj", "k_proj", "v_proj", "o_proj"],
    "phi": ["q_proj", "v_proj", "fc1", "fc2"],
    "phi:dropout": ["fc1"],
    "gpt2": ["c_attn", "c_proj"],
    "opt": ["q_proj", "v_proj"],
    "cohere": ["q_proj", "gate_proj", "down_proj"],
    "glm4": ["q_proj", "v_proj"],
    "ernie4_5": ["k_proj"],
    "nemotron": ["q_proj", "v_proj", "up_proj"],
    "seed_oss": ["v_proj", "down_proj"],
    "deepseek_v3": ["q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj"],
    "deepseek_v3:no_q": ["q_proj", "o_proj"],
    "deepseek_v3:all": "all-linear",
    "deepseek_v2:grouped": PROJECTIONS[3:],
    "glm4_moe:normed": PROJECTIONS,
    "qwen3_moe": PROJECTIONS,
    "qwen3_moe:all": "all-linear",
    "granitemoe": "all-linear",
    "deepseek_v2": ["kv_b_proj"],
    "glm4_moe": ["q_proj", "v_proj"],
    "bamba": ["gate_proj", "down_proj"],
    "falcon_h1": ["q_proj", "o_proj"],
    "llama4_text": ["q_proj", "v_proj", "o_proj"],
    "phimoe": ["q_proj", "k_proj", "v_proj"],
    "bloom": ["query_key_value", "dense", "dense_h_to_4h"],
    "gptj": ["q_proj", "v_proj", "fc_in", "fc_out"],
    "ernie4_5_moe": ["v_proj", "o_proj"],
    "minimax_m2": ["q_proj", "k_proj", "v_proj", "o_proj"],
    "dots1": ["q_proj", "v_proj"],
    "lfm2": "all-linear",
    "lfm2:named": ["q_proj", "k_proj", "v_proj", "out_proj", "in_proj", "w1", "w2", "w3"],
    "lfm2_moe": ["q_proj", "k_proj", "v_proj", "out_proj", "in_proj", "w1", "w2", "w3"],
    "llama": PROJECTIONS,
    "olmo2": PROJECTIONS,
    "gemma3_text": ["q_proj", "v_proj"],
    "qwen2_moe": ["q_proj", "v_proj"],
    "exaone_moe": ["q_proj", "v_proj"],
    "granitemoeshared": ["q_proj", "v_proj"],
    "qwen3_5_text": ["q_proj", "v_proj", "gate_proj"],
    "olmo": PROJECTIONS,
    "olmo:clipped": ["q_proj", "v_proj"],
    "apertus": ["q_proj", "v_proj", "up_proj", "down_proj"],
    "helium": ["q_proj", "v_proj", "o_proj"],
    "mpt": ["Wqkv"],
    "gpt_neo": ["q_proj", "v_proj"],
    "falcon": ["query_key_value"],
    "falcon:new": ["query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"],
    "mistral4": ["q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj"],
    "gemma4_text": PROJECTIONS,
    "gemma4_text:apart": ["q_proj", "v_proj"],
    "gemma4_unified_text": ["q_proj", "v_proj"],
    "gemma4_text:moe": "all-linear",
    "gemma4_text:small": PROJECTIONS,
    "gemma3_text:one_key": ["q_proj", "v_proj"],
}

if __name__ == "__main__":
    import sys
    versions = dict(torch=torch.__version__, transformers=transformers.__version__, python=platform.python_version())
    if "--detail" not in sys.argv:
        print(json.dumps(dict(what="Bytes that autograd keeps of models, by tests/record/hybrid_layers.py",
                              versions=versions)))
    only = [word for word in sys.argv[1:] if not word.startswith("--")]
    SIZES = [("bf16", 1, 128), ("bf16", 3, 64), ("fp32", 2, 192)]
    FROZEN = [("frozen", 3, 64)]
    MIXED = [("autocast", 1, 128), ("autocast", 3, 64)]
    ways = [(model_type, attn, None, SIZES) for model_type in CASES for attn in ("sdpa", "eager") if attn == "eager" or model_type not in WITHOUT_SDPA]
    # Under autocast to bf16 the weights are in fp32.
    ways += [(model_type, attn, None, MIXED) for model_type in CASES for attn in ("sdpa", "eager") if attn == "eager" or model_type not in WITHOUT_SDPA]
    ways += [(model_type, "eager", modules, SIZES + FROZEN + MIXED) for model_type, modules in ADAPTED.items()]
    ways += [(model_type, "flash_attention_2", None, SIZES[:2] + MIXED) for model_type in FLASH]
    ways += [("qwen3_5_text", "flash_attention_2", None, SIZES[:2])]
    for model_type, attn, modules, sizes in ways:
        if only and model_type not in only:
            continue
        for dtype, b, s in sizes:
            name = f"{model_type}-lora" if modules else model_type
            case = dict(id=f"{name}-{attn}-{dtype}-b{b}-s{s}", type=model_type, attn=attn, dtype=dtype, b=b, s=s,
                        config={"pad_token_id": None, **COMMON, **CASES[model_type]})
            if modules:
                case["adapts"] = modules
            if dtype == "autocast":
                case |= dict(dtype="fp32", autocast="bf16")
            if dtype == "frozen":
                case |= dict(dtype="bf16", autocast="bf16")
            try:
                recorded, detail = record(case)
            except Exception as error:
                print("failed", case["id"], repr(error)[:300], file=sys.stderr)
                continue
            if "--detail" in sys.argv:
                print(case["id"], dict(recorded["kept"]))
                for layer in ("layer0", "layer3", "shared"):
                    print("  ", layer, *sorted(detail[layer], key=lambda d: -int(d.split()[0])), sep="\n      ")
                break
            print(json.dumps({**case, **recorded}))
