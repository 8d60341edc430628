"""Records what EasyR1's AnyPrecisionAdamW (`worker.actor.optim.strategy=adamw_bf16`) holds and makes, on a CPU.

    git clone https://github.com/hiyouga/EasyR1
    python any_precision_step.py EasyR1 > ../data/torch/any_precision_step.tsv

Needs torch 2.15.0. Parameters are flat and in bf16, as FSDP1's are: first what no layer has, then each layer's. Sizes are those of
storages; the step recorded is the second one. Tab separated: elements of the first, of each other, how many others, bytes of states,
most bytes made by the step beside them.
"""

import ast
import subprocess
import sys
import typing

import torch

from adam_step import LEAST, Alive


def optimizer_class(checkout):
    text = subprocess.run(["git", "-C", checkout, "show", "HEAD:verl/utils/torch_functional.py"], check=True, capture_output=True, text=True).stdout
    node = next(node for node in ast.parse(text).body if getattr(node, "name", None) == "AnyPrecisionAdamW")

    class PrecisionType:
        to_dtype = staticmethod(lambda name: getattr(torch, name))

    names = {"torch": torch, "List": typing.List, "Tuple": typing.Tuple, "PrecisionType": PrecisionType}
    exec(ast.get_source_segment(text, node), names)
    return names["AnyPrecisionAdamW"]


def main():
    kind = optimizer_class(sys.argv[1])
    print(f"# torch {torch.__version__}")
    for first, each, others in [(4096, 1024, 3), (1024, 4096, 2), (2048, 2048, 4)]:
        parameters = [torch.nn.Parameter(torch.randn(size, dtype=torch.bfloat16)) for size in [first] + [each] * others]
        optimizer = kind(parameters, lr=1e-3, weight_decay=1e-2)
        for _ in range(2):
            for one in parameters:
                one.grad = torch.randn_like(one)
            with Alive() as alive:
                optimizer.step()
        states = sum(value.nbytes for state in optimizer.state.values() for value in state.values() if value.nbytes > LEAST)
        print(first, each, others, states, alive.most, sep="\t")


main()
