"""Prepare a dataset: process recordings one by one and add their clips. It can be killed at any moment.

The audio of a recording's clips is written first; then one transaction adds the recording with its clips.
"""

import contextlib
import functools
import json
import logging
import re
import shutil
import time
from collections.abc import Generator, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from utils.config import DatasetConfig
from utils.core.errors import AmharicTtsError, StorageError, explain
from utils.core.facts import (
    Progress,
    Report,
    ShouldStop,
    Stop,
    StopRequested,
    ignore,
    never_stop,
    raise_if_stopped,
    to_json,
)
from utils.core.storage import PARTIAL, file_lock, file_version, make_folder
from utils.core.threads import available_cores
from utils.core.workers import ReportShare, TaskResult, run_in_processes, run_serially
from utils.dataset import editor, split, statistics
from utils.dataset.clip import Clip, Recording, Source
from utils.dataset.database import LOCK
from utils.dataset.engine import Engine, Recognisers, open_engine
from utils.dataset.errors import DatasetError, NothingTranscribedError, StoreError
from utils.dataset.facts import Bad, Checking, ClipsDoubted, HeldOut, Prepared, RecordingWarning, TextsDiffer
from utils.dataset.filters import without_copies
from utils.dataset.metadata import LANGUAGE_FILE, WAVS, read_language, write_lists
from utils.dataset.pipeline import content_hash, needs_transcription, process_recording
from utils.dataset.store import FINDING, Dataset, Store
from utils.media import audio
from utils.media.facts import AudioFileError
from utils.media.rates import RATE
from utils.recognition.facts import RecognitionError
from utils.recognition.recognisers.choice import recommended

if TYPE_CHECKING:
    from utils.dataset.text_check import TextCheck

logger = logging.getLogger(__name__)
CLIP_FILE = re.compile(r"([0-9a-f]{16})-\d{8,}-\d{8,}\.wav")
PROGRESS_SECONDS = 0.5  # between two reports of progress
FATAL = (StopRequested, StorageError)  # would also stop the next recording
Task = tuple[Recording, Source]  # the source lacks what is known when the recording was processed
MadeClips = tuple[Source, list[Clip]]  # the audio of the clips is on disk


def prepare(  # noqa: PLR0913  # data, settings, and the two calls back
    recordings: Sequence[Recording],
    folder: Path,
    settings: DatasetConfig,
    report: Report = ignore,
    should_stop: ShouldStop = never_stop,
    *,
    problems: Sequence[Bad] = (),
    recognisers: Recognisers | None = None,
    pronunciations: Path | None = None,
) -> Dataset:
    """Add new recordings to the dataset in a folder, which need not exist, and return the dataset.

    ``problems`` are inputs that were found to be unusable. Recordings without text are transcribed by ``recognisers``,
    or else by those that the settings name; a text that was given is only compared. With ``engine=ray``,
    recordings are processed on the cluster. A request to stop raises ``StopRequested``; what was finished stays.
    """
    make_folder(folder / WAVS)
    if (folder / LANGUAGE_FILE).is_file() and (known := read_language(folder)) != settings.language:
        raise DatasetError(folder, "language", known)
    with file_lock(folder / LOCK):
        preparation = _Preparation(folder, settings, report, should_stop, pronunciations)
        tasks = preparation.new_tasks(recordings, problems)
        with open_engine(recognisers, [recording for recording, _ in tasks], settings, report) as (engine, opened):
            preparation.process(tasks, engine, opened)
        note = preparation.finish()
    if settings.repair_list and editor.repair_list(folder, settings.eval_share, settings.split_by).clips:
        write_lists(folder, settings.language)
        preparation.contents = preparation.store.read()
    preparation.report_result(note)
    return preparation.contents


def make_clips(
    task: Task,
    report: ReportShare,
    folder: Path,
    settings: DatasetConfig,
    recognisers: Recognisers = (None, None),
    check: "TextCheck | None" = None,
) -> MadeClips:
    """Write the clips of one recording; runs in a worker."""

    def should_stop() -> Stop:
        report(0.0)  # raises in this process if the work is to end; the parent ends its workers
        return Stop.NO

    source, processed = process_recording(*task, settings, *recognisers, check, should_stop)
    clips = []
    reported = time.monotonic()
    for clip, samples in processed:
        name = f"{WAVS}/{clip.id}.wav" if samples.size else ""
        if name:
            audio.save(folder / name, samples, RATE)
        clips.append(replace(clip, audio=name))
        if time.monotonic() - reported > PROGRESS_SECONDS:
            report(clip.span.end / source.seconds)
            reported = time.monotonic()
    return source, clips


