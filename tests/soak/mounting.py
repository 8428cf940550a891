"""Disks and folders that are made small or read-only for a while."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from utils.core.errors import RunError


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


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Make a folder read-only for a while, for the superuser too."""
    if os.name == "nt":
        raise NotHere("folders are made read-only in another way here")
    if os.geteuid():
        folder.chmod(0o555)
        try:
            yield
        finally:
            folder.chmod(0o755)
        return
    beside = folder.with_name(f".{folder.name}.read-only")  # remounted before it covers the folder, which may be busy
    beside.mkdir()
    try:
        with mounted(["--bind", str(folder)], beside):
            mount(["-o", "remount,bind,ro"], beside)
            with mounted(["--bind", str(beside)], folder):
                yield
    finally:
        beside.rmdir()
