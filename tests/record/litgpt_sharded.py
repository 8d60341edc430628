"""Records what autograd keeps of small models of litgpt that FSDP shards over two processes, on CPUs.

    pip install torch==2.15.0 litgpt==0.5.13 lightning==2.6.6
    python litgpt_sharded.py > ../data/activations/litgpt_sharded.jsonl

The model is sharded as Lightning Fabric's `FSDPStrategy` does (`lightning/fabric/strategies/fsdp.py:setup_module`, which asks for GPUs), with
its own precision plugin, in the two ways of litgpt: `finetune/full.py` shards and checkpoints every block, `pretrain.py` shards
them and compiles the sharded model (`Fabric.setup` takes the compiler's wrapper off, shards, and puts it on again). Counted is every
storage that autograd saves, gathered weights and buffers left out, to the block whose forward saves it first; of a compiled
model in its third pass. Graphs are compiled by inductor up to its partition into forward and backward, which says what is
saved, and run without its generated code: the first compiled case was recorded with that code too, and is equal.
"""

import collections
import itertools
import json
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from functorch.compile import make_boxed_func

HERE = dict(h=128, a=8, k=2, d=16, f=384)
SHAPES = dict(llama=HERE, mha=dict(h=128, a=4, k=4, d=32, f=256), one=dict(h=128, a=4, k=1, d=32, f=256), qwen2=dict(h=192, a=6, k=2, d=32, f=320),
              qwen3=dict(h=128, a=4, k=2, d=64, f=256), heads=dict(h=128, a=4, k=4, d=32, f=256),
              gemma=dict(h=128, a=4, k=1, d=64, f=384), window=dict(h=128, a=4, k=2, d=32, f=256))


def built(case):
    import litgpt
    from litgpt.config import Config

    sizes = dict(
        n_layer=case["layers"], n_embd=case["h"], n_head=case["a"], n_query_groups=case["k"], head_size=case["d"],
        intermediate_size=case["f"], vocab_size=case["V"], padded_vocab_size=case["V"], block_size=2 * case["s"],
        bias=False, parallel_residual=False, shared_attention_norm=False, norm_class_name="RMSNorm",
        mlp_class_name="LLaMAMLP", rotary_percentage=1.0, attn_bias=case["arch"] == "qwen2", norm_qk=case["arch"] in ("qwen3", "heads"),
    )
    if case["arch"] == "gemma":
        sizes.update(name="Gemma-x", mlp_class_name="GemmaMLP", gelu_approximate="tanh", scale_embeddings=True)
    if case["arch"] == "window":
        sizes.update(sliding_window_size=100)
    return litgpt.GPT(Config(**sizes))


