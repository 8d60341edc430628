"""Records what autograd keeps of small models of litgpt, with its own layers, adapters and losses, on a CPU.

    pip install torch==2.15.0 litgpt==0.5.13 bitsandbytes==0.50.2
    python litgpt_layers.py > ../data/activations/litgpt.jsonl

The method is that of torchtune_layers.py. The steps are those of `litgpt/finetune/full.py` (logits of all tokens but the
last, a loss over 128 rows at a time) and `litgpt/finetune/lora.py` (the output layer over 128 tokens at a time as well), under Lightning Fabric's
`bf16-true`, `32-true` or `bf16-mixed` (fp32 weights under autocast, which its commands take unless told).
"""

import collections
import itertools
import json

import bitsandbytes as bnb
import litgpt
import torch
from lightning.fabric import Fabric
from litgpt.config import Config
from litgpt.lora import mark_only_lora_as_trainable
from litgpt.utils import chunked_cross_entropy
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing

RANK = 8
WINDOW = 100
PRECISIONS = dict(bf16="bf16-true", fp32="32-true", mixed="bf16-mixed")
Plain = torch.nn.Linear


def packed(model):
    """Replaces every linear layer as Lightning's plugin does, which has quantized layers on GPUs alone: weights go to bitsandbytes in fp16."""
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is Plain:
                layer = bnb.nn.Linear4bit(child.in_features, child.out_features, bias=child.bias is not None, quant_type="nf4", compress_statistics=False)
                data, state = bnb.functional.quantize_4bit(child.weight.data.half(), blocksize=64, quant_type="nf4", compress_statistics=False)
                layer.weight = bnb.nn.Params4bit(data, requires_grad=False, quant_state=state, quant_type="nf4", bnb_quantized=True, module=layer)
                layer.bias = child.bias
                layer.compute_dtype, layer.compute_type_is_set = torch.bfloat16, False
                setattr(parent, name, layer)
    return model


class Drop(torch.autograd.Function):
    """Dropout with a mask of a byte each, as the CUDA kernel keeps it (the CPU's has the tensor's type)."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(torch.ones(x.shape, dtype=torch.bool))
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


torch.nn.Dropout.forward = lambda self, x: Drop.apply(x) if self.p and self.training else x


def built(case):
    """The model of a case in its number format."""
    sizes = dict(
        n_layer=case["layers"], n_embd=case["h"], n_head=case["a"], n_query_groups=case["k"], head_size=case["d"],
        intermediate_size=case["f"], vocab_size=case["V"], padded_vocab_size=case["V"], block_size=2 * case["s"],
        bias=False, parallel_residual=False, shared_attention_norm=False, norm_class_name="RMSNorm",
        mlp_class_name="LLaMAMLP", rotary_percentage=1.0, attn_bias=case["arch"] == "qwen2", norm_qk=case["arch"] == "qwen3",
    )
    if case["arch"] == "gemma":
        # By the name's beginning norms multiply by their weight plus one (`config.py:norm_class`).
        sizes.update(name="Gemma-x", mlp_class_name="GemmaMLP", gelu_approximate="tanh", scale_embeddings=True)
    if case["arch"] == "window":
        sizes.update(sliding_window_size=WINDOW)
    torch.set_default_dtype(torch.bfloat16 if case["dtype"] == "bf16" else torch.float32)
    train = case["train"]
    if train == "full":
        model = litgpt.GPT(Config(**sizes))
    else:
        everything = "all" in train
        config = litgpt.lora.Config(
            **sizes, lora_r=RANK, lora_alpha=16, lora_dropout=case["lora_dropout"], lora_query=True, lora_key=everything or "qkv" in train,
            lora_value=True, lora_projection=everything, lora_mlp=everything, lora_head=train.endswith("head"))
        model = litgpt.lora.GPT(config)
        if train.startswith("q"):
            model = packed(model)
        mark_only_lora_as_trainable(model)
    torch.set_default_dtype(torch.float32)
    return model.train()


def record(case):
    """The bytes kept, by layer, shared and outside, and those of parameters, gradients and AdamW's moments."""
    torch.manual_seed(0)
    model = built(case)
    if case["gc"]:
        block = litgpt.model.Block if case["train"] == "full" else litgpt.lora.Block
        apply_activation_checkpointing(model, check_fn=lambda module: isinstance(module, block))
    # Fabric casts the input's floats to the weights' format and the output to fp32 (`HalfPrecision.convert_output`).
    plain = model
    fabric = Fabric(accelerator="cpu", devices=1, precision=PRECISIONS[case["dtype"]])
    model = fabric.setup_module(model, move_to_device=False)
    own = {tensor.untyped_storage().data_ptr() for tensor in [*model.parameters(), *model.buffers()]}
    place, users, held = [], collections.defaultdict(set), {}
    for index, layer in enumerate(plain.transformer.h):
        layer.register_forward_pre_hook(lambda *_, index=index: place.append(f"layer{index}"))
        layer.register_forward_hook(lambda *_: place.pop() and None)

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own and storage.nbytes():
            held[storage.data_ptr()] = storage
            users[storage.data_ptr()].add(place[-1] if place else "outside")
        return tensor

    tokens = torch.randint(0, case["V"], (case["b"], case["s"]))
    targets = tokens.clone()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        if case["train"] == "full":
            logits = model(tokens)
            loss = chunked_cross_entropy(logits[..., :-1, :], targets[..., 1:])
        else:
            logits = model(tokens, lm_head_chunk_size=128)
            logits[-1] = logits[-1][..., :-1, :]
            loss = chunked_cross_entropy(logits, targets[..., 1:])
    kept = collections.Counter()
    for address, places in users.items():
        inside = places - {"outside"}
        kept["shared" if len(inside) > 1 else next(iter(inside or places))] += held[address].nbytes()
    trained = [p for p in model.parameters() if p.requires_grad]
    frozen = [p for p in model.parameters() if not p.requires_grad]
    fabric.backward(loss)
    # Of packed weights the elements that they stand for, and their constants.
    count = lambda p: p.quant_state.shape.numel() if hasattr(p, "quant_state") else p.numel()
    size = lambda p: p.nbytes + (p.quant_state.absmax.nbytes if hasattr(p, "quant_state") else 0)
    optimizer = torch.optim.AdamW(trained)
    optimizer.step()
    moments = [state for p in trained for name, state in optimizer.state[p].items() if name != "step"]
    return dict(kept=kept, trained_params=sum(p.numel() for p in trained),
                frozen_params=sum(map(count, frozen)), trained_param_bytes=sum(p.nbytes for p in trained),
                frozen_param_bytes=sum(map(size, frozen)), grad_bytes=sum(p.grad.nbytes for p in trained),
                adamw_moment_bytes=sum(t.nbytes for t in moments),
                tensors=[[where, held[a].nbytes()] for a, p in users.items() for where in p if where in ("outside", "layer1")] if case.get("list") else None)


