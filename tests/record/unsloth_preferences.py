"""What unsloth's preference trainers keep for backward behind the last norm and hold at most on the way, one JSON line a case, on a CPU.

    pip install torch==2.15.0 transformers==5.23.0 peft==0.21.2 trl==1.16.0
    pip install --no-deps unsloth==2026.10.9 unsloth_zoo==2026.10.9
    pip download --no-deps trl==0.22.2 trl==1.13.0 trl==1.15.0   (each unpacked into a folder)
    UNSLOTH_ALLOW_CPU=1 UNSLOTH_IS_PRESENT=1 UNSLOTH_SKIP_TORCHVISION_CHECK=1 \\
        python unsloth_preferences.py trl-0.22.2 trl-1.13.0 trl-1.15.0 > ../data/activations/unsloth_preferences.jsonl

TRL's functions run as `unsloth/models/rl_replacements.py` rewrites their source (`RL_FUNCTIONS`), and of 1.15 TRL's own output layer with
the kernel that `unsloth/models/rl.py:patch_trl_fused_lm_head_kernel` puts into it. The model is an embedding in place of all layers and a
frozen output layer, as it is beside adapters; it hands on hidden states where unsloth's models do (`UNSLOTH_RETURN_HIDDEN_STATES`), and
under `autocast` fp16 or bf16 is what the last norm hands on. Where a GPU runs Triton's kernels PyTorch's functions stand in, so that
what is held at most is less than their tiles; what is kept is the same operator's. Every token but a prompt's one is of the completion.
"""

import ast
import contextlib
import functools
import json
import os
import pathlib
import re
import sys
import textwrap
import types
import typing
from collections import defaultdict
from dataclasses import dataclass

import torch
import torch.nn.functional as F

with contextlib.redirect_stdout(sys.stderr):
    import unsloth.models.rl_replacements as own
    from unsloth.models import rl

VOCABULARY, HEIGHT = 4096, 16


def functions(path, trainer, wanted, names):
    """Methods of a trainer as unsloth rewrites them, and functions of TRL's that it leaves alone."""
    text = path.read_text()
    nodes = {node.name: node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)}
    for name in wanted:
        node = nodes[name]
        source = "\n".join(text.splitlines()[node.lineno - 1 : node.end_lineno]) + "\n"
        for rewrite in own.RL_FUNCTIONS[trainer] if trainer else []:
            source = rewrite(name, source)
        exec(compile(textwrap.dedent(source), str(path), "exec"), names)


class Layers(torch.nn.Module):
    """What unsloth's model is to a trainer."""

    def __init__(self, kind):
        super().__init__()
        self.table = torch.nn.Embedding(VOCABULARY, HEIGHT, dtype=kind)
        self.lm_head = torch.nn.Linear(HEIGHT, VOCABULARY, bias=False, dtype=kind)
        self.table.weight.requires_grad_(False)
        self.lm_head.weight.requires_grad_(False)
        # Stands for adapters: its sum with the states keeps nothing.
        self.trains = torch.nn.Parameter(torch.zeros(HEIGHT, dtype=kind))
        text = types.SimpleNamespace(model_type="llama")
        self.config = types.SimpleNamespace(model_type="llama", get_text_config=lambda: text)
        self.asked = []

    def base_model(self, input_ids=None, **rest):
        return types.SimpleNamespace(last_hidden_state=F.embedding(input_ids, self.table.weight) + self.trains)

    def get_output_embeddings(self):
        return self.lm_head

    def forward(self, input_ids=None, attention_mask=None, use_cache=None, output_hidden_states=None, **rest):
        self.asked.append([torch.is_grad_enabled(), bool(output_hidden_states)])
        states = self.base_model(input_ids).last_hidden_state
        if os.environ.get("UNSLOTH_RETURN_HIDDEN_STATES") == "1":
            return types.SimpleNamespace(logits=states)
        return types.SimpleNamespace(logits=self.lm_head(states), last_hidden_state=states)


