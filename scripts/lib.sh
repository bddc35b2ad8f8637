# Shared by the scripts beside it: sourced, never run. Goes to the root of the tree.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# One compiler per core, fewer where memory is short: a heavy file takes 1.5 GB with sanitizers.
# MUSTER_JOBS overrides it.
jobs_of_this_machine() {
  local cores memory_kb by_memory
  cores=$(nproc)
  memory_kb=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)
  by_memory=$((memory_kb / 1500000))
  ((by_memory >= 1)) || by_memory=1
  echo $((cores < by_memory ? cores : by_memory))
}
JOBS=${MUSTER_JOBS:-$(jobs_of_this_machine)}

say() { printf '\n== %s\n' "$*"; }

die() {
  printf '%s\n' "$*" >&2
  exit 1
}

# elapsed START: the seconds since then, for people.
elapsed() {
  local seconds=$((SECONDS - $1))
  printf '%d min %02d s' $((seconds / 60)) $((seconds % 60))
}

# build PRESET: configure where that was not done yet, and build. Ninja configures again by itself
# when a CMake file has changed.
build() {
  if [[ ! -f build/$1/build.ninja || CMakePresets.json -nt build/$1/build.ninja ]]; then
    cmake --preset "$1"
  fi
  cmake --build "build/$1" --parallel "$JOBS"
}

# newest_tool NAME: NAME-16, which the tree is kept clean with, else a newer one, else NAME.
newest_tool() {
  local candidate
  for candidate in "$1-16" "$1"-{17..30} "$1"; do
    if command -v "$candidate" >/dev/null; then
      echo "$candidate"
      return
    fi
  done
  die "$1 was not found: run scripts/deps test"
}

# Our C++ files, one a line. A corpus or a folder of results holds none.
cpp_files() {
  find src tests bench cmake -type f \( -name '*.h' -o -name '*.cc' \) 2>/dev/null | LC_ALL=C sort
}
