"""What a head for rewards or classes and its loss keep for backward, one JSON line a case.

`python reward_head.py CHECKOUT > ../data/activations/reward_head.jsonl` with torch 2.15.0, transformers 5.23.0 on a CPU and a checkout of
huggingface/trl. `GenericForSequenceClassification.forward` of transformers and TRL's `RewardTrainer.compute_loss` run as they are; the
model behind them hands on one tensor. Where a case says `cast`, the head runs under autocast to bf16 and its output is handed on in fp32,
as Accelerate does (`trl_dpo.py` says where).
"""

import json
import subprocess
import sys
import types
from collections import defaultdict

import torch
import transformers
from torch import nn
from transformers.loss.loss_utils import ForSequenceClassificationLoss
from transformers.modeling_layers import GenericForSequenceClassification

from trl_kto import own


def case(checkout, objective, samples, tokens, labels, dtype, cast):
    torch.manual_seed(0)
    names = {"torch": torch, "nn": nn}
    own(checkout, "trl/trainer/reward_trainer.py", ["compute_loss"], names)
    hidden, sequences = 64, 2 * samples if objective == "reward" else samples
    states = torch.randn(sequences, tokens, hidden, dtype=dtype, requires_grad=True)
    score = nn.Linear(hidden, labels, bias=False, dtype=dtype)
    config = types.SimpleNamespace(pad_token_id=0, num_labels=labels, problem_type=None, get_text_config=lambda: config)
    base = lambda *given, **named: types.SimpleNamespace(last_hidden_state=states, past_key_values=None, hidden_states=None, attentions=None)
    this = types.SimpleNamespace(
        base_model_prefix="model", model=base, score=score, config=config, num_labels=labels,
        loss_function=lambda **given: ForSequenceClassificationLoss(given.pop("labels"), given.pop("pooled_logits"), given.pop("config")),
    )
    forward = GenericForSequenceClassification.forward
    forward = getattr(forward, "__wrapped__", forward)

    def model(**given):
        given.pop("use_cache", None)
        with torch.autocast("cpu", torch.bfloat16, enabled=cast):
            out = forward(this, **given)
        if cast:
            out.logits = out.logits.float()
        return out

    model.training = True
    trainer = types.SimpleNamespace(
        model=model, args=types.SimpleNamespace(center_rewards_coefficient=None), _metrics=defaultdict(lambda: defaultdict(list)),
        _total_train_tokens=0, accelerator=types.SimpleNamespace(gather_for_metrics=lambda value: value, gather=lambda value: value),
    )
    ids = torch.randint(1, 100, (sequences, tokens))
    batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    seen = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() != score.weight.data_ptr():
            seen.setdefault(storage.data_ptr(), [list(tensor.shape), str(tensor.dtype), storage.nbytes(), storage])
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        if objective == "reward":
            loss = names["compute_loss"](trainer, model, batch)
        else:
            loss = model(**batch, labels=torch.zeros(sequences, dtype=torch.int64)).loss
    loss.backward()
    kept = [{"shape": shape, "dtype": kind.removeprefix("torch."), "bytes": size} for shape, kind, size, _ in seen.values()]
    return {
        "objective": objective, "samples": samples, "tokens": tokens, "labels": labels, "hidden": hidden,
        "dtype": str(dtype).removeprefix("torch."), "cast": cast, "kept": kept,
    }


def main():
    checkout = sys.argv[1]
    commit = subprocess.run(["git", "-C", checkout, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    print(json.dumps({"torch": torch.__version__, "transformers": transformers.__version__, "trl": commit.stdout.strip()}))
    for objective, labels in [("reward", 1), ("classify", 4)]:
        for dtype, cast in [(torch.bfloat16, False), (torch.float32, False), (torch.bfloat16, True), (torch.float32, True)]:
            for samples, tokens in [(1, 32), (3, 48)]:
                print(json.dumps(case(checkout, objective, samples, tokens, labels, dtype, cast)))


if __name__ == "__main__":
    main()