def trainer_of(model, reference):
    accelerator = types.SimpleNamespace(
        device="cpu", gather_for_metrics=lambda value: value, gather=lambda value: value, unwrap_model=lambda model: model,
        parallelism_config=None, num_processes=1)
    return types.SimpleNamespace(
        model=model, ref_model=reference, accelerator=accelerator, aux_loss_enabled=False, precompute_ref_logps=False, ld_alpha=None,
        f_divergence_type="reverse_kl", f_divergence_params=None, loss_types=["sigmoid"], loss_type=["sigmoid"], loss_weights=[1.0], beta=0.1,
        use_weighting=False, is_encoder_decoder=False, padding_free=False, use_logits_to_keep=False, reference_free=False, label_smoothing=0,
        max_length=None, truncation_mode="keep_end", padding_value=0, pad_token_id=0, label_pad_token_id=-100, is_peft_model=False, _tp_size=1,
        use_liger_kernel=False, _peft_has_been_casted_to_bf16=False, is_fsdp_enabled=False, is_deepspeed_enabled=False, is_vision_model=False, router_aux_loss_coef=0.0,
        calculate_KL=True, desirable_weight=1.0, undesirable_weight=1.0, null_ref_context=contextlib.nullcontext,
        _metrics=defaultdict(lambda: defaultdict(list)), _total_train_tokens=0,
        args=types.SimpleNamespace(
            gradient_checkpointing_kwargs=None, use_liger_loss=False, rpo_alpha=None, ld_alpha=None, base_model_attribute_name="model",
            precompute_ref_log_probs=False),
    )


def shared_names(trl):
    names = {key: value for key, value in vars(own).items() if not key.startswith("__")}
    names |= {
        "torch": torch, "F": F, "nn": torch.nn, "Any": typing.Any, "Literal": typing.Literal, "Union": typing.Union, "Optional": typing.Optional,
        "PreTrainedModel": object, "is_peft_model": lambda model: False, "disable_gradient_checkpointing": lambda *_: contextlib.nullcontext(),
        "is_torch_xla_available": lambda: False, "is_triton_available": lambda: False, "autocast": torch.autocast, "nullcontext": contextlib.nullcontext,
        "FDivergenceType": types.SimpleNamespace(
            ALPHA_DIVERGENCE=types.SimpleNamespace(value="alpha"), JS_DIVERGENCE=types.SimpleNamespace(value="js")),
    }
    path = trl / "trainer/utils.py"
    known = ["selective_log_softmax", "pad_to_length", "flush_left", "flush_right", "entropy_from_logits"]
    functions(path, None, [name for name in known if f"def {name}(" in path.read_text()], names)
    return names


def fused(trl, model, outputs):
    """TRL's output layer of 1.15 with unsloth's kernel."""
    names = shared_names(trl) | {
        "types": types, "functools": functools, "contextlib": contextlib, "Version": lambda text: tuple(map(int, text.split("."))),
        "transformers": types.SimpleNamespace(__version__="5.17.0"), "accelerate": types.SimpleNamespace(__version__="1.15.0"), "DTensor": type("DTensor", (), {}),
        "dataclass": dataclass, "ModelOutput": object, "_CHUNKED_LOGPROB_CHUNK_SIZE": 32768, "maybe_gather_lm_head_ctx": lambda *_: contextlib.nullcontext(),
        "_use_triton": lambda device: True, "FusedCausalLMOutput": types.SimpleNamespace, "PreTrainedTokenizerBase": object,
    }

    class Kernel:
        @staticmethod
        def forward(ctx, hidden, weight, bias, targets, temperature, chunk_size, final_logit_softcapping, logit_scale, outputs):
            raise AssertionError("unsloth's takes its place")

        apply = forward

    names["_ChunkedLogProbFunction"] = rl._UnslothFusedLinearHead(Kernel)
    functions(trl / "trainer/utils.py", None, ["add_fused_lm_head"], names)
    names["add_fused_lm_head"](model, outputs=outputs)


def bound(trainer, names, wanted):
    for name in wanted:
        setattr(trainer, name, types.MethodType(names[name], trainer))


