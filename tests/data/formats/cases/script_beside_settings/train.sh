# dvlab-research/Step-DPO, bash_scrips/qwen2_7b_step_dpo.sh in the form that alignment-handbook has: what trains stands in the file.
ACCELERATE_LOG_LEVEL=info accelerate launch --config_file accelerate_configs/deepspeed_zero3.yaml --num_processes 8 \
    scripts/run_sft.py --config configs/config_full.yaml
