"""What the log-probabilities of TRL's GRPO keep for backward behind the output layer and hold at most on the way, one JSON line a case.

`python trl_grpo.py CHECKOUT > ../data/activations/trl_grpo.jsonl` with torch 2.15.0 on a CPU and a checkout of huggingface/trl. Its
`GRPOTrainer._get_per_token_logps_and_entropies` runs as it is; the model is an embedding and an output layer in bf16, whose output
Accelerate hands on in fp32 where a case says `cast` (`trl_dpo.py` says where). All tokens but the first are sampled ones, unless a
case says how many are a response's: the output layer then runs on the positions that `logits_to_keep` names, as
`transformers/models/llama/modeling_llama.py:LlamaForCausalLM.forward` takes it.
"""

import json
import subprocess
import sys
import types

import torch
import torch.nn.functional as F

from trl_kto import HEIGHT, VOCABULARY, Held, own


def case(checkout, samples, tokens, cast, response=None):
    torch.manual_seed(0)
    names = {"torch": torch, "F": F, "profiling_decorator": lambda function: function}
    own(checkout, "trl/trainer/utils.py", ["selective_log_softmax", "entropy_from_logits"], names)
    own(checkout, "trl/trainer/grpo_trainer.py", ["_get_per_token_logps_and_entropies"], names)
    run = names["_get_per_token_logps_and_entropies"]
    weight = torch.nn.Parameter(torch.randn(VOCABULARY, HEIGHT, dtype=torch.bfloat16))
    table = torch.nn.Parameter(torch.randn(VOCABULARY, HEIGHT, dtype=torch.bfloat16))

    def model(input_ids, attention_mask=None, use_cache=None, logits_to_keep=0):
        hidden = F.embedding(input_ids, table)
        logits = F.linear(hidden[:, slice(-logits_to_keep, None), :] if response else hidden, weight)
        return types.SimpleNamespace(logits=logits.float() if cast else logits)

    trainer = types.SimpleNamespace(model_kwarg_keys=["logits_to_keep"] if response else [], temperature=0.9, _entropy_bonus_enabled=False)
    ids = torch.randint(0, VOCABULARY, (samples, tokens))
    mask, keep = torch.ones_like(ids), response or tokens - 1
    parameters, seen = {weight.data_ptr(), table.data_ptr()}, {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            seen.setdefault(storage.data_ptr(), [list(tensor.shape), str(tensor.dtype), storage.nbytes(), storage])
        return tensor

    # Once without the hooks, which hold what they see.
    with Held() as held:
        out = run(trainer, model, ids, mask, keep, compute_entropy=True)[0]
    most, after = held.most, held.now
    held.most = 0
    with held:
        out.sum().backward()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        run(trainer, model, ids, mask, keep, compute_entropy=True)
    kept = [{"shape": shape, "dtype": dtype.removeprefix("torch."), "bytes": size} for shape, dtype, size, _ in seen.values()]
    return {
        "samples": samples, "tokens": tokens, "vocabulary": VOCABULARY, "hidden": HEIGHT, "cast": cast,
        **({"response": response} if response else {}), "held_at_most": most, "held_after": after, "held_in_backward_at_most": held.most, "kept": kept,
    }


def main():
    checkout = sys.argv[1]
    commit = subprocess.run(["git", "-C", checkout, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    print(json.dumps({"torch": torch.__version__, "trl": commit.stdout.strip()}))
    for cast in [False, True]:
        for samples, tokens in [(2, 64), (4, 96), (4, 256)]:
            print(json.dumps(case(checkout, samples, tokens, cast)))
    for cast in [False, True]:
        for samples, tokens, response in [(1, 96, 32), (2, 64, 40), (4, 256, 64), (4, 512, 256)]:
            print(json.dumps(case(checkout, samples, tokens, cast, response)))


if __name__ == "__main__":
    main()
