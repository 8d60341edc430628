"""Writes down every allocation and free of two training steps, in their order, without a GPU and without the memory: tensors are fake.

    pip install torch==2.15.0 transformers==5.23.0 accelerate==1.15.0
    python allocations.py meta-llama/Llama-3.2-1B 4 2048 checkpoints > ../data/torch/allocations-llama-1b.txt
    python allocations.py Qwen/Qwen2.5-0.5B 4 2048 > ../data/torch/allocations-qwen-0.5b.txt

One line of numbers: the bytes of a storage that is made, or with a minus how many allocations ago the one that is freed was made. The
model is built, then each step does what transformers' Trainer does with `--bf16` over 16-bit weights: forward under autocast with
outputs cast to fp32, backward, clipping, AdamW (fused), gradients dropped. Fake tensors are a CPU's, which has the same storages; cuBLAS'
two workspaces of 32 MiB, which PyTorch's allocator holds on Hopper, stand in front of forward and of backward. The runs are 005 and 015 of
`trainer_on_gpu.py`, where an H200 reserved 22,630,367,232 and 29,966,204,928 bytes.
"""

import sys, types, weakref
import torch, torch.nn.functional as F
from accelerate.utils import convert_outputs_to_fp32
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config
import transformers.models.llama.modeling_llama as llama, transformers.models.qwen2.modeling_qwen2 as qwen2

WORKSPACE = 32 << 20
MODELS = {
    "meta-llama/Llama-3.2-1B": lambda: LlamaConfig(hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8, head_dim=64, vocab_size=128256,
                                                   max_position_embeddings=131072, tie_word_embeddings=True),
    "Qwen/Qwen2.5-0.5B": lambda: Qwen2Config(hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14, num_key_value_heads=2, vocab_size=151936,
                                             max_position_embeddings=32768, tie_word_embeddings=True),
}


class Storages(TorchDispatchMode):
    def __init__(self): super().__init__(); self.told, self.alive, self.count = [], {}, 0
    def __torch_dispatch__(self, function, kinds, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, torch.Tensor): self.see(tensor.untyped_storage())
        return out
    def see(self, storage):
        key = storage._cdata
        if key in self.alive: return
        self.alive[key] = self.count; self.count += 1
        self.told.append(storage.nbytes())
        weakref.finalize(storage, self.gone, key)
    def gone(self, key): self.told.append(self.alive.pop(key) - self.count)


def attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    # The fused kernel keeps its output and the log-sum-exp, on a CPU as on a GPU.
    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, True, scale=scale)[0]


F.scaled_dot_product_attention = attention
# A fake tensor cannot say that nothing is padded, so that no mask is needed.
llama.create_causal_mask = qwen2.create_causal_mask = lambda *args, **kwargs: None

name, batch, length = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
storages = Storages()
with FakeTensorMode(allow_non_fake_inputs=True), storages:
    model = AutoModelForCausalLM.from_config(MODELS[name](), dtype=torch.bfloat16, attn_implementation="sdpa")
    if "checkpoints" in sys.argv: model.gradient_checkpointing_enable(dict(use_reentrant=False))
    model.train()
    model.forward = types.MethodType(torch.autocast("cpu", torch.bfloat16)(model.forward.__func__), model)
    model.forward = types.MethodType(convert_outputs_to_fp32(model.forward.__func__), model)
    parameters = list(model.parameters())
    groups = [dict(params=[p for p in parameters if (p.ndim > 1) == wide], weight_decay=0.0) for wide in (True, False)]
    optimizer = torch.optim.AdamW(groups, lr=1e-4, fused=True)
    workspaces = []
    for step in range(2):
        tokens, labels = (torch.empty(batch, length, dtype=torch.int64) for _ in range(2))
        if not workspaces: workspaces.append(torch.empty(WORKSPACE, dtype=torch.uint8))
        out = model(input_ids=tokens, labels=labels, num_items_in_batch=torch.tensor(batch * length))
        loss = out["loss"]
        if len(workspaces) == 1: workspaces.append(torch.empty(WORKSPACE, dtype=torch.uint8))
        del out, tokens, labels
        loss.backward()
        last = loss.detach(); del loss
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        model.zero_grad()
    print(*storages.told)
