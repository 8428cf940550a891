"""Speaking for the page: each function is a task for ``Work``, and tells sentence by sentence what came of it."""

import csv
import io
import shutil
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from utils.config import SpeechConfig
from utils.core.batching import batched
from utils.core.errors import DataError, TextError
from utils.core.paths import Project
from utils.core.storage import atomic_writer, make_unique_folder, timestamp_name, write_atomically
from utils.dataset.subtitles import read_cues
from utils.dataset.text_files import read_any_encoding
from utils.media.audio import Samples
from utils.media.encoding import Tags, write_audio
from utils.media.rates import OUTPUT_RATE
from utils.runs.tasks import Stopped, ensure_going
from utils.speech.dubbing import DubbedCue, fit_to_cues
from utils.speech.types import silence
from utils.ui.tabs.inference.model_session import Studio
from utils.workspace.takes import Said, Sentence, Take, joined
from utils.xtts.tokenizer import TokenizedText

if TYPE_CHECKING:
    from utils.dataset.clip import Cue
    from utils.speech.synthesizer import Synthesizer
    from utils.speech.types import Speech, Utterance

T = TypeVar("T")

UNCHECKED = "It was streamed, so no guard has listened to it and no doubtful sentence was repeated."
BATCHES, LIST = "batches", "list.csv"
MOST_LINES = 10_000
COLUMNS = ("number", "file", "text", "seconds", "seed", "flags", "fault")


@dataclass(frozen=True)
class Stage:
    """What is being done now."""

    name: str


@dataclass(frozen=True)
class Begun:
    """What will be spoken: how many sentences, by which model in which voice, and what was left out."""

    total: int
    model: str
    voice: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sounding:
    """A stretch of sound to hear at once."""

    samples: Samples


