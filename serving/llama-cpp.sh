#!/usr/bin/env bash
# llama.cpp's server, one for each model named as BACKBONE=MODEL, a GGUF file or REPOSITORY:QUANTISATION on the hub; with
# none, the three small models of preset laptop with 4 to 6 bits a weight, which 16 GB of memory hold.
#
#   bash serving/llama-cpp.sh [--print] [BACKBONE=MODEL ...]
set -euo pipefail
# shellcheck disable=SC2034  # of common.sh
engine=llama.cpp
# shellcheck source=serving/common.sh
source "$(dirname "$0")/common.sh"

if (($# == 0)); then
  for size in 0.5B 1.5B 3B; do set -- "$@" "qwen-2.5-$size=Qwen/Qwen2.5-$size-Instruct-GGUF:Q4_K_M"; done
fi
# Each server has its part of the cores. Threads that wait in loops make it many times slower on cores that are busy.
cores=$(getconf _NPROCESSORS_ONLN)
threads=$((cores > $# ? cores / $# : 1))
environment=(OMP_WAIT_POLICY=passive)
port=$first
for one in "$@"; do
  [[ $one == ?*=?* ]] || fail "$one is not BACKBONE=MODEL"
  key=${one%%=*} model=${one#*=}
  from=--hf-repo
  called[$key]=$model
  if [[ $model == *.gguf ]]; then
    from=--model
    called[$key]=$(basename "$model")
  fi
  # Eight at once, each with 8,192 tokens of the window; sampling in vLLM's order, its penalty over the whole text.
  start "$key" $port "$program" $from "$model" --alias "${called[$key]}" --host "$host" --port $port --seed 0 \
    --threads "$threads" --parallel 8 --ctx-size 65536 --no-context-shift --cache-ram 0 \
    --samplers "penalties;temperature;top_k;top_p;min_p" --repeat-last-n 8192
  port=$((port + 1))
done
# Cells that run side by side queue at one small server.
hold 4 3600