def pairs_of(method, trl, release, model, reference, sequences, tokens):
    """A call of the loss, and the batch it is given."""
    names, trainer = shared_names(trl), trainer_of(model, reference)
    ids = torch.randint(1, VOCABULARY, (sequences, tokens))
    pairs = sequences // 2
    if method == "dpo" and release < (0, 29):
        wanted = ["concatenated_forward", "dpo_loss", "get_batch_loss_metrics", "compute_ref_log_probs"]
        functions(trl / "trainer/dpo_trainer.py", "dpo_trainer", ["concatenated_inputs", *wanted], names)
        bound(trainer, names, wanted)
        trainer.concatenated_inputs = names["concatenated_inputs"]
        batch = {"prompt_input_ids": ids[:pairs, :1], "prompt_attention_mask": torch.ones(pairs, 1, dtype=torch.int64)}
        for at, kind in enumerate(["chosen", "rejected"]):
            part = ids[at * pairs : (at + 1) * pairs, 1:]
            batch |= {f"{kind}_input_ids": part, f"{kind}_attention_mask": torch.ones_like(part)}
        return lambda: trainer.get_batch_loss_metrics(model, batch)[0], batch
    if method == "dpo":
        functions(trl / "trainer/dpo_trainer.py", "dpo_trainer", ["_compute_loss"], names)
        mask = torch.ones_like(ids)
        mask[:, 0] = 0
        batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "completion_mask": mask}
        return lambda: names["_compute_loss"](trainer, model, dict(batch), False), batch
    if method == "orpo":
        folder = "trainer" if release < (0, 29) else "experimental/orpo"
        wanted = ["odds_ratio_loss", "concatenated_forward", "get_batch_loss_metrics"]
        path = trl / folder / "orpo_trainer.py"
        functions(path, "orpo_trainer", ["get_batch_logps", *wanted], names)
        if "def log1mexp" in path.read_text():
            functions(path, None, ["log1mexp"], names)
        bound(trainer, names, wanted)
        trainer.get_batch_logps = names["get_batch_logps"]
        labels = ids.clone()
        labels[:, 0] = -100
        whole = {"concatenated_input_ids": ids, "concatenated_attention_mask": torch.ones_like(ids), "concatenated_labels": labels}
        trainer.concatenated_inputs = lambda *_, **__: dict(whole)
        batch = {"chosen_labels": torch.zeros(pairs, 1)}
        return lambda: trainer.get_batch_loss_metrics(model, batch)[0], batch | whole
    raise ValueError(method)


def case(method, trl, sequences, tokens, half):
    from trl_kto import Held

    torch.manual_seed(0)
    release = tuple(map(int, re.search(r"(\d+)\.(\d+)", trl.name).groups()))
    kind = getattr(torch, half)
    # Adapters are switched off for the reference: the same weights.
    model = Layers(kind)
    package = trl / "trl"
    run, batch = pairs_of(method, package, release, model, model, sequences, tokens)
    if release >= (1, 15) and method == "dpo":
        fused(package, model, ("log_probs", "entropy", "mean_logits", "is_top1"))
    context = lambda: torch.autocast("cpu", dtype=kind)
    parameters = {parameter.data_ptr() for parameter in model.parameters()}
    given = {tensor.data_ptr() for tensor in batch.values()}
    before = [tensor.untyped_storage()._cdata for tensor in [*batch.values(), *model.parameters()]]
    seen = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            seen.setdefault(storage.data_ptr(), [list(tensor.shape), str(tensor.dtype), storage.nbytes(), storage])
        return tensor

    # Once without the hooks, which hold what they see.
    held = Held()
    held.seen.update(before)
    with context(), held:
        loss = run()
    most, after = held.most, held.now
    held.most = 0
    with held:
        loss.backward()
    model.asked.clear()
    with context(), torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        run()
    kept = [
        {"shape": shape, "dtype": dtype.removeprefix("torch."), "bytes": size, "given": at in given} for at, (shape, dtype, size, _) in seen.items()
    ]
    return {
        "method": method, "trl": ".".join(map(str, release)), "sequences": sequences, "tokens": tokens, "vocabulary": VOCABULARY, "hidden": HEIGHT,
        "half": half, "calls": model.asked, "held_at_most": most, "held_after": after, "held_in_backward_at_most": held.most, "kept": kept,
    }


def main():
    folders = [pathlib.Path(name) for name in sys.argv[1:]]
    print(json.dumps({"torch": torch.__version__, "unsloth": __import__("importlib.metadata").metadata.version("unsloth")}))
    for folder in folders:
        for method in ["dpo", "orpo"]:
            for half in ["bfloat16", "float16"]:
                for sequences, tokens in [(2, 64), (4, 96), (6, 256)]:
                    print(json.dumps(case(method, folder, sequences, tokens, half)), flush=True)


if __name__ == "__main__":
    main()
