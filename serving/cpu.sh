#!/usr/bin/env bash
# vLLM on any processor: a server for each model named as BACKBONE=MODEL, a folder or a name on the hub; with none, one
# tiny model of random weights under the names of all five backbones, for preset cpu_server. That is a rehearsal with a
# real server; its model is made by the suite's own environment, which has to be active.
#
#   bash serving/cpu.sh [--print] [BACKBONE=MODEL ...]
set -euo pipefail
# shellcheck source=serving/common.sh
source "$(dirname "$0")/common.sh"

# A server has one thread: several wait for each other in loops, and with busy cores are many times slower than one.
environment+=(OMP_NUM_THREADS=1 VLLM_CPU_OMP_THREADS_BIND=nobind VLLM_CPU_KVCACHE_SPACE=2 TORCHDYNAMO_DISABLE=1)
# A prompt that is read in chunks ends a server on a processor when its request has a seed.
options=(--no-enable-chunked-prefill --max-model-len 8192 --max-num-batched-tokens 8192 --enforce-eager)

requests=8
if (($# == 0)); then
  requests=32
  keys=(llama-3.2-3B llama-3.1-8B mistral-nemo-12B qwen-2.5-14B qwen-2.5-32B)
  # vLLM takes what begins with / for a folder, and everything else for a name on the hub.
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
