"""Counts the kernels of a layer as PyTorch dispatches them, and the bytes that each reads and writes: Llama, Qwen3, and a linear layer
with adapters, forward and backward.

    pip install torch==2.11.0 transformers==5.17.0 peft==0.21.0
    python kernels_of_a_layer.py > ../data/measured/kernels_of_a_layer.tsv

Runs on a CPU. Products and fused attention are left out, and operands of fewer elements than there are tokens and columns: statistics
of a row, weights of norms, tables of sines. `slice_backward` is a fill with zeros and a copy, which is how CUDA runs it; the others are
a kernel each. A linear layer runs under autocast in bf16, as transformers' Trainer has it.
"""
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import LlamaConfig, Qwen3Config, AutoModelForCausalLM
from peft import LoraConfig, get_peft_model

PRODUCTS = ("mm", "addmm", "bmm")
B, S, H = 2, 64, 256


class Count(TorchDispatchMode):
    """Kernels and bytes of what is not a product; `least` elements make an operand count."""

    def __init__(self, least):
        super().__init__()
        self.kernels, self.bytes, self.least = 0, 0, least

    def __torch_dispatch__(self, f, types, args=(), kwargs=None):
        out = f(*args, **(kwargs or {}))
        name = f.overloadpacket.__name__

        def tensors(x):
            if isinstance(x, torch.Tensor):
                yield x
            elif isinstance(x, (list, tuple)):
                for v in x:
                    yield from tensors(v)

        ins, outs = list(tensors(args)), list(tensors(out))
        held = {t.untyped_storage().data_ptr() for t in ins}
        in_place = name.endswith("_") and not name.startswith("_")
        view = all(t.untyped_storage().data_ptr() in held for t in outs)
        if name in PRODUCTS or "attention" in name or (view and not in_place):
            return out

        def touched(t):
            n = 1
            for size, stride in zip(t.shape, t.stride()):
                n *= size if stride != 0 or size == 1 else 1
            return n * t.element_size() if n >= self.least else 0

        moved = sum(touched(t) for t in ins) + sum(touched(t) for t in outs)
        biggest = max((t.numel() for t in ins + outs), default=0)
        if biggest >= self.least:
            self.bytes += moved
        self.kernels += 1
        if name == "slice_backward":
            self.kernels += 1
            self.bytes += touched(ins[0])
        return out


def both(name, run, least):
    for direction, count in zip(("forward", "backward"), run(lambda: Count(least))):
        print(f"{name}\t{direction}\t{count.kernels}\t{count.bytes}")


def layer(config):
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, attn_implementation="sdpa")
    hidden = torch.randn(B, S, H, dtype=torch.bfloat16, requires_grad=True)
    positions = model.model.rotary_emb(hidden, torch.arange(S)[None])

    def run(count):
        with count() as forward:
            out = model.model.layers[1](hidden, position_embeddings=positions, attention_mask=None)
        out = out[0] if isinstance(out, tuple) else out
        gradient = torch.randn_like(out)
        with count() as backward:
            out.backward(gradient)
        return forward, backward

    return run


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.q_proj = torch.nn.Linear(H, 384, bias=False, dtype=torch.bfloat16)

    def forward(self, x):
        return self.q_proj(x)


def adapted(**more):
    model = get_peft_model(Net(), LoraConfig(r=16, target_modules=["q_proj"], **more))
    hidden = torch.randn(B, S, H, dtype=torch.bfloat16, requires_grad=True)

    def run(count):
        with count() as forward, torch.autocast("cpu", torch.bfloat16):
            out = model(hidden)
        gradient = torch.randn_like(out)
        with count() as backward:
            out.backward(gradient)
        return forward, backward

    return run


print("case\tpass\tkernels\tbytes")
sizes = dict(hidden_size=H, intermediate_size=768, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, head_dim=64, vocab_size=512)
both("llama", layer(LlamaConfig(**sizes)), 8192)
both("qwen3", layer(Qwen3Config(**sizes)), 8192)
both("lora", adapted(), 16 * 256)
both("dora", adapted(use_dora=True), 16 * 256)