@dataclass(frozen=True)
class Dubbed:
    """Spoken subtitles."""

    samples: Samples
    pieces: tuple[Sentence, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Packed:
    """A batch in one file."""

    archive: Path
    spoken: int
    faults: int


@dataclass(frozen=True)
class Done:
    """How many of a batch are done."""

    step: int
    total: int


News = Stage | Begun | Sounding | Said | Dubbed | Packed | Done


def loaded(studio: Studio, config: SpeechConfig) -> Iterator[News]:
    """Have the model of the settings in memory."""
    if studio.card is None or studio.card.place != config.model:
        yield Stage("inference.loading_model")
    studio.load(config.model, config.device, config.precision)


def speak(studio: Studio, text: str, config: SpeechConfig) -> Iterator[News]:
    """Speak a text sentence by sentence."""
    yield from loaded(studio, config)
    with studio.using() as model:
        plan = model.plan(text, config)
        yield Stage("inference.encoding_voice")
        yield Begun(len(plan.sentences), model.model.name, model.voice(config.reference).name, plan.notes)
        with closing(model.utterances(plan, config)) as utterances:
            for utterance in in_turn(studio, utterances):
                yield said(utterance)


def stream(studio: Studio, text: str, config: SpeechConfig) -> Iterator[News]:
    """Speak a text and give its sound while it comes."""
    yield from loaded(studio, config)
    with studio.using() as model:
        plan = model.plan(text, config)
        yield Stage("inference.encoding_voice")
        notes = (*plan.notes, UNCHECKED)
        yield Begun(len(plan.sentences), model.model.name, model.voice(config.reference).name, notes)
        for spoken in plan.sentences:
            heard: list[Samples] = []
            with studio.turns.mine(), closing(model.stream_sentence(spoken, config)) as parts:
                for part in parts:
                    ensure_going()
                    if part.size:
                        heard.append(part)
                        yield Sounding(part)
            if spoken.pause:
                yield Sounding(silence(spoken.pause))
            sentence = Sentence(
                spoken.tokenized, spoken.seed, pause=spoken.pause, paragraph=spoken.paragraph, chapter=spoken.chapter
            )
            yield Said(sentence, np.concatenate([np.zeros(0, np.float32), *heard]))


def in_turn(studio: Studio, items: Iterator[T]) -> Iterator[T]:
    """Let others use the model between two batches."""
    while True:
        with studio.turns.mine():
            item = next(items, None)
        if item is None:
            return
        yield item


def dub(studio: Studio, subtitles: Path, config: SpeechConfig) -> Iterator[News]:
    """Speak subtitles, each in its time."""
    found = read_cues(subtitles)
    yield from loaded(studio, config)
    with studio.using() as model:
        spoken = [number for number, cue in enumerate(found.cues) if any(map(str.isalnum, cue.text))]
        yield Stage("inference.encoding_voice")
        yield Begun(len(spoken), model.model.name, model.voice(config.reference).name)
        sounds = [silence(0)] * len(found.cues)
        for some in batched(spoken, config.batch_size):
            with studio.turns.mine():
                speeches = model.speak_many([found.cues[number].text for number in some], config)
            for number, speech in zip(some, speeches, strict=True):
                sounds[number] = speech.samples
            yield Done(spoken.index(some[-1]) + 1, len(spoken))
        line = fit_to_cues(found.cues, sounds)
    pieces = tuple(_cue(cue, place, config.seed) for cue, place in zip(found.cues, line.cues, strict=True))
    yield Dubbed(line.samples, pieces, (*found.warnings, *line.notes))


def lines_of(path: Path) -> list[str]:
    """Read a file with one text a line."""
    lines = [line.strip() for line in read_any_encoding(path).text.splitlines() if line.strip()]
    if not lines:
        raise DataError(f"{path.name} holds no text.", hint="Write one text a line.")
    if len(lines) > MOST_LINES:
        raise DataError(f"{path.name} holds {len(lines)} texts; {MOST_LINES} can be spoken at once.", hint="Divide it.")
    return lines


def batch(studio: Studio, project: Project, lines: Sequence[str], ending: str, config: SpeechConfig) -> Iterator[News]:
    """Speak many texts into numbered files and pack them with a list; what cannot be spoken is told in the list."""
    yield from loaded(studio, config)
    folder = make_unique_folder(project.root / BATCHES / timestamp_name(time.time()))
    rows: list[dict[str, object]] = []
    try:
        with studio.using() as model:
            yield Begun(len(lines), model.model.name, model.voice(config.reference).name)
            for some in batched(list(enumerate(lines, 1)), config.batch_size):
                with studio.turns.mine():
                    rows += _spoken_lines(model, some, folder, ending, config)
                yield Done(len(rows), len(lines))
    except Stopped:
        if rows:
            _pack(folder, rows)
        raise
    else:
        archive = _pack(folder, rows)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    faults = sum(bool(row["fault"]) for row in rows)
    yield Packed(archive, len(rows) - faults, faults)


def take_of(begun: Begun, told: Sequence[Said], kind: str, text: str, config: SpeechConfig) -> tuple[Take, Samples]:
    """Make a take of what was told so far."""
    pieces, samples = joined(told)
    settings = config.model_dump(mode="json")
    take = Take(kind, text, begun.model, begun.voice, settings, pieces, begun.notes)
    return replace(take, unfinished=len(told) < begun.total), samples


def said(utterance: "Utterance") -> Said:
    """Keep of an utterance what a take needs."""
    spoken = utterance.sentence
    sentence = Sentence(
        spoken.tokenized,
        spoken.seed,
        utterance.flags,
        utterance.tries,
        pause=spoken.pause,
        paragraph=spoken.paragraph,
        chapter=spoken.chapter,
    )
    return Said(sentence, utterance.samples)


def _cue(cue: "Cue", place: DubbedCue, seed: int) -> Sentence:
    reading = TokenizedText(cue.text, "", "", "", (), (), ())
    return Sentence(
        reading, seed, (f"timing: {place.note}",) if place.note else (), 1, place.start, place.end - place.start
    )


def _spoken_lines(
    model: "Synthesizer", lines: Sequence[tuple[int, str]], folder: Path, ending: str, config: SpeechConfig
) -> Iterator[dict[str, object]]:
    """Speak some lines together and write their files; each gives a row of the list."""
    faults = {number: fault for number, text in lines if (fault := _fault(model, text, config))}
    good = [(number, text) for number, text in lines if number not in faults]
    speeches = iter(model.speak_many([text for _, text in good], config) if good else [])
    for number, text in lines:
        row: dict[str, object] = dict.fromkeys(COLUMNS, "") | {"number": number, "text": text}
        if number in faults:
            yield row | {"fault": faults[number]}
            continue
        speech = next(speeches)
        if not speech.samples.size:
            yield row | {"fault": "The model said nothing.", "flags": "; ".join(speech.flags)}
            continue
        yield row | _written(speech, folder / f"{number:05}{ending}", Tags(text[:80], model.model.name, speech.voice))


def _written(speech: "Speech", path: Path, tags: Tags) -> dict[str, object]:
    write_audio(path, speech.samples, OUTPUT_RATE, tags=tags)
    return {
        "file": path.name,
        "seconds": f"{speech.seconds:.2f}",
        "seed": speech.seed,
        "flags": "; ".join(speech.flags),
    }


def _fault(model: "Synthesizer", text: str, config: SpeechConfig) -> str:
    try:
        model.plan(text, config)
    except TextError as error:
        return str(error)
    return ""


def _pack(folder: Path, rows: Sequence[dict[str, object]]) -> Path:
    """Write the list, and pack it with the sounds."""
    table = io.StringIO()
    writer = csv.DictWriter(table, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(folder / LIST, "\ufeff" + table.getvalue())  # the mark tells spreadsheets that it is UTF-8
    archive = folder.with_name(f"{folder.name}.zip")
    with atomic_writer(archive) as target, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(folder.iterdir()):
            packed.write(path, path.name)
    return archive
