"""Records what autograd keeps of small models of torchtune, with its own layers, adapters and losses, on a CPU.

    pip install torch==2.15.0 torchtune==0.6.1 torchao==0.10.0 datasets
    python torchtune_layers.py > torchtune.jsonl

The last release, 0.6.1, and the source after it (commit bd2a0fc7, with torchao 0.18.0 on PYTHONPATH) were run; the second has
`LinearCrossEntropyLoss`, another RMSNorm and qwen3, and its lines are added to the same file without the first.

Every tensor that autograd packs is taken once per storage, parameters and buffers left out, and counted to the layer whose
forward packs it first, to `shared` where several layers keep one storage, else to `outside`. The step is that of
`recipes/full_finetune_single_device.py:_loss_step`: labels are moved by one and padded, the output comes in chunks where the
loss wants it so, and activation checkpointing wraps each layer (`training.set_activation_checkpointing`).
"""

import collections
import itertools
import json

import torch
import torchao
import torchtune
from torchtune import modules, training
from torchtune.models import gemma, gemma2, llama3, mistral, phi3, qwen2
from torchtune.modules import loss as losses
from torchtune.modules.peft import get_adapter_params, set_trainable_params

RANK = 8
# The source after the last release.
LATER = hasattr(losses, "LinearCrossEntropyLoss")
if LATER:
    from torchtune.models.qwen3 import _component_builders as qwen3


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
        vocab_size=case["V"], num_layers=case["layers"], num_heads=case["a"], num_kv_heads=case["k"],
        embed_dim=case["h"], max_seq_len=2 * case["s"], intermediate_dim=case["f"],
    )
    train, arch = case["train"], case["arch"]
    if arch in ("qwen2", "qwen3"):
        sizes.update(tie_word_embeddings=case["tied"])
    if arch.startswith("gemma"):
        sizes.update(head_dim=case["d"])
    if arch == "gemma2":
        # Windows on every second layer, as long as half of the sequence.
        sizes.update(sliding_window_size=case["s"] // 2, query_pre_attn_scalar=case["d"])
    if arch == "qwen3":
        sizes.update(head_dim=case["d"], q_norm=True, k_norm=True, q_proj_bias=False, k_proj_bias=False, v_proj_bias=False)
    if train != "full":
        attention = ["q_proj", "v_proj"] if "qv" in train else ["q_proj", "k_proj", "v_proj", "output_proj"]
        everything = "all" in train
        sizes.update(lora_attn_modules=attention, apply_lora_to_mlp=everything, lora_rank=RANK, lora_alpha=16,
                     lora_dropout=case["lora_dropout"], quantize_base=train.startswith("q"))
        if not case["tied"]:
            sizes.update(apply_lora_to_output="out" in train)
    module = qwen3 if arch == "qwen3" else dict(llama3=llama3, qwen2=qwen2, mistral=mistral, phi3=phi3, gemma=gemma, gemma2=gemma2)[arch]
    with training.set_default_dtype(torch.float32 if case["dtype"] == "fp32" else torch.bfloat16):
        model = getattr(module, arch if train == "full" else "lora_" + arch)(**sizes)
    if train != "full":
        set_trainable_params(model, get_adapter_params(model))
    return model.train()


def record(case):
    """The bytes kept, by layer, shared and outside, and those of parameters, gradients and AdamW's moments."""
    torch.manual_seed(0)
    model = built(case)
    if case["gc"]:
        training.set_activation_checkpointing(model, auto_wrap_policy={modules.TransformerSelfAttentionLayer})
    loss_function = losses.CEWithChunkedOutputLoss() if case["chunks"] else torch.nn.CrossEntropyLoss(ignore_index=-100)
    if LATER and case["chunks"]:
        loss_function = losses.LinearCrossEntropyLoss()
        loss_function.set_model_output(model)
    elif case["chunks"]:
        model.set_num_output_chunks(loss_function.num_output_chunks)
    own = set()
    for tensor in [*model.parameters(), *model.buffers()]:
        parts = [getattr(tensor, name) for name in tensor.__tensor_flatten__()[0]] if hasattr(tensor, "quantized_data") else [tensor]
        own |= {part.untyped_storage().data_ptr() for part in parts}
    place, users, held = [], collections.defaultdict(set), {}
    for index, layer in enumerate(model.layers):
        layer.register_forward_pre_hook(lambda *_, index=index: place.append(f"layer{index}"))
        layer.register_forward_hook(lambda *_: place.pop() and None)

    def pack(tensor):
        if hasattr(tensor, "quantized_data"):
            # A quantized weight, which autograd takes as it is.
            return tensor
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own and storage.nbytes():
            held[storage.data_ptr()] = storage
            users[storage.data_ptr()].add(place[-1] if place else "outside")
        return tensor

    tokens = torch.randint(0, case["V"], (case["b"], case["s"]))
    ignored = torch.full((case["b"], 1), -100)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        logits = model(tokens)
        labels = torch.hstack((tokens[..., 1:], ignored))
        if not case["chunks"]:
            labels, logits = labels.reshape(-1), logits.reshape(-1, logits.size(-1))
        loss = loss_function(logits, labels)
        loss = loss * (labels != -100).sum()
    kept = collections.Counter()
    for address, places in users.items():
        inside = places - {"outside"}
        kept["shared" if len(inside) > 1 else next(iter(inside or places))] += held[address].nbytes()
    trained = [p for p in model.parameters() if p.requires_grad]
    frozen = [p for p in model.parameters() if not p.requires_grad]
    (loss / tokens.numel()).backward()
    optimizer = torch.optim.AdamW(trained)
    optimizer.step()
    moments = [state for p in trained for name, state in optimizer.state[p].items() if name != "step"]
    size = lambda p: sum(getattr(p, n).nbytes for n in p.__tensor_flatten__()[0]) if hasattr(p, "quantized_data") else p.nbytes
    return dict(kept=kept, trained_params=sum(p.numel() for p in trained),
                frozen_params=sum(p.numel() for p in frozen), trained_param_bytes=sum(map(size, trained)),
                frozen_param_bytes=sum(map(size, frozen)), grad_bytes=sum(p.grad.nbytes for p in trained),
                adamw_moment_bytes=sum(t.nbytes for t in moments))


def cases():
    """Shapes and ways to train, each choice met with several others."""
    ways = ["full", "lora-qv", "lora-qkvo", "lora-all", "lora-all-out", "qlora-qv", "qlora-all"]
    for arch, dtype, (b, s), train, gc, chunks in itertools.product(
            ["llama3", "qwen2", "mistral", "qwen3", "phi3", "gemma", "gemma2"], ["bf16", "fp32"], [(1, 64), (2, 96)], ways, [False, True], [True, False]):
        if (gc and not chunks) or (dtype == "fp32" and (gc or train.startswith("q"))):
            continue
        if (arch == "qwen3" and not LATER) or (LATER and not chunks):
            continue
        # NF4 was not run there: the layout is the same.
        if LATER and train.startswith("q"):
            continue
        # The MLP of others than Llama and Phi is not quantized unless it is adapted.
        if arch not in ("llama3", "phi3") and train == "qlora-qv":
            continue
        # Gemma's adapters: one group of queries, a tied output layer.
        if arch == "gemma" and (LATER or dtype == "fp32" or train.startswith("q")):
            continue
        tied = arch.startswith("qwen") and b == 2 or arch.startswith("gemma")
        if tied and "out" in train:
            continue
        sizes = dict(llama3=(128, 8, 2, 384), qwen2=(192, 6, 2, 320), mistral=(128, 4, 4, 256), qwen3=(128, 6, 2, 256), phi3=(192, 6, 3, 448), gemma=(128, 4, 1, 384), gemma2=(128, 4, 2, 384))[arch]
        if train.startswith("q"):
            # NF4 takes weights of a multiple of 256 blocks of 64 alone.
            sizes = dict(llama3=(256, 8, 2, 512), qwen2=(256, 4, 2, 768), mistral=(256, 4, 4, 512), qwen3=(256, 4, 2, 512), phi3=(256, 8, 2, 768), gemma2=(256, 4, 2, 768))[arch]
        h, a, k, f = sizes
        d = 64 if arch in ("qwen3", "gemma", "gemma2") else h // a
        for dropout in [0.0, 0.05] if "lora" in train and not gc and chunks else [0.0]:
            name = "-".join(map(str, ["later"] * LATER + [arch, dtype, f"b{b}", f"s{s}", train] + ["gc"] * gc + ["whole"] * (not chunks) + ["drop"] * (dropout > 0)))
            yield dict(id=name, later=LATER, arch=arch, dtype=dtype, b=b, s=s, h=h, a=a, k=k, d=d, f=f, V=1024, layers=3,
                       train=train, gc=gc, chunks=chunks, tied=tied, lora_dropout=dropout)


versions = dict(torch=torch.__version__, torchtune=torchtune.__version__ or "bd2a0fc7", torchao=torchao.__version__)
print(json.dumps(dict(what="Bytes that autograd keeps of a model of three layers of torchtune, recorded on a CPU by torchtune_layers.py",
                      versions=versions), separators=(",", ":")))
for case in cases():
    print(json.dumps({**case, **record(case)}, separators=(",", ":")))
