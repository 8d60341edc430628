#!/bin/bash
# Writes the job script and leaves its submission to the reader; loops over hosts with ssh.
STEPS=1000
cat > job.sh <<'EOF'
#!/bin/bash
torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py --num-layers 16 --hidden-size 2048 \
  --num-attention-heads 16 --seq-length 2048 --micro-batch-size 2
EOF
for host in node-{1..2}; do
  ssh $host "cd $PWD && pkill python"
done
