"""What the fused output layer of TRL 1.15 and later keeps for backward and holds at most on the way, one JSON line a case.

`python trl_fused_head.py TRL > ../data/activations/trl_fused_head.jsonl` with torch 2.15.0 on a CPU, where TRL is the folder of an
unpacked trl 1.16.0 (of 1.15.0 every line is the same). `add_fused_lm_head` and the losses of SFTTrainer, DPOTrainer and KTOTrainer run as
they are, and of GRPOTrainer and RLOOTrainer what takes log-probabilities of sampled tokens; the model is an embedding and an output layer. Triton's
kernels do nothing here, since what is held depends on shapes alone; and a product that CUDA adds to an fp32 sum within itself
(`_addmm_fp32`, torch 2.8 and later) is left out. `weights` and `autocast` are formats: of fp32 weights under autocast the last norm hands
on fp32. Every token has a label, or is of the completion, but for policies those of the prompt where there are fewer `sampled`; `given`
marks what the batch brings.
"""

import ast
import contextlib
import functools
import json
import pathlib
import sys
import types
from collections import defaultdict
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from trl_kto import Held

HEIGHT = 16


class Idle:
    """A Triton kernel that does nothing."""

    def __getitem__(self, grid):
        return lambda *args, **keywords: None


def own(path, wanted, names):
    text = path.read_text()
    nodes = [node for node in ast.walk(ast.parse(text)) if getattr(node, "name", None) in wanted]
    assert {node.name for node in nodes} >= set(wanted), wanted
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = [mark for mark in node.decorator_list if ast.unparse(mark) == "staticmethod"]
    exec(compile(ast.Module(nodes, []), str(path), "exec"), names)


class Backbone(torch.nn.Module):
    def __init__(self, vocabulary, kind):
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(vocabulary, HEIGHT, dtype=kind))

    def forward(self, input_ids, attention_mask=None, use_cache=None, **rest):
        return types.SimpleNamespace(last_hidden_state=F.embedding(input_ids, self.table))


class Model(torch.nn.Module):
    def __init__(self, vocabulary, kind, trains):
        super().__init__()
        self.base_model = Backbone(vocabulary, kind)
        self.lm_head = torch.nn.Linear(HEIGHT, vocabulary, bias=False, dtype=kind)
        self.lm_head.weight.requires_grad_(trains)
        text = types.SimpleNamespace(model_type="llama")
        self.config = types.SimpleNamespace(get_text_config=lambda: text)

    def forward(self, input_ids=None):
        return self.base_model(input_ids)

    def get_output_embeddings(self):
        return self.lm_head


