"""Records what autograd keeps of models of transformers, type by type and layer by layer, on a CPU.

    pip install torch==2.15.0 transformers==5.23.0 peft==0.21.2
    python hybrid_layers.py > ../data/activations/hybrid.jsonl

Dropout on a GPU keeps a mask of one byte an element, and SDPA's kernels keep none at all, only the state of random
numbers; a CPU keeps noise in the type of what it drops. Stand-ins keep what a GPU does.
The kernels of flash-linear-attention and causal-conv1d need a GPU. Stand-ins take their place that keep what the
packages' sources say theirs keep (fla-core 0.6.0 ChunkGatedDeltaRuleFunction, causal-conv1d CausalConv1dFn); everything
around them is transformers' own. Every tensor that autograd
packs is taken once per storage, parameters left out, and counted to the layer whose forward packs it first.
"""

import collections
import importlib
import json
import platform

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM

CHUNK = 64


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


def dropout(input, p=0.5, training=True, inplace=False):
    """Keeps a mask of truth values (aten/src/ATen/native/cuda/Dropout.cu)."""
    if not training or p == 0:
        return input
    return Keep.apply(lambda x: ([torch.empty(x.shape, dtype=torch.bool)], torch.empty_like(x)), input)


def attention(function):
    """SDPA without dropout, which keeps the same."""
    def call(*inputs, dropout_p=0.0, **options):
        return function(*inputs, **options)
    return call


torch.nn.functional.dropout = dropout
torch.nn.functional.scaled_dot_product_attention = attention(torch.nn.functional.scaled_dot_product_attention)


def stand_in(model_type):
    module = importlib.import_module(f"transformers.models.{model_type}.modeling_{model_type}")
    for name, function in dict(causal_conv1d_fn=convolution, torch_chunk_gated_delta_rule=delta_rule).items():
        if hasattr(module, name):
            setattr(module, name, function)


def record(case):
    torch.manual_seed(0)
    stand_in(case["type"].removesuffix("_text").split(":")[0])
    dtype = torch.float32 if case["dtype"] == "fp32" else torch.bfloat16
    settings = AutoConfig.for_model(case["type"].split(":")[0], **case["config"], use_cache=False, attn_implementation=case["attn"])
    model = AutoModelForCausalLM.from_config(settings).to(dtype).train()
    own = {p.untyped_storage().data_ptr() for p in [*model.parameters(), *model.buffers()]}
    place, users, held, notes = [], collections.defaultdict(set), {}, {}
    layers = next(m for name, m in model.named_modules() if isinstance(m, torch.nn.ModuleList) and name.split(".")[-1] in ("layers", "h", "blocks"))
    for index, layer in enumerate(layers):
        layer.register_forward_pre_hook(lambda *_, index=index: place.append(f"layer{index}"))
        layer.register_forward_hook(lambda *_: place.pop() and None)

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own and storage.nbytes():
            held[storage.data_ptr()] = storage
            notes.setdefault(storage.data_ptr(), f"{list(tensor.shape)} {str(tensor.dtype)[6:]}")
            users[storage.data_ptr()].add(place[-1] if place else "outside")
        return tensor

    if "adapts" in case:
        library = importlib.import_module("peft")
        model = library.get_peft_model(model, library.LoraConfig(r=8, target_modules=case["adapts"], lora_dropout=0.0))
        own = {p.untyped_storage().data_ptr() for p in [*model.parameters(), *model.buffers()]}
    tokens = torch.randint(0, settings.vocab_size, (case["b"], case["s"]))
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        model(input_ids=tokens, labels=tokens.clone()).loss
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
ROUTED = dict(num_experts=4, num_experts_per_tok=2)
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
    # Behind the colon, what differs from the type's defaults.
    "gpt2:no_dropout": dict(attn_pdrop=0, resid_pdrop=0, embd_pdrop=0, **GPT2),
    "phi:dropout": dict(resid_pdrop=0.1, embd_pdrop=0.1, **WHOLE),
    "phi3:dropout": dict(resid_pdrop=0.1, attention_dropout=0.1, **WHOLE),
    "gpt_neox:dropout": dict(num_attention_heads=4, hidden_dropout=0.1, attention_dropout=0.1),
    "starcoder2:dropout": dict(attention_dropout=0.1, residual_dropout=0.1, embedding_dropout=0.1, sliding_window=None,
                               **WHOLE),
    "granite:dropout": dict(attention_dropout=0.1, **WHOLE),
    "gemma:gelu_new": dict(hidden_activation="gelu_new", hidden_act="gelu_new", **HEADS),
}

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
}

if __name__ == "__main__":
    import sys
    versions = dict(torch=torch.__version__, transformers=transformers.__version__, python=platform.python_version())
    if "--detail" not in sys.argv:
        print(json.dumps(dict(what="Bytes that autograd keeps of models, by tests/record/hybrid_layers.py",
                              versions=versions)))
    ways = [(model_type, attn, None) for model_type in CASES for attn in ("sdpa", "eager")]
    ways += [(model_type, "eager", modules) for model_type, modules in ADAPTED.items()]
    for model_type, attn, modules in ways:
        for dtype, b, s in [("bf16", 1, 128), ("bf16", 3, 64), ("fp32", 2, 192)]:
            name = f"{model_type}-lora" if modules else model_type
            case = dict(id=f"{name}-{attn}-{dtype}-b{b}-s{s}", type=model_type, attn=attn, dtype=dtype, b=b, s=s,
                        config={"pad_token_id": None, **COMMON, **CASES[model_type]})
            if modules:
                case["adapts"] = modules
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
