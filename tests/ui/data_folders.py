"""Projects with recordings, clips and runs."""

import time
from pathlib import Path

from tests.dataset.building import WORDS, clip
from tests.dataset.recordings import generated, recording
from utils.dataset.clip import Clip, Source
from utils.dataset.metadata import write_lists
from utils.dataset.store import Store
from utils.recognition.levels import ClipScores
from utils.recognition.spans import Cue
from utils.speech.subtitles import srt
from utils.studio import runs
from utils.studio.paths import Project
from utils.studio.run_state import State


def talks(folder: Path, count: int = 2, seconds: float = 12.0) -> list[Path]:
    """Write recordings with their subtitles beside them; return all files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for number in range(count):
        talk = recording(seconds, seed=number, pauses=(0.7, 1.2), speech=generated())
        cues = [Cue(span, WORDS[index % len(WORDS)]) for index, span in enumerate(talk.utterances, 1)]
        subtitles = folder / f"talk{number}.am.srt"
        subtitles.write_text(srt(cues), encoding="utf-8")
        files += [talk.save(folder / f"talk{number}.wav"), subtitles]
    return files


def add_run(project: Project, name: str, status: runs.Status = "starting") -> runs.Run:
    """Write a run as if it was started now; the end of its name is its verb."""
    run = runs.Run(project.runs / name)
    run.folder.mkdir(parents=True, exist_ok=True)
    run.write_state(State(name.split("-")[2], status, created=time.time(), heartbeat=time.time()))
    return run


def many_clips(folder: Path, count: int, each: int = 250) -> list[Clip]:
    """Write a dataset of clips without audio; every tenth is excluded."""
    folder.mkdir(parents=True, exist_ok=True)
    store = Store(folder)
    made: list[Clip] = []
    with store.transaction():
        for name in (f"{number:016x}" for number in range(count // each)):
            clips = [example_clip(number, name) for number in range(each)]
            store.add(Source(name, f"/in/{name}.wav", 10, 20, 10.0 * each), clips)
            made += clips
        store.rank()
    write_lists(folder, "am")
    return made


def example_clip(number: int, recording: str = "0" * 16) -> Clip:
    """Make a clip whose scores differ from those of its neighbours."""
    scores = ClipScores(0.8, 12.0 + number % 30, 0.0, -23.0, 10.0 + number % 7, 0.5 + number % 50 / 100, None)
    made = clip(number, recording=recording, scores=scores, split="train", text=f"{WORDS[number % 5]} {number}")
    return made.excluded("noisy") if number % 10 == 9 else made
