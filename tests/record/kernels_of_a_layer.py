"""Counts the kernels of a layer as PyTorch dispatches them, and the bytes that each reads and writes: Llama, Qwen3 and GPT-2, in one
type and under autocast, with fused attention and without, and a linear layer with adapters, forward and backward; and of an update of a matrix and of a vector by Adafactor, as the Trainer sets it up ("forward").

    pip install torch==2.11.0 transformers==5.17.0 peft==0.21.0
    python kernels_of_a_layer.py > ../data/measured/kernels_of_a_layer.tsv

Runs on a CPU. Products, fused attention and layer norms (other kernels on a GPU) are left out, and operands of fewer elements than there are tokens and columns: statistics
of a row, weights of norms, tables of sines. `slice_backward` and `select_backward` are a fill with zeros and a copy, which is how CUDA runs them; the others are
a kernel each. A linear layer runs under autocast in bf16, as transformers' Trainer has it.

Where a GPU dispatches otherwise, this does as the GPU: dropout is one kernel each way (`native_dropout`), and autocast takes a third
power and sums in fp32 (`aten/src/ATen/autocast_mode.h:AT_FORALL_FP32, AT_FORALL_FP32_SET_OPT_DTYPE`). GPT-2's attention runs without its own dropout, which is within the
fused kernel there.
"""
import contextlib
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import GPT2Config, LlamaConfig, Qwen3Config, AutoModelForCausalLM
from transformers.masking_utils import create_causal_mask
from transformers.optimization import Adafactor
from peft import LoraConfig, get_peft_model

PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "_grouped_mm")
# Memory is taken, and no kernel runs.
ALLOCATIONS = ("empty", "empty_like", "new_empty", "new_empty_strided")
B, S, H = 2, 64, 256


def dropout(x, p=0.5, training=True, inplace=False):
    return torch.native_dropout(x, p, True)[0] if training and p > 0 else x


def power(x, exponent):
    return POWER(x.float() if torch.is_autocast_enabled("cpu") else x, exponent)


def total(x, *args, **more):
    single = torch.is_autocast_enabled("cpu") and x.is_floating_point() and "dtype" not in more
    return SUM(x, *args, **more, dtype=torch.float32) if single else SUM(x, *args, **more)


POWER, torch.pow = torch.pow, power
SUM, torch.Tensor.sum = torch.Tensor.sum, total
torch.nn.functional.dropout = dropout


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
        if name in PRODUCTS + ALLOCATIONS or "attention" in name or "layer_norm" in name or (view and not in_place):
            return out

        def touched(t):
            n = 1
            for size, stride in zip(t.shape, t.stride()):
                n *= size if stride != 0 or size == 1 else 1
            return n * t.element_size() if n >= self.least else 0

        # Of the tensor that new zeros are made after only the type is asked.
        moved = sum(touched(t) for t in (() if name == "new_zeros" else ins)) + sum(touched(t) for t in outs)
        biggest = max((t.numel() for t in ins + outs), default=0)
        if biggest >= self.least:
            self.bytes += moved
        self.kernels += 1
        if name in ("slice_backward", "select_backward"):
            self.kernels += 1
            self.bytes += touched(ins[0])
        return out


def both(name, run, least):
    for direction, count in zip(("forward", "backward"), run(lambda: Count(least))):
        print(f"{name}\t{direction}\t{count.kernels}\t{count.bytes}")


def layer(config, dtype=torch.bfloat16, attention="sdpa", autocast=False):
    model = AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation=attention).train()
    hidden = torch.randn(B, S, H, dtype=dtype, requires_grad=True)
    if isinstance(config, GPT2Config):
        block, more = model.transformer.h[1], {}
    else:
        places = torch.arange(S)[None]
        block, more = model.model.layers[1], dict(position_embeddings=model.model.rotary_emb(hidden, places))
        more["attention_mask"] = create_causal_mask(
            config=model.config, inputs_embeds=hidden, attention_mask=None, past_key_values=None, position_ids=places)

    def run(count):
        with count() as forward, torch.autocast("cpu", torch.bfloat16) if autocast else contextlib.nullcontext():
            out = block(hidden, **more)
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


def update(shape, dtype):
    parameter = torch.nn.Parameter(torch.randn(shape, dtype=dtype))
    optimizer = Adafactor([parameter], lr=1e-3, scale_parameter=False, relative_step=False)

    def run(count):
        for _ in range(2):
            parameter.grad = torch.randn(shape, dtype=dtype)
            with count() as step:
                optimizer.step()
        return (step,)

    return run


if __name__ == "__main__":
    print("case\tpass\tkernels\tbytes")
    sizes = dict(hidden_size=H, intermediate_size=768, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, head_dim=64, vocab_size=512)
    both("llama", layer(LlamaConfig(**sizes)), 8192)
    both("qwen3", layer(Qwen3Config(**sizes)), 8192)
    single = dict(dtype=torch.float32)
    gpt2 = GPT2Config(n_embd=H, n_layer=3, n_head=4, vocab_size=512, attn_pdrop=0.0)
    both("llama autocast", layer(LlamaConfig(**sizes), autocast=True, **single), 8192)
    both("qwen3 autocast", layer(Qwen3Config(**sizes), autocast=True, **single), 8192)
    both("gpt2", layer(gpt2, **single), 8192)
    both("gpt2 autocast", layer(gpt2, autocast=True, **single), 8192)
    both("llama eager", layer(LlamaConfig(**sizes), attention="eager"), 8192)
    both("llama eager, all heads", layer(LlamaConfig(**{**sizes, "num_key_value_heads": 4}), attention="eager"), 8192)
    both("lora", adapted(), 16 * 256)
    both("dora", adapted(use_dora=True), 16 * 256)

    for name, dtype in (("bf16", torch.bfloat16), ("fp32", torch.float32)):
        both(f"adafactor, matrix in {name}", update((128, 256), dtype), 128 * 256)
        both(f"adafactor, vector in {name}", update((256,), dtype), 128 * 256)
