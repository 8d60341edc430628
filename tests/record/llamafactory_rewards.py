"""What LLaMA-Factory's reward models keep for backward behind the decoder and hold at most on the way, one JSON line a case.

`python llamafactory_rewards.py TRL LLAMA_FACTORY > ../data/activations/llamafactory_rewards.jsonl` with torch on a CPU and checkouts of
huggingface/trl and hiyouga/LLaMA-Factory. TRL's `ValueHead` and `AutoModelForCausalLMWithValueHead.forward` and the `compute_loss` of
`llamafactory/train/rm/trainer.py` run as they are over an output layer that does not train and the final norm's output. `head` is the
value head's dtype; where a case says `cast`, all runs under autocast to bf16, and the outputs are handed on in fp32, as Accelerate does
(`trl_dpo.py` says where). `most` is what is alive at once beyond the final norm's output and the weights until the loss is there.
"""

import ast
import json
import subprocess
import sys
import types
from typing import Union

import torch
from torch import nn

from trl_kto import Held, own

# What `at::dropout` calls for tensors on a GPU (`aten/src/ATen/native/Dropout.cpp`).
torch.nn.functional.dropout = lambda x, p, training, inplace: torch.native_dropout(x, p, training)[0]

HIDDEN, VOCABULARY = 64, 4096
PATH = "trl/experimental/ppo/modeling_value_head.py"


def of_class(checkout, path, name, wanted, names):
    text = subprocess.run(["git", "-C", checkout, "show", f"HEAD:{path}"], check=True, capture_output=True, text=True).stdout
    node = next(node for node in ast.parse(text).body if isinstance(node, ast.ClassDef) and node.name == name)
    nodes = [node] if wanted is None else [part for part in node.body if isinstance(part, ast.FunctionDef) and part.name == wanted]
    exec(compile(ast.Module(nodes, []), path, "exec"), names)
    return names[wanted or name]


def case(trl, factory, samples, tokens, head, cast):
    torch.manual_seed(0)
    names = {"torch": torch, "nn": nn, "Union": Union, "override": lambda function: function}
    value_head = of_class(trl, PATH, "ValueHead", None, names)(types.SimpleNamespace(hidden_size=HIDDEN)).to(head).train()
    forward = of_class(trl, PATH, "AutoModelForCausalLMWithValueHead", "forward", names)
    compute_loss = of_class(factory, "src/llamafactory/train/rm/trainer.py", "PairwiseTrainer", "compute_loss", names)
    sequences = 2 * samples
    states = torch.randn(sequences, tokens, HIDDEN, dtype=torch.bfloat16, requires_grad=True)
    lm_head = nn.Linear(HIDDEN, VOCABULARY, bias=False, dtype=torch.bfloat16).requires_grad_(False)

    def base(**given):
        return types.SimpleNamespace(hidden_states=(states,), logits=lm_head(states), loss=None)

    this = types.SimpleNamespace(pretrained_model=base, v_head=value_head, is_peft_model=False)

    def model(**given):
        given.pop("return_dict"), given.pop("use_cache"), given.pop("output_hidden_states")
        with torch.autocast("cpu", torch.bfloat16, enabled=cast):
            out = forward(this, **given)
        if not cast:
            return out
        return tuple(part.float() if part is not None and part.is_floating_point() else part for part in out)

    mask = torch.ones(sequences, tokens, dtype=torch.int64)
    seen = {}
    own_weights = {lm_head.weight.data_ptr(), value_head.summary.weight.data_ptr()}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own_weights:
            seen.setdefault(storage.data_ptr(), [list(tensor.shape), str(tensor.dtype), storage.nbytes(), tensor.grad_fn])
        return tensor

    held = Held()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor), held:
        loss = compute_loss(types.SimpleNamespace(), model, {"input_ids": mask, "attention_mask": mask})
        most = held.most
        seen.clear()
        loss = compute_loss(types.SimpleNamespace(), model, {"input_ids": mask, "attention_mask": mask})
    # What the output layer saved is gone with its logits; of the rest all is alive.
    loss.backward()
    kept = [{"shape": shape, "dtype": kind.removeprefix("torch."), "bytes": size} for shape, kind, size, _ in seen.values()]
    kept = [tensor for tensor in kept if tensor["shape"] != [VOCABULARY, HIDDEN]]
    return {
        "samples": samples, "tokens": tokens, "hidden": HIDDEN, "vocabulary": VOCABULARY, "head": str(head).removeprefix("torch."),
        "cast": cast, "kept": kept, "most": most,
    }


def main():
    trl, factory = sys.argv[1:]
    commits = [
        subprocess.run(["git", "-C", path, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
        for path in (trl, factory)
    ]
    print(json.dumps({"torch": torch.__version__, "trl": commits[0], "llamafactory": commits[1]}))
    for head, cast in [(torch.float32, True), (torch.bfloat16, False), (torch.float32, False)]:
        for samples, tokens in [(1, 32), (2, 48)]:
            print(json.dumps(case(trl, factory, samples, tokens, head, cast)))


if __name__ == "__main__":
    main()
