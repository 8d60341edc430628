"""Records what verl's fused output layer (`use_fused_kernels`, backend triton) keeps and allocates, on a CPU.

    pip install --no-deps --target verl verl==0.9.1
    python tests/record/verl_kernel.py verl > tests/data/activations/verl_kernel.jsonl

Runs `verl/utils/kernel/linear_cross_entropy.py:linear_cross_entropy` with the host functions of its `kernels.py`, whose tensors are PyTorch's own:
the Triton kernels, which write into them and allocate nothing, are stood in for by functions that do nothing, and what asks for a GPU asks for
the CPU. Counted are storages of at least 4 KiB that are made meanwhile, without states, weight and tokens: bytes kept once the loss is there,
the most that are alive in forward, in backward (with the gradients that it returns), and in a pass without gradients ("scored").
"""

import contextlib
import json
import pathlib
import sys
import types

import torch
import torch._dynamo  # Asks for Triton itself.

from alive import Alive

LEAST = 4 << 10


class Kernel:
    """A launch that writes nothing."""

    def __getitem__(self, grid):
        return lambda *arguments, **named: None


class Named:
    """Whatever a decorator or an annotation asks for."""

    def __getattr__(self, name):
        return Named()

    def __call__(self, *arguments, **named):
        return Named()


def module(name, path, given):
    """A file of the package as a module, in which the CPU is the device."""
    text = path.read_text().replace("is_cuda and", "is_cpu and").replace(".is_cuda\n", ".is_cpu\n")
    made = types.ModuleType(name)
    made.__package__ = name.rpartition(".")[0]
    made.__dict__.update(given)
    sys.modules[name] = made
    exec(compile(text, str(path), "exec"), made.__dict__)
    return made


def load(package):
    triton = types.ModuleType("triton")
    triton.jit = lambda *_, **__: Kernel()
    triton.autotune = lambda **_: lambda function: function
    triton.Config = Named()
    triton.cdiv = lambda one, other: -(-one // other)
    triton.language = Named()
    sys.modules.update({"triton": triton, "triton.language": triton.language})
    device = types.ModuleType("verl.utils.device")
    device.get_device_capability = lambda: (0, 0)
    device.get_device_name = lambda: "cpu"
    device.is_cuda_available = False
    device.get_torch_device = lambda: torch.cpu
    sys.modules.update({"verl": types.ModuleType("verl"), "verl.utils": types.ModuleType("verl.utils"), "verl.utils.device": device})
    sys.modules["verl.utils.kernel"] = types.ModuleType("verl.utils.kernel")
    torch.cuda.nvtx.range = contextlib.nullcontext
    folder = pathlib.Path(package) / "verl/utils/kernel"
    sys.modules["verl.utils.kernel"].kernels = module("verl.utils.kernel.kernels", folder / "kernels.py", {})
    return module("verl.utils.kernel.linear_cross_entropy", folder / "linear_cross_entropy.py", {}).linear_cross_entropy


def record(kernel, tokens, hidden, vocabulary, trains, entropy):
    states = torch.randn(1, tokens, hidden, dtype=torch.bfloat16, requires_grad=True)
    weight = torch.randn(vocabulary, hidden, dtype=torch.bfloat16, requires_grad=trains)
    labels = torch.zeros(1, tokens, dtype=torch.int64)
    alive = Alive([states, weight, labels], LEAST)
    with alive:
        log_probs, entropies = kernel(states, weight, labels, 1.0, "none")
        loss = log_probs.mean()
        if entropy:
            loss = loss - entropies.mean() * 0.001
        del log_probs, entropies
        kept, forward, alive.most = alive.alive(), alive.most, 0
        loss.backward()
        del loss
        backward, alive.most = alive.most, 0
        states.grad = weight.grad = None
        with torch.no_grad():
            found = kernel(states, weight, labels, 1.0, "none")
            del found
    return {"kept": kept, "forward": forward, "backward": backward, "scored": alive.most}


def main():
    kernel = load(sys.argv[1])
    print(json.dumps({"torch": torch.__version__, "verl": "0.9.1"}))
    for vocabulary in (512, 9504, 12288, 24000, 28512):
        for tokens in (1024, 2048):
            for trains in (False, True):
                for entropy in (False, True):
                    case = {"tokens": tokens, "hidden": 128, "vocabulary": vocabulary, "trains": trains, "entropy": entropy}
                    print(json.dumps({**case, **record(kernel, **{**case})}))


if __name__ == "__main__":
    main()
