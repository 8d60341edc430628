"""What SimPO's own trainer keeps for backward behind the output layer and holds at most on the way, one JSON line a case.

`python simpo.py CHECKOUT > ../data/activations/simpo.jsonl` with torch 2.15.0 on a CPU and a checkout of princeton-nlp/SimPO. Its
`concatenated_forward`, `get_batch_logps`, `simpo_loss` and `get_batch_loss_metrics` are run as they are; the model is an embedding and
an output layer in bf16, whose output Accelerate hands on in fp32 where a case says `cast` (`trl_dpo.py` says where). Every token has a
label.
"""

import json
import subprocess
import sys
import types
from typing import Dict, List, Literal, Tuple, Union

import torch
import torch.nn as nn
import torch.nn.functional as F

from trl_kto import HEIGHT, VOCABULARY, Held, own


def case(checkout, pairs, tokens, cast):
    torch.manual_seed(0)
    names = {"torch": torch, "F": F, "nn": nn, "Dict": Dict, "List": List, "Literal": Literal, "Tuple": Tuple, "Union": Union, "staticmethod": lambda f: f}
    wanted = ["concatenated_forward", "get_batch_logps", "simpo_loss", "get_batch_loss_metrics"]
    own(checkout, "scripts/simpo_trainer.py", wanted, names)
    weight = torch.nn.Parameter(torch.randn(VOCABULARY, HEIGHT, dtype=torch.bfloat16))
    table = torch.nn.Parameter(torch.randn(VOCABULARY, HEIGHT, dtype=torch.bfloat16))

    def model(input_ids, attention_mask=None, use_cache=None):
        logits = F.linear(F.embedding(input_ids, table), weight)
        return types.SimpleNamespace(logits=logits.float() if cast else logits)

    ids = torch.randint(0, VOCABULARY, (2 * pairs, tokens))
    whole = {"concatenated_input_ids": ids, "concatenated_attention_mask": torch.ones_like(ids), "concatenated_labels": ids.clone()}
    trainer = types.SimpleNamespace(
        accelerator=types.SimpleNamespace(device="cpu"), is_encoder_decoder=False, label_pad_token_id=-100, padding_value=0, beta=2.0,
        gamma_beta_ratio=0.5, loss_type="sigmoid", label_smoothing=0, sft_weight=0.0, concatenated_inputs=lambda *_, **__: dict(whole),
        get_batch_logps=names["get_batch_logps"],
    )
    trainer.concatenated_forward = lambda *given: names["concatenated_forward"](trainer, *given)
    trainer.simpo_loss = lambda *given: names["simpo_loss"](trainer, *given)
    batch = {"chosen_labels": torch.zeros(pairs, 1)}
    parameters, seen = {weight.data_ptr(), table.data_ptr()}, {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            seen.setdefault(storage.data_ptr(), [list(tensor.shape), str(tensor.dtype), storage.nbytes(), storage])
        return tensor

    # Once without the hooks, which hold what they see.
    with Held() as held:
        loss = names["get_batch_loss_metrics"](trainer, model, batch)[0]
    most, after = held.most, held.now
    held.most = 0
    with held:
        loss.backward()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        names["get_batch_loss_metrics"](trainer, model, batch)
    kept = [{"shape": shape, "dtype": dtype.removeprefix("torch."), "bytes": size} for shape, dtype, size, _ in seen.values()]
    return {
        "pairs": pairs, "tokens": tokens, "vocabulary": VOCABULARY, "hidden": HEIGHT, "precomputed": True, "cast": cast, "calls": [True],
        "held_at_most": most, "held_after": after, "held_in_backward_at_most": held.most, "kept": kept,
    }


def main():
    checkout = sys.argv[1]
    commit = subprocess.run(["git", "-C", checkout, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    print(json.dumps({"torch": torch.__version__, "simpo": commit.stdout.strip()}))
    for cast in [False, True]:
        for pairs, tokens in [(1, 64), (2, 96), (3, 256)]:
            print(json.dumps(case(checkout, pairs, tokens, cast)))


if __name__ == "__main__":
    main()
