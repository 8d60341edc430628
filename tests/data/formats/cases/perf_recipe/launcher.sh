# The form of AI-Hypercomputer/gpu-recipes' launchers of Megatron-Bridge's performance scripts, written for this test.
worker_command=$(cat <<- EOM
  python scripts/performance/custom_setup_experiment.py \
    --gpu b200 \
    --model_family_name qwen \
    --model_recipe_name qwen3_235b_a22b \
    --gpus_per_node 8 \
    --num_gpus 256 \
    --compute_dtype bf16 \
    --global_batch_size 4096 \
    --pipeline_model_parallel_size 8 \
    --virtual_pipeline_model_parallel_size 4 \
    --expert_model_parallel_size 8
EOM
)
echo "$worker_command" > worker_command.sh
torchrun --nproc-per-node="8" --nnodes="32" --no-python bash worker_command.sh
