"""What torchtune's recipes hold beside its layers, recorded on a CPU: one JSON line a case.

    pip install torch==2.15.0 torchtune==0.6.1 torchao==0.10.0 datasets
    python torchtune_recipes.py > ../data/activations/torchtune_recipes.jsonl

`preferences`: what DPO keeps for backward behind the output layer (`recipes/lora_dpo_single_device.py:concatenated_forward`: logits in
fp32, `torchtune.rlhf.get_batch_log_probs`, `torchtune.rlhf.loss.DPOLoss`), each storage once.
`gradients`: the most bytes of gradients that parameters of a small model hold at once while an optimizer steps within backward
(`training.register_optim_in_bwd_hooks`), and those of its largest parameter and of all.
"""

import json

import torch
from torchtune import rlhf, training
from torchtune.models.llama3 import llama3
from torchtune.rlhf.loss import DPOLoss

VOCABULARY, HEIGHT = 512, 16


def preferences(pairs, tokens):
    torch.manual_seed(0)
    weight = torch.nn.Parameter(torch.randn(VOCABULARY, HEIGHT, dtype=torch.bfloat16))
    states = torch.randn(2 * pairs, tokens, HEIGHT, dtype=torch.bfloat16, requires_grad=True)
    labels = torch.randint(0, VOCABULARY, (2 * pairs, tokens))
    labels[:, : tokens // 4] = -100
    seen, stage = {}, ["output layer"]

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in (weight.data_ptr(), states.data_ptr()):
            seen.setdefault(storage.data_ptr(), [stage[0], list(tensor.shape), str(tensor.dtype), storage.nbytes(), storage])
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        logits = torch.nn.functional.linear(states, weight).float()
        stage[0] = "log-probabilities"
        logps = rlhf.get_batch_log_probs(logits, labels)
        stage[0] = "loss"
        reference = torch.zeros(pairs)
        loss, _, _ = DPOLoss()(logps[:pairs], logps[pairs:], reference, reference)
    loss.mean().backward()
    kept = {}
    for place, shape, dtype, size, _ in seen.values():
        kept.setdefault(place, []).append({"shape": shape, "dtype": dtype.removeprefix("torch."), "bytes": size})
    return {"what": "preferences", "samples": pairs, "tokens": tokens, "vocabulary": VOCABULARY, "hidden": HEIGHT, "kept": kept}


def gradients():
    torch.manual_seed(0)
    model = llama3(vocab_size=256, num_layers=3, num_heads=4, num_kv_heads=2, embed_dim=64, max_seq_len=32, intermediate_dim=128)
    optimizers = {p: torch.optim.AdamW([p], lr=1e-3, fused=True) for p in model.parameters()}
    most = 0

    def look(_):
        nonlocal most
        most = max(most, sum(p.grad.nbytes for p in model.parameters() if p.grad is not None))

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(look)
    training.register_optim_in_bwd_hooks(model, optimizers)
    for _ in range(2):
        model(torch.randint(0, 256, (1, 16))).sum().backward()
    left = sum(p.grad.nbytes for p in model.parameters() if p.grad is not None)
    sizes = [p.nbytes for p in model.parameters()]
    return {"what": "gradients", "most": most, "left": left, "largest": max(sizes), "all": sum(sizes)}


print(json.dumps({"torch": torch.__version__, "torchtune": "0.6.1"}))
for pairs, tokens in [(1, 64), (3, 96)]:
    print(json.dumps(preferences(pairs, tokens)))
print(json.dumps(gradients()))
