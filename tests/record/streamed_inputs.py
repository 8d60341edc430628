"""How many inputs of checkpointed layers torchtune's `OffloadActivations` has on the device at once in the backward pass.

Run: python tests/record/streamed_inputs.py > tests/data/activations/streamed_inputs.tsv
Needs torch 2.15.0, torchtune after its release 0.6.1 (commit bd2a0fc7) and torchao 0.18.0, on a CPU: the device's streams and events are stand-ins that do nothing, and what
is on the device is what the manager's own stashes hold (`torchtune/training/_activation_offloading.py`). Columns: layers, sequences,
tokens, whether all weights train, bytes of one layer's input, most bytes of such inputs in the stashes while backward runs, and as it begins.
"""

import contextlib

import torch
from torchtune import modules, training
from torchtune.models import llama3
from torchtune.modules.peft import get_adapter_params, set_trainable_params
from torchtune.training import _activation_offloading as offloading

WIDTH = 128


class Stream(contextlib.nullcontext):
    def wait_stream(self, other):
        pass

    def wait_event(self, event):
        pass

    def record_event(self):
        return None


torch.accelerator.is_available = lambda: True
torch.accelerator.current_accelerator = lambda *_: torch.device("cpu")
torch.accelerator.current_stream = lambda *_: Stream()
torch.Stream = Stream

if __name__ == "__main__":
    print(f"# torch {torch.__version__}, torchtune bd2a0fc7")
    for layers, rows, tokens, full in [(4, 2, 64, True), (6, 1, 96, True), (5, 3, 32, False), (3, 1, 64, False)]:
        sizes = dict(vocab_size=512, num_layers=layers, num_heads=4, num_kv_heads=2, embed_dim=WIDTH, max_seq_len=128, intermediate_dim=384)
        with training.set_default_dtype(torch.bfloat16):
            if full:
                model = llama3.llama3(**sizes)
            else:
                model = llama3.lora_llama3(**sizes, lora_attn_modules=["q_proj", "v_proj"], lora_rank=8, lora_alpha=16)
                set_trainable_params(model, get_adapter_params(model))
        training.set_activation_checkpointing(model.train(), auto_wrap_policy={modules.TransformerSelfAttentionLayer})
        manager = offloading.OffloadActivations(use_pin_memory=False)
        one = rows * tokens * WIDTH * 2
        # Copies on the host are tensors of their own; on a device `to` makes another.
        size = lambda stash: sum(t.nbytes for t in stash if t.dtype == torch.bfloat16 and t.shape == (rows, tokens, WIDTH))
        seen = []
        unpack = manager.unpack_hook

        def watched(key):
            tensor = unpack(key)
            seen.append(size(manager.bwd_tensor_stash.values()) + size(t for t, _ in manager.fwd_stash.values()))
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(manager.pack_hook, watched):
            logits = model(torch.randint(0, 512, (rows, tokens)))
        begins = size(t for t, _ in manager.fwd_stash.values())
        logits.float().mean().backward()
        print(layers, rows, tokens, full, one, max(seen), begins, sep="\t")
