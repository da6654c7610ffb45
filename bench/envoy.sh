#!/bin/bash
# A real Envoy in front of nginx: without a limit, with Weir on the memory store, with Weir on Redis,
# with Weir on Redis and a leased policy, and with assignments of that Weir (RLQS), one after the other
# in the same run, driven by wrk with 32 connections. Prints requests per second and the median and
# 99th percentile latency of each, what the limit adds, and the rate relative to the one without it.
# Then the same with one connection (…_alone_…): with 32 the processors are busy and most added
# latency is waiting for them; with one nothing waits, so the difference is the cost of the limit.
#
# Environment: WEIR_BIN (build/release/weir), SECONDS_EACH (5).
set -euo pipefail
cd "$(dirname "$0")/.."

weir=${WEIR_BIN:-build/release/weir}
seconds=${SECONDS_EACH:-5}
work=$(mktemp -d)
pids=()

cleanup() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT

tests/support/envoy/fetch.sh
for program in wrk nginx redis-server "$weir"; do
  command -v "$program" >/dev/null || { echo "bench/envoy.sh: $program is missing" >&2; exit 2; }
done

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
wait_for() {
  for _ in $(seq 300); do
    if (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; then return; fi
    sleep 0.1
  done
  echo "bench/envoy.sh: nothing listens on port $1" >&2
  tail -c 2000 "$work/log" >&2
  exit 1
}

upstream=$(free_port) envoy=$(free_port) memory=$(free_port) shared=$(free_port) leased=$(free_port)
redis=$(free_port)
cat >"$work/nginx.conf" <<CONF
worker_processes 1; daemon off; master_process off; pid $work/nginx.pid; error_log $work/nginx.log;
events { worker_connections 1024; }
http { access_log off; keepalive_requests 100000000;
  client_body_temp_path $work/b; proxy_temp_path $work/p; fastcgi_temp_path $work/f;
  uwsgi_temp_path $work/u; scgi_temp_path $work/s;
  server { listen 127.0.0.1:$upstream; location / { return 200 ok; } } }
CONF
cat >"$work/limits.yaml" <<'YAML'
domain: edge
descriptors:
  - key: plan
    rate_limit: { unit: day, requests_per_unit: 4000000000 }
YAML
cat >"$work/leased.yaml" <<'YAML'
domain: edge
policies:
  - name: plan
    match: { plan: "*" }
    mode: leased
    quota: { token_bucket: { capacity: 10000000, refill_per_second: 1000000 } }
YAML

filter() {
  cat <<YAML
                  - name: $1
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit
                      domain: edge
                      stage: $2
                      timeout: 5s
                      rate_limit_service:
                        transport_api_version: V3
                        grpc_service: { envoy_grpc: { cluster_name: $1 } }
YAML
}
# A bucket for each path that begins with /rlqs: a bucket that was idle for a while starts with a small share.
quota_filter() {
  cat <<YAML
                  - name: quota
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.rate_limit_quota.v3.RateLimitQuotaFilterConfig
                      domain: edge
                      rlqs_server: { envoy_grpc: { cluster_name: leased } }
                      bucket_matchers:
                        matcher_list:
                          matchers:
                            - predicate:
                                single_predicate:
                                  input:
                                    name: path
                                    typed_config:
                                      "@type": type.googleapis.com/envoy.type.matcher.v3.HttpRequestHeaderMatchInput
                                      header_name: ":path"
                                  value_match: { prefix: /rlqs }
                              on_match:
                                action:
                                  name: plan
                                  typed_config:
                                    "@type": type.googleapis.com/envoy.extensions.filters.http.rate_limit_quota.v3.RateLimitQuotaBucketSettings
                                    bucket_id_builder:
                                      bucket_id_builder:
                                        plan:
                                          custom_value:
                                            name: path
                                            typed_config:
                                              "@type": type.googleapis.com/envoy.type.matcher.v3.HttpRequestHeaderMatchInput
                                              header_name: ":path"
                                    reporting_interval: 5s
                                    no_assignment_behavior: { fallback_rate_limit: { blanket_rule: DENY_ALL } }
                                    expired_assignment_behavior:
                                      expired_assignment_behavior_timeout: 60s
                                      fallback_rate_limit: { blanket_rule: DENY_ALL }
YAML
}
cluster() {
  cat <<YAML
    - name: $1
      type: STATIC
      load_assignment: { cluster_name: $1, endpoints: [{ lb_endpoints: [{ endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: $2 } } } }] }] }
