"""Records what autograd keeps of allenai/OLMo's own model and loss, block by block, without a GPU.

    pip install torch==2.8.0 ai2-olmo==0.6.0 omegaconf rich cached_path torchmetrics wandb "numpy<2" transformers datasets
    python olmo_layers.py > ../data/activations/olmo.jsonl

Tensors are PyTorch's fake ones on a GPU, so that autocast casts what it casts on a GPU (its list of operations in fp32 is another
on a CPU), and masks and statistics have the GPU kernels' types. Weights are in bf16, as FSDP gathers them under OLMo's
`fsdp.precision` of `mixed` and `pure`. Model, blocks and both losses are the package's own; flash-attn's kernels, which need a
GPU, are stood in for by functions that keep what its sources say theirs keep (flash-attn 2.7.4: FlashAttnFunc,
ops/triton/cross_entropy.py:CrossEntropyLoss). Every storage that autograd packs is taken once, parameters left out, and counted
to the block whose forward packs it first; cosines and sines, which the model holds, stand under `rotation`.
"""

import collections
import json
import platform
import sys
import types

import torch
import torch.utils.checkpoint


def stand_in(name, **held):
    module = types.ModuleType(name)
    module.__dict__.update(held)
    sys.modules[name] = module
    return module


class Flash(torch.autograd.Function):
    """Keeps queries, keys, values, output, log-sum-exp and the state of random numbers (flash_attn_interface.py)."""

    @staticmethod
    def forward(ctx, q, k, v):
        q, k, v = (x if x.stride(-1) == 1 else x.contiguous() for x in (q, k, v))
        batch, tokens, heads, _ = q.shape
        out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
        sums = torch.empty(batch, heads, tokens, dtype=torch.float32, device=q.device)
        ctx.save_for_backward(q, k, v, out, sums, torch.empty(2, dtype=torch.int64, device=q.device))
        return out

    @staticmethod
    def backward(ctx, gradient):
        return tuple(torch.empty_like(x) for x in ctx.saved_tensors[:3])


class FusedLoss(torch.autograd.Function):
    """Keeps the logits as they came, log-sum-exp and labels (ops/triton/cross_entropy.py)."""

    @staticmethod
    def forward(ctx, logits, labels):
        rows = logits.shape[0]
        sums, losses, extra = (torch.empty(rows, dtype=torch.float32, device=logits.device) for _ in range(3))
        ctx.save_for_backward(logits, sums, labels)
        ctx.mark_non_differentiable(extra)
        return losses, extra

    @staticmethod
    def backward(ctx, gradient, _):
        return torch.empty_like(ctx.saved_tensors[0]), None


def fused(logits, labels, **_):
    return FusedLoss.apply(logits, labels)


def flash(q, k, v, **_):
    return Flash.apply(q, k, v)


# The compiler cannot look into flash-attn's extension before 2.7 (OLMo's own jobs install 2.5.9): the graph breaks there.
flash = torch.compiler.disable(flash)
package = stand_in("flash_attn", __version__="2.7.4", flash_attn_func=flash, flash_attn_varlen_func=None)
package.__path__ = []
for name in ["ops", "ops.triton"]:
    stand_in(f"flash_attn.{name}").__path__ = []
stand_in("flash_attn.ops.triton.cross_entropy", cross_entropy_loss=fused)
for name, held in [("wandb", {}), ("datasets", dict(Dataset=dict, DatasetDict=dict)), ("tokenizers", dict(Tokenizer=object)),
                   ("olmo.eval", dict(Evaluator=object)), ("olmo.data", dict(IterableDataset=object)),
                   ("olmo.checkpoint", dict(Checkpointer=object, FullCheckpointer=object, build_sharded_checkpointer=None)),
                   ("olmo_core", {})]:
    stand_in(name, **held)


