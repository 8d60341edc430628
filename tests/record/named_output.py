"""What a training loop holds that keeps a reference to the model's output until it has the next one, and what an evaluation
holds whose model fills a cache: a Llama of two layers in bf16.

Run: python tests/record/named_output.py > tests/data/activations/named_output.tsv
Needs torch and transformers, on a CPU. Every tensor that an operation makes is followed until nothing refers to its storage.
Columns: what runs (`loss`: `loss = model(...).loss`, `output`: `output = model(...)`, both over three micro-batches of which the
last is counted; `evaluation`, `cache`: forward without gradients; `evaluations`, `caches`: the same over two batches as
`outputs = model(...)`, of which the second is counted), sequences, tokens of each, vocabulary, bytes at the fullest moment besides
weights and their gradients, and the operation that ends there.
"""

import gc

import torch
import transformers
from evaluation_peak import Alive
from transformers import AutoModelForCausalLM, LlamaConfig


def model_of(vocabulary):
    config = LlamaConfig(vocab_size=vocabulary, hidden_size=64, intermediate_size=160, num_hidden_layers=2,
                         num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=False, use_cache=False)
    return AutoModelForCausalLM.from_config(config).to(torch.bfloat16)


def training(model, ids, named):
    """The fullest moment of the third micro-batch: gradients, which are taken off, exist from the first on."""
    known = [t.untyped_storage()._cdata for t in [*model.parameters(), *model.buffers(), ids]]
    gc.collect()
    output = None
    with Alive(known) as alive:
        for _ in range(3):
            alive.most = 0
            output = model(input_ids=ids, labels=ids, use_cache=False)
            loss = output.loss
            if not named:
                output = None
            loss.backward()
            del loss
    alive.most -= sum(p.grad.untyped_storage().nbytes() for p in model.parameters())
    return alive


def evaluation(model, ids, cache, batches):
    known = [t.untyped_storage()._cdata for t in [*model.parameters(), *model.buffers(), ids]]
    gc.collect()
    model.eval()
    outputs = None
    with torch.no_grad(), Alive(known) as alive:
        for _ in range(batches):
            alive.most = 0
            outputs = model(input_ids=ids, labels=ids, use_cache=cache)
            loss = outputs.loss
    del outputs, loss
    return alive


if __name__ == "__main__":
    print(f"# torch {torch.__version__}, transformers {transformers.__version__}")
    print("# 2 layers, width 64, MLP 160, 4 heads in 2 groups, untied, bf16")
    for batch, sequence, vocabulary in [(2, 128, 4000), (3, 96, 6400), (1, 256, 5120)]:
        ids = torch.randint(0, vocabulary, (batch, sequence))
        for what in ("loss", "output", "evaluation", "cache", "evaluations", "caches"):
            model = model_of(vocabulary)
            if what in ("loss", "output"):
                alive = training(model, ids, what == "output")
            else:
                alive = evaluation(model, ids, what.startswith("cache"), 2 if what.endswith("s") else 1)
            print(what, batch, sequence, vocabulary, alive.most, alive.where, sep="\t")
