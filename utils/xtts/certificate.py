"""What was tested on this computer's GPU, and which settings failed; speech and training read it before they start.

``utils.training.gpu_test`` runs the tests and writes it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from pydantic import TypeAdapter

from utils.core.storage import make_folder, read_document, write_atomically, write_document

DECODING = "CUDA graphs for speech"  # names of the checks that speech asks for
THREADS = "speech of several threads"
GPT = "GPT in the format of speech"
VOCODING = "vocoder in half precision"


@dataclass(frozen=True)
class Check:
    """The result of one test on the GPU."""

    name: str
    passed: bool
    detail: str  # what was compared, or what went wrong
    milliseconds: float = 0.0  # of an update, or of a step of decoding
    mebibytes: float = 0.0  # the most that torch allocated; on a CPU, that the process used
    kernels: tuple[str, ...] = ()  # attention kernels that were used

    @property
    def row(self) -> str:
        result = "passed" if self.passed else "**failed**"
        return f"| {self.name} | {result} | {self.milliseconds:.1f} | {self.mebibytes:.0f} | {self.detail} |"


@dataclass(frozen=True)
class Certificate:
    """All tests of a device; it is valid for this device, driver and torch only."""

    machine: str
    date: str
    checks: tuple[Check, ...]
    is_complete: bool = True  # False if the tests were stopped

    @property
    def markdown(self) -> str:
        passed = sum(check.passed for check in self.checks)
        state = "" if self.is_complete else " The tests were stopped."
        count = f"{passed} of {len(self.checks)} checks passed."
        head = f"# GPU certificate\n\n{self.machine}, {self.date}: {count}{state}\n"
        table = "| check | result | ms | MiB | detail |\n|---|---|---:|---:|---|"
        return "\n".join([head, table, *(check.row for check in self.checks), ""])

    def write(self, path: Path) -> None:
        """Write the file that is read again, and one to paste into an issue."""
        make_folder(path.parent)
        write_document(path, TypeAdapter(Certificate).dump_python(self, mode="json"))
        write_atomically(path.with_suffix(".md"), self.markdown)


def machine(device: torch.device | str) -> str:
    """Return what a certificate is valid for."""
    kind = torch.device(device)
    if kind.type != "cuda":
        return f"{kind.type}, torch {torch.__version__}"
    gpu, driver = torch.cuda.get_device_properties(kind), torch._C._cuda_getDriverVersion()  # type: ignore[attr-defined]  # noqa: SLF001
    return f"{gpu.name} (compute capability {gpu.major}.{gpu.minor}, CUDA driver {driver}), torch {torch.__version__}"


def read(device: torch.device | str, path: Path | None) -> Certificate | None:
    """Return the certificate of this device; None if there is none, or if it was written for another one."""
    if path is None:
        return None
    try:
        certificate = TypeAdapter(Certificate).validate_python(read_document(path))
    except (OSError, ValueError):  # missing or damaged: the tests can be repeated
        return None
    return certificate if certificate.machine == machine(device) else None


def untested(device: torch.device | str, path: Path | None, kernels: Iterable[str]) -> tuple[str, ...]:
    """Return the kernels that no passed test of this device has covered; none if it was not tested at all."""
    checks = results(device, path)
    tested = {kernel for check in checks.values() if check.passed for kernel in check.kernels}
    return tuple(sorted(set(kernels) - tested)) if checks else ()


def results(device: torch.device | str, path: Path | None) -> dict[str, Check]:
    """Return the tests of this device by their names; none if it was not tested."""
    certificate = read(device, path)
    return {check.name: check for check in certificate.checks} if certificate else {}


def failure(device: torch.device | str, path: Path | None, *names: str) -> str:
    """Return why the first of these tests failed on this device; empty if all passed, or were never run."""
    checks = results(device, path)
    return next((checks[name].detail for name in names if name in checks and not checks[name].passed), "")
