#!/usr/bin/env bash
# All five backbones in bfloat16 on eight 80 GB GPUs, for preset paper. Each has two replicas behind one address, with
# vLLM's load balancing. REPLICAS=1 is enough for a run and needs four GPUs.
#
#   [REPLICAS=1] bash serving/eight-gpus.sh [--print]
set -euo pipefail
# shellcheck source=serving/common.sh
source "$(dirname "$0")/common.sh"
replicas=${REPLICAS:-2}

# on GPU EACH SHARE BACKBONE NUMBER MODEL   Start a server whose replicas use EACH GPUs, starting with number GPU.
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
