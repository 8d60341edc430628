"""What TRL's DPO keeps for backward behind the output layer and holds at most on the way, one JSON line a case.

`python trl_dpo.py CHECKOUT > ../data/activations/trl_dpo.jsonl` with torch 2.15.0 on a CPU and a checkout of huggingface/trl. Its
`DPOTrainer._compute_loss` and its `selective_log_softmax` and `entropy_from_logits` are run as they are; the model is an embedding
and an output layer in bf16. Where a case says `cast`, its output is handed on in fp32, as Accelerate's `convert_outputs_to_fp32` does
with a model under autocast (`accelerate/accelerator.py:prepare_model`; not under DeepSpeed or FSDP2). Every token is of the completion.
"""

import contextlib
import json
import subprocess
import sys
import types
from collections import defaultdict

import torch
import torch.nn.functional as F

from trl_kto import HEIGHT, VOCABULARY, Held, own


def case(checkout, pairs, tokens, precomputed, cast, grad=True):
    torch.manual_seed(0)
    names = {"torch": torch, "F": F, "is_peft_model": lambda model: False, "disable_gradient_checkpointing": lambda *_: contextlib.nullcontext()}
    own(checkout, "trl/trainer/utils.py", ["selective_log_softmax", "entropy_from_logits"], names)
    own(checkout, "trl/trainer/dpo_trainer.py", ["_compute_loss"], names)
    weight = torch.nn.Parameter(torch.randn(VOCABULARY, HEIGHT, dtype=torch.bfloat16))
    table = torch.nn.Parameter(torch.randn(VOCABULARY, HEIGHT, dtype=torch.bfloat16))
    calls = []

    def model(input_ids, attention_mask=None, use_cache=None):
        calls.append(torch.is_grad_enabled())
        logits = F.linear(F.embedding(input_ids, table), weight)
        return types.SimpleNamespace(logits=logits.float() if cast else logits)

    model.training = grad
    accelerator = types.SimpleNamespace(device="cpu", gather_for_metrics=lambda value: value, gather=lambda value: value)
    trainer = types.SimpleNamespace(
        model=model, ref_model=model, aux_loss_enabled=False, precompute_ref_logps=precomputed, ld_alpha=None, f_divergence_type="reverse_kl",
        loss_types=["sigmoid"], loss_weights=[1.0], beta=0.1, use_weighting=False, accelerator=accelerator,
        _metrics=defaultdict(lambda: defaultdict(list)), _total_train_tokens=0, args=types.SimpleNamespace(gradient_checkpointing_kwargs=None),
    )
    sequences = 2 * pairs
    batch = {
        "input_ids": torch.randint(0, VOCABULARY, (sequences, tokens)),
        "attention_mask": torch.ones(sequences, tokens, dtype=torch.int64),
        "completion_mask": torch.ones(sequences, tokens, dtype=torch.int64),
    }
    if precomputed:
        batch["ref_chosen_logps"] = batch["ref_rejected_logps"] = torch.zeros(pairs, dtype=torch.float32 if cast else torch.bfloat16)
    parameters, seen = {weight.data_ptr(), table.data_ptr()}, {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            seen.setdefault(storage.data_ptr(), [list(tensor.shape), str(tensor.dtype), storage.nbytes(), storage])
        return tensor

    # Once without the hooks, which hold what they see.
    with torch.set_grad_enabled(grad), Held() as held:
        loss = names["_compute_loss"](trainer, model, batch, False)
    most, after = held.most, held.now
    held.most = 0
    if grad:
        with held:
            loss.backward()
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            calls.clear()
            names["_compute_loss"](trainer, model, batch, False)
    kept = [{"shape": shape, "dtype": dtype.removeprefix("torch."), "bytes": size} for shape, dtype, size, _ in seen.values()]
    return {
        "pairs": pairs, "tokens": tokens, "vocabulary": VOCABULARY, "hidden": HEIGHT, "precomputed": precomputed, "cast": cast, "evaluates": not grad,
        "calls": calls, "held_at_most": most, "held_after": after, "held_in_backward_at_most": held.most, "kept": kept,
    }


def main():
    checkout = sys.argv[1]
    commit = subprocess.run(["git", "-C", checkout, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    print(json.dumps({"torch": torch.__version__, "trl": commit.stdout.strip()}))
    for grad in [True, False]:
        for cast in [False, True]:
            for pairs, tokens, precomputed in [(1, 64, False), (2, 96, False), (2, 96, True), (3, 256, False)]:
                print(json.dumps(case(checkout, pairs, tokens, precomputed, cast, grad)))


if __name__ == "__main__":
    main()
