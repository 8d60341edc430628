"""What TRL's ORPO, CPO and SimPO (`loss_type` of CPO's trainer, with and without the cross entropy of chosen samples) keep for backward behind the output layer and hold at most on the way, one JSON line a case.

`python trl_odds.py > ../data/activations/trl_odds.jsonl` with torch 2.15.0 on a CPU and trl 1.16.0 on the path. Their
`concatenated_forward`, `get_batch_logps`, losses and `get_batch_loss_metrics` and TRL's `selective_log_softmax` are run as they are; the model
is an embedding and an output layer in bf16, whose output Accelerate hands on in fp32 where a case says `cast` (`trl_dpo.py` says where).
Every token has a label. Where a case says `kernel`, log-probabilities come of TRL's Triton kernel, as on a GPU since TRL 1.14
(`kernels/logprob_entropy.py`), which does nothing here: what is held depends on shapes alone. Bytes are those of torch's own allocator: under a
dispatch mode autograd adds no gradient in place (`input_buffer.cpp:can_accumulate_inplace`).
"""

import ast
import json
import pathlib
import sys
import types
import typing
from unittest import mock

import torch
import torch.nn as nn
import torch.nn.functional as F

from torch.profiler import ProfilerActivity, profile, record_function

from trl_kto import HEIGHT, VOCABULARY

# Trainer and loss of each method, its loss_type and the weight of the cross entropy.
METHODS = dict(
    orpo=("orpo", "odds_ratio_loss", "sigmoid", 1.0), cpo=("cpo", "cpo_loss", "sigmoid", 1.0),
    simpo_with_chosen=("cpo", "cpo_loss", "simpo", 1.0), simpo=("cpo", "cpo_loss", "simpo", 0.0),
)


class Idle:
    """A Triton kernel that does nothing."""

    def __getitem__(self, grid):
        return lambda *args, **keywords: None


MEAN = torch.Tensor.mean


def measured(run):
    """Bytes held at most in forward, behind it, and at most in backward, of those allocated within."""
    # A CPU casts 16-bit numbers to fp32 for the mean of a metric, a GPU does not (`aten/src/ATen/native/ReduceOps.cpp:mean_out`).
    plain = lambda tensor, *given: MEAN(tensor, *given) if given or tensor.requires_grad else tensor.new_zeros(())
    with mock.patch.object(torch.Tensor, "mean", plain), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        total = run()
        with record_function("backward begins"):
            total.backward()
    events = sorted(recorded.profiler.kineto_results.events(), key=lambda event: event.start_ns())
    now, most, after = 0, [0, 0], None
    for event in events:
        if event.name() == "backward begins" and after is None:
            after = now
        elif event.name() == "[memory]":
            now += event.nbytes()
            part = after is not None
            most[part] = max(most[part], now)
    return most[0], after, most[1]


def own(path, wanted, names):
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef) and node.name in wanted]
    exec(compile(ast.Module(nodes, []), str(path), "exec"), names)


def case(trl, method, pairs, tokens, cast, kernel):
    torch.manual_seed(0)
    of, loss, kind, weight_of_chosen = METHODS[method]
    names = {
        "torch": torch, "F": F, "nn": nn, "Any": typing.Any, "Literal": typing.Literal, "PreTrainedModel": object, "staticmethod": lambda f: f,
        "is_torch_xla_available": lambda: False, "is_triton_available": lambda: kernel, "_supports_trl_loss_kernel": lambda *_: True,
        "triton": types.SimpleNamespace(cdiv=lambda a, b: -(-a // b)), "_forward_kernel": Idle(), "_backward_kernel": Idle(), "_BLOCK_SIZE": 1024,
    }
    path = trl / "kernels/logprob_entropy.py"
    wanted = ["_layout", "_LogProbEntropyFunction", "selective_log_softmax_and_entropy"]
    exec(compile(ast.Module([node for node in ast.parse(path.read_text()).body if getattr(node, "name", None) in wanted], []), str(path), "exec"), names)
    names["_fused_logprob_entropy"] = names["selective_log_softmax_and_entropy"]
    own(trl / "trainer/utils.py", ["selective_log_softmax"], names)
    wanted = ["log1mexp", loss, "get_batch_logps", "concatenated_forward", "get_batch_loss_metrics"]
    own(trl / f"experimental/{of}/{of}_trainer.py", wanted, names)
    weight = nn.Parameter(torch.randn(VOCABULARY, HEIGHT, dtype=torch.bfloat16))
    table = nn.Parameter(torch.randn(VOCABULARY, HEIGHT, dtype=torch.bfloat16))

    def model(input_ids, attention_mask=None, use_cache=None):
        logits = F.linear(F.embedding(input_ids, table), weight)
        return types.SimpleNamespace(logits=logits.float() if cast else logits)

    ids = torch.randint(0, VOCABULARY, (2 * pairs, tokens))
    whole = {"concatenated_input_ids": ids, "concatenated_attention_mask": torch.ones_like(ids), "concatenated_labels": ids.clone()}
    trainer = types.SimpleNamespace(
        accelerator=types.SimpleNamespace(device="cpu", gather_for_metrics=lambda value: value), is_encoder_decoder=False, padding_value=0,
        pad_token_id=0, beta=0.1, alpha=0.0, loss_type=kind, label_smoothing=0, cpo_alpha=weight_of_chosen, simpo_gamma=0.5, aux_loss_enabled=False,
        concatenated_inputs=lambda *_, **__: dict(whole), get_batch_logps=names["get_batch_logps"],
    )
    trainer.concatenated_forward = lambda *given: names["concatenated_forward"](trainer, *given)
    setattr(trainer, loss, lambda *given: names[loss](trainer, *given))
    batch = {"chosen_labels": torch.zeros(pairs, 1)}
    parameters, seen = {weight.data_ptr(), table.data_ptr()}, {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            seen.setdefault(storage.data_ptr(), [list(tensor.shape), str(tensor.dtype), storage.nbytes(), storage])
        return tensor

    # Once without the hooks, which hold what they see.
    most, after, back = measured(lambda: names["get_batch_loss_metrics"](trainer, model, batch)[0])
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        names["get_batch_loss_metrics"](trainer, model, batch)
    kept = [{"shape": shape, "dtype": dtype.removeprefix("torch."), "bytes": size} for shape, dtype, size, _ in seen.values()]
    return {
        "method": method, "pairs": pairs, "tokens": tokens, "vocabulary": VOCABULARY, "hidden": HEIGHT, "precomputed": True, "cast": cast, "kernel": kernel,
        "calls": [True], "held_at_most": most, "held_after": after, "held_in_backward_at_most": back, "kept": kept,
    }


def main():
    # Beside the package, which is not imported.
    trl = next(place for place in (pathlib.Path(folder) / "trl" for folder in sys.path) if (place / "trainer/utils.py").exists())
    print(json.dumps({"torch": torch.__version__, "trl": "1.16.0"}))
    for method in METHODS:
        for kernel in [False, True]:
            for cast in [False, True]:
                for pairs, tokens in [(1, 64), (2, 96), (3, 256)]:
                    print(json.dumps(case(trl, method, pairs, tokens, cast, kernel)))


if __name__ == "__main__":
    main()
