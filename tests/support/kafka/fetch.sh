#!/usr/bin/env bash
# Fetches the Kafka broker that tests and benches start, into build/kafka/jars, unless it is there.
# Prints nothing on success. May run concurrently: one process does the work, the others wait.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
home=$here/../../../build/kafka
mkdir -p "$home"
exec 9>"$home/lock"
flock 9

want=$(cksum <"$here/pom.xml")
if [ "$(cat "$home/version" 2>/dev/null || true)" = "$want" ]; then exit 0; fi

log=$home/fetch.log
rm -rf "$home/jars" "$home/jars.new" "$home/version"
for attempt in 1 2 3; do
  if mvn --batch-mode --quiet --file "$here/pom.xml" dependency:copy-dependencies \
    -DoutputDirectory="$home/jars.new" >"$log" 2>&1 </dev/null; then
    mv "$home/jars.new" "$home/jars"
    echo "$want" >"$home/version"
    exit 0
  fi
  sleep "$attempt"
done
cat "$log" >&2
echo "fetch.sh: Maven could not fetch the Kafka broker" >&2
exit 1
