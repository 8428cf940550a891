"""What was measured of one sentence by one model, and the log of measurements that makes an evaluation resumable."""

import hashlib
import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from utils.core.errors import AmharicTtsError, RecordedError
from utils.core.events import EventLog, iter_events
from utils.core.facts import error_from_json, error_to_json
from utils.core.storage import cached_while_unchanged, hash_text, make_folder
from utils.speech.facts import Flag

LOG_FILE = "measurements.jsonl"
VERSION = 1  # increase when measuring changes; older measurements are then repeated


@dataclass(frozen=True)
class EvaluatedUtterance:
    """One sentence spoken by one model. Values that were not measured are None."""

    key: str  # hash of everything the measurements depend on; the same key is not measured again
    checkpoint: str  # name of the model
    text: str
    language: str
    voice: str  # name of the speaker
    sentence: str  # hash of the sentence alone, which pairs the models
    wav: str = ""  # path of the audio in the report folder
    recording: str = ""  # file name of a recording of the same words; reports are for others
    seconds: float | None = None  # length of the speech without silence around it
    expected: float | None = None  # the same of the recording, or the usual length of such a text
    flags: tuple[Flag, ...] = ()  # warnings of the speech checks
    tries: int = 1  # how often the sentence was generated
    real_time_factor: float | None = None  # seconds of work per second of audio
    similarity: float | None = None  # cosine similarity to the reference voice, by XTTS's speaker encoder
    distance: float | None = None  # mel-cepstral distance to the recording, in dB
    transcript: str | None = None
    cer: float | None = None  # character error rate
    wer: float | None = None  # word error rate
    recogniser: str = ""  # which recogniser made the transcript; empty without one
    error: AmharicTtsError | None = None  # why the sentence could not be spoken

    @classmethod
    def parse(cls, values: dict[str, Any]) -> Self:
        known = {name: values[name] for name in cls.__dataclass_fields__ if name in values}
        known["flags"] = tuple(map(Flag.read, known.get("flags", ())))
        for name, value in known.items():
            if isinstance(value, float) and not math.isfinite(value):
                known[name] = None
        known["error"] = _error(known.get("error"))
        return cls(**known)

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"error": error_to_json(self.error) if self.error else None}

    @property
    def duration_error(self) -> float | None:
        """How far the length is from the expected one, as a share of it."""
        return abs(self.seconds - self.expected) / self.expected if self.seconds is not None and self.expected else None


def _error(stored: object) -> AmharicTtsError | None:
    """Return an error as it was stored; version 1.1 stored its sentence."""
    if isinstance(stored, dict):
        return error_from_json(stored)
    return RecordedError("1.1", str(stored)) if stored else None


class Metric(NamedTuple):
    """A metric that models are compared by."""

    name: str  # in files, and of the field of an utterance
    title: str  # in tables
    full_title: str  # for readers who do not know the abbreviation
    better: Literal["lower", "higher"]
    scale: float  # 100 for values shown in percent
    unit: str

    def value(self, utterance: EvaluatedUtterance) -> float | None:
        if self.name == "flags":
            return None if utterance.error else float(len(utterance.flags))
        measured: float | None = getattr(utterance, self.name)
        return measured

    def format(self, value: float | None) -> str:
        return "-" if value is None else f"{value * self.scale:.{1 if self.scale > 1 else 2}f}{self.unit}"

    def format_difference(self, value: float) -> str:
        """Format a difference; that of two percentages is in points."""
        return self.format(value).replace("%", " points")


METRICS = (
    Metric("cer", "CER", "character error rate", "lower", 100, "%"),
    Metric("wer", "WER", "word error rate", "lower", 100, "%"),
    Metric("similarity", "Voice", "voice similarity (cosine)", "higher", 1, ""),
    Metric("duration_error", "Length", "duration error", "lower", 100, "%"),
    Metric("distance", "MCD", "mel-cepstral distance (dB)", "lower", 1, " dB"),
    Metric("flags", "Flags", "warnings per sentence", "lower", 1, ""),
    Metric("real_time_factor", "RTF", "real-time factor", "lower", 1, ""),
)


class ResultsLog:
    """The measurements in a folder, one JSON line each."""

    def __init__(self, folder: Path) -> None:
        make_folder(folder)
        self.folder = folder
        self._utterances = {}
        self._transcripts = {}
        self.encoders = {}
        for event in iter_events(folder / LOG_FILE):
            if event["kind"] == "spoken":
                utterance = EvaluatedUtterance.parse(event)
                self._utterances[utterance.key] = utterance
            elif event["kind"] == "heard":
                self._transcripts[str(event["key"]), str(event["recogniser"])] = str(event["text"])
            elif event["kind"] == "encoder":
                self.encoders[str(event["model"])] = str(event["encoder"])
        self._log = EventLog(folder / LOG_FILE)

    def close(self) -> None:
        self._log.close()

    def utterance(self, key: str) -> EvaluatedUtterance | None:
        """Return a measurement, unless its audio file was deleted."""
        result = self._utterances.get(key)
        return None if result and result.wav and not (self.folder / result.wav).is_file() else result

    def add(self, utterance: EvaluatedUtterance) -> None:
        self._utterances[utterance.key] = utterance
        self._log.emit("spoken", **utterance.to_json())

    def add_encoder(self, fingerprint: str, encoder: str) -> None:
        self.encoders[fingerprint] = encoder
        self._log.emit("encoder", model=fingerprint, encoder=encoder)

    def transcript(self, key: str, recogniser: str) -> str | None:
        return self._transcripts.get((key, recogniser))

    def add_transcript(self, key: str, recogniser: str, text: str) -> None:
        self._transcripts[key, recogniser] = text
        self._log.emit("heard", key=key, recogniser=recogniser, text=text)

    def recognisers(self, keys: set[str]) -> list[str]:
        """List the recognisers that transcribed any of these, most transcripts first."""
        names = [name for key, name in self._transcripts if key in keys]
        return sorted(dict.fromkeys(names), key=lambda name: -names.count(name))


def digest(*parts: object) -> str:
    text = json.dumps([VERSION, *parts], ensure_ascii=False, sort_keys=True, default=str)
    return hash_text(text, 12)


def file_digest(path: str) -> str:
    """Hash the content of a file; a name that is not a file is returned as it is."""
    return _hash_file(Path(path)) if path and Path(path).is_file() else path


@cached_while_unchanged(4096)
def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=12)).hexdigest()
