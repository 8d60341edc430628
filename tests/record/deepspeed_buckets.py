"""Records the buffers that DeepSpeed's ZeRO-1 and 2 make for gradients to be reduced, on a CPU.

    pip download --no-deps --no-binary :all: deepspeed==0.19.8 && tar xzf deepspeed-0.19.8.tar.gz
    python deepspeed_buckets.py deepspeed-0.19.8 > ../data/activations/deepspeed_buckets.tsv

`setup_buckets` of `deepspeed/runtime/zero/stage_1_and_2.py` runs as it is, with torch 2.15.0. Tab separated: whether gradients are
contiguous, overlap_comm, reduce_bucket_size, and the bytes of all buffers with gradients in bf16.
"""

import ast
import pathlib
import sys
import types

import torch


def main():
    path = pathlib.Path(sys.argv[1]) / "deepspeed/runtime/zero/stage_1_and_2.py"
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if getattr(node, "name", None) == "setup_buckets"]
    device = types.SimpleNamespace(current_device_name=lambda: "cpu")
    names = {"torch": torch, "get_accelerator": lambda: device}
    exec(compile(ast.Module(nodes, []), str(path), "exec"), names)
    print("contiguous\toverlap\telements\tbytes")
    for contiguous in (True, False):
        for overlap in (True, False):
            for elements in (50_000, 2_000_000):
                bucket = types.SimpleNamespace(buffer=[], index=None)
                optimizer = types.SimpleNamespace(
                    ready_for_gradients=False, micro_step_id=0, contiguous_gradients=contiguous, overlap_comm=overlap, reduce_bucket_size=elements,
                    ipg_buckets={torch.bfloat16: bucket}, _gradient_reduction_buffer_dtype=lambda: torch.bfloat16)
                names["setup_buckets"](optimizer)
                print(contiguous, overlap, elements, sum(buffer.nbytes for buffer in bucket.buffer), sep="\t")


if __name__ == "__main__":
    main()
