"""Records what frozen vision towers keep for backward, and how much their forward pass has alive.

For each type of model with rules for its tower (crates/architectures/src/rules.txt) a small model of transformers with random
weights is built on the CPU, its tower and projector frozen, the language model trained. Written to standard output, tab
separated:

  type            model_type of the whole
  tower           bytes that autograd keeps of the tower and its projector, parameters aside
  decoder         bytes kept outside of them, less those of the same language model alone on the same tokens
  tokens          tokens of the sequence
  hooked          bytes kept of tower and projector once `enable_input_require_grads()` was called, as transformers' gradient
                  checkpointing and PEFT beside it call it: since version 5 its hook makes the output of a tower's
                  embedding of patches require a gradient too, where the tower says which module that is
  alive           most bytes alive in the tower's forward pass beside weights, for each patch and element of the width, at the
                  width of a released model

Run with transformers 5.23.0 and torch 2.15.0: python tests/record/vision_towers.py > tests/data/activations/vision_towers.tsv
"""

import sys
import traceback
import weakref

import torch
import transformers
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText

transformers.logging.set_verbosity_error()

IMAGE = 290
TOWERS = ("visual", "vision_tower", "vision_model", "multi_modal_projector")
NO_TOKENS = dict(pad_token_id=None, bos_token_id=None, eos_token_id=None)
TEXT = dict(
    hidden_size=64, intermediate_size=160, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
    vocab_size=300, max_position_embeddings=512, head_dim=16, **NO_TOKENS,
)
MROPE = {"type": "mrope", "mrope_section": [2, 3, 3], "rope_type": "default"}
INTERLEAVED = {"rope_type": "default", "mrope_section": [4, 2, 2], "mrope_interleaved": True}
EXPERTS = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32, norm_topk_prob=True)
LINEAR = dict(
    layer_types=["linear_attention", "linear_attention", "full_attention"], linear_num_key_heads=2,
    linear_num_value_heads=2, linear_key_head_dim=16, linear_value_head_dim=16, linear_conv_kernel_dim=4,
    rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [1, 1, 0],
                     "mrope_interleaved": True, "partial_rotary_factor": 0.25},
)


def qwen(width, inner, heads, patch, **more):
    sizes = dict(depth=3, num_heads=heads, patch_size=patch, spatial_merge_size=2, temporal_patch_size=2, in_channels=3)
    return dict(sizes, hidden_size=width, intermediate_size=inner, out_hidden_size=64, **more)


def plain(model_type, width, inner, heads, image, patch, **more):
    sizes = dict(num_hidden_layers=3, num_attention_heads=heads, image_size=image, patch_size=patch)
    return dict(sizes, model_type=model_type, hidden_size=width, intermediate_size=inner, **more)


def qwen2(width, heads):
    out = dict(embed_dim=width, hidden_size=64, mlp_ratio=4, depth=3, num_heads=heads, patch_size=14)
    return dict(out, spatial_merge_size=2, temporal_patch_size=2, in_channels=3)


# Type: that of its language model, its text model, its tower in small, the tower's layers at their released width.
CASES = {
    "qwen2_vl": ("qwen2", dict(TEXT, rope_scaling=MROPE), qwen2(48, 4), qwen2(1280, 16), {}),
    "qwen2_5_vl": ("qwen2", dict(TEXT, rope_scaling=MROPE), qwen(48, 128, 4, 14, fullatt_block_indexes=[2]),
                   qwen(1280, 3420, 16, 14, fullatt_block_indexes=[2]), {}),
    "qwen3_vl": ("qwen3", dict(TEXT, rope_scaling=INTERLEAVED), qwen(48, 128, 4, 16, deepstack_visual_indexes=[0, 1]),
                 qwen(1152, 4304, 16, 16, deepstack_visual_indexes=[0, 1]), {}),
    "qwen3_vl_moe": ("qwen3_moe", dict(TEXT, rope_scaling=INTERLEAVED, **EXPERTS),
                     qwen(48, 128, 4, 16, deepstack_visual_indexes=[0, 1]),
                     qwen(1152, 4304, 16, 16, deepstack_visual_indexes=[0, 1]), {}),
    "qwen3_5": ("qwen3_5_text", dict(TEXT, **LINEAR), qwen(48, 128, 4, 16), qwen(1152, 4304, 16, 16), {}),
    "llava": ("llama", dict(TEXT, model_type="llama"), plain("clip_vision_model", 48, 128, 4, 112, 14, projection_dim=32),
              plain("clip_vision_model", 1024, 4096, 16, 336, 14, projection_dim=768), {}),
    "internvl": ("qwen2", dict(TEXT, model_type="qwen2"), plain("internvl_vision", 48, 128, 4, [112, 112], [14, 14]),
                 plain("internvl_vision", 1024, 4096, 16, [448, 448], [14, 14]), {}),
    "gemma3": ("gemma3_text", dict(TEXT, model_type="gemma3_text", sliding_window=16, query_pre_attn_scalar=16),
               plain("siglip_vision_model", 48, 128, 4, 112, 14), plain("siglip_vision_model", 1152, 4304, 16, 448, 14),
               dict(mm_tokens_per_image=16)),
    "mistral3": ("mistral", dict(TEXT, model_type="mistral"), plain("pixtral", 48, 128, 4, 112, 14),
                 plain("pixtral", 1024, 4096, 16, 448, 14), dict(spatial_merge_size=2)),
}


