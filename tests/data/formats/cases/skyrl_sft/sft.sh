# After https://github.com/NovaSky-AI/SkyRL/blob/main/examples/train/sft/run_sft_fsdp.sh
uv run --isolated --extra fsdp python -m skyrl.train.main_sft \
    strategy=fsdp \
    model.path=Qwen/Qwen2.5-0.5B-Instruct \
    train_datasets="['yahma/alpaca-cleaned']" \
    max_length=512 \
    num_steps=10 \
    batch_size=8 \
    micro_train_batch_size_per_gpu=2 \
    remove_microbatch_padding=false \
    placement.num_nodes=1 \
    placement.num_gpus_per_node=4 \
    fsdp_config.reshard_after_forward=false \
    logger=console
