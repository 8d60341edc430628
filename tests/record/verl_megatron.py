"""Records what verl's log-probabilities and entropies hold of the logits under Megatron, on a CPU.

    git clone https://github.com/volcengine/verl && pip install torch==2.11.0 megatron-core==0.16.1
    python tests/record/verl_megatron.py verl > tests/data/activations/verl_megatron.jsonl

The steps are those of verl's `verl/workers/actor/megatron_actor.py:logits_processor` between the output layer and the loss, with the functions of
its own `verl/utils/megatron/tensor_parallel.py` and those of Megatron core that these call: the output layer's 16 bits, which
`megatron/core/transformer/module.py:Float16Module` makes fp32, over the temperature in place; where entropies are taken a copy of them; and the
log-probabilities, which take the place of the logits or of that copy. `torch.compile` is stood in for by a contraction that makes no tensor of
the logits' size either, as the compiled sum of a product does not. Counted are tensors of at least 2 bytes for each logit: the most that are
alive in a pass without gradients ("scored"), and in training those kept for backward, and the most of forward and of backward.
"""

import ast
import json
import subprocess
import sys
import types

import torch
from megatron.core import parallel_state, tensor_parallel
from megatron.core.transformer.module import float16_to_fp32
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

HIDDEN, VOCABULARY = 4, 512


class Alive(TorchDispatchMode):
    """The wide storages that are alive, after each operation."""

    def __init__(self, least):
        super().__init__()
        self.least, self.seen, self.most = least, {}, 0

    def alive(self):
        self.seen = {reference: size for reference, size in self.seen.items() if not reference.expired()}
        return sum(self.seen.values())

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for value in out if isinstance(out, (tuple, list)) else [out]:
            if isinstance(value, torch.Tensor) and value.untyped_storage().nbytes() >= self.least:
                storage = value.untyped_storage()
                self.seen.setdefault(StorageWeakRef(storage), storage.nbytes())
        self.most = max(self.most, self.alive())
        return out


def functions(checkout):
    """The functions of a checkout's `tensor_parallel.py` that are met here."""
    text = subprocess.run(
        ["git", "-C", checkout, "show", "HEAD:verl/utils/megatron/tensor_parallel.py"], check=True, capture_output=True, text=True
    ).stdout
    module = types.ModuleType("verl_tensor_parallel")
    stand_in = types.SimpleNamespace(**{name: getattr(torch, name) for name in ("Tensor", "autograd")})
    # The compiled sum of a product.
    stand_in.compile = lambda dynamic: lambda _: lambda one, other: torch.einsum("...v,...v->...", one, other).unsqueeze(-1)
    module.__dict__.update(torch=stand_in, dist=torch.distributed, mpu=parallel_state)
    for node in ast.parse(text).body:
        if getattr(node, "name", None) in ("_VocabParallelEntropy", "vocab_parallel_entropy", "vocab_parallel_log_probs_from_logits"):
            exec("from __future__ import annotations\n" + ast.get_source_segment(text, node), module.__dict__)
    return module


def head(weight, states):
    """Logits as they leave the wrapped model."""
    return float16_to_fp32(torch.nn.functional.linear(states, weight).transpose(0, 1).contiguous())


def taken(own, logits, labels, entropy):
    logits.div_(1.0)
    found = {}
    if entropy:
        copy = logits.clone()
        found["entropy"] = own.vocab_parallel_entropy(logits)
    else:
        copy = logits
    found["log_probs"] = own.vocab_parallel_log_probs_from_logits(copy, labels)
    return found


def record(own, tokens, entropy):
    states = torch.randn(tokens, 1, HIDDEN, dtype=torch.bfloat16, requires_grad=True)
    weight = torch.randn(VOCABULARY, HIDDEN, dtype=torch.bfloat16, requires_grad=True)
    labels = torch.zeros(1, tokens, dtype=torch.int64)
    alive = Alive(2 * tokens * VOCABULARY)
    with alive:
        found = taken(own, head(weight, states), labels, entropy)
        loss = sum(value.mean() for value in found.values())
        del found
        kept, forward, alive.most = alive.alive(), alive.most, 0
        loss.backward()
        del loss
        backward, alive.most = alive.most, 0
        with torch.no_grad():
            # The caller has a name for what the model returned.
            logits = head(weight, states)
            taken(own, logits, labels, entropy)
    return {"kept": kept, "forward": forward, "backward": backward, "scored": alive.most}


def main():
    torch.distributed.init_process_group("gloo", init_method="tcp://127.0.0.1:29571", rank=0, world_size=1)
    parallel_state.initialize_model_parallel()
    own = functions(sys.argv[1])
    assert tensor_parallel
    print(json.dumps({"torch": torch.__version__, "vocabulary": VOCABULARY}))
    for entropy in (False, True):
        for tokens in (11, 64, 200):
            print(json.dumps({"entropy": entropy, "tokens": tokens, **record(own, tokens, entropy)}))


if __name__ == "__main__":
    main()
