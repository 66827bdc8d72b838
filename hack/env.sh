# Sourced by the scripts of this folder before anything else: sets aside what a machine
# or its user has configured for other work, and ends with a clear error where something
# is missing. docs/machine.md says what is supported.

# With CDPATH, cd would look for hack/.. elsewhere first, and print what it found.
unset CDPATH
# Scripts read what tools print. Debian always has this locale.
export LC_ALL=C.UTF-8
# What is made here must be readable for the users in containers.
umask 022
# One setting for every build, so that all of them share Go's build cache.
export CGO_ENABLED=${CGO_ENABLED:-0}

# refuse TEXT ends the script.
refuse() {
  echo "Error: $*" >&2
  exit 1
}

# set_go makes Go take this checkout as it is: without a workspace around it, without a
# vendor folder, and without asking git, which answers no user but the checkout's owner.
set_go() {
  export GOWORK=off
  local flag kept=
  for flag in $(go env GOFLAGS); do
    [[ $flag == -mod=* || $flag == -modfile=* || $flag == -buildvcs* ]] || kept+="$flag "
  done
  export GOFLAGS="${kept}-mod=readonly -buildvcs=false"
}

# check_go makes sure that Go is new enough for this checkout.
check_go() {
  local wanted found
  # Of all modules here, the lab's asks for most.
  wanted=$(sed -n 's/^go //p' "$1/test/lab/go.mod")
  command -v go >/dev/null ||
    refuse "Go $wanted or newer is needed, and there is no go in PATH ($PATH). sudo has a PATH of its own: sudo env PATH=\"\$PATH\" COMMAND"
  [[ -n ${HOME:-} ]] || refuse "HOME is not set: Go and the lab keep their caches below it"
  found=$(cd "$1/test/lab" && GOWORK=off GOFLAGS= go list -m 2>&1 >/dev/null) ||
    refuse "Go $wanted or newer is needed; $(command -v go) is $(GOTOOLCHAIN=local go version). It says: $found"
}

# check_temporary makes sure that Go can build and run programs in the folder for
# temporary files. A lab links programs of 200 MB there.
check_temporary() {
  local folder=${GOTMPDIR:-${TMPDIR:-/tmp}} probe free
  probe=$(mktemp "$folder/insitu.XXXXXX" 2>/dev/null) ||
    refuse "No file can be made in $folder, the folder for temporary files: name another one in TMPDIR"
  printf '#!/bin/sh\n' >"$probe" && chmod 700 "$probe"
  if ! "$probe" 2>/dev/null; then
    rm -f "$probe"
    refuse "No program can be run in $folder, as Go does there (mounted with noexec?): name another folder in TMPDIR"
  fi
  rm -f "$probe"
  free=$(df -Pk "$folder" | awk 'NR == 2 {print $4}')
  ((free >= 1024 * 1024)) ||
    refuse "$folder, the folder for temporary files, has $((free / 1024)) MiB free; at least 1024 MiB are needed: name another one in TMPDIR"
}

# forget_clusters makes kubectl, Helm and the tests know no cluster but those that a
# script brings up, and reach them without the machine's HTTP proxy. 198.18.0.0/15 has
# the addresses of labs.
forget_clusters() {
  local name
  for name in ${!HELM_*} ${!TEST_ASSET_*} KUBECONFIG USE_EXISTING_CLUSTER KUBERNETES_SERVICE_HOST KUBERNETES_SERVICE_PORT; do
    unset "$name"
  done
  export KUBERC=off
  NO_PROXY=${NO_PROXY:-${no_proxy:-}}
  NO_PROXY+=${NO_PROXY:+,}localhost,127.0.0.1,198.18.0.0/15
  export NO_PROXY no_proxy=$NO_PROXY
}

# Scripts call each other; the first one has checked.
if [[ -z ${INSITU_CHECKED:-} ]]; then
  check_go "$(dirname "${BASH_SOURCE[0]}")/.."
  set_go
  check_temporary
  export INSITU_CHECKED=1
fi
