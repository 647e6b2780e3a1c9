#!/usr/bin/env bash
# One tiny model of random weights under the names of all five backbones, on any processor, for preset cpu_server: a
# rehearsal with a real server. The model is made by the suite's own environment, which has to be active.
#
#   bash serving/cpu-tiny.sh [--print]
set -euo pipefail
PORT=${PORT:-8801}
# shellcheck source=serving/common.sh
source "$(dirname "$0")/common.sh"

keys=(llama-3.2-3B llama-3.1-8B mistral-nemo-12B qwen-2.5-14B qwen-2.5-32B)
# vLLM takes what begins with / for a folder, and everything else for a name on the hub.
model=$PWD/$folder/model
make=(python "$(dirname "$0")/tiny_model.py" "$model")
if $dry; then show "${make[@]}"; else "${make[@]}"; fi
environment+=(HF_HUB_OFFLINE=1 VLLM_CPU_KVCACHE_SPACE=1 OMP_NUM_THREADS=1 TORCHDYNAMO_DISABLE=1)
serve "${keys[*]}" "$first" "$model" --served-model-name "${keys[@]/#/random/}" --dtype float32 \
  --max-model-len 8192 --max-num-seqs 32 --max-num-batched-tokens 8192 --enforce-eager
hold 32
