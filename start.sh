#!/usr/bin/env bash
# ./start.sh             open the page
# ./start.sh test …      run the tests (more words go to pytest)
# ./start.sh <verb> …    the same as python -m utils <verb> …
# The first start makes .venv and installs requirements.txt; later starts only compare a stamp.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

say() { printf '%s\n' "$*" >&2; }

find_python() {
  local name
  for name in "${PYTHON:-}" python3.11 python3.12 python3 python; do
    [ -n "$name" ] && "$name" -c 'import sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' 2>/dev/null && { printf '%s' "$name"; return; }
  done
  say "Python 3.11 or 3.12 was not found. Install one of them, or name it: PYTHON=/path/to/python3.11 ./start.sh"
  exit 1
}

stamp_of() { cat "$@" | cksum; }

# the packages are still there: asks their metadata, not pip
is_whole() {
  .venv/bin/python - 2>/dev/null <<'PYTHON'
import importlib.metadata, importlib.util, re, sys
pins = re.findall(r"^([\w.-]+)==(\S+)", open("requirements.txt", encoding="utf-8").read(), re.M)
modules = ("gradio", "torch", "torchaudio", "TTS", "transformers", "faster_whisper", "pandas", "epitran", "pydantic", "yaml")
right = all(importlib.metadata.version(name).partition("+")[0] == version for name, version in pins)
sys.exit(not (right and all(map(importlib.util.find_spec, modules))))
PYTHON
}

# install <list> <stamp file>: once for each content of the list
install() {
  local wanted
  wanted=$(stamp_of constraints.txt "$1")
  [ "$(cat "$2" 2>/dev/null)" = "$wanted" ] && return
  say "Installing $1 (the first time about 5 GB; several minutes) …"
  .venv/bin/python -m pip install --disable-pip-version-check -r "$1" >&2 || {
    say "The installation broke off. Look at the lines above, then run the same command again: it goes on where it was."
    exit 1
  }
  printf '%s' "$wanted" > "$2"
}

if ! .venv/bin/python -c '' 2>/dev/null; then
  python=$(find_python)
  [ -e .venv ] && say "The folder .venv does not work; making it again."
  rm -rf .venv
  "$python" -m venv .venv || { rm -rf .venv; say "Python could not make .venv; on Debian and Ubuntu install the package python3-venv."; exit 1; }
fi
if [ -e .venv/.installed ] && ! is_whole; then
  say "Some packages in .venv are missing or of another version; mending."
  rm -f .venv/.installed .venv/.installed-tests
fi
install requirements.txt .venv/.installed

case "${1:-}" in
  test)
    shift
    install tests/requirements.txt .venv/.installed-tests
    exec .venv/bin/python -m pytest "$@"
    ;;
  ""|--*) exec .venv/bin/python xtts_demo.py "$@" ;;
  *) exec .venv/bin/python -m utils "$@" ;;
esac