def record(case):
    from lightning.fabric.plugins.precision.fsdp import FSDPPrecision
    from litgpt.model import Block
    from litgpt.utils import chunked_cross_entropy
    from lightning.fabric.strategies.fsdp import _activation_checkpointing_kwargs, _auto_wrap_policy_kwargs, _setup_activation_checkpointing
    from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy

    torch._dynamo.reset()
    torch.manual_seed(0)
    plugin = FSDPPrecision(case["precision"])
    with plugin.module_init_context():
        model = plain = built(case)
    model = plugin.convert_module(model)
    model.max_seq_length = case["s"]
    hybrid = case["program"] == "pretrain"
    groups = (dist.group.WORLD, GROUPS[dist.get_rank()]) if hybrid else None
    model = FullyShardedDataParallel(
        model, mixed_precision=plugin.mixed_precision_config, process_group=groups, use_orig_params=True, device_id=torch.device("cpu"),
        sharding_strategy=ShardingStrategy.HYBRID_SHARD if hybrid else ShardingStrategy.FULL_SHARD,
        **_auto_wrap_policy_kwargs({Block}, {}))
    if case["program"] == "finetune_full":
        _setup_activation_checkpointing(model, _activation_checkpointing_kwargs(None, {Block}))
    else:
        model = torch.compile(model, backend=partitioned)
    place, users, held, notes = [], collections.defaultdict(set), {}, {}
    for index, layer in enumerate(unit for unit in plain.transformer.h):
        layer.register_forward_pre_hook(torch._dynamo.disable(lambda *_, index=index: place.append(f"layer{index}")))
        layer.register_forward_hook(torch._dynamo.disable(lambda *_: place.pop() and None))

    def gathered():
        units = FullyShardedDataParallel.fsdp_modules(model)
        flat = [unit._handle.flat_param for unit in units if unit._handle]
        tensors = [getattr(p, name, None) for p in flat for name in ("_full_param_padded", "_mp_shard", "_local_shard")]
        return {t.untyped_storage().data_ptr() for t in [*tensors, *flat, *plain.buffers()] if t is not None and t.untyped_storage().nbytes()}

    @torch._dynamo.disable
    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.nbytes() and storage.data_ptr() not in gathered():
            held[storage.data_ptr()] = storage
            users[storage.data_ptr()].add(place[-1] if place else "outside")
            notes.setdefault(storage.data_ptr(), [list(tensor.shape), str(tensor.dtype)[6:], storage.nbytes()])
        return tensor

    tokens = torch.randint(0, case["V"], (case["b"], case["s"]))
    targets = tokens.clone()

    def run():
        # `_FabricModule.forward`: the context and the conversions of the plugin, autocast on a CPU here.
        context = torch.autocast("cpu", torch.bfloat16) if "mixed" in case["precision"] else plugin.forward_context()
        with context:
            logits = model(plugin.convert_input(tokens))
        logits = plugin.convert_output(logits)
        if case["program"] == "pretrain":
            return chunked_cross_entropy(logits, targets)
        return chunked_cross_entropy(logits[..., :-1, :], targets[..., 1:])

    for _ in range(2):
        run().backward()
        model.zero_grad()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = run()
    kept, tensors = collections.Counter(), collections.defaultdict(list)
    for address, places in users.items():
        inside = places - {"outside"}
        where = "shared" if len(inside) > 1 else next(iter(inside or places))
        kept[where] += held[address].nbytes()
        tensors[where].append(notes[address])
    loss.backward()
    own = [p for p in model.parameters() if p.numel()]
    optimizer = torch.optim.AdamW(own)
    optimizer.step()
    moments = [t for p in own for name, t in optimizer.state[p].items() if name != "step"]
    sent = plugin.mixed_precision_config.reduce_dtype
    return dict(kept=kept, param_dtype=str(own[0].dtype)[6:], grad_dtype=str(own[0].grad.dtype)[6:], reduce_dtype=str(sent)[6:],
                moment_dtype=str(moments[0].dtype)[6:], param_bytes=sum(p.nbytes for p in own),
                grad_bytes=sum(p.grad.nbytes for p in own), adamw_moment_bytes=sum(t.nbytes for t in moments),
                tensors={where: tensors[where] for where in sorted(tensors) if where not in ("layer0", "layer2")})


def cases():
    for program, arch, (b, s), precision in itertools.product(
            ["finetune_full", "pretrain"], SHAPES, [(1, 64), (2, 160)], ["bf16-mixed", "bf16-true", "32-true"]):
        # Compiled, the loop that fills a window's mask becomes an operation for each token.
        if program == "pretrain" and arch == "window":
            continue
        if (precision != "bf16-mixed") and (b == 2 or arch in ("gemma", "heads", "window", "one")):
            continue
        yield dict(id="-".join([program, arch, precision, f"b{b}"]), program=program, arch=arch, precision=precision, b=b, s=s, **SHAPES[arch], V=1024, layers=3)


GROUPS = {}


def partitioned(graph, inputs):
    """inductor's decompositions and partition of a graph, run without its generated code."""
    from torch._inductor.compile_fx import compile_fx

    return compile_fx(graph, inputs, inner_compile=lambda graph, *_, **__: make_boxed_func(graph.forward))


def worker(rank, only):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29577", RANK=str(rank), WORLD_SIZE="2")
    dist.init_process_group("gloo", rank=rank, world_size=2)
    for one in range(2):
        GROUPS[one] = dist.new_group([one])
    torch.set_num_threads(1)
    for case in cases():
        if only not in case["id"]:
            continue
        recorded = record(case)
        if rank == 0:
            print(json.dumps({**case, **recorded}, separators=(",", ":")), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    import importlib.metadata

    own = {name: importlib.metadata.version(name) for name in ("litgpt", "lightning")}
    print(json.dumps(dict(what="Bytes that autograd keeps of a model of three layers of litgpt that FSDP shards over two ranks, recorded on CPUs by litgpt_sharded.py",
                          versions=dict(torch=torch.__version__, **own)), separators=(",", ":")), flush=True)
    mp.spawn(worker, args=(sys.argv[1] if len(sys.argv) > 1 else "",), nprocs=2)
