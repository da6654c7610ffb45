#!/usr/bin/env bash
# Builds h2spec, the conformance test of HTTP/2 servers, into build/h2spec, unless it is there. Prints
# nothing on success. May run concurrently: one process does the work, the others wait.
set -euo pipefail
version=v2.2.1+incompatible
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
home=$here/../../../build/h2spec
mkdir -p "$home"
home=$(readlink -f "$home")
exec 9>"$home/lock"
flock 9

if [ -x "$home/h2spec" ] && [ "$(cat "$home/version" 2>/dev/null || true)" = "$version" ]; then exit 0; fi

log=$home/fetch.log
for attempt in 1 2 3; do
  if (cd "$home" && GOBIN=$home GOFLAGS=-mod=mod GOWORK=off \
    go install "github.com/summerwind/h2spec/cmd/h2spec@$version") >"$log" 2>&1 </dev/null; then
    echo "$version" >"$home/version"
    exit 0
  fi
  sleep "$attempt"
done
cat "$log" >&2
echo "fetch.sh: h2spec could not be built" >&2
exit 1
