"""Records what autograd keeps of small encoder-decoders of transformers, with PEFT's adapters, on a CPU.

    pip install torch transformers peft
    python encoder_decoder_layers.py > encoder_decoder_layers.jsonl

Every tensor that autograd packs is taken once per storage, parameters and buffers left out, and counted to the layer
whose forward packs it first (`encoder0`, `decoder0` and so on), to `encoder` or `decoder` where several layers of one stack keep
one storage, to `both` where layers of both do, else to `outside`. What a GPU does and a CPU does not is put in its place: the
memory-efficient kernel, which SDPA takes for a mask (`aten/src/ATen/native/transformers/cuda/sdp_utils.cpp`), keeps queries, keys,
values, the mask in their type, its output and log-sum-exps in fp32; dropout keeps a byte for each element; autocast takes powers
and softmaxes in fp32 (`aten/src/ATen/autocast_mode.h:AT_FORALL_FP32`).
"""

import collections
import contextlib
import itertools
import json
import sys

import peft
import torch
import transformers
from transformers import AutoConfig, AutoModelForSeq2SeqLM

LORA_RANK = 8


class Drop(torch.autograd.Function):
    """Dropout with a mask of a byte each, as the CUDA kernel keeps it (the CPU's has the tensor's type)."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(torch.ones(x.shape, dtype=torch.bool))
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Efficient(torch.autograd.Function):
    """`_scaled_dot_product_efficient_attention`, whose output lies token by token."""

    @staticmethod
    def forward(ctx, query, key, value, mask):
        b, a, s, _ = query.shape
        out = torch.empty(b, s, a, value.shape[-1], dtype=query.dtype).transpose(1, 2)
        sums = torch.empty(b, a, s, dtype=torch.float32)
        ctx.masked = mask is not None
        ctx.save_for_backward(query, key, value, out, sums, *([mask] if ctx.masked else []))
        return out

    @staticmethod
    def backward(ctx, gradient):
        query, key, value, *rest = ctx.saved_tensors
        mask = torch.zeros_like(rest[-1]) if ctx.masked and ctx.needs_input_grad[3] else None
        return torch.zeros_like(query), torch.zeros_like(key), torch.zeros_like(value), mask


def attend(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """`scaled_dot_product_attention` on a GPU: autocast casts the mask too."""
    if attn_mask is not None and attn_mask.dtype not in (torch.bool, query.dtype):
        attn_mask = attn_mask.to(query.dtype)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = torch.zeros(attn_mask.shape, dtype=query.dtype)
    return Efficient.apply(query, key, value, attn_mask)


own_pow = torch.pow


def power(x, exponent):
    """Autocast on a GPU takes powers in fp32."""
    return own_pow(x.float() if torch.is_autocast_enabled("cpu") else x, exponent)


own_softmax = torch.nn.functional.softmax


def softmax(x, dim):
    """Autocast on a GPU takes it in fp32."""
    return own_softmax(x.float() if torch.is_autocast_enabled("cpu") else x, dim)


torch.nn.functional.softmax = softmax
torch.nn.functional.scaled_dot_product_attention = attend
torch.pow = power
torch.nn.functional.dropout = lambda x, p=0.5, training=True, inplace=False: Drop.apply(x) if p and training else x
torch.nn.Dropout.forward = lambda self, x: Drop.apply(x) if self.p and self.training else x


def config(case):
    """The configuration of a case's model."""
    sizes = dict(
        num_layers=case["encoder_layers"], num_decoder_layers=case["layers"], d_model=case["h"], d_ff=case["f"], num_heads=case["a"],
        d_kv=case["d"], vocab_size=case["V"], dropout_rate=case["dropout"], feed_forward_proj=case["mlp"], use_cache=case["use_cache"],
        decoder_start_token_id=0, tie_word_embeddings=case["mlp"] == "relu",
    )
    return AutoConfig.for_model(case["arch"], attn_implementation=case["attn"], **sizes)


def adapted(model, case):
    """The model with its adapters."""
    if case["train"].startswith("lora"):
        targets = "all-linear" if case["train"] == "lora-all" else ["q", "v"]
        settings = peft.LoraConfig(r=LORA_RANK, lora_dropout=case["lora_dropout"], target_modules=targets, task_type="SEQ_2_SEQ_LM")
        model = peft.get_peft_model(model, settings, autocast_adapter_dtype=case["adapter_fp32"])
        if case["input_require_grads"]:
            model.enable_input_require_grads()
    return model


