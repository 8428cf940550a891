"""Small datasets for tests: recordings with known utterances, fake recognisers and workers."""

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.dataset.recordings import generated, recording
from utils.config import DatasetConfig
from utils.core.facts import Fact
from utils.core.workers import ReportShare
from utils.dataset.clip import Clip, Recording, ScanResult
from utils.dataset.facts import Bad, Prepared
from utils.dataset.prepare import MadeClips, Task, make_clips, prepare
from utils.dataset.store import Dataset, Store
from utils.media.audio import Samples
from utils.recognition.levels import ClipScores
from utils.recognition.recognisers import Recogniser, Transcript
from utils.recognition.spans import Cue, Span
from utils.studio.paths import Project

SETTINGS = DatasetConfig(segmenter="energy", workers=1, check_texts=False, recogniser="none")
WORDS = ("ሰላም ለሁላችሁም ዛሬ", "እናቴ ገበያ ሄደች", "ልጆቹ በትምህርት ቤት ይማራሉ", "ውሃው በጣም ቀዝቃዛ ነው", "ቡና እንጠጣ")


@dataclass
class SaysTheSame:
    """A recogniser with the same transcript for every clip; it counts them."""

    text: str = "ሰላም ለሁላችሁም ዛሬ ጥሩ ቀን"
    name: str = "says the same"
    count: int = 0

    def transcribe(self, clips: Sequence[Samples], language: str) -> list[Transcript]:  # noqa: ARG002
        self.count += len(clips)
        return [Transcript(self.text, 0.9) for _ in clips]


def recordings(folder: Path, count: int, *, seconds: float = 8.0, first: int = 0) -> ScanResult:
    """Write recordings whose every utterance has a subtitle."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for number in range(first, first + count):
        known = recording(seconds, seed=number, pauses=(0.7, 1.2), speech=generated())
        cues = tuple(Cue(span, WORDS[index % len(WORDS)]) for index, span in enumerate(known.utterances))
        made.append(Recording(known.save(folder / f"talk{number}.wav"), f"speaker{number % 2}", cues=cues))
    return ScanResult(tuple(made))


@dataclass
class Built:
    """A dataset, and what was reported while it was prepared."""

    contents: Dataset
    facts: list[Fact]

    @property
    def prepared(self) -> Prepared:
        return next(fact for fact in self.facts if isinstance(fact, Prepared))

    @property
    def bad(self) -> list[Bad]:
        return [fact for fact in self.facts if isinstance(fact, Bad)]


def built(
    scan: ScanResult,
    project: Project,
    settings: DatasetConfig = SETTINGS,
    *recognisers: Recogniser | None,
    **more: Any,
) -> Built:
    """Prepare recordings; a first recogniser transcribes, a second one compares."""
    facts: list[Fact] = []
    first, second = [*recognisers, None, None][:2]
    contents = prepare(
        scan.recordings,
        project.dataset,
        settings,
        facts.append,
        problems=scan.problems,
        recognisers=(first, second),
        **more,
    )
    return Built(contents, facts)


def everything(project: Project) -> tuple[object, ...]:
    """Everything of a dataset but the order of rows, which is that of finishing."""
    folder = project.dataset
    lists = {path.name: sorted(path.read_bytes().splitlines()) for path in folder.glob("metadata_*.csv")}
    wavs = {path.name: path.read_bytes() for path in folder.glob("wavs/*")}
    return Store(folder).read().clips, lists, wavs, (folder / "lang.txt").read_bytes()


def die_on_talk1(task: Task, report: ReportShare, **settings: Any) -> MadeClips:
    if task[0].path.name == "talk1.wav":
        os.kill(os.getpid(), signal.SIGKILL)
    return make_clips(task, report, **settings)


def die_once_on_talk1(task: Task, report: ReportShare, **settings: Any) -> MadeClips:
    made = make_clips(task, report, **settings)
    begun = task[0].path.with_suffix(".begun")
    if task[0].path.name == "talk1.wav" and not begun.exists():
        begun.touch()
        os.kill(os.getpid(), signal.SIGKILL)  # its clips are on the disk, and nobody knows of them
    return made


def double_slowly(task: int, report: ReportShare) -> int:
    time.sleep(3)
    return 2 * task


def write_elsewhere(task: Task, report: ReportShare, **settings: Any) -> MadeClips:
    """Write the clips as a machine does whose disk is not shared."""
    return make_clips(task, report, **settings | {"folder": task[0].path.parent})


def clip(number: int, *, recording: str = "r0", **changes: object) -> Clip:
    """Make a row without any audio behind it."""
    span = Span(10.0 * number, 10.0 * number + 4)
    values: dict[str, object] = {
        "id": f"{recording}-{number}",
        "recording": recording,
        "source": f"/in/{recording}.wav",
        "span": span,
        "speaker": "speaker",
        "text": f"ሰላም {number}",
        "audio": f"wavs/{recording}-{number}.wav",
        "content": f"c-{recording}-{number}",
        "scores": ClipScores(speech_ratio=0.8, snr_db=30.5, chars_per_second=12.25),
    }
    return Clip(**(values | changes))  # type: ignore[arg-type]
