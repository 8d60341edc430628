#!/bin/bash
#SBATCH --nodes=4
TP=8
torchrun --nproc_per_node=8 --nnodes=4 /opt/NeMo/examples/nlp/language_modeling/megatron_gpt_pretraining.py \
  --config-path=/conf --config-name=megatron_gpt_config \
  trainer.devices=8 trainer.num_nodes=4 trainer.precision=bf16 \
  model.tensor_model_parallel_size=${TP} ++model.pipeline_model_parallel_size=2 \
  model.virtual_pipeline_model_parallel_size=null \
  model.num_layers=32 model.hidden_size=4096 model.ffn_hidden_size=14336 \
  model.num_attention_heads=32 +model.num_query_groups=8 \
  model.encoder_seq_length=8192 model.max_position_embeddings=8192 \
  model.activation=swiglu model.normalization=rmsnorm model.bias=false \
  model.position_embedding_type=rope model.share_embeddings_and_output_weights=false \
  model.micro_batch_size=1 model.global_batch_size=128 model.sequence_parallel=true \
  model.hidden_dropout=0.0 model.attention_dropout=0.0 \
  model.optim.name=distributed_fused_adam model.tokenizer.type=meta-llama/Meta-Llama-3-8B
