"""Records what autograd keeps on one of several tensor-parallel ranks under NeMo Automodel, with its own modules and transformers',
its loss and its adapters, and what the ranks send, on a CPU.

    pip install torch transformers
    git clone https://github.com/NVIDIA-NeMo/Automodel && git -C Automodel checkout 36044ad3d1
    PYTHONPATH=Automodel python dtensor_automodel.py | grep '^{' > dtensor_automodel.jsonl

The ranks are processes over gloo. Plan, adapters, checkpoints and loss are Automodel's own functions
(`components/distributed/parallelizer.py:_get_parallel_plan`, `components/_peft/lora.py:apply_lora_to_linear_modules`,
`apply_submodule_checkpointing` around its own modules and `apply_full_layer_checkpointing_to_layers` around transformers',
`components/loss/masked_ce.py`); a plan's styles become those of adapters as there (`translate_to_lora`). The loss takes the whole
logits of all ranks. Counted as in `dtensor_layers.py`, whose keys the lines have; `shared` is what several layers hold.
"""

import collections
import importlib.util
import itertools
import json
import os
import pathlib
import sys

# Its kernels are for GPUs; without triton the same functions run PyTorch's products.
sys.modules["triton"] = None

import torch
import torch.distributed as dist
import transformers
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import parallelize_module

HERE = pathlib.Path(__file__).parent
spec = importlib.util.spec_from_file_location("dtensor_layers", HERE / "dtensor_layers.py")
layers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(layers)
LAYERS, RANK = 3, 8


def build(case):
    from nemo_automodel.components._peft.lora import PeftConfig, apply_lora_to_linear_modules
    from nemo_automodel.components.models.llama.model import LlamaForCausalLM
    from nemo_automodel.components.models.qwen2.model import Qwen2ForCausalLM
    from nemo_automodel.components.models.qwen3.model import Qwen3ForCausalLM
    from transformers import AutoConfig, AutoModelForCausalLM

    own = {"llama": LlamaForCausalLM, "qwen2": Qwen2ForCausalLM, "qwen3": Qwen3ForCausalLM}[case["arch"]]
    config = AutoConfig.for_model(
        case["arch"], num_hidden_layers=LAYERS, hidden_size=case["h"], intermediate_size=case["f"],
        num_attention_heads=case["a"], num_key_value_heads=case["k"], head_dim=case["d"], vocab_size=case["V"],
        max_position_embeddings=2 * case["s"], use_cache=False, attn_implementation="sdpa", dtype="bfloat16",
        tie_word_embeddings=False, architectures=[own.__name__])
    model = own(config) if case["own"] else AutoModelForCausalLM.from_config(config)
    model = model.to(torch.bfloat16).train()
    if case["train"] == "lora-all":
        apply_lora_to_linear_modules(model, PeftConfig(target_modules=["*_proj"], dim=RANK, alpha=2 * RANK), skip_freeze=False)
    for tensor in model.parameters():
        torch.nn.init.uniform_(tensor, 0.0, 0.01)
    return model


