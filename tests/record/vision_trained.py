"""Records what vision towers keep for backward where they train, and where they are frozen behind an embedding of patches that is made
to require a gradient (`enable_input_require_grads` of transformers 5).

For each type of model a small model of transformers with random weights is built on the CPU as `vision_towers.py` builds it, and what
it keeps is counted as `vision_kept.py` says. Written to standard output, a line of JSON for each run:

  type      model_type of the whole
  config    its sizes
  way       "trained": tower, projector and decoder; "hooked": tower and projector frozen
  autocast  whether `torch.autocast` is on, over weights in bf16
  attention "sdpa" or "flash"
  images    images of the one sample
  patches   patches of them all
  tower     bytes kept of tower and projector
  layer     bytes kept of the tower's second layer
  recomputed  bytes kept of tower and projector where `gradient_checkpointing_enable()` was called
  decoder   bytes kept outside of tower and projector, less those of the same run with a tower that keeps nothing

Run with transformers 5.23.0 and torch 2.15.0: python tests/record/vision_trained.py > tests/data/activations/vision_trained.jsonl
"""

import json

from vision_kept import KINDS, kept, sample, small_model, use_flash


def run(kind, way, autocast, attention, images):
    model, config, small, sizes = small_model(kind)
    if attention == "flash":
        use_flash(model, config)
    given, patches = sample(kind, config, small, images)
    *_, frozen = kept(model, given, autocast)
    if way == "trained":
        model.requires_grad_(True)
    else:
        model.enable_input_require_grads()
    tower, layer, outside = kept(model, given, autocast)
    model.gradient_checkpointing_enable()
    recomputed, *_ = kept(model, given, autocast)
    row = dict(type=kind, config=sizes, way=way, autocast=autocast, attention=attention, images=images,
               patches=patches, tower=tower, layer=layer, recomputed=recomputed, decoder=outside - frozen)
    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    for kind in KINDS:
        for way in ("trained", "hooked"):
            for autocast in (False, True):
                for attention in ("sdpa", "flash"):
                    for images in (1, 2):
                        run(kind, way, autocast, attention, images)
