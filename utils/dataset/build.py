"""Build a dataset: process recordings one by one and add their clips. It can be killed at any moment.

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
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from utils.config import DatasetConfig
from utils.core.errors import AmharicTtsError, DataError, StorageError, explain
from utils.core.facts import StopRequested
from utils.core.paths import Project
from utils.core.storage import PARTIAL, file_lock, make_folder
from utils.core.workers import Outcome, ReportShare, available_cores, run_in_processes, run_serially
from utils.dataset import split
from utils.dataset.clip import Clip, Problem, Recording, ScanResult, Source
from utils.dataset.metadata import LANGUAGE_FILE, WAVS, read_language, write_lists
from utils.dataset.pipeline import needs_transcription, process_recording
from utils.dataset.store import LOCK, Dataset, Store
from utils.media import audio
from utils.media.rates import RATE
from utils.recognition.recognisers import Recogniser, RecognitionError
from utils.recognition.recognisers.choice import recommended

if TYPE_CHECKING:
    from utils.dataset.text_check import TextCheck

logger = logging.getLogger(__name__)
CLIP_FILE = re.compile(r"([0-9a-f]{16})-\d{8,}-\d{8,}\.wav")
PROGRESS_SECONDS = 0.5  # between two reports of progress
FATAL = (StopRequested, StorageError)  # would also stop the next recording
Emit = Callable[..., None]  # receives events, as ``EventLog.emit`` does
Task = tuple[Recording, Source]  # the source lacks what is known when the recording was processed
MadeClips = tuple[Source, list[Clip]]  # the audio of the clips is on disk


@dataclass
class BuildReport:
    """The result of a build: the dataset, and how many recordings were new or known."""

    contents: Dataset
    added: int = 0
    known: int = 0
    bad: list[Problem] = field(default_factory=list)  # files that cannot be used
    note: str = ""  # about the evaluation split


def build(
    scan: ScanResult,
    project: Project,
    settings: DatasetConfig,
    emit: Emit,
    *,
    recogniser: Recogniser | None = None,
    second: Recogniser | None = None,
    check_stop: Callable[[], None] = lambda: None,
) -> BuildReport:
    """Add new recordings to the dataset of a project; ``recogniser`` transcribes those without text.

    ``second`` transcribes them too, for comparison. What ``check_stop`` raises ends the build; the next one continues.
    """
    folder = project.dataset
    make_folder(folder / WAVS)
    if (folder / LANGUAGE_FILE).is_file() and (known := read_language(folder)) != settings.language:
        raise DataError(
            f"{folder} contains clips in {known!r}, not {settings.language!r}.",
            hint="Use another project for them.",
        )
    with file_lock(folder / LOCK):
        builder = _Builder(folder, settings, emit, check_stop)
        builder.process(scan, recogniser, second)
        builder.finish()
    return builder.report


def make_clips(
    task: Task,
    report: ReportShare,
    folder: Path,
    settings: DatasetConfig,
    recogniser: Recogniser | None = None,
    second: Recogniser | None = None,
    check: "TextCheck | None" = None,
) -> MadeClips:
    """Write the clips of one recording; runs in a worker."""
    source, processed = process_recording(*task, settings, recogniser, second, check)
    clips, reported = [], time.monotonic()
    for clip, samples in processed:
        name = f"{WAVS}/{clip.id}.wav" if samples.size else ""
        if name:
            audio.save(folder / name, samples, RATE)
        clips.append(dataclasses.replace(clip, audio=name))
        if time.monotonic() - reported > PROGRESS_SECONDS:
            report(clip.span.end / source.seconds)
            reported = time.monotonic()
    return source, clips


def content_hash(path: Path) -> str:
    """Return the hash that identifies a recording."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


class _Progress:
    """Adds up the progress of all files, weighted by their size, and emits it with the time left."""

    def __init__(self, emit: Emit, sizes: Mapping[str, int]) -> None:
        self.emit, self.sizes = emit, sizes
        self.shares: dict[str, float] = {}
        self.finished = 0
        self.started, self.emitted = time.monotonic(), 0.0

    def update(self, name: str, share: float) -> None:
        """Set the share of a file; the last update is always emitted, the others twice a second."""
        self.finished += share >= 1 > self.shares.get(name, 0.0)
        self.shares[name] = share
        now = time.monotonic()
        if now - self.emitted < PROGRESS_SECONDS and self.finished < len(self.sizes):
            return
        self.emitted = now
        total = sum(self.sizes.values()) or 1
        done = sum(self.sizes[name] * min(1.0, share) for name, share in self.shares.items()) / total
        left = round((now - self.started) * (1 - done) / done) if done else None
        self.emit(
            "progress", step=self.finished, total=len(self.sizes), percent=round(100 * done, 1), seconds_left=left
        )


