#!/usr/bin/env bash
# Builds the servers that bench/peers.sh compares Weir with, into build/peers, unless they are there: envoyproxy/ratelimit
# (Go), throttlecrab and redis-cell (Rust). Says which cannot be built here, and why; the others are measured without it.
# gubernator and limitador's server are in no package registry.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
mkdir -p "$here/../../build/peers"
home=$(readlink -f "$here/../../build/peers")
ratelimit=v1.4.1-0.20260122083618-3fb702589d36
throttlecrab=0.4.40
redis_cell=0.2.2

# build NAME VERSION TOOL COMMAND…: once for each version; the command leaves $home/NAME.
build() {
  local name=$1 version=$2 tool=$3
  shift 3
  [ "$(cat "$home/$name.version" 2>/dev/null || true)" != "$version" ] || [ ! -e "$home/$name" ] || return 0
  if ! command -v "$tool" >/dev/null; then
    echo "bench/peers: $name is left out: no $tool here" >&2
    return 0
  fi
  echo "bench/peers: building $name $version (once; this takes a few minutes)" >&2
  if "$@" >"$home/$name.log" 2>&1 </dev/null; then
    echo "$version" >"$home/$name.version"
  else
    rm -f "$home/$name"
    echo "bench/peers: $name is left out: it cannot be built here; see build/peers/$name.log" >&2
  fi
}

build_ratelimit() {
  GOBIN=$home/go-bin GOPATH=$home/go GOFLAGS=-modcacherw \
    go install "github.com/envoyproxy/ratelimit/src/service_cmd@$ratelimit" &&
    mv "$home/go-bin/service_cmd" "$home/ratelimit"
}

build_throttlecrab() {
  cargo install --locked --root "$home/cargo" --target-dir "$home/target" "throttlecrab-server@$throttlecrab" &&
    mv "$home/cargo/bin/throttlecrab-server" "$home/throttlecrab"
}

# A module, which Cargo does not install: it is built where Cargo has unpacked it for a package that needs it.
build_redis_cell() {
  local package=$home/redis-cell-package source
  mkdir -p "$package"
  printf '[package]\nname = "none"\nversion = "0.0.0"\n[lib]\npath = "none.rs"\n[dependencies]\nredis-cell = "=%s"\n' \
    "$redis_cell" >"$package/Cargo.toml"
  : >"$package/none.rs"
  source=$(cd "$package" && cargo metadata --format-version 1 |
    python3 -c 'import json, sys
for package in json.load(sys.stdin)["packages"]:
    if package["name"] == "redis-cell": print(package["manifest_path"])') &&
    cargo build --release --manifest-path "$source" --target-dir "$home/target" &&
    cp "$home/target/release/libredis_cell.so" "$home/redis-cell"
}

build ratelimit "$ratelimit" go build_ratelimit
build throttlecrab "$throttlecrab" cargo build_throttlecrab
build redis-cell "$redis_cell" cargo build_redis_cell
