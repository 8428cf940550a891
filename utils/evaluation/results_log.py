"""What was measured so far, a line each: whoever is interrupted goes on from there, nothing is done twice."""

import functools
import hashlib
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from utils.core.events import Event, EventLog, iter_events
from utils.core.storage import make_folder
from utils.evaluation.error_rates import error_rates
from utils.evaluation.utterance import Utterance, restored

FILE = "measurements.jsonl"


class Record:
    """The measurements in a folder, as a context.

    Args:
        folder: Where they lie, with the sounds.
    """

    def __init__(self, folder: Path) -> None:
        make_folder(folder)
        self.folder = folder
        self._spoken: dict[str, Utterance] = {}
        self._heard: dict[tuple[str, str], str] = {}
        self.encoders: dict[str, str] = {}
        for event in iter_events(folder / FILE):
            self._take(event)
        self._log = EventLog(folder / FILE)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._log.close()

    def utterance(self, key: str) -> Utterance | None:
        """Return what came of a sentence, unless its sound is gone."""
        found = self._spoken.get(key)
        gone = found is not None and found.wav and not (self.folder / found.wav).is_file()
        return None if gone else found

    def add(self, utterance: Utterance) -> None:
        """Keep a measurement."""
        self._spoken[utterance.key] = utterance
        self._log.emit("spoken", **asdict(utterance))

    def add_encoder(self, fingerprint: str, encoder: str) -> None:
        """Keep which speaker encoder a model has."""
        self.encoders[fingerprint] = encoder
        self._log.emit("encoder", model=fingerprint, encoder=encoder)

    def heard(self, key: str, recogniser: str) -> str | None:
        """Return what a recogniser heard in a sound; None when it has not listened yet."""
        return self._heard.get((key, recogniser))

    def add_heard(self, key: str, recogniser: str, text: str) -> None:
        """Keep what a recogniser heard."""
        self._heard[key, recogniser] = text
        self._log.emit("heard", key=key, recogniser=recogniser, text=text)

    def recognisers(self, keys: set[str]) -> list[str]:
        """List who listened to some sounds, those who heard most of them first."""
        names = [name for key, name in self._heard if key in keys]
        return sorted(dict.fromkeys(names), key=lambda name: -names.count(name))

    def _take(self, event: Event) -> None:
        """Take one line of the file; lines of another kind are of no concern here."""
        if event["kind"] == "spoken":
            utterance = restored(event)
            self._spoken[utterance.key] = utterance
        elif event["kind"] == "heard":
            self._heard[str(event["key"]), str(event["recogniser"])] = str(event["text"])
        elif event["kind"] == "encoder":
            self.encoders[str(event["model"])] = str(event["encoder"])


def judged(utterance: Utterance, heard: str | None, recogniser: str) -> Utterance:
    """Add what was heard to an utterance, and how wrong it is."""
    rates = None if heard is None else error_rates(utterance.text, heard, utterance.language)
    return replace(
        utterance,
        heard=heard,
        recogniser="" if heard is None else recogniser,
        cer=rates.cer if rates else None,
        wer=rates.wer if rates else None,
    )


def content_of(path: str) -> str:
    """Hash a file; a name that is no file stands for itself."""
    file = Path(path)
    if not path or not file.is_file():
        return path
    known = file.stat()
    return _hash(file, known.st_size, known.st_mtime_ns)


@functools.lru_cache(maxsize=4096)
def _hash(path: Path, size: int, time: int) -> str:  # noqa: ARG001  what is asked again after a change
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=12)).hexdigest()