def case(trl, loss, sequences, tokens, vocabulary, weights, autocast, trains, precomputed=False, sampled=None):
    torch.manual_seed(0)
    class DTensor:
        pass
    names = {
        "torch": torch, "F": F, "types": types, "functools": functools, "nullcontext": contextlib.nullcontext, "contextlib": contextlib,
        "Version": lambda text: tuple(map(int, text.split("."))), "transformers": types.SimpleNamespace(__version__="5.23.0"),
        "DTensor": DTensor, "dataclass": dataclass, "PreTrainedModel": object, "ModelOutput": object, "is_peft_model": lambda model: False,
        "triton": types.SimpleNamespace(cdiv=lambda a, b: -(-a // b)), "_forward_kernel": Idle(), "_backward_kernel": Idle(),
        "_BLOCK_SIZE": 1024, "TOKEN_CHUNK_SIZE": 4096, "_CHUNKED_LOGPROB_CHUNK_SIZE": 32768, "_addmm_fp32": lambda total, a, b: None,
        "OPTIONAL_OUTPUTS": ("entropy", "log_sum_sq_probs", "mean_logits", "is_top1"), "maybe_gather_lm_head_ctx": lambda *_: contextlib.nullcontext(),
        "disable_gradient_checkpointing": lambda *_: contextlib.nullcontext(), "_use_triton": lambda device: True, "FusedCausalLMOutput": types.SimpleNamespace,
        "Any": object, "nn": torch.nn, "PreTrainedTokenizerBase": object, "accelerate": types.SimpleNamespace(__version__="1.15.0"),
    }
    path = trl / "kernels/chunked_logprob.py"
    text = path.read_text().replace("from ..trainer.utils import maybe_gather_lm_head_ctx", "pass")
    node = next(node for node in ast.parse(text).body if getattr(node, "name", None) == "ChunkedLogProbFunction")
    exec(compile(ast.Module([node], []), str(path), "exec"), names)
    names["_ChunkedLogProbFunction"] = names["ChunkedLogProbFunction"]
    own(trl / "trainer/utils.py", ["add_fused_lm_head"], names)
    kind = getattr(torch, weights)
    outputs = {"sft": ("log_probs", "entropy", "is_top1"), "grpo": ("log_probs", "entropy"), "rloo": ("log_probs", "entropy")}
    outputs = outputs.get(loss, ("log_probs", "entropy", "mean_logits", "is_top1"))
    models = [Model(vocabulary, kind, trains) for _ in range(1 if loss in ("sft", "grpo", "rloo") else 2)]
    for model in models:
        names["add_fused_lm_head"](model, outputs=outputs if model is models[0] else ("log_probs",))
    model = models[0]
    accelerator = types.SimpleNamespace(
        device="cpu", gather_for_metrics=lambda value: value, gather=lambda value: value, parallelism_config=None, num_processes=1)
    trainer = types.SimpleNamespace(
        model=model, ref_model=models[-1], aux_loss_enabled=False, precompute_ref_logps=precomputed, ld_alpha=None, f_divergence_type="reverse_kl",
        loss_types=["sigmoid"], loss_weights=[1.0], loss_type="kto", beta=0.1, use_weighting=False, accelerator=accelerator, calculate_KL=True,
        desirable_weight=1.0, undesirable_weight=1.0, compute_loss_func=None, label_smoother=None, _tp_size=1, use_liger_kernel=False,
        _metrics=defaultdict(lambda: defaultdict(list)), _total_train_tokens=0, router_aux_loss_coef=0.0,
        args=types.SimpleNamespace(gradient_checkpointing_kwargs=None, loss_type="nll", average_tokens_across_devices=False),
    )
    batch = {"input_ids": torch.randint(0, vocabulary, (sequences, tokens)), "attention_mask": torch.ones(sequences, tokens, dtype=torch.int64)}
    count = torch.tensor(sequences * (tokens - 1))
    if loss == "sft":
        batch["labels"] = batch["input_ids"].clone()
        own(trl / "trainer/sft_trainer.py", ["compute_loss"], names)
        run = lambda: names["compute_loss"](trainer, model, dict(batch), num_items_in_batch=count)
    elif loss in ("grpo", "rloo"):
        own(trl / f"trainer/{loss}_trainer.py", ["_get_per_token_logps_and_entropies"], names)
        policy = types.SimpleNamespace(accelerator=types.SimpleNamespace(autocast=contextlib.nullcontext))
        run = lambda: names["_get_per_token_logps_and_entropies"](policy, model, *batch.values(), sampled or tokens - 1, compute_entropy=True)[0].sum()
    else:
        batch["completion_mask"] = torch.ones(sequences, tokens, dtype=torch.int64)
        if precomputed:
            batch["ref_chosen_logps"] = batch["ref_rejected_logps"] = torch.zeros(sequences // 2)
            batch["ref_logps"] = batch["ref_KL_logps"] = torch.zeros(sequences)
        wanted = ["_compute_loss"]
        if loss == "kto":
            wanted.append("_compute_kl_logps")
            trainer._compute_kl_logps = lambda *given: names["_compute_kl_logps"](trainer, *given)
            batch["label"] = torch.arange(sequences) % 2 == 0
            for name in ["input_ids", "attention_mask", "completion_mask"]:
                batch["KL_" + name] = batch[name].clone()
        own(trl / f"trainer/{loss}_trainer.py", wanted, names)
        run = lambda: names["_compute_loss"](trainer, model, dict(batch), False)
    context = lambda: torch.autocast("cpu", dtype=getattr(torch, autocast)) if autocast else contextlib.nullcontext()
    parameters = {parameter.data_ptr() for model in models for parameter in model.parameters()}
    # What was there before is not counted.
    given = {tensor.data_ptr() for tensor in batch.values()}
    before = [tensor.untyped_storage()._cdata for tensor in [*batch.values(), *(p for model in models for p in model.parameters())]]
    seen = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            seen.setdefault(storage.data_ptr(), [list(tensor.shape), str(tensor.dtype), storage.nbytes(), storage])
        return tensor

    held = Held()
    held.seen.update(before)
    with context(), held:
        loss_value = run()
    most, after = held.most, held.now
    held.most = 0
    with held:
        loss_value.backward()
    with context(), torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        run()
    kept = [
        {"shape": shape, "dtype": dtype.removeprefix("torch."), "bytes": size, "given": at in given}
        for at, (shape, dtype, size, _) in seen.items()
    ]
    return {
        "loss": loss, "sequences": sequences, "tokens": tokens, "vocabulary": vocabulary, "hidden": HEIGHT, "weights": weights, "autocast": autocast,
        "head_trains": trains, "precomputed": precomputed, "sampled": sampled or tokens - 1,
        "held_at_most": most, "held_after": after, "held_in_backward_at_most": held.most, "kept": kept,
    }


def main():
    trl = pathlib.Path(sys.argv[1])
    print(json.dumps({"torch": torch.__version__, "trl": (trl / "VERSION").read_text().strip() if (trl / "VERSION").exists() else "1.16.0"}))
    for weights, autocast in [("bfloat16", None), ("bfloat16", "bfloat16"), ("float32", "bfloat16"), ("float32", None)]:
        for trains in [True, False]:
            for sequences, tokens, vocabulary in [(1, 64, 4096), (4, 96, 4096), (2, 256, 40960), (3, 1500, 33000)]:
                print(json.dumps(case(trl, "sft", sequences, tokens, vocabulary, weights, autocast, trains)), flush=True)
    for loss in ["grpo", "rloo"]:
        for weights, autocast in [("bfloat16", None), ("float32", "bfloat16")]:
            for sequences, tokens in [(2, 64), (4, 96), (4, 256)]:
                print(json.dumps(case(trl, loss, sequences, tokens, 4096, weights, autocast, True)), flush=True)
        for tokens, sampled in [(96, 32), (256, 128), (2500, 1500)]:
            print(json.dumps(case(trl, loss, 4, tokens, 4096, "bfloat16", "bfloat16", True, sampled=sampled)), flush=True)
    for loss in ["dpo", "kto"]:
        for weights, autocast in [("bfloat16", None), ("float32", "bfloat16")]:
            for sequences, tokens, precomputed in [(2, 64, False), (4, 96, False), (4, 96, True), (6, 256, False)]:
                print(json.dumps(case(trl, loss, sequences, tokens, 4096, weights, autocast, True, precomputed)), flush=True)


if __name__ == "__main__":
    main()
