NGPU=${NGPU:-"8"}
torchrun --nproc_per_node=${NGPU} --nnodes=2 -m torchtitan.train \
  --model.name llama3 --model.flavor 8B --training.seq_len 4096 --training.local_batch_size=2 \
  --parallelism.pipeline_parallel_degree 2 --parallelism.pipeline_parallel_schedule Interleaved1F1B \
  --parallelism.data_parallel_shard_degree 8 --activation_checkpoint.mode selective --activation_checkpoint.selective_ac_option 2
