"""Takes: everything that was spoken in a project, kept on disk until somebody deletes it, and a while longer.

takes/<name>/take.wav    the sound
takes/<name>/take.json   its sentences, settings and model
takes/.deleted/          the newest that were deleted, to be taken back
"""

import functools
import json
import secrets
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from utils.core.errors import AudioError, DataError
from utils.core.paths import Project, resolve_inside, validate_name
from utils.core.storage import make_folder, read_json, storage_error, timestamp_name, write_atomically
from utils.media import audio
from utils.media.audio import Samples
from utils.media.rates import OUTPUT_RATE
from utils.speech.types import join, start_times
from utils.xtts.tokenizer import TokenizedText

FOLDER, SOUND, ABOUT, DELETED = "takes", "take.wav", "take.json", ".deleted"
SHOWN, KEPT_DELETED = 100, 20
FORMAT = 1


@dataclass(frozen=True)
class Sentence:
    """One sentence of a take.

    Attributes:
        reading: What became of its letters.
        seed: Makes the same sound again.
        flags: What the guards found.
        tries: How often it was spoken.
        start: Second at which it begins.
        seconds: How long it is.
        pause: Seconds of silence after it.
        paragraph: Number of its paragraph.
        chapter: Title of the chapter that begins with it.
    """

    reading: TokenizedText
    seed: int = 0
    flags: tuple[str, ...] = ()
    tries: int = 1
    start: float = 0.0
    seconds: float = 0.0
    pause: float = 0.0
    paragraph: int = 0
    chapter: str | None = None


@dataclass(frozen=True)
class Said:
    """A sentence with its sound."""

    sentence: Sentence
    samples: Samples

    @property
    def pause(self) -> float:
        """Return the seconds of silence after it."""
        return self.sentence.pause


@dataclass(frozen=True)
class Take:
    """What was spoken at once.

    Attributes:
        kind: "speech", "stream" or "subtitles".
        text: What was to be said.
        model: Name of the model.
        voice: Name of the voice.
        settings: All settings of speech.
        pieces: Its sentences.
        notes: What a listener should know, in sentences.
        took: Seconds of work.
        seconds: How long it is.
        made: When, in seconds since 1970.
        name: Its folder; empty before it is kept.
        unfinished: Whether it was stopped before its end.
    """

    kind: str
    text: str
    model: str
    voice: str
    settings: dict[str, Any]
    pieces: tuple[Sentence, ...]
    notes: tuple[str, ...] = ()
    took: float = 0.0
    seconds: float = 0.0
    made: float = field(default_factory=time.time)
    name: str = ""
    unfinished: bool = False

    @property
    def real_time_factor(self) -> float:
        """Return seconds of work for one second of sound."""
        return self.took / self.seconds if self.seconds else 0.0

    @property
    def flags(self) -> tuple[tuple[int, str], ...]:
        """Return what the guards found, each with the number of its sentence."""
        return tuple((number, flag) for number, piece in enumerate(self.pieces, 1) for flag in piece.flags)


def joined(said: Sequence[Said]) -> tuple[tuple[Sentence, ...], Samples]:
    """Put sentences together with their pauses, and say when each begins."""
    placed = (
        replace(one.sentence, start=start, seconds=one.samples.size / OUTPUT_RATE)
        for one, start in zip(said, start_times(said), strict=True)
    )
    return tuple(placed), join(said)


def keep(project: Project, take: Take, samples: Samples) -> Take:
    """Write a take under a new name."""
    if not samples.size:
        raise AudioError("Nothing was spoken, so there is nothing to keep.", hint="Speak again.")
    return rewrite(project, replace(take, name=f"{timestamp_name(take.made)}-{secrets.token_hex(2)}"), samples)


def rewrite(project: Project, take: Take, samples: Samples) -> Take:
    """Write a take under its name; the sound comes first, so that no take is without one."""
    folder = project.root / FOLDER / take.name
    make_folder(folder)
    take = replace(take, seconds=samples.size / OUTPUT_RATE)
    audio.save(folder / SOUND, samples, OUTPUT_RATE)
    write_atomically(folder / ABOUT, json.dumps({"format": FORMAT, **asdict(take)}, ensure_ascii=False, indent=1))
    return take


