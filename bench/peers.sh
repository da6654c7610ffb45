#!/usr/bin/env bash
# Weir against other rate limiters, each driven by the same load in the same run: envoyproxy/ratelimit (RLS, limits shared in
# a Redis), throttlecrab (HTTP and RESP, memory) and redis-cell (RESP, inside Redis). bench/peers/fetch.sh builds them; what
# cannot be built is left out, and said. Every server has core 0 to itself, with its Redis; the load generator has core 1.
# Compared is the CPU time of all processes that serve a request; a ratio above 1 says how many times as much as Weir the
# other takes. Weir has its defaults: in memory it writes its journal. Medians of rounds that alternate.
#
# Environment: WEIR_BIN (build/release/weir), ROUNDS (3), SCALE (1; 0.1 for a quick look).
set -euo pipefail
cd "$(dirname "$0")/.."

weir=${WEIR_BIN:-build/release/weir}
rounds=${ROUNDS:-3}
scale=${SCALE:-1}
peers=build/peers
bench/peers/fetch.sh
work=$(mktemp -d)
pids=()
cleanup() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT

die() {
  echo "bench/peers.sh: $*" >&2
  exit 1
}

for program in h2load protoc redis-benchmark redis-cli redis-server taskset wrk "$weir"; do
  command -v "$program" >/dev/null || die "$program is missing"
done

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# start NAME COMMAND…: on core 0; sets `started` to its process.
start() {
  local name=$1
  shift
  taskset -c 0 "$@" >"$work/$name.log" 2>&1 </dev/null &
  started=$!
  pids+=("$started")
}

await() { # NAME PORT
  for _ in $(seq 400); do
    if (: <"/dev/tcp/127.0.0.1/$2") 2>/dev/null; then return; fi
    kill -0 "$started" 2>/dev/null || break
    sleep 0.05
  done
  cat "$work/$1.log" >&2
  die "$1 does not listen on port $2"
}

start_redis() { # NAME PORT [ARGUMENTS]
  start "$1" redis-server --port "$2" --bind 127.0.0.1 --save '' --appendonly no --dir "$work" "${@:3}"
  await "$1" "$2"
}

