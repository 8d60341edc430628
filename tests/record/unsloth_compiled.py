"""Records what a decoder layer keeps that unsloth compiles as one region, on a CPU.

    pip install torch==2.15.0 transformers==5.23.0 peft==0.21.2 trl==1.16.0 bitsandbytes==0.50.2
    pip install --no-deps unsloth==2026.10.9 unsloth_zoo==2026.10.9
    UNSLOTH_ALLOW_CPU=1 python unsloth_compiled.py > ../data/activations/unsloth_compiled.jsonl

The modules are those that `unsloth_zoo.compiler.unsloth_compile_transformers` writes of transformers', with its patches, beside PEFT's
adapters under autocast; each layer is compiled as `unsloth/models/_block_compile.py:patch_block_compile` compiles it on a GPU, with
lengths that differ. AOTAutograd decides what is kept, with Inductor's decompositions (`aot_eager_decomp_partition`); no code is
generated. LFM2's convolution is PyTorch's own, as it is without the package causal_conv1d. What needs a GPU has none here: attention is PyTorch's own for a CPU, whose output is copied for the projection behind it
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
    from unsloth_zoo import compiler, training_utils
    from unsloth_zoo.temporary_patches import common
    from unsloth_zoo.temporary_patches.utils import UNSLOTH_DECODE_COMPILE

RANK = 8
ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
LIQUID = ["q_proj", "k_proj", "v_proj", "out_proj", "in_proj", "w1", "w2", "w3"]
# Family: its module in transformers, its model and its settings, and words of the names of its patches.
FAMILIES = dict(
    gemma3=("gemma3", "Gemma3TextModel", "Gemma3TextConfig", "Gemma3"),
    llama=("llama", "LlamaModel", "LlamaConfig", "llama"),
    mistral=("mistral", "MistralModel", "MistralConfig", "mistral"),
    qwen2=("qwen2", "Qwen2Model", "Qwen2Config", "qwen2_"),
    qwen3=("qwen3", "Qwen3Model", "Qwen3Config", "qwen3_"),
    lfm2=("lfm2", "Lfm2Model", "Lfm2Config", "lfm2"),
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
    if family == "lfm2":
        more = dict(layer_types=["full_attention", "conv", "full_attention"], block_auto_adjust_ff_dim=False)
    if family in ("qwen2_vl", "qwen2_5_vl", "qwen3_vl"):
        part = case["d"] // 8
        more = dict(rope_parameters=dict(rope_type="default", rope_theta=1e6, mrope_section=[2 * part, part, part]))
    config = config(hidden_size=case["h"], intermediate_size=case["f"], num_attention_heads=case["a"], num_key_value_heads=case["k"], head_dim=case["d"],
                    vocab_size=case["V"], num_hidden_layers=case["layers"], max_position_embeddings=4096, attn_implementation="sdpa", **more)
    weights = getattr(torch, case["full"]) if "full" in case else half
    model = getattr(modeling, model)(config).to(weights)
    if "full" in case:
        # As `models/vision.py:post_patch_model` calls it: 16 bits stay where they are bf16, and norms become fp32.
        model.config.dtype = weights
        return training_utils.prepare_model_for_training(
            model, use_gradient_checkpointing=False, full_finetuning=True, train_layernorms=True, train_embedding=True, train_lm_head=True,
            float32_mixed_precision=weights != torch.bfloat16).train()
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
    layers = model.layers if "full" in case else model.base_model.model.layers
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
        if case.get("joined"):
            # As the trainer's collator hands them over without padding: one row, with the positions of each sample.
            places = torch.arange(tokens).repeat(case["b"])[None]
            lengths = torch.full((case["b"],), tokens, dtype=torch.int32)
            with torch.autocast("cpu", half):
                return model(input_ids=ids.reshape(1, -1), position_ids=places, packed_seq_lengths=lengths, use_cache=False)[0]
        mask = torch.ones_like(ids)
        mask[:, : 3 * masked] = 0
        with torch.autocast("cpu", half, enabled=case.get("half") != "float32"):
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
        every = LIQUID if arch == "lfm2" else ALL
        small = dict(arch=arch, b=1, s=96, h=256, a=4, k=2, d=64, f=384, V=512, layers=3, nf4=False, masked=False, targets=every)
        yield small
        yield small | dict(b=2, s=160, h=192, a=6, d=32, f=320)
        if arch in ("qwen2_5_vl", "gemma3", "lfm2"):
            yield small | dict(targets=["q_proj", "v_proj"])
            yield small | dict(targets=every[:5] if arch == "lfm2" else ALL[:4])
            yield small | dict(nf4=True)
        if arch in ("llama", "qwen2_5_vl"):
            yield small | dict(masked=True)
        if arch != "gemma3":
            yield small | dict(half="float16")
        if arch == "qwen2_5_vl":
            yield small | dict(half="float16", nf4=True)
        # Without a kernel for samples of several lengths, which a GPU has from Ampere on, attention takes the mask of the whole row.
        if arch in ("llama", "qwen3"):
            yield small | dict(b=2, joined=True)
        # All weights train: in bf16, or in fp32 under autocast or without.
        whole = small | dict(targets=[])
        yield whole | dict(full="bfloat16")
        yield whole | dict(full="float32")
        yield whole | dict(full="float32", b=2, s=160, h=192, a=6, d=32, f=320)
        if arch in ("llama", "qwen2", "qwen3"):
            yield whole | dict(full="float32", half="float16")
            yield whole | dict(full="float32", half="float32")
            yield whole | dict(full="float32", half="float16", masked=True)


if __name__ == "__main__":
    wanted = sys.argv[1:]
    print(json.dumps(dict(what="Bytes that a decoder layer keeps which unsloth compiles as one region, recorded on a CPU by unsloth_compiled.py",
                          versions=dict(torch=torch.__version__, transformers=transformers.__version__, peft=peft.__version__, unsloth_zoo=unsloth_zoo.__version__)),
                     separators=(",", ":")))
    for case in cases():
        if not wanted or case["arch"] in wanted:
            name = f"{case['arch']}-b{case['b']}-s{case['s']}{'-nf4' * case['nf4']}{'-masked' * case['masked']}{'-joined' * ('joined' in case)}{dict(float16='-fp16', float32='-fp32').get(case.get('half'), '')}-{case['full'] + '-full' if 'full' in case else len(case['targets'])}"
            print(json.dumps(dict(id=name) | case | record(case), separators=(",", ":")), flush=True)
