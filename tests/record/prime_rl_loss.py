"""Records what prime-rl's output layer with its log-probabilities keeps and allocates, on a CPU.

    pip install torch
    git clone https://github.com/PrimeIntellect-ai/prime-rl
    python prime_rl_loss.py prime-rl > prime_rl_loss.jsonl

`_SequenceChunkedLogProbEntropyFn` and what it calls are taken out of `src/prime_rl/trainer/models/layers/lm_head.py`. Counted are the
tensors that autograd saves (`saved_tensors_hooks`), the weight apart, and the most that forward and backward have allocated at once
beside what was there before, in bytes, as the profiler tells it.
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
FILE = "HEAD:src/prime_rl/trainer/models/layers/lm_head.py"


def shown(*words):
    return subprocess.run(["git", "-C", CHECKOUT, *words], check=True, capture_output=True, text=True).stdout


def taken():
    text = shown("show", FILE)
    names = {"torch": torch, "Tensor": torch.Tensor}
    for node in ast.parse(text).body:
        if getattr(node, "name", None) in ("_SequenceChunkedLogProbEntropyFn", "_online_logsumexp_and_weighted_update"):
            exec("\n".join(text.splitlines()[node.lineno - 1:node.end_lineno]), names)
    return names["_SequenceChunkedLogProbEntropyFn"]


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
    print(json.dumps({"torch": torch.__version__, "prime-rl": shown("rev-parse", "HEAD").strip()}))
    function = taken()
    for tokens, width, vocabulary, chunk, trains in (
        (1024, 64, 16384, 512, True),
        (1024, 64, 16384, 512, False),
        (2048, 128, 24576, 1024, True),
        (768, 64, 16384, 8192, True),
        (1024, 64, 4096, 256, True),
    ):
        hidden = torch.randn(tokens, width, dtype=torch.bfloat16, requires_grad=True)
        weight = torch.randn(vocabulary, width, dtype=torch.bfloat16, requires_grad=trains)
        labels = torch.randint(0, vocabulary, (tokens,))
        scale = torch.ones(tokens)
        seen = {}

        def pack(tensor):
            storage = tensor.untyped_storage()
            if storage.data_ptr() != weight.untyped_storage().data_ptr():
                seen.setdefault(storage.data_ptr(), storage.nbytes())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            forward, (picked, entropy) = most(lambda: function.apply(hidden, weight, labels, scale, chunk))
        del entropy
        inputs = [hidden, weight] if trains else [hidden]
        total = picked.sum()
        backward, _ = most(lambda: torch.autograd.grad(total, inputs))
        print(json.dumps({"tokens": tokens, "width": width, "vocabulary": vocabulary, "chunk": chunk,
                          "trains": trains, "kept": sum(seen.values()), "most in forward": forward,
                          "most in backward": backward}))


main()
