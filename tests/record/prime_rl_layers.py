"""Records what backward of a layer of prime-rl holds at once where it is checkpointed whole and compiled, on a CPU.

    pip install torch transformers
    git clone https://github.com/PrimeIntellect-ai/prime-rl
    python prime_rl_layers.py prime-rl > prime_rl_layers.jsonl

The layers are `Qwen3DecoderLayer` and `LlamaDecoderLayer` of `src/prime_rl/trainer/models` with the modules that they are made of, wrapped
and compiled as `apply_ac` and `apply_compile` do. flash-attn's function, which needs a GPU, is stood in for by an operator of the same shapes
that keeps what flash-attn keeps; so torch compiles the layer as one graph. Counted is the most that backward has allocated at once
beside what was there before: the layer's input, the gradient of its output, its weights. In bytes, as the profiler tells it.
"""

import ast
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import types
import typing

import torch
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.profiler import ProfilerActivity, profile

CHECKOUT = sys.argv[1]
FOLDER = "src/prime_rl/trainer/models"


@torch.library.custom_op("stand_in::flash", mutates_args=())
def flash(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty_like(q), torch.empty(q.shape[1], q.shape[0], dtype=torch.float32)


@torch.library.custom_op("stand_in::flash_backward", mutates_args=())
def flash_backward(
    grad: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, sums: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)


flash.register_fake(lambda q, k, v: (torch.empty_like(q), torch.empty(q.shape[1], q.shape[0], dtype=torch.float32)))
flash_backward.register_fake(
    lambda grad, q, k, v, out, sums: (torch.empty_like(q), torch.empty_like(k), torch.empty_like(v))
)
flash.register_autograd(
    lambda ctx, grad, _: flash_backward(grad.contiguous(), *ctx.saved_tensors),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs, *output),
)


def modules():
    archive = subprocess.run(["git", "-C", CHECKOUT, "archive", "HEAD", FOLDER], check=True, capture_output=True).stdout
    place = tempfile.mkdtemp()
    tarfile.open(fileobj=io.BytesIO(archive)).extractall(place)
    for name in ["prime_rl", "prime_rl.trainer", "prime_rl.trainer.models", "prime_rl.trainer.models.layers"]:
        package = types.ModuleType(name)
        package.__path__ = [os.path.join(place, "src", *name.split("."))]
        sys.modules[name] = package
    from prime_rl.trainer.models.layers import attn, mlp, norms

    names = {"torch": torch, "nn": nn, "GradientCheckpointingLayer": nn.Module, "Qwen3Config": object, "LlamaConfig": object,
             "Optional": typing.Optional, "deprecate_kwarg": lambda *_, **__: lambda function: function}
    for module in (attn, mlp, norms):
        names.update(vars(module))
    kinds = {"qwen3": "Qwen3DecoderLayer", "llama": "LlamaDecoderLayer"}
    for family, kind in kinds.items():
        with open(os.path.join(place, FOLDER, f"{family}/modeling_{family}.py")) as file:
            text = file.read()
        for node in ast.parse(text).body:
            if getattr(node, "name", None) == kind:
                exec("\n".join(text.splitlines()[node.lineno - 1:node.end_lineno]), names)
    return {family: names[kind] for family, kind in kinds.items()}


def most(run):
    """The most that is allocated at once while it runs, beside what was allocated before."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as told:
        run()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        told.export_chrome_trace(path)
        with open(path) as file:
            events = [event for event in json.load(file)["traceEvents"] if event.get("name") == "[memory]"]
    events.sort(key=lambda event: event["ts"])
    held = highest = 0
    for event in events:
        held += event["args"]["Bytes"]
        highest = max(highest, held)
    return highest


def main():
    head = subprocess.run(["git", "-C", CHECKOUT, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
    print(json.dumps({"torch": torch.__version__, "prime-rl": head.strip()}), flush=True)
    kinds = modules()
    for family, n, h, f, a, k, d in (
        ("qwen3", 4096, 256, 768, 4, 2, 64),
        ("qwen3", 8192, 256, 768, 4, 2, 64),
        ("qwen3", 4096, 512, 1536, 8, 2, 64),
        ("qwen3", 4096, 256, 1280, 4, 4, 64),
        ("qwen3", 4096, 320, 1024, 4, 1, 128),
        ("llama", 4096, 256, 768, 4, 2, 64),
        ("llama", 4096, 512, 1536, 8, 4, 64),
        ("llama", 8192, 256, 1024, 4, 1, 64),
    ):
        torch._dynamo.reset()
        config = types.SimpleNamespace(
            hidden_size=h, intermediate_size=f, num_attention_heads=a, num_key_value_heads=k, head_dim=d, rms_norm_eps=1e-6,
            attention_bias=False, mlp_bias=False, hidden_act="silu", layer_types=["full_attention"], _attn_implementation="flash_attention_2",
        )
        layer = kinds[family](config, 0).to(torch.bfloat16)
        layer.self_attn._flash_attn_call = lambda q, k, v, *sizes, **options: flash(q, k, v)[0]
        block = checkpoint_wrapper(layer, preserve_rng_state=False)
        block.compile()
        table = tuple(torch.randn(1, n, d, dtype=torch.bfloat16) for _ in range(2))
        ends = torch.tensor([0, n], dtype=torch.int32)
        told = 0
        # Compiled before it is counted.
        for _ in range(2):
            for parameter in layer.parameters():
                parameter.grad = None
            x = torch.randn(1, n, h, dtype=torch.bfloat16, requires_grad=True) * 1
            y = block(x, table, ends, n)
            grad = torch.randn_like(y)
            told = most(lambda: torch.autograd.backward(y, grad))
        print(json.dumps({"family": family, "n": n, "h": h, "f": f, "a": a, "k": k, "d": d, "most in backward": told}), flush=True)


main()
