#!/usr/bin/env bash
# Fetches the OpenTelemetry project's own Python messages and service of OTLP into build/otlp, unless they are
# there: the receiver in the trace test is built from them. Prints nothing on success. May run
# concurrently: one process does the work, the others wait.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
home=$here/../../../build/otlp
want=1.20.0
mkdir -p "$home"
exec 9>"$home/lock"
flock 9

if [ "$(cat "$home/version" 2>/dev/null || true)" = "$want" ] && [ -d "$home/opentelemetry" ]; then exit 0; fi

log=$home/fetch.log
rm -rf "$home/opentelemetry" "$home/wheel" "$home/version"
for attempt in 1 2 3; do
  if /usr/bin/python3 -m pip download --quiet --no-deps --dest "$home/wheel" "opentelemetry-proto==$want" \
    >"$log" 2>&1 </dev/null; then
    /usr/bin/python3 -m zipfile -e "$home"/wheel/*.whl "$home"
    rm -rf "$home/wheel"
    echo "$want" >"$home/version"
    exit 0
  fi
  sleep "$attempt"
done
cat "$log" >&2
echo "fetch.sh: pip could not fetch opentelemetry-proto" >&2
exit 1
