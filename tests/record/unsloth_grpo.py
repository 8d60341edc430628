"""What the log-probabilities of unsloth's GRPO keep for backward behind the last norm, one JSON line a case, on a CPU.

    pip install torch==2.15.0 transformers==5.23.0 peft==0.21.2 trl==1.16.0
    pip install --no-deps unsloth==2026.10.9 unsloth_zoo==2026.10.9
    UNSLOTH_ALLOW_CPU=1 UNSLOTH_IS_PRESENT=1 python unsloth_grpo.py > ../data/activations/unsloth_grpo.jsonl

`grpo_chunked_hidden_states_logprobs` (`unsloth_zoo/rl_replacements.py`) runs as it is, on completions packed into one row as
`grpo_accumulated_loss` packs them. The output layer is frozen, as it is beside adapters. Where a GPU runs Triton's kernels PyTorch's
functions stand in; what is kept is the same operator's.
"""

import contextlib
import json
import sys
from importlib.metadata import version

import torch

with contextlib.redirect_stdout(sys.stderr):
    from unsloth_zoo.rl_replacements import grpo_chunked_hidden_states_logprobs as run

VOCABULARY, HEIGHT = 640, 64


def case(samples, completion, temperature, dtype):
    torch.manual_seed(0)
    rows = samples * completion
    weight = torch.nn.Parameter(torch.randn(VOCABULARY, HEIGHT, dtype=dtype), requires_grad=False)
    # What a layer that trains hands on.
    first = torch.randn(1, rows + samples, HEIGHT, dtype=dtype, requires_grad=True)
    ids = torch.randint(0, VOCABULARY, (1, rows + samples))
    sampled = torch.ones(rows + samples - 1, dtype=torch.bool)
    sampled[completion :: completion + 1] = False
    kept = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        kept.setdefault(storage.data_ptr(), [list(tensor.shape), str(tensor.dtype).removeprefix("torch."), storage.nbytes(), storage])
        return tensor

    hidden = first * 1
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        chosen = hidden[0, :-1, :][sampled].unsqueeze(0)
        targets = ids[0, 1:][sampled].unsqueeze(0)
        out = run(chosen, weight, targets, 4 * samples, 0.0, 0.0, 0.0, temperature)[0]
    out.sum().backward()
    return {
        "samples": samples, "completion": int(sampled.sum()), "tokens": rows + samples, "temperature": temperature,
        "vocabulary": VOCABULARY, "hidden": HEIGHT, "dtype": str(dtype).removeprefix("torch."),
        "kept": [{"shape": shape, "dtype": kind, "bytes": size} for shape, kind, size, _ in kept.values()],
    }


def main():
    print(json.dumps({"torch": torch.__version__, "unsloth_zoo": version("unsloth_zoo")}))
    for dtype in [torch.bfloat16, torch.float16]:
        for samples, completion in [(1, 48), (2, 64), (4, 200)]:
            for temperature in [1.0, 0.7]:
                print(json.dumps(case(samples, completion, temperature, dtype)), flush=True)


if __name__ == "__main__":
    sys.exit(main())
