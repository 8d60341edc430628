"""Records what autograd keeps of Megatron core's layers with the adapters of Megatron-Bridge beside frozen weights, on a CPU.

    pip install torch==2.15.0 megatron-core==0.16.1
    git clone https://github.com/NVIDIA-NeMo/Megatron-Bridge bridge && git -C bridge checkout 067f987
    BRIDGE=bridge/src python megatron_lora.py > ../data/activations/megatron_lora.jsonl

Layers are Megatron core's own (local spec), adapters are Megatron-Bridge's own (`peft/utils.py:ParallelLinearAdapter`), put in by its
own `LoRA.transform`. Tensor-parallel ranks are processes that talk over gloo. Transformer Engine needs a GPU: its modules are absent, and
so is the rotation's and the gated activation's fused kernel. Every tensor that autograd packs is taken once per storage, parameters and
buffers left out, and counted to the layer whose forward packs it first.
"""

import contextlib
import importlib.machinery
import json
import os
import sys
import tempfile
import types

import torch
import torch.multiprocessing as processes

LAYERS = 3


def stand_ins():
    """Makes `megatron.bridge.peft` importable without the rest of the package."""
    import megatron

    root = os.path.join(os.environ["BRIDGE"], "megatron", "bridge")
    for name, path in (("megatron.bridge", root), ("megatron.bridge.peft", root + "/peft"), ("megatron.bridge.utils", root + "/utils")):
        module = types.ModuleType(name)
        module.__path__ = [path]
        module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
        sys.modules[name] = module
    # The only one of its functions that adapters use; the rest wants a newer Megatron core than the package registry has.
    common = types.ModuleType("megatron.bridge.utils.common_utils")
    common.print_rank_0 = lambda *_: None
    sys.modules[common.__name__] = common
    engine = types.ModuleType("transformer_engine")
    engine.__path__ = []
    inner = types.ModuleType("transformer_engine.pytorch")
    inner.__path__ = []
    inner.ops = types.SimpleNamespace(Sequential=object)
    return engine, inner


class Norm(torch.autograd.Function):
    """LayerNorm with fp32 statistics, as the CUDA kernels keep them (the CPU's are in 16 bits)."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        statistics = torch.empty(2, *x.shape[:-1], dtype=torch.float32)
        ctx.save_for_backward(x, statistics)
        return torch.nn.functional.layer_norm(x, weight.shape, weight, bias)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None, None


class Drop(torch.autograd.Function):
    """Dropout with a mask of a byte each, as the CUDA kernel keeps it (the CPU's has the tensor's type)."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(torch.ones(x.shape, dtype=torch.bool))
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def on_the_cpu():
    """What Megatron core asks of CUDA where it has no need to."""
    from megatron.core import utils

    def get_tensor(self, shape, dtype, name, mem_alloc_context=None):
        return torch.empty(tuple(shape), dtype=dtype)

    utils.GlobalMemoryBuffer.get_tensor = get_tensor
    torch.cuda.current_device = lambda: "cpu"
    # Without Transformer Engine the name is None, of which nothing can be an instance.
    from megatron.core import tensor_parallel
    from megatron.core.transformer import attention, transformer_block
    from megatron.core.transformer.torch_norm import WrappedTorchNorm

    states = types.SimpleNamespace(fork=lambda *_: contextlib.nullcontext())
    tensor_parallel.get_cuda_rng_tracker = lambda: states
    torch.nn.Dropout.forward = lambda self, x: Drop.apply(x) if self.p else x
    # It refuses sequence parallelism, under which a norm does nothing else.
    WrappedTorchNorm.__new__ = lambda cls, config, hidden_size, eps=1e-5, **_: torch.nn.LayerNorm(hidden_size, eps=eps)
    torch.nn.LayerNorm.forward = lambda self, x: Norm.apply(x, self.weight, self.bias)
    transformer_block.LayerNormImpl = WrappedTorchNorm
    attention.TELinear = attention.TELinear or type("Absent", (), {})


def build(case):
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.transformer.transformer_config import TransformerConfig
    from torch.nn.functional import silu

    moe = case.get("moe")
    more = {}
    if moe:
        more = dict(
            num_moe_experts=moe["experts"], moe_router_topk=moe["topk"], moe_ffn_hidden_size=moe["f"], moe_grouped_gemm=False,
            moe_token_dispatcher_type="alltoall", moe_router_load_balancing_type="none", add_bias_linear=False,
        )
    config = TransformerConfig(
        num_layers=LAYERS, hidden_size=case["h"], num_attention_heads=case["a"], num_query_groups=case["k"],
        ffn_hidden_size=case["f"], add_bias_linear=False, gated_linear_unit=True, activation_func=silu,
        bias_activation_fusion=False, normalization="LayerNorm", hidden_dropout=0.0, attention_dropout=0.0,
        tensor_model_parallel_size=case["tp"], sequence_parallel=case["sp"], params_dtype=torch.bfloat16, bf16=True,
        pipeline_dtype=torch.bfloat16, use_cpu_initialization=True, gradient_accumulation_fusion=False,
        masked_softmax_fusion=False, attention_softmax_in_fp32=False, apply_rope_fusion=False, **{k: v for k, v in more.items() if k != "add_bias_linear"},
    )
    spec = get_gpt_layer_local_spec(
        num_experts=moe["experts"] if moe else None, moe_grouped_gemm=False, normalization="LayerNorm"
    )
    return GPTModel(
        config=config, transformer_layer_spec=spec, vocab_size=case["vocab"], max_sequence_length=case["s"],
        position_embedding_type="rope", share_embeddings_and_output_weights=False, parallel_output=True,
    ).bfloat16()


