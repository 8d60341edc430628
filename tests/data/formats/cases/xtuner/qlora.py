# After https://github.com/InternLM/xtuner/blob/b934f462095c1e750229de35367c50ae36caa786/xtuner/configs/llama/llama2_7b/llama2_7b_qlora_alpaca_e3.py,
# without data, schedules and hooks.
from xtuner.model import SupervisedFinetune
pretrained_model_name_or_path = "meta-llama/Llama-2-7b-hf"
max_length = 2048
pack_to_max_length = True
sequence_parallel_size = 1
batch_size = 1  # per_device
accumulative_counts = 16
accumulative_counts *= sequence_parallel_size
optim_type = AdamW
model = dict(
    type=SupervisedFinetune,
    llm=dict(
        type=AutoModelForCausalLM.from_pretrained,
        pretrained_model_name_or_path=pretrained_model_name_or_path,
        torch_dtype=torch.float16,
        quantization_config=dict(load_in_4bit=True, load_in_8bit=False, bnb_4bit_use_double_quant=True),
    ),
    lora=dict(type=LoraConfig, r=64, lora_alpha=16, lora_dropout=0.1, bias="none"),
)
train_dataset = dict(type=process_hf_dataset, max_length=max_length)
train_dataloader = dict(batch_size=batch_size, num_workers=0)
optim_wrapper = dict(
    type=AmpOptimWrapper,
    optimizer=dict(type=optim_type, lr=2e-4),
    accumulative_counts=accumulative_counts,
    dtype="float16",
)
