"""Child processes of the tab: the same commands that a person can type, with what they print as progress."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from utils.core.errors import RunError
from utils.core.paths import ROOT
from utils.runs.tasks import ensure_going

PAUSE = 0.2  # seconds between two looks at what was printed


def run(words: Sequence[str]) -> Iterator[str]:
    """Run ``python -m utils …`` and yield each line that it prints; whoever stops listening ends it."""
    command = [sys.executable, "-m", "utils", *words]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder, "printed")  # a file and not a pipe: nobody has to drain it
        with path.open("wb") as printed, path.open("rb") as seen:
            process = subprocess.Popen(command, cwd=ROOT, stdout=printed, stderr=subprocess.STDOUT)
            try:
                yield from _lines(process, seen)
            finally:
                if process.poll() is None:
                    process.kill()
                process.wait()


def _lines(process: "subprocess.Popen[bytes]", seen: BinaryIO) -> Iterator[str]:
    """Yield lines until the end, and raise the last of them when it failed."""
    rest, last = b"", ""
    while True:
        over = process.poll() is not None
        while block := seen.read(1 << 16):
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                last = line.decode("utf-8", "replace").strip() or last
                yield last
        if over:
            break
        ensure_going()
        time.sleep(PAUSE)
    last = rest.decode("utf-8", "replace").strip() or last
    if process.returncode:
        raise RunError(f"It broke off: {last or 'it said nothing'}", hint="Try the command in a terminal.")


def export_words(model: str, folder: Path, output: Path, *, half: bool) -> list[str]:
    """Write the command that packs a model."""
    return [
        "export", model, "--out", str(folder), "--zip", "--half" if half else "--no-half", "--output", str(output)
    ]  # fmt: skip


def dataset_words(project: str, target: Path, output: Path) -> list[str]:
    """Write the command that packs a dataset."""
    return ["dataset", "export", "zip", str(target), "--project", project, "--output", str(output)]
