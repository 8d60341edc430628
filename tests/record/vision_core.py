"""Records what autograd keeps of the vision tower that Megatron-Bridge makes of Megatron core's layers (Qwen3-VL, Qwen3.5), on a CPU.

    pip install torch==2.15.0 transformers==5.23.0 megatron-core==0.16.1 einops
    git clone https://github.com/NVIDIA-NeMo/Megatron-Bridge bridge && git -C bridge checkout 067f987
    BRIDGE=bridge/src python vision_core.py > ../data/activations/vision_core.jsonl

The tower is Megatron-Bridge's own (`modelling_qwen3_vl/vision_model.py`, its configuration made by `get_vision_model_config`), of
Megatron core's local layers. Tensor-parallel ranks are processes that talk over gloo. Transformer Engine needs a GPU: norms, attention
and checkpoints have stand-ins that keep what its modules and Megatron core's keep, values copied as Transformer Engine makes its inputs
contiguous. Every tensor that autograd packs is taken once per storage, parameters and buffers left out, counted to the layer whose
forward packs it first. A line for each run:

  config    sizes of the tower, as in a config.json
  tp        tensor-parallel ranks
  recompute whether every layer is recomputed by itself ("full", "uniform", 1)
  patches   patches of the images
  layers    bytes kept by each layer
  outside   bytes kept outside of them
  frozen    bytes kept in all where the tower is frozen
  merging   bytes kept in all where the tower is frozen but for its mergers
  parameters those of one rank
  fp8       the tower's own format of products and whether its weights are in it, where the decoder's are "hybrid" and True
  decoder   bytes kept where images are put between words and deep layers' features are added in decoder layers, beside what the same
            layers keep without images: [words, sequence, where images are recomputed by a checkpoint or not]
"""

import contextlib
import importlib.machinery
import itertools
import json
import os
import sys
import tempfile
import types

import torch
import torch.multiprocessing as processes

from megatron_lora import Norm, on_the_cpu

TEXT = 96
WORDS = 40


def stand_ins():
    root = os.path.join(os.environ["BRIDGE"], "megatron", "bridge")
    parts = ["", ".models", ".models.qwen_vl", ".models.qwen_vl.modelling_qwen3_vl", ".utils", ".training", ".training.utils"]
    for part in parts:
        module = types.ModuleType("megatron.bridge" + part)
        module.__path__ = [root + part.replace(".", "/")]
        module.__spec__ = importlib.machinery.ModuleSpec(module.__name__, None, is_package=True)
        sys.modules[module.__name__] = module
    graphs = types.ModuleType("megatron.bridge.utils.cuda_graph")
    graphs.clear_cuda_graph_modules = graphs.set_cuda_graph_modules = lambda *_: None
    sys.modules[graphs.__name__] = graphs


class Attention(torch.nn.Module):
    """Keeps contiguous queries, keys and values, its output, and the log of each row's sum."""

    class Kernel(torch.autograd.Function):
        @staticmethod
        def forward(ctx, query, key, value):
            query, key, value = (tensor.contiguous() for tensor in (query, key, value))
            out = torch.zeros_like(query)
            ctx.save_for_backward(query, key, value, out, torch.zeros(query.shape[:2]))
            return out

        @staticmethod
        def backward(ctx, gradient):
            return gradient, gradient, gradient

    def __init__(self, *_, **__):
        super().__init__()

    def forward(self, query, key, value, *_, **__):
        return Attention.Kernel.apply(query, key, value)


class Checkpoint(torch.autograd.Function):
    """`megatron/core/tensor_parallel/random.py:CheckpointFunction` without the states of random numbers."""

    @staticmethod
    def forward(ctx, run, *given):
        with torch.no_grad():
            made = run(*given)
        ctx.save_for_backward(*(tensor for tensor in given if torch.is_tensor(tensor)))
        flat = [made[0], *made[1]] if isinstance(made[1], list) else [made[0]]
        return tuple(flat)

    @staticmethod
    def backward(ctx, *gradients):
        raise NotImplementedError


