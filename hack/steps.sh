# Sourced by scripts which do several things in turn: every step says what it
# does, how long it took and whether it worked, and the summary says it again.

# One setting for every build, so that all of them share Go's build cache.
export CGO_ENABLED=${CGO_ENABLED:-0}

steps_failed=0
steps_lines=()
steps_note=

# step NAME COMMAND [ARGUMENT...] runs a command. A failure does not stop the
# script: the other steps still have something to say. Ctrl-C does.
step() {
  local name=$1 started=$SECONDS status=0 verdict=ok
  shift
  steps_note=
  printf '\n==> %s\n' "$name"
  "$@" || status=$?
  if ((status != 0)); then
    verdict=FAIL
    steps_failed=1
  fi
  local line
  line=$(printf '%-4s  %-28s %5d s  %s' "$verdict" "$name" $((SECONDS - started)) "$steps_note")
  steps_lines+=("$line")
  printf -- '--- %s\n' "$line"
  if ((status == 130 || status == 143)); then
    summary "interrupted"
    exit "$status"
  fi
}

# note TEXT puts a text beside the current step in the summary.
note() { steps_note=$1; }

# summary NAME prints all steps, and returns 1 if one of them failed.
summary() {
  local verdict=ok
  ((steps_failed)) && verdict=FAILED
  printf '\n%s: %s, in %d min %d s\n' "$1" "$verdict" $((SECONDS / 60)) $((SECONDS % 60))
  printf '  %s\n' "${steps_lines[@]}"
  return "$steps_failed"
}
