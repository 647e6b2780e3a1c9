# shellcheck shell=bash
# Sourced by the scripts in this folder. Starts their servers, waits until they answer, writes the endpoints file, and
# stops the servers when the script ends.
#
#   --print          First argument: only print the commands and the endpoints file. Needs no server installed.
#   GMR_VLLM         Path of vLLM, such as ../vllm/bin/vllm (default: vllm).
#   GMR_LLAMA_CPP    Path of llama.cpp's server (default: llama-server).
#   HOST             Address to listen on (default: 127.0.0.1). 0.0.0.0 admits other machines without an API key.
#   PORT             Port of the first server (default: 8001). The others follow.
set -euo pipefail

if [[ ${engine:-vllm} == vllm ]]; then
  program=${GMR_VLLM:-vllm}
  cure="install vLLM into an environment of its own (python3 -m venv ../vllm && ../vllm/bin/pip install vllm) and set
    GMR_VLLM=../vllm/bin/vllm"
else
  program=${GMR_LLAMA_CPP:-llama-server}
  cure="install llama.cpp (docs/own-models.md) and set GMR_LLAMA_CPP to its server, such as ../llama.cpp/llama-server"
fi
host=${HOST:-127.0.0.1}
# shellcheck disable=SC2034  # used by the scripts that source this
first=${PORT:-8001}
address=$host
if [[ $host == 0.0.0.0 ]]; then address=$(hostname); fi
folder=results/serving/$(basename "$0" .sh)
endpoints=$folder/endpoints.yaml
dry=false
if [[ ${1:-} == --print ]]; then
  dry=true
  shift
fi
# URL and served name (if it differs from the preset's model) by backbone; process and backbones by port.
declare -A urls=() called=() pids=() waiting=()
environment=(VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1)

fail() {
  echo "error: $*" >&2
  exit 2
}

if ! $dry; then
  command -v "$program" >/dev/null || fail "there is no $program;" $cure
  command -v curl >/dev/null || fail "curl is needed to ask the servers whether they are ready"
  mkdir -p "$folder"
  trap 'exit 143' TERM
  trap 'exit 130' INT
  trap 'if ((${#pids[@]})); then kill "${pids[@]}" 2>/dev/null || true; wait; rm -f "$endpoints"; fi' EXIT
fi

# Print a command with shell quoting.
show() {
  printf '%q ' "$@"
  echo
}

# serve "BACKBONE..." PORT MODEL [OPTION...]   Start a vLLM server with the common options.
serve() {
  start "$1" "$2" "$program" serve "${@:3}" --host "$host" --port "$2" --seed 0 --generation-config vllm \
    --enable-prefix-caching --disable-uvicorn-access-log
}

# start "BACKBONE..." PORT COMMAND...   Start any server in the common environment.
start() {
  local backbones=$1 port=$2 key command
  command=(env "${environment[@]}" "${@:3}")
  for key in $backbones; do urls[$key]=http://$address:$port/v1; done
  if $dry; then
    show "${command[@]}"
    return
  fi
  if answers "$port" /; then fail "another program listens on port $port of $address"; fi
  # May be left from a killed script.
  rm -f "$endpoints"
  "${command[@]}" >"$folder/$port.log" 2>&1 &
  pids[$port]=$!
  waiting[$port]=$backbones
  echo "$backbones: starting, log $folder/$port.log" >&2
}

# Succeed if the port answers HTTP. /health answers 200 once the model is loaded.
answers() {
  local status
  status=$(curl --silent --noproxy '*' --max-time 5 --output /dev/null --write-out '%{http_code}' \
    "http://$address:$1$2") || return 1
  [[ $2 != /health || $status == 200 ]]
}

died() {
  tail -n 12 "$folder/$1.log" >&2
  fail "the server on port $1 ended; the last lines of $folder/$1.log are above, and docs/own-models.md says what helps"
}

# Wait until all started servers answer. Servers on one GPU start one after another, since each measures free memory.
ready() {
  local port
  for port in "${!waiting[@]}"; do
    until answers "$port" /health; do
      kill -0 "${pids[$port]}" 2>/dev/null || died "$port"
      sleep 1
    done
    echo "${waiting[$port]}: ready on port $port" >&2
  done
  waiting=()
}

# hold REQUESTS [SECONDS]   Write the endpoints file with max_in_flight REQUESTS and timeout_s SECONDS (default: 600), then
# wait until a server ends or the script is stopped.
hold() {
  local key name port text=""
  ready
  for key in "${!urls[@]}"; do
    name=${called[$key]:+, served_name: \"${called[$key]}\"}
    text+="$key: {url: \"${urls[$key]}\", max_in_flight: $1${2:+, timeout_s: $2}$name}"$'\n'
  done
  if $dry; then
    printf '%s' "$text"
    return
  fi
  printf '%s' "$text" >"$endpoints.new"
  mv "$endpoints.new" "$endpoints"
  echo "export GMR_ENDPOINTS=$PWD/$endpoints"
  wait -n || true
  for port in "${!pids[@]}"; do kill -0 "${pids[$port]}" 2>/dev/null || died "$port"; done
}
