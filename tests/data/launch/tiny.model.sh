NLAYERS=6
arr=()
for ((i=0; i<NLAYERS; i++)); do
  if (( i < 2 )); then
    arr+=(0)
  else
    arr+=(1)
  fi
done
printf -v MOE_LAYER_FREQ "[%s]" "$(IFS=', '; echo "${arr[*]}")"
MODEL_ARGS=(
   --num-layers $NLAYERS
   --hidden-size 1024
   --num-attention-heads 16
   --moe-layer-freq "$MOE_LAYER_FREQ"
   --rotary-base "${MODEL_ARGS_ROTARY_BASE:-10000}"
)
