# A recipe in the form of NVIDIA-NeMo/Megatron-Bridge, src/megatron/bridge/recipes (Apache-2.0), written for this test.
import torch

from megatron.bridge import AutoBridge
from megatron.bridge.recipes.common import _pretrain_common
from megatron.bridge.training.config import ConfigContainer
from megatron.bridge.training.mixed_precision import bf16_with_mxfp8_mixed


def _layout(cfg: ConfigContainer, stages: int) -> None:
    cfg.model.pipeline_model_parallel_size = stages
    if cfg.model.context_parallel_size > 1:
        cfg.dataset.pad_seq_to_mult = 2 * cfg.model.context_parallel_size


def qwen3_8b_pretrain_16gpu_h100_bf16_config() -> ConfigContainer:
    """Return a pre-training config."""
    cfg = _pretrain_common()
    cfg.model = AutoBridge.from_hf_pretrained("Qwen/Qwen3-8B").to_megatron_provider(load_weights=False)
    cfg.model.tensor_model_parallel_size = 4
    cfg.model.context_parallel_size = 2
    cfg.model.sequence_parallel = True
    cfg.model.seq_length = 2 * 4096
    cfg.dataset.seq_length = 8192
    _layout(cfg, 2)
    cfg.train.global_batch_size = 64
    cfg.train.micro_batch_size = 1
    cfg.tokenizer.tokenizer_type = "NullTokenizer"
    cfg.tokenizer.vocab_size = 32000
    cfg.model.recompute_granularity = None
    cfg.optimizer.exp_avg_dtype = torch.float32
    return cfg
