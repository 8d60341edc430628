"""Records what decoder layers keep where a batch says which tokens are of an image, as processors do of samples without images too: Gemma 3
and Gemma 4 in SDPA, one JSON line a case, on a CPU.

    pip install torch==2.15.0 transformers==5.24.0
    python image_masks.py > ../data/activations/image_masks.jsonl

No image is passed: the tower is beside what is recorded. Gemma 3 gives attention to the whole sequence a mask, Gemma 4 leaves it causal
(`create_masks_for_vision_model` of either). Storages are taken once, parameters and buffers left out, and counted to the layer whose
forward packs them first; those that several layers pack are left out.
"""

import collections
import json

import torch
import transformers
from transformers import Gemma3Config, Gemma3ForConditionalGeneration, Gemma4Config, Gemma4ForConditionalGeneration

TEXT = dict(num_hidden_layers=4, hidden_size=128, intermediate_size=352, vocab_size=1000, max_position_embeddings=4096,
            num_attention_heads=4, num_key_value_heads=2, head_dim=32, sliding_window=40, use_cache=False,
            layer_types=["sliding_attention", "full_attention"] * 2)
OWN = dict(gemma3={}, gemma4=dict(global_head_dim=64, hidden_size_per_layer_input=0, use_bidirectional_attention="vision"))
VISION = dict(
    gemma3=dict(hidden_size=64, intermediate_size=96, num_hidden_layers=1, num_attention_heads=2, patch_size=4, image_size=16,
                vision_use_head=False, model_type="siglip_vision_model"),
    gemma4=dict(hidden_size=64, intermediate_size=96, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2, head_dim=32,
                patch_size=4, pooling_kernel_size=1, position_embedding_size=64, model_type="gemma4_vision"))
TYPES = dict(gemma3="token_type_ids", gemma4="mm_token_type_ids")


def build(name):
    text, vision = dict(TEXT, **OWN[name]), VISION[name]
    if name == "gemma3":
        config = Gemma3Config(text_config=text, vision_config=vision, mm_tokens_per_image=4, image_token_id=999)
        return Gemma3ForConditionalGeneration._from_config(config, attn_implementation="sdpa")
    config = Gemma4Config(text_config=text, vision_config=vision, audio_config=None, image_token_id=999)
    return Gemma4ForConditionalGeneration._from_config(config, attn_implementation="sdpa")


def record(case):
    torch.manual_seed(0)
    model = build(case["model"]).to(torch.float32 if case["dtype"] == "fp32" else torch.bfloat16).train()
    own = {p.untyped_storage().data_ptr() for p in [*model.parameters(), *model.buffers()]}
    place, users, sizes, alive = [], collections.defaultdict(set), {}, []
    for index, layer in enumerate(model.model.language_model.layers):
        layer.register_forward_pre_hook(lambda *_, index=index: place.append(f"layer{index}"))
        layer.register_forward_hook(lambda *_: place.pop() and None)

    def pack(tensor):
        storage = tensor.untyped_storage()
        alive.append(storage)
        if storage.data_ptr() not in own and storage.nbytes():
            users[storage.data_ptr()].add(place[-1] if place else "outside")
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    tokens = torch.randint(0, 900, (case["b"], case["s"]))
    told = {TYPES[case["model"]]: torch.zeros_like(tokens)} if case["told"] else {}
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        model(input_ids=tokens, labels=tokens.clone(), **told)
    kept = collections.Counter()
    for address, places in users.items():
        inside = places - {"outside"}
        if len(inside) == 1:
            kept[next(iter(inside))] += sizes[address]
    return dict(kept)


if __name__ == "__main__":
    print(json.dumps({"torch": torch.__version__, "transformers": transformers.__version__, "text": TEXT, "own": OWN, "vision": VISION}))
    for name in OWN:
        for told in (False, True):
            for dtype, b, s in [("bf16", 1, 128), ("bf16", 3, 64), ("fp32", 2, 192)]:
                case = dict(model=name, told=told, dtype=dtype, b=b, s=s)
                print(json.dumps(dict(case, kept=record(case))))
