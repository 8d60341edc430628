"""Counts the kernels of Qwen3-Next's linear mixer as PyTorch dispatches them where flash-linear-attention and causal-conv1d are not installed,
and the bytes that each reads and writes (`kernels_of_a_layer.py`, whose rules these are; every operand counts), forward and backward.

    pip install torch==2.11.0 transformers==5.17.0
    python reference_rule.py > ../data/measured/reference_rule.tsv

Runs on a CPU. transformers' reference loops over chunks of 64 tokens in Python, so that kernels grow with the sequence. Products are counted
apart, the three linear layers among them.
"""
import contextlib
import torch
from transformers import AutoConfig, AutoModelForCausalLM
from kernels_of_a_layer import PRODUCTS, Count

# Tokens, sequences, heads of keys and of values, their widths.
SHAPES = [(256, 1, 2, 4, 64, 128), (256, 1, 2, 4, 128, 64), (256, 2, 2, 4, 64, 64), (512, 1, 2, 4, 64, 128), (512, 1, 2, 4, 128, 64), (256, 1, 2, 8, 64, 96),
          (384, 1, 2, 6, 96, 64), (512, 1, 2, 8, 64, 64), (640, 1, 2, 4, 128, 96), (768, 1, 2, 4, 64, 96)]
HIDDEN = 64


class Both(Count):
    def __init__(self):
        super().__init__(1)
        self.products = 0

    def __torch_dispatch__(self, f, types, args=(), kwargs=None):
        self.products += f.overloadpacket.__name__ in PRODUCTS
        return super().__torch_dispatch__(f, types, args, kwargs)


def passes(tokens, sequences, key_heads, value_heads, key_width, value_width, dtype, autocast):
    config = AutoConfig.for_model(
        "qwen3_next", hidden_size=HIDDEN, intermediate_size=128, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, head_dim=32, vocab_size=256,
        linear_num_key_heads=key_heads, linear_num_value_heads=value_heads, linear_key_head_dim=key_width, linear_value_head_dim=value_width,
        linear_conv_kernel_dim=4, num_experts=8, num_experts_per_tok=2, moe_intermediate_size=32, shared_expert_intermediate_size=32)
    mixer = AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation="sdpa").train().model.layers[0].linear_attn
    hidden = torch.randn(sequences, tokens, HIDDEN, dtype=dtype, requires_grad=True)
    with Both() as forward, torch.autocast("cpu", torch.bfloat16) if autocast else contextlib.nullcontext():
        out = mixer(hidden)
    gradient = torch.randn_like(out)
    with Both() as backward:
        out.backward(gradient)
    return [one for count in (forward, backward) for one in (count.kernels, count.products, count.bytes)]


if __name__ == "__main__":
    print("weights\tautocast\ts\tb\thk\thv\tdk\tdl\tforward\tproducts\tbytes\tbackward\tproducts\tbytes")
    for name, dtype, autocast in (("bf16", torch.bfloat16, True), ("bf16", torch.bfloat16, False), ("fp32", torch.float32, True)):
        for shape in SHAPES:
            print(name, "bf16" if autocast else "none", *shape, *passes(*shape, dtype, autocast), sep="\t")
