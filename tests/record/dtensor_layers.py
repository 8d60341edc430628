"""Records what autograd keeps on one of several tensor-parallel ranks, and what these send, of models that NeMo Automodel cuts by
PyTorch's DTensor, on a CPU.

    pip install torch transformers
    git clone https://github.com/NVIDIA-NeMo/Automodel && git -C Automodel checkout 36044ad3d1
    git clone https://github.com/NVIDIA-NeMo/RL nemo-rl
    PYTHONPATH=Automodel python dtensor_layers.py nemo-rl | grep '^{' > dtensor_layers.jsonl

The ranks are processes over gloo. The parallel plan is the one that Automodel chooses for the class
(`components/distributed/parallelizer.py:_get_parallel_plan`), with and without sequence parallelism, and put on by
`torch.distributed.tensor.parallel.parallelize_module`; modules are transformers', and `gc` wraps layers as Automodel does. The loss
is taken of NeMo-RL's log-probabilities (`DistributedLogprob`, cut out of its module, which imports engines) of logits in fp32, in
which FSDP2 hands them on. Counted as in `record_huggingface.py`, whose keys the lines have; a storage of one rank counts as what
that rank holds. `sent` lists the collectives of a forward and a backward pass by name, with the bytes of the whole tensor.
"""

import ast
import collections
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

# Its kernels are for GPUs; without triton the same functions run PyTorch's products.
sys.modules["triton"] = None

import torch
import torch.distributed as dist
import transformers
from torch.distributed._functional_collectives import AsyncCollectiveTensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import parallelize_module
from torch.utils._python_dispatch import TorchDispatchMode

LAYERS = 3
WANTED = ["_compute_distributed_log_softmax_with_grad", "_compute_distributed_log_softmax", "DistributedLogprob"]


