#!/usr/bin/env python3
"""Writes ../../src/defaults.txt from the configuration classes of the transformers library.

    v/bin/python defaults.py > ../../src/defaults.txt

One line for each model type that has rules (../../src/rules.txt), encoder-decoders included, and for each composite type whose text model has:
what its configuration may leave out (key=value, of the keys that its rules name), other names of keys (name>key), and
the text model of a composite one (key@type). See count.py for the versions.
"""
import dataclasses
import json
import os
import re
import warnings

warnings.filterwarnings("ignore")
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

HERE = os.path.dirname(os.path.abspath(__file__))
TEXT = ("text_config", "llm_config", "language_config")
ALWAYS = """max_position_embeddings num_nextn_predict_layers num_mtp_layers sliding_window tie_word_embeddings
    use_sliding_window max_window_layers attention_chunk_size attn_logit_softcapping final_logit_softcapping""".split()
# What the code of a composite type does beside its fields.
BESIDE = {"step3p7": "tie_word_embeddings=false", "ovis2": "output_layer_of_its_own=true"}


def rules():
    """The words of each type's definitions, its ancestors' included."""
    words, parents, names = {}, {}, []
    for line in open(f"{HERE}/../../src/rules.txt", encoding="utf-8"):
        line = line.split("#")[0].strip()
        if head := re.match(r"(?:type|pair) (.*?)(?: : (\S+))?$", line):
            names = head[1].split()
            for name in names:
                words[name], parents[name] = set(), head[2]
        elif " = " in line:
            found = {word.removeprefix("config.") for word in re.findall(r"[A-Za-z_][\w.]*", line)}
            for name in names:
                words[name] |= found
    def all_of(name):
        return words[name] | (all_of(parents[name]) if parents[name] else set())
    return {name: all_of(name) | set(ALWAYS) for name in words}


def pairs():
    """Encoder-decoders, none of which is a text model."""
    heads = re.findall(r"^pair (.*?) : ", open(f"{HERE}/../../src/rules.txt", encoding="utf-8").read(), re.M)
    return {name for head in heads for name in head.split()}


def fields(cls):
    for field in dataclasses.fields(cls):
        if field.default is not dataclasses.MISSING:
            yield field.name, field.default


def text_model(cls):
    """The key and the type of the text model that the class builds by default."""
    try:
        config = cls()
    except Exception:
        return None
    for key in TEXT:
        inner = getattr(config, key, None)
        if inner is not None and getattr(inner, "model_type", ""):
            return f"{key}@{inner.model_type}"
    return None


def tied_by_text_model(cls):
    """Whether embeddings are tied where the text model's configuration alone says so, as files from before version 5 do."""
    key = next((key for key in TEXT if getattr(cls(), key, None) is not None), None)
    try:
        text = type(getattr(cls(), key))(tie_word_embeddings=True)
        return bool(cls(**{key: text.to_dict(), "tie_word_embeddings": False}).tie_word_embeddings)
    except Exception:
        return False


def line(name, keys):
    cls = CONFIG_MAPPING[name]
    aliases = dict(getattr(cls, "attribute_map", {}))
    out = []
    for key, value in fields(cls):
        others = {key} | {one for one, other in aliases.items() if other == key}
        if not others & keys or value is None or isinstance(value, (list, tuple, dict)):
            continue
        if isinstance(value, (bool, int, float)) or (isinstance(value, str) and value and " " not in value):
            out.append(f"{key}={value if isinstance(value, str) else json.dumps(value)}")
    out += [f"{one}>{other}" for one, other in aliases.items() if one in keys or other in keys]
    return out


# Of code that comes with the weights: `configuration_internvl_chat.py` unties whatever is written.
OF_THE_HUB = ["internvl_chat: tie_word_embeddings=false"]


def main():
    known, lines = rules(), []
    for name in sorted(CONFIG_MAPPING.keys()):
        text = text_model(CONFIG_MAPPING[name])
        if name in known:
            words = line(name, known[name])
        elif text and text.split("@")[1] in known and text.split("@")[1] not in pairs():
            words = [word for word in line(name, {"tie_word_embeddings"}) if ">" not in word]
        else:
            continue
        words += [word for word in (text, BESIDE.get(name)) if word]
        if text and tied_by_text_model(CONFIG_MAPPING[name]):
            words.append("tied_by_text_model=true")
        lines.append(f"{name}: {' '.join(words)}")
    lines = sorted(lines + OF_THE_HUB, key=lambda line: line.split(":")[0])
    print("# What a configuration may leave out, by model type: defaults (key=value), other names of keys (name>key)")
    print("# and the text model of a composite one (key@type). From the configuration classes of transformers 5.24.0.")
    print("# Read by `rules.rs`; made by tests/data/defaults.py.")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
