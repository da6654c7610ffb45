#!/usr/bin/env bash
# Makes the image of the Dockerfile in a bare Debian root, without a Docker engine, with the file's own commands, and asks its
# health check:
#
#   sudo tests/deploy/image_root.sh PROGRAM    the last stage, with a program that is built already
#   sudo tests/deploy/image_root.sh --build    both stages: the program is built in a root of its own (tens of minutes)
#
# Needs root, debootstrap (a Debian package) and the network; takes a minute or two, so ./dev test does not run it. Everything is in
# a temporary folder and a network of its own, and gone at the end.
set -euo pipefail
root=$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../..")
program=${1:?give a program, or --build}
work=$(mktemp -d /tmp/weir-image.XXXXXX)
trap 'rm -rf --one-file-system "$work"' EXIT

# stage NUMBER: the lines of that FROM, continued ones joined.
stage() {
  sed -e ':a' -e '/\\$/N; s/ *\\\n */ /; ta' "$root/Dockerfile" | awk -v n="$1" '/^FROM /{at++} at==n'
}
instruction() { stage "$1" | sed -n "s/^$2 //p"; } # STAGE WORD

bare() { # FOLDER
  debootstrap --variant=minbase bookworm "$1" >"$work/debootstrap.log" 2>&1 || { tail -5 "$work/debootstrap.log" >&2; exit 1; }
}

run_all() { # STAGE FOLDER DIRECTORY
  local line
  while read -r line; do
    echo "RUN $line" | cut -c1-120
    chroot "$2" /bin/sh -ec "cd '$3' && export DEBIAN_FRONTEND=noninteractive && $line" >"$work/run.log" 2>&1 ||
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

bare "$work/image"
run_all 2 "$work/image" /
install -m 755 "$program" "$work/image/usr/local/bin/weir"
missing=$(chroot "$work/image" ldd /usr/local/bin/weir | grep 'not found' || true)
[ -z "$missing" ] || { echo "the image lacks $missing" >&2; exit 1; }

user=$(instruction 2 USER) place=$(instruction 2 WORKDIR)
health=$(stage 2 | sed -n 's/^HEALTHCHECK .*CMD \[\(.*\)\]/\1/p' | tr -d '",')
command=$(stage 2 | sed -n 's/^CMD \[\(.*\)\]/\1/p' | tr -d '",')
# A network of its own: port 8080 is free there, as in a container.
export user place health command image="$work/image"
# shellcheck disable=SC2016  # the inner shell expands it
unshare --net --pid --fork --mount-proc bash -ec '
  ip link set lo up
  inside() { chroot --userspec="$user" "$image" /bin/sh -c "cd $place && exec $1"; }
  inside "weir $command" &
  for attempt in $(seq 100); do
    if inside "$health" 2>/dev/null; then echo "healthy after $attempt attempts"; exit 0; fi
    sleep 0.2
  done
  inside "$health"
'
