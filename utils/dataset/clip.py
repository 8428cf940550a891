"""The data types of a dataset: recordings as they are found, clips as they are stored."""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Status = Literal["kept", "excluded"]
Split = Literal["train", "eval", ""]
APPROVED = "approved"  # the reason of a kept clip that a person has reviewed
TRIMMED, SPLIT, MERGED = "trimmed", "split in two", "joined"
REPLACED = frozenset({TRIMMED, SPLIT, MERGED, "taken back"})  # excluded because other clips hold the audio now


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a recording, in seconds from its start."""

    start: float
    end: float

    @property
    def seconds(self) -> float:
        """Return the duration."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Cue:
    """A subtitle: a stretch of a recording and its text."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Scores:
    """Measurements of a clip; None means not measured.

    Attributes:
        speech_ratio: Share of the clip that is speech.
        snr_db: Level of the speech over the level of the pauses.
        clipping: Share of samples at full scale.
        loudness_lufs: Loudness by ITU-R BS.1770.
        chars_per_second: Letters of the text per second of audio.
        confidence: Confidence of the recogniser, 0 to 1.
        second_cer: Character error rate against a second recogniser.
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
    """A stretch of a recording with its text.

    Attributes:
        id: Stable name, made of the recording's content hash and the span.
        recording: Content hash of the recording.
        source: Path or address of the recording.
        span: Position in the recording.
        speaker: Name of the speaker.
        text: Transcript, as written.
        audio: Audio file below the dataset folder; empty if the clip was excluded before one was written.
        content: Hash of the samples.
        scores: Measurements.
        split: Side of the evaluation split.
        status: Kept or excluded.
        reason: Why it was excluded; of a kept clip, that a person approved it.
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

    def excluded(self, reason: str) -> "Clip":
        """Return this clip as excluded for a reason."""
        return dataclasses.replace(self, status="excluded", reason=reason)


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
