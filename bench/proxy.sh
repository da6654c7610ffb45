#!/usr/bin/env bash
# weir proxy against nginx as a proxy with limit_req, both in front of the same nginx, in the same run.
#
#   bench/proxy.sh [PROGRAM]      PROGRAM: build/release/weir
#
# Load generator, proxy and upstream share the machine, so the figure compared is requests per second
# of the proxy's own CPU time (user and system, all threads). Rounds alternate between the two, and
# the median of each is taken. Environment: SECONDS_PER_ROUND (4), ROUNDS (3), CONNECTIONS (64).
set -euo pipefail
cd "$(dirname "$0")/.."
program=${1:-build/release/weir}
seconds=${SECONDS_PER_ROUND:-4}
rounds=${ROUNDS:-3}
connections=${CONNECTIONS:-64}

for tool in nginx wrk; do
  command -v "$tool" >/dev/null || { echo "bench/proxy.sh: $tool is not installed" >&2; exit 2; }
done
[ -x "$program" ] || { echo "bench/proxy.sh: $program is missing; ./dev build release" >&2; exit 2; }

dir=$(mktemp -d)
pids=()
cleanup() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
  rm -rf "$dir"
}
trap cleanup EXIT

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# nginx_config NAME BODY: a single worker, no logs.
nginx_config() {
  mkdir -p "$dir/$1"
  cat >"$dir/$1/nginx.conf" <<CONF
worker_processes 1;
daemon off;
pid $dir/$1/pid;
error_log $dir/$1/error.log;
events { worker_connections 4096; }
http {
  access_log off;
  keepalive_requests 100000000;
  client_body_temp_path $dir/$1/body;
  proxy_temp_path $dir/$1/proxy;
  fastcgi_temp_path $dir/$1/fastcgi;
  uwsgi_temp_path $dir/$1/uwsgi;
  scgi_temp_path $dir/$1/scgi;
$2
}
CONF
}

start_nginx() {
  nginx -p "$dir/$1" -c "$dir/$1/nginx.conf" 2>/dev/null &
  pids+=($!)
}

upstream_port=$(free_port)
nginx_port=$(free_port)
nginx_config upstream "
  server { listen 127.0.0.1:$upstream_port; location / { return 200 'hello from upstream'; } }"
nginx_config proxy "
  limit_req_zone \$binary_remote_addr zone=perip:10m rate=1000000r/s;
  upstream app { server 127.0.0.1:$upstream_port; keepalive 64; keepalive_requests 100000000; }
  server {
    listen 127.0.0.1:$nginx_port reuseport;
    location / {
      limit_req zone=perip burst=1000000 nodelay;
      proxy_pass http://app;
      proxy_http_version 1.1;
      proxy_set_header Connection '';
      proxy_set_header Host \$host;
      proxy_set_header X-Forwarded-For \$remote_addr;
      proxy_set_header X-Forwarded-Host \$host;
      proxy_set_header X-Forwarded-Proto \$scheme;
    }
  }"
start_nginx upstream
start_nginx proxy

cat >"$dir/policies.yaml" <<'YAML'
domain: default
policies:
  - name: per-ip
    match: { ip: "*" }
    quota: { token_bucket: { capacity: 1000000, refill_per_second: 1000000 } }
YAML
"$program" proxy --listen 127.0.0.1:0 --upstream "http://127.0.0.1:$upstream_port" \
  --policies "$dir/policies.yaml" --data "$dir/data" --threads 1 --admin off >"$dir/weir.log" 2>&1 &
weir_pid=$!
pids+=("$weir_pid")

weir_port=
for _ in $(seq 100); do
  weir_port=$(sed -n 's/^listening proxy .*:\([0-9]*\)$/\1/p' "$dir/weir.log")
  [ -n "$weir_port" ] && [ -s "$dir/proxy/pid" ] && break
  sleep 0.05
done
[ -n "$weir_port" ] || { cat "$dir/weir.log" >&2; exit 1; }
nginx_pid=$(pgrep -P "$(cat "$dir/proxy/pid")")

# cpu_ticks PID: user and system time of the process in clock ticks.
cpu_ticks() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }

# round PORT PID: prints "requests cpu_microseconds p99_ms".
round() {
  local before after report
  before=$(cpu_ticks "$2")
  report=$(wrk -t1 -c"$connections" -d"${seconds}s" --latency "http://127.0.0.1:$1/")
  after=$(cpu_ticks "$2")
  grep -q 'Non-2xx' <<<"$report" && { echo "bench/proxy.sh: errors: $report" >&2; exit 1; }
  awk -v ticks=$((after - before)) -v hz="$(getconf CLK_TCK)" '
    / requests in / { requests = $1 }
    / 99%/ { p99 = $2; if (p99 ~ /us$/) p99 /= 1000; else if (p99 ~ /[^m]s$/) p99 *= 1000; else p99 += 0 }
    END { printf "%d %d %.3f\n", requests, ticks * 1000000 / hz, p99 }' <<<"$report"
}

median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

round "$nginx_port" "$nginx_pid" >/dev/null
round "$weir_port" "$weir_pid" >/dev/null
for _ in $(seq "$rounds"); do
  round "$nginx_port" "$nginx_pid" >>"$dir/nginx.rounds"
  round "$weir_port" "$weir_pid" >>"$dir/weir.rounds"
done

nginx_us=$(awk '{ print $2 / $1 }' "$dir/nginx.rounds" | median)
weir_us=$(awk '{ print $2 / $1 }' "$dir/weir.rounds" | median)
rate() { awk -v s="$seconds" '{ print $1 / s }' "$1" | median; }
echo "figure http.proxy.cpu_us $(printf %.2f "$weir_us") us/request"
echo "figure http.proxy.nginx_cpu_us $(printf %.2f "$nginx_us") us/request"
echo "figure http.proxy.rps $(printf %.0f "$(rate "$dir/weir.rounds")") requests/s"
echo "figure http.proxy.nginx_rps $(printf %.0f "$(rate "$dir/nginx.rounds")") requests/s"
echo "figure http.proxy.p99_ms $(awk '{ print $3 }' "$dir/weir.rounds" | median) ms"
echo "figure http.proxy.nginx_p99_ms $(awk '{ print $3 }' "$dir/nginx.rounds" | median) ms"
echo "figure http.proxy.ratio_to_nginx_proxy $(awk -v n="$nginx_us" -v w="$weir_us" 'BEGIN { printf "%.2f", n / w }') ratio"
