#!/usr/bin/env bash
# One llama.cpp server for each BACKBONE=MODEL (a GGUF file, or REPOSITORY:QUANTISATION on the hub).
#
#   bash serving/llama-cpp.sh [--print] BACKBONE=MODEL ...
set -euo pipefail
# shellcheck disable=SC2034  # used by common.sh
engine=llama.cpp
# shellcheck source=serving/common.sh
source "$(dirname "$0")/common.sh"

(($#)) || fail "name what to serve, such as qwen-coder-0.5B=qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
# Cores are divided among the servers. Passive waiting, since busy-waiting threads are many times slower on busy cores.
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
  # Eight slots with 8,192 tokens each. Samplers in vLLM's order, with the repetition penalty over the whole text.
  start "$key" $port "$program" $from "$model" --alias "${called[$key]}" --host "$host" --port $port --seed 0 \
    --threads "$threads" --parallel 8 --ctx-size 65536 --no-context-shift --cache-ram 0 \
    --samplers "penalties;temperature;top_k;top_p;min_p" --repeat-last-n 8192
  port=$((port + 1))
done
# Four requests, since cells that run concurrently queue at the same server.
hold 4 3600
