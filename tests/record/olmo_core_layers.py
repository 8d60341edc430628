"""Records what autograd keeps of OLMo-core's own model and loss, block by block, without a GPU.

    pip install torch
    pip install --no-deps ai2-olmo-core==2.6.0 cached_path rich omegaconf antlr4-python3-runtime
    python olmo_core_layers.py > ../data/activations/olmo_core.jsonl

Model, blocks, activation checkpointing and loss are the package's own. Weights are in bf16, as FSDP2 gathers them for `param_dtype`
bfloat16, and so is what goes from block to block. flash-attn's kernels, which need a GPU, are operators of torch's library as in flash-attn
2.7.4 (flash_attn_interface.py: `_flash_attn_forward`, `FlashAttnFunc`) that compute nothing. PyTorch's own attention is replaced by
the same operator in the cases called "torch": its kernel on a GPU keeps the same tensors, but the state of random numbers. Every storage that autograd packs is taken
once, parameters left out, and counted to the block whose forward packs it first; cosines and sines, which the model holds, stand
under `rotation`. A compiled model is recorded in the second pass. The first line has versions, the last lines the package's
own factories and their parameters.
"""

import collections
import importlib.abc
import importlib.machinery
import inspect
import json
import platform
import sys
import types
from unittest import mock

import torch


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Packages of clouds and of data, which no model needs."""

    NAMES = {"requests", "cached_path", "google", "boto3", "botocore", "beaker", "gantry", "datasets", "importlib_resources", "bettermap", "click"}

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in self.NAMES:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__getattr__ = lambda name: mock.MagicMock() if not name.startswith("__") else (_ for _ in ()).throw(AttributeError(name))
        return module

    def exec_module(self, module):
        module.__path__ = []


sys.meta_path.insert(0, Absent())


@torch.library.custom_op("flash_attn::_flash_attn_forward", mutates_args=())
def forward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return outputs(q)


@forward.register_fake
def outputs(q):
    batch, tokens, heads, _ = q.shape
    return (torch.empty_like(q), q.new_empty((batch, heads, tokens), dtype=torch.float32), q.new_empty((2,), dtype=torch.int64))


forward.register_fake(lambda q, k, v: outputs(q))


@torch.library.custom_op("flash_attn::_flash_attn_backward", mutates_args=())
def backward(dout: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor,
             rng: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)


@backward.register_fake
def _(dout, q, k, v, out, lse, rng):
    return torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)


class FlashAttnFunc(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, has_state):
        q, k, v = (x if x.stride(-1) == 1 else x.contiguous() for x in (q, k, v))
        out, lse, rng = forward(q, k, v)
        ctx.save_for_backward(*((q, k, v, out, lse, rng) if has_state else (q, k, v, out, lse)))
        return out

    @staticmethod
    def backward(ctx, dout):
        saved = ctx.saved_tensors
        return (*backward(dout, *saved[:5], saved[5] if len(saved) == 6 else dout.new_empty((2,), dtype=torch.int64)), None)


def flash(q, k, v, **_):
    return FlashAttnFunc.apply(q, k, v, True)


def sdpa(q, k, v, **_):
    """`torch.nn.functional.scaled_dot_product_attention`, whose heads stand in front of tokens."""
    return FlashAttnFunc.apply(*(x.transpose(1, 2) for x in (q, k, v)), False).transpose(1, 2)


package = types.ModuleType("flash_attn")
package.__dict__.update(__version__="2.7.4", flash_attn_func=flash, flash_attn_varlen_func=None, __path__=[])
sys.modules["flash_attn"] = package
torch.nn.functional.scaled_dot_product_attention = sdpa
CHECKPOINT = torch.utils.checkpoint.checkpoint

from olmo_core.nn.attention import SlidingWindowAttentionConfig  # noqa: E402
from olmo_core.nn.layer_norm import LayerNormType  # noqa: E402
from olmo_core.nn.transformer import TransformerBlockType, TransformerConfig  # noqa: E402

SMALL = dict(d_model=64, n_layers=3, n_heads=4, vocab_size=512, hidden_size_multiple_of=32)
OLMO = dict(block_name="reordered_norm", qk_norm=True, layer_norm_eps=1e-6)
CASES = {
    "olmo2": OLMO,
    "olmo2 torch": dict(OLMO, attn_backend="torch"),
    "olmo2 groups": dict(OLMO, n_kv_heads=2),
    "olmo2 groups torch": dict(OLMO, n_kv_heads=2, attn_backend="torch"),
    "olmo2 one group": dict(OLMO, n_kv_heads=1),
    "olmo2 norms of each head": dict(OLMO, use_head_qk_norm=True),
    "olmo2 without norms of heads": dict(OLMO, qk_norm=False),
    "olmo3": dict(OLMO, sliding_window=[16, 16, -1]),
    "olmo3 wide heads": dict(OLMO, head_dim=32),
    "llama": {},
    "llama torch": dict(attn_backend="torch"),
    "llama groups": dict(n_kv_heads=2),
    "llama groups torch": dict(n_kv_heads=2, attn_backend="torch"),
    "llama norms of heads": dict(qk_norm=True),
    "qwen": dict(qk_norm=True, use_head_qk_norm=True, n_kv_heads=2, head_dim=32, layer_norm_name="qwen_rms"),
    "qwen torch": dict(qk_norm=True, use_head_qk_norm=True, n_kv_heads=2, head_dim=32, layer_norm_name="qwen_rms", attn_backend="torch"),
}


def built(config):
    """The package's configuration of a case."""
    config = {**SMALL, "attn_backend": "flash_2", **config}
    if "sliding_window" in config:
        window = dict(force_full_attention_on_first_layer=False, force_full_attention_on_last_layer=True)
        config["sliding_window"] = SlidingWindowAttentionConfig(pattern=config["sliding_window"], **window)
    if "block_name" in config:
        config["block_name"] = TransformerBlockType(config["block_name"])
    if "layer_norm_name" in config:
        config["layer_norm_name"] = LayerNormType(config["layer_norm_name"])
    return TransformerConfig.llama_like(**config)


