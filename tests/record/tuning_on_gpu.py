"""Runs TRL's SFTTrainer, or unsloth around it, on one GPU and records bytes and seconds.

    pip install trl==1.15.0 datasets==4.3.0 unsloth==2026.10.9 unsloth_zoo==2026.10.9 bitsandbytes==0.49.0
    for which in trl unsloth; do python tuning_on_gpu.py OUT $which; done

Made the families `trl-h200` and `unsloth-h200` of `../data/measured/memory.jsonl` on 2026-11-26, on one H200 of 141 GB. The model has the
shape of Llama 3.2 1B and random weights, samples are as long as the length, without padding. Bytes are what PyTorch's allocator counts,
`steady` those when a step is over. Of unsloth's first run the embedding, 525,336,576 bytes, was never given back: it is taken off the
three figures of the second.
"""

import gc, json, os, sys, tempfile, time
os.environ.setdefault("HF_HUB_OFFLINE", "1"); os.environ.setdefault("UNSLOTH_DISABLE_STATISTICS", "1")
OUT, WHICH = sys.argv[1], sys.argv[2]
out = open(os.path.join(OUT, f"tuning-{WHICH}.jsonl"), "w")
if WHICH == "unsloth":
    import unsloth
    from unsloth import FastLanguageModel
import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, PreTrainedTokenizerFast, TrainerCallback
from trl import SFTConfig, SFTTrainer

ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
WHERE = tempfile.mkdtemp()
LENGTH = 2048


def fresh():
    gc.collect(); torch.cuda.empty_cache(); torch.cuda.reset_peak_memory_stats()


def store():
    from tokenizers import Tokenizer, models
    config = LlamaConfig(hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8, head_dim=64, vocab_size=128256,
                         max_position_embeddings=131072, tie_word_embeddings=True)
    with torch.device("cuda"): model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.save_pretrained(WHERE); del model; fresh()
    words = {f"w{i}": i for i in range(1000)} | {"<unk>": 1000, "<s>": 1001, "</s>": 1002, "<pad>": 1003}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>", pad_token="<pad>").save_pretrained(WHERE)


class Clock(TrainerCallback):
    def __init__(self): self.at, self.steady = [], 0
    def on_step_begin(self, *a, **k): torch.cuda.synchronize(); self.begin = time.perf_counter()
    def on_step_end(self, *a, **k):
        torch.cuda.synchronize(); self.at.append(round(time.perf_counter() - self.begin, 5)); self.steady = torch.cuda.memory_allocated()


def run(trainer, clock, **what):
    before = torch.cuda.memory_allocated(); fresh(); trainer.train()
    what |= dict(before=before, steady=clock.steady, steps=clock.at, peak=torch.cuda.max_memory_allocated(), reserved=torch.cuda.max_memory_reserved())
    out.write(json.dumps(what) + "\n"); out.flush(); print(what, flush=True)


def settings(batch, **more):
    return SFTConfig(output_dir=tempfile.mkdtemp(), per_device_train_batch_size=batch, max_length=LENGTH, dataset_kwargs={"skip_prepare_dataset": True}, max_steps=8,
                     logging_steps=100, save_strategy="no", report_to=[], **more)


store(); fresh(); tokenizer = AutoTokenizer.from_pretrained(WHERE)
if WHICH == "trl":
    for more, adapted in (({}, False), (dict(gradient_checkpointing=False), False), ({}, True)):
        clock, batch = Clock(), 4; fresh()
        model = AutoModelForCausalLM.from_pretrained(WHERE, dtype=torch.bfloat16, device_map={"": 0})
        lora = __import__("peft").LoraConfig(r=16, target_modules=ALL, task_type="CAUSAL_LM") if adapted else None
        data = Dataset.from_dict({"input_ids": [[(i * 7 + j) % 1000 for i in range(LENGTH)] for j in range(batch * 8)]})
        trainer = SFTTrainer(model=model, processing_class=tokenizer, callbacks=[clock], peft_config=lora, train_dataset=data, args=settings(batch, **more))
        run(trainer, clock, more=more, adapted=adapted); del trainer, model
else:
    for four in (True, False):
        clock, batch = Clock(), 2; fresh()
        model, tokenizer = FastLanguageModel.from_pretrained(WHERE, max_seq_length=LENGTH, load_in_4bit=four, dtype=torch.bfloat16)
        model = FastLanguageModel.get_peft_model(model, r=16, target_modules=ALL, lora_alpha=16, lora_dropout=0, bias="none", use_gradient_checkpointing="unsloth", random_state=3407)
        data = Dataset.from_dict({"input_ids": torch.randint(0, 1000, (batch * 16, LENGTH)).tolist()})
        args = settings(batch, bf16=True, optim="adamw_8bit", gradient_accumulation_steps=1)
        run(SFTTrainer(model=model, processing_class=tokenizer, train_dataset=data, callbacks=[clock], args=args), clock, four=four); del model
