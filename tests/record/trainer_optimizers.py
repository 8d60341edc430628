"""What more of transformers' Trainer's optimizers hold, and what their step makes beside it, one JSON line a case.

    pip install torch==2.15.0 transformers==5.23.0 accelerate==1.15.0 schedulefree==1.4.1
    python trainer_optimizers.py > ../data/activations/trainer_optimizers.jsonl

`Trainer.create_optimizer` makes the optimizer as it is, and it steps twice on a CPU; PyTorch's own step by foreach, as they do beside a GPU where
nothing else is asked for (`torch/optim/optimizer.py:_default_to_fused_or_foreach`). `held` are the elements of each parameter and the bytes of its
states; `step` the most bytes alive in the second step beyond what is alive before it, as PyTorch dispatches it. `flat` are states of the
same parameters as vectors, which is how DeepSpeed's engine and FSDP hand them over.
"""

import json
import tempfile

import torch
import transformers
from low_rank_states import SHAPE, Storages, held_by
from transformers import AutoModelForCausalLM, LlamaConfig, Trainer, TrainingArguments

NAMES = ["adafactor", "adagrad", "rmsprop", "sgd", "schedule_free_adamw", "schedule_free_radam", "schedule_free_sgd"]


def tensors_of(state):
    return [value for value in state.values() if torch.is_tensor(value) and value.numel() > 1]


def case(name, half, flat=False):
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(LlamaConfig(**SHAPE, tie_word_embeddings=False))
    model = model.to(torch.bfloat16) if half else model
    with tempfile.TemporaryDirectory() as folder:
        made = TrainingArguments(folder, optim=name, report_to=[], use_cpu=True, warmup_steps=1)
        optimizer = Trainer(model, made).create_optimizer()
    if flat:
        vectors = [torch.nn.Parameter(parameter.detach().flatten()) for parameter in model.parameters()]
        optimizer = type(optimizer)(vectors, **{key: value for key, value in optimizer.defaults.items()})
    for group in optimizer.param_groups:
        if "foreach" in group:
            group["foreach"] = True
    if hasattr(optimizer, "train"):
        optimizer.train()
    tokens = torch.randint(0, SHAPE["vocab_size"], (1, 16))
    for _ in range(2):
        if flat:
            for vector in vectors:
                vector.grad = torch.randn_like(vector)
        else:
            model(input_ids=tokens, labels=tokens).loss.backward()
        with Storages(optimizer) as storages:
            optimizer.step()
        optimizer.zero_grad()
    if flat:
        return sum(held_by(tensors_of(state)) for state in optimizer.state.values())
    names = {parameter: name for name, parameter in model.named_parameters()}
    held = {names[parameter]: [parameter.numel(), held_by(tensors_of(state))] for parameter, state in optimizer.state.items()}
    return dict(optim=name, half=half, **SHAPE, held=held, step=storages.most)


def main():
    print(json.dumps(dict(torch=torch.__version__, transformers=transformers.__version__, schedulefree="1.4.1")))
    for half in [True, False]:
        for name in NAMES:
            more = dict(flat=case(name, half, True)) if name == "adafactor" else {}
            print(json.dumps({**case(name, half), **more}))


if __name__ == "__main__":
    main()
