"""Records what LLaVA's projector and decoder keep for backward, and how much its frozen tower has alive.

A small Llama of transformers with random weights on the CPU, in bf16; its `inputs_embeds` are put together as
llava/model/llava_arch.py does (haotian-liu/LLaVA at c121f0432da2): word embeddings of the text around what a projector makes of
the second last layer of a frozen CLIP tower, run under no_grad. Written to standard output, tab separated:

  case            what trains: all, the projector alone, or adapters of PEFT and the projector; layers of the projector;
                  checkpointed layers; samples
  projector       bytes kept within the projector, parameters aside
  decoder         bytes kept outside of it
  parameters      those that train

and for the towers of its scripts and of TinyLLaVA Factory's, at their own width and in bf16:

  tower           its name
  parameters      of CLIPVisionModel or SiglipVisionModel
  layer           of one layer
  alive           most bytes alive in the forward pass beside weights, less the outputs of all layers, for each token and
                  element of the width, with attention in plain operations

Run with transformers 5.23.0, peft 0.21.2 and torch 2.15.0: python tests/record/llava.py > tests/data/activations/llava.tsv
"""

import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from transformers import (
    CLIPVisionConfig, CLIPVisionModel, LlamaConfig, LlamaForCausalLM, SiglipVisionConfig, SiglipVisionModel)

from vision_towers import Alive

WIDTH, TOWER, TOKENS, PATCHES, VOCABULARY = 64, 48, 40, 16, 320
DTYPE = torch.bfloat16
# On a GPU dropout is one kernel, whose mask has a byte for each element; a CPU's is of the input's own type.
nn.Dropout.forward = lambda self, given: torch.native_dropout(given, self.p, self.training)[0]


def decoder():
    config = LlamaConfig(
        hidden_size=WIDTH, intermediate_size=160, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=4,
        vocab_size=VOCABULARY, max_position_embeddings=128, tie_word_embeddings=False)
    torch.manual_seed(0)
    return LlamaForCausalLM._from_config(config, dtype=DTYPE, attn_implementation="sdpa").train()


def projector(layers):
    modules = [nn.Linear(TOWER, WIDTH)]
    for _ in range(1, layers):
        modules += [nn.GELU(), nn.Linear(WIDTH, WIDTH)]
    return (nn.Sequential(*modules) if layers > 1 else modules[0]).to(DTYPE)


def tower():
    config = CLIPVisionConfig(
        hidden_size=TOWER, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4, image_size=56, patch_size=14)
    return CLIPVisionModel._from_config(config, dtype=DTYPE).requires_grad_(False).train()


def embeds(model, project, see, ids, images):
    with torch.no_grad():
        features = see(images, output_hidden_states=True).hidden_states[-2][:, 1:]
    features = project(features)
    rows = []
    for row, image in zip(ids, features):
        words = model.get_input_embeddings()(row)
        before, after = torch.split(words, [5, len(row) - 5], dim=0)
        rows.append(torch.cat([before, image, after])[:TOKENS])
    return torch.stack(rows, dim=0)


def record(way, layers, checkpoints, samples):
    model, project, see = decoder(), projector(layers), tower()
    if way == "lora":
        names = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
        model = get_peft_model(model, LoraConfig(
            r=8, lora_alpha=16, lora_dropout=0.05, target_modules=names, task_type="CAUSAL_LM")).to(DTYPE)
    if way == "projector":
        model.requires_grad_(False)
    model.config.use_cache = False
    if checkpoints:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=dict(use_reentrant=True))
        model.enable_input_require_grads()
    ids = torch.randint(0, VOCABULARY, (samples, TOKENS - PATCHES))
    labels = torch.randint(0, VOCABULARY, (samples, TOKENS))
    images = torch.randn(samples, 3, 56, 56, dtype=DTYPE)
    modules = (model, project, see)
    known = {p.untyped_storage().data_ptr() for module in modules for p in module.parameters()}
    inside, seen = [False], {}
    project.register_forward_pre_hook(lambda *_: inside.__setitem__(0, True))
    project.register_forward_hook(lambda *_: inside.__setitem__(0, False))

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known and storage.data_ptr() not in seen:
            seen[storage.data_ptr()] = (inside[0], storage.nbytes(), tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        given = embeds(model, project, see, ids, images)
        count = torch.tensor(samples * TOKENS)
        model(inputs_embeds=given, attention_mask=None, labels=labels, num_items_in_batch=count)
    kept = [sum(size for side, size, _ in seen.values() if side == where) for where in (True, False)]
    trains = sum(p.numel() for module in modules for p in module.parameters() if p.requires_grad)
    print(f"{way}\t{layers}\t{int(checkpoints)}\t{samples}\t{kept[0]}\t{kept[1]}\t{trains}", flush=True)


CLIP = dict(hidden_size=1024, intermediate_size=4096, num_hidden_layers=24, num_attention_heads=16, patch_size=14)
SIGLIP = dict(hidden_size=1152, intermediate_size=4304, num_hidden_layers=27, num_attention_heads=16, patch_size=14)


def released(name, kind, config, first):
    model = kind._from_config(config, dtype=DTYPE, attn_implementation="eager").requires_grad_(False).train()
    total = sum(p.numel() for p in model.parameters())
    layer = sum(p.numel() for part, p in model.named_parameters() if ".layers.0." in part)
    images = torch.randn(1, 3, config.image_size, config.image_size, dtype=DTYPE)
    held = [t.untyped_storage()._cdata for t in [*model.parameters(), *model.buffers(), images]]
    alive = Alive(held)
    with torch.no_grad(), alive:
        model(images, output_hidden_states=True)
    tokens = (config.image_size // 14) ** 2 + first
    outputs = (config.num_hidden_layers + 1) * 2
    print(f"{name}\t{total}\t{layer}\t{alive.most / tokens / config.hidden_size - outputs:.1f}", flush=True)


print("case\tlayers\tcheckpointed\tsamples\tprojector\tdecoder\tparameters")
for way in ("all", "projector", "lora"):
    for layers in (1, 2):
        for checkpoints in (False, True):
            for samples in (1, 2):
                record(way, layers, checkpoints, samples)
print("tower\tparameters\tlayer\talive")
released("clip-vit-large-patch14", CLIPVisionModel, CLIPVisionConfig(image_size=224, **CLIP), 1)
released("clip-vit-large-patch14-336", CLIPVisionModel, CLIPVisionConfig(image_size=336, **CLIP), 1)
released("siglip-so400m-patch14-384", SiglipVisionModel, SiglipVisionConfig(image_size=384, **SIGLIP), 0)
