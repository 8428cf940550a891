"""Builds a dataset: goes through recordings and adds their clips. It can be killed at any moment.

The audio of a recording's clips is written first; then one transaction adds the recording with its clips.
"""

import contextlib
import dataclasses
import functools
import hashlib
import logging
import re
import shutil
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from utils.config import DatasetConfig
from utils.core.errors import AmharicTtsError, DataError, StorageError
from utils.core.paths import Project
from utils.core.storage import file_lock, make_folder
from utils.dataset import split
from utils.dataset.clip import Clip, Problem, Recording, ScanResult
from utils.dataset.metadata import LANGUAGE_FILE, WAVS, read_language, write_lists
from utils.dataset.pipeline import needs_transcription, process
from utils.dataset.progress import Emit, Progress
from utils.dataset.recognisers import Recogniser, RecognitionError
from utils.dataset.records import Source
from utils.dataset.store import LOCK, Dataset, Store
from utils.dataset.workers import Outcome, available_cores, run_in_processes, run_on_ray, run_serially
from utils.media import audio
from utils.media.rates import RATE
from utils.runs.job import StopRequested

logger = logging.getLogger(__name__)
CLIP_FILE = re.compile(r"([0-9a-f]{16})-\d{8,}-\d{8,}\.wav")
TELL_SECONDS = 0.5  # between two words on one recording
FATAL = (StopRequested, StorageError, RecognitionError)  # the next recording would meet the same


class Task(NamedTuple):
    """What a process needs to make the clips of one recording."""

    recording: Recording
    content: str
    folder: Path
    settings: DatasetConfig
    size: int
    changed: int


class Made(NamedTuple):
    """The clips of one recording, their audio on disk."""

    seconds: float
    warnings: tuple[str, ...]
    clips: list[Clip]


@dataclass
class Report:
    """What a build did.

    Attributes:
        contents: The dataset as it is now.
        added: Recordings that are new.
        known: Recordings that were there already.
        bad: Files of which nothing came.
        note: What a person should know about the split.
    """

    contents: Dataset
    added: int = 0
    known: int = 0
    bad: list[Problem] = field(default_factory=list)
    note: str = ""


def build(
    found: ScanResult,
    project: Project,
    settings: DatasetConfig,
    emit: Emit,
    *,
    recogniser: Recogniser | None = None,
    second: Recogniser | None = None,
    look: Callable[[], None] = lambda: None,
) -> Report:
    """Add recordings to the dataset of a project; those that it has are left as they are.

    Args:
        found: The recordings.
        project: Whose dataset it is.
        settings: How they are cut and judged.
        emit: Hears of progress and of every bad file.
        recogniser: Finds the text where none is known.
        second: Another opinion on that text.
        look: Called often; what it raises ends the work, and the next build goes on from there.
    """
    folder = project.dataset
    make_folder(folder / WAVS)
    _refuse_other_language(folder, settings.language)
    with file_lock(folder / LOCK):
        builder = _Builder(folder, settings, emit, look)
        builder.take(found, recogniser, second)
        builder.finish()
    return builder.report


def make_clips(
    task: Task,
    tell: Callable[[float], None],
    recogniser: Recogniser | None = None,
    second: Recogniser | None = None,
) -> Made:
    """Write the clips of one recording; runs in a process of the pool."""
    processed = process(task.recording, task.content, task.settings, recogniser, second)
    clips, told = [], time.monotonic()
    for clip, samples in processed.pieces:
        name = f"{WAVS}/{clip.id}.wav" if samples.size else ""
        if name:
            audio.save(task.folder / name, samples, RATE)
        clips.append(dataclasses.replace(clip, audio=name))
        if time.monotonic() - told > TELL_SECONDS:
            tell(clip.span.end / processed.seconds)
            told = time.monotonic()
    return Made(processed.seconds, processed.warnings, clips)


