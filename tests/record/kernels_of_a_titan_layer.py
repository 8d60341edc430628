"""Counts the kernels of a layer of torchtitan's Llama that is not compiled, and the bytes that each reads and writes, as PyTorch
dispatches them, forward and backward; products and fused attention aside, as in `kernels_of_a_layer.py`.

    pip install torch==2.15.0 transformers==5.17.0 peft==0.21.0
    git clone https://github.com/pytorch/torchtitan && git -C torchtitan checkout 9dec370a
    python kernels_of_a_titan_layer.py torchtitan > ../data/measured/kernels_of_a_titan_layer.tsv

Runs on a CPU. The norm is that of `norm_type = "rmsnorm"` (`torchtitan/models/norms.py:RMSNorm`); Triton's, in the same file, is
not imported.
"""
import ast
import pathlib
import sys
import types

import torch
from kernels_of_a_layer import Count

ROOT = pathlib.Path(sys.argv[1]) / "torchtitan" / "models"
B, S, H = 2, 64, 256


def norm():
    tree = ast.parse((ROOT / "norms.py").read_text())
    of = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "RMSNorm"]
    names = {"torch": torch, "nn": torch.nn}
    exec(compile(ast.Module(of, []), "norms.py", "exec"), names)
    return names["RMSNorm"]


def model():
    norms, made = types.ModuleType("torchtitan.models.norms"), norm()
    norms.build_norm = lambda kind, dim, eps: made(dim, eps)
    for name, module in (("torchtitan", types.ModuleType("torchtitan")), ("torchtitan.models", types.ModuleType("torchtitan.models")), (norms.__name__, norms)):
        sys.modules[name] = module
    module = types.ModuleType("titan")
    sys.modules["titan"] = module
    exec(compile((ROOT / "llama" / "model.py").read_text(), "model.py", "exec"), module.__dict__)
    return module


if __name__ == "__main__":
    titan = model()
    sizes = titan.ModelArgs(dim=H, n_layers=3, n_heads=4, n_kv_heads=2, vocab_size=512, multiple_of=256, max_seq_len=S)
    layer = titan.TransformerBlock(1, sizes).to(torch.bfloat16)
    table = titan.precompute_freqs_cis(H // 4, S)
    hidden = torch.randn(B, S, H, dtype=torch.bfloat16, requires_grad=True)
    with Count(8192) as forward:
        out = layer(hidden, table)
    gradient = torch.randn_like(out)
    with Count(8192) as backward:
        out.backward(gradient)
    print("case\tpass\tkernels\tbytes")
    for name, count in (("forward", forward), ("backward", backward)):
        print(f"torchtitan\t{name}\t{count.kernels}\t{count.bytes}")
