"""Records what verl's fused output layer (`use_fused_kernels`, backend torch) keeps and allocates, on a CPU.

    git clone https://github.com/volcengine/verl && git -C verl checkout v0.7.0
    python tests/record/verl_fused.py verl > tests/data/activations/verl_fused.jsonl

Runs `verl/utils/experimental/torch_functional.py:FusedLinearForPPO` of the checkout as `dense_common.py:forward_with_torch_backend` calls it:
bf16 states and weight, autocast in forward, a loss of the log-probabilities and, where it is asked for, of the entropies. What PyTorch
allocates within logsumexp is made by a stand-in. Counted are storages of at least 16 KiB that are made meanwhile, without states, weight and
tokens: bytes kept once the loss is there, the most that are alive in forward, in backward (with the gradients that it returns), and in a pass
without gradients ("scored").
"""

import importlib.util
import json
import sys

import torch
from torch.overrides import TorchFunctionMode

from alive import Alive

LEAST = 16 << 10


class Within(TorchFunctionMode):
    """What logsumexp makes within one operation (`aten/src/ATen/native/ReduceOps.cpp:logsumexp_out_impl`)."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if getattr(function, "__name__", "") == "logsumexp":
            logits, dim = args[0], (kwargs or {}).get("dim", args[1] if len(args) > 1 else -1)
            most = torch.amax(logits, dim, keepdim=True)
            return (logits - most).exp_().sum(dim).log_().add_(most.squeeze(dim))
        return function(*args, **(kwargs or {}))


def record(kernel, tokens, hidden, vocabulary, trains, entropy):
    states = torch.randn(1, tokens, hidden, dtype=torch.bfloat16, requires_grad=True)
    weight = torch.randn(vocabulary, hidden, dtype=torch.bfloat16, requires_grad=trains)
    labels = torch.zeros(1, tokens, dtype=torch.int64)
    alive = Alive([states, weight, labels], LEAST)
    with alive, Within():
        with torch.autocast("cpu", torch.bfloat16):
            log_probs, entropies = kernel(states, weight, labels, 1.0)
            loss = log_probs.float().mean()
            if entropy:
                loss = loss - entropies.float().mean() * 0.001
        del log_probs, entropies
        kept, forward, alive.most = alive.alive(), alive.most, 0
        loss.backward()
        del loss
        backward, alive.most = alive.most, 0
        states.grad = weight.grad = None
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            kernel(states, weight, labels, 1.0)
    return {"kept": kept, "forward": forward, "backward": backward, "scored": alive.most}


def main():
    path = f"{sys.argv[1]}/verl/utils/experimental/torch_functional.py"
    spec = importlib.util.spec_from_file_location("torch_functional", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernel = module.FusedLinearForPPO()
    print(json.dumps({"torch": torch.__version__, "chunk": kernel.chunk_size}))
    # Less than a chunk, one, and several; wide vocabularies and wide layers.
    for tokens in (300, 512, 1024, 1536):
        for hidden, vocabulary in ((64, 2048), (1024, 256), (512, 1024)):
            for trains in (True, False):
                for entropy in (False, True):
                    found = record(kernel, tokens, hidden, vocabulary, trains, entropy)
                    sizes = {"tokens": tokens, "hidden": hidden, "vocabulary": vocabulary, "trains": trains, "entropy": entropy}
                    print(json.dumps({**sizes, **found}))


main()