def checkpoint(run, distribute, *given):
    first, *deep = Checkpoint.apply(run, *given)
    return first, deep, None


def build(case):
    from megatron.bridge.models.qwen_vl.modelling_qwen3_vl import attention, transformer_block, vision_model
    from megatron.bridge.models.qwen_vl.modelling_qwen3_vl.attention import Qwen3VLSelfAttention
    from megatron.bridge.models.qwen_vl.modelling_qwen3_vl.transformer_config import get_vision_model_config
    from megatron.bridge.models.qwen_vl.modelling_qwen3_vl.utils import PatchMergerSubmodules
    from megatron.core.models.vision.vit_layer_specs import get_vit_layer_with_local_spec
    from megatron.core.process_groups_config import ProcessGroupCollection
    from megatron.core.tensor_parallel import ColumnParallelLinear, RowParallelLinear
    from megatron.core.transformer.torch_norm import WrappedTorchNorm

    # Without Transformer Engine the name is None, of which nothing can be an instance.
    attention.TEDotProductAttention = type("Absent", (), {})
    transformer_block.tensor_parallel.checkpoint = checkpoint
    sizes = types.SimpleNamespace(**case["config"])
    decoder = types.SimpleNamespace(
        recompute_granularity="full" if case["recompute"] else None, recompute_method="uniform" if case["recompute"] else None,
        recompute_num_layers=1 if case["recompute"] else None, tensor_model_parallel_size=case["tp"], enable_cuda_graph=False,
        cuda_graph_use_single_mempool=False, cuda_graph_retain_backward_graph=False, cuda_graph_warmup_steps=3,
        external_cuda_graph=False, use_cpu_initialization=True, fp8="hybrid", fp8_recipe="tensorwise", fp8_param=True, fp4=None,
    )
    config = get_vision_model_config(sizes, decoder)
    config.masked_softmax_fusion = False
    spec = get_vit_layer_with_local_spec()
    spec.submodules.self_attention.module = Qwen3VLSelfAttention
    spec.submodules.self_attention.submodules.core_attention = Attention
    spec.submodules.input_layernorm = spec.submodules.pre_mlp_layernorm = WrappedTorchNorm
    merger = PatchMergerSubmodules(patch_norm=WrappedTorchNorm, linear_fc1=ColumnParallelLinear, linear_fc2=RowParallelLinear)
    groups = ProcessGroupCollection.use_mpu_process_groups()
    model = vision_model.Qwen3VLVisionModel(config, spec, merger, pg_collection=groups)
    return model.bfloat16().train()


