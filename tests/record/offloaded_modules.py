"""Records what Megatron core's fine-grained activation offloading sends to the host and has back on the device, on a CPU.

    pip install torch==2.15.0
    git clone https://github.com/NVIDIA/Megatron-LM && git -C Megatron-LM checkout d98e8a64dd
    PYTHONPATH=Megatron-LM python offloaded_modules.py > ../data/activations/offloaded_modules.tsv

Layers, groups, and the order in which groups go and come back are Megatron core's own (local spec,
`pipeline_parallel/fine_grained_activation_offload.py`). What CUDA does is stood in for: streams and events do nothing, and every tensor
counts as one of the device. Transformer Engine needs a GPU: its modules, grouped experts among them, are absent.

`sent`: bytes that one layer's groups copy to the host for one micro-batch, by module; `left`: bytes of the storages copied. `held`: bytes of groups on the device, in the
running micro-batch's chunk and in the others', when its backward begins and behind each group that it has passed, for the first
micro-batch that is not the first of the step; `order` is the order of passes on one stage.
"""

import contextlib
import os
import sys
import types

import torch

LAYERS = 3
LEAST = 1024


class Nothing:
    """A stream or an event that does nothing."""

    def __init__(self, *_, **__):
        pass

    def __getattr__(self, _):
        return lambda *_, **__: None


class Norm(torch.autograd.Function):
    """LayerNorm with fp32 statistics, as the CUDA kernels keep them (the CPU's are in 16 bits)."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        statistics = torch.empty(2, *x.shape[:-1], dtype=torch.float32)
        ctx.save_for_backward(x, statistics[0], statistics[1])
        return torch.nn.functional.layer_norm(x, weight.shape, weight, bias)

    @staticmethod
    def backward(ctx, gradient):
        ctx.saved_tensors
        return gradient, None, None


class Softmax(torch.autograd.Function):
    """The fused scale-mask-softmax, which saves what it puts out."""

    @staticmethod
    def forward(ctx, scores):
        out = torch.softmax(scores, -1)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, gradient):
        (out,) = ctx.saved_tensors
        return gradient * out


def on_the_cpu():
    """What Megatron core asks of CUDA where it has no need to."""
    torch.cuda.Stream = torch.cuda.Event = Nothing
    torch.cuda.current_stream = lambda *_: Nothing()
    torch.cuda.stream = lambda *_: contextlib.nullcontext()
    torch.cuda.current_device = lambda: "cpu"
    torch.Tensor.record_stream = lambda *_: None
    empty = torch.empty
    torch.empty = lambda *args, pin_memory=False, **more: empty(*args, **more)

    from megatron.core import tensor_parallel, utils
    from megatron.core.extensions import transformer_engine
    from megatron.core.fusions.fused_softmax import FusedScaleMaskSoftmax
    from megatron.core.pipeline_parallel import fine_grained_activation_offload as offload
    from megatron.core.transformer import attention, transformer_block
    from megatron.core.transformer.torch_norm import WrappedTorchNorm

    utils.GlobalMemoryBuffer.get_tensor = lambda self, shape, dtype, name, mem_alloc_context=None: empty(tuple(shape), dtype=dtype)
    transformer_engine.cpu_offload = types.SimpleNamespace(CPUOffloadEnabled=False)
    offload.nvtx_range_push = offload.nvtx_range_pop = lambda *_, **__: None
    offload.print_offload_summary_table = lambda *_, **__: None
    manager = offload.ChunkOffloadHandler
    manager._can_manage_tensor_for_offload = staticmethod(lambda tensor: not isinstance(tensor, torch.nn.Parameter))
    of_copies = manager.offload
    manager.offload = lambda self, tensor, pin_memory=True, use_cpu_pool=True: of_copies(self, tensor, False, use_cpu_pool)
    states = types.SimpleNamespace(fork=lambda *_: contextlib.nullcontext())
    tensor_parallel.get_cuda_rng_tracker = lambda: states
    from megatron.core.tensor_parallel import random

    random.FP8GlobalStateManager = types.SimpleNamespace(is_fp8_enabled=lambda: False, get_fp8_recipe=lambda: None)
    random.fp8_autocast = random.activation_recompute_forward = lambda **_: contextlib.nullcontext()
    random._get_all_rng_states = lambda: ()
    random._set_all_rng_states = lambda *_: None
    random._fork_rng = contextlib.nullcontext
    WrappedTorchNorm.__new__ = lambda cls, config, hidden_size, eps=1e-5, **_: torch.nn.LayerNorm(hidden_size, eps=eps)
    torch.nn.LayerNorm.forward = lambda self, x: Norm.apply(x, self.weight, self.bias)
    transformer_block.LayerNormImpl = WrappedTorchNorm
    attention.TELinear = attention.TELinear or type("Absent", (), {})
    FusedScaleMaskSoftmax.forward = lambda self, scores, mask, softmax_offset=None: Softmax.apply(scores)


class Core(torch.nn.Module):
    """Attention with values narrower than keys, by the products that Transformer Engine's unfused attention is made of."""

    def __init__(self, config, layer_number, attn_mask_type, attention_type, softmax_scale=None, k_channels=None, v_channels=None, **_):
        super().__init__()

    def forward(self, query, key, value, *_, **__):
        length, batch, heads, _ = query.shape
        rows = [x.reshape(length, batch * heads, -1).transpose(0, 1) for x in (query, key, value)]
        scores = torch.empty(batch * heads, length, length, dtype=query.dtype)
        scores = torch.baddbmm(scores, rows[0], rows[1].transpose(1, 2), beta=0.0)
        out = torch.bmm(Softmax.apply(scores), rows[2])
        return out.view(batch, heads, length, -1).permute(2, 0, 1, 3).contiguous().view(length, batch, -1)


