"""Records what a layer compiled as a whole keeps for backward, in torchtitan and in lingua, on a CPU.

    pip install torch
    pip download --no-deps torchtitan==0.2.0 && unzip torchtitan-0.2.0-*.whl -d titan
    git clone https://github.com/facebookresearch/lingua
    python compiled_layers.py titan lingua > compiled_layers.jsonl

The layers are the packages' own; of the modules that they import, those that need a GPU or more packages are stood in for by
empty ones. Every layer is compiled by itself: that is what torchtitan does, and what lingua's compiled model comes to, whose
graph breaks at the hooks of FSDP2 around every layer. Counted is each storage that autograd saves, parameters and the table of
rotations left out, in bytes for one layer in the middle.
"""

import json
import sys
import types

import torch

TITAN, LINGUA = sys.argv[1:3]
LAYERS, BATCH, SEQUENCE, WIDTH, HEADS, VOCABULARY = 3, 2, 48, 64, 4, 512


def package(name, folder):
    module = types.ModuleType(name)
    module.__path__ = [f"{folder}/{name.replace('.', '/')}"]
    sys.modules[name] = module
    return module


def stand_in(name, **held):
    module = types.ModuleType(name)
    module.__dict__.update(held)
    sys.modules[name] = module


def titan(groups):
    for name in ["torchtitan", "torchtitan.models", "torchtitan.models.llama3", "torchtitan.models.llama3.model",
                 "torchtitan.protocols", "torchtitan.components", "torchtitan.config", "torchtitan.tools"]:
        package(name, TITAN)
    sys.modules["torchtitan.config"].JobConfig = object
    empty = {name: type(name, (), {}) for name in ["AttentionMasksType", "BaseModelArgs", "ModelProtocol"]}
    stand_in("torchtitan.protocols.model", **empty)
    stand_in("torchtitan.protocols.train_spec", **empty)
    stand_in("torchtitan.models.utils", get_dense_model_nparams_and_flops=None)
    stand_in("torchtitan.components.tokenizer", BaseTokenizer=object)
    stand_in("torchtitan.tools.logging", logger=None)
    from torchtitan.models.llama3.model.args import TransformerModelArgs
    from torchtitan.models.llama3.model.model import Transformer

    model = Transformer(TransformerModelArgs(dim=WIDTH, n_layers=LAYERS, n_heads=HEADS, n_kv_heads=groups,
                                             vocab_size=VOCABULARY, max_seq_len=SEQUENCE, multiple_of=256))
    model = model.to(torch.bfloat16)
    model.init_weights()
    return list(model.layers.values()), lambda layer, x: layer(x, model.freqs_cis, None)


def lingua(groups):
    package("lingua", LINGUA)
    package("apps", LINGUA)
    package("apps.main", LINGUA)
    stand_in("lingua.probe", log_stats=lambda x, name: x)
    sys.modules["lingua"].probe = sys.modules["lingua.probe"]
    stand_in("xformers")
    stand_in("xformers.ops", fmha=None, AttentionBias=type("AttentionBias", (), {}))
    from apps.main.transformer import LMTransformer, LMTransformerArgs

    model = LMTransformer(LMTransformerArgs(dim=WIDTH, n_layers=LAYERS, n_heads=HEADS, n_kv_heads=groups,
                                            vocab_size=VOCABULARY, max_seqlen=SEQUENCE))
    model.init_weights()
    model = model.to(torch.bfloat16)
    table = model.rope_embeddings(seqlen=SEQUENCE)
    return list(model.layers), lambda layer, x: layer(x, table, mask="causal")


def case(name, groups):
    torch.manual_seed(0)
    layers, call = {"torchtitan": titan, "lingua": lingua}[name](groups)
    for layer in layers:
        layer.compile()
    left_out = {parameter.untyped_storage().data_ptr() for layer in layers for parameter in layer.parameters()}
    # The table is a buffer of the model, one for all layers.
    seen, at = [{} for _ in layers], [0]

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in left_out and tensor.shape[-2:] != (2, 2) and not tensor.is_complex():
            seen[at[0]].setdefault(storage.data_ptr(), (list(tensor.shape), str(tensor.dtype), storage.nbytes(), storage))
        return tensor

    for _ in range(2):
        x = torch.randn(BATCH, SEQUENCE, WIDTH, dtype=torch.bfloat16, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            for at[0], layer in enumerate(layers):
                seen[at[0]].clear()
                x = call(layer, x)
        x.sum().backward()
    inner = next(parameter.shape[0] for parameter in layers[0].feed_forward.w1.parameters())
    kept = [[shape, dtype.removeprefix("torch."), size] for shape, dtype, size, _ in seen[1].values()]
    return {"package": name, "b": BATCH, "s": SEQUENCE, "h": WIDTH, "a": HEADS, "k": groups, "f": inner,
            "kept": sum(size for _, _, size in kept), "tensors": kept}


def main():
    print(json.dumps({"torch": torch.__version__, "torchtitan": "0.2.0", "lingua": "437d680e521873bb5971067148a69587790da853"}))
    for name in ["torchtitan", "lingua"]:
        for groups in [HEADS, 2]:
            print(json.dumps(case(name, groups)))


if __name__ == "__main__":
    main()
