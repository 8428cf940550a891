"""Takes: everything that was spoken in a project, stored until it is deleted.

takes/<name>/take.wav    the audio
takes/<name>/take.json   its sentences, settings and model
takes/.deleted/          the newest deleted takes, which can be restored
"""

import base64
import json
import secrets
import shutil
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pydantic import TypeAdapter

from utils.config import SpeechConfig
from utils.core.errors import DataError
from utils.core.facts import from_json, to_json
from utils.core.paths import resolve_inside, validate_name
from utils.core.storage import (
    cached_while_unchanged,
    make_folder,
    read_document,
    storage_errors,
    timestamp_name,
    write_atomically,
    write_document,
)
from utils.media import audio
from utils.media.audio import Samples
from utils.media.encoding import AUDIO_FORMATS, to_pcm16
from utils.media.rates import OUTPUT_RATE
from utils.speech.facts import Flag
from utils.speech.session import SpeechSession
from utils.speech.subtitles import captions, srt, vtt
from utils.speech.tasks import SpeechStart, speak_each
from utils.speech.types import Sentence, Speech, Utterance, join, silence, start_times
from utils.studio import paths
from utils.studio.facts import InputError
from utils.studio.paths import Project
from utils.xtts.tokenizer import TokenizedText

FOLDER = "takes"
AUDIO = "take.wav"
METADATA = "take.json"
DELETED = ".deleted"
CAPTIONS = {".srt": srt, ".vtt": vtt}
AGAIN = "again.wav"  # the newest attempt at one of its sentences
MAX_LISTED = 100
MAX_DELETED = 20
FORMAT = 1

RESENT_CHUNKS = 6  # a browser may skip an update, so each one repeats the newest chunks


@dataclass(frozen=True)
class TakeSentence:
    """One sentence of a take."""

    reading: TokenizedText
    seed: int = 0
    flags: tuple[Flag, ...] = ()  # what the guards found
    tries: int = 1  # how often it was spoken
    start: float = 0.0  # second at which it starts
    seconds: float = 0.0
    pause: float = 0.0  # seconds of silence after it
    paragraph: int = 0
    chapter: str | None = None  # title of the chapter that starts with it
    reference: str = ""  # voice of its speaker in a script; empty: the voice of the settings
    words: int = 0  # that were looked for in its sound


@dataclass(frozen=True)
class Take:
    """A text that was spoken."""

    kind: str  # speech, stream or subtitles
    text: str
    model: str
    voice: str
    settings: dict[str, Any]  # all settings of speech
    pieces: tuple[TakeSentence, ...]
    notes: tuple[Any, ...] = ()  # facts for the listener
    took: float = 0.0  # seconds of computing
    seconds: float = 0.0
    made: float = field(default_factory=time.time)
    name: str = ""  # its folder; empty before it is saved
    unfinished: bool = False  # stopped before its end

    @property
    def real_time_factor(self) -> float:
        """Return the seconds of computing per second of audio."""
        return self.took / self.seconds if self.seconds else 0.0

    @property
    def flags(self) -> tuple[tuple[int, Flag], ...]:
        """Return what the guards found, each with the number of its sentence."""
        return tuple((number, flag) for number, piece in enumerate(self.pieces, 1) for flag in piece.flags)


class UnsavedTake(NamedTuple):
    """A take with its audio, before it is saved."""

    take: Take
    samples: Samples


def new_take(
    kind: str, text: str, config: SpeechConfig, started: SpeechStart, sentences: Sequence[Utterance], took: float = 0.0
) -> UnsavedTake:
    """Make a take of the sentences that were spoken so far, with its audio."""
    settings = config.model_dump(mode="json")
    take = Take(kind, text, started.model, started.voice, settings, _pieces(sentences), started.notes, took)
    return UnsavedTake(replace(take, unfinished=len(sentences) < started.total), join(sentences))


