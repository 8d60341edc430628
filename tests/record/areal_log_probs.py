"""Records what AReaL's log-probabilities of sampled tokens keep and allocate, as torch compiles them, on a CPU.

    pip install torch
    git clone https://github.com/inclusionAI/AReaL
    python areal_log_probs.py AReaL > areal_log_probs.jsonl

`_gather_logprobs_entropy` and `_chunked_apply` of `areal/utils/functional/vocab_parallel.py` are taken out of the checkout. The first is
compiled as that file does, and called so many rows of the logits at a time. Counted are the tensors that autograd saves
(`saved_tensors_hooks`), each storage once, the logits apart, and the most that forward and backward have allocated at once beside what was
there before, in bytes, as the profiler tells it. The entropy is detached, as every loss of AReaL's actor does.
"""

import ast
import json
import os
import subprocess
import sys
import tempfile

import torch
from torch.profiler import ProfilerActivity, profile

CHECKOUT = sys.argv[1]
FILE = "HEAD:areal/utils/functional/vocab_parallel.py"


def shown(*words):
    return subprocess.run(["git", "-C", CHECKOUT, *words], check=True, capture_output=True, text=True).stdout


def taken():
    text = shown("show", FILE)
    names = {"torch": torch, "Callable": __import__("collections.abc").abc.Callable, "T": torch.Tensor}
    for node in ast.parse(text).body:
        if getattr(node, "name", None) in ("_gather_logprobs_entropy", "_chunked_apply"):
            exec("\n".join(text.splitlines()[node.lineno - 1:node.end_lineno]), names)
    return torch.compile(names["_gather_logprobs_entropy"]), names["_chunked_apply"]


def most(run):
    """The most that is allocated at once while it runs, beside what was allocated before."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as told:
        result = run()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        told.export_chrome_trace(path)
        with open(path) as file:
            events = [event for event in json.load(file)["traceEvents"] if event.get("name") == "[memory]"]
    events.sort(key=lambda event: event["ts"])
    held = highest = 0
    for event in events:
        held += event["args"]["Bytes"]
        highest = max(highest, held)
    return highest, result


def main():
    print(json.dumps({"torch": torch.__version__, "areal": shown("rev-parse", "HEAD").strip()}))
    for tokens, vocabulary, chunk in ((1024, 4096, 1024), (2048, 4096, 1024), (8192, 4096, 1024)):
        torch._dynamo.reset()
        compiled, apply = taken()
        hidden = torch.randn(tokens, vocabulary, dtype=torch.bfloat16, requires_grad=True)
        logits = hidden * 1
        labels = torch.randint(0, vocabulary, (tokens,))
        seen = {}

        def pack(tensor):
            storage = tensor.untyped_storage()
            if storage.data_ptr() != logits.untyped_storage().data_ptr():
                seen.setdefault(storage.data_ptr(), [storage.nbytes(), storage])
            return tensor

        # Compiled before it is counted.
        picked, entropy = apply(compiled, logits, labels, chunk)
        picked.sum().backward(retain_graph=True)
        del picked, entropy
        hidden.grad = None
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            forward, (picked, entropy) = most(lambda: apply(compiled, logits, labels, chunk))
        entropy = entropy.detach()
        kept = sum(size for size, _ in seen.values())
        seen.clear()
        total = picked.sum()
        backward, _ = most(lambda: torch.autograd.grad(total, logits))
        print(json.dumps({"tokens": tokens, "vocabulary": vocabulary, "chunk": chunk, "kept beside the logits": kept,
                          "most in forward": forward, "most in backward": backward}))


main()
