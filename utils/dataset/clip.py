"""The data types of a dataset: recordings as they are found, clips as they are stored."""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Status = Literal["kept", "aside"]
Split = Literal["train", "eval", ""]
APPROVED = "approved"  # the reason of a kept clip that a person has listened to


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a recording, in seconds from its first sample."""

    start: float
    end: float

    @property
    def seconds(self) -> float:
        """Return how long it is."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Cue:
    """A stretch of a recording with the text that a subtitle gives it."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Scores:
    """What was measured of a clip; None was not measured.

    Attributes:
        speech_ratio: Share of the clip that is speech.
        snr_db: Level of the speech over the level of the pauses.
        clipping: Share of the samples at full scale.
        loudness_lufs: Loudness by ITU-R BS.1770.
        chars_per_second: Letters of the text a second of audio.
        confidence: How sure the recogniser was, 0 to 1.
        second_cer: Share of letters in which a second recogniser differs.
    """

    speech_ratio: float | None = None
    snr_db: float | None = None
    clipping: float | None = None
    loudness_lufs: float | None = None
    chars_per_second: float | None = None
    confidence: float | None = None
    second_cer: float | None = None


@dataclass(frozen=True, slots=True)
class Clip:
    """One stretch of one recording with its text.

    Attributes:
        id: Stable name, made from the recording's content and the span.
        recording: Content hash of the recording.
        source: Path or address that the recording came from.
        span: Where in the recording it lies.
        speaker: Who speaks.
        text: What is said, as it was written.
        audio: Its own file below the dataset folder; empty when it was set aside before one was written.
        content: Hash of its samples.
        scores: What was measured.
        split: Where it belongs.
        status: Kept or set aside.
        reason: Why it was set aside; of a kept one, that a person approved it.
    """

    id: str
    recording: str
    source: str
    span: Span
    speaker: str
    text: str
    audio: str = ""
    content: str = ""
    scores: Scores = Scores()
    split: Split = ""
    status: Status = "kept"
    reason: str = ""

    def aside(self, reason: str) -> "Clip":
        """Return this clip set aside for a reason."""
        return dataclasses.replace(self, status="aside", reason=reason)


@dataclass(frozen=True, slots=True)
class Recording:
    """One audio or video file, and the text that came with it.

    Attributes:
        path: The file.
        speaker: Name of the speaker.
        text: Transcript of the whole file, if known.
        cues: Timed text from subtitles, in order, without overlap, within the recording.
        warnings: What was changed or left out of the text.
    """

    path: Path
    speaker: str
    text: str = ""
    cues: tuple[Cue, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """An input that was not used, and why."""

    path: Path
    sentence: str


@dataclass(frozen=True, slots=True)
class ScanResult:
    """The recordings found in the inputs, and the inputs that cannot be used."""

    recordings: tuple[Recording, ...] = ()
    problems: tuple[Problem, ...] = ()

    @staticmethod
    def joined(parts: Iterable["ScanResult"]) -> "ScanResult":
        """Combine several results into one."""
        parts = list(parts)
        return ScanResult(
            tuple(recording for part in parts for recording in part.recordings),
            tuple(problem for part in parts for problem in part.problems),
        )


def abbreviate(names: Iterable[str], limit: int = 5) -> str:
    """Join the first names and count the rest: ``a, b and 3 more``."""
    names = list(names)
    others = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + others
