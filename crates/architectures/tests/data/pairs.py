#!/usr/bin/env python3
"""Counts the parameters of encoder-decoders with the transformers library itself: each type's defaults, random configurations, and
sizes of released models (of which the sizes stand below, as their papers and files state them).

    v/bin/python pairs.py > pairs.jsonl

Versions as in count.py. The class is the one that `AutoModelForSeq2SeqLM` (or, of speech, `AutoModelForSpeechSeq2Seq`) takes, on the
meta device, its weights tied as the library ties them; `parameters` are all there are, tied ones once.
"""
import json
import random
import warnings

warnings.filterwarnings("ignore")
import torch
import transformers
from transformers import AutoModelForSeq2SeqLM, AutoModelForSpeechSeq2Seq
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

T5 = {"vocab_size": 32128, "feed_forward_proj": "relu"}
GATED = {"vocab_size": 32128, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
RELEASED = {
    "t5-small": ("t5", T5 | dict(d_model=512, d_kv=64, d_ff=2048, num_layers=6, num_heads=8)),
    "t5-base": ("t5", T5 | dict(d_model=768, d_kv=64, d_ff=3072, num_layers=12, num_heads=12)),
    "t5-11b": ("t5", T5 | dict(d_model=1024, d_kv=128, d_ff=65536, num_layers=24, num_heads=128)),
    "flan-t5-xl": ("t5", GATED | dict(d_model=2048, d_kv=64, d_ff=5120, num_layers=24, num_heads=32)),
    "flan-t5-xxl": ("t5", GATED | dict(d_model=4096, d_kv=64, d_ff=10240, num_layers=24, num_heads=64)),
    "mt5-xxl": ("mt5", GATED | dict(vocab_size=250112, d_model=4096, d_kv=64, d_ff=10240, num_layers=24, num_heads=64)),
    "bart-base": ("bart", dict(vocab_size=50265, d_model=768, encoder_layers=6, decoder_layers=6, encoder_ffn_dim=3072,
                               decoder_ffn_dim=3072, encoder_attention_heads=12, decoder_attention_heads=12)),
    "bart-large": ("bart", dict(vocab_size=50265)),
    "mbart-large-50": ("mbart", dict(vocab_size=250054)),
    "pegasus-large": ("pegasus", dict(vocab_size=96103, d_model=1024, encoder_layers=16, decoder_layers=16,
                                      encoder_ffn_dim=4096, decoder_ffn_dim=4096, max_position_embeddings=1024)),
    "nllb-200-3.3B": ("m2m_100", dict(vocab_size=256206, d_model=2048, encoder_layers=24, decoder_layers=24,
                                      encoder_ffn_dim=8192, decoder_ffn_dim=8192)),
    "whisper-tiny": ("whisper", dict(vocab_size=51865, d_model=384, encoder_layers=4, decoder_layers=4,
                                     encoder_ffn_dim=1536, decoder_ffn_dim=1536)),
    "whisper-large-v3": ("whisper", dict(vocab_size=51866, d_model=1280, encoder_layers=32, decoder_layers=32,
                                         encoder_ffn_dim=5120, decoder_ffn_dim=5120, num_mel_bins=128,
                                         encoder_attention_heads=20, decoder_attention_heads=20)),
    "opus-mt-en-de": ("marian", dict(vocab_size=58101, d_model=512, encoder_layers=6, decoder_layers=6,
                                     encoder_ffn_dim=2048, decoder_ffn_dim=2048, max_position_embeddings=512)),
}
T5_LIKE = "t5 mt5 umt5 longt5".split()
BART_LIKE = "bart mbart plbart pegasus marian blenderbot blenderbot-small m2m_100 led whisper speech_to_text".split()


def drawn(name, draw):
    width = draw.choice([2, 3, 5]) * 32
    if name in T5_LIKE:
        made = dict(vocab_size=draw.randrange(300, 999), d_model=width, d_kv=draw.choice([8, 24]), d_ff=draw.randrange(64, 300),
                    num_layers=draw.randrange(1, 4), num_decoder_layers=draw.randrange(1, 4), num_heads=draw.choice([2, 3]),
                    relative_attention_num_buckets=draw.choice([16, 32]), tie_word_embeddings=draw.choice([True, False]),
                    feed_forward_proj=draw.choice(["relu", "gated-gelu", "gated-silu"]))
        if name == "longt5":
            made["encoder_attention_type"] = draw.choice(["local", "transient-global"])
        return made
    made = dict(vocab_size=draw.randrange(300, 999), d_model=width, encoder_layers=draw.randrange(1, 4),
                decoder_layers=draw.randrange(1, 4), encoder_ffn_dim=draw.randrange(64, 300),
                decoder_ffn_dim=draw.randrange(64, 300), encoder_attention_heads=2, decoder_attention_heads=4, pad_token_id=1)
    if name == "led":
        made |= dict(max_encoder_position_embeddings=draw.randrange(64, 200), max_decoder_position_embeddings=draw.randrange(64, 200),
                     attention_window=32)
    elif name in ("whisper", "speech_to_text"):
        made |= dict(max_source_positions=draw.randrange(64, 200), max_target_positions=draw.randrange(64, 200))
        made |= dict(num_mel_bins=draw.choice([40, 80])) if name == "whisper" else dict(
            conv_channels=draw.choice([64, 96]), input_feat_per_channel=draw.choice([40, 80]))
    else:
        made |= dict(max_position_embeddings=draw.randrange(64, 200))
    if name == "whisper":
        made |= dict(decoder_start_token_id=1, bos_token_id=1, eos_token_id=1)
    return made


def count(name, config):
    made = CONFIG_MAPPING[name](**config)
    auto = AutoModelForSpeechSeq2Seq if name in ("whisper", "speech_to_text") else AutoModelForSeq2SeqLM
    with torch.device("meta"):
        model = auto.from_config(made)
    model.tie_weights()
    return sum(tensor.numel() for tensor in model.parameters())


def main():
    lines = [(f"{name}-default", name, {}) for name in T5_LIKE + BART_LIKE]
    draw = random.Random(20)
    lines += [(f"{name}-random-{at}", name, drawn(name, draw)) for name in T5_LIKE + BART_LIKE for at in range(4)]
    lines += [(released, name, config) for released, (name, config) in RELEASED.items()]
    for line, name, config in lines:
        written = {"model_type": name, **config}
        print(json.dumps({"name": line, "config": written, "parameters": count(name, config)}, separators=(",", ":")))


if __name__ == "__main__":
    main()
