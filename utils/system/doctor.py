"""Diagnostics: what works on this computer, what does not, and how to fix it."""

import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from utils.core.errors import shortage
from utils.core.paths import IS_CHECKOUT
from utils.core.storage import free_space
from utils.recognition.recognisers.choice import missing_gpu_library
from utils.studio import paths
from utils.system import packages as pinned
from utils.system import torch_build
from utils.xtts.files import HUB_FILES, looks_complete
from utils.xtts.hub import licence_accepted

Verdict = Literal["pass", "warn", "fail"]  # warn: something is slower or missing, but the rest works
GIB = 2**30
INSTALL_AGAIN = (
    "Run start.sh (Windows: start.bat) again; it installs what is missing."
    if IS_CHECKOUT
    else f"Run: {sys.executable} -m pip install --force-reinstall <wheel or repository URL>"
)


@dataclass(frozen=True)
class Finding:
    """The result of a check."""

    name: str
    verdict: Verdict
    detail: str
    cure: str = ""  # how to fix it; empty if there is nothing to fix


Findings = Iterator[Finding]


def _finding(name: str, detail: str, cure: str, *, good: bool, otherwise: Verdict = "warn") -> Finding:
    return Finding(name, "pass", detail) if good else Finding(name, otherwise, detail, cure)


def examine(output: Path) -> Findings:
    """Run every check; a check that raises an error is a failure too."""
    for check in CHECKS:
        try:
            yield from check(output)
        except Exception as error:  # noqa: BLE001  # any error in a check is a result
            name = (check.__doc__ or check.__name__).partition("\n")[0]
            yield Finding(name, "fail", f"{type(error).__name__}: {error}", shortage(error) or INSTALL_AGAIN)


def python_version(_output: Path) -> Findings:
    """Python is 3.11 to 3.14."""
    supported = (3, 11) <= sys.version_info < (3, 15)
    cure = "Install Python 3.12, delete the folder .venv and start again."
    detail = f"{platform.python_version()} on {platform.platform()}"
    yield _finding("Python", detail, cure, good=supported, otherwise="fail")


def packages(_output: Path) -> Findings:
    """Every pinned package is installed in its version."""
    pins = pinned.pins()
    versions = {name: pinned.installed(name) for name in pins}
    others = {name: have for name, have in versions.items() if not pinned.as_pinned(have, pins[name])}
    for name, have in others.items():
        if have is None:
            yield Finding(name, "fail", f"missing or damaged; {pins[name]} is required", INSTALL_AGAIN)
        else:
            yield Finding(name, "warn", f"{have}, tested with {pins[name]}", INSTALL_AGAIN)
    yield _finding("Packages", f"{len(pins) - len(others)} of {len(pins)} have the pinned version", "", good=not others)


# Long because it is a list: what is said of each kind of device.
def torch_device(_output: Path) -> Findings:
    """PyTorch finds a device."""
    import torch

    from utils.xtts.device import UNTESTED, choose_device, gpu_name

    gpu = torch_build.detect()
    build = f"torch {torch.__version__}"
    problem = gpu_problem(gpu, torch_build.installed() or "none", platform.system(), found=torch.cuda.is_available())
    if problem:
        yield Finding("Device", "warn", f"CPU only ({build}): {problem[0]}", problem[1])
    elif (kind := choose_device()) in UNTESTED:
        detail = f"{gpu_name(kind)} ({kind}), {build}: this program has never run on such a GPU"
        cure = "Training tests it first, as doctor --gpu does. To use the CPU, set the device: --device cpu."
        yield Finding("Device", "warn", detail, cure)
    elif kind == "cuda":
        yield from _cuda_device(build)
    else:
        cure = "Data preparation and the tiny base model work; use an NVIDIA GPU to fine-tune the full model."
        yield Finding("Device", "warn", f"CPU, {torch.get_num_threads()} threads, {build}", cure)


def _cuda_device(build: str) -> Findings:
    import torch

    card = torch.cuda.get_device_properties(0)
    yield Finding("Device", "pass", f"{card.name}, compute capability {card.major}.{card.minor}, {build}")
    free, total = torch.cuda.mem_get_info()
    cure = "Fine-tune on a GPU with 6 GB or more; inference may fit."
    yield _finding("GPU memory", f"{free / GIB:.1f} of {total / GIB:.1f} GiB free", cure, good=total >= 6 * GIB)
    yield _whisper_on_gpu(torch.version.cuda or "")


def gpu_problem(
    gpu: torch_build.Gpu | None, build: str, system: str, *, found: bool, has_card: bool | None = None
) -> tuple[str, str] | None:
    """Return why torch does not use the GPU of this computer, and the cure; None if it does, or there is none.

    ``gpu`` is what the driver reports, and ``found`` whether torch finds a GPU.
    """
    if gpu is None:
        if found or not (_has_nvidia_card() if has_card is None else has_card):
            return None
        return "there is an NVIDIA GPU, but its driver is not installed", _install_driver()
    if torch_build.supports(build, gpu, system):
        hint = (
            "Restart the computer if the driver was updated; in a container use --gpus all; unset CUDA_VISIBLE_DEVICES."
        )
        return None if found else (f"driver {gpu.driver} does not start CUDA", hint)
    best = torch_build.choose(system, gpu)
    if torch_build.supports(best.backend, gpu, system):
        return f"this build of torch ({build}) is not for {best.reason}", f"Run: {torch_build.AGAIN}"
    return best.reason, best.hint