def folder_of(project: Project, name: object) -> Path:
    """Return the folder of a take, which has to be there."""
    folder = resolve_inside(project.root / FOLDER, validate_name(name))
    if not (folder / ABOUT).is_file():
        raise DataError(f"There is no take {name} any longer.", hint="Choose another one.")
    return folder


def find(project: Project, name: object) -> Take:
    """Read a take."""
    return _read(folder_of(project, name) / ABOUT)


def names(project: Project) -> list[str]:
    """List the takes by name, newest first; those without a description are left out."""
    folder = project.root / FOLDER
    if not folder.is_dir():
        return []
    return sorted((path.parent.name for path in folder.glob(f"[!.]*/{ABOUT}")), reverse=True)


def newest(project: Project) -> list[Take]:
    """Read the newest takes; damaged ones are left out."""
    found = []
    for name in names(project)[:SHOWN]:
        try:
            found.append(find(project, name))
        except DataError:  # damaged, or deleted at this moment: the others are still there
            continue
    return found


def sounds(project: Project, take: Take) -> list[Said]:
    """Cut the sound of a take into its sentences again."""
    whole = sound(project, take)
    edges = [(round(one.start * OUTPUT_RATE), round((one.start + one.seconds) * OUTPUT_RATE)) for one in take.pieces]
    return [Said(one, whole[begin:end]) for one, (begin, end) in zip(take.pieces, edges, strict=True)]


def sound(project: Project, take: Take) -> Samples:
    """Read the whole sound of a take."""
    return audio.load(folder_of(project, take.name) / SOUND, OUTPUT_RATE)


def replaced(project: Project, take: Take, number: int, by: Sequence[Said]) -> Take:
    """Put other sounds in the place of a sentence, and write the take anew."""
    said = sounds(project, take)
    old, new = said[number].sentence, list(by)
    first, last = new[0], new[-1]
    new[0] = Said(replace(first.sentence, paragraph=old.paragraph, chapter=old.chapter), first.samples)
    new[-1] = Said(replace(new[-1].sentence, pause=old.pause), last.samples)
    pieces, samples = joined([*said[:number], *new, *said[number + 1 :]])
    text = take.text.replace(old.reading.written, " ".join(one.sentence.reading.written for one in new), 1)
    return rewrite(project, replace(take, pieces=pieces, text=text), samples)


def delete(project: Project, name: object) -> str:
    """Lay a take aside; the newest of those that were deleted can be taken back."""
    folder, aside = folder_of(project, name), project.root / FOLDER / DELETED
    make_folder(aside)
    try:
        folder.replace(aside / f"{time.time_ns()}~{folder.name}")
    except OSError as error:
        raise storage_error(folder, error) from error
    for path in deleted(project)[KEPT_DELETED:]:
        shutil.rmtree(path, ignore_errors=True)
    return folder.name


def deleted(project: Project) -> list[Path]:
    """List the takes that can be taken back, the last that was deleted first."""
    aside = project.root / FOLDER / DELETED
    return sorted(aside.iterdir(), reverse=True) if aside.is_dir() else []


def restore(project: Project) -> str:
    """Take back what was deleted last; return its name."""
    found = deleted(project)
    if not found:
        raise DataError("No deleted take is left.", hint="Only the newest of them are kept.")
    name = found[0].name.partition("~")[2]
    try:
        found[0].replace(project.root / FOLDER / name)
    except OSError as error:
        raise storage_error(found[0], error) from error
    return name


def _read(path: Path) -> Take:
    try:
        return _parsed(path, path.stat().st_mtime_ns)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.", hint="Choose another take.") from error


@functools.lru_cache(maxsize=512)
def _parsed(path: Path, changed: int) -> Take:  # noqa: ARG001  # what is asked again after a change
    try:
        data = read_json(path)
        data.pop("format")
        pieces = tuple(_sentence(one) for one in data.pop("pieces"))
        return Take(**data | {"pieces": pieces, "notes": tuple(data["notes"])})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path} is damaged.", hint="Delete this take.") from error


def _sentence(data: dict[str, Any]) -> Sentence:
    text = data.pop("reading")
    if "read" in text:  # its name in version 1.0
        text["model_text"] = text.pop("read")
    lists = {name: tuple(text[name]) for name in ("tokens", "ids", "unknown")}
    return Sentence(TokenizedText(**text | lists), **data | {"flags": tuple(data["flags"])})
