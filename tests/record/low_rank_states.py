"""What optimizers hold that step gradients in a space of lower rank (GaLore, APOLLO), and what their step makes beside it, one JSON line a case.

    pip install torch==2.15.0 transformers==5.23.0 accelerate==1.15.0 galore-torch==1.0 apollo-torch==1.0.3 bitsandbytes==0.50.2
    python low_rank_states.py > ../data/activations/low_rank_states.jsonl

`Trainer.create_optimizer` makes the optimizer as it is (`llamafactory` makes the groups as LLaMA-Factory does, `train/trainer_utils.py:
_create_galore_optimizer`), and it steps on a CPU: twice, a new projection each time. Of bitsandbytes only the kernel is left out. `held` are the
elements of each parameter and the bytes of its states, the projection among them; of these the projection alone. `step` are the most bytes
alive in the second step beyond what is alive before it, as PyTorch dispatches it: LAPACK's workspace is not seen, and cuSOLVER's would be.
`hooks` is the same of each parameter's own update where the optimizer steps within backward, beyond its gradient.
"""

import json
import tempfile
import weakref

import bitsandbytes
import torch
import transformers
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import AutoModelForCausalLM, LlamaConfig, Trainer, TrainingArguments

SHAPE = dict(hidden_size=128, intermediate_size=384, num_attention_heads=4, num_key_value_heads=2, num_hidden_layers=2, vocab_size=1024)
TARGETS = ["attn", "mlp"]


class Storages(TorchDispatchMode):
    """Bytes alive beyond those at its beginning, and the most that ever were."""

    def __init__(self, optimizer):
        super().__init__()
        self.known, self.now, self.most = set(), 0, 0
        for parameter, state in optimizer.state.items():
            self.see((parameter, parameter.grad, tensors_of(state)), False)

    def __torch_dispatch__(self, function, kinds, args=(), kwargs=None):
        self.see((args, kwargs), False)
        out = function(*args, **(kwargs or {}))
        self.see(out, True)
        return out

    def see(self, tree, made):
        for tensor in tree_leaves(tree):
            if not isinstance(tensor, torch.Tensor):
                continue
            storage = tensor.untyped_storage()
            # Scalars are left out.
            if storage._cdata in self.known or storage.nbytes() <= 8:
                continue
            self.known.add(storage._cdata)
            self.now += storage.nbytes() if made else 0
            self.most = max(self.most, self.now)
            weakref.finalize(storage, self.gone, storage._cdata, storage.nbytes())

    def gone(self, key, size):
        self.known.discard(key)
        self.now -= size


def groups(model, kwargs):
    """LLaMA-Factory's, with `galore_target: all`."""
    names = {name.split(".")[-1] for name, module in model.named_modules() if isinstance(module, torch.nn.Linear) and "lm_head" not in name}
    chosen = [m.weight for n, m in model.named_modules() if isinstance(m, torch.nn.Linear) and any(name in n for name in names)]
    others = [p for p in model.parameters() if not any(p is other for other in chosen)]
    vectors, matrices = [p for p in others if p.ndim == 1], [p for p in others if p.ndim > 1]
    return [dict(params=vectors, weight_decay=0.0), dict(params=matrices, weight_decay=0.0), dict(params=chosen, weight_decay=0.0, **kwargs)]


def without_kernel(optimizer):
    if isinstance(optimizer, bitsandbytes.optim.optimizer.Optimizer8bit):
        optimizer.update_step = lambda *args: None
        optimizer.prefetch_state = lambda *args: None
        optimizer.to_gpu = lambda: None


def tensors_of(state):
    return [value for key, value in state.items() if torch.is_tensor(value) and value.numel() > 1 and not key.startswith("qmap")] + projection_of(state)


def projection_of(state):
    matrix = state["projector"].ortho_matrix if "projector" in state else []
    return matrix if isinstance(matrix, list) else [matrix]