def _has_nvidia_card() -> bool:
    vendors = Path("/sys/bus/pci/devices").glob("*/vendor")  # on Linux; elsewhere there are none
    return any(file.read_text().strip() == "0x10de" for file in vendors)


def _install_driver() -> str:
    command = "ubuntu-drivers install" if shutil.which("ubuntu-drivers") else "apt install nvidia-driver"
    return f"Run: sudo {command}. Restart the computer, then run: {torch_build.AGAIN}"


def _whisper_on_gpu(cuda: str) -> Finding:
    """CTranslate2, which runs Whisper, looks for the cuBLAS of CUDA 12 that torch may have brought."""
    if library := missing_gpu_library():
        cure = f"For the faster CTranslate2, set UV_TORCH_BACKEND=cu126 (RTX 50xx: cu128) and run: {torch_build.AGAIN}"
        return Finding("Whisper on the GPU", "warn", f"run by transformers: {library} is missing (CUDA {cuda})", cure)
    return Finding("Whisper on the GPU", "pass", "run by CTranslate2")


def precision(_output: Path) -> Findings:
    """The number formats of speech and training, and why."""
    from utils.speech.precision import choose
    from utils.xtts.device import choose_precision, own_device

    speech = choose(path=paths.PRECISIONS)
    reasons = f"GPT {speech.gpt}: {speech.gpt_reason}; vocoder {speech.vocoder}: {speech.vocoder_reason}"
    yield Finding("Precision of speech", "pass", reasons)
    training = choose_precision(own_device())
    yield Finding("Precision of training", "pass", f"{training.dtype.replace('no', 'fp32')}: {training.reason}")


def memory_and_disk(output: Path) -> Findings:
    """There is enough memory and disk."""
    memory = psutil.virtual_memory()
    detail = f"{memory.available / GIB:.1f} of {memory.total / GIB:.1f} GiB free"
    cure = "Close other programs, or use the tiny base model."
    yield _finding("RAM", detail, cure, good=memory.total >= 7.5 * GIB)
    free = free_space(output) / GIB
    cure = "Free some space: the model needs 2 GiB and resume data 5 GiB."
    yield _finding("Disk", f"{free:.1f} GiB free at {output}", cure, good=free >= 10)


def write_access(output: Path) -> Findings:
    """The output folder can be written."""
    try:
        output.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=output):
            yield Finding("Output folder", "pass", f"{output} is writable")
    except OSError as error:
        cure = "Use --output, or correct its permissions."
        yield Finding("Output folder", "fail", f"{output}: {error.strerror}", cure)


def media(_output: Path) -> Findings:
    """Audio can be written and decoded."""
    import numpy as np

    from utils.media import audio

    tone = (0.1 * np.sin(np.arange(22_050) / 22_050 * 2 * np.pi * 440)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tone.flac"
        audio.save(path, tone, 22_050)
        decoded = audio.load(path, 22_050)
    is_same = len(decoded) == len(tone) and bool(np.abs(decoded - tone).max() < 1e-3)
    detail = f"a test tone was decoded {'correctly' if is_same else 'incorrectly'}"
    yield _finding("Media decoding", detail, "", good=is_same, otherwise="fail")


def browser(_output: Path) -> Findings:
    """A browser is installed for the browser tests."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    cure = "Only the browser tests need it: install the package chromium."
    yield _finding("Chromium for tests", path or "not found", cure, good=bool(path))


def base_model(_output: Path) -> Findings:
    """A base model is installed and complete, and its licence was accepted."""
    folders = sorted(paths.MODELS.glob("*/"))
    if not folders:
        cure = "Download it under System on the page, or with: python -m utils download-model."
        yield Finding("Base model", "warn", "not installed", cure)
    for folder in folders:
        missing = [name for name in HUB_FILES if not (folder / name).exists()]
        torn = [name for name in HUB_FILES if name not in missing and not looks_complete(folder / name)]
        problems = [*(f"{name} is missing" for name in missing), *(f"{name} is truncated" for name in torn)]
        detail = f"{folder.name}: {', '.join(problems)}" if problems else f"{folder.name} is complete"
        cure = f"Run: python -m utils download-model --version {folder.name}"
        yield _finding("Base model", detail, cure, good=not problems, otherwise="fail")
    accepted = licence_accepted(paths.LICENCE_CONSENT)
    cure = "Non-commercial use only. Accept it under System on the page, or with --accept-licence."
    yield _finding("Licence of the model", "accepted" if accepted else "not accepted yet", cure, good=accepted)


CHECKS: tuple[Callable[[Path], Findings], ...] = (
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
