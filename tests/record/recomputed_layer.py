"""What is alive at most while a recomputed layer of transformers runs backward, one JSON line a case.

`python recomputed_layer.py > ../data/activations/recomputed_layer.jsonl` with torch 2.15.0, transformers 5.23.0 and peft 0.21.2 on a CPU. A Llama of
one layer in bf16 under autocast, checkpointed as the Trainer does it (not reentrant), trains LoRA in fp32 on all linear layers. Bytes are those of
torch's own allocator: of the whole of backward, beside weights and token numbers.
"""

import json

import peft
import torch
import transformers
from torch.profiler import ProfilerActivity, profile, record_function


def case(hidden, inner, heads, groups, sequences, tokens, rank):
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=hidden, intermediate_size=inner, num_hidden_layers=1, num_attention_heads=heads, num_key_value_heads=groups,
        head_dim=hidden // heads, vocab_size=64, use_cache=False,
    )
    model = transformers.LlamaModel(config).to(torch.bfloat16)
    model.gradient_checkpointing_enable({"use_reentrant": False})
    model.enable_input_require_grads()
    modules = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    model = peft.get_peft_model(model, peft.LoraConfig(r=rank, target_modules=modules, lora_dropout=0.0)).train()
    ids = torch.randint(0, 64, (sequences, tokens))

    def forward():
        with torch.autocast("cpu", torch.bfloat16):
            return model(input_ids=ids).last_hidden_state.sum()

    # Gradients of a first step stay, so that none is made while it is watched.
    forward().backward()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        loss = forward()
        with record_function("backward begins"):
            loss.backward()
    now, most, begun = 0, 0, False
    for event in sorted(recorded.profiler.kineto_results.events(), key=lambda event: event.start_ns()):
        begun |= event.name() == "backward begins"
        if event.name() == "[memory]":
            now += event.nbytes()
            most = max(most, now) if begun else most
    return {
        "hidden": hidden, "inner": inner, "heads": heads, "groups": groups, "sequences": sequences, "tokens": tokens, "rank": rank,
        "held_in_backward_at_most": most,
    }


def main():
    print(json.dumps({"torch": torch.__version__, "transformers": transformers.__version__, "peft": peft.__version__}))
    for sizes in [(256, 1024, 4, 1, 4, 512, 4), (256, 1024, 4, 4, 2, 256, 8), (512, 1536, 8, 2, 1, 1024, 16)]:
        print(json.dumps(case(*sizes)))


if __name__ == "__main__":
    main()
