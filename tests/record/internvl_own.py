"""Records what InternVL's own program keeps for backward, in its own modules around transformers' Qwen2: which of tower, projector
(`mlp1`) and decoder train is said as `internvl_chat_finetune.py` says it.

What is kept is counted once forward is over and its output alone is held, each storage once, parameters aside; mean and inverse
deviation of a LayerNorm count as fp32, as CUDA's kernel has them. Layers of the tower are checkpointed by default as soon as the model
is in training, which the program leaves on. Flash attention has a stand-in that keeps what `FlashAttnVarlenQKVPackedFunc` keeps. Parts
of the program that no run here uses, and packages that they want, have empty stand-ins. Written to standard output, a line of JSON for
each run:

  config      sizes: "plain" towers have LayerNorms and biases (InternViT-300M), "normed" ones RMSNorms, queries and keys among them
              (InternViT-6B)
  way         what trains: of "tower", "projector", "decoder", or "lora", adapters on the decoder
  checkpointed  whether layers of the tower are
  patches     patches of all tiles; tiles and samples beside
  tower       bytes kept of tower and projector
  layer       those of the tower's second layer
  outside     bytes kept elsewhere, less those of the decoder alone with the same loss over the embeddings of words

Run with torch 2.15.0, transformers 5.24.0, peft 0.21.2, einops 0.8.1 and OpenGVLab/InternVL at 2410d1dbf208, whose folder
`internvl_chat` is the argument: python tests/record/internvl_own.py internvl_chat > tests/data/activations/internvl_own.jsonl
"""

import contextlib
import gc
import importlib.machinery
import json
import sys
import types
import weakref

import torch
from peft import LoraConfig  # noqa: F401  transformers and PEFT look for flash attention before its stand-in is here
from transformers import Qwen2ForCausalLM  # noqa: F401


class Nothing(torch.nn.Module):
    pass


def stand_in(name, **members):
    made = types.ModuleType(name)
    made.__spec__ = importlib.machinery.ModuleSpec(name, None)
    made.__dict__.update(members)
    sys.modules[name] = made


class Packed(torch.autograd.Function):
    """Keeps the joined queries, keys and values, its output, the log of each row's sum, lengths, and the state of random numbers."""

    @staticmethod
    def forward(ctx, qkv):
        rows, _, heads, _ = qkv.shape
        out = torch.zeros_like(qkv[:, 0], memory_format=torch.contiguous_format)
        ctx.save_for_backward(qkv, out, torch.zeros(heads, rows), torch.zeros(2, dtype=torch.int64))
        return out

    @staticmethod
    def backward(ctx, gradient):
        return gradient.unsqueeze(1).expand(-1, 3, -1, -1)


stand_in("timm")
stand_in("timm.models")
stand_in("timm.models.layers", DropPath=Nothing)
stand_in("flash_attn")
stand_in("flash_attn.bert_padding", pad_input=None, unpad_input=None)
stand_in("flash_attn.flash_attn_interface", flash_attn_varlen_qkvpacked_func=None)
stand_in("internvl.model.internlm2.modeling_internlm2", InternLM2ForCausalLM=Nothing)
stand_in("internvl.model.internlm2.configuration_internlm2", InternLM2Config=Nothing)
stand_in("internvl.model.phi3.modeling_phi3", Phi3ForCausalLM=Nothing)
stand_in("internvl.model.phi3.configuration_phi3", Phi3Config=Nothing)
stand_in("internvl.conversation", get_conv_template=lambda name: types.SimpleNamespace(system_message=""))
sys.path.insert(0, sys.argv[1])
from internvl.model.internvl_chat import modeling_intern_vit as own  # noqa: E402
from internvl.model.internvl_chat.configuration_internvl_chat import InternVLChatConfig  # noqa: E402
from internvl.model.internvl_chat.modeling_internvl_chat import InternVLChatModel  # noqa: E402

own.FlashAttention.forward = lambda self, qkv, **_: (Packed.apply(qkv.flatten(0, 1)).view(*qkv.shape[:2], *qkv.shape[3:]), None)

IMAGE = 299
TEXT = dict(architectures=["Qwen2ForCausalLM"], model_type="qwen2", hidden_size=64, intermediate_size=160, num_hidden_layers=3,
            num_attention_heads=4, num_key_value_heads=2, vocab_size=300, max_position_embeddings=512)
SIZES = dict(hidden_size=48, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4, image_size=56, patch_size=14)
TOWERS = dict(plain=dict(qkv_bias=True, qk_normalization=False, norm_type="layer_norm"),
              normed=dict(qkv_bias=False, qk_normalization=True, norm_type="rms_norm"))


