#!/bin/bash
# The job is a here-document; what is escaped belongs to it, the rest to this script.
NODES=${1:-8}
TP=${TP:-2}
ARGS=(
  --num-layers 61 --hidden-size 7168 --num-attention-heads 128
  --moe-layer-freq "'([0]*3+[1]*58)'"
  --seq-length 4096 --micro-batch-size 1 --global-batch-size 2048
  --tensor-model-parallel-size ${TP} --bf16
)
if [ "${RECOMPUTE:-1}" = 1 ]; then
  ARGS=("${ARGS[@]}" --recompute-granularity selective --recompute-modules mlp moe)
fi
RUN="cd /opt/Megatron && python -u pretrain_gpt.py ${ARGS[@]}"

sbatch <<EOF
#!/bin/bash
#SBATCH -N ${NODES} --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH -J moe-${NODES}
export MASTER_ADDR=\$(scontrol show hostnames \$SLURM_JOB_NODELIST | head -n1)
srun --mpi=pmix --container-image=image.sqsh bash -c "${RUN}"
EOF
