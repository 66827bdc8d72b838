# Sourced by scripts that compile: a build says what it has to do, and how far it is.

# say tells the user something, beside what a script prints for its caller.
say() { echo "$*" >&2; }

# compile WHAT FOLDER TARGET PACKAGE [BUILD_FLAG...] builds the program of a package,
# which is named as in the folder. Where the target is empty, all that the program
# imports is compiled, and nothing is linked: a command that builds the program itself
# then takes seconds. If the build fails, the compiler's words are printed, and the
# target does not exist.
compile() {
  # In a subshell, so that traps and variables are those of this build.
  (
    what=$1 folder=$2 target=$3 package=$4 began=$SECONDS
    arguments=(-C "$folder" "${@:5}")
    packages=("$package")
    log=$(mktemp) found=$(mktemp) worker=
    trap 'kill $worker 2>/dev/null || true; rm -f "$log" "$found"' EXIT
    if [[ -z $target ]]; then
      packages_of "${arguments[@]}" -f '{{join .Imports "\n"}}' "$package" || exit 1
      mapfile -t packages <"$found"
    fi
    packages_of "${arguments[@]}" -deps -f '{{if .Stale}}{{.ImportPath}}{{end}}' "${packages[@]}" || exit 1
    total=$(grep -c . "$found" || true)
    [[ -n $target || $total != 0 ]] || exit 0
    [[ -z $target ]] || arguments+=(-o "$target")
    say "Building $what: $total package$( ((total == 1)) || echo s) to compile$(duration "$total")"
    go build "${arguments[@]}" -v "${packages[@]}" 2>"$log" &
    worker=$!
    trap 'kill $worker 2>/dev/null || true; rm -f ${target:+"$target"} "$log" "$found"' EXIT
    report_progress "$worker" "$log" "$total"
    if ! wait "$worker"; then
      grep -v -e '^[a-zA-Z0-9._/~-]*$' -e '^go: downloading ' "$log" >&2 || true
      say "$what cannot be built."
      exit 1
    fi
    trap 'rm -f "$log" "$found"' EXIT
    say "Built $what in $((SECONDS - began)) s"
  )
}

# packages_of ARGUMENT... writes what go list prints into the file found of a build. Modules that
# it downloads are counted, not listed.
packages_of() {
  local downloaded began=$SECONDS
  go list "$@" >"$found" 2>"$log" &
  worker=$!
  report_progress "$worker" "$log" ""
  if ! wait "$worker"; then
    grep -v '^go: downloading ' "$log" >&2 || true
    say "$what cannot be built."
    return 1
  fi
  downloaded=$(grep -c '^go: downloading ' "$log" || true)
  ((downloaded == 0)) || say "Downloaded $downloaded module$( ((downloaded == 1)) || echo s) for $what in $((SECONDS - began)) s"
}

# compile_tool NAME compiles what a tool of go.tools.mod is made of.
compile_tool() {
  local package
  # go list would download the modules of all tools, one line each, to say the same.
  package=$(sed -n '/^tool (/,/^)/s/^\t//p' go.tools.mod | grep -E "/$1(/v[0-9]+)?$") || return
  compile "$1" . "" "$package" -modfile=go.tools.mod
}

# report_progress PROCESS LOG TOTAL tells how many packages are in the log of a build, of how many,
# until the process has ended; without a total, how many modules are downloaded. On a terminal, that is
# a line that changes, with a bar; else a line from time to time.
report_progress() {
  local process=$1 log=$2 total=$3 began=$SECONDS next=$((SECONDS + 20)) words shown=
  while kill -0 "$process" 2>/dev/null; do
    sleep 0.2
    if [[ -z $total ]]; then
      words="$(grep -c '^go: downloading ' "$log" || true) modules to download so far, $((SECONDS - began)) s"
    else
      # The program's own package is counted when linking begins.
      words=$(grep -vc '^go: downloading ' "$log" || true)
      words="$( [[ ! -t 2 ]] || bar "$words" "$total")$words of $total packages after $((SECONDS - began)) s"
    fi
    if [[ -t 2 ]]; then
      printf '\r\033[K  %s' "$words" >&2
      shown=1
    elif ((SECONDS >= next)); then
      say "  $words"
      next=$((SECONDS + 20))
    fi
  done
  [[ -z $shown ]] || printf '\r\033[K' >&2
}

# bar DONE TOTAL draws how much is done.
bar() {
  local width=30 full
  full=$(($2 == 0 ? width : $1 * width / $2))
  full=$((full > width ? width : full))
  printf '[%s%s] ' "$(printf '%*s' "$full" '' | tr ' ' '#')" "$(printf '%*s' "$((width - full))" '' | tr ' ' '.')"
}

# duration PACKAGES says how long it takes to compile so many, if that is long.
duration() {
  local cores seconds
  cores=$(nproc 2>/dev/null || echo 1)
  # Measured: 100 packages of Kubernetes take 32 s of one core, and linking takes some more.
  seconds=$(($1 * 35 / 100 / cores))
  ((seconds < 60)) || echo ", which takes about $(((seconds + 59) / 60)) minutes on $cores cores, once"
}
