#!/usr/bin/env bash
# 4-bit backbones on one GPU, for preset paper_4bit: all five on 80 GB, or those given as BACKBONE=SHARE, where SHARE is a
# fraction of the GPU's memory (docs/own-models.md lists values for smaller cards):
#
#   bash serving/one-gpu.sh [--print] [BACKBONE=SHARE ...]
#   MAX_MODEL_LEN=6144 bash serving/one-gpu.sh qwen-2.5-32B=0.94
set -euo pipefail
# shellcheck source=serving/common.sh
source "$(dirname "$0")/common.sh"

declare -A models=(
  [llama-3.2-3B]=casperhansen/llama-3.2-3b-instruct-awq
  [llama-3.1-8B]=hugging-quants/Meta-Llama-3.1-8B-Instruct-AWQ-INT4
  [mistral-nemo-12B]=casperhansen/mistral-nemo-instruct-2407-awq
  [qwen-2.5-14B]=Qwen/Qwen2.5-14B-Instruct-AWQ
  [qwen-2.5-32B]=Qwen/Qwen2.5-32B-Instruct-AWQ
)
if (($# == 0)); then
  set -- llama-3.2-3B=0.0905 llama-3.1-8B=0.136 mistral-nemo-12B=0.1761 qwen-2.5-14B=0.2045 qwen-2.5-32B=0.3331
fi

for one in "$@"; do
  key=${one%%=*}
  [[ $one == *=* && -v models[$key] ]] || fail "$one is not BACKBONE=SHARE with one of ${!models[*]}"
done
port=$first
for one in "$@"; do
  serve "${one%%=*}" $((port++)) "${models[${one%%=*}]}" --dtype float16 --max-model-len "${MAX_MODEL_LEN:-8192}" \
    --max-num-seqs 64 --max-num-batched-tokens 4096 --gpu-memory-utilization "${one#*=}"
  ready
done
hold 64