def held_by(tensors):
    """Bytes of their storages: a projection may be a view of all singular vectors."""
    return sum(tensor.untyped_storage().nbytes() for tensor in tensors)


def case(name, targets, half, tied, arguments, llamafactory=False):
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(LlamaConfig(**SHAPE, tie_word_embeddings=tied))
    model = model.to(torch.bfloat16) if half else model
    said = ",".join(f"{key}={value}" for key, value in arguments.items())
    layerwise = name.endswith("layerwise")
    with tempfile.TemporaryDirectory() as folder:
        made = TrainingArguments(folder, optim=name, optim_args=said, optim_target_modules=targets, report_to=[], use_cpu=True, gradient_accumulation_steps=1)
        trainer = Trainer(model, made)
        optimizer = trainer.create_optimizer()
    if llamafactory:
        kwargs = next({key: value for key, value in group.items() if key in ("rank", "update_proj_gap", "scale", "proj_type", "proj", "scale_type")}
                      for group in optimizer.param_groups if "rank" in group)
        optimizer = type(optimizer)(groups(model, kwargs), lr=1e-5)
    names = {parameter: name for name, parameter in model.named_parameters()}
    each = optimizer.optimizer_dict if layerwise else {None: optimizer}
    hooks = {}
    for parameter, one in each.items():
        without_kernel(one)
        if layerwise:
            step = one.step

            def measured(one=one, step=step, name=names[parameter]):
                with Storages(one) as storages:
                    step()
                hooks[name] = storages.most

            one.step = measured
    tokens = torch.randint(0, SHAPE["vocab_size"], (1, 16))
    for _ in range(2):
        model(input_ids=tokens, labels=tokens).loss.backward()
        if not layerwise:
            with Storages(optimizer) as storages:
                optimizer.step()
            optimizer.zero_grad()
    held = {}
    for one in each.values():
        for parameter, state in one.state.items():
            held[names[parameter]] = [parameter.numel(), held_by(tensors_of(state)), held_by(projection_of(state))]
    return dict(optim=name, targets=targets, half=half, tied=tied, llamafactory=llamafactory, **arguments, **SHAPE, held=held,
                **(dict(hooks=hooks) if layerwise else dict(step=storages.most)))


def main():
    torch.cuda.synchronize = lambda: None
    versions = dict(torch=torch.__version__, transformers=transformers.__version__, galore="1.0", apollo="1.0.3", bitsandbytes=bitsandbytes.__version__)
    print(json.dumps(versions))
    gap = dict(update_proj_gap=1)
    for name, arguments in [
        ("galore_adamw", dict(rank=32)),
        ("galore_adamw", dict(rank=32, proj_type="reverse_std")),
        ("galore_adamw", dict(rank=32, proj_type="left")),
        ("galore_adamw", dict(rank=32, proj_type="right")),
        ("galore_adamw", dict(rank=32, proj_type="full")),
        ("galore_adamw", dict(rank=96)),
        ("galore_adamw_8bit", dict(rank=64)),
        ("galore_adamw_layerwise", dict(rank=32)),
        ("galore_adamw_8bit_layerwise", dict(rank=64)),
        ("apollo_adamw", dict(rank=32)),
        ("apollo_adamw", dict(rank=1, scale_type="tensor")),
        ("apollo_adamw", dict(rank=32, proj="svd")),
        ("apollo_adamw_layerwise", dict(rank=32)),
    ]:
        for half in [True, False]:
            print(json.dumps(case(name, TARGETS, half, False, {**arguments, **gap})))
    for name in ["galore_adamw", "apollo_adamw"]:
        print(json.dumps(case(name, TARGETS, True, True, dict(rank=32, **gap))))
        print(json.dumps(case(name, "all-linear", True, False, dict(rank=32, **gap))))
        print(json.dumps(case(name, ["q_proj", "v_proj"], True, False, dict(rank=32, **gap))))
        print(json.dumps(case(name, TARGETS, True, False, dict(rank=32, **gap), llamafactory=True)))


if __name__ == "__main__":
    main()
