#!/usr/bin/env bash
# Fetches the MySQL server that tests and benches start, into build/mysql/root, unless it is there. Debian's own
# release has only MariaDB; its suite sid has MySQL. The packages are downloaded and unpacked, not installed:
# the server runs with the loader and the libraries that came with it. Needs no root, and does not change
# the machine's apt. Prints nothing on success. May run concurrently: one process does the work, the others wait.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
mkdir -p "$here/../../../build/mysql"
home=$(readlink -f "$here/../../../build/mysql")
exec 9>"$home/lock"
flock 9

want=$(cksum <"${BASH_SOURCE[0]}")
if [ "$(cat "$home/version" 2>/dev/null || true)" = "$want" ]; then exit 0; fi
# Without this, every test program would wait again for an unreachable network.
failed=$home/failed
if [ -n "$(find "$failed" -mmin -10 2>/dev/null)" ]; then
  cat "$failed" >&2
  exit 1
fi

apt=$home/apt
rm -rf "$apt" "$home/root" "$home/root.new" "$home/version" "$failed"
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
: >"$apt/status"
log=$home/fetch.log

# Sid is fetched from the mirror that this machine's own release comes from.
write_sources() {
  local codename mirror
  codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
  # shellcheck disable=SC2016  # expanded by apt
  mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' |
    awk -v release="$codename" '$2 == release && $3 == "main" { print $1; exit }')
  [ -n "$mirror" ] || { echo "no apt source of $codename main" >&2 && return 1; }
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror sid main" >"$apt/sources.list"
}

own_apt() {
  apt-get -qq -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
    -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null \
    -o Dir::State::Lists="$apt/lists" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" \
    -o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false \
    -o Acquire::Retries=3 -o APT::Sandbox::User= -o APT::Get::List-Cleanup=false -o Debug::NoLocking=1 "$@"
}

# Most of it is not needed by the server.
unpack() {
  local package name
  for package in "$apt"/cache/archives/*.deb; do
    name=$(basename "$package")
    case $name in perl* | libperl* | debconf* | dpkg* | tar_* | media-types*) continue ;; esac
    dpkg -x "$package" "$home/root.new"
  done
  rm -rf "$home/root.new"/usr/{bin,share/doc,share/man,share/locale} "$home/root.new/etc"
  ls "$home"/root.new/usr/lib/*/ld-linux*.so.* >/dev/null
  test -x "$home/root.new/usr/sbin/mysqld"
}

for attempt in 1 2 3; do
  if {
    write_sources && own_apt update &&
      own_apt -y --no-install-recommends --download-only install mysql-server-core && unpack
  } >"$log" 2>&1 </dev/null; then
    mv "$home/root.new" "$home/root"
    rm -rf "$apt"
    echo "$want" >"$home/version"
    exit 0
  fi
  sleep "$attempt"
done
{
  tail -5 "$log"
  echo "fetch.sh: MySQL cannot be downloaded (see build/mysql/fetch.log)"
} | tee "$failed" >&2
exit 1
