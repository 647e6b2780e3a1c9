#!/usr/bin/env bash
# All five backbones in bfloat16, each served twice, on eight GPUs of 80 GB, for preset paper. Either half is enough for
# a run: on four GPUs, let the loops go over 0 alone.
#
#   bash serving/eight-gpus.sh [--print]
set -euo pipefail
# shellcheck source=serving/common.sh
source "$(dirname "$0")/common.sh"

# on GPUS SHARE BACKBONE NUMBER MODEL [OPTION...]   One server; NUMBER is its place among the ports of its half.
on() {
  local environment=("${environment[@]}" "CUDA_VISIBLE_DEVICES=$1")
  serve "$3" $((first + 5 * half + $4)) "${@:5}" --dtype bfloat16 --max-model-len 16384 --max-num-seqs 256 \
    --max-num-batched-tokens 8192 --gpu-memory-utilization "$2"
}

for half in 0 1; do
  gpu=$((4 * half))
  on $gpu,$((gpu + 1)) 0.92 qwen-2.5-32B 4 Qwen/Qwen2.5-32B-Instruct --tensor-parallel-size 2
  on $((gpu + 2)) 0.92 qwen-2.5-14B 3 Qwen/Qwen2.5-14B-Instruct
  on $((gpu + 3)) 0.4288 mistral-nemo-12B 2 mistralai/Mistral-Nemo-Instruct-2407
done
ready
for half in 0 1; do on $((4 * half + 3)) 0.3078 llama-3.1-8B 1 meta-llama/Llama-3.1-8B-Instruct; done
ready
for half in 0 1; do on $((4 * half + 3)) 0.1836 llama-3.2-3B 0 meta-llama/Llama-3.2-3B-Instruct; done
hold 256
