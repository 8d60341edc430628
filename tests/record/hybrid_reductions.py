"""Records what FSDP2 holds of shards that it adds up across groups of replicas (HSDP), on a CPU.

    pip install torch
    torchrun --nproc-per-node 4 hybrid_reductions.py > hybrid_reductions.jsonl

Layers and the whole model are units (`fully_shard`) over a mesh of two groups of two ranks. Counted are bytes on one rank: shards of
gradients, and the tensors that a unit's all-reduce refers to and that are no gradient's memory; when the backward of
each layer begins (last layer first), when the embedding's does, and when backward is over.
"""

import json

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

LAYERS, HEIGHT, VOCABULARY, MICRO_BATCHES = 3, 64, 128, 2
NAMES = {"bf16": torch.bfloat16, "fp32": torch.float32}


class Model(nn.Module):
    def __init__(self, dtype):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, HEIGHT, dtype=dtype)
        self.layers = nn.ModuleList(nn.Linear(HEIGHT, HEIGHT, bias=False, dtype=dtype) for _ in range(LAYERS))
        self.head = nn.Linear(HEIGHT, VOCABULARY, bias=False, dtype=dtype)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def held(model):
    """Bytes of shards of gradients, and of what all-reduces hold beside them."""
    shards, added, seen = 0, 0, set()
    groups = []
    for module in model.modules():
        if isinstance(module, FSDPModule):
            state = module._get_fsdp_state()
            groups += getattr(state, "_fsdp_param_groups", None) or [state._fsdp_param_group]
    for group in groups:
        for parameter in group.fsdp_params if group else ():
            grad = parameter.sharded_param.grad
            if grad is not None:
                shards += grad._local_tensor.numel() * grad._local_tensor.element_size()
                seen.add(grad._local_tensor.untyped_storage().data_ptr())
    for group in groups:
        # Where a version keeps it: by unit, or in what all units share.
        for owner in (group, getattr(group, "comm_ctx", None)):
            state = getattr(owner, "_all_reduce_state", None) or getattr(owner, "all_reduce_state", None)
            if state is not None and state.all_reduce_input is not None:
                storage = state.all_reduce_input.untyped_storage()
                if storage.data_ptr() not in seen:
                    seen.add(storage.data_ptr())
                    added += state.all_reduce_input.numel() * state.all_reduce_input.element_size()
    return {"shards": shards, "added": added}


def case(shard, reduce, gather, apart):
    torch.manual_seed(0)
    model = Model(NAMES[shard])
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    policy = MixedPrecisionPolicy(param_dtype=NAMES[gather], reduce_dtype=NAMES[reduce])
    units = [*model.layers, *([model.embedding, model.head] if apart else [])]
    for unit in [*units, model]:
        fully_shard(unit, mesh=mesh, mp_policy=policy)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0)
    batches = []
    for step in range(2):
        batches = []
        for _ in range(MICRO_BATCHES):
            moments = []
            handles = [
                layer.register_full_backward_pre_hook(lambda *_: moments.append(held(model)))
                for layer in [*model.layers, model.embedding]
            ]
            model(torch.randint(0, VOCABULARY, (1, 32))).float().logsumexp(-1).mean().backward()
            for handle in handles:
                handle.remove()
            moments.append(held(model))
            batches.append(moments)
        optimizer.step()
        optimizer.zero_grad()
    if dist.get_rank() == 0:
        print(json.dumps({"shard": shard, "reduce": reduce, "gather": gather, "apart": apart, "layers": LAYERS, "h": HEIGHT,
                          "V": VOCABULARY, "shards": 2, "groups": 2, "micro_batches": batches}))


dist.init_process_group("gloo")
if dist.get_rank() == 0:
    print(json.dumps({"what": "Bytes that FSDP2 holds of shards added up across groups of replicas",
                      "versions": {"torch": torch.__version__}}))
for shard, reduce in (("fp32", "fp32"), ("bf16", "fp32"), ("bf16", "bf16")):
    for apart in (True, False):
        case(shard, reduce, "bf16", apart)
dist.destroy_process_group()