def record(case):
    """The bytes kept, by layer, shared and outside."""
    torch.manual_seed(0)
    dtype = torch.float32 if case["dtype"] == "fp32" else torch.bfloat16
    model = adapted(AutoModelForSeq2SeqLM.from_config(config(case)).to(dtype), case).train()
    if case["gc"]:
        model.gradient_checkpointing_enable(dict(use_reentrant=case["gc"] == "reentrant"))
    own = {p.untyped_storage().data_ptr() for p in [*model.parameters(), *model.buffers()]}
    place, users, held = [], collections.defaultdict(set), {}
    for name, module in model.named_modules():
        if name.endswith(".block"):
            stack = "encoder" if ".encoder." in f".{name}" else "decoder"
            for index, layer in enumerate(module):
                layer.register_forward_pre_hook(lambda *_, at=f"{stack}{index}": place.append(at))
                layer.register_forward_hook(lambda *_: place.pop() and None)

    detail = collections.defaultdict(list)

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own and storage.nbytes():
            # The storage is held, so that its address is not given to another.
            if storage.data_ptr() not in held:
                detail[place[-1] if place else "outside"].append((tuple(tensor.shape), str(tensor.dtype)[6:], storage.nbytes()))
            held[storage.data_ptr()] = storage
            users[storage.data_ptr()].add(place[-1] if place else "outside")
        return tensor

    source = torch.randint(1, case["V"], (case["b"], case["source"]))
    inputs = dict(input_ids=source, attention_mask=torch.ones_like(source), labels=torch.randint(1, case["V"], (case["b"], case["s"])))
    if case["padded"]:
        inputs["attention_mask"][:, -3:] = 0
    cast = torch.autocast("cpu", torch.bfloat16) if case["autocast"] else contextlib.nullcontext()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor), cast:
        loss = model(**inputs).loss
    kept = collections.Counter()
    for address, places in users.items():
        inside = {place for place in places if place != "outside"}
        stacks = {place.rstrip("0123456789") for place in inside}
        where = "outside" if not inside else next(iter(inside)) if len(inside) == 1 else next(iter(stacks)) if len(stacks) == 1 else "both"
        kept[where] += held[address].nbytes()
    if "-v" in sys.argv:
        for where, tensors in sorted(detail.items()):
            print(case["id"], where, *tensors, sep="\n    ", file=sys.stderr)
    trained = [p for p in model.parameters() if p.requires_grad]
    frozen = [p for p in model.parameters() if not p.requires_grad]
    loss.backward()
    return dict(kept=dict(sorted(kept.items())), trained_params=sum(p.numel() for p in trained), frozen_params=sum(p.numel() for p in frozen),
                grad_bytes=sum(p.grad.nbytes for p in trained))


def cases():
    """Every case: sizes differ from each other, so that no two formulas agree by chance."""
    base = dict(arch="t5", encoder_layers=2, layers=3, b=2, s=40, source=64, h=96, a=4, d=40, f=352, V=1000, mlp="gated-gelu", dropout=0.1,
                dtype="bf16", attn="sdpa", train="full", gc=None, input_require_grads=False, lora_dropout=0.0, adapter_fp32=True,
                autocast=False, padded=True, use_cache=False)
    kinds = [dict(dtype="bf16"), dict(dtype="fp32"), dict(dtype="fp32", autocast=True)]
    for kind, attn, mlp, padded in itertools.product(kinds, ("sdpa", "eager"), ("gated-gelu", "relu"), (True, False)):
        yield base | kind | dict(attn=attn, mlp=mlp, padded=padded)
    for kind, attn, train, drop in itertools.product(kinds, ("sdpa", "eager"), ("lora-qv", "lora-all"), (0.0, 0.05)):
        yield base | kind | dict(attn=attn, train=train, lora_dropout=drop)
    for kind, train, gc in itertools.product(kinds, ("full", "lora-qv"), ("reentrant", "no_reentrant")):
        yield base | kind | dict(train=train, gc=gc, input_require_grads=train != "full")
    for attn, kind in itertools.product(("sdpa", "eager"), kinds):
        yield base | kind | dict(attn=attn, dropout=0.0)
        yield base | kind | dict(attn=attn, b=1, padded=False)
    for attn, mlp, train in itertools.product(("sdpa", "eager"), ("gated-gelu", "relu"), ("full", "lora-qv")):
        yield base | dict(autocast=True, attn=attn, mlp=mlp, train=train)
    yield base | dict(mlp="gated-silu")
    yield base | dict(use_cache=True)
    yield base | dict(train="lora-qv", adapter_fp32=False)
    yield base | dict(arch="mt5")


seen = set()
print(json.dumps(dict(what="Bytes that autograd keeps of encoder-decoders, recorded on a CPU by encoder_decoder_layers.py", versions=dict(
    torch=torch.__version__, transformers=transformers.__version__, peft=peft.__version__,
    python=sys.version.split()[0]))))
only = next((word[5:] for word in sys.argv if word.startswith("only=")), "")
for case in cases():
    words = [case["arch"], case["dtype"], f"b{case['b']}", case["attn"], case["mlp"], case["train"]]
    words += [word for key, word in (("autocast", "autocast"), ("padded", "padded"), ("use_cache", "cache"), ("gc", case["gc"]),
                                     ("lora_dropout", "loradrop")) if case[key]]
    words += [word for here, word in ((case["dropout"] == 0, "nodrop"), (not case["adapter_fp32"], "adapter16")) if here]
    case = dict(id="-".join(words)) | case
    if case["id"] in seen or only not in case["id"]:
        continue
    seen.add(case["id"])
    print(json.dumps(case | record(case)), flush=True)
