"""Records what vision towers of Qwen2-VL and Qwen2.5-VL keep for backward with Liger's norms in them.

Liger's kernels need a GPU, so norms have stand-ins that keep what `LigerRMSNormFunction` and `LigerLayerNormFunction` save
(liger_kernel/ops/rms_norm.py, layer_norm.py): their input, and for each row the inverse root in fp32, or mean and inverse deviation in
the input's own type. Models and counting are those of `vision_kept.py`; attention is SDPA's, a sample has two images. Written to
standard output, a line of JSON for each run, as there, and with

  liger     "layers": norms of layers, as `_apply_liger_kernel_to_instance` patches a model; "class": all of their class, as
            `apply_liger_kernel_to_qwen2_5_vl` and the like do before one is built

Run with transformers 5.23.0 and torch 2.15.0: python tests/record/vision_liger.py > tests/data/activations/vision_liger.jsonl
"""

import json

import torch

from vision_kept import is_tower, kept, sample, small_model


class RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value, weight):
        ctx.save_for_backward(value, weight, torch.zeros(value.numel() // value.shape[-1]))
        return torch.zeros_like(value)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value, weight, bias):
        rows = value.numel() // value.shape[-1]
        ctx.save_for_backward(value, weight, bias, *(torch.zeros(rows, dtype=value.dtype) for _ in range(2)))
        return torch.zeros_like(value)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None, None


def patch(model, scope):
    for name, module in model.named_modules():
        last = name.split(".")[-1]
        if not is_tower(name) or last not in (["norm1", "norm2"] + ["ln_q"] * (scope == "class")):
            continue
        if isinstance(module, torch.nn.LayerNorm):
            module.forward = lambda value, module=module: LayerNorm.apply(value, module.weight, module.bias)
        else:
            module.forward = lambda value, module=module: RMSNorm.apply(value, module.weight)


def run(kind, way, autocast, scope):
    model, config, small, sizes = small_model(kind)
    patch(model, scope)
    given, patches = sample(kind, config, small)
    *_, frozen = kept(model, given, autocast)
    if way == "trained":
        model.requires_grad_(True)
    else:
        model.enable_input_require_grads()
    tower, layer, outside = kept(model, given, autocast)
    row = dict(type=kind, config=sizes, way=way, autocast=autocast, attention="sdpa", liger=scope, patches=patches, tower=tower,
               layer=layer, decoder=outside - frozen)
    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    for kind in ["qwen2_vl", "qwen2_5_vl"]:
        for way, scope in [("trained", "layers"), ("trained", "class"), ("hooked", "layers")]:
            for autocast in (False, True):
                run(kind, way, autocast, scope)
