"""Records what vision towers and their projectors keep for backward where one of the two trains and the other is frozen, and where
gradients pass a frozen tower to whose projector weights train.

Models, counting and stand-ins are those of `vision_trained.py`; a sample has two images, attention is SDPA's but for Mistral 3, whose
tower then has a mask of all patches. Written to standard output, a line of JSON for each run:

  type      model_type of the whole
  config    its sizes
  way       what trains beside the decoder, of "tower", "projector" and "deep", mergers of deep layers (Qwen3-VL); "hooked" where the
            embedding of patches is made to require a gradient (`enable_input_require_grads` of transformers 5)
  autocast  whether `torch.autocast` is on, over weights in bf16
  attention "sdpa" or "flash"
  patches   patches of all images
  tower     bytes kept of tower and projector
  decoder   bytes kept outside of tower and projector, less those of the same run with a tower that keeps nothing

Run with transformers 5.23.0 and torch 2.15.0: python tests/record/vision_parts.py > tests/data/activations/vision_parts.jsonl
"""

import json
import pathlib

import torch

SOURCE = (pathlib.Path(__file__).parent / "vision_trained.py").read_text()
whole = {"__name__": "whole", "__file__": __file__}
exec(compile(SOURCE.split("\nfor kind in KINDS:")[0], "vision_trained.py", "exec"), whole)
CASES, IMAGE, towers = whole["CASES"], whole["IMAGE"], whole["towers"]
WAYS = ["projector", "hooked projector", "tower"]
DEEP = ["projector deep", "hooked projector deep", "tower deep"]
PROJECTORS = ("merger", "multi_modal_projector")


def part_of(name):
    parts = name.split(".")
    if not whole["is_tower"](name):
        return "decoder"
    if "deepstack_merger_list" in parts:
        return "deep"
    return "projector" if any(part in PROJECTORS for part in parts) else "tower"


def run(kind, way, autocast):
    _, text, small, _, more = CASES[kind]
    small = dict(small, vision_use_head=False) if kind == "gemma3" else small
    model, config = towers["build"](kind, text, small, more)
    if kind == "mistral3":
        whole["use_flash"](model, config)
    given, patches = towers["inputs"](kind, config, small)
    tokens = 16
    ids = torch.randint(0, 280, (1, 96 + 128))
    at = 4
    for _ in range(2):
        ids[0, at] = 292
        ids[0, at + 1 : at + 1 + tokens] = IMAGE
        at += tokens + 2
    places = (ids == IMAGE).long()
    given = {key: torch.cat([value] * 2) for key, value in given.items()}
    given |= dict(input_ids=ids, labels=ids)
    if kind.startswith("qwen"):
        given["mm_token_type_ids"] = places
    if kind == "gemma3":
        given["token_type_ids"] = places
    *_, frozen = whole["kept"](model, given, autocast)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(part_of(name) in ["decoder", *way.split()])
    if "hooked" in way:
        model.enable_input_require_grads()
    tower, _, outside = whole["kept"](model, given, autocast)
    sizes = dict(model_type=kind, text_config=text, vision_config=small, **more)
    attention = "flash" if kind == "mistral3" else "sdpa"
    row = dict(type=kind, config=sizes, way=way, autocast=autocast, attention=attention, patches=patches * 2, tower=tower,
               decoder=outside - frozen)
    print(json.dumps(row), flush=True)


for kind in whole["KINDS"]:
    for way in WAYS + (DEEP if kind == "qwen3_vl" else []):
        for autocast in (False, True):
            run(kind, way, autocast)