@dataclass
class TakeRecorder:
    """Collects the events of one request: the newest audio for a player, and the take that it becomes."""

    kind: str
    text: str
    config: SpeechConfig
    started: SpeechStart | None = None
    sentences: list[Utterance] = field(default_factory=list)  # complete ones
    chunks: int = 0  # of audio
    _newest: deque[str] = field(default_factory=lambda: deque(maxlen=RESENT_CHUNKS))
    _key: str = field(default_factory=lambda: str(time.time_ns()))  # tells the browser that this is another text
    _started_at: float = 0.0

    def add(self, event: object) -> None:
        match event:
            case SpeechStart():
                self.started, self._started_at = event, time.monotonic()
            case Utterance():
                self.sentences.append(event)
            case np.ndarray():
                if event.size:
                    self._newest.append(base64.b64encode(to_pcm16(event)).decode())
                    self.chunks += 1

    def player_json(self) -> str:
        parts = list(self._newest)
        return json.dumps({"key": self._key, "first": self.chunks - len(parts), "parts": parts}) if parts else ""

    @property
    def took(self) -> float:
        """Return the seconds since the speech began."""
        return time.monotonic() - self._started_at

    def take(self) -> UnsavedTake | None:
        """Return the take; None when no sentence is complete."""
        if self.started is None or not self.sentences:
            return None
        return new_take(self.kind, self.text, self.config, self.started, self.sentences, self.took)


def save(project: Project, take: Take, samples: Samples) -> Take:
    """Write a take under a new name."""
    if not samples.size:
        raise InputError("nothing_spoken")
    return _write(project, replace(take, name=f"{timestamp_name(take.made)}-{secrets.token_hex(2)}"), samples)


def take_folder(project: Project, name: object) -> Path:
    """Return the folder of an existing take."""
    folder = resolve_inside(project.root / FOLDER, validate_name(name))
    if not (folder / METADATA).is_file():
        raise InputError("no_take", folder.name)
    return folder


def load(project: Project, name: object) -> Take:
    return _parse(take_folder(project, name) / METADATA)


def names(project: Project) -> list[str]:
    """List the takes by name, newest first."""
    return paths.folders_with(project.root / FOLDER, METADATA)


def newest(project: Project) -> list[Take]:
    """Read the newest takes; damaged ones are left out."""
    takes = []
    for name in names(project)[:MAX_LISTED]:
        try:
            takes.append(load(project, name))
        except DataError:  # damaged, or deleted at this moment: the others are still there
            continue
    return takes


def files(project: Project, take: Take) -> list[Path]:
    """List the audio of a take, its other formats, and its subtitles, which are written if they are missing."""
    folder = take_folder(project, take.name)
    for suffix, render in CAPTIONS.items():
        path = folder / f"take{suffix}"
        if not path.exists() and any(piece.reading.written for piece in take.pieces):
            speech = Speech(tuple(load_sentences(project, take)), silence(0), take.voice, 0)
            write_atomically(path, render(captions(speech)))
    offered = {*AUDIO_FORMATS, *CAPTIONS}
    return sorted(path for path in folder.iterdir() if path.stem == "take" and path.suffix in offered)


def load_audio(project: Project, take: Take) -> Samples:
    return audio.load(take_folder(project, take.name) / AUDIO, OUTPUT_RATE)


def load_sentences(project: Project, take: Take) -> list[Utterance]:
    """Cut the audio of a take into its sentences again."""
    samples = load_audio(project, take)
    return [
        Utterance(
            Sentence(
                piece.reading,
                piece.seed,
                pause=piece.pause,
                paragraph=piece.paragraph,
                chapter=piece.chapter,
                reference=piece.reference,
            ),
            samples[round(piece.start * OUTPUT_RATE) : round((piece.start + piece.seconds) * OUTPUT_RATE)],
            np.zeros(0, np.int64),
            ended=True,
            flags=piece.flags,
            tries=piece.tries,
            start=piece.start,
            words=piece.words,
        )
        for piece in take.pieces
    ]


