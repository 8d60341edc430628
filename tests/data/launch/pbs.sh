#!/bin/bash
#PBS -l select=4:ncpus=64:ngpus=4
#PBS -l walltime=01:00:00
cd ${PBS_O_WORKDIR}
NHOSTS=`wc -l < $PBS_NODEFILE`
NGPU_PER_HOST=4
NGPUS=$((NHOSTS * NGPU_PER_HOST))
mpiexec -n ${NGPUS} -ppn ${NGPU_PER_HOST} --hostfile $PBS_NODEFILE python3 pretrain_gpt.py \
  --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --micro-batch-size 1