def build(vision, way, checkpointed):
    torch.manual_seed(0)
    config = InternVLChatConfig(vision_config=dict(vision), llm_config=dict(TEXT), downsample_ratio=0.5, force_image_size=56,
                                ps_version="v2", template="x")
    config.llm_config._attn_implementation = "sdpa"
    model = InternVLChatModel(config).to(torch.bfloat16)
    model.img_context_token_id = IMAGE
    model.language_model.config.use_cache = False
    model.vision_model.encoder.gradient_checkpointing = checkpointed
    for name, part in dict(tower=model.vision_model, projector=model.mlp1, decoder=model.language_model).items():
        part.requires_grad_(name in way.split())
    if way == "lora":
        model.wrap_llm_lora(r=4, lora_alpha=8)
    return model.train()


class Held:
    def __init__(self, tensor, size, place):
        self.tensor, self.size, self.place = tensor, size, place


def kept(model, run):
    """Bytes kept in tower and projector, in the tower's second layer, and elsewhere."""
    weights = {parameter.untyped_storage()._cdata for parameter in model.parameters()}
    places, hooks, held = [], [], []
    for name, module in model.named_modules():
        if name.startswith(("vision_model", "mlp1")):
            norm = isinstance(module, torch.nn.LayerNorm)
            hooks.append(module.register_forward_pre_hook(lambda *_, at=(name, norm): places.append(at)))
            hooks.append(module.register_forward_hook(lambda *_: (places.pop(), None)[1]))

    def pack(tensor):
        if tensor.untyped_storage()._cdata in weights:
            return tensor
        size = tensor.untyped_storage().nbytes()
        if places and places[-1][1] and tensor.shape[-1:] == (1,):
            size = tensor.numel() * 4
        entry = Held(tensor, size, [name for name, _ in places])
        held.append(weakref.ref(entry))
        return entry

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda entry: entry.tensor if isinstance(entry, Held) else entry):
        loss = run()
    for hook in hooks:
        hook.remove()
    gc.collect()
    seen, tower, layer, outside = set(), 0, 0, 0
    for entry in filter(None, (reference() for reference in held)):
        address = entry.tensor.untyped_storage()._cdata
        if address in seen:
            continue
        seen.add(address)
        if not entry.place:
            outside += entry.size
            continue
        tower += entry.size
        if any(name.endswith("encoder.layers.1") for name in entry.place):
            layer += entry.size
    assert loss.requires_grad
    return tower, layer, outside


def words_alone(model, given):
    """The loss of the decoder over words: what it keeps whatever comes before."""
    embedded = model.language_model.get_input_embeddings()(given["input_ids"]).clone()
    embedded.requires_grad_()
    logits = model.language_model(inputs_embeds=embedded, attention_mask=given["attention_mask"], return_dict=True).logits
    shifted = logits[..., :-1, :].contiguous().view(-1, logits.shape[-1])
    return torch.nn.functional.cross_entropy(shifted, given["labels"][..., 1:].contiguous().view(-1))


def record(kind, way, checkpointed, samples, tiles):
    vision = dict(SIZES, **TOWERS[kind])
    # The program prints what trains.
    with contextlib.redirect_stdout(sys.stderr):
        model = build(vision, way, checkpointed)
    ids = torch.randint(0, 280, (samples, 96))
    ids[:, 4 : 4 + 4 * tiles] = IMAGE
    given = dict(pixel_values=torch.randn(samples * tiles, 3, 56, 56, dtype=torch.bfloat16), input_ids=ids, labels=ids.clone(),
                 attention_mask=torch.ones_like(ids), image_flags=torch.ones(samples * tiles, 1, dtype=torch.long))
    tower, layer, outside = kept(model, lambda: model(**given, return_dict=True).loss)
    *_, alone = kept(model, lambda: words_alone(model, given))
    text = {key: value for key, value in TEXT.items() if key != "architectures"}
    config = dict(model_type="internvl_chat", llm_config=text, vision_config=dict(vision, model_type="intern_vit_6b"),
                  downsample_ratio=0.5, force_image_size=56)
    print(json.dumps(dict(config=config, kind=kind, way=way, checkpointed=checkpointed, samples=samples, tiles=tiles,
                          patches=16 * tiles, tower=tower, layer=layer, outside=outside - alone)), flush=True)


if __name__ == "__main__":
    for kind in TOWERS:
        for way in ["lora", "decoder", "projector", "projector decoder", "tower projector", "tower projector decoder"]:
            for checkpointed in (True, False) if "tower" in way else (True,):
                for samples, tiles in ((1, 2), (2, 3)):
                    record(kind, way, checkpointed, samples, tiles)
