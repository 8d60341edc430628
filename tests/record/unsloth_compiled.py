"""Records what a decoder layer keeps that unsloth compiles as one region, on a CPU.

    pip install torch==2.15.0 transformers==5.23.0 peft==0.21.2 trl==1.16.0 bitsandbytes==0.50.2
    pip install --no-deps unsloth==2026.10.9 unsloth_zoo==2026.10.9
    UNSLOTH_ALLOW_CPU=1 python unsloth_compiled.py > ../data/activations/unsloth_compiled.jsonl

The modules are those that `unsloth_zoo.compiler.unsloth_compile_transformers` writes of transformers', with its patches, beside PEFT's
adapters under autocast; each layer is compiled as `unsloth/models/_block_compile.py:patch_block_compile` compiles it on a GPU, with
lengths that differ. AOTAutograd decides what is kept, with Inductor's decompositions (`aot_eager_decomp_partition`); no code is
generated. What needs a GPU has none here: attention is PyTorch's own for a CPU, whose output is copied for the projection behind it
(a CUDA kernel's has the layout already). Gemma 3's patched attention breaks the graph there, where a GPU's flex attention does not:
of what follows the partitioner keeps the layer's input or, at the same price, the stream behind attention. Quantized weights are bitsandbytes' own. Storages are counted once; weights, and what is
kept of more than one layer (cosines, sines), are not.
"""

import collections
import contextlib
import importlib
import io
import itertools
import json
import os
import sys
import tempfile

os.environ["UNSLOTH_IS_PRESENT"] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("UNSLOTH_COMPILE_LOCATION", tempfile.mkdtemp(prefix="unsloth_compiled_"))

import torch

COMPILE = torch.compile
BACKEND = "aot_eager_decomp_partition"


def plain(function=None, **keywords):
    """torch.compile without a compiler of kernels."""
    for name in ("options", "mode"):
        keywords.pop(name, None)
    if function is None:
        return lambda function: plain(function, **keywords)
    return COMPILE(function, **(keywords | dict(backend=BACKEND)))


torch.compile = plain

with contextlib.redirect_stdout(sys.stderr):
    import bitsandbytes
    import peft
    import transformers
    import unsloth_zoo
    from unsloth_zoo import compiler
    from unsloth_zoo.temporary_patches import common
    from unsloth_zoo.temporary_patches.utils import UNSLOTH_DECODE_COMPILE

RANK = 8
ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
# Family: its module in transformers, its model and its settings, and words of the names of its patches.
FAMILIES = dict(
    gemma3=("gemma3", "Gemma3TextModel", "Gemma3TextConfig", "Gemma3"),
    qwen2_vl=("qwen2_vl", "Qwen2VLTextModel", "Qwen2VLTextConfig", "qwen2_vl"),
    qwen2_5_vl=("qwen2_5_vl", "Qwen2_5_VLTextModel", "Qwen2_5_VLTextConfig", "qwen2_5_vl"),
    qwen3_vl=("qwen3_vl", "Qwen3VLTextModel", "Qwen3VLTextConfig", "qwen3_vl"),
)


def patch(words):
    for function in common.TEMPORARY_PATCHES:
        if words.lower() in function.__name__.lower() or "linear4bit" in function.__name__.lower():
            function()


def built(case):
    half = getattr(torch, case.get("half", "bfloat16"))
    family, model, settings, words = FAMILIES[case["arch"]]
    patch(words)
    compiler.unsloth_compile_transformers(family)
    patch(words)
    modeling = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
    config = getattr(importlib.import_module(f"transformers.models.{family}.configuration_{family}"), settings)
    more = dict(layer_types=["full_attention"] * case["layers"], sliding_window=64) if family == "gemma3" else {}
    if family in ("qwen2_vl", "qwen2_5_vl", "qwen3_vl"):
        part = case["d"] // 8
        more = dict(rope_parameters=dict(rope_type="default", rope_theta=1e6, mrope_section=[2 * part, part, part]))
    config = config(hidden_size=case["h"], intermediate_size=case["f"], num_attention_heads=case["a"], num_key_value_heads=case["k"], head_dim=case["d"],
                    vocab_size=case["V"], num_hidden_layers=case["layers"], max_position_embeddings=4096, attn_implementation="sdpa", **more)
    model = getattr(modeling, model)(config).to(half)
    if case["nf4"]:
        for name, linear in list(model.named_modules()):
            if isinstance(linear, torch.nn.Linear):
                parent, _, last = name.rpartition(".")
                four = bitsandbytes.nn.Linear4bit(linear.in_features, linear.out_features, bias=linear.bias is not None, compute_dtype=half, quant_type="nf4")
                four.weight = bitsandbytes.nn.Params4bit(linear.weight.data, requires_grad=False, quant_type="nf4")
                four.bias = linear.bias
                setattr(model.get_submodule(parent), last, four.to("cpu"))
    model = peft.get_peft_model(model, peft.LoraConfig(r=RANK, target_modules=case["targets"]))
    for name, weight in model.named_parameters():
        weight.requires_grad_("lora" in name)
        if "lora" in name or "norm" in name and os.environ.get("UNSLOTH_HIGH_PRECISION_LAYERNORM") == "1":
            weight.data = weight.data.float()
    model.enable_input_require_grads()
    return model.train()


