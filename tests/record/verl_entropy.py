"""Records what the entropy in verl's loss keeps and allocates, as torch compiles it for an accelerator, on a CPU.

    pip install torch
    git clone https://github.com/volcengine/verl
    python verl_entropy.py verl > verl_entropy.jsonl

`entropy_from_logits` of `verl/utils/torch_functional.py` is taken out of the checkout and compiled with `dynamic=True`, as
`verl/workers/actor/dp_actor.py` does. Counted are the tensors that autograd saves (`saved_tensors_hooks`), each storage once, the logits
apart, and the tensors of tokens times vocabulary that forward and backward allocate, read from the code that inductor makes. For a CPU
alone inductor writes out what is used twice and has an exponential in it (`torch/_inductor/ir.py:StorageBox.should_realize_on_reuse`,
`is_cpu`): here it is told that the device is none.
"""

import ast
import json
import re
import subprocess
import sys

import torch
import torch._inductor.ir
from torch._inductor.utils import run_fw_bw_and_get_code

TOKENS, VOCABULARY = 64, 4096
CHECKOUT = sys.argv[1]


def shown(*words):
    return subprocess.run(["git", "-C", CHECKOUT, *words], check=True, capture_output=True, text=True).stdout


def main():
    torch._inductor.ir.is_cpu = lambda node: False
    text = shown("show", "HEAD:verl/utils/torch_functional.py")
    node = next(node for node in ast.parse(text).body if getattr(node, "name", None) == "entropy_from_logits")
    names = {"torch": torch}
    exec("\n".join(text.splitlines()[node.lineno - 1:node.end_lineno]), names)
    entropy = torch.compile(names["entropy_from_logits"], dynamic=True)
    logits = torch.randn(TOKENS, VOCABULARY, dtype=torch.bfloat16, requires_grad=True)
    _, code = run_fw_bw_and_get_code(lambda: entropy(logits))
    wide = [re.findall(r"empty_strided_cpu\(\(s\d+, s\d+\), .*torch\.(\w+)\)", part) for part in code]
    seen = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() != logits.untyped_storage().data_ptr():
            seen.setdefault(storage.data_ptr(), [storage.nbytes(), storage])
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        entropy(logits).sum().backward()
    print(json.dumps({"torch": torch.__version__, "verl": shown("rev-parse", "HEAD").strip()}))
    print(json.dumps({"tokens": TOKENS, "vocabulary": VOCABULARY, "kept beside the logits": sum(size for size, _ in seen.values()),
                      "allocated in forward": wide[0], "allocated in backward": wide[1]}))


main()
