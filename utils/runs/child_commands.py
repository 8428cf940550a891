"""Commands that the page runs in a child process, with what they print as progress."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from utils.runs.processes import read_lines
from utils.runs.tasks import ensure_going


def run(words: Sequence[str]) -> Iterator[str]:
    """Run ``python -m utils <words>`` and yield each line it prints; it ends with the task that reads it."""
    yield from read_lines(["-m", "utils", *words], check=ensure_going)


def export_words(model: str, folder: Path, output: Path, *, half: bool) -> list[str]:
    """Write the command that packs a model."""
    return [
        "export", model, "--out", str(folder), "--zip", "--half" if half else "--no-half", "--output", str(output)
    ]  # fmt: skip


def dataset_words(project: str, target: Path, output: Path) -> list[str]:
    """Write the command that packs a dataset."""
    return ["dataset", "export", "zip", str(target), "--project", project, "--output", str(output)]
