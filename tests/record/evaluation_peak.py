"""What is alive beyond the weights at the fullest moment of an evaluation of a Llama: forward and loss without gradients.

Run: python tests/record/evaluation_peak.py > tests/data/activations/evaluation_peak.tsv
Needs torch and transformers, on a CPU. Every tensor that an operation makes is followed until nothing refers to its storage.
Columns: format of the weights, whether torch.autocast runs the model in bf16, sequences, tokens of each, vocabulary, bytes at
the fullest moment, and the operation that ends there.
"""

import contextlib
import gc
import weakref

import torch
import transformers
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoModelForCausalLM, LlamaConfig


class Alive(TorchDispatchMode):
    """Bytes of storages made under it that are still referred to, and the most there were."""

    def __init__(self, known):
        super().__init__()
        self.known = set(known)
        self.bytes, self.most, self.where = 0, 0, ""

    def __torch_dispatch__(self, operation, types, arguments=(), keywords=None):
        made = operation(*arguments, **(keywords or {}))
        for tensor in made if isinstance(made, (tuple, list)) else [made]:
            if not isinstance(tensor, torch.Tensor) or tensor.device.type == "meta":
                continue
            storage = tensor.untyped_storage()
            if storage._cdata in self.known:
                continue
            self.known.add(storage._cdata)
            self.bytes += storage.nbytes()
            weakref.finalize(storage, self.gone, storage._cdata, storage.nbytes())
        if self.bytes > self.most:
            self.most, self.where = self.bytes, str(operation)
        return made

    def gone(self, key, size):
        self.known.discard(key)
        self.bytes -= size


if __name__ == "__main__":
    print(f"# torch {torch.__version__}, transformers {transformers.__version__}")
    print("# 2 layers, width 64, MLP 160, 4 heads in 2 groups, untied")
    for dtype, autocast in [(torch.bfloat16, False), (torch.float32, False), (torch.float32, True)]:
        for batch, sequence, vocabulary in [(2, 128, 4000), (3, 96, 6400), (1, 256, 5120)]:
            config = LlamaConfig(
                vocab_size=vocabulary,
                hidden_size=64,
                intermediate_size=160,
                num_hidden_layers=2,
                num_attention_heads=4,
                num_key_value_heads=2,
                tie_word_embeddings=False,
                use_cache=False,
            )
            model = AutoModelForCausalLM.from_config(config).to(dtype).eval()
            ids = torch.randint(0, vocabulary, (batch, sequence))
            known = [t.untyped_storage()._cdata for t in [*model.parameters(), *model.buffers(), ids]]
            gc.collect()
            context = torch.autocast("cpu", torch.bfloat16) if autocast else contextlib.nullcontext()
            with torch.no_grad(), Alive(known) as alive, context:
                model(input_ids=ids, labels=ids)
            name = str(dtype).removeprefix("torch.")
            print(name, autocast, batch, sequence, vocabulary, alive.most, alive.where, sep="\t")