def log_probs(checkout):
    """`DistributedLogprob` of a checkout of NeMo-RL."""
    text = subprocess.run(["git", "-C", checkout, "show", "HEAD:nemo_rl/distributed/model_utils.py"],
                          check=True, capture_output=True, text=True).stdout
    parts = ["from typing import Any, Optional\nimport torch\nimport torch.distributed as dist\nimport torch.distributed.nn"]
    for node in ast.parse(text).body:
        if getattr(node, "name", None) in WANTED:
            first = min([node.lineno] + [mark.lineno for mark in getattr(node, "decorator_list", [])])
            parts.append("\n".join(text.splitlines()[first - 1:node.end_lineno]))
    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
        file.write("\n\n".join(parts))
    spec = importlib.util.spec_from_file_location("log_probs", file.name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.DistributedLogprob


class Sent(TorchDispatchMode):
    """Counts collectives with the bytes of the whole tensor: of what is gathered, or is to be scattered."""

    def __init__(self):
        super().__init__()
        self.calls = collections.Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        # With DTensors there are those of local tensors to come.
        if any(issubclass(kind, DTensor) for kind in types):
            return NotImplemented
        out = func(*args, **(kwargs or {}))
        name = str(func).split(".")[1] if "c10d_functional" in str(func) or "c10d." in str(func) else ""
        name = {"all_gather_into_tensor": "all_gather", "reduce_scatter_tensor": "reduce_scatter"}.get(name, name).rstrip("_")
        if name.startswith(("all_reduce", "allreduce")):
            tensor = args[0][0] if isinstance(args[0], (list, tuple)) else args[0]
            self.calls[f"all_reduce {tensor.nbytes}"] += 1
        elif name == "all_gather":
            self.calls[f"all_gather {out.nbytes}"] += 1
        elif name == "reduce_scatter":
            self.calls[f"reduce_scatter {args[0].nbytes}"] += 1
        return out


def local(tensor):
    """This rank's own tensor, once it has arrived."""
    own = tensor._local_tensor if isinstance(tensor, DTensor) else tensor
    return own.trigger_wait() if isinstance(own, AsyncCollectiveTensor) else own


def record(case, probs, mesh):
    """What one rank keeps, by layer, shared and outside, and what it sends."""
    from nemo_automodel.components.distributed import parallelizer
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    config = AutoConfig.for_model(
        case["arch"], num_hidden_layers=LAYERS, hidden_size=case["h"], intermediate_size=case["f"],
        num_attention_heads=case["a"], num_key_value_heads=case["k"], head_dim=case["d"], vocab_size=case["V"],
        max_position_embeddings=2 * case["s"], use_cache=False, attn_implementation="sdpa", dtype="bfloat16", tie_word_embeddings=False)
    model = AutoModelForCausalLM.from_config(config).to(torch.bfloat16).train()
    for tensor in model.parameters():
        torch.nn.init.uniform_(tensor, 0.0, 0.01)
    plan = parallelizer._get_parallel_plan(model, case["sp"], None, tp_size=case["tp"])
    parallelize_module(model, mesh["tp"], {name: parallelizer.translate_to_lora(style) for name, style in plan.items()})
    if case["gc"]:
        parallelizer.apply_full_layer_checkpointing_to_layers(model, model.model.layers)
    tokens = torch.randint(0, case["V"], (case["b"], case["s"]))

    def loss(logits):
        each = case["V"] // case["tp"]
        first = dist.get_rank() * each
        target = tokens.roll(shifts=-1, dims=-1)
        return probs.apply(logits.to_local().float(), target, first, first + each, mesh.get_group("tp"), False)[:, :-1].sum()

    # What is compiled or cached for good is there before anything is counted.
    loss(model(input_ids=tokens).logits).backward()
    model.zero_grad()
    own = {local(p).untyped_storage().data_ptr() for p in [*model.parameters(), *model.buffers()]}
    place, users, held = [], collections.defaultdict(set), {}
    for index, layer in enumerate(model.model.layers):
        layer.register_forward_pre_hook(lambda *_, index=index: place.append(f"layer{index}"))
        layer.register_forward_hook(lambda *_: place.pop() and None)

    def pack(tensor):
        storage = local(tensor).untyped_storage()
        if storage.data_ptr() not in own and storage.nbytes():
            held[storage.data_ptr()] = storage
            users[storage.data_ptr()].add(place[-1] if place else "outside")
        return tensor

    with Sent() as forward, torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        total = loss(model(input_ids=tokens).logits)
    kept = collections.Counter()
    for address, places in users.items():
        inside = places - {"outside"}
        kept["shared" if len(inside) > 1 else next(iter(inside or places))] += held[address].nbytes()
    with Sent() as backward:
        total.backward()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained)
    optimizer.step()
    moments = [local(state) for p in trained for name, state in optimizer.state[p].items() if name != "step"]
    return dict(kept=kept, sent=dict(forward=forward.calls, backward=backward.calls),
                trained_params=sum(local(p).numel() for p in trained),
                grad_bytes=sum(local(p.grad).nbytes for p in trained),
                adamw_moment_bytes=sum(t.nbytes for t in moments), frozen_params=0,
                trained_param_bytes=sum(local(p).nbytes for p in trained), frozen_param_bytes=0)


def run(rank, world, checkout, port):
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank), "WORLD_SIZE": str(world)}
    dist.init_process_group("gloo", rank=rank, world_size=world)
    mesh = init_device_mesh("cpu", (1, world), mesh_dim_names=("dp", "tp"))
    probs = log_probs(checkout)
    for arch in ("llama", "qwen2", "qwen3"):
        for b, s in ((1, 64), (2, 96)) if world == 2 else ((2, 96),):
            for sp in (False, True):
                for gc in (None, "full"):
                    case = dict(
                        id=f"dtensor-{arch}-tp{world}{'-sp' if sp else ''}-b{b}-s{s}{'-gc' if gc else ''}",
                        kind="model", layers=LAYERS, own=False, tp=world, sp=sp, arch=arch, dtype="bf16", b=b, s=s, h=128, a=8,
                        k=4, d=16, f=352, V=1000, attn="sdpa", train="full", adapter=None, gc=gc, input_require_grads=False,
                        lora_dropout=0.0, adapter_fp32=False, autocast=False, padded=False, num_items=True,
                        use_cache=False, experts=None, loss="distributed")
                    line = {**case, **record(case, probs, mesh)}
                    if rank == 0:
                        print(json.dumps(line), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    revision = subprocess.run(["git", "-C", sys.argv[1], "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    print(json.dumps({"what": "Bytes that autograd keeps on a tensor-parallel rank of DTensor, and what it sends",
                      "versions": {"automodel": "36044ad3d1", "nemo_rl": revision.stdout.strip()[:10],
                                   "torch": torch.__version__, "transformers": transformers.__version__}}), flush=True)
    for world in (2, 4):
        torch.multiprocessing.spawn(run, args=(world, sys.argv[1], 29540 + world), nprocs=world)
