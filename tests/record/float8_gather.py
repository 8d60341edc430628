"""Records what FSDP2 gathers of torchao's float8 linear layers (`enable_fsdp_float8_all_gather`), on a CPU over gloo.

    python float8_gather.py > ../data/torch/float8_gather.tsv

Needs torch 2.15.0 and torchao 0.18.0. The modules of titan_states.py with `output` filtered out, in fp32 and in bf16, gathered in bf16
where they are not converted. Two ranks; products are emulated. Tab separated: dtype, whether weights are gathered in 8 bits, parameters
of a layer's linear layers, of its norm, of embedding, norm and output layer, layers; then the bytes that each unit's all-gather of the
second step's forward puts out, joined by commas, and the bytes of all inputs of reduce-scatters.
"""

import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torchao
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torchao.float8 import Float8LinearConfig, convert_to_float8_training

from titan_states import LAYERS, RANKS, VOCABULARY, WIDTH, Model


class Normed(torch.nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.norm, self.layer = torch.nn.RMSNorm(WIDTH), layer

    def forward(self, x):
        return self.layer(self.norm(x))


def run(dtype, narrow):
    torch.manual_seed(0)
    torch.set_default_dtype(dtype)
    model = Model()
    for index in range(LAYERS):
        model.layers[index] = Normed(model.layers[index])
    torch.set_default_dtype(torch.float32)
    config = Float8LinearConfig(enable_fsdp_float8_all_gather=narrow, emulate=True)
    convert_to_float8_training(model, config=config, module_filter_fn=lambda module, name: "output" not in name)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for module in [model.tok_embeddings, *model.layers]:
        fully_shard(module, mp_policy=policy)
    fully_shard([model.norm, model.output], mp_policy=policy, reshard_after_forward=False)
    fully_shard(model, mp_policy=policy)
    gathered, scattered = [], []
    gather, scatter = dist.all_gather_single, dist.reduce_scatter_single

    def counted_gather(*args, **named):
        gathered.append(args[0].nbytes)
        return gather(*args, **named)

    def counted_scatter(*args, **named):
        scattered.append(named["input"].nbytes)
        return scatter(*args, **named)

    forward = []
    for step in range(2):
        if step == 1:
            dist.all_gather_single, dist.reduce_scatter_single = counted_gather, counted_scatter
        tokens = torch.randint(VOCABULARY, (2, 16))
        loss = torch.nn.functional.cross_entropy(model(tokens).float().flatten(0, 1), tokens.flatten())
        forward = list(gathered)
        loss.backward()
        model.zero_grad()
    dist.all_gather_single, dist.reduce_scatter_single = gather, scatter
    return [",".join(map(str, forward)), sum(scattered)]


def main(rank):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29513")
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    sizes = [4 * WIDTH * WIDTH, WIDTH, VOCABULARY * WIDTH, WIDTH, VOCABULARY * WIDTH, LAYERS]
    if rank == 0:
        print(f"# torch {torch.__version__}, torchao {torchao.__version__}, {RANKS} ranks")
    for dtype in (torch.float32, torch.bfloat16):
        for narrow in (False, True):
            row = run(dtype, narrow)
            if rank == 0:
                print(str(dtype).removeprefix("torch."), str(narrow).lower(), *sizes, *row, sep="\t", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(main, nprocs=RANKS)
