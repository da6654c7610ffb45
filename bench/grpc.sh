#!/bin/bash
# gRPC: Weir's rate limit service against a bare libgrpc++ echo, both driven by h2load in the same run:
# 64 connections with 1 stream each, and 8 connections with 16 streams each. h2load sends a gRPC body as
# a plain POST, so the client is not the bottleneck. Each server has core 0 to itself, the client core 1.
# The servers' CPU time per request is compared; ratios above 1: Weir needs less. Then checks per second
# of server CPU in batches of 100 per message, unary and as a stream of 100 messages. Medians of rounds.
#
# Environment: WEIR_BIN (build/release/weir), ECHO_BIN (build/release/grpc_echo_server), ROUNDS (3),
# SCALE (1; 0.1 for a quick look).
set -euo pipefail
cd "$(dirname "$0")/.."

weir=${WEIR_BIN:-build/release/weir}
echo_server=${ECHO_BIN:-build/release/grpc_echo_server}
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

for program in h2load protoc taskset "$weir" "$echo_server"; do
  command -v "$program" >/dev/null || { echo "bench/grpc.sh: $program is missing" >&2; exit 2; }
done

cat >"$work/policies.yaml" <<'YAML'
domain: api
policies:
  - name: per-user
    match: { user: "*" }
    quota: { token_bucket: { capacity: 1000000, refill_per_second: 1000000 } }
  - name: pay
    match: { user: "*", route: /v1/pay }
    quota: { fixed_window: { limit: 1000000000, window: 1h } }
YAML

# encode TYPE: text on stdin to a message with gRPC's prefix on stdout.
encode() {
  local message size
  message=$work/message
  protoc -I src/protocol/grpc/proto --encode="$1" "$2" >"$message"
  size=$(stat -c %s "$message")
  # shellcheck disable=SC2059  # a computed format string is intended
  printf "\\x00\\x$(printf %02x $((size >> 24)))\\x$(printf %02x $((size >> 16 & 255)))\\x$(printf %02x $((size >> 8 & 255)))\\x$(printf %02x $((size & 255)))"
  cat "$message"
}

rls=envoy/service/ratelimit/v3/rls.proto
echo 'domain: "api" descriptors { entries { key: "user" value: "user-12345" } entries { key: "route" value: "/v1/pay" } }' |
  encode envoy.service.ratelimit.v3.RateLimitRequest $rls >"$work/rls"
for i in $(seq 100); do
  echo "checks { descriptors { entries { key: \"user\" value: \"user-$i\" } } }"
done | { echo 'domain: "api"'; cat; } | encode weir.v1.CheckBatchRequest weir/v1/weir.proto >"$work/batch"
for _ in $(seq 100); do cat "$work/batch"; done >"$work/stream"

await_port() { # FILE
  for _ in $(seq 200); do
    sed -nE 's/.*listening grpc 127\.0\.0\.1:([0-9]+).*/\1/p' "$1" | grep -m1 . && return
    sleep 0.05
  done
  echo "bench/grpc.sh: the server did not start:" >&2
  cat "$1" >&2
  exit 1
}

taskset -c 0 "$weir" serve --http off --resp off --grpc 127.0.0.1:0 --data "$work/data" \
  --policies "$work/policies.yaml" >"$work/weir.log" 2>&1 &
weir_pid=$!
pids+=("$weir_pid")
taskset -c 0 "$echo_server" >"$work/echo.log" 2>&1 &
echo_pid=$!
pids+=("$echo_pid")
weir_port=$(await_port "$work/weir.log")
echo_port=$(await_port "$work/echo.log")

# Nanoseconds of CPU that a process has used, all threads.
cpu_ns() { cat /proc/"$1"/task/*/schedstat | awk '{ sum += $1 } END { printf "%.0f", sum }'; }

# run NAME PID PORT CONNECTIONS STREAMS REQUESTS BODY PATH: appends CPU ns per request to NAME's file.
run() {
  local requests before after out
  requests=$(awk -v n="$6" -v s="$scale" 'BEGIN { printf "%d", n * s }')
  before=$(cpu_ns "$2")
  out=$(taskset -c 1 h2load -t1 -c "$4" -m "$5" -n "$requests" -d "$work/$7" \
    -H 'content-type: application/grpc' -H 'te: trailers' "http://127.0.0.1:$3$8")
  after=$(cpu_ns "$2")
  grep -q "status codes: $requests 2xx" <<<"$out" || {
    echo "bench/grpc.sh: $1: not every request was answered" >&2
    echo "$out" >&2
    exit 1
  }
  awk -v b="$before" -v a="$after" -v n="$requests" 'BEGIN { print (a - b) / n }' >>"$work/$1.ns"
  sed -nE 's/^finished in [^,]+, ([0-9.]+) req\/s.*/\1/p' <<<"$out" >>"$work/$1.rate"
}

median() { sort -g "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

should=/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit
for _ in $(seq "$rounds"); do
  run weir_m1 "$weir_pid" "$weir_port" 64 1 100000 rls $should
  run echo_m1 "$echo_pid" "$echo_port" 64 1 30000 rls $should
  run weir_m16 "$weir_pid" "$weir_port" 8 16 300000 rls $should
  run echo_m16 "$echo_pid" "$echo_port" 8 16 60000 rls $should
  run batch "$weir_pid" "$weir_port" 8 4 20000 batch /weir.v1.Limiter/CheckBatch
  run stream "$weir_pid" "$weir_port" 4 2 300 stream /weir.v1.Limiter/CheckStream
done

for m in m1 m16; do
  for who in weir echo; do
    awk -v name="grpc.rls.$m.$who" -v ns="$(median "$work/${who}_$m.ns")" -v rate="$(median "$work/${who}_$m.rate")" \
      'BEGIN { printf "figure %s.cpu_per_request %.2f us\nfigure %s.rate %.0f req/s\n", name, ns / 1000, name, rate }'
  done
  awk -v m="$m" -v w="$(median "$work/weir_$m.ns")" -v e="$(median "$work/echo_$m.ns")" \
    'BEGIN { printf "figure grpc.rls.%s.ratio_to_echo %.2f x\n", m, e / w }'
done
# Per second of server CPU time, i.e. per core.
awk -v ns="$(median "$work/batch.ns")" 'BEGIN { printf "figure grpc.batch100.checks_per_s %.0f checks/s\n", 100 * 1e9 / ns }'
awk -v ns="$(median "$work/stream.ns")" 'BEGIN { printf "figure grpc.stream.checks_per_s %.0f checks/s\n", 10000 * 1e9 / ns }'