def own(model):
    tensors = list(model.parameters()) + list(model.buffers())
    for module in model.modules():
        state = getattr(getattr(module, "weight", None), "quant_state", None)
        while state is not None:
            tensors += [t for t in (state.absmax, state.code, state.offset) if t is not None]
            state = state.state2
    return {tensor.untyped_storage().data_ptr() for tensor in tensors}


def record(case):
    torch._dynamo.reset()
    torch.manual_seed(0)
    with contextlib.redirect_stdout(sys.stderr):
        model = built(case)
    layers = model.base_model.model.layers
    kind = type(layers[0])
    stock = kind.forward
    kind.forward = COMPILE(stock, fullgraph=False, dynamic=None, backend=BACKEND)
    UNSLOTH_DECODE_COMPILE[0] = True
    place, held, users = ["outside"], {}, collections.defaultdict(set)
    weights = own(model)

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights and storage.nbytes():
            held[storage.data_ptr()] = storage
            users[storage.data_ptr()].add(place[-1])
        return tensor

    hooks = [hook for index, layer in enumerate(layers) for hook in (
        layer.register_forward_pre_hook(lambda module, _, index=index: place.append(f"layer{index}")),
        layer.register_forward_hook(lambda *_: place.pop() and None))]

    half = getattr(torch, case.get("half", "bfloat16"))

    def run(tokens, masked):
        ids = torch.randint(0, case["V"], (case["b"], tokens))
        mask = torch.ones_like(ids)
        mask[:, : 3 * masked] = 0
        with torch.autocast("cpu", half):
            return model(input_ids=ids, attention_mask=mask if masked else None, use_cache=False)[0]

    for tokens in (case["s"] // 2 + 16, case["s"], case["s"] + 32):
        run(tokens, case["masked"]).float().sum().backward()
    held.clear(), users.clear()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        run(case["s"], case["masked"])
    kind.forward = stock
    kept = collections.Counter()
    for address, places in users.items():
        kept["shared" if len(places) > 1 else next(iter(places))] += held[address].nbytes()
    if "SHOW" in os.environ:
        for address, places in users.items():
            if places == {"layer1"}:
                print(held[address].nbytes(), file=sys.stderr)
    return dict(kept=kept)


def cases():
    for arch in FAMILIES:
        small = dict(arch=arch, b=1, s=96, h=256, a=4, k=2, d=64, f=384, V=512, layers=3, nf4=False, masked=False, targets=ALL)
        yield small
        yield small | dict(b=2, s=160, h=192, a=6, d=32, f=320)
        if arch in ("qwen2_5_vl", "gemma3"):
            yield small | dict(targets=["q_proj", "v_proj"])
            yield small | dict(targets=ALL[:4])
            yield small | dict(nf4=True)
        if arch == "qwen2_5_vl":
            yield small | dict(masked=True)
        if arch != "gemma3":
            yield small | dict(half="float16")
        if arch == "qwen2_5_vl":
            yield small | dict(half="float16", nf4=True)


if __name__ == "__main__":
    wanted = sys.argv[1:]
    print(json.dumps(dict(what="Bytes that a decoder layer keeps which unsloth compiles as one region, recorded on a CPU by unsloth_compiled.py",
                          versions=dict(torch=torch.__version__, transformers=transformers.__version__, peft=peft.__version__, unsloth_zoo=unsloth_zoo.__version__)),
                     separators=(",", ":")))
    for case in cases():
        if not wanted or case["arch"] in wanted:
            name = f"{case['arch']}-b{case['b']}-s{case['s']}{'-nf4' * case['nf4']}{'-masked' * case['masked']}{'-fp16' * ('half' in case)}-{len(case['targets'])}"
            print(json.dumps(dict(id=name) | case | record(case), separators=(",", ":")), flush=True)