def cases():
    """Shapes and ways to train, each choice met with several others."""
    ways = ["full", "lora-qv", "lora-qkv", "lora-all", "lora-all-head", "qlora-qv", "qlora-all"]
    for arch, dtype, (b, s), train, gc in itertools.product(
            ["llama", "mha", "qwen2", "qwen3", "gemma", "window"], ["bf16", "fp32", "mixed"], [(1, 64), (2, 160)], ways, [False, True]):
        if dtype == "fp32" and (gc or arch in ("gemma", "window")) or dtype != "bf16" and train.startswith("q"):
            continue
        h, a, k, d, f = dict(llama=(128, 8, 2, 16, 384), mha=(128, 4, 4, 32, 256), qwen2=(192, 6, 2, 32, 320), qwen3=(128, 4, 2, 64, 256),
                             gemma=(128, 4, 1, 64, 384), window=(128, 4, 2, 32, 256))[arch]
        for dropout in [0.0, 0.05] if "lora" in train and not gc else [0.0]:
            name = "-".join(map(str, [arch, dtype, f"b{b}", f"s{s}", train] + ["gc"] * gc + ["drop"] * (dropout > 0)))
            yield dict(id=name, arch=arch, dtype=dtype, b=b, s=s, h=h, a=a, k=k, d=d, f=f, V=1024, layers=3,
                       train=train, gc=gc, lora_dropout=dropout)


if __name__ == "__main__":
    import importlib.metadata

    own = {name: importlib.metadata.version(name) for name in ("litgpt", "bitsandbytes")}
    versions = dict(torch=torch.__version__, **own)
    print(json.dumps(dict(what="Bytes that autograd keeps of a model of three layers of litgpt, recorded on a CPU by litgpt_layers.py",
                          versions=versions), separators=(",", ":")))
    for case in cases():
        recorded = record(case)
        del recorded["tensors"]
        print(json.dumps({**case, **recorded}, separators=(",", ":")))
