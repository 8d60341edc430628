"""Records the gradients that FSDP2 holds between micro-batches where they are reduced with the last one, on a CPU.

    pip install torch transformers
    torchrun --nproc-per-node 2 deferred_gradients.py > deferred_gradients.jsonl

Each layer and the whole model are units (`fully_shard`), with the policy of NeMo Automodel (`FSDP2Config.mp_policy`: gathered in
bf16, reduced in fp32) over shards in bf16, and `set_requires_gradient_sync` is called as its `get_sync_ctx` does. Counted are
the whole gradients of all units and the shards, in bytes on one rank: when the model's forward begins,
when the backward of each layer begins (last layer first), and when backward is over.
"""

import collections
import json

import torch
import torch.distributed as dist
import transformers
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from transformers import AutoConfig, AutoModelForCausalLM

LAYERS, HEIGHT, WIDE, VOCABULARY, MICRO_BATCHES = 3, 64, 160, 512, 3


def held(model):
    """Bytes of whole gradients by format, and of shards of gradients."""
    whole = collections.Counter()
    shards = 0
    for module in model.modules():
        group = module._get_fsdp_state()._fsdp_param_group if isinstance(module, FSDPModule) else None
        for parameter in group.fsdp_params if group else ():
            seen = set()
            # Before torch 2.15 what earlier micro-batches left has a place of its own.
            for grad in (getattr(getattr(parameter, "_unsharded_param", None), "grad", None),
                         parameter.unsharded_accumulated_grad):
                if grad is not None and id(grad) not in seen:
                    seen.add(id(grad))
                    whole[str(grad.dtype).removeprefix("torch.")] += grad.numel() * grad.element_size()
            grad = parameter.sharded_param.grad
            shards += 0 if grad is None else grad._local_tensor.numel() * grad._local_tensor.element_size()
    return {"whole": dict(sorted(whole.items())), "shards": shards}


def case(train, defer):
    torch.manual_seed(0)
    config = AutoConfig.for_model(
        "llama", num_hidden_layers=LAYERS, hidden_size=HEIGHT, intermediate_size=WIDE, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, vocab_size=VOCABULARY, use_cache=False, tie_word_embeddings=False)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    if train == "mlp":
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(".mlp." in name)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32,
                                  output_dtype=torch.bfloat16, cast_forward_inputs=True)
    elements = [sum(p.numel() for p in layer.parameters() if p.requires_grad) for layer in model.model.layers]
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    for layer in model.model.layers:
        fully_shard(layer, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0)
    steps = []
    for step in range(2):
        batches = []
        for index in range(MICRO_BATCHES):
            model.set_requires_gradient_sync(not defer or index == MICRO_BATCHES - 1)
            moments = [held(model)]
            handles = [
                layer.register_full_backward_pre_hook(lambda *_: moments.append(held(model)))
                for layer in model.model.layers
            ]
            tokens = torch.randint(0, VOCABULARY, (1, 32))
            model(input_ids=tokens, labels=tokens).loss.backward()
            for handle in handles:
                handle.remove()
            moments.append(held(model))
            batches.append(moments)
        optimizer.step()
        optimizer.zero_grad()
        steps.append(batches)
    if dist.get_rank() == 0:
        # The second step is the first that begins as every other does.
        print(json.dumps({"train": train, "defer": defer, "layers": LAYERS, "h": HEIGHT, "f": WIDE, "V": VOCABULARY,
                          "world": dist.get_world_size(), "trained": trained, "trained_of_a_layer": elements[0],
                          "micro_batches": steps[1]}))


dist.init_process_group("gloo")
if dist.get_rank() == 0:
    print(json.dumps({"what": "Bytes of gradients under FSDP2 that reduces them with the last micro-batch",
                      "versions": {"torch": torch.__version__, "transformers": transformers.__version__}}))
for train in ("full", "mlp"):
    for defer in (True, False):
        case(train, defer)
dist.destroy_process_group()
