"""What torch's DistributedDataParallel sends for modules of transformers and PEFT in a step, recorded from two processes over gloo:
the buckets of gradients (elements, format, tensors), in the order in which they are reduced, from the third step, and the other messages
of that step (operation, elements), from its profile. `unused`: find_unused_parameters; `cap`: bucket_cap_mb, where it is not left out
(accelerate leaves 25 out, its default).

    python ddp_buckets.py ../data/torch/ddp_buckets.jsonl [TYPE,TYPE,...]
"""

import json
import os
import sys

import peft
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import transformers
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile
from transformers import AutoConfig, AutoModelForCausalLM

SIZES = dict(hidden_size=512, intermediate_size=1536, num_hidden_layers=3, num_attention_heads=8, num_key_value_heads=2, vocab_size=4096,
             max_position_embeddings=256, head_dim=64)
EQUAL_HEADS = {key: size for key, size in SIZES.items() if key not in ("num_key_value_heads", "head_dim")}
GPT2 = dict(n_embd=512, n_layer=3, n_head=8, n_positions=256, vocab_size=4096, bos_token_id=0, eos_token_id=0)
TYPES = {
    "llama": SIZES, "qwen2": SIZES, "qwen3": SIZES, "gemma2": SIZES, "gpt2": GPT2, "gpt_neox": EQUAL_HEADS, "olmo2": SIZES, "phi": SIZES,
    "mixtral": dict(SIZES, num_local_experts=4, num_experts_per_tok=2), "phi3": dict(SIZES, pad_token_id=0),
    "bloom": dict(hidden_size=512, n_layer=3, n_head=8, vocab_size=4096), "opt": dict(EQUAL_HEADS, ffn_dim=1536, word_embed_proj_dim=512),
}


def case(typ, lora, unused, checkpoint, dtype, cap):
    torch.manual_seed(0)
    config = AutoConfig.for_model(typ, **TYPES[typ])
    model = AutoModelForCausalLM.from_config(config, dtype=dtype)
    model.config.use_cache = False
    if checkpoint:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if lora:
        model = peft.get_peft_model(model, peft.LoraConfig(r=64, target_modules="all-linear", task_type="CAUSAL_LM"))
    model.train()
    wrapped = DistributedDataParallel(model, find_unused_parameters=unused, **({} if cap is None else {"bucket_cap_mb": cap}))
    buckets = []

    def hook(_, bucket):
        sent = bucket.buffer()
        buckets.append([sent.numel(), str(sent.dtype)[6:], len(bucket.parameters())])
        return dist.all_reduce(sent, async_op=True).get_future().then(lambda done: done.value()[0])

    wrapped.register_comm_hook(None, hook)
    ids = torch.randint(0, 4000, (1, 64))
    for _ in range(3):
        buckets.clear()
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiled:
            wrapped(input_ids=ids, labels=ids).loss.backward()
        wrapped.zero_grad()
    left = [bucket[0] for bucket in buckets]
    others = []
    for event in profiled.events():
        if event.name.startswith("gloo:"):
            (shape,) = event.input_shapes
            if event.name == "gloo:all_reduce" and left and shape == left[:1]:
                left.pop(0)
            else:
                others.append([event.name[5:], *shape])
    parameters = sum(parameter.requires_grad for parameter in model.parameters())
    return dict(type=typ, lora=lora, unused=unused, checkpoint=checkpoint, dtype=str(dtype)[6:], cap=cap, tensors=parameters, buckets=buckets,
                others=others)


def main(rank):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29577")
    dist.init_process_group("gloo", rank=rank, world_size=2)
    torch.set_num_threads(1)
    types = sys.argv[2].split(",") if len(sys.argv) > 2 else list(TYPES)
    configs = {typ: AutoConfig.for_model(typ, **TYPES[typ]).to_diff_dict() for typ in types}
    rows = [dict(torch=torch.__version__, transformers=transformers.__version__, peft=peft.__version__, configs=configs)]
    for typ in types:
        for lora in (False, True):
            for unused in (False, True):
                rows.append(case(typ, lora, unused, False, torch.float32, None))
                if not unused:
                    rows.append(case(typ, lora, unused, True, torch.bfloat16, None))
                if not lora:
                    rows.append(case(typ, lora, unused, False, torch.bfloat16, 8))
    if rank == 0:
        with open(sys.argv[1], "w") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    mp.spawn(main, nprocs=2)
