# Sourced by scripts that bring up a lab for themselves, and need it no longer than they
# run. What is killed by SIGKILL takes nothing down, so its lab is left for hack/lab sweep,
# which the next hack/lab up does, too.

# hold_lab FOLDER makes the lab in the folder one that lasts no longer than this script. It
# holds the lock of the folder's file runner.lock in descriptor 8. What the script starts
# for longer than a moment gets 8>&-, or the lock would outlive the script.
hold_lab() {
  local file=$1/runner.lock
  # Where there is no flock, the lab is not told from one that was brought up by hand.
  command -v flock >/dev/null || return 0
  while :; do
    mkdir -p "$1"
    exec 8>"$file"
    # A sweep has it for as long as it takes a lab down, and removes the file with it.
    if ! flock --nonblock 8; then
      echo "Waiting for another run that has its lab in $1, or for a sweep of it" >&2
      flock --wait 300 8 || { echo "Another run has its lab in $1" >&2; return 1; }
    fi
    [[ ! $file -ef /dev/fd/8 ]] || return 0
  done
}

# release_lab FOLDER lets the lab stay when the script ends.
release_lab() { rm -f "$1/runner.lock"; }
