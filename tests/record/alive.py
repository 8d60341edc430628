"""Which storages are alive while operations of PyTorch run: for recorders of this folder."""

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode


class Alive(TorchDispatchMode):
    """The storages of at least `least` bytes that are alive after each operation, those of `own` left out."""

    def __init__(self, own, least):
        super().__init__()
        self.least = least
        self.own, self.seen, self.most = [one.untyped_storage() for one in own], {}, 0

    def alive(self):
        self.seen = {reference: size for reference, size in self.seen.items() if not reference.expired()}
        return sum(self.seen.values())

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for value in out if isinstance(out, (tuple, list)) else [out]:
            if isinstance(value, torch.Tensor):
                storage = value.untyped_storage()
                is_own = any(storage._cdata == one._cdata for one in self.own)
                if storage.nbytes() >= self.least and not is_own:
                    self.seen.setdefault(StorageWeakRef(storage), storage.nbytes())
        self.most = max(self.most, self.alive())
        return out
