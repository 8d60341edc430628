"""Records what unsloth's own autograd functions keep of small layers, on a CPU.

    pip install torch==2.15.0
    git clone https://github.com/unslothai/unsloth && git -C unsloth checkout 015bdef0d94a
    git clone https://github.com/unslothai/unsloth-zoo && git -C unsloth-zoo checkout ce232d6cef9c
    python unsloth_layers.py unsloth unsloth-zoo > ../data/activations/unsloth.jsonl

The functions are unsloth's (`kernels/fast_lora.py`, `rms_layernorm.py`, `rope_embedding.py`, `fused_losses/cross_entropy_loss.py`),
run as `models/llama.py:LlamaDecoderLayer_fast_forward`, `models/qwen3.py`, `models/gemma.py` and `models/gemma2.py` run them. Gemma 2's
capped scores are `kernels/flex_attention.py:slow_attention_softcapping`, compiled by AOTAutograd with Inductor's decompositions, so that its
partitioner decides what is kept, and without code generated (an H200's Inductor kept the same). What needs a GPU has a stand-in: Triton's
kernels do nothing (what is kept depends on shapes alone), a product with an adapter is two plain ones, and attention is a function
that keeps what xFormers' keeps with flash attention (`xformers/ops/fmha/__init__.py:_fMHA`): queries, keys and values, its output,
the log-sum-exp of each row and head, and the state of the random numbers. Storages are counted once; parameters and buffers are not.
"""

import collections
import itertools
import json
import pathlib
import sys
import types

import torch
import torch._dynamo.variables.higher_order_ops  # looks for Triton, so before its stand-in
import torch._inductor.utils

RANK = 8
COMPILE = torch.compile


class Anything(types.ModuleType):
    """A module whose every name is something that can be called, indexed and used as a decorator."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Kernel()


class Kernel:
    """A Triton kernel, or a decorator of one, that does nothing."""

    def __call__(self, *args, **keywords):
        return self

    def __getitem__(self, grid):
        return lambda *args, **keywords: None

    def __getattr__(self, name):
        return self

    def __setitem__(self, name, value):
        pass


class Device:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


def product(x, weight, quant_state, a, b, scale, out=None):
    result = x @ weight.t()
    return result if a is None else result + scale * (x @ a.t().to(x.dtype)) @ b.t().to(x.dtype)


def stand_ins():
    for name in ["triton", "triton.language", "unsloth_zoo", "unsloth_zoo.temporary_patches"]:
        sys.modules[name] = Anything(name)
    sys.modules["triton"].language = sys.modules["triton.language"]
    common = types.ModuleType("unsloth_zoo.temporary_patches.common")
    common.UNSLOTH_ENABLE_LOGGING, common.torch_compile_options, common.logger = False, {}, None
    sys.modules["unsloth_zoo.temporary_patches.common"] = common
    device = types.ModuleType("unsloth_zoo.device_type")
    device.DEVICE_TYPE = "cuda"
    sys.modules["unsloth_zoo.device_type"] = device
    package = types.ModuleType("kernels")
    package.__path__ = []
    sys.modules["kernels"] = package
    sys.modules["device_type"] = Anything("device_type")
    sys.modules["device_type"].DEVICE_COUNT = 1
    utils = Anything("kernels.utils")
    utils.matmul_lora, utils.fast_dequantize = product, lambda weight, *rest, **named: weight
    utils.torch_amp_custom_fwd = utils.torch_amp_custom_bwd = lambda function: function
    utils._maybe_fake_quantize_activations = lambda x, module: x
    utils.calculate_settings = lambda columns: (columns, 4)
    utils.torch_gpu_device = lambda device: Device()
    sys.modules["kernels.utils"] = utils
    for name in ["swiglu", "geglu"]:
        sys.modules[f"kernels.{name}"] = Anything(f"kernels.{name}")


def gradient(function, argnums, has_aux):
    """`torch.func.grad_and_value`, which cannot run where kept tensors are watched."""
    return lambda *given, **named: (tuple(torch.empty_like(given[at]) for at in argnums), (torch.zeros(()), (torch.zeros(()),)))


def load(path, name):
    """A file of unsloth's as a module."""
    text = pathlib.Path(path).read_text()
    text = text.replace("from ..device_type import", "from device_type import")
    text = text.replace("from transformers.models.llama.modeling_llama import logger", "logger = None")
    # The patch of transformers' classes is not needed.
    text = text.split("from transformers.models.llama.modeling_llama import LlamaRMSNorm")[0]
    module = types.ModuleType(name)
    module.__package__ = name.rpartition(".")[0]
    module.__file__ = str(path)
    sys.modules[name] = module
    exec(compile(text, str(path), "exec"), module.__dict__)
    return module


class Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        b, s, a, _ = q.shape
        out, sums = torch.empty_like(q), torch.empty(b, a, s, dtype=torch.float32)
        ctx.save_for_backward(q, k, v, out, sums, torch.empty(2, dtype=torch.int64))
        return out


class Layer:
    """The weights of a layer, frozen, and adapters in fp32."""

    def __init__(self, case):
        h, f, wide, narrow = case["h"], case["f"], case["a"] * case["d"], case["k"] * case["d"]
        shapes = dict(q=(wide, h), k=(narrow, h), v=(narrow, h), o=(h, wide), gate=(f, h), up=(f, h), down=(h, f))
        self.parts = {name: self.part(*shape) for name, shape in shapes.items()}
        self.norms = {name: self.norm(size) for name, size in dict(first=h, second=h, q=case["d"], k=case["d"], post=h, last=h).items()}
        self.mask = torch.zeros(case["s"], case["s"], dtype=torch.bfloat16)

    @staticmethod
    def part(outer, inner):
        weight = torch.empty(outer, inner, dtype=torch.bfloat16)
        a, b = torch.zeros(RANK, inner, requires_grad=True), torch.zeros(outer, RANK, requires_grad=True)
        return weight, None, a, b, 1.0

    @staticmethod
    def norm(size):
        return types.SimpleNamespace(weight=torch.ones(size, dtype=torch.bfloat16), variance_epsilon=1e-5)

    def own(self):
        tensors = [t for part in self.parts.values() for t in part if torch.is_tensor(t)]
        return tensors + [self.mask] + [norm.weight for norm in self.norms.values()]


def without_kernels(function=None, **keywords):
    """torch.compile without a compiler of kernels."""
    if function is None:
        return lambda function: without_kernels(function, **keywords)
    keywords.pop("options", None)
    return COMPILE(function, **keywords, backend="aot_eager_decomp_partition")