class _Meter:
    """Adds up the progress of all files, weighted by their size, and reports it with the time left."""

    def __init__(self, report: Report, sizes: Mapping[str, int]) -> None:
        self.report = report
        self.sizes = sizes
        self.shares: dict[str, float] = {}
        self.finished = 0
        self.started = time.monotonic()
        self.reported = 0.0

    def update(self, name: str, share: float) -> None:
        """Set the share of a file; the last update is always reported, the others twice a second."""
        self.finished += share >= 1 > self.shares.get(name, 0.0)
        self.shares[name] = share
        now = time.monotonic()
        if now - self.reported < PROGRESS_SECONDS and self.finished < len(self.sizes):
            return
        self.reported = now
        total = sum(self.sizes.values()) or 1
        done = sum(self.sizes[name] * min(1.0, share) for name, share in self.shares.items()) / total
        left = round((now - self.started) * (1 - done) / done) if done else None
        self.report(Progress(self.finished, len(self.sizes), percent=round(100 * done, 1), seconds_left=left))


@dataclass
class _Preparation:
    """One preparation of a dataset, under its lock."""

    folder: Path
    settings: DatasetConfig
    report: Report
    should_stop: ShouldStop
    pronunciations: Path | None
    added: int = 0
    known: int = 0
    bad: int = 0
    wrong: Set[str] = frozenset()  # recordings whose text is surely that of another one

    def __post_init__(self) -> None:
        self.store = Store(self.folder)
        self.contents = self.store.read()
        self.listed: dict[str, str] = {}  # texts of recordings that are processed with one that fits better
        self.known_audio = {clip.content for clip in self.contents.kept}
        _remove_unfinished(self.folder / WAVS, self.contents)

    def process(self, tasks: Sequence[Task], engine: Engine | None, recognisers: Recognisers) -> None:
        """Add the clips of new recordings; an unusable file does not stop the others."""
        self.meter = _Meter(self.report, {str(recording.path): source.size for recording, source in tasks})
        waiting = [recording.path for recording, _ in tasks]
        with contextlib.closing(self._run(tasks, engine, recognisers)) as outcomes:  # ends processes before the lock
            for task, made, error in outcomes:
                path = task[0].path
                if isinstance(error, FATAL):
                    raise error
                if isinstance(error, RecognitionError):
                    self._lose_recogniser(waiting, error)
                    return
                waiting.remove(path)
                if error is not None:
                    self._refuse(Bad(path, _reason(error)))
                elif made is not None:
                    if engine and not all((self.folder / clip.audio).exists() for clip in made[1]):
                        raise StoreError(self.folder, "not_shared")
                    self._add(*made)
                self._on_progress(task, 1.0)

    def _lose_recogniser(self, waiting: Sequence[Path], error: RecognitionError) -> None:
        """Go on without the recordings that wait for a recogniser, which come last; the next run tries them again."""
        if not self.added:
            choices = tuple(known.label for known in recommended(self.settings.language))
            raise NothingTranscribedError(error, choices) from error
        for path in waiting:
            self._refuse(Bad(path, error))

    def finish(self) -> HeldOut | None:
        """Choose the split of the new clips, and write the lists; return what to know about the split."""
        contents = self.contents
        choice = split.assign(contents.clips.values(), self.settings.eval_share, self.settings.split_by)
        changed = [replace(contents.clips[name], split=side) for name, side in choice.splits.items()]
        if changed or self.added:
            with self.store.transaction():
                self.store.put(changed)
                self.store.rank()
        contents.clips.update({clip.id: clip for clip in changed})
        write_lists(self.folder, self.settings.language)
        return choice.note

    def report_result(self, note: HeldOut | None) -> None:
        """Report what there is now."""
        contents = self.contents
        self.report(statistics.account(contents).total)
        self.report(statistics.split_totals(contents.kept))
        if note:
            self.report(note)
        if doubted := [clip for clip in contents.kept if clip.is_doubted]:
            self.report(ClipsDoubted(len(doubted), Path(doubted[0].source).name))
        differing = [clip for clip in contents.kept if clip.other_text]
        if differing and self.added:
            self.report(TextsDiffer(len(differing), differing[0].text, differing[0].other_text))
        self.report(Prepared(len(contents.kept), self.added, self.known, self.bad))

    def new_tasks(self, recordings: Sequence[Recording], problems: Sequence[Bad]) -> list[Task]:
        """Return the tasks of new recordings; a file whose path, size and time are known is not opened."""
        for source in self.contents.failed:
            if not Path(source.path).exists():  # such as a mistyped name
                self._note(Source("", source.path))
        for problem in problems:
            self._refuse(problem)
        tasks = {}
        for recording in recordings:
            raise_if_stopped(self.should_stop)
            try:
                new = self._source(recording.path.absolute())
            except OSError as error:
                unreadable = AudioFileError(recording.path, "unreadable", str(error.strerror))
                self._refuse(Bad(recording.path, unreadable))
                continue
            if new is None or new.recording in tasks:
                self.known += 1
            else:
                tasks[new.recording] = recording, new
        return list(tasks.values())

    def _source(self, path: Path) -> Source | None:
        """Return the source of a file, or None if its content is in the dataset already."""
        version = file_version(path)
        last = self.contents.files.get(str(path))
        if last and not last.bad and (last.size, last.changed) == version:
            return None
        source = Source(content_hash(path), str(path), *version)
        if known := self.contents.recordings.get(source.recording):
            self._note(replace(source, seconds=known.seconds))
        return None if known else source

    # Long because recordings with text, those to transcribe and those of a cluster are run in three ways.
    def _run(
        self, tasks: Sequence[Task], engine: Engine | None, recognisers: Recognisers
    ) -> Generator[TaskResult[Task, MadeClips], None, None]:
        """Process recordings with text in parallel, then transcribe the others: one by one, or on the cluster."""
        spoken = [task for task in tasks if recognisers[0] and needs_transcription(task[0])]
        with_text = [task for task in tasks if not (recognisers[0] and needs_transcription(task[0]))]
        with_text, check = self._learn(with_text)
        self.meter.started = time.monotonic()
        work = functools.partial(make_clips, folder=self.folder, settings=self.settings, check=check)
        if recognisers[1]:  # it reads the others too, to be compared
            with_text, spoken = [], [*with_text, *spoken]
        workers = min(self.settings.workers or available_cores(), len(with_text))
        run = engine.run if engine else run_serially
        if engine is None and workers > 1:
            yield from run_in_processes(work, with_text, workers, self._on_progress)
        else:
            yield from run(work, with_text, self._on_progress)
        yield from run(functools.partial(work, recognisers=recognisers), spoken, self._on_progress)

    def _on_progress(self, task: Task | None, share: float) -> None:
        raise_if_stopped(self.should_stop)
        if task is not None:
            self.meter.update(str(task[0].path), share)

    def _learn(self, tasks: list[Task]) -> tuple[list[Task], "TextCheck | None"]:
        """Learn what right and wrong texts of the project look like; give recordings the texts that fit them."""
        given = _with_text(tasks)
        if not self.settings.check_texts or not given:
            return tasks, None
        from utils.dataset import list_check, text_check  # import torch

        self.report(Checking(len(given)))
        fitting, self.wrong, found = list_check.find_fitting_texts(
            given, self.folder, self.settings, self.report, self.should_stop, self.pronunciations
        )
        if found:
            self.store.set_meta(FINDING, json.dumps(to_json(found)))
            self.report(found)
        self.listed = {content: recording.text for recording, content in given if content in fitting}
        tasks = [
            (replace(recording, text=fitting.get(source.recording, recording.text)), source)
            for recording, source in tasks
        ]
        if found and found.pattern == "foreign":  # too few right texts are left to learn from
            return tasks, None
        check = text_check.learn(
            _with_text(tasks),
            self.folder,
            self.settings,
            self.report,
            self.should_stop,
            pronunciations=self.pronunciations,
        )
        if not check:  # so it cannot judge single texts of a small project either
            self.wrong = frozenset()
        return tasks, check

    def _add(self, source: Source, made: Sequence[Clip]) -> None:
        """Store a recording with its clips; one whose exact audio is in the dataset already is excluded."""
        repairs = dict[str, str]()
        if (text := self.listed.get(source.recording)) is not None:
            made, repairs = self._doubted(made, text)
        elif source.recording in self.wrong:
            made = [clip.excluded("text does not match") if clip.status == "kept" else clip for clip in made]
        clips = without_copies(made, self.known_audio)
        with self.store.transaction():
            self.store.add(source, clips)
            self.store.propose(repairs)
        self.contents.clips.update({clip.id: clip for clip in clips})
        self.contents.recordings[source.recording] = self.contents.files[source.path] = source
        self.added += 1
        for warning in source.warnings:
            self.report(RecordingWarning(Path(source.path), warning))

    def _doubted(self, made: Sequence[Clip], text: str) -> tuple[list[Clip], dict[str, str]]:
        """Return clips with the text of their list, and the changes that would give them the one that fits."""
        from utils.dataset.list_check import as_listed  # imports torch

        pairs = {clip.id: as_listed(clip, text) for clip in made if clip.text}
        clips = [pairs[clip.id][0] if clip.id in pairs else clip for clip in made]
        return clips, {name: change for name, (_, change) in pairs.items()}

    def _refuse(self, bad: Bad) -> None:
        self.bad += 1
        self._note(Source("", str(bad.path), bad=bad))
        self.report(bad)

    def _note(self, source: Source) -> None:
        if self.contents.files.get(source.path) != source:
            self.store.note(source)
            self.contents.files[source.path] = source


def _with_text(tasks: Iterable[Task]) -> list[tuple[Recording, str]]:
    return [(recording, source.recording) for recording, source in tasks if not needs_transcription(recording)]


def _reason(error: BaseException) -> AmharicTtsError | str:
    if isinstance(error, AmharicTtsError):
        return error
    said = explain(error)
    logger.error("%s", said, exc_info=error)
    return said


def _remove_unfinished(wavs: Path, contents: Dataset) -> None:
    """Remove the files of a killed preparation: unfinished ones, and clips of unfinished recordings."""
    for path in wavs.iterdir():
        if path.name.startswith(".saving-"):
            shutil.rmtree(path, ignore_errors=True)  # a process that is ending may still write there
            continue
        match = CLIP_FILE.fullmatch(path.name)
        if path.name.endswith(PARTIAL) or (match and match[1] not in contents.recordings):
            path.unlink(missing_ok=True)
