"""How many inputs of checkpointed layers TRL's `OffloadActivations` has on the device at once in the backward pass.

    git clone https://github.com/huggingface/trl && git -C trl checkout f2cd57710
    python tests/record/trl_streamed_inputs.py trl > tests/data/activations/trl_streamed_inputs.tsv

Needs torch 2.15.0, transformers 5.23.0 and peft 0.21.2, on a CPU: the device's streams and events are stand-ins that do nothing, tensors of
the CPU count as the device's, and what is on the device is what the manager's own stashes hold (`trl/models/activation_offloading.py`). The
whole step runs under it, as `SFTTrainer.training_step` does; the loss stands for Liger's, which keeps a gradient of its input and no logits.
Columns: layers, sequences, tokens, whether all weights train, bytes of one layer's input, most bytes of such inputs in the stashes while
backward runs, and as it begins.
"""

import contextlib
import pathlib
import sys
import types

import peft
import torch
import transformers

WIDTH = 128


class Stream(contextlib.nullcontext):
    def wait_stream(self, other):
        pass

    def wait_event(self, event):
        pass

    def record_event(self):
        return None

    def synchronize(self):
        pass


class Fused(torch.autograd.Function):
    """Keeps a gradient as large as its input (`liger_kernel/ops/fused_linear_cross_entropy.py`)."""

    @staticmethod
    def forward(ctx, states, weight):
        ctx.save_for_backward(torch.zeros_like(states))
        return states.sum().detach()

    @staticmethod
    def backward(ctx, gradient):
        return ctx.saved_tensors[0], None


def load(trl):
    text = (pathlib.Path(trl) / "trl" / "models" / "activation_offloading.py").read_text()
    text = text.replace('["cuda", "xpu", "npu"]', '["cpu"]')
    module = types.ModuleType("offloading")
    exec(compile(text, "activation_offloading.py", "exec"), module.__dict__)
    return module


if __name__ == "__main__":
    torch.cuda.default_stream = torch.cuda.Stream = lambda *_: Stream()
    torch.cuda.stream = lambda stream: contextlib.nullcontext()
    torch.accelerator.current_accelerator = lambda *_: torch.device("cuda")
    torch.cuda.empty_cache = lambda: None
    offloading = load(sys.argv[1])
    print(f"# torch {torch.__version__.split('+')[0]}, transformers {transformers.__version__}, peft {peft.__version__}, trl f2cd57710")
    to = torch.Tensor.to
    torch.Tensor.to = lambda tensor, *args, **named: tensor.clone() if args[:1] == ("cuda",) else to(tensor, *args, **named)
    for layers, rows, tokens, full in [(4, 2, 64, True), (6, 1, 96, True), (5, 3, 32, False), (3, 1, 64, False)]:
        config = transformers.LlamaConfig(vocab_size=512, hidden_size=WIDTH, intermediate_size=384, num_hidden_layers=layers,
                                          num_attention_heads=4, num_key_value_heads=2, head_dim=32)
        model = transformers.LlamaForCausalLM(config).to(torch.bfloat16).train()
        if not full:
            model.enable_input_require_grads()
            model = peft.get_peft_model(model, peft.LoraConfig(r=8, target_modules="all-linear", task_type="CAUSAL_LM"))
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=dict(use_reentrant=False))
        manager = offloading.get_act_offloading_ctx_manager(model, use_pin_memory=False)
        one = rows * tokens * WIDTH * 2
        size = lambda stash: sum(t.nbytes for t in stash if t.dtype == torch.bfloat16 and t.shape == (rows, tokens, WIDTH))
        # Inputs of layers alone, by the order in which they are packed.
        inputs, seen = set(), []
        pack, unpack = manager.pack_hook, manager.unpack_hook
        stack = model.model if full else model.base_model.model.model

        def packed(tensor):
            key = pack(tensor)
            if tensor.data_ptr() in places:
                inputs.add(key)
            return key

        def held():
            stashes = [*manager.bwd_tensor_stash.items(), *((key, value[0]) for key, value in manager.fwd_stash.items())]
            return size(tensor for key, tensor in stashes if key in inputs)

        def watched(key):
            tensor = unpack(key)
            seen.append(held())
            return tensor

        places, hold = set(), []

        def note(layer, args, named):
            states = args[0] if args else named["hidden_states"]
            hold.append(states)
            places.add(states.data_ptr())

        for layer in stack.layers:
            layer.register_forward_pre_hook(note, with_kwargs=True)
        with manager:
            with torch.autograd.graph.saved_tensors_hooks(packed, watched):
                states = stack(torch.randint(0, 512, (rows, tokens))).last_hidden_state
                loss = Fused.apply(states, None)
                begins = held()
                places.clear()
                loss.backward()
        print(layers, rows, tokens, full, one, max(seen), begins, sep="\t")
