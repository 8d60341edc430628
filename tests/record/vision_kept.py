"""What the recorders of training vision towers share: the models and samples of `vision_towers.py`, and counting what is kept for
backward.

What is kept is counted once forward is over and its output alone is held, each storage once, parameters aside. As CUDA's kernels and its
autocast do, and those of a CPU do not, mean and inverse deviation of a LayerNorm count as fp32, and under autocast LayerNorms run in
fp32. Flash attention has a stand-in that keeps what `FlashAttnVarlenFunc` keeps.
"""

import contextlib
import gc
import weakref

import torch
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from vision_towers import CASES, IMAGE, TOWERS, build, inputs

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


PROJECTORS = ("merger", "multi_modal_projector")


def part_of(name):
    """The part of a model that a module or a weight is of: "tower", "projector", "deep" (mergers of deep layers) or "decoder"."""
    parts = name.split(".")
    if not is_tower(name):
        return "decoder"
    if "deepstack_merger_list" in parts:
        return "deep"
    return "projector" if any(part in PROJECTORS for part in parts) else "tower"


class Held:
    """What autograd holds in the place of a tensor."""

    def __init__(self, tensor, size, place):
        self.tensor, self.size, self.place = tensor, size, place


def storages(parameters):
    # By the storage itself: what FSDP gathered may lie where another tensor lay before.
    return {parameter.untyped_storage()._cdata for parameter in parameters}


def kept(model, given, autocast, sharded=False):
    """Bytes kept in the tower, in its second layer, and outside. Of a model of FSDP (`sharded`) each module's weights are gathered as
    it is entered."""
    places, hooks, held = [], [], []
    weights = set() if sharded else storages(model.parameters())

    def enter(module, name):
        if sharded:
            weights.update(storages(module.parameters(recurse=False)))
        if is_tower(name):
            places.append((name, isinstance(module, torch.nn.LayerNorm)))

    for name, module in model.named_modules():
        hooks.append(module.register_forward_pre_hook(lambda module, _, name=name: enter(module, name)))
        if is_tower(name):
            hooks.append(module.register_forward_hook(lambda *_: (places.pop(), None)[1]))

    def pack(tensor):
        if tensor.untyped_storage()._cdata in weights:
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
        address = entry.tensor.untyped_storage()._cdata
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


def small_model(kind):
    """The small model of a type in bf16, its configuration, the sizes of its tower and all sizes for a row."""
    _, text, small, _, more = CASES[kind]
    # SigLIP's head is beside the features that Gemma takes.
    small = dict(small, vision_use_head=False) if kind == "gemma3" else small
    model, config = build(kind, text, small, more)
    return model, config, small, dict(model_type=kind, text_config=text, vision_config=small, **more)


def sample(kind, config, small, images=2):
    """Inputs of one sample with images, and the patches of them all."""
    given, patches = inputs(kind, config, small)
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
    return given, patches * images