def in_fp32(function):
    """An operation that autocast runs in fp32 on a GPU (ATen/autocast_mode.h:AT_FORALL_FP32), and on a CPU as it comes."""
    def call(tensor, *rest, **options):
        if torch.is_autocast_enabled("cpu"):
            tensor = tensor.float()
            rest = [x.float() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in rest]
            options = {key: x.float() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for key, x in options.items()}
        return function(tensor, *rest, **options)
    return call


torch.nn.functional.layer_norm = in_fp32(torch.nn.functional.layer_norm)
torch.nn.functional.cross_entropy = in_fp32(torch.nn.functional.cross_entropy)
torch.Tensor.logsumexp = in_fp32(torch.Tensor.logsumexp)
torch.Tensor.sum = in_fp32(torch.Tensor.sum)

CHECKPOINT = torch.utils.checkpoint.checkpoint

import olmo.model  # noqa: E402
import olmo.train  # noqa: E402
from olmo.config import ActivationCheckpointingStrategy, ModelConfig  # noqa: E402

BASE = dict(d_model=64, n_heads=4, n_layers=4, mlp_hidden_size=384, weight_tying=False, rope=True, flash_attention=True, attention_dropout=0.0,
            residual_dropout=0.0, embedding_dropout=0.0, include_bias=False, bias_for_layer_norm=False, layer_norm_type="rms",
            attention_layer_norm=True, norm_after=True, activation_type="swiglu", vocab_size=500, embedding_size=512)
BARE = dict(norm_after=False, attention_layer_norm=False, layer_norm_type="default", layer_norm_with_affine=False,
            attention_layer_norm_with_affine=False)
CASES = {
    "olmo2": {},
    "olmo2 before": dict(norm_after=False),
    "olmo2 without norms of heads": dict(attention_layer_norm=False),
    "olmo2 before without norms of heads": dict(attention_layer_norm=False, norm_after=False),
    "olmo2 sdpa": dict(flash_attention=False),
    "olmo2 groups": dict(n_kv_heads=2),
    "olmo2 groups sdpa": dict(n_kv_heads=2, flash_attention=False),
    "olmo2 one group": dict(n_kv_heads=1),
    "olmo2 gelu": dict(activation_type="gelu"),
    "olmo2 relu": dict(activation_type="relu"),
    "olmo2 without weights": dict(layer_norm_with_affine=False, attention_layer_norm_with_affine=False),
    "olmo2 tied": dict(weight_tying=True),
    "olmo2 clip": dict(clip_qkv=8.0),
    "olmo2 biases": dict(include_bias=True),
    "olmo1": BARE,
    "olmo1 affine": dict(BARE, layer_norm_with_affine=True),
    "olmo1 affine biases": dict(BARE, layer_norm_with_affine=True, bias_for_layer_norm=True),
    "olmo1 clip": dict(BARE, clip_qkv=8.0),
    "olmo1 heads": dict(BARE, attention_layer_norm=True),
    "olmo1 heads affine": dict(BARE, attention_layer_norm=True, layer_norm_with_affine=True, attention_layer_norm_with_affine=True),
    "olmo1 sdpa": dict(BARE, flash_attention=False),
    "olmo1 gelu": dict(BARE, activation_type="gelu"),
    "olmo1 low precision": dict(BARE, layer_norm_type="low_precision", layer_norm_with_affine=True),
    "olmo1 behind": dict(BARE, norm_after=True),
}


def noting(pack):
    """torch's checkpoint, which holds the arguments of what it runs by itself: they are kept as well."""
    def call(function, *arguments, **options):
        for argument in arguments:
            if isinstance(argument, torch.Tensor):
                pack(argument)
        return CHECKPOINT(function, *arguments, **options)
    return call


