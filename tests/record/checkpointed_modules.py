"""Records what autograd keeps where attention, MLP and norms of each layer are checkpointed one by one, on a CPU.

    pip install torch transformers
    git clone https://github.com/NVIDIA-NeMo/Automodel && git -C Automodel checkout 36044ad3d1
    PYTHONPATH=Automodel python checkpointed_modules.py | grep '^{' > checkpointed_modules.jsonl

So do NeMo Automodel with modules of its own (`components/distributed/activation_checkpointing.py:apply_submodule_checkpointing`, which
is called here) and NeMo-RL's older DTensor worker with transformers' (`nemo_rl/models/dtensor/parallelize.py`, whose
`checkpoint_wrapper` stands around the same four modules); `own` says whose modules they are. A checkpoint that is not reentrant
saves no tensor: it holds the arguments of what it calls, which are counted here as they are given (`held`), and nothing else that
autograd saves inside of a layer stays (`saved within`). Cosines and sines, which all layers share, are left out.
"""

import collections
import json
import sys

# Its kernels are for GPUs; without triton the same functions run PyTorch's products.
sys.modules["triton"] = None

import torch
import transformers
from nemo_automodel.components.distributed.activation_checkpointing import apply_submodule_checkpointing
from nemo_automodel.components.models.llama.model import LlamaForCausalLM
from nemo_automodel.components.models.qwen2.model import Qwen2ForCausalLM
from nemo_automodel.components.models.qwen3.model import Qwen3ForCausalLM
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointWrapper
from transformers import AutoConfig, AutoModelForCausalLM

LAYERS = 3
OWN = {"llama": LlamaForCausalLM, "qwen2": Qwen2ForCausalLM, "qwen3": Qwen3ForCausalLM}


def record(case):
    torch.manual_seed(0)
    config = AutoConfig.for_model(
        case["arch"], num_hidden_layers=LAYERS, hidden_size=case["h"], intermediate_size=case["f"],
        num_attention_heads=case["a"], num_key_value_heads=case["k"], head_dim=case["d"], vocab_size=case["V"],
        max_position_embeddings=2 * case["s"], use_cache=False, attn_implementation="sdpa", dtype="bfloat16",
        tie_word_embeddings=False, architectures=[OWN[case["arch"]].__name__])
    model = OWN[case["arch"]](config) if case["own"] else AutoModelForCausalLM.from_config(config)
    model = model.to(torch.bfloat16).train()
    for tensor in model.parameters():
        torch.nn.init.uniform_(tensor, 0.0, 0.01)
    tokens = torch.randint(0, case["V"], (case["b"], case["s"]))
    # What is compiled or cached for good is there before anything is counted.
    model(input_ids=tokens).logits.sum().backward()
    model.zero_grad()
    apply_submodule_checkpointing(model.model.layers, False)
    own = {p.untyped_storage().data_ptr() for p in [*model.parameters(), *model.buffers()]}
    held, saved, place = collections.defaultdict(dict), {}, []

    def arguments(args, kwargs, name, index):
        place.append(name)
        for value in [*args, *kwargs.values()]:
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                held[index][value.untyped_storage().data_ptr()] = value.untyped_storage()

    for index, layer in enumerate(model.model.layers):
        for name, module in layer.named_children():
            assert isinstance(module, CheckpointWrapper), name
            module.register_forward_pre_hook(
                lambda _, args, kwargs, name=name, index=index: arguments(args, kwargs, name, index), with_kwargs=True)
            module.register_forward_hook(lambda *_: place.pop() and None)

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own and storage.nbytes():
            saved[storage.data_ptr()] = (storage, bool(place))
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        logits = model(input_ids=tokens).logits
    given = {address for storages in held.values() for address in storages}
    inside = sum(storage.nbytes() for address, (storage, within) in saved.items() if within and address not in given)
    layers = [sum(storage.nbytes() for storage in held[index].values()) for index in range(LAYERS)]
    logits.sum().backward()
    return {"held": layers, "saved within": inside}


print(json.dumps({"what": "Bytes that wait for backward where modules are checkpointed one by one",
                  "versions": {"automodel": "36044ad3d1", "torch": torch.__version__,
                               "transformers": transformers.__version__}}))
for arch in OWN:
    for own in (True, False):
        for b, s in ((1, 64), (2, 96)):
            case = dict(id=f"modules-{'own' if own else 'plain'}-{arch}-b{b}-s{s}", kind="model", layers=LAYERS, own=own, arch=arch,
                        dtype="bf16", b=b, s=s, h=128, a=4, k=2, d=32, f=352, V=1000, attn="sdpa", train="full", gc=None,
                        input_require_grads=False, lora_dropout=0.0, adapter_fp32=False, autocast=False, padded=False,
                        num_items=True, use_cache=False, experts=None, loss=None)
            print(json.dumps({**case, **record(case)}), flush=True)
