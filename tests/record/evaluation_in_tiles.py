"""What layers hold at most in a forward pass without gradients, as a loss in tiles leaves them to (TRL 1.15 and later): one line a case.

`python evaluation_in_tiles.py > ../data/activations/evaluation_in_tiles.tsv` with torch 2.15.0 and transformers 5.23.0 on a CPU: weights,
autocast, width, MLP, sequences, tokens, bytes held at most beside weights and what was given.
"""

import contextlib

import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM

from trl_kto import Held


def most(width, ffn, sequences, tokens, kind, autocast):
    config = LlamaConfig(hidden_size=width, intermediate_size=ffn, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, vocab_size=512,
                         max_position_embeddings=4096, attn_implementation="sdpa")
    model = LlamaForCausalLM(config).to(kind)
    ids = torch.randint(0, config.vocab_size, (sequences, tokens))
    mask = torch.ones_like(ids)
    held = Held()
    held.seen.update(tensor.untyped_storage()._cdata for tensor in [ids, mask, *model.parameters(), *model.buffers()])
    context = torch.autocast("cpu", dtype=torch.bfloat16) if autocast else contextlib.nullcontext()
    with context, torch.no_grad(), held:
        model.base_model(input_ids=ids, attention_mask=mask, use_cache=False)
    return held.most


def main():
    print(f"# torch {torch.__version__}, transformers {transformers.__version__}")
    print("# 3 layers, 4 heads in 2 groups, 512 words")
    for width, ffn in [(192, 1536), (256, 2048)]:
        for sequences, tokens in [(8, 512), (16, 256)]:
            for kind, autocast in [(torch.bfloat16, False), (torch.float32, True)]:
                held = most(width, ffn, sequences, tokens, kind, autocast)
                print(str(kind).removeprefix("torch."), autocast, width, ffn, sequences, tokens, held, sep="\t")


if __name__ == "__main__":
    main()
