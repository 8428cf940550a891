#!/usr/bin/env bash
# ./start.sh                 start the page
# ./start.sh test …          run the tests with these pytest arguments
# ./start.sh <command> …     the same as python -m utils <command> …
# The first start creates .venv and installs requirements.txt; later starts only compare a stamp.
set -euo pipefail
here=${BASH_SOURCE[0]}
while [ -L "$here" ]; do
  target=$(readlink "$here")
  case $target in /*) here=$target ;; *) here=$(dirname "$here")/$target ;; esac
done
CDPATH='' cd -- "$(dirname "$here")"

say() { printf '%s\n' "$*" >&2; }

# a second start waits for the first; the system frees the lock when its holder dies
wait_for_other_starts() {
  command -v flock >/dev/null && [ -w . ] || return 0
  exec 9>.venv.lock
  flock -n 9 || { say "Another start is installing; waiting …"; flock 9; }
}

find_python() {
  local name
  for name in "${PYTHON:-}" python3.11 python3.12 python3.13 python3.14 python3 python; do
    [ -n "$name" ] && "$name" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null && { printf '%s' "$name"; return; }
  done
}

# the uv of this computer, or one that another Python installs for a moment
find_uv() {
  local name
  command -v uv && return
  for name in python3 python; do
    "$name" -m venv .uv >/dev/null 2>&1 && .uv/bin/python -m pip install --quiet uv==0.13.9 >&2 && { printf .uv/bin/uv; return; }
  done
}

make_environment() {
  local python uv
  python=$(find_python) || true
  if [ -n "$python" ]; then
    "$python" -m venv .venv && return
  else
    say "Python 3.11 to 3.14 was not found; uv downloads one …"
    uv=$(find_uv) || true
    [ -n "$uv" ] && "$uv" venv --quiet --seed --python 3.12 .venv >&2 && { rm -rf .uv; return; }
  fi
  rm -rf .venv .uv
  say "Python could not be found or could not create .venv. Install Python 3.12 (on Debian and Ubuntu also the package python3-venv), or set PYTHON=/path/to/python3.12 ./start.sh"
  exit 1
}

# a Python that was replaced, or whose pip installation was killed, does not work
works() {
  .venv/bin/python -c 'import sys, importlib.util as u; sys.exit(not ((3, 11) <= sys.version_info < (3, 15) and u.find_spec("pip")))' &&
    { [ -e .venv/.installed ] || .venv/bin/python -m pip --version; }
} >/dev/null 2>&1

stamp_of() { cat "$@" | cksum; }

# uv takes two thirds of pip's time (measured: benchmarks/log.md), but knows nothing of a mirror in pip's settings. It also
# finds the torch for this driver, and leaves out a package that has no wheel and that nothing here imports.
uv_install() {
  .venv/bin/python -m pip install --disable-pip-version-check --quiet uv==0.13.9 || return
  [ "$2" != requirements.txt ] || .venv/bin/python -m utils.system.torch_build
  .venv/bin/python -m uv pip install --compile-bytecode --python .venv/bin/python --override overrides.txt "$@"
} >&2

pip_install() {
  .venv/bin/python -m pip install --disable-pip-version-check "$@" >&2 || {
    say "The installation failed. See the lines above, then run the same command again to continue."
    exit 1
  }
}

# install LOCK STAMP SIZE: once per content of the lock. pip takes everything from it but the CUDA libraries, which torch pins.
install() {
  local wanted torch
  wanted=$(stamp_of overrides.txt "$1")
  [ "$(cat "$2" 2>/dev/null)" = "$wanted" ] && return
  say "Installing $1${3:+ ($3)} …"
  uv_install -r "$1" || {
    say "uv failed; trying pip …"
    pip_install --no-deps -r "$1"
    torch=$(sed -nE 's/^(torch==[^ ]+).*/\1/p' "$1")
    [ -z "$torch" ] || pip_install "$torch"
  }
  printf '%s' "$wanted" > "$2"
}

wait_for_other_starts
if ! works; then
  [ -e .venv ] && say "The folder .venv is damaged; creating it again."
  rm -rf .venv
  make_environment
fi
if [ -e .venv/.installed ]; then
  broken=$(.venv/bin/python -m utils.system.packages)
  if [ -n "$broken" ]; then
    say "Missing, damaged or outdated packages: $broken. Installing them again."
    rm -f .venv/.installed .venv/.installed-tests
    # shellcheck disable=SC2086  # a list of words
    pip_install --force-reinstall --no-deps $broken
  fi
fi
install requirements.txt .venv/.installed "the first time it downloads 3 GB, or under 1 GB without an NVIDIA GPU; several minutes"
if [ "${1:-}" = test ]; then install tests/requirements.txt .venv/.installed-tests; fi
exec 9>&-

case "${1:-}" in
  test)
    shift
    exec .venv/bin/python -m pytest "$@"
    ;;
  ""|--*) exec .venv/bin/python xtts_demo.py "$@" ;;
  *) exec .venv/bin/python -m utils "$@" ;;
esac
