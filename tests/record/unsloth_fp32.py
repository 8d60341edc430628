"""Records what a Gemma 3 layer keeps where unsloth trains it on a device without bf16, on a CPU.

    UNSLOTH_ALLOW_CPU=1 python unsloth_fp32.py > ../data/activations/unsloth_fp32.jsonl

Packages and modules are those of unsloth_compiled.py, beside this file, with `UNSLOTH_FORCE_FLOAT32`, as `unsloth/models/loader.py` sets it
there: weights in fp16, adapters in fp32, no autocast, and no layer compiled as a whole (`unsloth/models/_block_compile.py`). Attention is
that of transformers' eager masks, which the patched module hands to SDPA; a CPU's SDPA keeps what the memory-efficient kernel of a GPU
keeps. Numbers that compiled norms take as tensors of no dimension, 8 bytes each, are on the CPU everywhere and are told apart.
"""

import collections
import contextlib
import json
import os
import sys

os.environ["UNSLOTH_FORCE_FLOAT32"] = "1"

import torch
import unsloth_compiled as base

RANK = base.RANK


def built(case):
    base.patch("Gemma3")
    base.compiler.unsloth_compile_transformers("gemma3")
    base.patch("Gemma3")
    from transformers.models.gemma3 import configuration_gemma3, modeling_gemma3
    config = configuration_gemma3.Gemma3TextConfig(
        hidden_size=case["h"], intermediate_size=case["f"], num_attention_heads=case["a"], num_key_value_heads=case["k"], head_dim=case["d"],
        vocab_size=case["V"], num_hidden_layers=case["layers"], max_position_embeddings=4096, attn_implementation="eager", pad_token_id=0,
        layer_types=["full_attention"] * case["layers"], sliding_window=64)
    model = modeling_gemma3.Gemma3TextModel(config).half()
    model = base.peft.get_peft_model(model, base.peft.LoraConfig(r=RANK, target_modules=case["targets"]))
    for name, weight in model.named_parameters():
        weight.requires_grad_("lora" in name)
        if "lora" in name:
            weight.data = weight.data.float()
    model.enable_input_require_grads()
    return model.train()


def record(case):
    torch._dynamo.reset()
    torch.manual_seed(0)
    with contextlib.redirect_stdout(sys.stderr):
        model = built(case)
    place, held, users, scalars = ["outside"], {}, collections.defaultdict(set), collections.Counter()
    weights = base.own(model)

    def pack(tensor):
        storage = tensor.untyped_storage()
        if tensor.dim() == 0:
            scalars[place[-1]] += 1
        elif storage.data_ptr() not in weights and storage.nbytes():
            held[storage.data_ptr()] = storage
            users[storage.data_ptr()].add(place[-1])
        return tensor

    for index, layer in enumerate(model.base_model.model.layers):
        layer.register_forward_pre_hook(lambda module, _, index=index: place.append(f"layer{index}"))
        layer.register_forward_hook(lambda *_: place.pop() and None)

    def run(tokens):
        ids = torch.randint(0, case["V"], (case["b"], tokens))
        return model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False)[0]

    for tokens in (case["s"] // 2 + 16, case["s"], case["s"] + 32):
        run(tokens).float().sum().backward()
    held.clear(), users.clear(), scalars.clear()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        run(case["s"])
    kept = collections.Counter()
    for address, places in users.items():
        kept["shared" if len(places) > 1 else next(iter(places))] += held[address].nbytes()
    return dict(kept=kept)


def cases():
    small = dict(arch="gemma3", b=1, s=96, h=256, a=4, k=2, d=64, f=384, V=512, layers=3, targets=base.ALL)
    yield small
    yield small | dict(b=2, s=160, h=192, a=6, d=32, f=320)
    yield small | dict(targets=["q_proj", "v_proj"])
    yield small | dict(targets=base.ALL[:4])


if __name__ == "__main__":
    print(json.dumps(dict(what="Bytes that a Gemma 3 layer keeps which unsloth runs with its stream in fp32, recorded on a CPU by unsloth_fp32.py",
                          versions=dict(torch=torch.__version__, transformers=base.transformers.__version__, peft=base.peft.__version__,
                                        unsloth_zoo=base.unsloth_zoo.__version__)), separators=(",", ":")))
    for case in cases():
        print(json.dumps(dict(id=f"gemma3-b{case['b']}-s{case['s']}-{len(case['targets'])}") | case | record(case), separators=(",", ":")), flush=True)
