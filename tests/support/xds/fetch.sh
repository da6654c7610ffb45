#!/usr/bin/env bash
# Builds the control plane that tests start (main.go, on go-control-plane), into build/xds/xds, unless it
# exists. Prints nothing on success. May run concurrently: one process does the work, the others wait.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
home=$here/../../../build/xds
mkdir -p "$home"
home=$(readlink -f "$home")
exec 9>"$home/lock"
flock 9

want=$(cat "$here/main.go" "$here/go.mod" "$here/go.sum" | cksum)
if [ -x "$home/xds" ] && [ "$(cat "$home/version" 2>/dev/null || true)" = "$want" ]; then exit 0; fi

log=$home/fetch.log
for attempt in 1 2 3; do
  if (cd "$here" && GOFLAGS=-mod=readonly GOWORK=off go build -o "$home/xds" .) >"$log" 2>&1 </dev/null; then
    echo "$want" >"$home/version"
    exit 0
  fi
  sleep "$attempt"
done
cat "$log" >&2
echo "fetch.sh: the control plane could not be built" >&2
exit 1
