"""Records what GRPO of open-instruct keeps behind the output layer for backward, on a CPU.

    pip install torch
    git clone https://github.com/allenai/open-instruct
    python open_instruct_loss.py open-instruct > open_instruct_loss.jsonl

The functions of `open_instruct/grpo_utils.py`, `model_utils.py` and `rl_utils.py` are taken out of the checkout one by one,
since the modules import engines that need a GPU. What is compiled stays compiled. Counted are the tensors that autograd saves
(`saved_tensors_hooks`), each storage once. The first line has what the compiled backward allocates, read from the code that
inductor makes of it for a CPU.
"""

import ast
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import types

import torch
from torch._inductor.utils import run_fw_bw_and_get_code

HEIGHT, VOCABULARY = 16, 512
CHECKOUT = pathlib.Path(sys.argv[1])
FUNCTIONS = {
    "grpo_utils.py": ["mask_logprobs", "_rho_drop_masks", "_sequence_level_mean", "compute_rho_correction",
                      "RhoCorrection", "GRPOLossType", "compute_grpo_loss", "forward_for_logprobs"],
    "model_utils.py": ["log_softmax_and_gather", "estimate_kl", "entropy_from_logits"],
    "rl_utils.py": ["masked_mean"],
    "utils.py": ["INVALID_LOGPROB"],
}


def source(name):
    path = f"open_instruct/{name}"
    return subprocess.run(["git", "-C", CHECKOUT, "show", f"HEAD:{path}"], check=True, capture_output=True, text=True).stdout


def taken():
    """The functions in one namespace, where they find each other as they do in their modules."""
    head = "from __future__ import annotations\nimport enum\nimport torch\nfrom dataclasses import dataclass, field\n"
    parts = []
    for name, wanted in FUNCTIONS.items():
        text = source(name)
        for node in ast.parse(text).body:
            names = [getattr(node, "name", None)]
            if isinstance(node, ast.Assign):
                names = [getattr(target, "id", None) for target in node.targets]
            if any(known in wanted for known in names):
                first = min([node.lineno] + [mark.lineno for mark in getattr(node, "decorator_list", [])])
                parts.append("\n".join(text.splitlines()[first - 1:node.end_lineno]))
    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
        file.write(head + "\n\n".join(parts))
    spec = importlib.util.spec_from_file_location("taken", file.name)
    module = importlib.util.module_from_spec(spec)
    sys.modules["taken"] = module
    spec.loader.exec_module(module)
    module.model_utils = module
    return module


def compiled(own):
    """Tensors of tokens times vocabulary that the compiled backward allocates, by their formats."""
    logits = torch.randn(1, 32, VOCABULARY, dtype=torch.bfloat16, requires_grad=True)
    index = torch.randint(0, VOCABULARY, (1, 32))
    _, code = run_fw_bw_and_get_code(lambda: own.log_softmax_and_gather(logits, index))
    return re.findall(r"empty_strided_cpu\(\(1, s\d+, s\d+\), .*torch\.(\w+)\)", code[1])


def case(own, tokens, temperature, reference, kind):
    torch.manual_seed(0)
    weight = torch.nn.Parameter(torch.randn(VOCABULARY, HEIGHT, dtype=torch.bfloat16))
    states = torch.randn(1, tokens, HEIGHT, dtype=torch.bfloat16, requires_grad=True)
    ids = torch.randint(1, VOCABULARY, (1, tokens))
    mask = torch.ones(1, tokens - 1, dtype=torch.bool)
    config = types.SimpleNamespace(
        use_rho_correction=True, rho_mask_sequence_level=False, rho_mask_tv_divergence=False, rho_mask_lower_bound=0.0,
        rho_mask_upper_bound=0.0, rho_clamp_lower_bound=0.0, rho_clamp_upper_bound=2.0, clip_lower=0.2, clip_higher=0.272,
        loss_fn=own.GRPOLossType[kind], kl_estimator=2)
    seen, stage = {}, ["output layer"]

    def pack(tensor):
        if not isinstance(tensor, torch.nn.Parameter) and tensor.untyped_storage().data_ptr() != weight.data_ptr():
            storage = tensor.untyped_storage()
            seen.setdefault(storage.data_ptr(), [stage[0], list(tensor.shape), str(tensor.dtype), storage.nbytes(), storage])
        return tensor

    def model(input_ids, attention_mask, position_ids):
        logits = torch.nn.functional.linear(states, weight)
        stage[0] = "log-probabilities"
        return types.SimpleNamespace(logits=logits)

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        new, _ = own.forward_for_logprobs(model, ids, None, None, 0, temperature)
        stage[0] = "policy loss"
        new = own.mask_logprobs(new, mask)
        old = new.detach()
        ratio = torch.exp(new - old)
        advantages = torch.randn(1, tokens - 1)
        rho = own.compute_rho_correction(old, old + 0.01, mask, advantages, config)
        held = old + 0.01 if reference else None
        loss, _, kl = own.compute_grpo_loss(new, ratio, advantages, held, config, rho.weights)
        total = own.masked_mean(loss + 0.05 * kl, mask, None, 7.0)
    total.backward()
    kept = {}
    for place, shape, dtype, size, _ in seen.values():
        kept.setdefault(place, []).append({"shape": shape, "dtype": dtype.removeprefix("torch."), "bytes": size})
    return {"tokens": tokens, "vocabulary": VOCABULARY, "hidden": HEIGHT, "temperature": temperature,
            "reference": reference, "loss": kind, "kept": kept}


def main():
    own = taken()
    commit = subprocess.run(["git", "-C", CHECKOUT, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    versions = {"torch": torch.__version__, "open-instruct": commit.stdout.strip()}
    print(json.dumps(versions | {"allocated in backward": compiled(own)}))
    for tokens, temperature, reference, kind in [
        (64, 1.0, False, "dapo"), (64, 0.7, True, "dapo"), (96, 1.0, True, "cispo"), (96, 1.0, False, "cispo")]:
        print(json.dumps(case(own, tokens, temperature, reference, kind)))


if __name__ == "__main__":
    main()
