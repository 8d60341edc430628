"""What OpenRLHF's reward head and its loss keep for backward, one JSON line a case.

`python openrlhf_rewards.py CHECKOUT > ../data/activations/openrlhf_rewards.jsonl` with torch on a CPU and a checkout of OpenRLHF/OpenRLHF.
The class that `openrlhf/models/model.py:_get_reward_model` makes, `openrlhf/models/ring_attn_utils.py:gather_and_pad_tensor` and
`openrlhf/models/loss.py:PairWiseLoss` run as they are over a model that hands on one tensor. In place of flash-attn's `pad_input`, which
needs a GPU to be installed, stands a function that saves what its `IndexPutFirstAxis` saves, the indices. Samples have no padding.
"""

import ast
import json
import subprocess
import sys
import types

import torch
import torch.nn.functional as F
from torch import nn

from trl_kto import own

HIDDEN = 64


class Put(torch.autograd.Function):
    """`flash_attn/bert_padding.py:IndexPutFirstAxis`."""

    @staticmethod
    def forward(ctx, values, indices, length):
        ctx.save_for_backward(indices)
        output = torch.zeros(length, *values.shape[1:], dtype=values.dtype)
        output[indices] = values
        return output

    @staticmethod
    def backward(ctx, gradient):
        (indices,) = ctx.saved_tensors
        return gradient[indices], None, None


class Base(nn.Module):
    """A model of which there is only the output."""

    def __init__(self, config):
        super().__init__()
        self.config, self.states = config, None

    def post_init(self):
        pass

    def forward(self, *given, **named):
        return {"last_hidden_state": self.states}


class Pretrained(Base):
    base_model_prefix = "model"


def of_class(checkout, path, name, names):
    text = subprocess.run(["git", "-C", checkout, "show", f"HEAD:{path}"], check=True, capture_output=True, text=True).stdout
    nodes = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef) and node.name == name]
    exec(compile(ast.Module(nodes, []), path, "exec"), names)
    return names[name]


def case(checkout, samples, tokens, dtype, packs):
    torch.manual_seed(0)
    from typing import Optional

    names = {"torch": torch, "nn": nn, "F": F, "Optional": Optional, "AutoConfig": object}
    names["pad_input"] = lambda values, indices, batch, length: Put.apply(values, indices, batch * length).view(batch, length, *values.shape[1:])
    own(checkout, "openrlhf/models/ring_attn_utils.py", ["gather_and_pad_tensor"], names)
    sequences = 2 * samples
    mask = torch.ones(sequences, tokens, dtype=torch.int64)
    packed = torch.arange(sequences * tokens)
    names["unpad_and_slice_tensor"] = lambda ids, mask, group: (ids.view(1, -1), None, None, 0, packed)
    own(checkout, "openrlhf/models/model.py", ["_get_reward_model"], names)
    config = types.SimpleNamespace(hidden_size=HIDDEN, normalize_reward=False)
    model = names["_get_reward_model"](Pretrained, Base, "score", packs)(config).to(dtype)
    shape = (1, sequences * tokens, HIDDEN) if packs else (sequences, tokens, HIDDEN)
    model.model.states = torch.randn(*shape, dtype=dtype, requires_grad=True)
    loss = of_class(checkout, "openrlhf/models/loss.py", "PairWiseLoss", names)()
    seen = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() != model.score.weight.data_ptr():
            seen.setdefault(storage.data_ptr(), [list(tensor.shape), str(tensor.dtype), storage.nbytes(), storage])
        return tensor

    model.train()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        rewards, _ = model(torch.ones(sequences, tokens, dtype=torch.int64), attention_mask=mask, return_output=True)
        loss(rewards[:samples], rewards[samples:]).backward()
    kept = [{"shape": shape, "dtype": kind.removeprefix("torch."), "bytes": size} for shape, kind, size, _ in seen.values()]
    return {
        "samples": samples, "tokens": tokens, "hidden": HIDDEN, "dtype": str(dtype).removeprefix("torch."), "packs": packs, "kept": kept,
    }


def main():
    checkout = sys.argv[1]
    commit = subprocess.run(["git", "-C", checkout, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    print(json.dumps({"torch": torch.__version__, "openrlhf": commit.stdout.strip()}))
    for packs in [False, True]:
        for dtype in [torch.bfloat16, torch.float32]:
            for samples, tokens in [(1, 32), (3, 48)]:
                print(json.dumps(case(checkout, samples, tokens, dtype, packs)))


if __name__ == "__main__":
    main()
