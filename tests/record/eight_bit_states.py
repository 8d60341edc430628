"""What bitsandbytes' optimizers hold for each parameter of a model that a Trainer of transformers trains, in 8 and in 32 bits, one JSON line a
case.

    pip install torch==2.15.0 transformers==5.23.0 peft==0.21.2 bitsandbytes==0.50.2 accelerate
    python eight_bit_states.py > ../data/activations/eight_bit_states.jsonl

`Trainer.create_optimizer` runs as it is, and so do the optimizer's `check_overrides` and `init_state`, on a CPU; its step, which there needs no kernel,
is not run. The weights are in bf16 where a case says so, beside which 32-bit states are in fp32 all the same. `alone` makes the optimizer of the same parameters without a Trainer, as torchtune, litgpt and unsloth's `UnslothTrainer` do where it is
told a learning rate for embeddings (`unsloth/trainer.py:_create_unsloth_optimizer`).
"""

import json
import tempfile

import bitsandbytes
import peft
import torch
import transformers
from transformers import AutoModelForCausalLM, LlamaConfig, Trainer, TrainingArguments

SHAPE = dict(hidden_size=64, intermediate_size=256, num_attention_heads=4, num_key_value_heads=4, num_hidden_layers=2, vocab_size=1024)


def made(tied, adapters, half):
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(LlamaConfig(**SHAPE, tie_word_embeddings=tied))
    if half:
        model = model.to(torch.bfloat16)
    if adapters:
        saved = ["embed_tokens", "lm_head"]
        targets = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
        model = peft.get_peft_model(model, peft.LoraConfig(r=64, target_modules=targets, modules_to_save=saved))
    return model


def case(name, tied, adapters, alone, half=False):
    model = made(tied, adapters, half)
    bitsandbytes.optim.GlobalOptimManager.get_instance().initialize()
    if alone:
        optimizer = bitsandbytes.optim.AdamW([p for p in model.parameters() if p.requires_grad], optim_bits=8)
    else:
        with tempfile.TemporaryDirectory() as folder:
            trainer = Trainer(model, TrainingArguments(folder, optim=name, report_to=[], use_cpu=True))
            optimizer = trainer.create_optimizer()
    optimizer.check_overrides()
    names = {parameter: name for name, parameter in model.named_parameters()}
    held = {}
    for gindex, group in enumerate(optimizer.param_groups):
        for pindex, parameter in enumerate(group["params"]):
            optimizer.init_state(group, parameter, gindex, pindex)
            state = optimizer.state[parameter]
            # Maps from bytes to numbers are one for all parameters of a state.
            moments = [value for key, value in state.items() if torch.is_tensor(value) and not key.startswith("qmap")]
            held[names[parameter]] = [parameter.numel(), sum(tensor.nbytes for tensor in moments)]
    return dict(optim=name, tied=tied, adapters=adapters, alone=alone, half=half, **SHAPE, held=held)


def main():
    versions = dict(torch=torch.__version__, transformers=transformers.__version__, peft=peft.__version__, bitsandbytes=bitsandbytes.__version__)
    print(json.dumps(versions))
    for name in ["adamw_bnb_8bit", "paged_adamw_8bit", "lion_8bit"]:
        for tied in [False, True]:
            print(json.dumps(case(name, tied, False, False)))
    print(json.dumps(case("adamw_bnb_8bit", False, True, False)))
    print(json.dumps(case("adamw_8bit", False, True, True)))
    for name in ["paged_adamw_32bit", "lion_32bit", "rmsprop_bnb", "rmsprop_bnb_8bit", "ademamix", "ademamix_8bit", "paged_ademamix_8bit"]:
        print(json.dumps(case(name, False, False, False, half=True)))


if __name__ == "__main__":
    main()