class _Builder:
    """One build of one dataset, under its lock."""

    def __init__(self, folder: Path, settings: DatasetConfig, emit: Emit, look: Callable[[], None]) -> None:
        self.folder, self.settings, self.emit, self.look = folder, settings, emit, look
        self.store = Store(folder)
        self.contents = self.store.read()
        self.report = Report(self.contents)
        self.sounds = {clip.content for clip in self.contents.kept}
        self.progress = Progress(emit)
        _sweep(folder / WAVS, self.contents)

    def take(self, found: ScanResult, recogniser: Recogniser | None, second: Recogniser | None) -> None:
        """Work through what was found; a bad file does not stop the others."""
        self._forget_what_is_gone()
        for problem in found.problems:
            self._bad(problem.path, problem.sentence)
        tasks = self._unseen(found.recordings)
        with contextlib.closing(self._engine(tasks, recogniser, second)) as outcomes:  # ends processes before the lock
            for outcome in outcomes:
                if isinstance(outcome.error, FATAL):
                    raise outcome.error
                if outcome.result is None:
                    self._bad(outcome.task.recording.path, _sentence(outcome.error))
                else:
                    self._add(outcome.task, outcome.result)
                self.look()
                self.progress.reached(str(outcome.task.recording.path), 1.0)

    def finish(self) -> None:
        """Choose the split of the new clips and write the lists."""
        contents = self.contents
        choice = split.assign(contents.clips.values(), self.settings.eval_share, self.settings.split_by)
        changed = [dataclasses.replace(contents.clips[name], split=side) for name, side in choice.splits.items()]
        if changed or self.report.added:
            with self.store.transaction():
                self.store.put(changed)
                self.store.rank()
        contents.clips.update({clip.id: clip for clip in changed})
        write_lists(self.folder, self.settings.language)
        self.report.note = choice.note

    def _unseen(self, recordings: Sequence[Recording]) -> list[Task]:
        """Return what is not in the dataset; a file whose path, size and time are known is not even load_dataset."""
        tasks: dict[str, Task] = {}
        for recording in recordings:
            self.look()
            try:
                task = self._task(recording)
            except OSError as error:
                self._bad(recording.path, f"It cannot be read: {error.strerror}.")
                continue
            if task is None or task.content in tasks:
                self.report.known += 1
            else:
                tasks[task.content] = task
        self.progress.begin({str(task.recording.path): task.size for task in tasks.values()})
        return list(tasks.values())

    def _task(self, recording: Recording) -> Task | None:
        """Return what there is to do for a recording, or None when the dataset has it."""
        path = recording.path.absolute()
        stat = path.stat()
        last = self.contents.files.get(str(path))
        if last and not last.reason and (last.size, last.changed) == (stat.st_size, stat.st_mtime_ns):
            return None
        content = content_hash(path)
        if known := self.contents.recordings.get(content):
            self._note(Source(content, str(path), stat.st_size, stat.st_mtime_ns, known.seconds))
            return None
        return Task(recording, content, self.folder, self.settings, stat.st_size, stat.st_mtime_ns)

    def _engine(
        self, tasks: Sequence[Task], recogniser: Recogniser | None, second: Recogniser | None
    ) -> Generator[Outcome[Task, Made], None, None]:
        """Use all cores for what has its text; what a recogniser listens to waits for it, one after the other."""
        silent = [task for task in tasks if recogniser is not None and needs_transcription(task.recording)]
        others = [task for task in tasks if recogniser is None or not needs_transcription(task.recording)]
        workers = min(self.settings.workers or available_cores(), len(others))
        if self.settings.engine == "ray" and others:
            yield from run_on_ray(make_clips, others, self.settings.workers, self._heard)
        elif workers > 1:
            yield from run_in_processes(make_clips, others, workers, self._heard)
        else:
            yield from run_serially(make_clips, others, self._heard)
        yield from run_serially(
            functools.partial(make_clips, recogniser=recogniser, second=second), silent, self._heard
        )

    def _heard(self, task: Task | None, share: float) -> None:
        self.look()
        if task is not None:
            self.progress.reached(str(task.recording.path), share)

    def _add(self, task: Task, made: Made) -> None:
        """Commit a recording."""
        if self.settings.engine == "ray":
            _refuse_missing(self.folder, made.clips)
        source = Source(
            task.content, str(task.recording.path.absolute()), task.size, task.changed, made.seconds, "", made.warnings
        )
        clips = [self._unless_known(clip) for clip in made.clips]
        self.store.add(source, clips)
        self.contents.clips.update({clip.id: clip for clip in clips})
        self.contents.recordings[task.content] = self.contents.files[source.path] = source
        self.report.added += 1
        for warning in made.warnings:
            self.emit("warning", path=source.path, message=warning)

    def _unless_known(self, clip: Clip) -> Clip:
        """Exclude a clip whose exact audio is in the dataset already."""
        if clip.status == "kept" and clip.content in self.sounds:
            return clip.excluded("duplicate")
        if clip.status == "kept":
            self.sounds.add(clip.content)
        return clip

    def _bad(self, path: Path, reason: str) -> None:
        self.report.bad.append(Problem(path, reason))
        self._note(Source("", str(path), reason=reason))
        self.emit("bad", path=str(path), reason=reason)

    def _forget_what_is_gone(self) -> None:
        """Take bad files that are no longer there off the books: a name that was mistyped, a file that was removed."""
        for source in self.contents.failed:
            if not Path(source.path).exists():
                self._note(Source("", source.path))

    def _note(self, source: Source) -> None:
        """Write a line on a file unless that is what was last said of it."""
        if self.contents.files.get(source.path) != source:
            self.store.note(source)
            self.contents.files[source.path] = source


def content_hash(path: Path) -> str:
    """Name a recording by what is in its file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def _sentence(error: BaseException | None) -> str:
    """Say why a recording gave no clips."""
    if isinstance(error, AmharicTtsError):
        return str(error)
    logger.error("This should not happen; please report it.", exc_info=error)
    return f"{type(error).__name__}: {error}. The log has the details; please report it."


def _refuse_missing(folder: Path, clips: Sequence[Clip]) -> None:
    """Refuse clips that a machine wrote to a disk of its own."""
    for clip in clips:
        if clip.audio and not (folder / clip.audio).is_file():
            raise StorageError(
                f"{folder / clip.audio} was written on another machine and is not here.",
                hint="Keep the recordings and the project in a folder that all machines of the Ray cluster share.",
            )


def _refuse_other_language(folder: Path, language: str) -> None:
    if (folder / LANGUAGE_FILE).is_file() and (known := read_language(folder)) != language:
        raise DataError(
            f"{folder} holds clips of language {known!r}, not {language!r}.", hint="Take another project for them."
        )


def _sweep(wavs: Path, contents: Dataset) -> None:
    """Remove what a killed build left: unfinished files, and clips of recordings that were not finished."""
    for path in wavs.iterdir():
        if path.name.startswith(".saving-"):
            shutil.rmtree(path, ignore_errors=True)  # a process that is about to end may still write there
        elif (match := CLIP_FILE.fullmatch(path.name)) and match[1] not in contents.recordings:
            path.unlink(missing_ok=True)
