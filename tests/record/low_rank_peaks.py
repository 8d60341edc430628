"""The most bytes alive in a backward pass and in a step where gradients are projected to a lower rank (GaLore), one line a case.

    pip install torch==2.15.0 transformers==5.23.0 galore-torch==1.0
    python low_rank_peaks.py > ../data/activations/low_rank_peaks.tsv

A Llama in bf16 whose tensors are fake, so that it needs neither a GPU nor the memory; attention keeps what the fused kernel keeps. The
second of two steps, with a new projection in each; of its workspaces nothing is seen. `layerwise` steps each weight as soon as its gradient is
there, as transformers' Trainer and LLaMA-Factory do.
"""

import weakref

import torch
import torch.nn.functional as F
import transformers.models.llama.modeling_llama as llama
from galore_torch import GaLoreAdamW
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import AutoModelForCausalLM, LlamaConfig

KWARGS = dict(rank=128, update_proj_gap=1, scale=1.0, proj_type="std")
CASES = [
    # vocabulary, width, layers, sequences, tokens of each, checkpoints, layerwise, tied
    (32000, 2048, 8, 1, 512, True, True, False),
    (32000, 2048, 8, 1, 512, False, True, False),
    (32000, 2048, 8, 1, 512, False, False, False),
    (32000, 2048, 8, 2, 2048, False, True, False),
    (4000, 4096, 8, 1, 4096, True, True, False),
    (4000, 4096, 8, 1, 256, False, True, False),
    (64000, 2048, 8, 1, 512, False, True, True),
    (128256, 4096, 32, 1, 2048, True, True, False),
]


class Storages(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.alive, self.now, self.most = {}, 0, 0

    def __torch_dispatch__(self, function, kinds, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, torch.Tensor):
                self.see(tensor.untyped_storage())
        return out

    def see(self, storage):
        if storage._cdata in self.alive:
            return
        self.alive[storage._cdata] = storage.nbytes()
        self.now += storage.nbytes()
        self.most = max(self.most, self.now)
        weakref.finalize(storage, self.gone, storage._cdata)

    def gone(self, key):
        self.now -= self.alive.pop(key)


def attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, True, scale=scale)[0]


F.scaled_dot_product_attention = attention
# A fake tensor cannot say that nothing is padded, so that no mask is needed.
llama.create_causal_mask = lambda *args, **kwargs: None


def case(vocabulary, width, layers, sequences, tokens, checkpoints, layerwise, tied):
    storages = Storages()
    sizes = dict(hidden_size=width, intermediate_size=width * 7 // 2, num_attention_heads=width // 128, num_key_value_heads=width // 512)
    with FakeTensorMode(allow_non_fake_inputs=True), storages:
        config = LlamaConfig(**sizes, num_hidden_layers=layers, vocab_size=vocabulary, tie_word_embeddings=tied)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, attn_implementation="sdpa")
        if checkpoints:
            model.gradient_checkpointing_enable(dict(use_reentrant=False))
        model.train()
        projected = {parameter for name, parameter in model.named_parameters() if "proj" in name}
        others = [parameter for parameter in model.parameters() if parameter not in projected]
        optimizers = {}
        if layerwise:
            for parameter in model.parameters():
                group = dict(params=[parameter], **(KWARGS if parameter in projected else {}))
                optimizers[parameter] = GaLoreAdamW([group], lr=1e-5, no_deprecation_warning=True)

            def hook(parameter):
                optimizers[parameter].step()
                optimizers[parameter].zero_grad()

            for parameter in model.parameters():
                parameter.register_post_accumulate_grad_hook(hook)
        else:
            chosen = [parameter for parameter in model.parameters() if parameter in projected]
            optimizer = GaLoreAdamW([dict(params=others), dict(params=chosen, **KWARGS)], lr=1e-5, no_deprecation_warning=True)
        for _ in range(2):
            storages.most = 0
            batch = torch.empty(sequences, tokens, dtype=torch.int64)
            loss = model(input_ids=batch, labels=batch, use_cache=False)["loss"]
            loss.backward()
            del loss
            if not layerwise:
                optimizer.step()
                optimizer.zero_grad()
    return storages.most


if __name__ == "__main__":
    print(f"# torch {torch.__version__}, galore-torch 1.0")
    for one in CASES:
        print(*[int(value) for value in one], case(*one), sep="\t")