def record(case):
    torch.manual_seed(1)
    model = build(case)
    lora = case["lora"]
    if lora:
        from megatron.bridge.peft import utils
        from megatron.bridge.peft.lora import LoRA

        # Without Transformer Engine its classes are None, of which nothing can be an instance.
        utils.HAVE_TE = False

        for parameter in model.parameters():
            parameter.requires_grad = False
        adapters = LoRA(target_modules=lora["modules"], dim=lora["r"], alpha=lora["r"], dropout=lora["dropout"])
        adapters(model, training=True)
    if case.get("frozen"):
        for parameter in model.parameters():
            parameter.requires_grad = False
    model.train()
    own = {t.untyped_storage().data_ptr() for t in [*model.parameters(), *model.buffers()]}
    place, held, order = [], {}, {}
    for index, layer in enumerate(model.decoder.layers):
        layer.register_forward_pre_hook(lambda *_, index=index: place.append(f"layer{index}"))
        layer.register_forward_hook(lambda *_: place.pop() and None)

    def pack(tensor):
        storage = tensor.untyped_storage()
        at = storage.data_ptr()
        if at not in own and storage.nbytes() and at not in held:
            held[at] = storage
            order[at] = place[-1] if place else "outside"
        return tensor

    b, s = case["b"], case["s"]
    tokens = torch.randint(0, case["vocab"], (b, s))
    positions = torch.arange(s).repeat(b, 1)
    mask = torch.ones(1, 1, s, s, dtype=torch.bool).triu(1)
    if case.get("input_gradient"):
        def needed(_, output):
            return output.requires_grad_(True)
        model.embedding.register_forward_hook(lambda module, inputs, output: needed(module, output))
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = model(tokens, positions, mask, labels=tokens)
    bytes_of = {}
    for at, storage in held.items():
        bytes_of[order[at]] = bytes_of.get(order[at], 0) + storage.nbytes()
    trained = sorted((name, list(p.shape)) for name, p in model.named_parameters() if p.requires_grad)
    return dict(
        bytes=bytes_of,
        trained=sum(p.numel() for p in model.parameters() if p.requires_grad),
        parameters=sum(p.numel() for p in model.parameters()),
        adapters=[[name.split("layers.1.")[1], shape] for name, shape in trained if lora and ".layers.1." in name],
    )


def run(rank, case, answer):
    sys.stdout = sys.stderr
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(29500 + os.getppid() % 1000), RANK=str(rank), WORLD_SIZE=str(case["tp"]))
    engine, inner = stand_ins()
    on_the_cpu()
    torch.distributed.init_process_group("gloo", rank=rank, world_size=case["tp"])
    from megatron.core import parallel_state
    from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed

    parallel_state.initialize_model_parallel(tensor_model_parallel_size=case["tp"])
    # Bridge's adapters import Transformer Engine for a layer that these runs do not have.
    import megatron.core.transformer.transformer_layer  # noqa: F401

    sys.modules["transformer_engine"], sys.modules["transformer_engine.pytorch"] = engine, inner
    engine.pytorch = inner
    found = record(case)
    if rank == 0:
        with open(answer, "w") as file:
            json.dump(found, file)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


ALL = ["linear_qkv", "linear_proj", "linear_fc1", "linear_fc2"]


def cases():
    shape = dict(s=64, b=2, h=128, a=8, k=4, f=352, vocab=1024)
    grouped = dict(s=32, b=1, h=256, a=4, k=2, f=512, vocab=768)
    for base, ways in ((shape, [(1, False), (2, False), (2, True)]), (grouped, [(1, False), (2, True)])):
        for tp, sp in ways:
            yield dict(base, tp=tp, sp=sp, lora=None)
            for modules in (ALL, ["linear_qkv"], ["linear_proj"], ["linear_fc1"], ["linear_fc2"], ["linear_qkv", "linear_proj"]):
                for dropout in (0.0, 0.1):
                    for needed in (False, True):
                        if dropout and modules != ALL:
                            continue
                        yield dict(base, tp=tp, sp=sp, input_gradient=needed, lora=dict(r=8, dropout=dropout, modules=modules))
    # Frozen whole, behind something that trains.
    for base, ways in ((shape, [(1, False), (2, False), (2, True)]), (grouped, [(1, False), (2, True)])):
        for tp, sp in ways:
            yield dict(base, tp=tp, sp=sp, input_gradient=True, frozen=True, lora=None)


def main():
    print(json.dumps(dict(made_with=dict(torch=torch.__version__.split("+")[0], megatron_core="0.16.1", megatron_bridge="067f987"), layers=LAYERS)))
    for case in cases():
        with tempfile.TemporaryDirectory() as folder:
            answer = os.path.join(folder, "answer")
            processes.spawn(run, (case, answer), nprocs=case["tp"])
            with open(answer) as file:
                print(json.dumps(dict(case=case, **json.load(file))), flush=True)


if __name__ == "__main__":
    main()
