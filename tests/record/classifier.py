"""Records what a decoder with a head for classes keeps for backward.

A small LlamaForSequenceClassification of transformers with random weights on the CPU, in bf16, whose samples fill the sequence. Written
to standard output, tab separated:

  case            what trains: all, or adapters of PEFT with the copy of the head that they bring (task_type SEQ_CLS)
  labels          classes
  checkpointed    whether layers are checkpointed
  samples         of the batch
  kept            bytes kept for backward, parameters aside
  parameters      those that train

Run with transformers 5.23.0, peft 0.21.2 and torch 2.15.0: python tests/record/classifier.py > tests/data/activations/classifier.tsv
"""

import warnings

import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from transformers import LlamaConfig, LlamaForSequenceClassification

warnings.filterwarnings("ignore")
WIDTH, TOKENS, VOCABULARY = 64, 40, 320
DTYPE = torch.bfloat16
# On a GPU dropout is one kernel, whose mask has a byte for each element; a CPU's is of the input's own type.
nn.Dropout.forward = lambda self, given: torch.native_dropout(given, self.p, self.training)[0]


def record(way, labels, checkpoints, samples):
    config = LlamaConfig(
        hidden_size=WIDTH, intermediate_size=160, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=4,
        vocab_size=VOCABULARY, max_position_embeddings=128, num_labels=labels, pad_token_id=0)
    torch.manual_seed(0)
    model = LlamaForSequenceClassification._from_config(config, dtype=DTYPE, attn_implementation="sdpa").train()
    if way == "lora":
        model = get_peft_model(model, LoraConfig(
            r=8, lora_alpha=16, lora_dropout=0.05, target_modules="all-linear", task_type="SEQ_CLS")).to(DTYPE)
    model.config.use_cache = False
    if checkpoints:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=dict(use_reentrant=True))
        model.enable_input_require_grads()
    ids = torch.randint(1, VOCABULARY, (samples, TOKENS))
    classes = torch.randint(0, labels, (samples,))
    known = {p.untyped_storage().data_ptr() for p in model.parameters()}
    seen = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known and storage.data_ptr() not in seen:
            seen[storage.data_ptr()] = (storage.nbytes(), tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = model(input_ids=ids, labels=classes)
    kept = sum(size for size, _ in seen.values())
    trains = sum(p.numel() for p in model.parameters() if p.requires_grad)
    print(f"{way}\t{labels}\t{int(checkpoints)}\t{samples}\t{kept}\t{trains}", flush=True)
    del out


print("case\tlabels\tcheckpointed\tsamples\tkept\tparameters")
for way in ("all", "lora"):
    for labels in (2, 7):
        for checkpoints in (False, True):
            for samples in (1, 2):
                record(way, labels, checkpoints, samples)
