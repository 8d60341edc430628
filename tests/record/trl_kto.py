"""What TRL's KTO keeps for backward behind the output layer and holds at most on the way, one JSON line a case.

`python trl_kto.py CHECKOUT > ../data/activations/trl_kto.jsonl` with torch 2.15.0 on a CPU and a checkout of huggingface/trl. Its
`KTOTrainer._compute_loss` and `_compute_kl_logps` and its `selective_log_softmax` and `entropy_from_logits` are run as they are; the
model is an embedding and an output layer in bf16. Where a case says `cast`, its output is handed on in fp32, as Accelerate does with a
model under autocast (`trl_dpo.py` says where). Every token is of the completion, and every other sample is a good one.
"""

import ast
import contextlib
import json
import subprocess
import sys
import types
import weakref
from collections import defaultdict

import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

VOCABULARY, HEIGHT = 4096, 16


def own(checkout, path, wanted, names):
    text = subprocess.run(["git", "-C", checkout, "show", f"HEAD:{path}"], check=True, capture_output=True, text=True).stdout
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef) and node.name in wanted]
    exec(compile(ast.Module(nodes, []), path, "exec"), names)


class Held(TorchDispatchMode):
    """Bytes of tensors that are alive, of those made within."""

    def __init__(self):
        super().__init__()
        self.now, self.most, self.seen = 0, 0, set()

    def __torch_dispatch__(self, function, kinds, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, (tuple, list)) else [out]:
            if isinstance(tensor, torch.Tensor):
                self.add(tensor.untyped_storage())
        return out

    def add(self, storage):
        key = storage._cdata
        if key not in self.seen:
            self.seen.add(key)
            size = storage.nbytes()
            self.now += size
            self.most = max(self.most, self.now)
            weakref.finalize(storage, self.drop, key, size)

    def drop(self, key, size):
        self.seen.discard(key)
        self.now -= size


def case(checkout, samples, tokens, precomputed, cast):
    torch.manual_seed(0)
    names = {"torch": torch, "F": F, "is_peft_model": lambda model: False, "disable_gradient_checkpointing": lambda *_: contextlib.nullcontext()}
    own(checkout, "trl/trainer/utils.py", ["selective_log_softmax", "entropy_from_logits"], names)
    own(checkout, "trl/trainer/kto_trainer.py", ["_compute_loss", "_compute_kl_logps"], names)
    weight = torch.nn.Parameter(torch.randn(VOCABULARY, HEIGHT, dtype=torch.bfloat16))
    table = torch.nn.Parameter(torch.randn(VOCABULARY, HEIGHT, dtype=torch.bfloat16))
    calls = []

    def model(input_ids, attention_mask=None):
        calls.append(torch.is_grad_enabled())
        logits = F.linear(F.embedding(input_ids, table), weight)
        return types.SimpleNamespace(logits=logits.float() if cast else logits)

    model.training = True
    trainer = types.SimpleNamespace(
        model=model, ref_model=model, calculate_KL=True, aux_loss_enabled=False, use_liger_kernel=False,
        precompute_ref_logps=precomputed, loss_type="kto", beta=0.1, desirable_weight=1.0, undesirable_weight=1.0,
        _metrics=defaultdict(lambda: defaultdict(list)), _total_train_tokens=0,
        args=types.SimpleNamespace(gradient_checkpointing_kwargs=None),
        accelerator=types.SimpleNamespace(device="cpu", gather_for_metrics=lambda value: value),
    )
    trainer._compute_kl_logps = lambda *given: names["_compute_kl_logps"](trainer, *given)
    batch = {"label": torch.arange(samples) % 2 == 0}
    for prefix in ["", "KL_"]:
        batch[prefix + "input_ids"] = torch.randint(0, VOCABULARY, (samples, tokens))
        batch[prefix + "attention_mask"] = torch.ones(samples, tokens, dtype=torch.int64)
        batch[prefix + "completion_mask"] = torch.ones(samples, tokens, dtype=torch.int64)
    if precomputed:
        batch["ref_logps"] = batch["ref_KL_logps"] = torch.zeros(samples, dtype=torch.float32 if cast else torch.bfloat16)
    parameters, seen = {weight.data_ptr(), table.data_ptr()}, {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            seen.setdefault(storage.data_ptr(), [list(tensor.shape), str(tensor.dtype), storage.nbytes(), storage])
        return tensor

    # Once without the hooks, which hold what they see.
    with Held() as held:
        loss = names["_compute_loss"](trainer, model, batch, False)
    most, after = held.most, held.now
    held.most = 0
    with held:
        loss.backward()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        calls.clear()
        names["_compute_loss"](trainer, model, batch, False)
    kept = [{"shape": shape, "dtype": dtype.removeprefix("torch."), "bytes": size} for shape, dtype, size, _ in seen.values()]
    return {
        "samples": samples, "tokens": tokens, "vocabulary": VOCABULARY, "hidden": HEIGHT, "precomputed": precomputed, "cast": cast,
        "calls": calls, "held_at_most": most, "held_after": after, "held_in_backward_at_most": held.most, "kept": kept,
    }


def main():
    checkout = sys.argv[1]
    commit = subprocess.run(["git", "-C", checkout, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    print(json.dumps({"torch": torch.__version__, "trl": commit.stdout.strip()}))
    for cast in [False, True]:
        for samples, tokens, precomputed in [(2, 64, False), (4, 96, False), (4, 96, True), (4, 256, False)]:
            print(json.dumps(case(checkout, samples, tokens, precomputed, cast)))


if __name__ == "__main__":
    main()
