"""Records what PEFT's adapter of a word embedding keeps for backward, and its weights, on a CPU, one JSON line a case.

    python embedding_adapters.py > ../data/activations/embedding_adapters.jsonl

Needs torch 2.11.0, peft 0.21.2, transformers 5.17.0. The model is an embedding alone, given its adapter by PEFT's own `get_peft_model`; adapters
are in fp32 unless a case says otherwise (`autocast_adapter_dtype`), and autocast to bf16 is on where a case says so. Parameters are left out.
"""

import json

import peft
import torch
from torch import nn


class Words(nn.Module):
    def __init__(self, vocabulary, hidden, dtype):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocabulary, hidden, dtype=dtype)

    def forward(self, ids):
        return self.embed_tokens(ids)


def case(samples, tokens, rank, autocast, half):
    hidden, vocabulary = 64, 512
    config = peft.LoraConfig(r=rank, target_modules=["embed_tokens"], lora_dropout=0.0)
    model = peft.get_peft_model(Words(vocabulary, hidden, torch.bfloat16), config, autocast_adapter_dtype=not half)
    own = {value.untyped_storage().data_ptr() for value in model.parameters()}
    ids, seen = torch.randint(0, vocabulary, (samples, tokens)), {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            seen.setdefault(storage.data_ptr(), (storage.nbytes(), storage))
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor), torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        out = model(ids)
    assert out.requires_grad and out.dtype == torch.bfloat16
    trained = {name.split(".")[-2]: list(value.shape) for name, value in model.named_parameters() if value.requires_grad}
    return {
        "samples": samples, "tokens": tokens, "rank": rank, "autocast": autocast, "adapters": "bf16" if half else "fp32",
        "hidden": hidden, "vocabulary": vocabulary, "kept": sorted(size for size, _ in seen.values()), "trained": trained,
    }


for size in [(2, 32, 8), (1, 128, 16)]:
    for autocast, half in [(True, False), (True, True), (False, True), (False, False)]:
        print(json.dumps(case(*size, autocast, half)))
