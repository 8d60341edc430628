torchrun --nnodes=2 --nproc-per-node=8 scripts/training/run_recipe.py --recipe llama3_8b_pretrain_config \
    model.tensor_model_parallel_size=2 model.pipeline_model_parallel_size=2 model.sequence_parallel=true \
    model.seq_length=8192 train.global_batch_size=256 train.micro_batch_size=1 \
    model.recompute_granularity=full model.recompute_method=uniform model.recompute_num_layers=1 \
    ddp.use_distributed_optimizer=true ddp.overlap_grad_reduce=true mixed_precision=bf16_with_fp8_current_scaling_mixed