class _Builder:
    """One build of a dataset, under its lock."""

    def __init__(self, folder: Path, settings: DatasetConfig, emit: Emit, check_stop: Callable[[], None]) -> None:
        self.folder, self.settings, self.emit, self.check_stop = folder, settings, emit, check_stop
        self.store = Store(folder)
        self.contents = self.store.read()
        self.report = BuildReport(self.contents)
        self.known_audio = {clip.content for clip in self.contents.kept}
        _remove_unfinished(folder / WAVS, self.contents)

    def process(self, scan: ScanResult, recogniser: Recogniser | None, second: Recogniser | None) -> None:
        """Add the clips of new recordings; an unusable file does not stop the others."""
        for source in self.contents.failed:
            if not Path(source.path).exists():  # such as a mistyped name
                self._note(Source("", source.path))
        for problem in scan.problems:
            self._bad(problem.path, problem.sentence)
        tasks = self._new_tasks(scan.recordings)
        self.progress = _Progress(self.emit, {str(recording.path): source.size for recording, source in tasks})
        waiting = [recording.path for recording, _ in tasks]
        with contextlib.closing(self._run(tasks, recogniser, second)) as outcomes:  # ends processes before the lock
            for (recording, _), made, error in outcomes:
                if isinstance(error, FATAL):
                    raise error
                if isinstance(error, RecognitionError):
                    self._lose_recogniser(waiting, error)
                    return
                waiting.remove(recording.path)
                if error is not None:
                    self._bad(recording.path, _reason(error))
                elif made is not None:
                    self._add(*made)
                self.check_stop()
                self.progress.update(str(recording.path), 1.0)

    def _lose_recogniser(self, waiting: Sequence[Path], error: RecognitionError) -> None:
        """Go on without the recordings that wait for a recogniser, which come last; the next build tries them again."""
        if not self.report.added:
            choices = "; ".join(known.label for known in recommended(self.settings.language))
            hint = f"{error.hint} Recommended: {choices}. Set recogniser to none to prepare the others."
            raise RecognitionError(error.message, hint=hint) from error
        for path in waiting:
            self._bad(path, str(error))

    def finish(self) -> None:
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

    def _new_tasks(self, recordings: Sequence[Recording]) -> list[Task]:
        """Return the tasks of new recordings; a file whose path, size and time are known is not opened."""
        tasks: dict[str, Task] = {}
        for recording in recordings:
            self.check_stop()
            path = recording.path.absolute()
            last = self.contents.files.get(str(path))
            try:
                stat = path.stat()
                if last and not last.reason and (last.size, last.changed) == (stat.st_size, stat.st_mtime_ns):
                    self.report.known += 1
                    continue
                source = Source(content_hash(path), str(path), stat.st_size, stat.st_mtime_ns)
            except OSError as error:
                self._bad(recording.path, f"It cannot be read: {error.strerror}.")
                continue
            if known := self.contents.recordings.get(source.recording):
                self._note(dataclasses.replace(source, seconds=known.seconds))
            if known or source.recording in tasks:
                self.report.known += 1
            else:
                tasks[source.recording] = recording, source
        return list(tasks.values())

    def _run(
        self, tasks: Sequence[Task], recogniser: Recogniser | None, second: Recogniser | None
    ) -> Generator[Outcome[Task, MadeClips], None, None]:
        """Process recordings with text on all cores, then transcribe the others one by one."""

        def report(task: Task | None, share: float) -> None:
            self.check_stop()
            if task is not None:
                self.progress.update(str(task[0].path), share)

        groups: dict[bool, list[Task]] = {True: [], False: []}
        for task in tasks:
            groups[recogniser is not None and needs_transcription(task[0])].append(task)
        with_text = groups[False]
        work = functools.partial(make_clips, folder=self.folder, settings=self.settings, check=self._learn(with_text))
        workers = min(self.settings.workers or available_cores(), len(with_text))
        if workers > 1:
            yield from run_in_processes(work, with_text, workers, report)
        else:
            yield from run_serially(work, with_text, report)
        yield from run_serially(functools.partial(work, recogniser=recogniser, second=second), groups[True], report)

    def _learn(self, tasks: Sequence[Task]) -> "TextCheck | None":
        """Learn what right and wrong texts of the project look like; say why where that is impossible."""
        given = [(recording, source.recording) for recording, source in tasks if not needs_transcription(recording)]
        if not self.settings.check_texts or not given:
            return None
        from utils.dataset import text_check  # imports torch

        self.emit("checking", recordings=len(given))
        learnt, problem = text_check.learn(given, self.folder, self.settings, self.check_stop)
        if problem:
            self.emit("warning", path=str(self.folder), message=problem)
        return learnt

    def _add(self, source: Source, made: Sequence[Clip]) -> None:
        """Store a recording with its clips; one whose exact audio is in the dataset already is excluded."""
        clips = []
        for clip in made:
            is_copy = clip.status == "kept" and clip.content in self.known_audio
            clips.append(clip.excluded("duplicate") if is_copy else clip)
            if clip.status == "kept":
                self.known_audio.add(clip.content)
        self.store.add(source, clips)
        self.contents.clips.update({clip.id: clip for clip in clips})
        self.contents.recordings[source.recording] = self.contents.files[source.path] = source
        self.report.added += 1
        for warning in source.warnings:
            self.emit("warning", path=source.path, message=warning)

    def _bad(self, path: Path, reason: str) -> None:
        self.report.bad.append(Problem(path, reason))
        self._note(Source("", str(path), reason=reason))
        self.emit("bad", path=str(path), reason=reason)

    def _note(self, source: Source) -> None:
        if self.contents.files.get(source.path) != source:
            self.store.note(source)
            self.contents.files[source.path] = source


def _reason(error: BaseException) -> str:
    if not isinstance(error, AmharicTtsError):
        logger.error("Internal error; please report it.", exc_info=error)
    return explain(error)


def _remove_unfinished(wavs: Path, contents: Dataset) -> None:
    """Remove the files of a killed build: unfinished ones, and clips of unfinished recordings."""
    for path in wavs.iterdir():
        if path.name.startswith(".saving-"):
            shutil.rmtree(path, ignore_errors=True)  # a process that is ending may still write there
            continue
        match = CLIP_FILE.fullmatch(path.name)
        if path.name.endswith(PARTIAL) or (match and match[1] not in contents.recordings):
            path.unlink(missing_ok=True)
