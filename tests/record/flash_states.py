"""What flashoptim's AdamW holds for each parameter, one JSON line a case.

    pip install torch==2.15.0 transformers==5.23.0 flashoptim==0.1.4
    python flash_states.py > ../data/activations/flash_states.jsonl

`_ensure_state_initialized` runs as it is, for parameters on a CUDA device that `FakeTensorMode` pretends; its kernels, which fill what it has
allocated, are not run. `master` is `master_weight_bits`.
"""

import json
from importlib.metadata import version

import torch
import transformers
from torch._subclasses.fake_tensor import FakeTensorMode
from transformers import AutoModelForCausalLM, LlamaConfig

torch.cuda.is_available = lambda: True

from flashoptim import FlashAdamW, optimizers

SHAPE = dict(hidden_size=64, intermediate_size=256, num_attention_heads=4, num_key_value_heads=4, num_hidden_layers=2, vocab_size=1024)


class NotRun:
    def __getitem__(self, _):
        return lambda *_, **__: None


optimizers._triton_quantize_kernel = NotRun()


def case(dtype, master):
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(LlamaConfig(**SHAPE, tie_word_embeddings=False), dtype=getattr(torch, dtype))
    with FakeTensorMode():
        names = {
            torch.nn.Parameter(torch.empty(parameter.shape, dtype=parameter.dtype, device="cuda")): name
            for name, parameter in model.named_parameters()
        }
        given = {} if master is None else dict(master_weight_bits=master)
        optimizer = FlashAdamW(list(names), **given)
        held = {}
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                optimizer._ensure_state_initialized(parameter, group)
                tensors = []
                for value in optimizer.state[parameter].values():
                    tensors += [value.quantized, value.scales] if hasattr(value, "quantized") else [value]
                # The step's count is on the host.
                bytes_held = sum(tensor.nbytes for tensor in tensors if tensor.device.type == "cuda")
                held[names[parameter]] = [parameter.numel(), bytes_held]
    return dict(dtype=dtype, master=master, **SHAPE, held=held)


def main():
    print(json.dumps(dict(torch=torch.__version__, transformers=transformers.__version__, flashoptim=version("flashoptim"))))
    for dtype, master in [("bfloat16", None), ("bfloat16", 24), ("bfloat16", 32)]:
        print(json.dumps(case(dtype, master)))


if __name__ == "__main__":
    main()
