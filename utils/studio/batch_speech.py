"""Speech for whole files: subtitles, each cue at its time, and one audio file for each line of a text file."""

import shutil
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from utils.config import SpeechConfig
from utils.core import integrations
from utils.core.errors import TextError
from utils.core.facts import Progress, Report, ShouldStop, raise_if_stopped
from utils.core.storage import atomic_writer, make_unique_folder, timestamp_name, write_atomically
from utils.dataset.subtitles import read_cues
from utils.dataset.text_files import read_any_encoding
from utils.media.encoding import Tags, write_audio
from utils.media.rates import OUTPUT_RATE
from utils.speech.types import Speech
from utils.studio import takes
from utils.studio.facts import InputError
from utils.studio.paths import Project
from utils.studio.takes import Take, TakeSentence
from utils.xtts.tokenizer import TokenizedText

if TYPE_CHECKING:
    from utils.speech.planning import SpeechPlan
    from utils.speech.synthesizer import Synthesizer

FOLDER = "batches"
TABLE = "list.csv"
SUBTITLES = (".srt", ".vtt", ".ass", ".ssa")
MAX_LINES = 10_000
COLUMNS = ("number", "file", "text", "seconds", "seed", "flags", "fault")


class SpokenBatch(NamedTuple):
    """The archive of a batch, and how many of its texts were spoken and could not be spoken."""

    archive: Path
    spoken: int
    failed: int


def dub(
    model: "Synthesizer",
    project: Project,
    subtitles: Path,
    config: SpeechConfig,
    report: Report,
    should_stop: ShouldStop,
) -> Take:
    """Speak subtitles, each cue at its time, and save the take."""
    began = time.monotonic()
    fit_to_cues = integrations.require("fit_to_cues")
    cues, warnings = read_cues(subtitles)
    sounds = []
    for sound in model.speak_cues(cues, config):
        raise_if_stopped(should_stop)
        sounds.append(sound)
        report(Progress(len(sounds), len(cues)))
    timeline = fit_to_cues(cues, sounds)
    sentences = tuple(
        TakeSentence(
            TokenizedText(cue.text, "", "", "", (), (), ()),
            config.seed,
            (dubbed.flag,) if dubbed.flag else (),
            start=dubbed.start,
            seconds=dubbed.end - dubbed.start,
        )
        for cue, dubbed in zip(cues, timeline.cues, strict=True)
    )
    return takes.save(
        project,
        Take(
            "subtitles",
            subtitles.stem,
            model.model.name,
            model.voice(config.reference).name,
            config.model_dump(mode="json"),
            sentences,
            tuple(warnings),
            took=time.monotonic() - began,
        ),
        timeline.samples,
    )


def read_lines(path: Path) -> list[str]:
    """Read a text file with one text per line."""
    lines = [line.strip() for line in read_any_encoding(path)[0].splitlines() if line.strip()]
    if not lines:
        raise InputError("no_text", path.name)
    if len(lines) > MAX_LINES:
        raise InputError("many_lines", path.name, str(len(lines)))
    return lines


def speak_lines(
    model: "Synthesizer",
    project: Project,
    lines: Sequence[str],
    suffix: str,
    config: SpeechConfig,
    report: Report,
    should_stop: ShouldStop,
) -> SpokenBatch:
    """Speak many texts into numbered files and pack them with a list; after a stop, those that are done."""
    folder = make_unique_folder(project.root / FOLDER / timestamp_name(time.time()))
    rows = []
    try:
        for row in _speak_rows(model, lines, folder, suffix, config):
            rows.append(row)
            report(Progress(len(rows), len(lines)))
            raise_if_stopped(should_stop)
    finally:
        archive = _pack(folder, rows) if rows else folder
        shutil.rmtree(folder, ignore_errors=True)
    failed = sum(bool(row["fault"]) for row in rows)
    return SpokenBatch(archive, len(rows) - failed, failed)


def _speak_rows(
    model: "Synthesizer", lines: Sequence[str], folder: Path, suffix: str, config: SpeechConfig
) -> Iterator[dict[str, object]]:
    """Speak lines together, write their files and yield a row of the list for each."""
    plans = [_plan(model, text, config) for text in lines]
    spoken = [plan for plan in plans if not isinstance(plan, str)]
    with closing(model.speeches(spoken, config)) as speeches:
        for number, (text, plan) in enumerate(zip(lines, plans, strict=True), 1):
            row = dict.fromkeys(COLUMNS, "") | {"number": number, "text": text}
            if isinstance(plan, str):
                yield row | {"fault": plan}
                continue
            path = folder / f"{number:05}{suffix}"
            yield row | _save_line(path, text, next(speeches), model.model.name)


def _save_line(path: Path, text: str, speech: Speech, model: str) -> dict[str, object]:
    """Write the file of a line, and return what the list says of it."""
    flags = "; ".join(map(str, speech.flags))
    if not speech.samples.size:
        return {"flags": flags, "fault": "The model generated no speech."}
    write_audio(path, speech.samples, OUTPUT_RATE, tags=Tags(text[:80], model, speech.voice))
    return {"flags": flags, "file": path.name, "seconds": f"{speech.seconds:.2f}", "seed": speech.seed}


def _plan(model: "Synthesizer", text: str, config: SpeechConfig) -> "SpeechPlan | str":
    """Return how a text will be spoken, or why it cannot be."""
    try:
        return model.plan(text, config)
    except TextError as error:
        return str(error)


def _pack(folder: Path, rows: Sequence[dict[str, object]]) -> Path:
    """Write the list and pack it with the audio files."""
    import pandas as pd

    table = pd.DataFrame(rows, columns=list(COLUMNS)).to_csv(index=False, lineterminator="\n")
    write_atomically(folder / TABLE, f"\ufeff{table}")  # the mark tells spreadsheets that it is UTF-8
    archive = folder.with_name(f"{folder.name}.zip")
    with atomic_writer(archive) as target, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(folder.iterdir()):
            packed.write(path, path.name)
    return archive