def record(case):
    config = ModelConfig(**{**BASE, **case["config"]}, max_sequence_length=case["s"], init_device="cpu")
    owner, held, notes, place = {}, {}, {}, ["ends"]
    torch.utils.checkpoint.checkpoint = noting(lambda tensor: pack(tensor))
    model = olmo.model.OLMo(config, init_params=False).to(torch.bfloat16).train()
    if case["compile"]:
        # As `scripts/train.py` does it: one block at a time, before blocks are checkpointed.
        for block in model.transformer.blocks:
            block.compile(fullgraph=False)
    strategy = case["checkpoint"] and ActivationCheckpointingStrategy(case["checkpoint"])
    model.set_activation_checkpointing(strategy)
    own = {p.untyped_storage().data_ptr() for p in [*model.parameters(), *model.buffers()]}
    tables = {t.untyped_storage().data_ptr() for t in model._OLMo__cache.values()}
    for index, block in enumerate(model.transformer.blocks):
        block.register_forward_pre_hook(lambda *_, index=index: place.append(f"layer{index}"))
        block.register_forward_hook(lambda *_: place.pop() and None)

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own and storage.nbytes():
            held[storage.data_ptr()] = storage
            where = "rotation" if storage.data_ptr() in tables else place[-1]
            owner.setdefault(storage.data_ptr(), where)
            notes.setdefault(storage.data_ptr(), [list(tensor.shape), str(tensor.dtype)[6:], storage.nbytes()])
        return tensor

    trainer = types.SimpleNamespace(dist_model=model, loss_fn=olmo.train.fused_loss_fn if case["fused"] else olmo.train.cross_entropy_loss,
                                    cfg=types.SimpleNamespace(softmax_auxiliary_loss=case["z"]))
    for name in ["get_labels", "model_forward", "train_micro_batch"]:
        setattr(trainer, name, types.MethodType(getattr(olmo.train.Trainer, name), trainer))
    tokens = torch.zeros(case["b"], case["s"], dtype=torch.int64)
    if case["compile"]:
        with torch.autocast("cpu", enabled=True, dtype=torch.bfloat16):
            trainer.train_micro_batch(dict(input_ids=tokens), case["b"] * case["s"])[0].backward()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        with torch.autocast("cpu", enabled=True, dtype=torch.bfloat16):
            loss = trainer.train_micro_batch(dict(input_ids=tokens), case["b"] * case["s"])[0]
    assert loss.requires_grad
    kept, tensors = collections.Counter(), collections.defaultdict(list)
    for storage, where in owner.items():
        kept[where] += held[storage].nbytes()
        tensors[where].append(notes[storage])
    parameters = sum(p.numel() for p in model.parameters())
    return dict(kept=kept, parameters=parameters, tensors={where: tensors[where] for where in ["ends", "layer0", "layer1"]})


def cases():
    for name, config in CASES.items():
        for batch in [1, 2]:
            yield dict(id=f"{name}, b{batch}", config=config, b=batch, s=48, checkpoint=None, compile=False, fused=False, z=False)
    for fused_loss in [False, True]:
        for z in [False, True]:
            for batch in [1, 2]:
                yield dict(id=f"loss fused={fused_loss} z={z}, b{batch}", config={}, b=batch, s=48, checkpoint=None, compile=False, fused=fused_loss, z=z)
    for strategy in ActivationCheckpointingStrategy:
        for name in ["olmo2", "olmo1"]:
            yield dict(id=f"{name} {strategy}", config=CASES[name], b=2, s=48, checkpoint=str(strategy), compile=False, fused=True, z=True)


def compiled():
    for name in ["olmo2", "olmo1"]:
        for batch in [1, 2]:
            yield dict(id=f"{name} compiled, b{batch}", config=CASES[name], b=batch, s=48, checkpoint=None, compile=True, fused=True, z=True)


def main():
    print(json.dumps({"torch": torch.__version__, "ai2-olmo": "0.6.0", "flash-attn": "2.7.4 (stood in for)", "python": platform.python_version()}))
    for case in [*cases(), *compiled()]:
        print(json.dumps({**case, "config": {**BASE, **case["config"]}, **record(case)}))


if __name__ == "__main__":
    main()
