#!/usr/bin/env bash
# llama.cpp's server, one for each model named as BACKBONE=MODEL, a GGUF file or REPOSITORY:QUANTISATION on the hub.
#
#   bash serving/llama-cpp.sh [--print] BACKBONE=MODEL ...
set -euo pipefail
# shellcheck disable=SC2034  # of common.sh
engine=llama.cpp
# shellcheck source=serving/common.sh
source "$(dirname "$0")/common.sh"

(($#)) || fail "name what to serve, such as qwen-coder-0.5B=qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
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
