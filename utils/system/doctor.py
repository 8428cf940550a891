"""Looks at this computer and says what works, what does not, and how to mend it."""

import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import psutil

from utils.core import paths
from utils.system import packages as pinned
from utils.xtts.files import BUILT_IN, HUB_FILES, looks_complete

if TYPE_CHECKING:
    import torch

Verdict = Literal["pass", "warn", "fail"]
GIB = 2**30
INSTALL_AGAIN = "Run start.sh (Windows: start.bat) again; it installs what is missing."


@dataclass(frozen=True)
class Finding:
    """What one check found.

    Attributes:
        name: What was looked at.
        verdict: pass, warn (something is slower or missing but the rest works) or fail.
        detail: What was found, in figures where there are any.
        cure: How to mend it; empty when nothing is to be mended.
    """

    name: str
    verdict: Verdict
    detail: str
    cure: str = ""


def examine(output: Path) -> Iterator[Finding]:
    """Run every check; a check that breaks is itself a finding."""
    for check in CHECKS:
        try:
            yield from check(output)
        except Exception as error:  # noqa: BLE001  # whatever breaks a check is what the doctor is asked to report
            name = (check.__doc__ or check.__name__).partition("\n")[0]
            yield Finding(name, "fail", f"{type(error).__name__}: {error}", INSTALL_AGAIN)


def python_version(_output: Path) -> Iterator[Finding]:
    """Python is 3.11 or 3.12."""
    good = (3, 11) <= sys.version_info < (3, 13)
    cure = "" if good else "Install Python 3.11 or 3.12, delete the folder .venv and start again."
    yield Finding("Python", "pass" if good else "fail", f"{platform.python_version()} on {platform.platform()}", cure)


def packages(_output: Path) -> Iterator[Finding]:
    """Every pinned package is here in its version."""
    pins = pinned.pins()
    others = {
        name: have for name, wanted in pins.items() if not pinned.as_pinned(have := pinned.installed(name), wanted)
    }
    for name, have in others.items():
        if have is None:
            yield Finding(name, "fail", f"missing or damaged, {pins[name]} is wanted", INSTALL_AGAIN)
        else:
            yield Finding(name, "warn", f"{have}, tested with {pins[name]}", INSTALL_AGAIN)
    right = f"{len(pins) - len(others)} of {len(pins)} as pinned in requirements.txt"
    yield Finding("Packages", "warn" if others else "pass", right)


def torch_device(_output: Path) -> Iterator[Finding]:
    """Torch finds a device to compute on."""
    import torch

    built = f"torch {torch.__version__}"
    if torch.cuda.is_available():
        card = torch.cuda.get_device_properties(0)
        yield Finding("Device", "pass", f"{card.name}, compute capability {card.major}.{card.minor}, {built}")
        free, total = torch.cuda.mem_get_info()
        enough: Verdict = "pass" if total >= 6 * GIB else "warn"
        cure = "" if enough == "pass" else "Speech may fit; full training will not."
        yield Finding("GPU memory", enough, f"{free / GIB:.1f} of {total / GIB:.1f} GiB free", cure)
    elif _has_nvidia_driver():
        cure = "This torch cannot use it: delete the folder .venv and start again, or update the driver."
        yield Finding("Device", "warn", f"CPU only ({built}), although an NVIDIA driver is here", cure)
    else:
        cure = "Preparing data and small trials work; for training the full model use a machine with an NVIDIA GPU."
        yield Finding("Device", "warn", f"CPU, {torch.get_num_threads()} threads, {built}", cure)


def precision(_output: Path) -> Iterator[Finding]:
    """Half precision is faster here, which is measured and not looked up."""
    import torch

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    plain = matrix_speed(torch.float32, device)
    for name, dtype in (("bf16", torch.bfloat16), ("fp16", torch.float16)):
        yield _speed_finding(name, matrix_speed(dtype, device), plain)
    if device.type == "cuda":
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high")
        tf32 = matrix_speed(torch.float32, device)
        torch.set_float32_matmul_precision(before)
        yield _speed_finding("TF32", tf32, plain)
    else:
        yield Finding("TF32", "warn", "not on a CPU", "Nothing to do: the switch is off here.")