def build(case):
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.transformer.transformer_config import MLATransformerConfig, TransformerConfig

    common = dict(
        num_layers=LAYERS, hidden_size=case["h"], num_attention_heads=case["a"], ffn_hidden_size=case["f"], add_bias_linear=False,
        gated_linear_unit=True, activation_func=torch.nn.functional.silu, bias_activation_fusion=False, normalization="LayerNorm",
        hidden_dropout=0.0, attention_dropout=0.0, params_dtype=torch.bfloat16, bf16=True, pipeline_dtype=torch.bfloat16,
        use_cpu_initialization=True, gradient_accumulation_fusion=False, masked_softmax_fusion=True, attention_softmax_in_fp32=False,
        apply_rope_fusion=False, fine_grained_activation_offloading=True, offload_modules=case["modules"],
        min_offloaded_tensor_size=LEAST, qk_layernorm=case["normed"],
    )
    if case["recompute"]:
        common.update(recompute_granularity="selective", recompute_modules=case["recompute"])
    latent = case.get("latent")
    if latent:
        config = MLATransformerConfig(
            multi_latent_attention=True, q_lora_rank=latent["q"], kv_lora_rank=latent["kv"], qk_head_dim=latent["plain"],
            qk_pos_emb_head_dim=latent["rotary"], v_head_dim=latent["value"], rope_type="rope", **common
        )
    else:
        config = TransformerConfig(num_query_groups=case["k"], **common)
    spec = get_gpt_layer_local_spec(normalization="LayerNorm", multi_latent_attention=bool(latent), qk_layernorm=case["normed"])
    if latent:
        spec.submodules.self_attention.submodules.core_attention = Core
    return GPTModel(
        config=config, transformer_layer_spec=spec, vocab_size=case["vocab"], max_sequence_length=case["s"],
        position_embedding_type="none" if latent else "rope", share_embeddings_and_output_weights=False, parallel_output=True,
    ).bfloat16()


def on_device(chunk):
    """Bytes of a chunk's groups that are on the device and would go to the host, each storage once."""
    held = {}
    for group in chunk.offload_groups:
        for tensor in group._tensors.values():
            if isinstance(tensor, torch.Tensor) and chunk.tensor_need_offloading_checker(tensor):
                storage = tensor.untyped_storage()
                held[storage.data_ptr()] = storage.nbytes()
    return sum(held.values())


