"""What is alive beyond the weights at the fullest moment of `generate`, as TRL's GRPO calls it without vLLM.

Run: python tests/record/generation_peak.py > tests/data/activations/generation_peak.tsv
Needs torch, transformers and peft, on a CPU. Every tensor that an operation makes is followed until nothing refers to its storage
(`evaluation_peak.py`). Prompts are of different lengths, padded on the left; settings of sampling are TRL's
(`trl/trainer/grpo_trainer.py`: temperature and top_p 1, top_k 0) but for what the filters say, and no sequence ends before the last
token.
Columns: format of the weights, whether torch.autocast runs the model in bf16, rank of adapters on all linear layers (0: none),
groups of keys and values, sequences, tokens of a prompt, tokens of a response, vocabulary, what filters logits, bytes at the fullest moment, and the operation that ends there.
"""

import gc
import itertools

import torch
import transformers
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, GenerationConfig, LlamaConfig

from evaluation_peak import Alive

LAYERS, WIDTH, INNER, HEADS = 3, 64, 160, 4
FILTERS = dict(temperature=0.7, top_k=50, top_p=0.9, min_p=0.1)

if __name__ == "__main__":
    print(f"# torch {torch.__version__}, transformers {transformers.__version__}")
    print(f"# {LAYERS} layers, width {WIDTH}, MLP {INNER}, {HEADS} heads, untied")
    kinds = [(torch.bfloat16, False), (torch.float32, False), (torch.float32, True)]
    shapes = [(4, 24, 40, 97), (3, 16, 8, 6400), (2, 120, 8, 97), (5, 8, 90, 512)]
    cases = [(*case, ()) for case in itertools.product(kinds, [0, 4], [2, 4], shapes)]
    names = list(FILTERS)
    cases += [
        ((dtype, False), 0, 2, shapes[1], chosen)
        for dtype in [torch.bfloat16, torch.float32]
        for times in [1, 2, 4]
        for chosen in itertools.combinations(names, times)
    ]
    for (dtype, autocast), rank, groups, (rows, prompt, response, vocabulary), filters in cases:
        torch.manual_seed(0)
        config = LlamaConfig(
            vocab_size=vocabulary,
            hidden_size=WIDTH,
            intermediate_size=INNER,
            num_hidden_layers=LAYERS,
            num_attention_heads=HEADS,
            num_key_value_heads=groups,
            tie_word_embeddings=False,
            eos_token_id=None,
            pad_token_id=0,
        )
        model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").to(dtype)
        if rank:
            # PEFT's defaults: adapters in fp32.
            model = get_peft_model(model, LoraConfig(r=rank, target_modules="all-linear"))
        ids = torch.randint(1, vocabulary, (rows, prompt))
        mask = torch.ones_like(ids)
        ids[0, :3], mask[0, :3] = 0, 0
        idle = dict(temperature=1.0, top_p=1.0, top_k=0)
        sampling = GenerationConfig(
            max_new_tokens=response,
            do_sample=True,
            pad_token_id=0,
            disable_compile=True,
            **(idle | {name: FILTERS[name] for name in filters}),
        )
        known = [t.untyped_storage()._cdata for t in [*model.parameters(), *model.buffers(), ids, mask]]
        gc.collect()
        # accelerate puts autocast around each call of the model alone.
        if autocast:
            forward = model.forward
            model.forward = torch.autocast("cpu", torch.bfloat16)(forward)
        with torch.no_grad(), Alive(known) as alive:
            model.generate(input_ids=ids, attention_mask=mask, generation_config=sampling)
        name = str(dtype).removeprefix("torch.")
        print(name, autocast, rank, groups, rows, prompt, response, vocabulary, " ".join(filters) or "-", alive.most, alive.where, sep="\t")
