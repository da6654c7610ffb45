#!/usr/bin/env bash
# Fetches the servers that targets_test.py puts behind Weir, into build/upstreams, unless they are there. May run
# concurrently: one process does the work, the others wait. What cannot be fetched is reported, and left out.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
home=$here/../../../../build/upstreams
mkdir -p "$home"
exec 9>"$home/lock"
flock 9

want=$(cat "$here/package.json" "$here/requirements.txt" | cksum)
if [ "$(cat "$home/version" 2>/dev/null || true)" = "$want" ]; then exit 0; fi
rm -rf "$home/node_modules" "$home/python" "$home/version"
cp "$here/package.json" "$home/package.json"

# attempt COMMAND…: up to three times, since registries fail occasionally.
attempt() {
  for pause in 1 2 0; do
    if "$@" >"$home/fetch.log" 2>&1 </dev/null; then return 0; fi
    sleep "$pause"
  done
  cat "$home/fetch.log" >&2
  return 1
}
if command -v npm >/dev/null; then attempt npm install --prefix "$home" --no-audit --no-fund --ignore-scripts; fi
attempt python3 -m pip install --quiet --target "$home/python" --requirement "$here/requirements.txt"
echo "$want" >"$home/version"
