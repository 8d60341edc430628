"""What a layer of Llama 3 keeps under torchtitan's selective checkpointing ("op"), in eager mode and compiled.

Run: python tests/record/selective_checkpoint.py > tests/data/activations/selective_checkpoint.tsv
Needs torch alone, on a CPU. Every tensor is fp32. In eager mode what is kept is the layer's input and what the checkpoint's
policy has put by; compiled, what autograd saves for the compiled function, parameters left out. The policy is that of
torchtitan/distributed/activation_checkpoint.py: attention, and every second matrix product.
"""

from collections import defaultdict
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

BATCH, SEQUENCE, WIDTH, INNER, HEADS, GROUPS, HEAD = 2, 32, 64, 224, 4, 2, 16
PRODUCT = torch.ops.aten.mm.default
ATTENTION = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).type_as(x) * self.weight


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        linear = partial(nn.Linear, bias=False)
        self.wq, self.wo = linear(WIDTH, HEADS * HEAD), linear(HEADS * HEAD, WIDTH)
        self.wk, self.wv = linear(WIDTH, GROUPS * HEAD), linear(WIDTH, GROUPS * HEAD)
        self.w1, self.w3, self.w2 = linear(WIDTH, INNER), linear(WIDTH, INNER), linear(INNER, WIDTH)
        self.first, self.second = Norm(), Norm()

    def forward(self, x):
        y = self.first(x)
        queries = self.wq(y).view(BATCH, SEQUENCE, HEADS, HEAD).transpose(1, 2)
        keys, values = (
            linear(y).view(BATCH, SEQUENCE, GROUPS, HEAD).repeat_interleave(HEADS // GROUPS, 2).transpose(1, 2)
            for linear in (self.wk, self.wv)
        )
        out = F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        x = x + self.wo(out.transpose(1, 2).reshape(BATCH, SEQUENCE, HEADS * HEAD))
        y = self.second(x)
        return x + self.w2(F.silu(self.w1(y)) * self.w3(y))


def contexts(put_by):
    products = defaultdict(int)

    def policy(context, function, *args, **kwargs):
        if function == PRODUCT:
            products[context.is_recompute] += 1
        keeps = function == ATTENTION or function == PRODUCT and products[context.is_recompute] % 2 == 1
        if keeps and not context.is_recompute:
            put_by.append(function)
        return CheckpointPolicy.MUST_SAVE if keeps else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


def eager():
    """The layer's input, and the outputs of the operations that the policy keeps, in their order."""
    kept, put_by = [("input", BATCH * SEQUENCE * WIDTH)], []
    layer = checkpoint_wrapper(Layer(), context_fn=partial(contexts, put_by), preserve_rng_state=False)
    layer(torch.randn(BATCH, SEQUENCE, WIDTH, requires_grad=True))
    tokens = BATCH * SEQUENCE
    products = iter([HEADS * HEAD, GROUPS * HEAD, INNER, WIDTH])
    for function in put_by:
        if function == PRODUCT:
            kept.append(("product", tokens * next(products)))
        else:
            kept += [("attention", tokens * HEADS * HEAD), ("statistics", tokens * HEADS)]
    return kept


def compiled():
    layer = checkpoint_wrapper(Layer(), context_fn=partial(contexts, []), preserve_rng_state=False)
    own = {parameter.untyped_storage().data_ptr() for parameter in layer.parameters()}
    saved = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            saved[storage.data_ptr()] = storage.nbytes() // tensor.element_size()
        return tensor

    # The partitioner of torch.compile decides what is saved; code generation after it does not.
    run = torch.compile(layer, fullgraph=True, backend="aot_eager_decomp_partition")
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        run(torch.randn(BATCH, SEQUENCE, WIDTH, requires_grad=True))
    return [("saved", elements) for elements in saved.values()]


print(f"# torch {torch.__version__}: mode, tensor, elements")
for mode, kept in (("eager", eager()), ("compiled", compiled())):
    for name, elements in kept:
        print(mode, name, elements, sep="\t")
