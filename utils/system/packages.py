"""Pinned packages that are missing, damaged or of another version; start.sh and start.bat run this before pip.

It imports only the standard library, so that it works in a damaged environment.
"""

import importlib.metadata
import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"  # of a checkout
PIN = re.compile(r"([A-Za-z0-9_.-]+)==([^\s;]+)")
MODULES = {"coqui-tts": "TTS", "PyYAML": "yaml", "nvidia-ml-py": "pynvml"}  # others have the name of their package


def pins() -> dict[str, str]:
    """Return name and version of every package that the program needs itself."""
    if PROJECT.is_file():
        wanted = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["dependencies"]
    else:
        wanted = importlib.metadata.requires("amharic-xtts") or []
    return dict(PIN.findall("\n".join(wanted)))


def installed(name: str) -> str | None:
    """Return the installed version of a package; None if it is missing or damaged."""
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
    module = importlib.util.find_spec(MODULES.get(name, name.replace("-", "_")))
    return version if module and module.origin else None  # pip trusts its records even if the files are gone


def as_pinned(have: str | None, wanted: str) -> bool:
    """Tell whether a version is the pinned one, in any build."""
    return have is not None and have.partition("+")[0] == wanted


def install(name: str) -> None:
    """Install an optional package into this environment; only after a person agreed."""
    uv = shutil.which("uv")
    tool = [uv, "pip", "install", "--python", sys.executable] if uv else [sys.executable, "-m", "pip", "install"]
    subprocess.run([*tool, name], check=True)
    importlib.invalidate_caches()


if __name__ == "__main__":
    broken = [f"{name}=={wanted}" for name, wanted in pins().items() if not as_pinned(installed(name), wanted)]
    sys.stdout.write(" ".join(broken))
