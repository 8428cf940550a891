"""What happens while a text is spoken, what is unusual about a sentence, and what can go wrong, as typed values."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from utils.core import wording
from utils.core.errors import AmharicTtsError, ConfigError, RunBusyError, RunError, SpeedupError, TextError
from utils.core.facts import Fact, WarningFact

# What is unusual about a spoken sentence, the worst first.
FlagKind = Literal[
    "broken",  # cannot be played
    "nothing",
    "silent",
    "speechless",
    "endless",
    "loop",
    "short",
    "unclear",
    "long",
    "unheard",
    "added",
    "pause",
    "noise",
    "ending",
    "clipped",
    "timing",  # of subtitles
]


@dataclass(frozen=True)
class Flag:
    """Something unusual about a spoken sentence, with the figures that show it."""

    kind: FlagKind
    seconds: float = 0.0
    count: int = 0  # of codes, sounds or samples
    share: float = 0.0  # of the samples; of timing, the speed
    late: float = 0.0  # of timing, seconds
    words: tuple[str, ...] = ()  # that are not heard, or near which something is added

    @classmethod
    def read(cls, stored: str | Mapping[str, Any]) -> "Flag":
        """Read what was stored; version 1.1 stored the name with an English sentence."""
        if isinstance(stored, str):
            stored = {"kind": next((kind for kind in get_args(FlagKind) if kind in stored.split(": ")), stored)}
        if stored["kind"] not in get_args(FlagKind):
            raise ValueError(f"unknown flag: {stored['kind']}")
        return cls(**{**stored, "words": tuple(stored.get("words", ()))})

    def text(self) -> str:
        figures = vars(self)
        has_figures = any((self.seconds, self.count, self.share, self.late, self.words))
        key = f"FlagKind.{self.kind}"
        return wording.text(key if has_figures else f"{key}.plain", figures)

    def __str__(self) -> str:
        with wording.speaking("en"):
            return self.text()


class SentenceCheck(Protocol):
    """A spoken sentence, or what is stored of it."""

    @property
    def words(self) -> int: ...

    @property
    def flags(self) -> tuple[Flag, ...]: ...


class SpeechHindered(WarningFact):
    """Speech works, but slower or with more memory than it could."""

    what: Literal["no_graphs", "no_graphs_now", "overflow", "half_failed", "gpt_failed", "stays_loaded", "no_gpu"]
    reason: str


class SentenceSpoken(Fact):
    """A sentence is complete."""

    number: int
    total: int
    text: str
    seconds: float
    flags: tuple[FlagKind, ...] = ()


class WordsFound(Fact):
    """How many words of a text are heard in its speech, as far as that could be told."""

    found: int
    total: int

    @classmethod
    def of(cls, spoken: Iterable[SentenceCheck]) -> "WordsFound":
        """Count the words of sentences; those that are not found stand in their flags."""
        checks = list(spoken)
        total = sum(check.words for check in checks)
        unheard = (flag for check in checks for flag in check.flags if flag.kind == "unheard")
        return cls(total - sum(len(flag.words) for flag in unheard), total)


NoiseLevel = Literal["clean", "some", "noisy", "no_speech"]
Melody = Literal["lively", "even", "flat", "unknown"]


class ReferenceQuality(Fact):
    """How good a reference a clip is."""

    seconds: float
    noise: NoiseLevel
    snr_db: float | None
    melody: Melody
    clipped: float  # share of the samples
    silent: float  # share of the time


class CharactersSkipped(Fact):
    """Characters without a sound were left out."""

    characters: str  # with the lines that they are on


class StreamNotChecked(Fact):
    """Streamed audio is heard before it could be checked."""


class WeightsMissing(WarningFact):
    """A model has no weights of this name, so random numbers are used instead."""

    folder: Path
    name: str


class UnreadableTextError(TextError):
    """A text has characters that the model cannot read."""

    characters: str  # with the lines that they are on
    language: str


class NothingToSpeakError(TextError):
    """A text has nothing that can be spoken."""


class LineError(TextError):
    """A line of a text cannot be prepared."""

    line: int
    error: AmharicTtsError


class SentenceTooLongError(TextError):
    """A sentence has more tokens than the model has positions."""

    tokens: int
    limit: int


class PrecisionError(SpeedupError):
    """A precision that this device does not support, or not well."""

    precision: str
    problem: Literal["unknown", "noisy_vocoder", "cpu_only", "gpu_lacks", "slow", "emulated", "torch_lacks"]
    detail: str = ""


class ModelLayerError(SpeedupError):
    """A layer of the GPT is not coqui's any more."""

    expected: str
    found: str


class VoiceNotFoundError(ConfigError):
    """A name is neither a voice of the model nor an audio file."""

    name: str
    problem: Literal["unknown", "similar", "no_own", "no_default"]
    names: tuple[str, ...] = ()  # of voices that the model has


class SessionClosedError(RunError):
    """The session takes no more requests."""


class QueueFullError(RunBusyError):
    """The queue is full; a request is likely to be accepted after some seconds."""

    queued: int
    retry_after: int


class ModelLoadingError(RunBusyError):
    """A model is loading."""


class ModelInUseError(RunBusyError):
    """The model is in use."""

    requests: int


class SpeechInterruptedError(RunError):
    """Something ended the thread that was speaking."""

    reason: str