# Nanoseconds of CPU that processes have used, all their threads.
cpu_ns() {
  local pid
  for pid in "$@"; do cat /proc/"$pid"/task/*/schedstat; done | awk '{ sum += $1 } END { printf "%.0f", sum }'
}

requests() { awk -v n="$1" -v s="$scale" 'BEGIN { printf "%d", n * s }'; }

# measure ROW REQUESTS "PIDS" COMMAND…: appends the CPU nanoseconds per request; the command must answer all of them.
measure() {
  local row=$1 count=$2 before after
  local -a who
  read -ra who <<<"$3"
  shift 3
  before=$(cpu_ns "${who[@]}")
  "$@" >"$work/client.log" 2>&1 || { cat "$work/client.log" >&2; die "$row: the load generator failed"; }
  after=$(cpu_ns "${who[@]}")
  awk -v b="$before" -v a="$after" -v n="$count" 'BEGIN { print (a - b) / n }' >>"$work/$row.ns"
}

# --- RLS, limits shared in a Redis: both read the same configuration file ------------------------------------------------

cat >"$work/limits.yaml" <<'YAML'
domain: api
descriptors:
  - key: user
    rate_limit: { unit: second, requests_per_unit: 1000000000 }
YAML
mkdir -p "$work/runtime/ratelimit/config"
cp "$work/limits.yaml" "$work/runtime/ratelimit/config/"
echo 'domain: "api" descriptors { entries { key: "user" value: "user-12345" } }' |
  protoc -I src/protocol/grpc/proto --encode=envoy.service.ratelimit.v3.RateLimitRequest \
    envoy/service/ratelimit/v3/rls.proto >"$work/message"
[ "$(stat -c %s "$work/message")" -lt 256 ] || die "the message has outgrown its prefix"
# shellcheck disable=SC2059  # the format is the point
{ printf "\\x00\\x00\\x00\\x00\\x$(printf %02x "$(stat -c %s "$work/message")")"; cat "$work/message"; } >"$work/rls"

start_rls() {
  local port
  port=$(free_port)
  rls_redis=("$port")
  start_redis weir-redis "$port"
  weir_rls_pids=$started
  weir_rls=$(free_port)
  start weir-rls "$weir" serve --http off --resp off --grpc "127.0.0.1:$weir_rls" --data "$work/rls-data" \
    --store "redis://127.0.0.1:$port" --policies "$work/limits.yaml"
  weir_rls_pids="$weir_rls_pids $started"
  await weir-rls "$weir_rls"

  port=$(free_port)
  rls_redis+=("$port")
  start_redis ratelimit-redis "$port"
  ratelimit_pids=$started
  ratelimit_rls=$(free_port)
  start ratelimit env USE_STATSD=false LOG_LEVEL=error BACKEND_TYPE=redis REDIS_SOCKET_TYPE=tcp \
    REDIS_URL="127.0.0.1:$port" RUNTIME_ROOT="$work/runtime" RUNTIME_SUBDIRECTORY=ratelimit RUNTIME_WATCH_ROOT=false \
    HOST=127.0.0.1 PORT="$(free_port)" GRPC_HOST=127.0.0.1 GRPC_PORT="$ratelimit_rls" DEBUG_HOST=127.0.0.1 \
    DEBUG_PORT="$(free_port)" "$peers/ratelimit"
  ratelimit_pids="$ratelimit_pids $started"
  await ratelimit "$ratelimit_rls"
}

rls() { # PORT REQUESTS
  taskset -c 1 h2load -t1 -c 64 -m 1 -n "$2" -d "$work/rls" -H 'content-type: application/grpc' -H 'te: trailers' \
    "http://127.0.0.1:$1/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit" >"$work/h2load.log" &&
    grep -q "status codes: $2 2xx" "$work/h2load.log"
}

rls_round() {
  local count
  count=$(requests 60000)
  measure rls.weir "$count" "$weir_rls_pids" rls "$weir_rls" "$count"
  measure rls.ratelimit "$((count / 4))" "$ratelimit_pids" rls "$ratelimit_rls" "$((count / 4))"
}

# A gRPC error has the HTTP status 200 as well, but never reaches Redis.
require_redis_was_asked() {
  local port commands
  for port in "${rls_redis[@]}"; do
    commands=$(redis-cli -p "$port" info stats | sed -n 's/^total_commands_processed:\([0-9]*\).*/\1/p')
    [ "${commands:-0}" -gt 50 ] || die "limits were decided without Redis"
  done
}

# --- throttlecrab and redis-cell: a bucket for each of 10,000 keys, in memory ---------------------------------------------

cat >"$work/policies.yaml" <<'YAML'
policies:
  - name: per-user
    match: { user: "*" }
    quota: { token_bucket: { capacity: 1000000, refill_per_second: 1000000 } }
YAML

start_memory() {
  weir_http=$(free_port) weir_resp=$(free_port)
  start weir-memory "$weir" serve --http "127.0.0.1:$weir_http" --grpc off --resp "127.0.0.1:$weir_resp" \
    --data "$work/memory-data" --policies "$work/policies.yaml"
  weir_pids=$started
  await weir-memory "$weir_resp"
  if [ -e "$peers/throttlecrab" ]; then
    crab_http=$(free_port) crab_resp=$(free_port)
    start throttlecrab "$peers/throttlecrab" --http --http-host 127.0.0.1 --http-port "$crab_http" --redis \
      --redis-host 127.0.0.1 --redis-port "$crab_resp" --log-level error
    crab_pids=$started
    await throttlecrab "$crab_resp"
  fi
  if [ -e "$peers/redis-cell" ]; then
    cp "$peers/redis-cell" "$work/redis-cell.so"
    cell_resp=$(free_port)
    start_redis redis-cell "$cell_resp" --loadmodule "$work/redis-cell.so"
    cell_pids=$started
  fi
}