def inputs(kind, config, tower):
    """Pixels of one image of 8 x 8 patches (at a released width: as many as its configuration says, or 16 x 16)."""
    if kind.startswith("qwen"):
        side = 8 if tower.get("embed_dim", tower["hidden_size"]) == 48 else 16
        values = 3 * 2 * tower["patch_size"] ** 2
        pixels = torch.randn(side * side, values, dtype=torch.bfloat16)
        return dict(pixel_values=pixels, image_grid_thw=torch.tensor([[1, side, side]])), side * side
    side = tower["image_size"] if isinstance(tower["image_size"], int) else tower["image_size"][0]
    out = dict(pixel_values=torch.randn(1, 3, side, side, dtype=torch.bfloat16))
    if kind == "mistral3":
        out["image_sizes"] = torch.tensor([[side, side]])
    return out, (side // 14) ** 2


def build(kind, text, tower, more):
    tokens = dict(image_token_id=IMAGE, video_token_id=291, vision_start_token_id=292, vision_end_token_id=293)
    config = AutoConfig.for_model(
        kind, text_config=dict(text), vision_config=dict(tower), image_token_index=IMAGE, **tokens, **more)
    torch.manual_seed(0)
    model = AutoModelForImageTextToText.from_config(config, dtype=torch.bfloat16, attn_implementation="sdpa").train()
    for name, parameter in model.named_parameters():
        if any(part in TOWERS for part in name.split(".")):
            parameter.requires_grad_(False)
    return model, config


def kept(model, given):
    """Bytes kept inside of the tower and its projector, and outside."""
    inside = [0]
    hooks = []
    for name, module in model.named_modules():
        if name.split(".")[-1] in TOWERS:
            enter = lambda *_: inside.__setitem__(0, inside[0] + 1)
            leave = lambda *_: inside.__setitem__(0, inside[0] - 1)
            hooks += [module.register_forward_pre_hook(enter), module.register_forward_hook(leave)]
    parameters = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    seen = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters and storage.data_ptr() not in seen:
            # The tensor is held, so that no other gets its address.
            seen[storage.data_ptr()] = (inside[0] > 0, storage.nbytes(), tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        model(**given, use_cache=False)
    for hook in hooks:
        hook.remove()
    return [sum(size for within, size, _ in seen.values() if within == side) for side in (True, False)]


class Alive(TorchDispatchMode):
    """Bytes of storages that are alive, and the most there were."""

    def __init__(self, known):
        super().__init__()
        self.known = set(known)
        self.now = self.most = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for tensor in tree_flatten(out)[0]:
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                key, size = storage._cdata, storage.nbytes()
                if key not in self.known:
                    self.known.add(key)
                    self.now += size
                    self.most = max(self.most, self.now)

                    def gone(key=key, size=size):
                        self.known.discard(key)
                        self.now -= size

                    weakref.finalize(storage, gone)
        return out


def record(kind, text_type, text, small, large, more):
    model, config = build(kind, text, small, more)
    given, patches = inputs(kind, config, small)
    ids = torch.randint(0, 280, (1, 96))
    tokens = 64 if kind == "llava" else 16
    ids[0, 4] = 292
    ids[0, 5 : 5 + tokens] = IMAGE
    places = (ids == IMAGE).long()
    given |= dict(input_ids=ids, labels=ids)
    if kind.startswith("qwen"):
        given["mm_token_type_ids"] = places
    if kind == "gemma3":
        given["token_type_ids"] = places
    tower, decoder = kept(model, given)
    alone = {key: value for key, value in text.items() if key not in ("model_type", "rope_scaling")}
    alone = AutoModelForCausalLM.from_config(
        AutoConfig.for_model(text_type, **alone), dtype=torch.bfloat16, attn_implementation="sdpa").train()
    _, without = kept(alone, dict(input_ids=ids, labels=ids))
    model.enable_input_require_grads()
    hooked, _ = kept(model, given)

    model, config = build(kind, text, large, more)
    model.requires_grad_(False)
    given, patches = inputs(kind, config, large)
    held = [tensor.untyped_storage() for tensor in [*model.parameters(), *model.buffers()]]
    alive = Alive(storage._cdata for storage in held)
    with alive:
        model.get_image_features(**given)
    width = large.get("embed_dim", large["hidden_size"])
    row = [kind, tower, decoder - without, ids.numel(), hooked, f"{alive.most / patches / width:.1f}"]
    print("\t".join(str(cell) for cell in row), flush=True)


if __name__ == "__main__":
    print("type\ttower\tdecoder\ttokens\thooked\talive")
    for case, sizes in CASES.items():
        try:
            record(case, *sizes)
        except Exception:
            print(case, file=sys.stderr)
            traceback.print_exc()
