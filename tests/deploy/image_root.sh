#!/usr/bin/env bash
# Builds the image of the Dockerfile in a bare Debian root, without a Docker engine, with the file's own commands, and runs its
# health check:
#
#   sudo tests/deploy/image_root.sh PROGRAM           the last stage, with a program that is built already (./dev image)
#   sudo tests/deploy/image_root.sh --build           both stages: the program is built in a separate root (tens of minutes)
#   tests/deploy/image_root.sh --test PROGRAM         like the first, with sudo if needed; prints `skipped: …` if it cannot run
#
# Needs root and the network; takes a minute or two the first time. build/image-root keeps the bare root and the last stage
# after its RUN, named after the instructions that made it, so that later runs take seconds and no network. Remove the folder
# to get newer packages. All else is in a temporary folder and a separate network, and removed at the end. debootstrap is
# fetched if it is not installed.
set -euo pipefail
root=$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../..")
program=${1:?give a program, or --build}
kept=$root/build/image-root

skip() {
  echo "skipped: $1"
  exit 0
}
is_test=
if [ "$program" = --test ]; then
  is_test=1 program=${2:?give a program}
  if [ "$(id -u)" != 0 ]; then
    sudo -n true 2>/dev/null || skip "the image needs root, or sudo without a password"
    exec sudo -n -- "$0" "$@"
  fi
  unshare --net --pid --fork --mount-proc true 2>/dev/null || skip "this machine does not let root make a network and processes of its own"
fi
work=$(mktemp -d /tmp/weir-image.XXXXXX)
trap 'rm -rf --one-file-system "$work"' EXIT

# stage NUMBER: the lines of that FROM, continued ones joined.
stage() {
  sed -e ':a' -e '/\\$/N; s/ *\\\n */ /; ta' "$root/Dockerfile" | awk -v n="$1" '/^FROM /{at++} at==n'
}
instruction() { stage "$1" | sed -n "s/^$2 //p"; } # STAGE WORD

keep() { # FOLDER NAME
  mkdir -p "$kept"
  tar -C "$1" -I 'gzip -1' -cf "$kept/$2.$$" . && mv "$kept/$2.$$" "$kept/$2"
}
unpack() { # NAME FOLDER
  [ -e "$kept/$1" ] && mkdir "$2" && tar -C "$2" -xpzf "$kept/$1"
}

fetch_debootstrap() {
  if command -v debootstrap >/dev/null; then return; fi
  mkdir "$work/tool"
  (cd "$work/tool" && apt-get -qq download debootstrap && dpkg -x debootstrap_*.deb .) 2>"$work/tool.log" ||
    { cat "$work/tool.log" >&2; exit 1; }
  export DEBOOTSTRAP_DIR="$work/tool/usr/share/debootstrap" PATH="$work/tool/usr/sbin:$PATH"
}

bare() { # FOLDER
  if unpack bare.tar.gz "$1"; then return; fi
  fetch_debootstrap
  debootstrap --variant=minbase bookworm "$1" >"$work/debootstrap.log" 2>&1 || { tail -5 "$work/debootstrap.log" >&2; exit 1; }
  keep "$1" bare.tar.gz
}

# inside_of FOLDER COMMAND: with /proc, as in a container; ./dev needs /dev/fd, which is a link into it.
inside_of() {
  # shellcheck disable=SC2016  # expanded by the inner shell
  unshare --mount --pid --fork /bin/sh -ec '
    mount -t proc proc "$1/proc"
    [ -e "$1/dev/fd" ] || ln -s /proc/self/fd "$1/dev/fd"
    exec env -u TMPDIR chroot "$1" /bin/sh -ec "$2"' sh "$1" "$2"
}

run_all() { # STAGE FOLDER DIRECTORY
  local line
  while read -r line; do
    echo "RUN $line" | cut -c1-120
    inside_of "$2" "cd '$3' && export DEBIAN_FRONTEND=noninteractive && $line" >"$work/run.log" 2>&1 ||
      { tail -20 "$work/run.log" >&2; exit 1; }
  done < <(instruction "$1" RUN)
}

if [ "$program" = --build ]; then
  bare "$work/build"
  mkdir "$work/build/weir"
  git -C "$root" archive HEAD | tar -x -C "$work/build/weir"
  run_all 1 "$work/build" /weir
  program=$work/build/weir/build/release/weir
fi

layer=$(stage 2 | grep -E '^(FROM|RUN) ' | sha256sum | cut -c1-16).tar.gz
if ! unpack "$layer" "$work/image"; then
  if [ -n "$is_test" ]; then
    timeout 20 wget -q --spider --tries 1 http://deb.debian.org/debian/dists/bookworm/Release || skip "Debian's archive cannot be reached"
  fi
  bare "$work/image"
  run_all 2 "$work/image" /
  keep "$work/image" "$layer"
fi
install -m 755 "$program" "$work/image/usr/local/bin/weir"
missing=$(chroot "$work/image" ldd /usr/local/bin/weir | grep 'not found' || true)
[ -z "$missing" ] || { echo "the image lacks $missing" >&2; exit 1; }

user=$(instruction 2 USER) place=$(instruction 2 WORKDIR)
health=$(stage 2 | sed -n 's/^HEALTHCHECK .*CMD \[\(.*\)\]/\1/p' | tr -d '",')
command=$(stage 2 | sed -n 's/^CMD \[\(.*\)\]/\1/p' | tr -d '",')
# A separate network: port 8080 is free there, as in a container.
export user place health command image="$work/image"
# shellcheck disable=SC2016  # expanded by the inner shell
unshare --net --pid --fork --mount-proc bash -ec '
  ip link set lo up
  inside() { env -u TMPDIR chroot --userspec="$user" "$image" /bin/sh -c "cd $place && exec $1"; }
  if inside "$health" 2>/dev/null; then echo "healthy before anything was started" >&2; exit 1; fi
  inside "weir $command" &
  for attempt in $(seq 100); do
    if inside "$health" 2>/dev/null; then echo "healthy after $attempt attempts"; exit 0; fi
    sleep 0.2
  done
  inside "$health"
'
