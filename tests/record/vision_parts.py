"""Records what vision towers and their projectors keep for backward where one of the two trains and the other is frozen, and where
gradients pass a frozen tower to whose projector weights train.

Models, counting and stand-ins are those of `vision_kept.py`; a sample has two images, attention is SDPA's but for Mistral 3, whose
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

from vision_kept import KINDS, kept, part_of, sample, small_model, use_flash

WAYS = ["projector", "hooked projector", "tower"]
DEEP = ["projector deep", "hooked projector deep", "tower deep"]


def run(kind, way, autocast):
    model, config, small, sizes = small_model(kind)
    if kind == "mistral3":
        use_flash(model, config)
    given, patches = sample(kind, config, small)
    *_, frozen = kept(model, given, autocast)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(part_of(name) in ["decoder", *way.split()])
    if "hooked" in way:
        model.enable_input_require_grads()
    tower, _, outside = kept(model, given, autocast)
    attention = "flash" if kind == "mistral3" else "sdpa"
    row = dict(type=kind, config=sizes, way=way, autocast=autocast, attention=attention, patches=patches, tower=tower,
               decoder=outside - frozen)
    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    for kind in KINDS:
        for way in WAYS + (DEEP if kind == "qwen3_vl" else []):
            for autocast in (False, True):
                run(kind, way, autocast)
