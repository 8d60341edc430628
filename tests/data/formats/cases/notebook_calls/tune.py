import torch
from trl import SFTConfig, SFTTrainer
from peft import LoraConfig
length = 2048
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen3-8B", torch_dtype=torch.bfloat16)
tokenizer = AutoTokenizer.from_pretrained("Qwen/Qwen3-8B")
peft_config = LoraConfig(r=16, lora_alpha=32, target_modules=["q_proj", "v_proj"])
args = SFTConfig(output_dir="out", per_device_train_batch_size=2, max_length=length, bf16=True)
SFTTrainer(model=model, args=args, peft_config=peft_config).train()
