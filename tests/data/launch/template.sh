#!/bin/bash
# A DeepSpeed configuration filled from a template by sed; a host file written by hand.
model_size=1.3
seq_len=2048
batch_size=$(( 4 * 64 ))
zero_stage=2
prescale_grad="true"
[ "${zero_stage}" -ge 2 ] && prescale_grad="false"
cat > hostfile <<EOT
# two workers
worker-0 slots=8
worker-1 slots=8
EOT
template_json="ds_config_gpt_TEMPLATE.json"
config_json="ds_config_gbs${batch_size}.json"
cat > $template_json <<'EOT'
{ "train_batch_size": GBSIZE, "train_micro_batch_size_per_gpu": MBSIZE,
  "zero_optimization": { "stage": ZERO_STAGE }, "prescale_gradients": PRESCALE_GRAD }
EOT
sed "s/GBSIZE/${batch_size}/" ${template_json} \
    | sed "s/MBSIZE/4/" \
    | sed "s/ZERO_STAGE/${zero_stage}/" \
    | sed "s/PRESCALE_GRAD/${prescale_grad}/" \
      > ${config_json}
if [[ $model_size == 1.3 ]]; then num_layers=24; hidden_size=2048; num_attn_heads=16; fi
no_pp="true"
deepspeed_options=" \
    --deepspeed \
    --deepspeed_config ${config_json} \
    --zero-stage ${zero_stage}"
if [[ "${no_pp}" = "true" ]]; then
deepspeed_options="${deepspeed_options} \
    --no-pipeline-parallel"
fi
train_iters=$(python -c "print(int(300 * 10**9 // (${batch_size} * ${seq_len})))")
deepspeed --hostfile hostfile pretrain_gpt.py \
  --num-layers ${num_layers} --hidden-size ${hidden_size} --num-attention-heads ${num_attn_heads} \
  --seq-length ${seq_len} --micro-batch-size 4 --global-batch-size ${batch_size} \
  --tensor-model-parallel-size 1 --train-iters ${train_iters} --fp16 ${deepspeed_options} &>> log.txt
