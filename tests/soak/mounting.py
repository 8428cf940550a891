"""Disks that are small or full."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from utils.core.errors import RunError

BLOCK = 1 << 16


class NotHere(RunError):  # noqa: N818  # a reason, not an error
    """This fault is impossible on this machine."""


@contextlib.contextmanager
def mounted(words: list[str], folder: Path) -> Iterator[None]:
    """Mount something on a folder for a while; needs the right to."""
    mount(words, folder)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def mount(words: list[str], folder: Path) -> None:
    call = ["mount", *words, str(folder)]
    if not shutil.which("mount") or subprocess.run(call, check=False, capture_output=True).returncode:
        raise NotHere("no right to mount a disk here")


def fill(folder: Path, left: int) -> Path:
    """Write a file that leaves this many bytes free."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while (free := shutil.disk_usage(folder).free) > left:
            file.write(bytes(min(BLOCK, free - left)))
    return filler
