"""Records what vision towers and their projectors keep for backward with PEFT's adapters beside linear layers.

Models and counting are those of `vision_kept.py`; attention is SDPA's but for Mistral 3, whose tower has a mask with it; a sample
has two images. Adapters have rank 8; PEFT holds them in fp32 beside weights in bf16 unless told otherwise. Dropout keeps a mask of a
byte for each element, as it does on CUDA. Written to standard output, a line of JSON for each run:

  type      model_type of the whole
  config    its sizes
  parts     where adapters stand: "tower", and with it "projector" and "deep", mergers of deep layers (Qwen3-VL)
  hooked    whether the embedding of patches is made to require a gradient (`enable_input_require_grads` of transformers 5)
  adapters  number format of the adapters
  dropout   of the adapters
  autocast  whether `torch.autocast` is on, over weights in bf16
  attention "sdpa" or "flash"
  patches   patches of all images
  trained   parameters of the adapters
  tower     bytes kept of tower and projector
  layer     bytes kept of the tower's second layer
  recomputed  bytes kept of tower and projector where `gradient_checkpointing_enable()` was called
  decoder   bytes kept outside of tower and projector, less those of the same run with a tower that keeps nothing

Run with transformers 5.23.0, PEFT 0.21.2 and torch 2.15.0: python tests/record/vision_lora.py > tests/data/activations/vision_lora.jsonl
"""

import json

import torch
from peft import LoraConfig, get_peft_model

from vision_kept import KINDS, is_tower, kept, part_of, sample, small_model, use_flash


def drop(value, p=0.5, training=True, inplace=False):
    return torch.native_dropout(value, p, training)[0] if training and p > 0 else value


torch.nn.functional.dropout = drop


def run(kind, parts, hooked, adapters, dropout, autocast):
    model, config, small, sizes = small_model(kind)
    if kind == "mistral3":
        use_flash(model, config)
    given, patches = sample(kind, config, small)
    *_, frozen = kept(model, given, autocast)
    linears = [name for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)]
    names = [name for name in linears if part_of(name) in parts.split()]
    lora = LoraConfig(r=8, lora_alpha=16, lora_dropout=dropout, target_modules=names)
    model = get_peft_model(model, lora, autocast_adapter_dtype=adapters == "fp32")
    trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    for name, parameter in model.named_parameters():
        if not is_tower(name):
            parameter.requires_grad_(True)
    if hooked:
        model.enable_input_require_grads()
    tower, layer, outside = kept(model, given, autocast)
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=dict(use_reentrant=False))
    recomputed, *_ = kept(model, given, autocast)
    row = dict(type=kind, config=sizes, parts=parts, hooked=hooked, adapters=adapters, dropout=dropout, autocast=autocast, patches=patches,
               attention="flash" if kind == "mistral3" else "sdpa", trained=trained, tower=tower, layer=layer, recomputed=recomputed, decoder=outside - frozen)
    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    for kind in KINDS:
        for parts in ("tower", "tower projector deep" if kind == "qwen3_vl" else "tower projector"):
            for hooked in (False, True) if kind.startswith("qwen2") else (False,):
                for adapters, autocast in (("bf16", False), ("fp32", False), ("fp32", True)):
                    for dropout in (0.0, 0.05):
                        run(kind, parts, hooked, adapters, dropout, autocast)