def kept(run, own):
    """Bytes that `run` keeps, by what `place` of it says."""
    place, held, order = [], {}, {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own and storage.nbytes() and storage.data_ptr() not in held:
            held[storage.data_ptr()] = storage
            order[storage.data_ptr()] = place[-1] if place else "outside"
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = run(place)
    found = {}
    for at, storage in held.items():
        found[order[at]] = found.get(order[at], 0) + storage.nbytes()
    return found, result


def record(case):
    torch.manual_seed(1)
    model = build(case)
    own = {t.untyped_storage().data_ptr() for t in [*model.parameters(), *model.buffers()]}
    sizes = case["config"]
    grids = torch.tensor(case["grids"])
    patches = int(grids.prod(1).sum())
    values = sizes["in_channels"] * sizes["temporal_patch_size"] * sizes["patch_size"] ** 2

    def forward(place):
        hooks = []
        for index, layer in enumerate(model.decoder.layers):
            hooks.append(layer.register_forward_pre_hook(lambda *_, index=index: place.append(index)))
            hooks.append(layer.register_forward_hook(lambda *_: (place.pop(), None)[1]))
        made = model(torch.randn(patches, values), grids)
        for hook in hooks:
            hook.remove()
        return made

    found, (images, deep) = kept(forward, own)
    for parameter in model.parameters():
        parameter.requires_grad = False
    frozen, _ = kept(forward, own)
    for part in (model.merger, model.decoder.deepstack_merger_list):
        for parameter in part.parameters():
            parameter.requires_grad = True
    merging, (merged, _) = kept(forward, own)
    assert merged.requires_grad
    return dict(
        patches=patches,
        layers=[found.get(index, 0) for index in range(sizes["depth"])],
        outside=found.get("outside", 0),
        frozen=sum(frozen.values()),
        merging=sum(merging.values()),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        fp8=[model.config.fp8, model.config.fp8_param],
        decoder=decoder(images, deep),
    )


def decoder(images, deep):
    """Words, images put between them, and linear layers behind which deep layers' features are added."""
    from megatron.bridge.models.qwen_vl.modelling_qwen3_vl.transformer_block import Qwen3VLTransformerBlock

    add = Qwen3VLTransformerBlock._deepstack_process
    tokens = len(images) + WORDS
    where = torch.zeros(1, tokens, dtype=torch.bool)
    where[0, 5 : 5 + len(images)] = True
    table = torch.nn.Embedding(64, TEXT).bfloat16()
    layers = torch.nn.ModuleList(torch.nn.Linear(TEXT, TEXT) for _ in range(4)).bfloat16()
    own = {t.untyped_storage().data_ptr() for t in [*table.parameters(), *layers.parameters()]}

    def forward(with_images, again):
        def run(_):
            stream = table(torch.zeros(1, tokens, dtype=torch.int64)).transpose(0, 1).contiguous().clone()
            if with_images:
                stream = stream.transpose(0, 1).contiguous()
                stream[where] = images
                stream = stream.transpose(0, 1).contiguous()
            for index, layer in enumerate(layers):
                def custom(stream, *given, index=index, layer=layer):
                    stream = layer(stream)
                    if with_images and index < len(deep):
                        stream = add(None, stream, given[0], given[1 + index])
                    return stream, None
                given = [where, *deep] if with_images else []
                stream = checkpoint(custom, False, stream, *given)[0] if again else custom(stream, *given)[0]
            return stream

        found, _ = kept(run, own)
        return sum(found.values())

    return [tokens, *(forward(True, again) - forward(False, again) for again in (False, True))]


def run(rank, tp, listed, answer):
    sys.stdout = sys.stderr
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(29500 + os.getppid() % 1000), RANK=str(rank), WORLD_SIZE=str(tp))
    torch.set_num_threads(1)
    stand_ins()
    on_the_cpu()
    torch.distributed.init_process_group("gloo", rank=rank, world_size=tp)
    from megatron.core import parallel_state

    parallel_state.initialize_model_parallel(tensor_model_parallel_size=tp)
    found = [dict(case, **record(case)) for case in listed]
    if rank == 0:
        with open(answer, "w") as file:
            json.dump(found, file)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def cases():
    small = dict(
        depth=5, hidden_size=64, num_heads=4, intermediate_size=160, out_hidden_size=TEXT, patch_size=4, temporal_patch_size=2,
        in_channels=3, spatial_merge_size=2, num_position_embeddings=64,
    )
    wide = dict(small, depth=3, hidden_size=96, num_heads=8, intermediate_size=272)
    for tp in (1, 2, 4):
        for base, deep in ((small, [0, 1, 3]), (small, []), (wide, [1])):
            for recompute in (False, True):
                yield dict(config=dict(base, deepstack_visual_indexes=deep), tp=tp, recompute=recompute, grids=[[1, 8, 8], [1, 2, 4]])


def main():
    for tp, listed in itertools.groupby(cases(), lambda case: case["tp"]):
        with tempfile.TemporaryDirectory() as folder:
            answer = os.path.join(folder, "answer")
            processes.spawn(run, (tp, list(listed), answer), nprocs=tp)
            with open(answer) as file:
                for found in json.load(file):
                    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
