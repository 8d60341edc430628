"""Records what vision towers keep for backward where they train, and where they are frozen behind an embedding of patches that is made
to require a gradient (`enable_input_require_grads` of transformers 5).

For each type of model a small model of transformers with random weights is built on the CPU as `vision_towers.py` builds it. What is
kept is counted once forward is over and its output alone is held, each storage once, parameters aside. As CUDA's kernels and its
autocast do, and those of a CPU do not, mean and inverse deviation of a LayerNorm count as fp32, and under autocast LayerNorms run in
fp32. Flash attention has a stand-in that keeps what `FlashAttnVarlenFunc` keeps. Written to standard output, a line of JSON for each
run:

  type      model_type of the whole
  config    its sizes
  way       "trained": tower, projector and decoder; "hooked": tower and projector frozen
  autocast  whether `torch.autocast` is on, over weights in bf16
  attention "sdpa" or "flash"
  images    images of the one sample
  patches   patches of them all
  tower     bytes kept of tower and projector
  layer     bytes kept of the tower's second layer
  recomputed  bytes kept of tower and projector where `gradient_checkpointing_enable()` was called
  decoder   bytes kept outside of tower and projector, less those of the same run with a tower that keeps nothing

Run with transformers 5.23.0 and torch 2.15.0: python tests/record/vision_trained.py > tests/data/activations/vision_trained.jsonl
"""

import contextlib
import gc
import json
import pathlib
import weakref

import torch
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

SOURCE = (pathlib.Path(__file__).parent / "vision_towers.py").read_text()
towers = {"__name__": "towers"}
exec(compile(SOURCE.split('print("type\\ttower')[0], "vision_towers.py", "exec"), towers)
CASES, TOWERS, IMAGE = towers["CASES"], towers["TOWERS"], towers["IMAGE"]
KINDS = ["qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_5", "gemma3", "internvl", "mistral3"]
LAYERS = ("blocks", "layers", "layer")
layer_norm = torch.nn.functional.layer_norm


def in_fp32(input, shape, weight=None, bias=None, eps=1e-5):
    with torch.autocast("cpu", enabled=False):
        wide = [None if tensor is None else tensor.float() for tensor in (weight, bias)]
        return layer_norm(input.float(), shape, *wide, eps)


class Flash(torch.autograd.Function):
    """Keeps queries, keys, values and its output, the log of each row's sum, and the state of the random numbers."""

    @staticmethod
    def forward(ctx, query, key, value):
        batch, rows, heads, _ = query.shape
        out = torch.zeros_like(query, memory_format=torch.contiguous_format)
        ctx.save_for_backward(query, key, value, out, torch.zeros(batch, heads, rows), torch.zeros(2, dtype=torch.int64))
        return out

    @staticmethod
    def backward(ctx, gradient):
        return gradient, gradient, gradient


def flash(module, query, key, value, attention_mask, **more):
    if query.shape[1] != key.shape[1]:
        more = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(more, 1), value.repeat_interleave(more, 1)
    return Flash.apply(query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)), None


def use_flash(model, config):
    ALL_ATTENTION_FUNCTIONS["flash_attention_2"] = flash
    for part in (config, config.vision_config, model.config, model.config.vision_config):
        part._attn_implementation_internal = "flash_attention_2"
    config.text_config._attn_implementation_internal = "sdpa"


def is_tower(name):
    return any(part in TOWERS for part in name.split("."))


def is_layer(name):
    parts = name.split(".")
    return is_tower(name) and len(parts) > 1 and parts[-2] in LAYERS and parts[-1].isdigit()


class Held:
    """What autograd holds in the place of a tensor."""

    def __init__(self, tensor, size, place):
        self.tensor, self.size, self.place = tensor, size, place


def kept(model, given, autocast):
    """Bytes kept in the tower, in its second layer, and outside."""
    places, hooks, held = [], [], []

    def enter(module, name):
        places.append((name, isinstance(module, torch.nn.LayerNorm)))

    for name, module in model.named_modules():
        if is_tower(name):
            hooks.append(module.register_forward_pre_hook(lambda module, _, name=name: enter(module, name)))
            hooks.append(module.register_forward_hook(lambda *_: (places.pop(), None)[1]))
    parameters = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}

    def pack(tensor):
        if tensor.untyped_storage().data_ptr() in parameters:
            return tensor
        size = tensor.untyped_storage().nbytes()
        if places and places[-1][1] and tensor.shape[-1:] == (1,):
            size = tensor.numel() * 4
        entry = Held(tensor, size, [name for name, _ in places])
        held.append(weakref.ref(entry))
        return entry

    unpack = lambda entry: entry.tensor if isinstance(entry, Held) else entry
    context = torch.autocast("cpu", torch.bfloat16) if autocast else contextlib.nullcontext()
    torch.nn.functional.layer_norm = in_fp32 if autocast else layer_norm
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack), context:
        loss = model(**given, use_cache=False).loss
    torch.nn.functional.layer_norm = layer_norm
    for hook in hooks:
        hook.remove()
    gc.collect()
    seen, tower, layer, outside = set(), 0, 0, 0
    for entry in filter(None, (reference() for reference in held)):
        address = entry.tensor.untyped_storage().data_ptr()
        if address in seen:
            continue
        seen.add(address)
        if not entry.place:
            outside += entry.size
            continue
        tower += entry.size
        if any(is_layer(name) and name.endswith(".1") for name in entry.place):
            layer += entry.size
    assert loss is not None
    return tower, layer, outside


def run(kind, way, autocast, attention, images):
    _, text, small, _, more = CASES[kind]
    small = dict(small, vision_use_head=False) if kind == "gemma3" else small
    model, config = towers["build"](kind, text, small, more)
    if attention == "flash":
        use_flash(model, config)
    given, patches = towers["inputs"](kind, config, small)
    tokens = 64 if kind == "llava" else 16
    ids = torch.randint(0, 280, (1, 96 + 64 * images))
    at = 4
    for _ in range(images):
        ids[0, at] = 292
        ids[0, at + 1 : at + 1 + tokens] = IMAGE
        at += tokens + 2
    places = (ids == IMAGE).long()
    given = {key: torch.cat([value] * images) for key, value in given.items()}
    given |= dict(input_ids=ids, labels=ids)
    if kind.startswith("qwen"):
        given["mm_token_type_ids"] = places
    if kind == "gemma3":
        given["token_type_ids"] = places
    *_, frozen = kept(model, given, autocast)
    if way == "trained":
        model.requires_grad_(True)
    else:
        model.enable_input_require_grads()
    tower, layer, outside = kept(model, given, autocast)
    model.gradient_checkpointing_enable()
    recomputed, *_ = kept(model, given, autocast)
    sizes = dict(model_type=kind, text_config=text, vision_config=small, **more)
    row = dict(type=kind, config=sizes, way=way, autocast=autocast, attention=attention, images=images,
               patches=patches * images, tower=tower, layer=layer, recomputed=recomputed, decoder=outside - frozen)
    print(json.dumps(row), flush=True)


for kind in KINDS:
    for way in ("trained", "hooked"):
        for autocast in (False, True):
            for attention in ("sdpa", "flash"):
                for images in (1, 2):
                    run(kind, way, autocast, attention, images)
