"""What `torch.autograd.graph.save_on_cpu` copies to the host in the forward pass of a Llama whose layers are checkpointed.

Run: python tests/record/saved_on_host.py > tests/data/activations/saved_on_host.tsv
Needs torch and transformers, on a CPU. The hook of save_on_cpu is replaced by one that writes down what it is given; the model
is wrapped as awsome-distributed-training's FSDP example wraps it (3.test_cases/pytorch/FSDP/src/train.py), its weights in bf16
as FSDP2 gathers them. Columns: sequences, tokens of each, layers, vocabulary, tensors, bytes.
"""

from functools import partial

import torch
import transformers
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointImpl,
    apply_activation_checkpointing,
    checkpoint_wrapper,
)
from transformers import AutoModelForCausalLM, LlamaConfig
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

print(f"# torch {torch.__version__}, transformers {transformers.__version__}")
print("# width 64, MLP 160, 4 heads in 2 groups, untied")
for batch, sequence, layers, vocabulary in [(2, 32, 3, 1000), (1, 48, 5, 768), (3, 16, 2, 1024)]:
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=64,
        intermediate_size=160,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        tie_word_embeddings=False,
        use_cache=False,
    )
    model = AutoModelForCausalLM.from_config(config).to(torch.bfloat16).train()
    apply_activation_checkpointing(
        model,
        checkpoint_wrapper_fn=partial(checkpoint_wrapper, checkpoint_impl=CheckpointImpl.NO_REENTRANT),
        check_fn=lambda module: isinstance(module, LlamaDecoderLayer),
    )
    packed = []

    def pack(tensor):
        packed.append(tensor.numel() * tensor.element_size())
        return tensor

    ids = torch.randint(0, vocabulary, (batch, sequence))
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        # The count of tokens that the Trainer hands over, which the loss is divided by.
        model(input_ids=ids, attention_mask=None, labels=ids, num_items_in_batch=torch.tensor(ids.numel()))
    print(batch, sequence, layers, vocabulary, len(packed), sum(packed), sep="\t")
