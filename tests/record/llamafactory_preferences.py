"""What the preference losses of LLaMA-Factory keep for backward behind the output layer, one JSON line a case.

`python llamafactory_preferences.py CHECKOUT > ../data/activations/llamafactory_preferences.jsonl` with torch 2.15.0 on a CPU and a
checkout of hiyouga/LLaMA-Factory. Its `get_batch_logps` is called as it is; around it stand the cast of the logits
(`train/dpo/trainer.py:concatenated_forward`, `train/kto/trainer.py:forward`) and DPO's loss as TRL 0.24 has it, without label
smoothing (`trl/trainer/dpo_trainer.py:dpo_loss`).
"""

import ast
import json
import subprocess
import sys
import typing

import torch
import torch.nn.functional as F

VOCABULARY, HEIGHT = 512, 16


def source(checkout):
    path = "HEAD:src/llamafactory/train/trainer_utils.py"
    return subprocess.run(["git", "-C", checkout, "show", path], check=True, capture_output=True, text=True).stdout


def own(checkout):
    wanted = [node for node in ast.parse(source(checkout)).body if getattr(node, "name", None) == "get_batch_logps"]
    names = {"torch": torch, "IGNORE_INDEX": -100, "Optional": typing.Optional}
    exec(compile(ast.Module(wanted, []), "trainer_utils", "exec"), names)
    return names["get_batch_logps"]


def case(logps_of, samples, tokens, kind):
    torch.manual_seed(0)
    sequences = samples if kind == "kto" else 2 * samples
    weight = torch.nn.Parameter(torch.randn(VOCABULARY, HEIGHT, dtype=torch.bfloat16))
    states = torch.randn(sequences, tokens, HEIGHT, dtype=torch.bfloat16, requires_grad=True)
    labels = torch.randint(0, VOCABULARY, (sequences, tokens))
    labels[:, : tokens // 4] = -100
    seen, stage = {}, ["output layer"]

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() != weight.data_ptr():
            seen.setdefault(storage.data_ptr(), [stage[0], list(tensor.shape), str(tensor.dtype), storage.nbytes(), storage])
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        logits = F.linear(states, weight)
        stage[0] = "log-probabilities"
        logps, _ = logps_of(logits=logits.to(torch.float32), labels=labels)
        stage[0] = "loss"
        if kind == "dpo":
            chosen, rejected = logps.split(samples)
            margin = (chosen - rejected) - (chosen - rejected).detach()
            loss = -F.logsigmoid(0.1 * margin) * (1 - 0.0) - F.logsigmoid(-0.1 * margin) * 0.0
        else:
            loss = 1 - torch.sigmoid(0.1 * (logps - logps.detach()))
    loss.mean().backward()
    kept = {}
    for place, shape, dtype, size, _ in seen.values():
        kept.setdefault(place, []).append({"shape": shape, "dtype": dtype.removeprefix("torch."), "bytes": size})
    return {"samples": samples, "tokens": tokens, "vocabulary": VOCABULARY, "hidden": HEIGHT, "objective": kind, "kept": kept}


def main():
    checkout = sys.argv[1]
    commit = subprocess.run(["git", "-C", checkout, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    print(json.dumps({"torch": torch.__version__, "LLaMA-Factory": commit.stdout.strip()}))
    for samples, tokens, kind in [(1, 64, "dpo"), (3, 96, "dpo"), (1, 64, "kto"), (4, 32, "kto")]:
        print(json.dumps(case(own(checkout), samples, tokens, kind)))


if __name__ == "__main__":
    main()
