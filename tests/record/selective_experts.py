"""What layers with experts and with latent attention keep under torchtitan's selective checkpointing ("op"), in eager mode.

Run: python tests/record/selective_experts.py > tests/data/activations/selective_experts.tsv
Needs torch alone, on a CPU. Everything is bf16 but the kernel's statistics. The policy is that of
torchtitan/distributed/activation_checkpoint.py (v0.2.2): attention, and every second matrix product, where products with a weight
of the router's shape are repeated and not counted (`per_op_sac_force_recompute_mm_shapes_by_fqns`, by default "moe.router.gate");
grouped products are not on its list. Modules are those of torchtitan/models/moe/moe.py and models/deepseek_v3/model/model.py.
"""

from collections import defaultdict
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

BATCH, SEQUENCE, WIDTH, INNER, HEADS, GROUPS, HEAD = 2, 32, 64, 224, 4, 2, 16
EXPERTS, CHOSEN, EXPERT, SHARED = 8, 2, 96, 160
QUERY, KEYS, PLAIN, ROTATED, VALUE = 96, 48, 32, 16, 24
TOKENS = BATCH * SEQUENCE
PRODUCT = torch.ops.aten.mm.default
ATTENTION = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
linear = partial(nn.Linear, bias=False)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.wq, self.wo = linear(WIDTH, HEADS * HEAD), linear(HEADS * HEAD, WIDTH)
        self.wk, self.wv = linear(WIDTH, GROUPS * HEAD), linear(WIDTH, GROUPS * HEAD)

    def forward(self, x):
        queries = self.wq(x).view(BATCH, SEQUENCE, HEADS, HEAD).transpose(1, 2)
        keys, values = (
            one(x).view(BATCH, SEQUENCE, GROUPS, HEAD).repeat_interleave(HEADS // GROUPS, 2).transpose(1, 2)
            for one in (self.wk, self.wv)
        )
        out = F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        return self.wo(out.transpose(1, 2).reshape(BATCH, SEQUENCE, HEADS * HEAD))


class Latent(nn.Module):
    def __init__(self, narrow):
        super().__init__()
        self.narrow, width = narrow, HEADS * (PLAIN + ROTATED)
        if narrow:
            self.wq_a, self.q_norm, self.wq_b = linear(WIDTH, QUERY), nn.RMSNorm(QUERY), linear(QUERY, width)
        else:
            self.wq = linear(WIDTH, width)
        self.wkv_a, self.kv_norm = linear(WIDTH, KEYS + ROTATED), nn.RMSNorm(KEYS)
        self.wkv_b, self.wo = linear(KEYS, HEADS * (PLAIN + VALUE)), linear(HEADS * VALUE, WIDTH)

    def forward(self, x):
        queries = self.wq_b(self.q_norm(self.wq_a(x))) if self.narrow else self.wq(x)
        queries = queries.view(BATCH, SEQUENCE, HEADS, PLAIN + ROTATED).transpose(1, 2)
        latent, rotated = self.wkv_a(x).split([KEYS, ROTATED], -1)
        both = self.wkv_b(self.kv_norm(latent)).view(BATCH, SEQUENCE, HEADS, PLAIN + VALUE)
        plain, values = both.split([PLAIN, VALUE], -1)
        keys = torch.cat([plain, rotated.unsqueeze(2).expand(-1, -1, HEADS, -1)], -1).transpose(1, 2)
        # The CPU's kernel takes values as wide as keys; CUDA's others.
        values = F.pad(values, (0, PLAIN + ROTATED - VALUE)).transpose(1, 2)
        out = F.scaled_dot_product_attention(queries, keys, values, is_causal=True)[..., :VALUE]
        return self.wo(out.transpose(1, 2).reshape(BATCH, SEQUENCE, HEADS * VALUE))


class Gated(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.w1, self.w3, self.w2 = linear(WIDTH, inner), linear(WIDTH, inner), linear(inner, WIDTH)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Experts(nn.Module):
    def __init__(self, shared):
        super().__init__()
        self.gate, self.shared = linear(WIDTH, EXPERTS), Gated(SHARED) if shared else None
        weight = lambda *shape: nn.Parameter(torch.randn(EXPERTS, *shape) / 8)
        self.w1, self.w3, self.w2 = weight(EXPERT, WIDTH), weight(EXPERT, WIDTH), weight(WIDTH, EXPERT)

    def forward(self, x):
        x = x.view(-1, WIDTH)
        scores, chosen = torch.topk(F.softmax(self.gate(x).float(), -1), CHOSEN, -1)
        order = torch.argsort(chosen.view(-1), stable=True)
        counts = torch.bincount(chosen.view(-1), minlength=EXPERTS)
        rows = (order // CHOSEN).reshape(-1, 1).expand(-1, WIDTH)
        routed, ends = torch.gather(x, 0, rows), torch.cumsum(counts, 0, dtype=torch.int32)
        product = lambda y, weight: torch._grouped_mm(y, weight.transpose(-2, -1), offs=ends)
        out = product(F.silu(product(routed, self.w1)) * product(routed, self.w3), self.w2)
        out = (out.float() * scores.view(-1)[order].reshape(-1, 1)).type_as(x)
        total = self.shared(x) if self.shared is not None else torch.zeros_like(x)
        return total.scatter_add(0, rows, out).view(BATCH, SEQUENCE, WIDTH)


class Layer(nn.Module):
    def __init__(self, attention, mlp):
        super().__init__()
        self.attention, self.mlp = attention, mlp
        self.first, self.second = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)

    def forward(self, x):
        x = x + self.attention(self.first(x))
        return x + self.mlp(self.second(x))


def kept(layer):
    """Elements of the layer's input and of the outputs of the operations that the policy keeps, in their order."""
    put_by = []

    def contexts():
        products = defaultdict(int)

        def policy(context, function, *args, **kwargs):
            if function == PRODUCT:
                if args[1].shape == (WIDTH, EXPERTS):
                    return CheckpointPolicy.PREFER_RECOMPUTE
                products[context.is_recompute] += 1
            keeps = function == ATTENTION or function == PRODUCT and products[context.is_recompute] % 2 == 1
            if keeps and not context.is_recompute:
                if function == PRODUCT:
                    put_by.append(("product", args[0].shape[0] * args[1].shape[1]))
                else:
                    # Without the padding of values.
                    width = HEADS * HEAD if isinstance(layer.attention, Attention) else HEADS * VALUE
                    put_by.extend([("attention", TOKENS * width), ("statistics", TOKENS * HEADS)])
            return CheckpointPolicy.MUST_SAVE if keeps else CheckpointPolicy.PREFER_RECOMPUTE

        return create_selective_checkpoint_contexts(policy)

    run = checkpoint_wrapper(layer, context_fn=contexts, preserve_rng_state=False)
    out = run(torch.randn(BATCH, SEQUENCE, WIDTH, dtype=torch.bfloat16, requires_grad=True))
    (out * out).sum().backward()
    return [("input", BATCH * SEQUENCE * WIDTH), *put_by]


print(f"# torch {torch.__version__}: layer, tensor, elements")
for name, layer in [
    ("experts", lambda: Layer(Attention(), Experts(shared=False))),
    ("shared", lambda: Layer(Attention(), Experts(shared=True))),
    ("latent", lambda: Layer(Latent(narrow=False), Gated(INNER))),
    ("narrow", lambda: Layer(Latent(narrow=True), Gated(INNER))),
    ("narrow-shared", lambda: Layer(Latent(narrow=True), Experts(shared=True))),
]:
    for tensor, elements in kept(layer().bfloat16()):
        print(name, tensor, elements, sep="\t")