cat >"$work/http.lua" <<'LUA'
local n = 0
function request()
  n = (n + 7919) % 10000
  return wrk.format("POST", path, {["Content-Type"] = "application/json"}, string.format(body, n))
end
function init(args) path, body = args[1], args[2] end
LUA

# http ROW PORT "PIDS" PATH BODY: wrk sends for a time, so it is asked how many requests that were.
http() {
  local before after count
  before=$(cpu_ns "$3")
  taskset -c 1 wrk -t1 -c64 -d"$(awk -v s="$scale" 'BEGIN { printf "%d", s < 0.3 ? 1 : 4 * s }')s" -s "$work/http.lua" \
    "http://127.0.0.1:$2" -- "$4" "$5" >"$work/client.log" 2>&1 || { cat "$work/client.log" >&2; die "$1: wrk failed"; }
  after=$(cpu_ns "$3")
  if grep -q 'Non-2xx' "$work/client.log"; then cat "$work/client.log" >&2; die "$1: refused"; fi
  count=$(awk '/ requests in / { print $1 }' "$work/client.log")
  awk -v b="$before" -v a="$after" -v n="$count" 'BEGIN { print (a - b) / n }' >>"$work/$1.ns"
}

resp() { # PORT REQUESTS PIPELINE COMMAND
  taskset -c 1 redis-benchmark -p "$1" -c 50 -n "$2" -P "$3" -r 10000 -q "$4" key:__rand_int__ 1000000 1000000 1 \
    >"$work/redis-benchmark.log" && ! grep -qi error "$work/redis-benchmark.log"
}

memory_round() {
  local pipeline count
  if [ -e "$peers/throttlecrab" ]; then
    http http.weir "$weir_http" "$weir_pids" /v1/check \
      '{"descriptors":[{"user":"key:%d"}]}'
    http http.throttlecrab "$crab_http" "$crab_pids" /throttle \
      '{"key":"key:%d","max_burst":1000000,"count_per_period":1000000,"period":1,"quantity":1}'
  fi
  for pipeline in 1 16; do
    count=$(requests $((100000 * (pipeline == 1 ? 1 : 5))))
    measure "resp.p$pipeline.weir" "$count" "$weir_pids" resp "$weir_resp" "$count" "$pipeline" CL.THROTTLE
    if [ -e "$peers/throttlecrab" ]; then
      measure "resp.p$pipeline.throttlecrab" "$((count / pipeline))" "$crab_pids" \
        resp "$crab_resp" "$((count / pipeline))" "$pipeline" THROTTLE
    fi
    if [ -e "$peers/redis-cell" ]; then
      measure "resp.p$pipeline.redis-cell" "$count" "$cell_pids" resp "$cell_resp" "$count" "$pipeline" CL.THROTTLE
    fi
  done
}

# --- results --------------------------------------------------------------------------------------------------------------

median() { sort -g "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

report() { # ROW PEER…
  local row=$1 who
  shift
  [ -e "$work/$row.weir.ns" ] || return 0
  for who in weir "$@"; do
    [ -e "$work/$row.$who.ns" ] || continue
    awk -v name="peers.$row.$who" -v ns="$(median "$work/$row.$who.ns")" \
      'BEGIN { printf "figure %s.cpu_per_request %.2f us\n", name, ns / 1000 }'
    [ "$who" != weir ] || continue
    awk -v name="peers.$row.$who" -v p="$(median "$work/$row.$who.ns")" -v w="$(median "$work/$row.weir.ns")" \
      'BEGIN { printf "figure %s.ratio_to_weir %.1f x\n", name, p / w }'
  done
}

if [ -e "$peers/ratelimit" ]; then start_rls; fi
start_memory
for round in $(seq 0 "$rounds"); do
  if [ -e "$peers/ratelimit" ]; then rls_round; fi
  memory_round
  if [ "$round" = 0 ]; then rm -f "$work"/*.ns; fi # the first round fills caches and tables
done
if [ -e "$peers/ratelimit" ]; then require_redis_was_asked; fi
report rls ratelimit
report http throttlecrab
for pipeline in 1 16; do report "resp.p$pipeline" throttlecrab redis-cell; done
