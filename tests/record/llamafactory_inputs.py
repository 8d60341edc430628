"""How many inputs of recomputed layers LLaMA-Factory's `use_unsloth_gc` leaves on the device.

    git clone https://github.com/hiyouga/LLaMA-Factory && git -C LLaMA-Factory checkout ff6d4d12eeb0
    python tests/record/llamafactory_inputs.py LLaMA-Factory > tests/data/activations/llamafactory_inputs.tsv

Needs torch 2.15.0 and transformers 5.23.0, on a CPU: what goes to the host (`.to("cpu")`) and what comes back (`.to("cuda")`) are copies
that are told apart here. Columns: layers, sequences, tokens, bytes of one layer's input, inputs of layers on the device as backward begins,
and the most of them while it runs.
"""

import ast
import subprocess
import sys
import weakref

import torch
import transformers

SOURCE = "src/llamafactory/model/model_utils/checkpointing.py"
WIDTH = 128


class Device:
    """Inputs of layers that are on the device: those handed to a layer, and copies that came back for one."""

    def __init__(self):
        self.seen = []

    def note(self, tensor):
        self.seen.append(weakref.ref(tensor))
        return tensor

    def alive(self):
        return sum(reference() is not None for reference in self.seen)


def function(checkout, device):
    """`get_unsloth_gradient_checkpointing_func`, whose copies between device and host are noted."""
    text = subprocess.run(["git", "-C", checkout, "show", f"HEAD:{SOURCE}"], check=True, capture_output=True, text=True).stdout
    node = next(node for node in ast.parse(text).body if getattr(node, "name", None) == "get_unsloth_gradient_checkpointing_func")
    body = "\n".join(text.splitlines()[node.lineno - 1:node.end_lineno])
    for old, new in [
        ('hidden_states.to("cpu", non_blocking=True)', "away(hidden_states)"),
        ('hidden_states.to("cuda", non_blocking=True).detach()', "back(hidden_states)"),
        ("@torch.cuda.amp.custom_fwd", ""),
        ("@torch.cuda.amp.custom_bwd", ""),
    ]:
        assert old in body, old
        body = body.replace(old, new)

    def away(tensor):
        device.note(tensor)
        return tensor.detach().clone()

    def back(tensor):
        return device.note(tensor.clone().detach())

    names = {"torch": torch, "Callable": None, "Union": {}, "Any": None, "away": away, "back": back}
    exec("from __future__ import annotations\n" + body, names)
    return names[node.name]()


def main():
    print(f"# torch {torch.__version__}, transformers {transformers.__version__}, LLaMA-Factory ff6d4d12eeb0")
    for layers, rows, tokens in [(4, 2, 64), (6, 1, 96), (3, 1, 64)]:
        config = transformers.LlamaConfig(
            vocab_size=512, hidden_size=WIDTH, intermediate_size=384, num_hidden_layers=layers, num_attention_heads=4, num_key_value_heads=2
        )
        model = transformers.LlamaForCausalLM(config).to(torch.bfloat16).train()
        device = Device()
        model.enable_input_require_grads()
        model._set_gradient_checkpointing(enable=True, gradient_checkpointing_func=function(sys.argv[1], device))
        loss = model(torch.randint(0, 512, (rows, tokens)), use_cache=False).logits.float().sum()
        begins, most = device.alive(), [0]
        for layer in model.model.layers:
            layer.register_full_backward_pre_hook(lambda *_: most.append(device.alive()))
        note = device.note

        def watched(tensor):
            tensor = note(tensor)
            most.append(device.alive())
            return tensor

        device.note = watched
        loss.backward()
        assert len(device.seen) == 2 * layers
        print(layers, rows, tokens, rows * tokens * WIDTH * 2, begins, max(most), sep="\t")


main()
