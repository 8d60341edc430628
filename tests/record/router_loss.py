"""What transformers' load-balancing loss over the routers of all layers keeps for backward and holds at most, one JSON line a case.

`python router_loss.py MODELING... > ../data/activations/router_loss.jsonl` with torch 2.11.0 on a CPU, where each MODELING is
`release=path` of a `models/mixtral/modeling_mixtral.py`. `load_balancing_loss_func` runs as it is over router logits that require a
gradient. `held_before` are those logits, of which a layer that is not recomputed keeps its own. With `mask` the batch brings an
attention mask (int64). One-hot matrices, masks and casts of them are in `held_at_most`.
"""

import ast
import json
import pathlib
import sys

import torch

from trl_kto import Held

LAYERS, SAMPLES, TOKENS, EXPERTS, CHOSEN = 3, 2, 32, 16, 4


def case(release, function, kind, masked):
    torch.manual_seed(0)
    with Held() as held:
        logits = tuple(torch.randn(SAMPLES * TOKENS, EXPERTS, dtype=kind, requires_grad=True) for _ in range(LAYERS))
        before = held.now
        mask = torch.ones(SAMPLES, TOKENS, dtype=torch.int64) if masked else None
        given = held.now - before
        held.most = held.now
        loss = function(logits, EXPERTS, CHOSEN, mask)
        most, after = held.most, held.now
        held.most = held.now
        loss.backward()
    kept = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        kept.setdefault(storage.data_ptr(), [list(tensor.shape), str(tensor.dtype).removeprefix("torch."), storage.nbytes(), storage])
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        again = function(logits, EXPERTS, CHOSEN, mask)
    assert torch.equal(again, loss)
    return {
        "release": release, "dtype": str(kind).removeprefix("torch."), "mask": masked, "layers": LAYERS, "tokens": SAMPLES * TOKENS,
        "experts": EXPERTS, "chosen": CHOSEN, "held_before": before, "given": given, "held_at_most": most - before - given,
        "held_after": after - before - given, "held_in_backward_at_most": held.most - before - given,
        "kept": [{"shape": shape, "dtype": dtype, "bytes": size} for shape, dtype, size, _ in kept.values()],
    }


def main():
    print(json.dumps({"torch": torch.__version__}))
    for named in sys.argv[1:]:
        release, path = named.split("=")
        text = pathlib.Path(path).read_text()
        node = next(node for node in ast.parse(text).body if getattr(node, "name", None) == "load_balancing_loss_func")
        names = {"torch": torch}
        exec(compile(ast.Module([node], []), path, "exec"), names)
        for kind in (torch.bfloat16, torch.float32):
            for masked in (False, True):
                print(json.dumps(case(release, names["load_balancing_loss_func"], kind, masked)))


main()
