"""What `torch.utils.checkpoint` without reentrance costs the host: processor time of passes over layers so small that nothing else counts.

    pip install torch==2.15.0 transformers==5.17.0 peft==0.21.0
    python checkpoint_hooks.py > ../data/measured/checkpoint_hooks.tsv

Made on 2026-11-27 on one core of an AMD EPYC that others used too. A line is the least of 40 passes each: Llama's and Qwen3's layers, four
tokens, 32 columns, bf16, plain and with LoRA on all linears. `launches` are kernels of the forward pass, products among them, as PyTorch
dispatches them; `saved` the tensors that it saves. What checkpointing costs beside the second forward pass is the last column less the
two before it.
"""
import time
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen3Config
from peft import LoraConfig, get_peft_model

torch.set_num_threads(1)
ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
SIZES = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=8, num_attention_heads=2, num_key_value_heads=1, head_dim=16, vocab_size=64)
X = torch.randint(0, 64, (1, 4))


class Launches(TorchDispatchMode):
    count = 0

    def __torch_dispatch__(self, f, types, args=(), kwargs=None):
        out = f(*args, **(kwargs or {}))
        held = {a.untyped_storage().data_ptr() for a in args if isinstance(a, torch.Tensor)}
        outs = out if isinstance(out, (list, tuple)) else [out]
        view = all(isinstance(o, torch.Tensor) and o.untyped_storage().data_ptr() in held for o in outs)
        self.count += not (view and not f.overloadpacket.__name__.endswith("_"))
        return out


def model(config, adapted, checkpointed):
    m = AutoModelForCausalLM.from_config(config(**SIZES), dtype=torch.bfloat16).train()
    if checkpointed: m.gradient_checkpointing_enable(gradient_checkpointing_kwargs=dict(use_reentrant=False))
    if adapted:
        if checkpointed: m.enable_input_require_grads()
        m = get_peft_model(m, LoraConfig(r=4, target_modules=ALL))
    return m


def forward(m): return m(input_ids=X, labels=X, use_cache=False).loss
def both(m): forward(m).backward()


def least(f, m):
    times = []
    for _ in range(40):
        begin = time.process_time(); f(m); times.append(time.process_time() - begin)
    return min(times)


print("model\tlaunches\tsaved\tforward\tboth\tcheckpointed")
for name, config, adapted in (("llama", LlamaConfig, False), ("qwen3", Qwen3Config, False), ("llama lora", LlamaConfig, True), ("qwen3 lora", Qwen3Config, True)):
    plain, checkpointed = model(config, adapted, False), model(config, adapted, True)
    for m in (plain, checkpointed): both(m); both(m)
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(0) or t, lambda t: t): forward(plain)
    with Launches() as launches: forward(plain)
    for _ in range(3):
        times = least(forward, plain), least(both, plain), least(both, checkpointed)
        print(name, launches.count, len(saved), *(f"{t:.5f}" for t in times), sep="\t")
