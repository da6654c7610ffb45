#!/bin/bash
# RESP: Weir's CL.THROTTLE against redis-server's INCR and a GCRA script on redis-server, all driven by
# redis-benchmark in the same run: 50 connections, 100,000 keys, pipelines of 1, 16 and 64. Every server
# has core 0 to itself, the client core 1. The servers' CPU time per request is compared, since the
# client is the bottleneck with short pipelines. Ratios above 1: Weir needs less. Medians of the rounds.
# Neither server persists anything while it is measured.
#
# Environment: WEIR_BIN (build/release/weir), ROUNDS (3), SCALE (1; 0.1 for a quick look).
set -euo pipefail
cd "$(dirname "$0")/.."

weir=${WEIR_BIN:-build/release/weir}
rounds=${ROUNDS:-3}
scale=${SCALE:-1}
work=$(mktemp -d)
pids=()

cleanup() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT

for program in redis-server redis-benchmark redis-cli taskset "$weir"; do
  command -v "$program" >/dev/null || { echo "bench/resp.sh: $program is missing" >&2; exit 2; }
done

# A burst of 99 and 100 permits a second: every request is allowed and writes its key.
throttle=(CL.THROTTLE key:__rand_int__ 99 100 1)
cat >"$work/gcra.lua" <<'LUA'
-- KEYS[1]; ARGV: limit, microseconds per permit, cost
local now = redis.call('TIME')
now = now[1] * 1000000 + now[2]
local limit, interval, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local full_at = tonumber(redis.call('GET', KEYS[1]) or now)
if full_at < now then full_at = now end
local window = limit * interval
local charged = full_at + cost * interval
if charged - now > window then
  return {1, limit, math.floor((window - (full_at - now)) / interval),
          math.ceil((charged - now - window) / 1000000), math.ceil((full_at - now) / 1000000)}
end
redis.call('SET', KEYS[1], charged, 'PX', math.ceil((charged - now) / 1000))
return {0, limit, math.floor((window - (charged - now)) / interval), -1, math.ceil((charged - now) / 1000000)}
LUA

await_port() { # FILE PATTERN: prints what the pattern's group matched
  for _ in $(seq 200); do
    sed -nE "s/.*$2.*/\\1/p" "$1" | grep -m1 . && return
    sleep 0.05
  done
  echo "bench/resp.sh: the server did not start:" >&2
  cat "$1" >&2
  exit 1
}

start_weir() {
  # shellcheck disable=SC2086  # a command with its arguments, split on purpose
  WEIR_SNAPSHOT_INTERVAL=off taskset -c 0 "$weir" serve --http off --grpc off --resp 127.0.0.1:0 --data "$work/data" \
    >"$work/weir.log" 2>&1 &
  weir_pid=$!
  pids+=("$weir_pid")
  weir_port=$(await_port "$work/weir.log" 'listening resp 127\.0\.0\.1:([0-9]+)')
}

start_redis() {
  redis_port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  taskset -c 0 redis-server --port "$redis_port" --save '' --appendonly no --dir "$work" \
    >"$work/redis.log" 2>&1 &
  redis_pid=$!
  pids+=("$redis_pid")
  await_port "$work/redis.log" '(Ready) to accept' >/dev/null
  sha=$(redis-cli -p "$redis_port" SCRIPT LOAD "$(cat "$work/gcra.lua")")
}

# Nanoseconds of CPU that a process has used, all threads.
cpu_ns() { cat /proc/"$1"/task/*/schedstat | awk '{ sum += $1 } END { printf "%.0f", sum }'; }

# run NAME PIPELINE REQUESTS PID PORT COMMAND…: appends CPU per request and rate to the result files.
run() {
  local name=$1 pipeline=$2 requests=$3 pid=$4 port=$5 before after start end
  shift 5
  before=$(cpu_ns "$pid")
  start=$(date +%s%N)
  taskset -c 1 redis-benchmark -p "$port" -c 50 -n "$requests" -P "$pipeline" -r 100000 -q "$@" \
    >"$work/client.log" 2>&1
  end=$(date +%s%N)
  after=$(cpu_ns "$pid")
  if grep -qi error "$work/client.log"; then
    cat "$work/client.log" >&2
    exit 1
  fi
  awk -v c=$((after - before)) -v n="$requests" 'BEGIN { print c / n }' >>"$work/$name.p$pipeline.cpu"
  awk -v t=$((end - start)) -v n="$requests" 'BEGIN { print n / t * 1e9 }' >>"$work/$name.p$pipeline.rate"
}

median() { sort -g "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

start_weir
start_redis
for round in $(seq 0 "$rounds"); do
  for pipeline in 1 16 64; do
    requests=$(awk -v p="$pipeline" -v s="$scale" 'BEGIN { n = p == 1 ? 150000 : 1000000 * (p / 16)^0.5; print int(n * s) }')
    run weir "$pipeline" "$requests" "$weir_pid" "$weir_port" "${throttle[@]}"
    run incr "$pipeline" "$requests" "$redis_pid" "$redis_port" INCR key:__rand_int__
    # The script takes 10 µs a call with any pipeline, so fewer calls are enough.
    run lua "$pipeline" $((requests / (pipeline == 1 ? 1 : 4))) "$redis_pid" "$redis_port" \
      EVALSHA "$sha" 1 gcra:__rand_int__ 100 10000 1
  done
  # The first round fills caches and tables.
  if [ "$round" = 0 ]; then rm -f "$work"/*.cpu "$work"/*.rate; fi
done

for pipeline in 1 16 64; do
  for name in weir incr lua; do
    printf 'figure resp.p%s.%s.cpu_ns %.0f ns\n' "$pipeline" "$name" "$(median "$work/$name.p$pipeline.cpu")"
    printf 'figure resp.p%s.%s.rate %.0f requests/s\n' "$pipeline" "$name" "$(median "$work/$name.p$pipeline.rate")"
  done
  for name in incr lua; do
    awk -v p="$pipeline" -v n="$name" -v a="$(median "$work/$name.p$pipeline.cpu")" \
      -v b="$(median "$work/weir.p$pipeline.cpu")" \
      'BEGIN { printf "figure resp.p%s.ratio_to_%s %.2f x\n", p, n, a / b }'
  done
done