def record(case):
    from megatron.core.pipeline_parallel import fine_grained_activation_offload as offload

    torch.manual_seed(1)
    model = build(case)
    model.train()
    b, s = case["b"], case["s"]
    tokens = torch.randint(0, case["vocab"], (b, s))
    positions = torch.arange(s).repeat(b, 1)
    mask = torch.ones(1, 1, s, s, dtype=torch.bool).triu(1)
    offload.PipelineOffloadManager.reset_instance()
    manager = offload.PipelineOffloadManager.get_instance()
    seen, running = [], [None]
    chunks = lambda: manager._cached_chunks_forward

    def look():
        own = chunks()[running[0]]
        seen.append([on_device(own), sum(on_device(other) for other in chunks() if other is not own)])

    left = {}
    copy = offload.ChunkOffloadHandler.bulk_offload_group

    def copied(self, group):
        held = {}
        for tensor in group._tensors.values():
            if self.tensor_need_offloading_checker(tensor):
                held[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        left.setdefault(group._name, sum(held.values()))
        copy(self, group)

    offload.ChunkOffloadHandler.bulk_offload_group = copied
    start = offload.ChunkOffloadHandler.on_group_start_backward

    def started(self):
        start(self)
        look()

    offload.ChunkOffloadHandler.on_group_start_backward = started
    found = {}
    for step in range(3):
        losses = {}
        for word in case["order"].split():
            index = int(word[1:])
            if word[0] == "F":
                losses[index] = model(tokens, positions, mask, labels=tokens).sum()
            else:
                running[0] = index
                seen.clear()
                look()
                losses.pop(index).backward()
                if index == 1:
                    found["held"] = list(seen)
        if step == 0:
            sent = {}
            for group in chunks()[0].offload_groups:
                sent.setdefault(group._name, []).append(group.total_offload_bytes)
            found["sent"] = {name: of[0] for name, of in sent.items() if len(set(of)) == 1}
            assert len(found["sent"]) == len(sent), sent
        offload.FineGrainedActivationOffloadingInterface.reset()
    offload.ChunkOffloadHandler.on_group_start_backward = start
    offload.ChunkOffloadHandler.bulk_offload_group = copy
    return dict(left=left, **found)


AT_ONCE = "F0 B0 F1 B1 F2 B2"
PIPELINED = "F0 F1 B0 F2 B1 B2"
ALL = ["attn_norm", "qkv_linear", "core_attn", "attn_proj", "mlp_norm"]


def cases():
    plain = dict(s=64, b=2, h=128, a=8, k=8, f=352, vocab=1024, normed=False, recompute=[])
    grouped = dict(plain, k=2, normed=True, b=1)
    latent = dict(
        s=64, b=1, h=128, a=4, k=4, f=352, vocab=1024, normed=True, recompute=[],
        latent=dict(q=96, kv=64, plain=32, rotary=16, value=32),
    )
    for base in (plain, grouped, latent):
        for order in (AT_ONCE, PIPELINED):
            yield dict(base, modules=ALL, order=order)
    yield dict(plain, modules=["core_attn", "attn_proj"], order=PIPELINED)
    yield dict(plain, modules=["core_attn"], order=AT_ONCE)
    yield dict(latent, modules=ALL, recompute=["mla_up_proj", "layernorm"], order=PIPELINED)


def main():
    answers, sys.stdout = sys.stdout, sys.stderr
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", RANK="0", WORLD_SIZE="1")
    on_the_cpu()
    torch.distributed.init_process_group("gloo", rank=0, world_size=1)
    from megatron.core import parallel_state
    import megatron.core.transformer.transformer_layer  # noqa: F401

    parallel_state.initialize_model_parallel()
    print(f"# torch {torch.__version__.split('+')[0]}, Megatron-LM d98e8a64dd; {LAYERS} layers, tensors of {LEAST} elements or more", file=answers)
    print("# s b h a k f vocab, qk norm, latent (q kv plain rotary value), recomputed, modules, order, sent, left, held", file=answers)
    for case in cases():
        found = record(case)
        by_module = lambda of: " ".join(f"{name}={bytes}" for name, bytes in of.items())
        cells = [
            " ".join(str(case[name]) for name in ("s", "b", "h", "a", "k", "f", "vocab")), str(case["normed"]).lower(),
            " ".join(map(str, case.get("latent", {}).values())), " ".join(case["recompute"]), " ".join(case["modules"]), case["order"],
            by_module(found["sent"]), by_module(found["left"]), " ".join(f"{own}+{others}" for own, others in found["held"]),
        ]
        print("\t".join(cells), file=answers, flush=True)


if __name__ == "__main__":
    main()