def forward(layer, x, case, lora, norms, rope, tables, capped):
    """`LlamaDecoderLayer_fast_forward` and `LlamaAttention_fast_forward`; with norms of heads, `Qwen3Attention_fast_forward`; with
    norms by one more than their weights, `GemmaDecoderLayer_fast_forward`, whose MLP differs by its kernel alone; with norms behind attention
    and MLP and capped scores, `Gemma2DecoderLayer_fast_forward`."""
    b, s, a, k, d = (case[key] for key in "bsakd")
    part, gemma, two = layer.parts, case["arch"].startswith("gemma"), case["arch"] == "gemma2"
    y = norms.fast_rms_layernorm(layer.norms["first"], x, gemma=gemma)
    q, key, v = lora.LoRA_QKV.apply(y, *part["q"], *part["k"], *part["v"], True)
    del y
    if case["arch"] == "qwen3":
        q = norms.fast_rms_layernorm(layer.norms["q"], q.view(b, s, a, d)).transpose(1, 2)
        key = norms.fast_rms_layernorm(layer.norms["k"], key.view(b, s, k, d)).transpose(1, 2)
    else:
        q, key = q.view(b, s, a, d).transpose(1, 2), key.view(b, s, k, d).transpose(1, 2)
    v = v.view(b, s, k, d).transpose(1, 2)
    q, key = rope.fast_rope_embedding(q, key, *tables)
    if two:
        config = types.SimpleNamespace(num_attention_heads=a, num_key_value_heads=k, query_pre_attn_scalar=d, attn_logit_softcapping=50.0)
        own = types.SimpleNamespace(config=config, head_dim=d, num_key_value_groups=a // k)
        out = capped.slow_attention_softcapping(q, key, v, layer.mask, own, b, s)
        del q, key, v
        x = x + norms.fast_rms_layernorm(layer.norms["post"], lora.LoRA_W.apply(out, *part["o"]), gemma=True)
        y = norms.fast_rms_layernorm(layer.norms["second"], x, gemma=True)
        y = lora.LoRA_MLP.apply(y, *part["gate"], *part["up"], *part["down"], lambda e, g: torch.empty_like(e), None, True)
        return x + norms.fast_rms_layernorm(layer.norms["last"], y, gemma=True)
    q, key, v = q.transpose(1, 2), key.transpose(1, 2), v.transpose(1, 2)
    if a != k:
        key, v = (t.view(b, s, k, 1, d).expand(b, s, k, a // k, d).reshape(b, s, a, d) for t in (key, v))
    out = Attention.apply(q, key, v).reshape(b, s, a * d)
    del q, key, v
    x = x + lora.LoRA_W.apply(out, *part["o"])
    y = norms.fast_rms_layernorm(layer.norms["second"], x, gemma=gemma)
    gate = lambda e, g: torch.empty_like(e)
    return x + lora.LoRA_MLP.apply(y, *part["gate"], *part["up"], *part["down"], gate, None, True)


def record(case, lora, norms, rope, capped, losses):
    # Gemma's are in fp32 (`gemma.py:FastGemmaModel.post_patch`).
    rotated = torch.float32 if case["arch"].startswith("gemma") else torch.bfloat16
    tables = [torch.ones(2 * case["s"], case["d"], dtype=rotated) for _ in range(2)]
    layers = [Layer(case) for _ in range(case["layers"])]
    trains = case.get("trains", False)
    head = torch.empty(case["V"], case["h"], dtype=torch.bfloat16, requires_grad=trains)
    words = torch.empty(case["V"], case["h"], dtype=torch.bfloat16, requires_grad=trains)
    last = Layer.norm(case["h"])
    own = {t.untyped_storage().data_ptr() for layer in layers for t in layer.own()}
    own |= {t.untyped_storage().data_ptr() for t in [head, words, last.weight, *tables]}
    place, users, held = [], collections.defaultdict(set), {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own and storage.nbytes():
            held[storage.data_ptr()] = storage
            users[storage.data_ptr()].add(place[-1])
        return tensor

    # The embedding's output, which is made to require a gradient; Gemma's is scaled in place before (`llama.py:LlamaModel_fast_forward`).
    x = torch.zeros(case["b"], case["s"], case["h"], dtype=torch.bfloat16, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        if trains:
            place.append("outside")
            x = torch.nn.functional.embedding(torch.zeros(case["b"], case["s"], dtype=torch.int64), words)
        for index, layer in enumerate(layers):
            place.append(f"layer{index}")
            x = forward(layer, x, case, lora, norms, rope, tables, capped)
        place.append("outside")
        x = norms.fast_rms_layernorm(last, x, gemma=case["arch"].startswith("gemma"))
        labels = torch.zeros(case["b"], case["s"], dtype=torch.int64)
        losses.UnslothFusedLoss.apply(losses.compute_fused_ce_loss, x, head, None, labels, None, None, None, True, None, False,
                                      False, dict(n_chunks=1))
    kept = collections.Counter()
    for address, places in users.items():
        kept["shared" if len(places) > 1 else next(iter(places))] += held[address].nbytes()
    return dict(kept=kept)


def cases():
    for arch, (b, s) in itertools.product(["llama", "mha", "qwen3", "gemma", "gemma2"], [(1, 64), (2, 160)]):
        h, a, k, d, f = dict(llama=(128, 8, 2, 16, 384), mha=(128, 4, 4, 32, 256), qwen3=(128, 4, 2, 64, 256),
                             gemma=(128, 4, 1, 64, 512), gemma2=(128, 4, 2, 64, 512))[arch]
        yield dict(id=f"{arch}-b{b}-s{s}", arch=arch, b=b, s=s, h=h, a=a, k=k, d=d, f=f, V=1024, layers=3)
    # Copies of embedding and output layer train (`modules_to_save`), which unsloth leaves in 16 bits where that is bf16.
    for b, s in [(1, 64), (2, 160)]:
        yield dict(id=f"ends-b{b}-s{s}", arch="llama", b=b, s=s, h=128, a=8, k=2, d=16, f=384, V=1024, layers=3, trains=True)


if __name__ == "__main__":
    unsloth, zoo = map(pathlib.Path, sys.argv[1:3])
    # Loads what looks for Triton, so before its stand-in.
    without_kernels(lambda x: x + 1)(torch.ones(1, requires_grad=True))
    stand_ins()
    torch.func.grad_and_value = gradient
    kernels = unsloth / "unsloth" / "kernels"
    parts = [load(kernels / f"{name}.py", f"kernels.{name}") for name in ["fast_lora", "rms_layernorm", "rope_embedding"]]
    torch.compile = without_kernels
    parts.append(load(kernels / "flex_attention.py", "kernels.flex_attention"))
    torch.compile = COMPILE
    parts.append(load(zoo / "unsloth_zoo" / "fused_losses" / "cross_entropy_loss.py", "losses"))
    print(json.dumps(dict(what="Bytes that unsloth's autograd functions keep of a model of three layers, recorded on a CPU by unsloth_layers.py",
                          versions=dict(torch=torch.__version__, unsloth="015bdef0d94a", unsloth_zoo="ce232d6cef9c")), separators=(",", ":")))
    for case in cases():
        print(json.dumps({**case, **record(case, *parts)}, separators=(",", ":")))
