"""What a look at sources brings: recordings, and what could not be used, each with a sentence for a person."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from utils.dataset.clip import Cue


@dataclass(frozen=True, slots=True)
class Recording:
    """One file with sound, and the words that came with it.

    Attributes:
        path: The file.
        speaker: Who speaks.
        text: What is said in the whole file, where that is known.
        cues: What is said when, where subtitles tell; in order of time, without overlap, inside the recording.
        warnings: What had to be mended or left out of its text.
    """

    path: Path
    speaker: str
    text: str = ""
    cues: tuple[Cue, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that was not used, and why."""

    path: Path
    sentence: str


@dataclass(frozen=True, slots=True)
class Found:
    """Everything that a look at sources brought."""

    recordings: tuple[Recording, ...] = ()
    problems: tuple[Problem, ...] = ()

    @staticmethod
    def joined(parts: Iterable["Found"]) -> "Found":
        """Put the findings of several places together."""
        parts = list(parts)
        return Found(
            tuple(recording for part in parts for recording in part.recordings),
            tuple(problem for part in parts for problem in part.problems),
        )


def some(names: Iterable[str], limit: int = 5) -> str:
    """List the first few names and count the others."""
    names = list(names)
    others = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + others
