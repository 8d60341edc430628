"""Records what a rank holds and sends under torchtitan's choices of format and step, on a CPU over gloo.

    python titan_states.py > ../data/torch/titan_states.tsv

Needs torch 2.15.0. Modules are sharded by FSDP2 as `torchtitan/models/llama3/infra/parallelize.py:apply_fsdp` does (embedding, each
layer, norm and output layer, root), made in `training.dtype`, gathered in bf16 and reduced in `training.mixed_precision_reduce`; the
optimizer is AdamW as `components/optimizer.py` makes it, or one for each parameter in a hook that steps it and lets go of its gradient
(`early_step_in_backward`). Two ranks. Tab separated: dtype, dtype of the reduction, where it steps, parameters of a layer, of
embedding, norm and output layer each, layers; then bytes on a rank: weights, gradients behind backward, most of gradients at any hook,
moments, outputs of all-gathers and inputs of reduce-scatters in the second step.
"""

import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

RANKS = 2
WIDTH, VOCABULARY, LAYERS = 64, 256, 3


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.down = torch.nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        return x + self.down(torch.nn.functional.silu(self.up(x)))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tok_embeddings = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.layers = torch.nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = torch.nn.RMSNorm(WIDTH)
        self.output = torch.nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens):
        x = self.tok_embeddings(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.output(self.norm(x))


def local(tensor):
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def run(dtype, reduce, within):
    torch.manual_seed(0)
    torch.set_default_dtype(dtype)
    model = Model()
    torch.set_default_dtype(torch.float32)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=reduce)
    for module in [model.tok_embeddings, *model.layers]:
        fully_shard(module, mp_policy=policy)
    fully_shard([model.norm, model.output], mp_policy=policy, reshard_after_forward=False)
    fully_shard(model, mp_policy=policy)
    parameters = list(model.parameters())
    most = 0

    def gradients():
        return sum(local(one.grad).nbytes for one in parameters if one.grad is not None)

    def hook(one):
        nonlocal most
        most = max(most, gradients())
        if within:
            optimizers[one].step()
            optimizers[one].zero_grad()

    kinds = {"lr": 1e-3, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1, "fused": True, "foreach": False}
    if within:
        optimizers = {one: torch.optim.AdamW([one], **kinds) for one in parameters}
    else:
        optimizers = {None: torch.optim.AdamW(parameters, **kinds)}
    for one in parameters:
        one.register_post_accumulate_grad_hook(hook)
    sent = {"gathered": 0, "reduced": 0}
    gather, scatter = dist.all_gather_single, dist.reduce_scatter_single

    def counted_gather(*args, **named):
        sent["gathered"] += args[0].nbytes
        return gather(*args, **named)

    def counted_scatter(*args, **named):
        sent["reduced"] += named["input"].nbytes
        return scatter(*args, **named)

    left = 0
    for step in range(2):
        if step == 1:
            dist.all_gather_single, dist.reduce_scatter_single = counted_gather, counted_scatter
        tokens = torch.randint(VOCABULARY, (2, 16))
        torch.nn.functional.cross_entropy(model(tokens).float().flatten(0, 1), tokens.flatten()).backward()
        left = gradients()
        if not within:
            optimizers[None].step()
            optimizers[None].zero_grad()
    dist.all_gather_single, dist.reduce_scatter_single = gather, scatter
    states = [state for one in optimizers.values() for state in one.state.values()]
    moments = sum(local(state[name]).nbytes for state in states for name in ("exp_avg", "exp_avg_sq"))
    weights = sum(local(one).nbytes for one in parameters)
    return [weights, left, most, moments, sent["gathered"], sent["reduced"]]


def main(rank):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29512")
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    sizes = [4 * WIDTH * WIDTH, VOCABULARY * WIDTH, WIDTH, VOCABULARY * WIDTH, LAYERS]
    if rank == 0:
        print(f"# torch {torch.__version__}, {RANKS} ranks")
    for dtype in (torch.float32, torch.bfloat16):
        for reduce in (torch.float32, torch.bfloat16):
            for within in (False, True):
                row = run(dtype, reduce, within)
                if rank == 0:
                    names = [str(one).removeprefix("torch.") for one in (dtype, reduce)]
                    print(*names, "backward" if within else "step", *sizes, *row, sep="\t", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(main, nprocs=RANKS)
