"""Choose the build of torch for this computer's GPU and driver; start.sh and start.bat run this before the packages.

PyPI's torch is a build for CUDA 13 on Linux and for the CPU on Windows. Other builds come from PyTorch's own package
indexes, which uv knows by the name of the build (``--torch-backend``). It imports only the standard library and runs
in an environment that has nothing but pip and uv.
"""

import os
import platform
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

from utils.system import packages

PYPI = "pypi"
VARIABLE = "UV_TORCH_BACKEND"  # names a build instead, for example where an image is built without a GPU
PARTS = ("torch", "torchaudio")  # must be of the same build
AGAIN = f"{sys.executable} -m utils.system.torch_build"
SECONDS_TO_ASK = 30
ASSUMED = (7, 5)  # compute capability, where the driver does not tell it


class Support(NamedTuple):
    """What a build for CUDA needs: the major version of the driver, and a GPU between two compute capabilities."""

    driver: int
    oldest: tuple[int, int]
    newest: tuple[int, int] = (99, 0)


SUPPORT = {
    "cu126": Support(525, (5, 0), (9, 9)),  # Maxwell to Hopper; any driver for CUDA 12
    "cu128": Support(570, (7, 5)),  # the first with Blackwell
    "cu130": Support(580, (7, 5)),
}
PYPI_BUILDS = {"Linux": "cu130"}  # elsewhere, PyPI's build has no CUDA


@dataclass(frozen=True)
class Gpu:
    """What the NVIDIA driver reports: its version, and the compute capability of the best GPU if it knows it."""

    driver: int  # major version
    capability: tuple[int, int] | None = None


@dataclass(frozen=True)
class Build:
    """A build of torch, the reason for it, and what the user could do for a better one."""

    backend: str  # as uv names it; "pypi": the one on PyPI
    reason: str
    hint: str = ""


def choose(system: str, gpu: Gpu | None) -> Build:
    """Choose the build for an operating system (as in ``platform.system()``) and a GPU.

    CUDA 12 is preferred to CUDA 13, because CTranslate2 needs the libraries of CUDA 12 that the build brings along.
    """
    if system not in ("Linux", "Windows"):
        return Build(PYPI, f"{system} has no CUDA")
    if gpu is None:  # PyPI's build for Windows has no CUDA; the one for Linux has, which takes 4 GB
        return Build(PYPI if system == "Windows" else "cpu", "no NVIDIA driver was found")
    name = f"driver {gpu.driver}, compute capability {'.'.join(map(str, gpu.capability or ('unknown',)))}"
    for backend in ("cu126", "cu128"):
        if supports(backend, gpu, system):
            return Build(backend, name)
    capability = gpu.capability or ASSUMED
    needed = next((support for support in SUPPORT.values() if support.oldest <= capability <= support.newest), None)
    if needed is None:
        return Build("cpu", f"{name}: torch no longer supports this GPU", "Compute capability 5.0 or newer is needed.")
    hint = f"Update the NVIDIA driver to {needed.driver} or newer, then run: {AGAIN}"
    return Build("cpu", f"{name}: this driver is too old", hint)


def supports(backend: str, gpu: Gpu, system: str) -> bool:
    """Return whether a build finds this GPU."""
    needed = SUPPORT.get(PYPI_BUILDS.get(system, "") if backend == PYPI else backend)
    if needed is None or gpu.driver < needed.driver:
        return False
    return needed.oldest <= (gpu.capability or ASSUMED) <= needed.newest


def detect() -> Gpu | None:
    """Ask nvidia-smi for the driver and the best GPU; drivers before 510 do not know the compute capability."""
    for fields in ("driver_version,compute_cap", "driver_version"):
        command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=SECONDS_TO_ASK)
            return parse(done.stdout)
        except (OSError, ValueError, subprocess.SubprocessError):  # no driver, or one that does not know this question
            continue
    return None


def parse(answer: str) -> Gpu:
    """Read one line per GPU, such as ``550.54.15, 7.5``."""
    rows = [[field.strip() for field in line.split(",")] for line in answer.splitlines() if line.strip()]
    capabilities = [tuple(int(part) for part in row[1].split(".")) for row in rows if len(row) > 1]
    best = max(capabilities) if capabilities else None
    driver = min(int(row[0].partition(".")[0]) for row in rows)
    return Gpu(driver, (best[0], best[1]) if best else None)


def installed() -> str | None:
    """Return the build that is installed; None if torch and torchaudio are not installed, or not of the same build."""
    try:
        builds = {version(name).partition("+")[2] or PYPI for name in PARTS}
    except PackageNotFoundError:
        return None
    return builds.pop() if len(builds) == 1 else None


def install(backend: str, run: Callable[[list[str]], bool]) -> str:
    """Install a build in place of any other and return the one to expect: PyPI's where uv cannot get it.

    ``run`` executes a command and returns whether it succeeded.
    """
    wanted = packages.pins()
    uv = [sys.executable, "-m", "uv", "pip"]
    command = [*uv, "install", "--python", sys.executable, "--compile-bytecode"]
    command += [*(f"--reinstall-package={name}" for name in PARTS), *(f"{name}=={wanted[name]}" for name in PARTS)]
    if run([*command, f"--torch-backend={backend}"] if backend != PYPI else command):
        if run([sys.executable, "-c", "import torch, torchaudio"]):
            return backend
        run([*uv, "uninstall", "--python", sys.executable, *PARTS])  # requirements.txt then brings PyPI's
    return PYPI


def main() -> None:
    system = platform.system()
    gpu = detect()
    requested = os.environ.pop(VARIABLE, "auto")
    build = choose(system, gpu) if requested == "auto" else Build(requested, f"{VARIABLE} is set")
    current = installed()
    if PARTS[0] not in packages.pins():
        return
    is_usable = current is not None and (gpu is None or supports(current, gpu, system))
    if current == build.backend or (requested == "auto" and is_usable):
        return
    say(f"PyTorch build: {build.backend} ({build.reason}). {build.hint}".strip())
    if build.backend == PYPI and current is None:
        return  # it comes with requirements.txt
    result = install(build.backend, lambda command: subprocess.run(command, check=False).returncode == 0)
    if result != build.backend:
        say(f"The build {build.backend} cannot be installed here; PyPI's is used instead.")
        if gpu and not supports(result, gpu, system):
            say("It does not find this GPU, so everything would run on the CPU. See: python -m utils doctor")


def say(text: str) -> None:
    sys.stderr.write(text + "\n")


if __name__ == "__main__":
    main()
