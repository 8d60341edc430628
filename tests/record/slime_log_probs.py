"""What log-probabilities of slime and of MindSpeed-RL hold of logits over tensor ranks, one JSON line a case.

`python slime_log_probs.py SLIME MINDSPEED_RL MEGATRON > ../data/activations/slime_log_probs.jsonl` with torch 2.15.0 on a CPU and checkouts
of THUDM/slime, Ascend/MindSpeed-RL and NVIDIA/Megatron-LM. slime's `calculate_log_probs_and_entropy`, MindSpeed-RL's `compute_log_probs` and
Megatron's `VocabParallelCrossEntropy` run as they are, over one tensor rank; the model is an output layer in bf16 whose logits are handed
on in fp32 (`megatron/core/transformer/module.py:Float16Module.forward`). As in Megatron's schedule, the model's output is named until the
loss is there. What is held is of tensors made within.
slime's entropy, a metric unless it has a weight, is left out: on a GPU it adds nothing of the logits' size (`sum_softmax_logits`).
"""

import ast
import json
import subprocess
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F

from trl_kto import Held


def run_of(checkout, path, wanted, names):
    text = subprocess.run(["git", "-C", checkout, "show", f"HEAD:{path}"], check=True, capture_output=True, text=True).stdout
    nodes = [node for node in ast.parse(text).body if getattr(node, "name", None) in wanted]
    for node in ast.walk(ast.Module(nodes, [])):
        for part in [getattr(node, "returns", None), getattr(node, "annotation", None)]:
            if part is not None:
                part.__class__ = ast.Constant
                part.value, part.kind = None, None
    exec(compile(ast.Module(nodes, []), path, "exec"), names)


def case(framework, checkouts, tokens, vocabulary, hidden, temperature):
    torch.manual_seed(0)
    names = {"torch": torch, "dist": dist, "F": F, "Tuple": tuple}
    if framework == "slime":
        wanted = ["_VocabParallelLogProbEntropy", "calculate_log_probs_and_entropy", "_calculate_log_probs_and_entropy_chunk",
                  "_maybe_all_reduce", "_get_vocab_parallel_rank_size"]
        run_of(checkouts[0], "slime/utils/ppo_utils.py", wanted, names)
    else:
        names |= {"get_tensor_model_parallel_group": lambda: dist.group.WORLD, "get_tensor_model_parallel_rank": lambda: 0,
                  "get_tensor_model_parallel_world_size": lambda: 1, "get_pg_rank": lambda _: 0, "get_pg_size": lambda _: 1}
        wanted = ["VocabParallelCrossEntropy", "_VocabParallelCrossEntropy", "vocab_parallel_cross_entropy"]
        run_of(checkouts[2], "megatron/core/tensor_parallel/cross_entropy.py", wanted, names)
        utility = subprocess.run(["git", "-C", checkouts[2], "show", "HEAD:megatron/core/tensor_parallel/utils.py"], check=True,
                                 capture_output=True, text=True).stdout
        nodes = [node for node in ast.parse(utility).body if getattr(node, "name", None) == "VocabUtility"]
        exec(compile(ast.Module(nodes, []), "utils", "exec"), names | {"Sequence": list}, names)
        run_of(checkouts[1], "mindspeed_rl/utils/compute.py", ["compute_log_probs"], names)
        names["get_vocab_parallel"] = lambda: names["vocab_parallel_cross_entropy"]
    hidden_states = torch.randn(tokens, hidden, dtype=torch.bfloat16, requires_grad=True)
    weight = torch.nn.Parameter(torch.randn(vocabulary, hidden, dtype=torch.bfloat16))
    targets = torch.randint(0, vocabulary, (tokens,))

    def log_probs(output):
        if framework == "slime":
            logits = output / temperature if temperature != 1.0 else output
            return names["calculate_log_probs_and_entropy"](logits, targets, None)[0]
        output.div_(temperature)
        return names["compute_log_probs"](output, targets)

    seen = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in (weight.data_ptr(), hidden_states.data_ptr()):
            seen.setdefault(storage.data_ptr(), [list(tensor.shape), str(tensor.dtype), storage.nbytes(), storage])
        return tensor

    with Held() as held:
        output = F.linear(hidden_states, weight).float()
        held.most = 0
        out = log_probs(output)
        del output
    most, after = held.most, held.now
    held.most = 0
    with held:
        out.sum().backward()
    backward = held.most
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        log_probs(F.linear(hidden_states, weight).float())
    kept = [{"shape": shape, "dtype": dtype.removeprefix("torch."), "bytes": size} for shape, dtype, size, _ in seen.values()]
    return {"framework": framework, "tokens": tokens, "vocabulary": vocabulary, "hidden": hidden, "temperature": temperature,
            "held_at_most": most, "held_after": after, "held_in_backward_at_most": backward, "kept": kept}


def main():
    checkouts = sys.argv[1:]
    if not dist.is_initialized():
        dist.init_process_group("gloo", init_method="tcp://127.0.0.1:29611", rank=0, world_size=1)
    heads = [subprocess.run(["git", "-C", one, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip() for one in checkouts]
    print(json.dumps({"torch": torch.__version__, "slime": heads[0], "mindspeed_rl": heads[1], "megatron": heads[2]}))
    for framework, temperature in [("slime", 1.0), ("slime", 0.8), ("mindspeed_rl", 1.0), ("mindspeed_rl", 0.8)]:
        for tokens, vocabulary in [(256, 4096), (512, 8192)]:
            print(json.dumps(case(framework, checkouts, tokens, vocabulary, 64, temperature)))


if __name__ == "__main__":
    main()