class NewSentence:
    """One sentence of a take that is spoken again by a session, with another seed and its text as edited."""

    def __init__(
        self, session: SpeechSession, project: Project, take: Take, number: int, text: str, config: SpeechConfig
    ) -> None:
        piece = take.pieces[number]
        seed = (piece.seed + 1 + secrets.randbelow(2**32 - 1)) % 2**32  # any other than before
        config = config.model_copy(update={"seed": seed, "reference": piece.reference or config.reference})
        self.take = take.name
        self.number = number
        self.spoken: list[Utterance] = []
        self.total = 1
        self.error: Exception | None = None
        self.is_running = True
        self._file = take_folder(project, take.name) / AGAIN
        self.request = session.submit(lambda model: speak_each(model, text, config), config, deliver=self._receive)

    @property
    def file(self) -> Path | None:
        """The audio, once it is spoken."""
        return self._file if not self.is_running and len(self.spoken) == self.total else None

    def _receive(self, event: object) -> None:
        match event:
            case SpeechStart():
                self.total = event.total
            case Utterance():
                self.spoken.append(event)
            case None | Exception():
                self.error = event
                if event is None and len(self.spoken) == self.total:
                    audio.save(self._file, join(self.spoken), OUTPUT_RATE)
                self.is_running = False


def replace_sentence(project: Project, take: Take, index: int, replacement: Sequence[Utterance]) -> Take:
    """Replace one sentence of a take and write it again."""
    sentences = load_sentences(project, take)
    new = list(replacement)
    old = sentences[index].sentence
    new = [replace(each, sentence=replace(each.sentence, reference=old.reference)) for each in new]
    new[0] = replace(new[0], sentence=replace(new[0].sentence, paragraph=old.paragraph, chapter=old.chapter))
    new[-1] = replace(new[-1], sentence=replace(new[-1].sentence, pause=old.pause))
    text = take.text.replace(old.text, " ".join(spoken.sentence.text for spoken in new), 1)
    sentences[index : index + 1] = new
    return _write(project, replace(take, pieces=_pieces(sentences), text=text), join(sentences))


def delete(project: Project, name: object) -> str:
    """Move a take to the deleted ones; the newest of them can be restored."""
    folder = take_folder(project, name)
    deleted_folder = project.root / FOLDER / DELETED
    make_folder(deleted_folder)
    with storage_errors(folder):
        folder.replace(deleted_folder / f"{time.time_ns()}~{folder.name}")
    for path in deleted(project)[MAX_DELETED:]:
        shutil.rmtree(path, ignore_errors=True)
    return folder.name


def deleted(project: Project) -> list[Path]:
    """List the deleted takes, newest first."""
    return sorted((project.root / FOLDER / DELETED).glob("*"), reverse=True)


def restore(project: Project) -> str:
    """Restore the take that was deleted last; return its name."""
    if not (folders := deleted(project)):
        raise InputError("no_deleted_take")
    name = folders[0].name.partition("~")[2]
    with storage_errors(folders[0]):
        folders[0].replace(project.root / FOLDER / name)
    return name


def _pieces(sentences: Sequence[Utterance]) -> tuple[TakeSentence, ...]:
    return tuple(
        TakeSentence(
            spoken.sentence.tokenized,
            spoken.sentence.seed,
            spoken.flags,
            spoken.tries,
            start,
            spoken.seconds,
            spoken.pause,
            spoken.sentence.paragraph,
            spoken.sentence.chapter,
            spoken.sentence.reference,
            spoken.words,
        )
        for spoken, start in zip(sentences, start_times(sentences), strict=True)
    )


def _write(project: Project, take: Take, samples: Samples) -> Take:
    """Write a take; the audio comes first, so that no take is without it."""
    folder = project.root / FOLDER / take.name
    make_folder(folder)
    take = replace(take, seconds=samples.size / OUTPUT_RATE)
    audio.save(folder / AUDIO, samples, OUTPUT_RATE)
    stored = {"format": FORMAT, **asdict(take), "notes": list(map(to_json, take.notes))}
    write_document(folder / METADATA, stored)
    return take


@cached_while_unchanged(512)
def _parse(path: Path) -> Take:
    try:
        data = read_document(path)
        for piece in data["pieces"]:
            piece["flags"] = list(map(Flag.read, piece.get("flags", ())))
        data["notes"] = list(map(from_json, data.get("notes", ())))
        return TypeAdapter(Take).validate_python(data)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError("damaged_take", str(path)) from error
