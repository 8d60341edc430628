"""Records what vision towers and their projectors keep for backward with PEFT's adapters beside linear layers.

Models and counting are those of `vision_trained.py`; attention is SDPA's but for Mistral 3, whose tower has a mask with it; a sample
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
import pathlib

import torch
from peft import LoraConfig, get_peft_model

SOURCE = (pathlib.Path(__file__).parent / "vision_trained.py").read_text()
whole = {"__name__": "whole", "__file__": __file__}
exec(compile(SOURCE.split("\nfor kind in KINDS:")[0], "vision_trained.py", "exec"), whole)
CASES, IMAGE, towers = whole["CASES"], whole["IMAGE"], whole["towers"]


def drop(value, p=0.5, training=True, inplace=False):
    return torch.native_dropout(value, p, training)[0] if training and p > 0 else value


torch.nn.functional.dropout = drop
PROJECTORS = ("merger", "multi_modal_projector")


def part_of(name):
    parts = name.split(".")
    if "deepstack_merger_list" in parts:
        return "deep"
    return "projector" if any(part in PROJECTORS for part in parts) else "tower"


def inputs(kind, config, small):
    given, patches = towers["inputs"](kind, config, small)
    ids = torch.randint(0, 280, (1, 96 + 128))
    at = 4
    for _ in range(2):
        ids[0, at] = 292
        ids[0, at + 1 : at + 17] = IMAGE
        at += 18
    given = {key: torch.cat([value] * 2) for key, value in given.items()}
    given |= dict(input_ids=ids, labels=ids)
    if kind.startswith("qwen"):
        given["mm_token_type_ids"] = (ids == IMAGE).long()
    if kind == "gemma3":
        given["token_type_ids"] = (ids == IMAGE).long()
    return given, patches * 2


def run(kind, parts, hooked, adapters, dropout, autocast):
    _, text, small, _, more = CASES[kind]
    small = dict(small, vision_use_head=False) if kind == "gemma3" else small
    model, config = towers["build"](kind, text, small, more)
    if kind == "mistral3":
        whole["use_flash"](model, config)
    given, patches = inputs(kind, config, small)
    *_, frozen = whole["kept"](model, given, autocast)
    names = [name for name, module in model.named_modules() if whole["is_tower"](name) and isinstance(module, torch.nn.Linear)]
    names = [name for name in names if part_of(name) in parts.split()]
    lora = LoraConfig(r=8, lora_alpha=16, lora_dropout=dropout, target_modules=names)
    model = get_peft_model(model, lora, autocast_adapter_dtype=adapters == "fp32")
    trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    for name, parameter in model.named_parameters():
        if not whole["is_tower"](name):
            parameter.requires_grad_(True)
    if hooked:
        model.enable_input_require_grads()
    tower, layer, outside = whole["kept"](model, given, autocast)
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=dict(use_reentrant=False))
    recomputed, *_ = whole["kept"](model, given, autocast)
    sizes = dict(model_type=kind, text_config=text, vision_config=small, **more)
    row = dict(type=kind, config=sizes, parts=parts, hooked=hooked, adapters=adapters, dropout=dropout, autocast=autocast, patches=patches,
               attention="flash" if kind == "mistral3" else "sdpa", trained=trained, tower=tower, layer=layer, recomputed=recomputed, decoder=outside - frozen)
    print(json.dumps(row), flush=True)


for kind in ["qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_5", "gemma3", "internvl", "mistral3"]:
    for parts in ("tower", "tower projector deep" if kind == "qwen3_vl" else "tower projector"):
        for hooked in (False, True) if kind.startswith("qwen2") else (False,):
            for adapters, autocast in (("bf16", False), ("fp32", False), ("fp32", True)):
                for dropout in (0.0, 0.05):
                    run(kind, parts, hooked, adapters, dropout, autocast)
