# Sourced by scripts that need much memory and disk: says early what is lacking.

# ensure_room WHAT MEMORY_MB [FOLDER DISK_MB]... returns 1, and says what is lacking,
# unless the machine has so much free memory, and so much free disk for each folder, which
# need not exist. What folders of one filesystem need is added up.
ensure_room() {
  local what=$1 memory=$2 lacking
  shift 2
  lacking=$(
    lacking_memory "$memory"
    while (($# > 0)); do
      echo "$2 $1 $(free_disk "$1")"
      shift 2
    done | lacking_disk
  )
  [[ -n $lacking ]] || return 0
  printf '%s needs\n%s\n' "$what" "$lacking" >&2
  return 1
}

# lacking_memory MB prints a line if the machine has less free memory.
lacking_memory() {
  local free
  free=$(free_memory)
  ((free >= $1)) || echo "  $1 MB of free memory: there are $free MB, with swap"
}

# lacking_disk reads lines of MB, folder, free MB and filesystem, and prints a line for each
# filesystem that has less than its folders need.
lacking_disk() {
  awk '{
    need[$4] += $1; free[$4] = $3
    folders[$4] = folders[$4] (folders[$4] == "" ? "" : " and ") $2
  }
  END {
    for (one in need) if (free[one] < need[one])
      printf "  %d MB of free disk for %s: there are %d MB\n", need[one], folders[one], free[one]
  }'
}

# free_memory prints how many MB programs can take, with swap. Where the machine does not
# say so, that is many.
free_memory() {
  awk '$1 == "MemAvailable:" || $1 == "SwapFree:" {free += $2} END {print int(free / 1024)}' /proc/meminfo 2>/dev/null || echo 1000000
}

# free_disk FOLDER prints how many MB are free where the folder is or would be, and the
# name of that filesystem.
free_disk() {
  local folder=$1
  until [[ -d $folder ]]; do folder=$(dirname "$folder"); done
  df -Pm "$folder" | awk 'NR == 2 {print $4, $6}'
}

# used_disk FOLDER prints how many MB the folder has.
used_disk() { du -sm "$1" 2>/dev/null | awk '{used = $1} END {print used + 0}'; }