def matrix_speed(dtype: "torch.dtype", device: "torch.device") -> float:
    """Time a matrix product and return GFLOP/s, the best of a few."""
    import torch

    size = 4096 if device.type == "cuda" else 256  # some CPUs need seconds for a larger one in bf16
    left = torch.ones(size, size, dtype=dtype, device=device)
    best = float("inf")
    for _ in range(4):
        began = time.perf_counter()
        product = left @ left
        product[0, 0].item()  # waits until the device is done
        best = min(best, time.perf_counter() - began)
    return 2 * size**3 / best / 1e9


def _speed_finding(name: str, speed: float, plain: float) -> Finding:
    detail = f"{speed:.0f} GFLOP/s against {plain:.0f} in fp32"
    if speed > 1.1 * plain:
        return Finding(name, "pass", detail)
    return Finding(name, "warn", f"{detail}: no gain", f"Leave {name} off on this device.")


def memory_and_disk(output: Path) -> Iterator[Finding]:
    """There is enough memory and disk."""
    memory = psutil.virtual_memory()
    small = memory.total < 7.5 * GIB
    cure = "Close other programs; use the tiny base." if small else ""
    yield Finding(
        "RAM", "warn" if small else "pass", f"{memory.available / GIB:.1f} of {memory.total / GIB:.1f} GiB free", cure
    )
    free = shutil.disk_usage(_existing(output)).free / GIB
    tight = free < 10
    cure = "Free some space: the model needs 2 GiB and a resume state 5 GiB." if tight else ""
    yield Finding("Disk", "warn" if tight else "pass", f"{free:.1f} GiB free at {output}", cure)


def write_access(output: Path) -> Iterator[Finding]:
    """The output folder can be written."""
    try:
        output.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=output):
            yield Finding("Output folder", "pass", f"{output} can be written")
    except OSError as error:
        yield Finding(
            "Output folder", "fail", f"{output}: {error.strerror}", "Choose another with --output, or mend its rights."
        )


def media(_output: Path) -> Iterator[Finding]:
    """Sound can be written and decoded again."""
    import numpy as np

    from utils.media import audio

    tone = (0.1 * np.sin(np.arange(22_050) / 22_050 * 2 * np.pi * 440)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tone.flac"
        audio.save(path, tone, 22_050)
        back = audio.load(path, 22_050)
    same = len(back) == len(tone) and bool(np.abs(back - tone).max() < 1e-3)
    yield Finding(
        "Media decoding",
        "pass" if same else "fail",
        "a tone came back the same" if same else "a tone came back changed",
    )


def browser(_output: Path) -> Iterator[Finding]:
    """A browser is here for the page's own tests."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    cure = "" if found else "Only the browser tests need it: install Debian's package chromium."
    yield Finding("Chromium for tests", "pass" if found else "warn", found or "not found", cure)


def base_model(_output: Path) -> Iterator[Finding]:
    """A published base model is here and whole, and its licence was accepted."""
    folders = sorted(path for path in paths.MODELS.glob("*/") if path.name not in BUILT_IN)
    if not folders:
        cure = f"Put {', '.join(HUB_FILES)} into {paths.MODELS / 'v2.0.2'}."
        yield Finding("Base model", "warn", "no published XTTS is here", cure)
    for folder in folders:
        yield _model_finding(folder)
    accepted = paths.LICENCE_CONSENT.exists()
    cure = (
        ""
        if accepted
        else "The weights are for non-commercial use (Coqui Public Model License); you accept it before the first use."
    )
    yield Finding(
        "Licence of the model", "pass" if accepted else "warn", "accepted" if accepted else "not accepted yet", cure
    )


def _model_finding(folder: Path) -> Finding:
    missing = [name for name in HUB_FILES if not (folder / name).exists()]
    torn = [name for name in HUB_FILES if name not in missing and not looks_complete(folder / name)]
    if not missing and not torn:
        return Finding("Base model", "pass", f"{folder.name} is whole")
    faults = [*(f"{name} is missing" for name in missing), *(f"{name} is cut short" for name in torn)]
    return Finding(
        "Base model", "fail", f"{folder.name}: {', '.join(faults)}", f"Copy these files into {folder} again."
    )


def _has_nvidia_driver() -> bool:
    return shutil.which("nvidia-smi") is not None


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.absolute().parents) if path.exists())


CHECKS: tuple[Callable[[Path], Iterator[Finding]], ...] = (
    python_version,
    packages,
    torch_device,
    precision,
    memory_and_disk,
    write_access,
    media,
    browser,
    base_model,
)
