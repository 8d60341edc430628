#!/bin/bash
# A command kept in an array, written quoted into a file, and run from there.
JOB=(torchrun --nnodes 2 --nproc_per_node 8 train.py --num-layers 16 --hidden-size 2048
  --num-attention-heads 16 --seq-length 2048 --micro-batch-size 2
  --moe-layer-freq "([0]*2+[1]*14)" --stop "</s>" "it's")
{
  printf '#!/bin/bash\n'
  printf 'export A=%q\n' "two words"
  printf '%q ' "${JOB[@]}"
  echo
} > entry.sh
chmod +x entry.sh
srun -N 2 bash entry.sh
