"""Records the most bytes that steps of PyTorch's AdamW make beside parameters, gradients and moments, on a CPU.

    pip install torch==2.15.0
    python adam_step.py > ../data/torch/adam_step.tsv

Tensors of a few shapes are stepped over all at once (`foreach`, which is the default beside CUDA unless `fused` is asked for) and by the
fused kernel; sizes are those of storages that the second step makes and has alive together. Tab separated: the way, the type, how
weights decay, bytes of the parameters, bytes at most.
"""

import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

SHAPES = [(512, 256), (1024, 256), (256,), (256, 1024), (64, 64)]
# Numbers of steps and learning rates are scalars, of a few bytes each.
LEAST = 64


class Alive(TorchDispatchMode):
    """Bytes of storages made within it that are alive, and their most."""

    def __init__(self):
        super().__init__()
        self.bytes, self.most, self.seen = 0, 0, {}

    def gone(self, key, size):
        self.bytes -= size
        self.seen.pop(key, None)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        known = {one.untyped_storage()._cdata for one in tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)}
        out = func(*args, **(kwargs or {}))
        for one in tree_leaves(out):
            if isinstance(one, torch.Tensor):
                storage = one.untyped_storage()
                key, size = storage._cdata, storage.nbytes()
                if key not in known and key not in self.seen and size > LEAST:
                    self.seen[key] = size
                    self.bytes += size
                    self.most = max(self.most, self.bytes)
                    weakref.finalize(storage, self.gone, key, size)
        return out


def most(dtype, decay, **how):
    torch.manual_seed(0)
    parameters = [torch.nn.Parameter(torch.randn(shape, dtype=dtype)) for shape in SHAPES]
    optimizer = torch.optim.AdamW(parameters, lr=1e-3, weight_decay=decay, **how)
    for step in range(2):
        for one in parameters:
            one.grad = torch.randn_like(one)
        with Alive() as alive:
            optimizer.step()
    sizes = [one.nbytes for one in parameters]
    return sum(sizes), alive.most


def main():
    print("way\tdtype\tdecay\tparameters\tmost")
    for way, how in [("foreach", dict(foreach=True)), ("fused", dict(fused=True))]:
        for dtype in (torch.float32, torch.bfloat16):
            for decay in (0.0, 0.1):
                print(way, str(dtype).removeprefix("torch."), decay, *most(dtype, decay, **how), sep="\t")


if __name__ == "__main__":
    main()
