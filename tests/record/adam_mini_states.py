"""What Adam-mini holds for the parameters of a small model, counted from its own states: one JSON line.

    pip install torch==2.15.0 transformers==5.23.0 adam-mini==1.1.1
    python adam_mini_states.py

Its arguments are those of LLaMA-Factory (`train/trainer_utils.py:_create_adam_mini_optimizer`). One process; of norms it takes a mean over
the whole tensor, of queries and keys one for each head, of other matrices one for each row, of biases one for each element.
"""

import json

import torch
from adam_mini import Adam_mini
from transformers import Qwen2Config, Qwen2ForCausalLM

sizes = dict(hidden_size=64, intermediate_size=192, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=256)
model = Qwen2ForCausalLM(Qwen2Config(**sizes, tie_word_embeddings=False)).float()
optimizer = Adam_mini(
    named_parameters=model.named_parameters(), lr=1e-4, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, model_sharding=False,
    dim=64, n_heads=4, n_kv_heads=2, verbose=False,
)
tokens = torch.randint(0, 256, (1, 16))
model(input_ids=tokens, labels=tokens).loss.backward()
optimizer.step()
held = {"first": 0, "means": 0}
for group in optimizer.param_groups:
    for parameter in group["params"]:
        for name, state in optimizer.state[parameter].items():
            if torch.is_tensor(state) and name in ("m", "v", "vmean"):
                held["first" if name == "m" else "means"] += state.untyped_storage().nbytes()
print(json.dumps({**sizes, "parameters": sum(p.numel() for p in model.parameters()), **held}))
