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
    if [[ -z $target ]]; then
      imports=$(go list "${arguments[@]}" -f '{{join .Imports "\n"}}' "$package") || exit 1
      # Import paths hold no spaces.
      # shellcheck disable=SC2206
      packages=($imports)
    fi
    total=$(go list "${arguments[@]}" -deps -f '{{if .Stale}}{{.ImportPath}}{{end}}' "${packages[@]}" | grep -c . || true)
    [[ -n $target || $total != 0 ]] || exit 0
    [[ -z $target ]] || arguments+=(-o "$target")
    say "Building $what: $total package$( ((total == 1)) || echo s) to compile$(duration "$total")"
    log=$(mktemp)
    go build "${arguments[@]}" -v "${packages[@]}" 2>"$log" &
    builder=$!
    trap 'kill "$builder" 2>/dev/null || true; rm -f ${target:+"$target"} "$log"' EXIT
    report_progress "$builder" "$log" "$total"
    if ! wait "$builder"; then
      grep -v '^[a-zA-Z0-9._/~-]*$' "$log" >&2 || true
      say "$what cannot be built."
      exit 1
    fi
    trap 'rm -f "$log"' EXIT
    say "Built $what in $((SECONDS - began)) s"
  )
}

# compile_tool NAME compiles what a tool of go.tools.mod is made of.
compile_tool() {
  local package
  package=$(go list -modfile=go.tools.mod -f '{{.ImportPath}}' tool | grep -E "/$1(/v[0-9]+)?$") || return
  compile "$1" . "" "$package" -modfile=go.tools.mod
}

# report_progress PROCESS LOG TOTAL tells from time to time how many packages are in the
# log of a build, until the process has ended.
report_progress() {
  local builder=$1 log=$2 total=$3 period=20 began=$SECONDS next=$((SECONDS + 20))
  while kill -0 "$builder" 2>/dev/null; do
    sleep 1
    if ((SECONDS >= next)); then
      # The program's own package is counted when linking begins.
      say "  $(grep -c . "$log" || true) of $total packages after $((SECONDS - began)) s"
      next=$((SECONDS + period))
    fi
  done
}

# duration PACKAGES says how long it takes to compile so many, if that is long.
duration() {
  local cores seconds
  cores=$(nproc 2>/dev/null || echo 1)
  # Measured: 100 packages of Kubernetes take 32 s of one core, and linking takes some more.
  seconds=$(($1 * 35 / 100 / cores))
  ((seconds < 60)) || echo ", which takes about $(((seconds + 59) / 60)) minutes on $cores cores, once"
}
