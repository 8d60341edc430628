"""Records what autograd keeps of small mixtures of experts of NeMo Automodel's own modules, on a CPU.

    pip install torch transformers
    git clone https://github.com/NVIDIA-NeMo/Automodel && git -C Automodel checkout 36044ad3d1
    PYTHONPATH=Automodel python automodel_experts.py | grep '^{' > automodel_experts.jsonl

One rank holds all experts, and what needs a GPU is stood in for: DeepEP's exchange hands every token on in a new tensor, Transformer
Engine's permutation (`moe_permute_with_probs`, `moe_unpermute`) and the kernel that spreads indices (`fused_indices_to_multihot`) keep
the maps that they keep there. The experts are `GroupedExpertsDeepEP` with `torch._grouped_mm`; norms are the compiled ones
(`rms_norm: torch_fp32`), which keep what Transformer Engine's norm keeps, the attention is PyTorch's, which keeps queries, keys, values,
output and log-sum-exp as Transformer Engine's does. Counted is each storage that autograd keeps, parameters left out, that is
still kept when the loss is there, by part of the second layer of three: where a storage is read first.
"""

import collections
import gc
import json
import sys
import weakref

sys.modules["triton"] = None

import torch
import transformers
from nemo_automodel.components.loss.masked_ce import MaskedCrossEntropy
from nemo_automodel.components.models.common import BackendConfig
from nemo_automodel.components.models.deepseek_v3 import model as deepseek
from nemo_automodel.components.models.glm4_moe import model as glm
from nemo_automodel.components.models.glm4_moe_lite import model as glm_lite
from nemo_automodel.components.models.qwen3_moe import model as qwen
from nemo_automodel.components.moe import experts as moe_experts
from nemo_automodel.components.moe.megatron import moe_utils, token_dispatcher
from transformers import AutoConfig

torch.cuda.current_device = lambda: 0
torch.Tensor.to_local = lambda self: self
LAYERS = 3


class Held:
    """A kept tensor; gone with the graph that keeps it."""

    def __init__(self, tensor):
        self.tensor = tensor


class Exchange(torch.autograd.Function):
    """DeepEP with one rank: tokens, indices and probabilities in new tensors; nothing of them is kept."""

    @staticmethod
    def forward(ctx, x, indices, probs, experts, group):
        counts = torch.bincount(indices.flatten(), minlength=experts)
        return x.clone(), indices.clone(), probs.clone(), counts, None

    @staticmethod
    def backward(ctx, grad, *others):
        return grad.clone(), None, others[1], None, None


class Combine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group, handle):
        return x.clone(), None

    @staticmethod
    def backward(ctx, grad, _=None):
        return grad.clone(), None, None


class Spread(torch.autograd.Function):
    """`IndicesToMultihot`, which keeps a map of positions, int32 for each token and expert of the rank."""

    @staticmethod
    def forward(ctx, indices, probs, experts):
        positions = torch.zeros(len(indices), experts, dtype=torch.int32)
        chosen = torch.zeros(len(indices), experts, dtype=torch.bool).scatter(1, indices, True)
        ctx.save_for_backward(positions)
        ctx.indices = indices.shape
        return chosen, torch.zeros(len(indices), experts).scatter(1, indices, probs)

    @staticmethod
    def backward(ctx, _, grad):
        return None, torch.zeros(ctx.indices), None


class Permute(torch.autograd.Function):
    """`moe_permute_with_probs`, which keeps a map of rows, int32 for each token and twice each expert plus one."""

    @staticmethod
    def forward(ctx, tokens, probs, chosen, rows):
        row_map = torch.zeros(len(tokens), 2 * chosen.shape[1] + 1, dtype=torch.int32)
        source = chosen.T.nonzero()[:, 1]
        ctx.save_for_backward(row_map)
        ctx.source, ctx.shape, ctx.chosen = source, tokens.shape, chosen
        return tokens[source], probs.T[chosen.T], row_map

    @staticmethod
    def backward(ctx, grad, grad_probs, _):
        back = torch.zeros(ctx.shape, dtype=grad.dtype).index_add_(0, ctx.source, grad)
        return back, torch.zeros(ctx.chosen.T.shape).masked_scatter(ctx.chosen.T, grad_probs).T, None, None


