"""Counts the kernels of one layer of other families than Llama as PyTorch dispatches them, and the bytes that each reads and writes
(`kernels_of_a_layer.py`, whose rules these are), forward and backward: experts, other norms, caps, fused projections, biases.

    pip install torch==2.15.0 transformers==5.17.0  # Apertus and Gemma 4: 5.23.0
    python kernels_of_families.py > ../data/measured/kernels_of_families.jsonl

Runs on a CPU. A layer is run by itself with what its model hands it. Weights of norms have too few elements to count.
"""
import contextlib
import json
import sys

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM

from kernels_of_a_layer import B, H, S, Count

LEAST = 8192
COMMON = dict(hidden_size=H, intermediate_size=768, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, head_dim=64, vocab_size=512)
ALL_HEADS = {**COMMON, "num_key_value_heads": 4}
ROUTED = dict(num_experts=32, num_experts_per_tok=2, moe_intermediate_size=128)
GEMMA4 = dict(COMMON, global_head_dim=96, hidden_size_per_layer_input=0, pad_token_id=0)
# Model type, what its configuration says, the layer, attention.
CASES = {
    "mixtral": ("mixtral", {**COMMON, "intermediate_size": 128, "num_local_experts": 32, "num_experts_per_tok": 2}, 1, "sdpa"),
    "qwen3_moe": ("qwen3_moe", {**COMMON, **ROUTED, "norm_topk_prob": True}, 1, "sdpa"),
    "olmoe": ("olmoe", {**ALL_HEADS, "intermediate_size": 128, "num_experts": 32, "num_experts_per_tok": 2, "norm_topk_prob": False}, 1, "sdpa"),
    "qwen2_moe": ("qwen2_moe", {**COMMON, **ROUTED, "norm_topk_prob": False, "shared_expert_intermediate_size": 512, "decoder_sparse_step": 1}, 1, "sdpa"),
    "deepseek_v2": ("deepseek_v2", {**ALL_HEADS, "moe_intermediate_size": 128, "n_routed_experts": 32, "num_experts_per_tok": 2, "n_shared_experts": 2,
                                    "n_group": 1, "topk_group": 1, "topk_method": "greedy", "first_k_dense_replace": 1, "kv_lora_rank": 128, "q_lora_rank": None,
                                    "qk_nope_head_dim": 64, "qk_rope_head_dim": 32, "v_head_dim": 64, "head_dim": 32}, 1, "sdpa"),
    "gpt_oss": ("gpt_oss", {**COMMON, "intermediate_size": 128, "num_local_experts": 32, "num_experts_per_tok": 2}, 1, "eager"),
    "gemma2": ("gemma2", COMMON, 1, "eager"),
    "gemma3": ("gemma3_text", COMMON, 1, "sdpa"),
    "phi3": ("phi3", {**ALL_HEADS, "pad_token_id": 0}, 1, "sdpa"),
    "qwen2": ("qwen2", COMMON, 1, "sdpa"),
    "olmo2": ("olmo2", ALL_HEADS, 1, "sdpa"),
    "smollm3": ("smollm3", {**COMMON, "pad_token_id": 0}, 1, "sdpa"),
    "smollm3 unrotated": ("smollm3", {**COMMON, "pad_token_id": 0}, 3, "sdpa"),
    "granite": ("granite", COMMON, 1, "sdpa"),
    "gpt_neox": ("gpt_neox", {**ALL_HEADS, "rotary_pct": 0.5}, 1, "sdpa"),
    "apertus": ("apertus", {**ALL_HEADS, "pad_token_id": 0}, 1, "sdpa"),
    "gemma4": ("gemma4_text", {**GEMMA4}, 1, "sdpa"),
    "gemma4 full": ("gemma4_text", {**GEMMA4, "attention_k_eq_v": True}, 3, "sdpa"),
    "gemma4_moe": ("gemma4_text", {**GEMMA4, "enable_moe_block": True, "num_experts": 32, "top_k_experts": 2, "moe_intermediate_size": 128}, 1, "sdpa"),
    "bloom": ("bloom", dict(hidden_size=H, n_layer=4, n_head=4, vocab_size=512, hidden_dropout=0.0, attention_dropout=0.0), 1, "eager"),
}


def layers(model):
    return model.model.layers if hasattr(model, "model") else model.gpt_neox.layers if hasattr(model, "gpt_neox") else model.transformer.h


def passes(kind, said, index, attention, dtype, autocast):
    config = AutoConfig.for_model(kind, **said)
    model = AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation=attention).train()
    block, given = layers(model)[index], []
    handle = block.register_forward_pre_hook(lambda module, args, kwargs: given.append((args, kwargs)), with_kwargs=True)
    under = lambda: torch.autocast("cpu", torch.bfloat16) if autocast else contextlib.nullcontext()
    with under():
        model(torch.randint(0, 512, (B, S)), use_cache=False)
    handle.remove()
    args, kwargs = given[0]
    hidden = torch.randn(B, S, H, dtype=dtype, requires_grad=True)
    if args:
        args = (hidden, *args[1:])
    else:
        kwargs["hidden_states"] = hidden
    free = lambda value: value.detach() if isinstance(value, torch.Tensor) and value is not hidden else value
    args, kwargs = [free(value) for value in args], {key: free(value) for key, value in kwargs.items()}
    with Count(LEAST) as forward, under():
        out = block(*args, **kwargs)
    out = out[0] if isinstance(out, tuple) else out
    gradient = torch.randn_like(out)
    with Count(LEAST) as backward:
        out.backward(gradient)
    return config, [forward.kernels, forward.bytes], [backward.kernels, backward.bytes]


if __name__ == "__main__":
    print(json.dumps({"torch": torch.__version__, "transformers": transformers.__version__, "b": B, "s": S}))
    for name, (kind, said, index, attention) in CASES.items():
        for label, dtype, autocast in (("bf16", torch.bfloat16, False), ("bf16 autocast", torch.bfloat16, True), ("fp32 autocast", torch.float32, True)):
            try:
                config, forward, backward = passes(kind, said, index, attention, dtype, autocast)
            except Exception as error:
                print(name, label, repr(error)[:300], file=sys.stderr)
                continue
            print(json.dumps({"id": f"{name} {label}", "layer": index, "dtype": label.split()[0], "autocast": autocast, "attn": attention,
                              "forward": forward, "backward": backward, "config": {"model_type": kind, **said}}))
