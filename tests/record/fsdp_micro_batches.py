"""Counts what PyTorch's FSDP gathers and reduces in each micro-batch of a step, and the whole gradients it holds between them, on a CPU.

    pip install torch transformers accelerate
    torchrun --nproc-per-node 2 fsdp_micro_batches.py > ../data/activations/fsdp_micro_batches.jsonl

Layers and the model are units. `engine` is FSDP1 (`FullyShardedDataParallel`) or FSDP2 (`fully_shard`), both gathering in bf16 over fp32
shards; `stage` 3 frees a unit behind forward (`FULL_SHARD`, `reshard_after_forward=True`), 2 does not (`SHARD_GRAD_OP`, `False`).
`waits` runs all micro-batches but the last under `Accelerator.no_sync` as it stands; `keeps` also calls
`set_reshard_after_backward` as NeMo Automodel's `prepare_for_grad_accumulation` does. Each pass has the calls by kind, with the elements they
bring together, and the bytes of whole gradients when it is over.
"""

import collections
import contextlib
import json
import types

import accelerate
import torch
import torch.distributed as dist
import transformers
from accelerate import Accelerator
from torch.distributed.fsdp import (FSDPModule, FullyShardedDataParallel, MixedPrecision, MixedPrecisionPolicy, ShardingStrategy,
                                    fully_shard)
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

LAYERS, HEIGHT, WIDE, VOCABULARY, MICRO_BATCHES = 3, 64, 160, 512, 3
KINDS = {"allgather_": "gathers", "_allgather_base_": "gathers", "reduce_scatter_": "reductions",
         "_reduce_scatter_base_": "reductions"}


class Calls(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = collections.Counter()

    def __torch_dispatch__(self, function, kinds, arguments=(), keywords=None):
        name = function._opname if hasattr(function, "_opname") else ""
        if function.namespace == "c10d" and name in KINDS:
            flat = torch.utils._pytree.tree_leaves(arguments[:2])
            whole = max(sum(tensor.numel() for tensor in torch.utils._pytree.tree_leaves(side) if isinstance(tensor, torch.Tensor))
                        for side in arguments[:2])
            assert flat
            self.seen[KINDS[name]] += 1
            self.seen[KINDS[name] + "_elements"] += whole
        return function(*arguments, **(keywords or {}))


def whole_gradients(model):
    out = collections.Counter()
    for module in model.modules():
        if isinstance(module, FSDPModule):
            for parameter in module._get_fsdp_state()._fsdp_param_group.fsdp_params:
                seen = set()
                for grad in (getattr(getattr(parameter, "_unsharded_param", None), "grad", None),
                             getattr(parameter, "unsharded_accumulated_grad", None)):
                    if grad is not None and id(grad) not in seen:
                        seen.add(id(grad))
                        out[str(grad.dtype).removeprefix("torch.")] += grad.numel() * grad.element_size()
        if isinstance(module, FullyShardedDataParallel) and module._handle is not None:
            flat = module._handle.flat_param
            if flat.grad is not None and flat.grad.numel() == flat._unpadded_unsharded_size.numel():
                out[str(flat.grad.dtype).removeprefix("torch.")] += flat.grad.numel() * flat.grad.element_size()
    return dict(sorted(out.items()))


def model_of(engine, stage):
    torch.manual_seed(0)
    config = AutoConfig.for_model(
        "llama", num_hidden_layers=LAYERS, hidden_size=HEIGHT, intermediate_size=WIDE, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, vocab_size=VOCABULARY, use_cache=False, tie_word_embeddings=False)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    if engine == "fsdp1":
        return FullyShardedDataParallel(
            model, auto_wrap_policy=ModuleWrapPolicy({LlamaDecoderLayer}), use_orig_params=True, device_id=torch.device("cpu"),
            sharding_strategy=ShardingStrategy.FULL_SHARD if stage == 3 else ShardingStrategy.SHARD_GRAD_OP,
            mixed_precision=MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16)
    for layer in model.model.layers:
        fully_shard(layer, mp_policy=policy, reshard_after_forward=stage == 3)
    fully_shard(model, mp_policy=policy, reshard_after_forward=stage == 3)
    return model


def case(engine, stage, waits, keeps=False):
    model = model_of(engine, stage)
    trained = LAYERS * (HEIGHT * (2 * HEIGHT + 2 * 32 + 3 * WIDE + 2)) + 2 * VOCABULARY * HEIGHT + HEIGHT
    # What `Accelerator.no_sync` asks of itself.
    itself = types.SimpleNamespace(is_fsdp2=engine == "fsdp2", use_distributed=True, distributed_type="FSDP")
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0)
    steps = []
    for step in range(2):
        batches = []
        for index in range(MICRO_BATCHES):
            last = index == MICRO_BATCHES - 1
            if keeps:
                model.set_reshard_after_backward(last)
            sync = Accelerator.no_sync(itself, model) if waits and not last else contextlib.nullcontext()
            passes = []
            tokens = torch.randint(0, VOCABULARY, (1, 32))
            with sync:
                with Calls() as calls:
                    loss = model(input_ids=tokens, labels=tokens).loss
                passes.append({**calls.seen})
                with Calls() as calls:
                    loss.backward()
                passes.append({**calls.seen, "whole": whole_gradients(model)})
            batches.append(passes)
        optimizer.step()
        optimizer.zero_grad()
        steps.append(batches)
    if dist.get_rank() == 0:
        # The second step is the first that begins as every other does.
        print(json.dumps({"engine": engine, "stage": stage, "waits": waits, "keeps": keeps, "layers": LAYERS, "h": HEIGHT, "f": WIDE,
                          "V": VOCABULARY, "world": dist.get_world_size(), "trained": trained, "micro_batches": steps[1]}))


dist.init_process_group("gloo")
if dist.get_rank() == 0:
    print(json.dumps({"what": "Gathers, reductions and whole gradients of FSDP's micro-batches",
                      "versions": {name.__name__: name.__version__ for name in (torch, transformers, accelerate)}}))
for engine in ("fsdp1", "fsdp2"):
    for stage in (2, 3):
        for waits in (True, False):
            case(engine, stage, waits)
case("fsdp2", 2, True, keeps=True)
dist.destroy_process_group()