YAML
  [ "$1" = upstream ] || cat <<YAML
      typed_extension_protocol_options:
        envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
          "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
          explicit_http_config: { http2_protocol_options: {} }
YAML
}
route() {
  echo "                        - match: { path: /$1 }"
  echo "                          route: { cluster: upstream, rate_limits: [{ stage: $2, actions: [{ generic_key: { descriptor_key: plan, descriptor_value: x } }] }] }"
}
{
  cat <<YAML
static_resources:
  listeners:
    - address: { socket_address: { address: 127.0.0.1, port_value: $envoy } }
      filter_chains:
        - filters:
            - name: envoy.filters.network.http_connection_manager
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
                stat_prefix: bench
                http_filters:
YAML
  filter memory 0
  filter redis 1
  filter leased 2
  quota_filter
  cat <<YAML
                  - name: envoy.filters.http.router
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
                route_config:
                  virtual_hosts:
                    - name: all
                      domains: ["*"]
                      routes:
YAML
  route memory 0
  route redis 1
  route leased 2
  echo "                        - { match: { prefix: / }, route: { cluster: upstream } }"
  echo "  clusters:"
  cluster upstream "$upstream"
  cluster memory "$memory"
  cluster redis "$shared"
  cluster leased "$leased"
} >"$work/envoy.yaml"

start() { "$@" >>"$work/log" 2>&1 & pids+=($!); }
start nginx -p "$work" -c "$work/nginx.conf"
start redis-server --port "$redis" --bind 127.0.0.1 --save "" --dir "$work"
wait_for "$redis"
start "$weir" serve --http off --resp off --grpc "127.0.0.1:$memory" --data "$work/memory" --policies "$work/limits.yaml"
start "$weir" serve --http off --resp off --grpc "127.0.0.1:$shared" --data "$work/redis" --policies "$work/limits.yaml" --store "redis://127.0.0.1:$redis"
start "$weir" serve --http off --resp off --grpc "127.0.0.1:$leased" --data "$work/leased" --policies "$work/leased.yaml" --store "redis://127.0.0.1:$redis"
start build/envoy/envoy --config-path "$work/envoy.yaml" --log-level warn --concurrency 1 --disable-hot-restart
for port in "$upstream" "$memory" "$shared" "$leased" "$envoy"; do wait_for "$port"; done

# Converts a latency such as 812.00us, 1.20ms or 0.90s to microseconds.
micros() { awk -v t="$1" 'BEGIN { v = t + 0; if (t ~ /ms$/) v *= 1000; else if (t ~ /[0-9]s$/) v *= 1000000; printf "%.0f", v }'; }
# measure ROUTE CONNECTIONS NAME
measure() {
  wrk -t 1 -c "$2" -d 1 "http://127.0.0.1:$envoy/$1" >/dev/null
  wrk -t 1 -c "$2" -d "$seconds" --latency "http://127.0.0.1:$envoy/$1" >"$work/wrk"
  if grep -q 'Non-2xx' "$work/wrk"; then echo "bench/envoy.sh: $1: requests were refused" >&2; cat "$work/log" >&2; exit 1; fi
  rate=$(awk '/Requests\/sec/ { printf "%.0f", $2 }' "$work/wrk")
  median=$(micros "$(awk '$1 == "50%" { print $2 }' "$work/wrk")")
  slow=$(micros "$(awk '$1 == "99%" { print $2 }' "$work/wrk")")
  echo "figure envoy_$3_requests $rate 1/s"
  echo "figure envoy_$3_median $median us"
  echo "figure envoy_$3_p99 $slow us"
}
measure none 32 none
base=$median base_rate=$rate
for case in memory redis leased rlqs; do
  measure "$case" 32 "$case"
  echo "figure envoy_${case}_added_median $((median - base)) us"
  echo "figure envoy_${case}_ratio $(awk -v a="$rate" -v b="$base_rate" 'BEGIN { printf "%.2f", a / b }') x"
done
measure none 1 none_alone
base=$median base_slow=$slow
for case in memory redis leased rlqs; do
  path=$case
  [ "$case" != rlqs ] || path=rlqs-alone
  measure "$path" 1 "${case}_alone"
  echo "figure envoy_${case}_alone_added_median $((median - base)) us"
  echo "figure envoy_${case}_alone_added_p99 $((slow - base_slow)) us"
done
