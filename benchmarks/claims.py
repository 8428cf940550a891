"""What README says of speed and memory: one line a claim, each figure from a result file."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from benchmarks import archive
from benchmarks.archive import Finding
from benchmarks.programs import Device, named
from benchmarks.training_findings import EPOCHS, Comparison

ONE, TOGETHER, FIRST, MEMORY = 1, 3, 5, 7  # columns of benchmarks/speech.py
RATIO_BEHIND = (ONE, TOGETHER)  # the column behind holds the ratio, from figures that were not rounded yet


class Claim(NamedTuple):
    """One line.

    Attributes:
        what: What was measured.
        unit: Of both figures.
        theirs: The figure of plain coqui-tts.
        ours: Our figure.
        gain: How many times as fast ours is; of memory the share that it needs.
        finding: Where the figures are from.
        command: What measures them.
        remark: What a reader should know of the gain.
    """

    what: str
    unit: str
    theirs: float
    ours: float
    gain: float
    finding: Finding
    command: str
    remark: str = ""

    @property
    def is_memory(self) -> bool:
        """Say whether less is better and a share is told."""
        return self.unit == "MiB"

    @property
    def told(self) -> str:
        """Write the gain."""
        return f"{self.gain:.0%}" if self.is_memory else f"{self.gain:.2f} x"

    def figure(self, value: float) -> str:
        """Write one of its figures."""
        return f"{value:.{0 if self.is_memory else 2}f}"


def claims(every: Sequence[Finding], device: Device) -> list[Claim]:
    """Return the claims for one kind of device; none where nothing was measured."""
    names = ("training", "speech") if device == "cpu" else ("training-gpu", "speech-gpu")
    found: list[Claim] = []
    for name, maker in zip(names, (of_training, of_speech), strict=True):
        for finding in archive.of(named(name), every)[:1]:
            found += maker(finding, named(name).command)
    return [*found, *(of_speech_memory(every) if device == "cpu" else [])]


def of_training(finding: Finding, command: str) -> Iterator[Claim]:
    """Claim what the comparison of the training found."""
    found = Comparison.read(finding.data)
    coqui, ours, source = found.coqui, found.ours, (finding, command)
    size = f"training, {found.plan.layers} x {found.plan.dim}"
    spread = f" ({min(found.ratios):.2f} to {max(found.ratios):.2f})"
    yield Claim(f"{size}: speed", "clips/s", coqui.speed, ours.speed, found.ratio, *source, spread)
    slower, gain = found.speed_with_features, found.ratio_with_features
    yield Claim(f"{size}: with feature extraction, {EPOCHS} epochs", "clips/s", coqui.speed, slower, gain, *source)
    used = [side.memory.device or side.memory.peak for side in (coqui, ours)]
    yield Claim(f"{size}: peak memory", "MiB", used[0], used[1], found.memory_share, *source)


def of_speech(finding: Finding, command: str) -> Iterator[Claim]:
    """Claim one sentence in each precision of ours, and what else the fastest one is good at."""
    theirs, *rows = [cells[0] for cells in finding.data["rows"]]
    fastest = min(rows, key=lambda row: finding.number(row, ONE))
    wanted = [(row, "one sentence", ONE) for row in rows]
    wanted += [(fastest, "batch, for 1 s of audio", TOGETHER), (fastest, "first audio", FIRST)]
    for row, what, column in wanted:
        before, now = finding.number(theirs, column), finding.number(row, column)
        gain = finding.number(row, column + 1) if column in RATIO_BEHIND else before / now
        remark = " (coqui: one at a time)" if column == TOGETHER else ""
        yield Claim(f"{sized(finding, row)}: {what}", "s", before, now, gain, finding, command, remark)


def of_speech_memory(every: Sequence[Finding]) -> Iterator[Claim]:
    """Claim the memory of int8, from the newer one of the two programs that measure it."""
    programs = [named(name) for name in ("speech", "speech-int8")]
    found = [(finding, program.command) for program in programs for finding in archive.of(program, every)[:1]]
    if found:
        finding, command = max(found[::-1], key=lambda pair: pair[0].date)  # on one day, the one made for it
        theirs, ours = finding.number("coqui, fp32", MEMORY), finding.number("ours, int8", MEMORY)
        what = f"{sized(finding, 'ours, int8')}: peak memory"
        yield Claim(what, "MiB", theirs, ours, ours / theirs, finding, command)


def sized(finding: Finding, row: str) -> str:
    """Name speech with the size of its model and the precision of a row."""
    return f"speech, {finding.benchmark.split('_')[1].replace('x', ' x ')}, {row.rsplit(maxsplit=1)[-1]}"
