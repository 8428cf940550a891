"""Pinned packages that are missing, damaged or of another version; start.sh and start.bat run this before pip.

It imports only the standard library, so that it works in a damaged environment.
"""

import importlib.metadata
import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path(__file__).resolve().parents[2] / "requirements.txt"
CONSTRAINTS = REQUIREMENTS.with_name("constraints.txt")
PIN = re.compile(r"^([A-Za-z0-9_.-]+)==(\S+)", re.MULTILINE)
MODULES = {"coqui-tts": "TTS", "PyYAML": "yaml", "nvidia-ml-py": "pynvml"}  # others have the name of their package


def pins() -> dict[str, str]:
    """Return name and version of every package in requirements.txt."""
    return dict(PIN.findall(REQUIREMENTS.read_text(encoding="utf-8")))


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