def record(case, mesh):
    """What one rank keeps, by layer, shared and outside, and what it sends."""
    from nemo_automodel.components.distributed import parallelizer
    from nemo_automodel.components.distributed.activation_checkpointing import apply_submodule_checkpointing
    from nemo_automodel.components.loss.masked_ce import MaskedCrossEntropy
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointWrapper

    torch.manual_seed(0)
    model = build(case)
    plan = parallelizer._get_parallel_plan(model, case["sp"], None, tp_size=case["tp"])
    parallelize_module(model, mesh["tp"], {name: parallelizer.translate_to_lora(style) for name, style in plan.items()})
    if case["gc"] == "full":
        parallelizer.apply_full_layer_checkpointing_to_layers(model, model.model.layers)
    elif case["gc"]:
        apply_submodule_checkpointing(model.model.layers, False)
    tokens = torch.randint(0, case["V"], (case["b"], case["s"]))
    criterion = MaskedCrossEntropy()

    def loss(labels):
        return criterion(logits=model(input_ids=tokens).logits, labels=labels, num_label_tokens=int(tokens.numel()))

    # What is compiled or cached for good is there before anything is counted.
    loss(tokens.clone()).backward()
    model.zero_grad()
    own = {layers.local(p).untyped_storage().data_ptr() for p in [*model.parameters(), *model.buffers()]}
    place, users, held = [], collections.defaultdict(set), {}
    arguments, inside = collections.defaultdict(dict), []
    for index, layer in enumerate(model.model.layers):
        layer.register_forward_pre_hook(lambda *_, index=index: place.append(f"layer{index}"))
        layer.register_forward_hook(lambda *_: place.pop() and None)

    def given(args, kwargs, index):
        inside.append(index)
        for value in [*args, *kwargs.values()]:
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                storage = layers.local(value).untyped_storage()
                arguments[index][storage.data_ptr()] = storage

    if case["gc"] == "modules":
        for index, layer in enumerate(model.model.layers):
            for name, module in layer.named_children():
                assert isinstance(module, CheckpointWrapper), name
                module.register_forward_pre_hook(
                    lambda _, args, kwargs, index=index: given(args, kwargs, index), with_kwargs=True)
                module.register_forward_hook(lambda *_: inside.clear())

    def pack(tensor):
        storage = layers.local(tensor).untyped_storage()
        if storage.data_ptr() not in own and storage.nbytes():
            held[storage.data_ptr()] = storage
            users[storage.data_ptr()].add(place[-1] if place else "outside")
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        total = loss(tokens.clone())
    kept = collections.Counter()
    for address, places in users.items():
        within = places - {"outside"}
        kept["shared" if len(within) > 1 else next(iter(within or places))] += held[address].nbytes()
    waits = [sum(storage.nbytes() for storage in arguments[index].values()) for index in range(LAYERS)]
    total.backward()
    grads = sum(layers.local(p.grad).nbytes for p in model.parameters() if p.grad is not None)
    # Once more: what is compiled, as norms of Automodel's own are, runs as it is written while calls are counted.
    with layers.Sent() as forward:
        total = loss(tokens.clone())
    with layers.Sent() as backward:
        total.backward()
    trained = [p for p in model.parameters() if p.requires_grad]
    frozen = [p for p in model.parameters() if not p.requires_grad]
    optimizer = torch.optim.AdamW(trained)
    optimizer.step()
    moments = [layers.local(state) for p in trained for name, state in optimizer.state[p].items() if name != "step"]
    return dict(kept=kept, held=waits, sent=dict(forward=forward.calls, backward=backward.calls),
                trained_params=sum(layers.local(p).numel() for p in trained),
                trained_param_bytes=sum(layers.local(p).nbytes for p in trained),
                frozen_params=sum(layers.local(p).numel() for p in frozen),
                frozen_param_bytes=sum(layers.local(p).nbytes for p in frozen),
                grad_bytes=grads,
                adamw_moment_bytes=sum(t.nbytes for t in moments))


def run(rank, world, port):
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank), "WORLD_SIZE": str(world)}
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    mesh = init_device_mesh("cpu", (1, world), mesh_dim_names=("dp", "tp"))
    for own, arch, train in itertools.product((True, False), ("llama", "qwen2", "qwen3"), ("full", "lora-all")):
        # A sequence cut over ranks reaches Automodel's compiled norms as a DTensor, and makes the norms of a frozen model train.
        cut = (False, True) if train == "full" and (not own or arch == "qwen3") else (False,)
        sizes = {"full": ((1, 64),) if world == 2 else ((2, 96),), "lora-all": ((1, 64), (1, 128), (2, 96))}[train]
        for sp, gc, (b, s) in itertools.product(cut, (None, "modules" if own else "full"), sizes):
            name = [
                "own" if own else "plain", arch, train, f"tp{world}", "sp" if sp else "", f"b{b}", f"s{s}", gc or ""]
            case = dict(
                id="-".join(filter(None, name)), kind="model", layers=LAYERS, own=own, tp=world, sp=sp, arch=arch, dtype="bf16",
                b=b, s=s, h=128, a=8, k=4, d=16, f=352, V=1000, attn="sdpa", train=train, rank=RANK, gc=gc, loss="masked")
            line = {**case, **record(case, mesh)}
            if rank == 0:
                print(json.dumps(line), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    print(json.dumps({"what": "Bytes that autograd keeps on a tensor-parallel rank of NeMo Automodel, and what it sends",
                      "versions": {"automodel": "36044ad3d1", "torch": torch.__version__,
                                   "transformers": transformers.__version__}}), flush=True)
    for world in (2, 4):
        torch.multiprocessing.spawn(run, args=(world, 29640 + world), nprocs=world)
