"""Records what vision towers keep for backward under PyTorch's FSDP2, which gathers weights in bf16 from shards in fp32.

Models, inputs and counting are those of `vision_kept.py`; weights that FSDP gathers are no tensors kept, and one process over
gloo holds the one shard. Written to standard output, a line of JSON for each run, with the keys of `vision_trained.py` and

  units     what FSDP gathers at once: "unsplit", the modules whose classes transformers names in `_no_split_modules`
            (`verl/utils/fsdp_utils.py:apply_fsdp2`); "lists", every module of a `ModuleList`
            (`nemo_automodel/components/distributed/parallelizer.py:apply_fsdp2_sharding_recursively`)
  output    format of what units hand on: "" their own, "fp32" as NeMo-RL asks for (`output_dtype`)

Run with transformers 5.23.0 and torch 2.15.0: python tests/record/vision_fsdp.py > tests/data/activations/vision_fsdp.jsonl
"""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

from vision_kept import KINDS, is_tower, kept, sample, small_model


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


def run(mesh, kind, way, autocast, units, output, images=2):
    model, config, small, sizes = small_model(kind)
    model.float()
    given, patches = sample(kind, config, small, images)
    model.requires_grad_(True)
    if way == "hooked":
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(not is_tower(name))
        model.enable_input_require_grads()
    shard(model, mesh, units, output)
    tower, layer, _ = kept(model, given, autocast, sharded=True)
    model.gradient_checkpointing_enable()
    recomputed, *_ = kept(model, given, autocast, sharded=True)
    row = dict(type=kind, config=sizes, way=way, autocast=autocast, attention="sdpa", units=units, output=output, images=images,
               patches=patches, tower=tower, layer=layer, recomputed=recomputed)
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