class Unpermute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tokens, row_map, shape):
        ctx.save_for_backward(row_map)
        ctx.rows = tokens.shape
        return torch.zeros(shape, dtype=tokens.dtype)

    @staticmethod
    def backward(ctx, grad):
        return torch.zeros(ctx.rows, dtype=grad.dtype), None, None


moe_utils.HAS_TE = True
moe_utils.moe_permute_with_probs = lambda tokens, probs, chosen, num_out_tokens: Permute.apply(tokens, probs, chosen, num_out_tokens)
moe_utils.moe_unpermute = lambda tokens, row_map, merging_probs, restore_shape: Unpermute.apply(tokens, row_map, restore_shape)
token_dispatcher.fused_dispatch = lambda *given, **_: Exchange.apply(*given)
token_dispatcher.fused_combine = lambda *given, **_: Combine.apply(*given)
token_dispatcher.fused_indices_to_multihot = Spread.apply


def dispatcher(experts):
    """The dispatcher of a rank that holds all of `experts`."""
    made = object.__new__(token_dispatcher.MoEFlexTokenDispatcher)
    made.config = token_dispatcher.TokenDispatcherConfig(moe_permute_fusion=True)
    made._comm_manager = token_dispatcher._DeepepManager(
        group=None, router_topk=None, permute_fusion=True, num_experts=experts, num_local_experts=experts)
    return made


def latent_shape(c):
    return dict(
        num_key_value_heads=c["a"], q_lora_rank=c["ql"], kv_lora_rank=c["kl"], qk_nope_head_dim=c["dn"], qk_rope_head_dim=c["dr"],
        v_head_dim=c["dv"], n_routed_experts=c["E"], num_experts_per_tok=c["topk"], moe_intermediate_size=c["fm"],
        n_shared_experts=c["shared"], first_k_dense_replace=1, n_group=c["groups"], topk_group=max(1, c["groups"] // 2),
        norm_topk_prob=True, routed_scaling_factor=2.5)


CASES = {
    "qwen3_moe": (qwen.Qwen3MoeForCausalLM, lambda c: dict(
        num_key_value_heads=c["k"], head_dim=c["d"], num_experts=c["E"], num_experts_per_tok=c["topk"],
        moe_intermediate_size=c["fm"], norm_topk_prob=True, router_aux_loss_coef=c["aux"])),
    "deepseek_v3": (deepseek.DeepseekV3ForCausalLM, latent_shape),
    "glm4_moe_lite": (glm_lite.Glm4MoeLiteForCausalLM, lambda c: latent_shape(c) | dict(
        head_dim=c["dr"], mlp_layer_types=["dense"] + ["sparse"] * (LAYERS - 1))),
    "glm4_moe": (glm.Glm4MoeForCausalLM, lambda c: dict(
        num_key_value_heads=c["k"], head_dim=c["d"], n_routed_experts=c["E"], num_experts_per_tok=c["topk"],
        moe_intermediate_size=c["fm"], n_shared_experts=c["shared"], first_k_dense_replace=1, n_group=1, topk_group=1,
        norm_topk_prob=True, use_qk_norm=c["qk"], attention_bias=True, partial_rotary_factor=0.5)),
}


def record(case):
    """The bytes kept, by part of a layer and name of the place where they are read first."""
    torch.manual_seed(0)
    model_class, more = CASES[case["arch"]]
    config = AutoConfig.for_model(
        case["arch"], num_hidden_layers=LAYERS, hidden_size=case["h"], intermediate_size=case["f"], vocab_size=case["V"],
        num_attention_heads=case["a"], max_position_embeddings=2 * case["s"], tie_word_embeddings=False, dtype="bfloat16", **more(case))
    backend = BackendConfig(attn="sdpa", linear="torch", rms_norm="torch_fp32", experts="torch_mm", dispatcher="torch",
                            fake_balanced_gate=case["fake"], enable_hf_state_dict_adapter=False)
    model = model_class(config, backend=backend).to(torch.bfloat16).train()
    if hasattr(model.model, "rotary_emb"):
        model.model.rotary_emb.device = torch.device("cpu")
    for block in model.model.layers.values():
        mlp = block.mlp
        if hasattr(mlp, "experts"):
            whole = moe_experts.GroupedExpertsDeepEP(model.model.moe_config, backend=backend).to(torch.bfloat16)
            whole.use_torch_mm, whole.n_routed_experts, whole.ep_size = True, case["E"], 1
            whole.token_dispatcher = dispatcher(case["E"])
            mlp.experts = whole
    for tensor in [*model.parameters()]:
        torch.nn.init.uniform_(tensor, 0.0, 0.02)
    tokens = torch.randint(0, case["V"], (case["b"], case["s"]))
    model(input_ids=tokens).logits.sum().backward()
    model.zero_grad()
    own = {p.untyped_storage().data_ptr() for p in [*model.parameters(), *model.buffers()]}
    place, found = [], collections.OrderedDict()
    layer = model.model.layers["1"]
    watched = {"input_layernorm": layer.input_layernorm, "self_attn": layer.self_attn, "post_attention_layernorm":
               layer.post_attention_layernorm, "mlp": layer.mlp}
    if hasattr(layer.mlp, "gate"):
        watched |= {"gate": layer.mlp.gate, "experts": layer.mlp.experts}
    for name, module in watched.items():
        module.register_forward_pre_hook(lambda *_, name=name: place.append(name))
        module.register_forward_hook(lambda *_: place.pop() and None)

    def pack(tensor):
        storage, held = tensor.untyped_storage(), Held(tensor)
        if place and storage.data_ptr() not in own and storage.nbytes():
            first = (place[-1], storage, str(tensor.dtype), list(tensor.shape), [])
            found.setdefault(storage.data_ptr(), first)[-1].append(weakref.ref(held))
        return held

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda held: held.tensor):
        loss = model(input_ids=tokens).logits.float().sum()
    gc.collect()
    kept = collections.Counter()
    listed = []
    for where, storage, dtype, shape, holders in found.values():
        if all(holder() is None for holder in holders):
            continue
        kept[where] += storage.nbytes()
        listed.append([where, dtype.removeprefix("torch."), shape, storage.nbytes()])
    loss.backward()
    return dict(kept=kept, **({"listed": listed} if "-v" in sys.argv else {}))


