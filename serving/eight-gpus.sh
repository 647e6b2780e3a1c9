#!/usr/bin/env bash
# All five backbones in bfloat16 on eight GPUs of 80 GB, for preset paper: two replicas of each behind one address, between
# which vLLM balances. One of each is enough for a run and takes four GPUs: REPLICAS=1.
#
#   [REPLICAS=1] bash serving/eight-gpus.sh [--print]
set -euo pipefail
# shellcheck source=serving/common.sh
source "$(dirname "$0")/common.sh"
replicas=${REPLICAS:-2}

# on GPU EACH SHARE BACKBONE NUMBER MODEL   One server: its replicas take EACH GPUs from number GPU on.
on() {
  local gpus
  gpus=$(seq -s , "$1" $(($1 + $2 * replicas - 1)))
  local environment=("${environment[@]}" "CUDA_VISIBLE_DEVICES=$gpus")
  serve "$4" $((first + $5)) "$6" --dtype bfloat16 --max-model-len 16384 --max-num-seqs 256 \
    --max-num-batched-tokens 8192 --gpu-memory-utilization "$3" --tensor-parallel-size "$2" \
    --data-parallel-size "$replicas"
}

on 0 2 0.92 qwen-2.5-32B 4 Qwen/Qwen2.5-32B-Instruct
on $((2 * replicas)) 1 0.92 qwen-2.5-14B 3 Qwen/Qwen2.5-14B-Instruct
on $((3 * replicas)) 1 0.4288 mistral-nemo-12B 2 mistralai/Mistral-Nemo-Instruct-2407
ready
on $((3 * replicas)) 1 0.3078 llama-3.1-8B 1 meta-llama/Llama-3.1-8B-Instruct
ready
on $((3 * replicas)) 1 0.1836 llama-3.2-3B 0 meta-llama/Llama-3.2-3B-Instruct
hold $((256 * replicas))
