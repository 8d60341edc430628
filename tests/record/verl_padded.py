"""Records what verl's loss keeps and allocates of the logits, of padded samples above all (`use_remove_padding=False`), on a CPU.

    git clone https://github.com/volcengine/verl && git clone https://github.com/hkust-nlp/simpleRL-reason
    python tests/record/verl_padded.py verl simpleRL-reason > tests/data/activations/verl_padded.jsonl

Needs torch 2.15.0. The steps from logits to loss are those of `verl/workers/actor/dp_actor.py:_forward_micro_batch`: the logits over the
temperature in place, the positions that sample the response, their log-probabilities and, where it is asked for, their entropy, both by the
functions of `verl/utils/torch_functional.py` of the checkout: today's, whose log-probabilities' gradient takes the place of their logits,
and those of February 2025 (simpleRL-reason), where it does not. flash-attn's cross entropy is stood in for by a function that keeps and
allocates what it does (`flash_attn/ops/triton/cross_entropy.py:CrossEntropyLoss`), and CUDA's autocast by its own lists
(`ATen/autocast_mode.h`: softmax and sum take fp32 as their dtype, logsumexp is given an fp32 copy). Counted are tensors of at least
responses times vocabulary: bytes kept once the loss is there, the most that are alive in the forward pass and in backward, and the most
of a pass without gradients ("scored"), in which log-probabilities of rollouts are taken. Samples that are joined have no such positions:
all of their tokens are counted as responses.
"""

import ast
import json
import subprocess
import sys
import types

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

HIDDEN, VOCABULARY = 4, 512


class CrossEntropyLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, labels, inplace_backward):
        logits = logits if logits.stride(-1) == 1 else logits.contiguous()
        losses = torch.zeros(logits.shape[0])
        ctx.save_for_backward(logits, losses.clone(), labels)
        ctx.inplace_backward = inplace_backward
        return losses

    @staticmethod
    def backward(ctx, gradient):
        logits, _, _ = ctx.saved_tensors
        return logits.detach() if ctx.inplace_backward else torch.empty_like(logits), None, None


def cross_entropy_loss(logits, labels, inplace_backward=False):
    return (CrossEntropyLoss.apply(logits, labels, inplace_backward), None)


def logsumexp(logits, dim):
    """What PyTorch's own makes within one operation (`aten/src/ATen/native/ReduceOps.cpp:logsumexp_out_impl`)."""
    most = torch.amax(logits, dim, keepdim=True)
    return (logits - most).exp_().sum(dim).log_().add_(most.squeeze(dim))


class Autocast(TorchFunctionMode):
    """CUDA's autocast of the functions that are met here."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        name = getattr(function, "__name__", "")
        assert torch._C._dispatch_has_kernel_for_dispatch_key("aten::logsumexp", "AutocastCUDA")
        if name == "logsumexp":
            args = (args[0].float(), *args[1:])
            if not torch.is_grad_enabled():
                return logsumexp(*args, **kwargs)
        if name in ("softmax", "sum") and args[0].dtype == torch.bfloat16:
            kwargs["dtype"] = torch.float32
        return function(*args, **kwargs)


class Alive(TorchDispatchMode):
    """The wide storages that are alive, after each operation."""

    def __init__(self, least):
        super().__init__()
        self.least, self.seen, self.most = least, {}, 0

    def note(self, tensor):
        storage = tensor.untyped_storage()
        if storage.nbytes() >= self.least:
            self.seen.setdefault(StorageWeakRef(storage), storage.nbytes())

    def alive(self):
        self.seen = {reference: size for reference, size in self.seen.items() if not reference.expired()}
        return sum(self.seen.values())

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for value in out if isinstance(out, (tuple, list)) else [out]:
            if isinstance(value, torch.Tensor):
                self.note(value)
        self.most = max(self.most, self.alive())
        return out


def functions(checkout):
    text = subprocess.run(["git", "-C", checkout, "show", "HEAD:verl/utils/torch_functional.py"], check=True, capture_output=True, text=True).stdout
    module = types.ModuleType("torch_functional")
    module.__dict__.update(
        torch=torch, cross_entropy_loss=cross_entropy_loss, FLAH_ATTN_CROSS_ENTROPY_LOSS_AVAILABLE=True, NPU_CROSS_ENTROPY_LOSS_AVAILABLE=False
    )
    wanted = ["logprobs_from_logits", "logprobs_from_logits_flash_attn", "entropy_from_logits"]
    for node in ast.parse(text).body:
        if getattr(node, "name", None) in wanted:
            exec("from __future__ import annotations\n" + ast.get_source_segment(text, node), module.__dict__)
    return module


def log_probs_of(own, states, weight, responses, joined, entropy):
    """Log-probabilities and entropies of the responses, or of all tokens of joined samples."""
    logits = torch.nn.functional.linear(states, weight)
    logits.div_(1.0)
    if joined:
        return own.logprobs_from_logits(logits.squeeze(0), responses, inplace_backward=True), None
    logits = logits[:, -responses.shape[1] - 1:-1, :]
    log_probs = own.logprobs_from_logits(logits, responses)
    return log_probs, own.entropy_from_logits(logits) if entropy else None


def record(own, samples, prompt, response, entropy):
    joined = prompt == 0
    states = torch.randn(samples, prompt + response, HIDDEN, dtype=torch.bfloat16, requires_grad=True)
    weight = torch.randn(VOCABULARY, HIDDEN, dtype=torch.bfloat16, requires_grad=True)
    responses = torch.zeros(response if joined else (samples, response), dtype=torch.int64)
    alive = Alive(2 * samples * response * VOCABULARY)
    with alive:
        with Autocast():
            log_probs, entropies = log_probs_of(own, states, weight, responses, joined, entropy)
            loss = log_probs.float().mean()
            if entropy:
                loss = loss - entropies.float().mean() * 0.001
        del log_probs, entropies
        kept, forward, alive.most = alive.alive(), alive.most, 0
        loss.backward()
        del loss
        backward, alive.most = alive.most, 0
        with torch.no_grad(), Autocast():
            log_probs_of(own, states, weight, responses, joined, entropy)
    return {"kept": kept, "forward": forward, "backward": backward, "scored": alive.most}


def main():
    print(json.dumps({"torch": torch.__version__, "vocabulary": VOCABULARY}))
    for name, checkout in zip(["today", "february"], sys.argv[1:]):
        own = functions(checkout)
        # Long prompts, and long responses: which moment is the fullest depends on it.
        shapes = [(samples, *lengths) for samples in (1, 3) for lengths in [(5, 11), (90, 11), (40, 20), (1, 30)]]
        cases = [(shape, entropy) for entropy in (False, True) for shape in shapes]
        for (samples, prompt, response), entropy in cases + ([((1, 0, 24), False)] if name == "today" else []):
            found = record(own, samples, prompt, response, entropy)
            print(json.dumps({"verl": name, "entropy": entropy, "samples": samples, "prompt": prompt, "response": response, **found}))


main()
