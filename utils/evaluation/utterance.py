"""One sentence, one model, and what was measured of the sound that came of it."""

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

VERSION = 1  # counts changes of what is measured, after which older measurements are made again


@dataclass(frozen=True)
class TestSentence:
    """What is spoken, and what it is compared with.

    Attributes:
        text: What to say.
        language: Canonical code.
        voice: Whose voice, for people; sentences are counted together by it.
        reference: Sound files divided by |, or the name of a voice in the model; empty: the model's own.
        recording: Path of a recording of the same words; empty: there is none.
    """

    text: str
    language: str
    voice: str = ""
    reference: str = ""
    recording: str = ""


@dataclass(frozen=True)
class Utterance:
    """A sentence as a model spoke it. What was not measured is None.

    Attributes:
        key: Hash of everything that the measurements follow from; the same key is not spoken again.
        checkpoint: Name of the model.
        text: What was to be said.
        language: Its language.
        voice: Whose voice was asked for.
        sentence: Hash of the sentence alone, by which models are compared.
        wav: Path of its sound in the folder of the report.
        recording: Path of a recording of the same words.
        seconds: From its first speech to its last.
        expected: The same of the recording, or else what the text usually takes.
        flags: What the guards found.
        tries: How often it was spoken.
        real_time_factor: Seconds of work for a second of sound.
        similarity: Cosine between the voice of the reference and this one, by XTTS's own speaker encoder.
        distance: Mel-cepstral distance in dB to the recording.
        heard: What the recogniser heard.
        cer: Share of wrong letters.
        wer: Share of wrong words.
        recogniser: Which one heard it; empty: none did.
        fault: Why it could not be spoken; empty when it was.
    """

    key: str
    checkpoint: str
    text: str
    language: str
    voice: str
    sentence: str
    wav: str = ""
    recording: str = ""
    seconds: float | None = None
    expected: float | None = None
    flags: tuple[str, ...] = ()
    tries: int = 1
    real_time_factor: float | None = None
    similarity: float | None = None
    distance: float | None = None
    heard: str | None = None
    cer: float | None = None
    wer: float | None = None
    recogniser: str = ""
    fault: str = ""

    @property
    def duration_error(self) -> float | None:
        """Return by which share of what was expected it is too long or too short."""
        return abs(self.seconds - self.expected) / self.expected if self.seconds is not None and self.expected else None

    @property
    def doubts(self) -> float | None:
        """Return how many flags it has."""
        return None if self.fault else float(len(self.flags))


class Metric(NamedTuple):
    """A figure by which models are compared.

    Attributes:
        name: As in files.
        title: As people read it.
        better: Which direction is good.
        scale: 100 for shares that are shown in percent.
        unit: Behind the number.
        value: Takes it from an utterance.
    """

    name: str
    title: str
    better: Literal["lower", "higher"]
    scale: float
    unit: str
    value: Callable[[Utterance], float | None]

    def show(self, value: float | None) -> str:
        """Write a value for people."""
        return "-" if value is None else f"{value * self.scale:.{1 if self.scale > 1 else 2}f}{self.unit}"

    def show_gap(self, value: float) -> str:
        """Write a difference of two values: that of two shares is no share."""
        return self.show(value).replace("%", " points")


METRICS = (
    Metric("cer", "CER", "lower", 100, "%", lambda one: one.cer),
    Metric("wer", "WER", "lower", 100, "%", lambda one: one.wer),
    Metric("similarity", "Voice", "higher", 1, "", lambda one: one.similarity),
    Metric("duration_error", "Length", "lower", 100, "%", lambda one: one.duration_error),
    Metric("distance", "MCD", "lower", 1, " dB", lambda one: one.distance),
    Metric("flags", "Flags", "lower", 1, "", lambda one: one.doubts),
    Metric("real_time_factor", "RTF", "lower", 1, "", lambda one: one.real_time_factor),
)


def digest(*parts: object) -> str:
    """Hash what something follows from."""
    text = json.dumps([VERSION, *parts], ensure_ascii=False, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=12).hexdigest()


def restored(values: dict[str, Any]) -> Utterance:
    """Make an utterance of what was read from a file; numbers that were none are not there."""
    known = {name: values[name] for name in Utterance.__dataclass_fields__ if name in values}
    known["flags"] = tuple(known.get("flags", ()))
    for name, value in known.items():
        if isinstance(value, float) and not math.isfinite(value):
            known[name] = None
    return Utterance(**known)
