"""The most bytes alive in a backward pass that makes gradients layer by layer, one line a case.

    pip install torch==2.15.0 transformers==5.23.0
    python layer_gradients.py > ../data/activations/layer_gradients.tsv

A Llama in bf16 whose tensors are fake, so that it needs neither a GPU nor the memory; attention keeps what the fused kernel keeps. The second of
two passes, each from gradients that are not there; of workspaces nothing is seen. Layers are recomputed, so that the peak stands in one.
"""

import torch
import torch.nn.functional as F
import transformers.models.llama.modeling_llama as llama
from low_rank_peaks import Storages, attention
from torch._subclasses.fake_tensor import FakeTensorMode
from transformers import AutoModelForCausalLM, LlamaConfig

# Vocabulary, width, layers, sequences, tokens of each.
CASES = [(2000, 2048, 4, 4, 2048), (2000, 2048, 4, 8, 2048), (2000, 1024, 6, 2, 1024)]

F.scaled_dot_product_attention = attention
llama.create_causal_mask = lambda *args, **kwargs: None


def case(vocabulary, width, layers, sequences, tokens):
    storages = Storages()
    sizes = dict(hidden_size=width, intermediate_size=width * 7 // 2, num_attention_heads=width // 128, num_key_value_heads=width // 512)
    with FakeTensorMode(allow_non_fake_inputs=True), storages:
        config = LlamaConfig(**sizes, num_hidden_layers=layers, vocab_size=vocabulary, tie_word_embeddings=False)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, attn_implementation="sdpa")
        model.gradient_checkpointing_enable(dict(use_reentrant=False))
        model.train()
        for _ in range(2):
            storages.most = 0
            batch = torch.empty(sequences, tokens, dtype=torch.int64)
            loss = model(input_ids=batch, labels=batch, use_cache=False)["loss"]
            loss.backward()
            del loss
            for parameter in model.parameters():
                parameter.grad = None
    return storages.most


if __name__ == "__main__":
    print(f"# torch {torch.__version__}")
    for one in CASES:
        print(*one, case(*one), sep="\t")
