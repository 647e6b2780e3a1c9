#!/usr/bin/env bash
# The three small models of preset laptop in bfloat16, side by side on one GPU of 16 or 24 GB, by vLLM.
#
#   bash serving/small-gpu.sh [--print]
set -euo pipefail
# shellcheck source=serving/common.sh
source "$(dirname "$0")/common.sh"

port=$first
# Their shares of the GPU's memory.
for one in 0.5B=0.153 1.5B=0.297 3B=0.49; do
  serve "qwen-2.5-${one%=*}" $((port++)) "Qwen/Qwen2.5-${one%=*}-Instruct" --dtype bfloat16 --max-model-len 8192 \
    --max-num-seqs 32 --max-num-batched-tokens 2048 --gpu-memory-utilization "${one#*=}"
  ready
done
hold 32
