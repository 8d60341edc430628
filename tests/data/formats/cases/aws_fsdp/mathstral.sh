# After https://github.com/aws-samples/awsome-distributed-training/blob/main/3.test_cases/pytorch/FSDP/slurm/mathstral_7b-training.sbatch
torchrun --nproc_per_node=8 --nnodes=4 ../src/train.py \
    --train_batch_size=1 --val_batch_size=1 --activation_checkpointing=1 \
    --intermediate_size=14336 --num_key_value_heads=8 --max_context_width=32768 --vocab_size=32768 --hidden_width=4096 \
    --num_layers=32 --num_heads=32 --model_type=mistral --tokenizer=mistralai/mathstral-7B-v0.1 --max_steps=200 \
    --sharding_strategy=full
