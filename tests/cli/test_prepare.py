"""`python -m utils prepare` and `dataset`, as a person types them."""

import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.dataset.building import WORDS
from tests.dataset.recordings import generated, recording
from tests.interrupting import start_interruptible
from tests.recognition.tiny_whisper import make_whisper
from tests.xtts.small_vocabulary import write_vocabulary
from utils.__main__ import main
from utils.core.errors import EXIT_INTERRUPTED
from utils.core.paths import ROOT
from utils.dataset.store import load_dataset
from utils.recognition.spans import Cue
from utils.speech.subtitles import srt
from utils.studio import runs
from utils.studio.paths import Project

pytestmark = pytest.mark.slow
PREPARE = ("--segmenter", "energy", "--workers", "1")
Capture = pytest.CaptureFixture[str]
Dataset = Callable[..., int]


def subtitled(folder: Path, count: int, *, seconds: float = 10, first: int = 0) -> Path:
    """Write recordings with subtitles beside them, each sentence different from the others."""
    folder.mkdir(exist_ok=True)
    for number in range(first, first + count):
        talk = recording(seconds, seed=number, pauses=(0.7, 1.2), speech=generated())
        talk.save(folder / f"talk{number}.wav")
        words = [(index, number, index + number // 5) for index in range(len(talk.utterances))]
        texts = [" ".join(WORDS[word % len(WORDS)] for word in each) for each in words]
        cues = list(map(Cue, talk.utterances, texts))
        (folder / f"talk{number}.am.srt").write_text(srt(cues), encoding="utf-8")
    return folder


def prepare(output: Path, *words: object) -> int:
    return main(["prepare", *map(str, words), "--output", str(output)])


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a project that was prepared once."""
    folder = tmp_path_factory.mktemp("prepared")
    assert prepare(folder / "out", subtitled(folder / "in", 3), *PREPARE) == 0
    return folder / "out"


@pytest.fixture
def folder(output: Path) -> Path:
    return Project(output / "default").dataset


@pytest.fixture
def dataset(output: Path) -> Dataset:
    """The command, for the prepared project."""
    return lambda *words: main(["dataset", *words, "--output", str(output)])


def test_a_dataset_is_validated_and_counted(dataset: Dataset, output: Path, tmp_path: Path, capsys: Capture) -> None:
    vocabulary = str(write_vocabulary(tmp_path))
    assert dataset("validate", "--vocab", vocabulary) == 0
    assert "0 problems." in capsys.readouterr().out
    assert dataset("validate", "--max-seconds", "1") == 1
    assert re.search(r"metadata_train.csv:2: wavs/\S+ \(\d", capsys.readouterr().out)
    assert dataset("stats") == 0
    text = capsys.readouterr().out
    assert "recordings           3" in text
    assert dataset("report") == 0
    assert Path(capsys.readouterr().out.rpartition(": ")[2].strip()).read_text("utf-8").startswith("<!doctype html>")
    assert dataset("lengths", "--vocab", vocabulary) == 0
    text = capsys.readouterr().out
    assert re.search(r"seconds +50 % \d", text)
    assert re.search(r"tokens +50 % \d", text)
    assert "suggested            --max-audio-length" in text


def test_a_clip_is_excluded_restored_edited_and_reverted(dataset: Dataset, folder: Path, capsys: Capture) -> None:
    before = load_dataset(folder).kept[0]
    assert dataset("edit", before.id, "--aside", "a cough") == 0
    assert dataset("restore") == 0
    assert f"{before.id} " in capsys.readouterr().out
    assert dataset("restore", "--reason", "a cough") == 0
    before = load_dataset(folder).clips[before.id]
    assert before.status == "kept"
    assert dataset("edit", before.id, "--text", "ሌላ ቃል") == 0
    assert load_dataset(folder).clips[before.id].text == "ሌላ ቃል"
    assert dataset("undo") == 0
    assert load_dataset(folder).clips[before.id] == before
    assert dataset("redo") == 0
    assert dataset("edit", before.id, "--undo") == 0
    assert load_dataset(folder).clips[before.id] == before


def test_clips_are_filtered_again_with_other_limits(
    dataset: Dataset, folder: Path, tmp_path: Path, capsys: Capture
) -> None:
    before = load_dataset(folder).clips
    (tmp_path / "limits.yaml").write_text("max_seconds: 3\nmin_snr_db: 100\n", encoding="utf-8")
    words = ["filter", "--config", str(tmp_path / "limits.yaml"), "--min-snr-db", "10"]
    assert dataset(*words) == 0
    text = capsys.readouterr().out
    assert re.search(r"to be excluded +\d+ clips, \d+\.\d s\n  too long +\d+ clips", text)
    assert load_dataset(folder).clips == before
    assert dataset(*words, "--apply") == 0
    changed = [clip for clip in load_dataset(folder).clips.values() if clip != before[clip.id]]
    assert {clip.reason for clip in changed} == {"too long"}
    assert dataset("filter", "--apply") == 0
    assert load_dataset(folder).clips == before


def test_speakers_can_be_renamed(dataset: Dataset, folder: Path, capsys: Capture) -> None:
    assert dataset("rename") == 0
    assert re.match(r"speaker  \d+ clips\n", capsys.readouterr().out)
    assert dataset("rename", "--speaker", "speaker=Abebe") == 0
    assert {clip.speaker for clip in load_dataset(folder).clips.values()} == {"Abebe"}
    assert dataset("rename", "--speaker", "Abebe=a", "--speaker", "Abebe=b") == 1
    assert "renamed twice" in capsys.readouterr().err
    assert dataset("undo") == 0
    assert {clip.speaker for clip in load_dataset(folder).clips.values()} == {"speaker"}


def test_a_speaker_can_be_left_out(dataset: Dataset, folder: Path, capsys: Capture) -> None:
    for words, refusal in ([], "No clip is chosen."), (["--speaker", "nobody"], "Speakers: speaker."):
        assert dataset("exclude", *words) == 1
        assert refusal in capsys.readouterr().err
    before = len(load_dataset(folder).kept)
    assert dataset("exclude", "--speaker", "speaker") == 0
    assert (capsys.readouterr().out, load_dataset(folder).kept) == (f"Excluded {before} clips.\n", [])
    assert dataset("undo") == 0


def test_a_dataset_is_split_again_exported_and_merged(
    dataset: Dataset, folder: Path, tmp_path: Path, capsys: Capture
) -> None:
    assert dataset("resplit", "--by", "time") == 0
    assert dataset("export", "zip", str(tmp_path / "all.zip")) == 0
    assert (tmp_path / "all.zip").stat().st_size > 100_000
    assert prepare(tmp_path / "b", subtitled(tmp_path / "more", 1, first=7), *PREPARE) == 0
    theirs = str(Project(tmp_path / "b" / "default").dataset)
    assert dataset("merge", theirs, "--dry-run") == 0
    assert len(load_dataset(folder).recordings) == 3
    assert dataset("merge", theirs) == 0
    assert len(load_dataset(folder).recordings) == 4
    assert "1 new recording with" in capsys.readouterr().out


def test_ctrl_c_ends_a_preparation_that_resume_finishes(tmp_path: Path) -> None:
    subtitled(tmp_path / "in", 8, seconds=60)
    words = [
        "prepare",
        str(tmp_path / "in"),
        "--workers",
        "1",
        "--no-check-texts",
        "--json",
        "--output",
        str(tmp_path / "out"),
    ]
    with start_interruptible([sys.executable, "-m", "utils", *words], ROOT) as process:
        assert process.stdout
        assert any(re.match(r".*\"step\": [1-7],", line) for line in process.stdout)
        project = Project(tmp_path / "out" / "default")
        (run,) = runs.list_runs(project)
        psutil.Process(run.read_state().pid).suspend()  # it does not react, as within a long step
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == EXIT_INTERRUPTED
    assert run.current_state().status == "stopped"
    assert 0 < len(load_dataset(project.dataset).recordings) < 8
    assert main(["runs", "resume", run.name, "--output", str(tmp_path / "out")]) == 0
    assert len(load_dataset(project.dataset).recordings) == 8


def test_recordings_without_text_are_transcribed(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "in").mkdir()
    recording(10, speech=generated()).save(tmp_path / "in" / "talk.wav")
    words = (
        tmp_path / "out",
        tmp_path / "in",
        *PREPARE,
        "--device",
        "cpu",
        "--min-confidence",
        "0",
        "--recogniser",
        "whisper",
        "--recogniser-model",
    )
    assert prepare(*words, tmp_path / "nowhere") == 1
    assert "nowhere" in capsys.readouterr().out
    assert prepare(*words, make_whisper(tmp_path / "whisper")) == 0
    clips = load_dataset(Project(tmp_path / "out" / "default").dataset).clips.values()
    assert clips
    assert all(clip.text and clip.scores.confidence is not None for clip in clips)
