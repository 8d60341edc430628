"""Records what NeMo-RL's log-probabilities of given tokens keep and hold at once, on a CPU.

    pip install torch
    git clone https://github.com/NVIDIA-NeMo/RL nemo-rl
    git clone https://github.com/NovaSky-AI/SkyRL skyrl
    python nemo_rl_log_probs.py nemo-rl skyrl > nemo_rl_log_probs.jsonl

The functions of `nemo_rl/distributed/model_utils.py` and of SkyRL's copy of it
(`skyrl/backends/skyrl_train/distributed/megatron/model_utils.py`) are taken out of the checkouts one by one, since the modules
import engines that need a GPU; a process group of one rank over gloo stands for the tensor-parallel ranks, whose share of the
vocabulary is `vocabulary`. Logits come from an output layer in bf16; under Megatron `Float16Module` casts them to fp32 outside of
the loss (`megatron/core/transformer/module.py`), unless `fp32_output=False`. Counted are the tensors that autograd saves
(`saved_tensors_hooks`), each storage once, and, from the CPU allocator's own events (torch.profiler), the most bytes that are there
at once in forward and in backward, with the output layer's own two gradients set apart. Those two are
given over tokens x vocabulary, of which sizes leave little else.
"""

import ast
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import torch
from torch.autograd.profiler import profile

HEIGHT, VOCABULARY = 8, 4096
NEMO, SKYRL = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
PLACES = {"NeMo-RL": (NEMO, "nemo_rl/distributed/model_utils.py"),
          "SkyRL": (SKYRL, "skyrl/backends/skyrl_train/distributed/megatron/model_utils.py")}
WANTED = ["_compute_distributed_log_softmax_with_grad", "_compute_distributed_log_softmax", "DistributedLogprob",
          "ChunkedDistributedLogprob"]


def shown(checkout, *words):
    return subprocess.run(["git", "-C", checkout, *words], check=True, capture_output=True, text=True).stdout


def taken(name):
    checkout, path = PLACES[name]
    text = shown(checkout, "show", f"HEAD:{path}")
    head = "from typing import Any, Optional\nimport torch\nimport torch.distributed as dist\nimport torch.distributed.nn\n"
    parts = []
    for node in ast.parse(text).body:
        if getattr(node, "name", None) in WANTED:
            first = min([node.lineno] + [mark.lineno for mark in getattr(node, "decorator_list", [])])
            parts.append("\n".join(text.splitlines()[first - 1:node.end_lineno]))
    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
        file.write(head + "\n\n".join(parts))
    spec = importlib.util.spec_from_file_location(name.replace("-", "_"), file.name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def plain(own, logits, ids, _):
    """`get_next_token_logprobs_from_logits` without vocabulary-parallel ranks."""
    logits = logits.to(torch.float32)
    log_probs = torch.nn.functional.log_softmax(logits[:, :-1], dim=-1)
    return log_probs.gather(dim=-1, index=ids[:, 1:].unsqueeze(-1)).squeeze(-1)


def distributed(own, logits, ids, _):
    logits = logits.to(torch.float32)
    target = ids.roll(shifts=-1, dims=-1)
    return own.DistributedLogprob.apply(logits, target, 0, VOCABULARY, None, False).contiguous()[:, :-1]


def chunked(own, logits, ids, chunk):
    target = ids.roll(shifts=-1, dims=-1)
    return own.ChunkedDistributedLogprob.apply(logits, target, 0, VOCABULARY, chunk, None, False).contiguous()[:, :-1]


KINDS = {"plain": plain, "distributed": distributed, "chunked": chunked}


def peak(run):
    """Result of `run` and the most bytes allocated at once while it runs, above what was there."""
    with profile(profile_memory=True) as profiler:
        out = run()
    now = most = 0
    for event in profiler.kineto_results.events():
        if event.name() == "[memory]":
            now += event.nbytes()
            most = max(most, now)
    return out, most


def case(software, kind, batch, length, parts, wide, chunk):
    own = taken(software)
    torch.manual_seed(0)
    weight = torch.nn.Parameter(torch.randn(VOCABULARY, HEIGHT, dtype=torch.bfloat16))
    states = torch.randn(batch, length, HEIGHT, dtype=torch.bfloat16, requires_grad=True)
    ids = torch.randint(0, VOCABULARY, (batch, length))
    seen = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in (weight.untyped_storage().data_ptr(), states.untyped_storage().data_ptr()):
            seen.setdefault(storage.data_ptr(), [str(tensor.dtype), storage.nbytes(), storage])
        return tensor

    def forward():
        # What calls the loss holds the model's logits while it runs.
        logits = torch.nn.functional.linear(states, weight)
        if wide:
            logits = logits.float()
        if parts == 1:
            return KINDS[kind](own, logits, ids, chunk).sum()
        # `SequencePackingLossWrapper`: a sequence of the pack at a time.
        total, each = 0, length // parts
        for part in range(parts):
            part_ids = ids[:, part * each:(part + 1) * each]
            total = total + KINDS[kind](own, logits.narrow(1, part * each, each), part_ids, chunk).sum()
        return total

    # The profiler's own events and hooks apart: once with hooks, once for each peak.
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        forward().backward()
    kept = sum(size for _, size, _ in seen.values())
    formats = sorted({dtype.removeprefix("torch.") for dtype, size, _ in seen.values() if size >= batch * length * VOCABULARY // parts})
    states.grad = weight.grad = None
    seen.clear()
    loss, in_forward = peak(forward)
    held = batch * length * VOCABULARY
    _, in_backward = peak(loss.backward)
    return {"software": software, "kind": kind, "batch": batch, "tokens": batch * length, "vocabulary": VOCABULARY,
            "sequences of a pack": parts, "logits cast before": wide, "chunk": chunk, "kept": kept,
            "kept as": formats, "most in forward": round(in_forward / held, 2),
            "most in backward above kept": round(in_backward / held, 2)}


def main():
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511"}
    torch.distributed.init_process_group("gloo", rank=0, world_size=1)
    versions = {name: shown(place[0], "rev-parse", "HEAD").strip() for name, place in PLACES.items()}
    print(json.dumps({"torch": torch.__version__} | versions))
    for software, kind, batch, length, parts, wide, chunk in [
        ("NeMo-RL", "plain", 1, 2048, 1, False, None),
        ("NeMo-RL", "plain", 4, 512, 1, False, None),
        ("NeMo-RL", "distributed", 1, 2048, 1, True, None),
        ("NeMo-RL", "distributed", 4, 512, 1, True, None),
        ("NeMo-RL", "distributed", 1, 2048, 1, False, None),
        ("NeMo-RL", "distributed", 1, 2048, 8, True, None),
        ("NeMo-RL", "distributed", 1, 2048, 16, True, None),
        ("NeMo-RL", "chunked", 1, 2048, 1, False, 128),
        ("NeMo-RL", "chunked", 1, 2048, 16, False, 128),
        ("SkyRL", "chunked", 1, 2048, 1, True, 128),
        ("SkyRL", "chunked", 4, 512, 1, True, 128),
    ]:
        print(json.dumps(case(software, kind, batch, length, parts, wide, chunk)))


main()