def record(case):
    torch._dynamo.reset()
    torch._functorch.config.activation_memory_budget = 1.0
    owner, held, notes, place = {}, {}, {}, ["ends"]
    with mock.patch("torch.cuda.is_available", lambda: True):
        model = built(case["config"]).build(init_device="cpu")
    model.init_weights(max_seq_len=case["s"], device=torch.device("cpu"))
    model = model.to(torch.bfloat16).train()

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own and storage.nbytes():
            held[storage.data_ptr()] = storage
            where = "rotation" if storage.data_ptr() in tables else place[-1]
            owner.setdefault(storage.data_ptr(), where)
            notes.setdefault(storage.data_ptr(), [list(tensor.shape), str(tensor.dtype)[6:], storage.nbytes()])
        return tensor

    def noting(function, *arguments, **options):
        """torch's checkpoint, which holds the arguments of what it runs by itself: they are kept as well."""
        for argument in arguments:
            if recording and isinstance(argument, torch.Tensor) and argument.requires_grad:
                pack(argument)
        return CHECKPOINT(function, *arguments, **options)

    own = {p.untyped_storage().data_ptr() for p in [*model.parameters(), *model.buffers()]}
    tables, recording = set(), []
    if case["checkpoint"]:
        mode = dict(case["checkpoint"])
        with mock.patch("torch.distributed.algorithms._checkpoint.checkpoint_wrapper.torch_utils_checkpoint", noting):
            model.apply_activation_checkpointing(**mode)
    for index, block in enumerate(model.blocks.values()):
        block.register_forward_pre_hook(lambda *_, index=index: place.append(f"layer{index}"))
        block.register_forward_hook(lambda *_: place.pop() and None)
    if case["compile"]:
        model.apply_compile()
    labels = torch.zeros(case["b"], case["s"], dtype=torch.int64)

    def run():
        return model(torch.zeros(case["b"], case["s"], dtype=torch.int64), labels=labels, loss_reduction="sum",
                     z_loss_multiplier=1e-5 if case["z"] else None, loss_div_factor=torch.tensor(7), return_logits=False).loss

    run().backward()
    buffers = model.get_rope_buffers(case["s"], torch.device("cpu")).values()
    tables.update(t.untyped_storage().data_ptr() for one in buffers for t in (one.pos_sin, one.pos_cos))
    recording.append(True)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = run()
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
            yield dict(id=f"{name}, b{batch}", config=config, b=batch, s=48, checkpoint=None, compile=False, z=True)
    for z in [False, True]:
        yield dict(id=f"loss z={z}", config=OLMO, b=2, s=48, checkpoint=None, compile=False, z=z)
    modes = [dict(mode="full"), dict(mode="selected_blocks", block_interval=2), dict(mode="selected_ops"),
             dict(mode="selected_modules", modules=["blocks.*.feed_forward"])]
    for compiled in [False, True]:
        for mode in modes:
            for name in ["olmo2", "llama groups"]:
                words = " ".join(map(str, mode.values()))
                yield dict(id=f"{name} {words}{' compiled' * compiled}", config=CASES[name], b=2, s=48, checkpoint=mode, compile=compiled, z=True)
    for name, config in CASES.items():
        for batch in [1, 2] if name in ["olmo2", "llama groups"] else [2]:
            yield dict(id=f"{name} compiled, b{batch}", config=config, b=batch, s=48, checkpoint=None, compile=True, z=True)
    yield dict(id="loss without z compiled", config=OLMO, b=2, s=48, checkpoint=None, compile=True, z=False)


def main():
    print(json.dumps({"torch": torch.__version__, "ai2-olmo-core": "2.6.0", "flash-attn": "2.7.4 (stood in for)", "python": platform.python_version()}))
    only = sys.argv[1:]
    for case in cases():
        if not only or any(word in case["id"] for word in only):
            config = {**SMALL, "attn_backend": "flash_2", **case["config"]}
            print(json.dumps({**case, "config": config, **record(case)}), flush=True)


if __name__ == "__main__":
    main()
