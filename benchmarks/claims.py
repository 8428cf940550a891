"""What README says of speed and memory: one line a claim, each figure from a result file."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from benchmarks import archive
from benchmarks.archive import Finding
from benchmarks.programs import Device, named
from benchmarks.speech_findings import FIRST, FIRST_BY_DEFAULT, LOADED, MANY, ONE, SPEAKING, read_sides
from benchmarks.training_findings import EPOCHS, Comparison, ratios_of

OTHER_SIZES = ("training-12x768", "training-30x1024", "speech-small")  # of which less is claimed
ON_CPU = ("training", *OTHER_SIZES[:2], "speech", OTHER_SIZES[2])
PEAK_MEMORY, PEAK_SPEAKING = "peak memory", "peak memory while speaking"
BRIEF = ("speed", "references of 6 s", "one sentence", PEAK_MEMORY, PEAK_SPEAKING)
# What is claimed of speech: words, unit, and a key of the rounds.
WHOLE = "one sentence", "s", ONE
TOGETHER = "batch, for 1 s of audio", "s", MANY
FIRST_SOUND = ("first audio, chunks of 20 codes", "s", FIRST), ("first audio by default", "s", FIRST_BY_DEFAULT)


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
    found: list[Claim] = []
    for name in ON_CPU if device == "cpu" else ("training-gpu", "speech-gpu"):
        maker = of_training if name.startswith("training") else of_speech
        for finding in archive.of(named(name), every)[:1]:
            made = maker(finding, finding.data.get("command", named(name).command))
            found += [claim for claim in made if name not in OTHER_SIZES or claim.what.endswith(BRIEF)]
    return found


def of_training(finding: Finding, command: str) -> Iterator[Claim]:
    """Claim what the comparison of the training found."""
    found = Comparison.read(finding.data)
    coqui, ours, source = found.coqui, found.ours, (finding, command)
    size = f"training, {found.plan.layers} x {found.plan.dim}"
    for side, what in ((ours, "speed"), (found.padded, "speed, references of 6 s")):
        ratios = ratios_of(coqui, side)
        spread, gain = f" ({min(ratios):.2f} to {max(ratios):.2f})", side.speed / coqui.speed
        yield Claim(f"{size}: {what}", "clips/s", coqui.speed, side.speed, gain, *source, spread)
    slower, gain = found.speed_with_features, found.ratio_with_features
    yield Claim(f"{size}: with feature extraction, {EPOCHS} epochs", "clips/s", coqui.speed, slower, gain, *source)
    used = [side.memory.device or side.memory.peak for side in (coqui, ours)]
    yield Claim(f"{size}: {PEAK_MEMORY}", "MiB", used[0], used[1], found.memory_share, *source)


def of_speech(finding: Finding, command: str) -> Iterator[Claim]:
    """Claim one sentence and the memory in each precision of ours, and everything else of the fastest one."""
    size = f"speech, {finding.benchmark.split('_')[1].replace('x', ' x ')}"
    coqui, *ours = read_sides(finding.data)
    fastest = min(ours, key=lambda side: side.best(ONE))
    together = " (coqui: one text at a time)"
    for side in ours:
        name = f"{size}, {side.gpt}/{side.vocoder}"
        for what, unit, key in (WHOLE, TOGETHER, *FIRST_SOUND) if side is fastest else (WHOLE,):
            before, now = coqui.best(key), side.best(key)
            remark = together if key == MANY else ""
            yield Claim(f"{name}: {what}", unit, before, now, before / now, finding, command, remark)
        for what, key in (("memory after loading", LOADED), (PEAK_SPEAKING, SPEAKING)):
            before, now = coqui.memory[key], side.memory[key]
            remark = together if key == SPEAKING else ""
            yield Claim(f"{name}: {what}", "MiB", before, now, now / before, finding, command, remark)
