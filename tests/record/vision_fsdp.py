"""Records what vision towers keep for backward under PyTorch's FSDP2, which gathers weights in bf16 from shards in fp32.

Models, inputs and counting are those of `vision_trained.py`; weights that FSDP gathers are no tensors kept, and one process over
gloo holds the one shard. Written to standard output, a line of JSON for each run, with the keys of `vision_trained.py` and

  units     what FSDP gathers at once: "unsplit", the modules whose classes transformers names in `_no_split_modules`
            (`verl/utils/fsdp_utils.py:apply_fsdp2`); "lists", every module of a `ModuleList`
            (`nemo_automodel/components/distributed/parallelizer.py:apply_fsdp2_sharding_recursively`)
  output    format of what units hand on: "" their own, "fp32" as NeMo-RL asks for (`output_dtype`)

Run with transformers 5.23.0 and torch 2.15.0: python tests/record/vision_fsdp.py > tests/data/activations/vision_fsdp.jsonl
"""

import contextlib
import gc
import json
import pathlib
import weakref

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

SOURCE = (pathlib.Path(__file__).parent / "vision_trained.py").read_text()
base = {"__name__": "base", "__file__": __file__}
exec(compile(SOURCE.split("for kind in KINDS:")[0], "vision_trained.py", "exec"), base)
KINDS, CASES, TOWERS, IMAGE, towers = (base[name] for name in ("KINDS", "CASES", "TOWERS", "IMAGE", "towers"))
is_tower, is_layer, in_fp32, layer_norm, Held = (base[name] for name in ("is_tower", "is_layer", "in_fp32", "layer_norm", "Held"))


def shard(model, mesh, units, output):
    policy = MixedPrecisionPolicy(
        param_dtype=torch.bfloat16, reduce_dtype=torch.float32, output_dtype=torch.float32 if output else None)
    unsplit = set(model._no_split_modules)
    lists = {f"{name}.{index}" for name, module in model.named_modules() if isinstance(module, torch.nn.ModuleList)
             for index in range(len(module))}
    chosen = []
    for name, module in model.named_modules():
        if name in lists if units == "lists" else type(module).__name__ in unsplit:
            chosen.append(module)
    for module in chosen:
        fully_shard(module, mesh=mesh, mp_policy=policy, reshard_after_forward=False)
    fully_shard(model, mesh=mesh, mp_policy=policy, reshard_after_forward=False)


def kept(model, given, autocast):
    """Bytes kept in the tower, in its second layer, and outside."""
    places, hooks, held, gathered = [], [], [], set()

    def enter(module, name):
        gathered.update(parameter.untyped_storage()._cdata for parameter in module.parameters(recurse=False))
        if is_tower(name):
            places.append((name, isinstance(module, torch.nn.LayerNorm)))

    for name, module in model.named_modules():
        hooks.append(module.register_forward_pre_hook(lambda module, _, name=name: enter(module, name)))
        if is_tower(name):
            hooks.append(module.register_forward_hook(lambda *_: (places.pop(), None)[1]))

    def pack(tensor):
        if tensor.untyped_storage()._cdata in gathered:
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


def run(mesh, kind, way, autocast, units, output, images=2):
    _, text, small, _, more = CASES[kind]
    small = dict(small, vision_use_head=False) if kind == "gemma3" else small
    model, config = towers["build"](kind, text, small, more)
    model.float()
    given, patches = towers["inputs"](kind, config, small)
    tokens = 16
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
    model.requires_grad_(True)
    if way == "hooked":
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(not is_tower(name))
        model.enable_input_require_grads()
    shard(model, mesh, units, output)
    tower, layer, _ = kept(model, given, autocast)
    model.gradient_checkpointing_enable()
    recomputed, *_ = kept(model, given, autocast)
    sizes = dict(model_type=kind, text_config=text, vision_config=small, **more)
    row = dict(type=kind, config=sizes, way=way, autocast=autocast, attention="sdpa", units=units, output=output, images=images,
               patches=patches * images, tower=tower, layer=layer, recomputed=recomputed)
    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    mesh = init_device_mesh("cpu", (1,))
    for kind in KINDS:
        for way in ("trained", "hooked"):
            for autocast in (False, True):
                # In fp32 the modules outside of units run under autocast alone.
                for units, output in (("unsplit", ""), ("lists", "")) + (("lists", "fp32"),) * autocast:
                    run(mesh, kind, way, autocast, units, output)
    dist.destroy_process_group()