if __name__ == "__main__":
    print(json.dumps({"what": "Bytes that autograd keeps of layers with experts of NeMo Automodel's own modules",
                      "versions": {"automodel": "36044ad3d1", "torch": torch.__version__, "transformers": transformers.__version__}}))
    for b, s in ((1, 64), (2, 96)):
        # Automodel's loss over the logits themselves, as benchmarks run it.
        logits = torch.randn(b, s, 1000, dtype=torch.bfloat16, requires_grad=True)
        labels, kept = torch.randint(0, 1000, (b, s)), {}

        def keep(tensor):
            kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            loss = MaskedCrossEntropy(fp32_upcast=False)(logits, labels, num_label_tokens=b * s)
        print(json.dumps(dict(id=f"loss-b{b}-s{s}", b=b, s=s, V=1000, kept=dict(loss=sum(kept.values())))), flush=True)
    for arch in CASES:
        for b, s in ((1, 64), (2, 96)):
            for fake in (False, True):
                more = dict(aux=0.0, ql=None, kl=0, dn=0, dr=0, dv=0, shared=0, groups=1, qk=False)
                variants = [more]
                if arch == "qwen3_moe":
                    variants = [more, more | dict(aux=0.001)]
                elif arch == "deepseek_v3":
                    latent = more | dict(kl=48, dn=32, dr=16, dv=32, shared=2)
                    variants = [latent, latent | dict(ql=80, groups=4, shared=1)]
                elif arch == "glm4_moe_lite":
                    variants = [more | dict(kl=48, dn=32, dr=16, dv=32, shared=1, ql=80)]
                else:
                    variants = [more | dict(shared=1), more | dict(shared=1, qk=True)]
                for index, variant in enumerate(variants):
                    case = dict(id=f"{arch}-b{b}-s{s}-{index}" + ("-fake" if fake else ""), arch=arch, b=b, s=s, h=128, a=4, k=2, d=32,
                                f=352, V=1000, E=8, topk=2, fm=96, fake=fake, **variant)
                    print(json.dumps({**case, **record(case)}), flush=True)
