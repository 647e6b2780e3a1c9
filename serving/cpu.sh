#!/usr/bin/env bash
# vLLM on a CPU: one server for each BACKBONE=MODEL (a folder or a name on the hub). Without arguments, one tiny model with
# random weights is served under the names of all five backbones, for preset cpu_server: a rehearsal with a real server.
# Creating that model needs the suite's environment to be active.
#
#   bash serving/cpu.sh [--print] [BACKBONE=MODEL ...]
set -euo pipefail
# shellcheck source=serving/common.sh
source "$(dirname "$0")/common.sh"

# One thread: several threads busy-wait for each other, which is many times slower on busy cores.
environment+=(OMP_NUM_THREADS=1 VLLM_CPU_OMP_THREADS_BIND=nobind VLLM_CPU_KVCACHE_SPACE=2 TORCHDYNAMO_DISABLE=1)
# Chunked prefill crashes vLLM on a CPU if a request has a seed.
options=(--no-enable-chunked-prefill --max-model-len 8192 --max-num-batched-tokens 8192 --enforce-eager)

requests=8
if (($# == 0)); then
  requests=32
  keys=(llama-3.2-3B llama-3.1-8B mistral-nemo-12B qwen-2.5-14B qwen-2.5-32B)
  # vLLM reads an absolute path as a folder, anything else as a name on the hub.
  model=$PWD/$folder/model
  make=(python "$(dirname "$0")/tiny_model.py" "$model")
  if $dry; then show "${make[@]}"; else "${make[@]}"; fi
  environment+=(HF_HUB_OFFLINE=1)
  serve "${keys[*]}" "$first" "$model" --served-model-name "${keys[@]/#/random/}" --dtype float32 \
    --max-num-seqs $requests "${options[@]}"
fi
port=$first
for one in "$@"; do
  [[ $one == ?*=?* ]] || fail "$one is not BACKBONE=MODEL"
  key=${one%%=*} model=${one#*=} name=$model
  if [[ -d $model ]]; then
    model=$(cd "$model" && pwd) name=$(basename "$model")
    called[$key]=$name
  fi
  serve "$key" $((port++)) "$model" --served-model-name "$name" --dtype bfloat16 --max-num-seqs $requests "${options[@]}"
done
hold $requests 3600
