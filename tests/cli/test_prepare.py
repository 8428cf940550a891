"""`python -m utils prepare`, `dataset` and `check-lengths`, as a person types them."""

import re
import signal
import sys
from pathlib import Path

import pytest

from tests.dataset.building import WORDS
from tests.dataset.recordings import generated, recording
from tests.dataset.tiny_whisper import make_whisper
from tests.interrupting import heard
from tests.xtts.small_vocabulary import write_vocabulary
from utils import runs
from utils.__main__ import main
from utils.core.paths import ROOT, Project
from utils.dataset.store import load_dataset

pytestmark = pytest.mark.slow


def subtitled(folder: Path, count: int, *, seconds: float = 10, first: int = 0) -> Path:
    """Write recordings with subtitles beside them."""
    folder.mkdir(exist_ok=True)
    for number in range(first, first + count):
        known = recording(seconds, seed=number, pauses=(0.7, 1.2), speech=generated())
        known.save(folder / f"talk{number}.wav")
        cues = [
            f"{index + 1}\n{stamp(span.start)} --> {stamp(span.end)}\n{said(number, index)}\n"
            for index, span in enumerate(known.utterances)
        ]
        (folder / f"talk{number}.am.srt").write_text("\n".join(cues), encoding="utf-8")
    return folder


def said(number: int, index: int) -> str:
    """Return a sentence of its own for each subtitle."""
    return f"{WORDS[index % len(WORDS)]} {WORDS[number % len(WORDS)]} {WORDS[(index + number // 5) % len(WORDS)]}"


def stamp(seconds: float) -> str:
    whole, thousandth = divmod(round(seconds * 1000), 1000)
    return f"00:{whole // 60:02d}:{whole % 60:02d},{thousandth:03d}"


def words(*rest: str, output: Path) -> list[str]:
    return [*rest, "--output", str(output)]


PREPARE = ("--segmenter", "energy", "--workers", "1")


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a project that was prepared once, by command, with a bad file among its recordings."""
    folder = tmp_path_factory.mktemp("prepared")
    subtitled(folder / "in", 3)
    (folder / "in" / "broken.wav").write_bytes(b"no sound")
    assert main(words("prepare", str(folder / "in"), *PREPARE, output=folder / "out")) == 0
    return folder / "out"


@pytest.mark.slow
def test_recordings_are_prepared_and_every_second_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    subtitled(tmp_path / "in", 2)
    (tmp_path / "in" / "broken.wav").write_bytes(b"no sound")
    assert main(words("prepare", str(tmp_path / "in"), *PREPARE, "--no-transcribe", output=tmp_path / "out")) == 0
    text = capsys.readouterr().out
    assert "progress step=3 total=3" in text
    assert re.search(r"ledger message=Input 0\.3 min: in use 0\.\d", text)
    assert "broken.wav cannot be decoded" in text
    assert "prepared added=2 known=0 bad=1" in text
    assert main(words("prepare", str(tmp_path / "in"), *PREPARE, "--no-transcribe", output=tmp_path / "out")) == 0
    assert "prepared added=0 known=2 bad=1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ((), "No recordings are given"),
        (("a|b.wav",), "has a | in its name"),
        (("a.wav", "--min-seconds", "5", "--max-seconds", "3"), "must be below"),
    ],
)
def test_what_cannot_be_prepared_is_said(
    tmp_path: Path, rest: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words("prepare", *rest, output=tmp_path)) == 1
    assert said in capsys.readouterr().err
    assert not (tmp_path / "default").exists()


def test_a_place_without_recordings_fails_with_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words("prepare", str(tmp_path / "nowhere"), *PREPARE, output=tmp_path)) == 1
    assert "nowhere" in capsys.readouterr().out


def test_a_dataset_is_validated_and_counted(output: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vocabulary = str(write_vocabulary(tmp_path))
    assert main(words("dataset", "validate", "--vocab", vocabulary, output=output)) == 0
    assert "0 problems." in capsys.readouterr().out
    assert main(words("dataset", "validate", "--max-seconds", "1", output=output)) == 1
    assert re.search(r"metadata_train.csv:2: wavs/\S+ lasts \d", capsys.readouterr().out)
    assert main(words("dataset", "stats", "--plot", str(tmp_path / "p.png"), output=output)) == 0
    text = capsys.readouterr().out
    assert "recordings           3" in text
    assert "broken.wav" in text
    assert (tmp_path / "p.png").exists()


def test_lengths_are_shown_in_seconds_and_tokens(
    output: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vocabulary = str(write_vocabulary(tmp_path))
    assert main(words("check-lengths", "--vocab", vocabulary, output=output)) == 0
    text = capsys.readouterr().out
    assert re.search(r"seconds +50 % \d", text)
    assert re.search(r"tokens +50 % \d", text)
    assert "suggested            --max-audio-length" in text


def test_a_clip_is_set_aside_listed_and_brought_back(output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Project(output / "default").dataset
    name = load_dataset(folder).kept[0].id
    assert main(words("dataset", "edit", name, "--aside", "a cough", output=output)) == 0
    assert main(words("dataset", "restore", output=output)) == 0
    assert f"{name} " in capsys.readouterr().out
    assert main(words("dataset", "restore", "--reason", "a cough", output=output)) == 0
    assert load_dataset(folder).clips[name].status == "kept"


def test_a_text_is_edited_and_undone(output: Path) -> None:
    folder = Project(output / "default").dataset
    clip = load_dataset(folder).kept[0]
    assert main(words("dataset", "edit", clip.id, "--text", "ሌላ ቃል", output=output)) == 0
    assert load_dataset(folder).clips[clip.id].text == "ሌላ ቃል"
    assert main(words("dataset", "edit", clip.id, "--undo", output=output)) == 0
    assert load_dataset(folder).clips[clip.id] == clip


def test_clips_are_judged_again_first_in_words_and_then_in_deed(
    output: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Project(output / "default").dataset
    before = load_dataset(folder).clips
    (tmp_path / "limits.yaml").write_text("max_seconds: 3\nmin_snr_db: 100\n", encoding="utf-8")
    command = words("dataset", "filter", "--config", str(tmp_path / "limits.yaml"), "--min-snr-db", "10", output=output)
    assert main(command) == 0
    text = capsys.readouterr().out
    assert re.search(r"to be excluded +\d+ clips, \d+\.\d s\n  too long +\d+ clips", text)
    assert "--apply" in text
    assert load_dataset(folder).clips == before
    assert main([*command, "--apply"]) == 0
    changed = [clip for clip in load_dataset(folder).clips.values() if clip != before[clip.id]]
    assert {clip.reason for clip in changed} == {"too long"}
    assert main(words("dataset", "filter", "--apply", output=output)) == 0
    assert load_dataset(folder).clips == before
    assert main(words("dataset", "filter", "--min-seconds", "5", "--max-seconds", "3", output=output)) == 1
    assert "must be below" in capsys.readouterr().err


def test_speakers_are_listed_and_renamed(output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Project(output / "default").dataset
    assert main(words("dataset", "rename", output=output)) == 0
    text = capsys.readouterr().out
    assert re.match(r"speaker  \d+ clips\n", text)
    assert main(words("dataset", "rename", "--speaker", "speaker=Abebe", output=output)) == 0
    assert {clip.speaker for clip in load_dataset(folder).clips.values()} == {"Abebe"}
    assert main(words("dataset", "rename", "--speaker", "Abebe=a", "--speaker", "Abebe=b", output=output)) == 1
    assert "renamed twice" in capsys.readouterr().err
    assert main(words("dataset", "rename", "--speaker", "Abebe=speaker", output=output)) == 0


@pytest.mark.slow
def test_a_dataset_is_split_again_exported_and_merged(
    output: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words("dataset", "resplit", "--by", "time", output=output)) == 0
    assert main(words("dataset", "export", "zip", str(tmp_path / "all.zip"), output=output)) == 0
    assert (tmp_path / "all.zip").stat().st_size > 100_000
    other = subtitled(tmp_path / "more", 1, first=7)
    assert main(words("prepare", str(other), *PREPARE, output=tmp_path / "b")) == 0
    theirs = str(Project(tmp_path / "b" / "default").dataset)
    assert main(words("dataset", "merge", theirs, "--dry-run", output=output)) == 0
    assert len(load_dataset(Project(output / "default").dataset).recordings) == 3
    assert main(words("dataset", "merge", theirs, output=output)) == 0
    assert len(load_dataset(Project(output / "default").dataset).recordings) == 4
    assert "1 new recordings with" in capsys.readouterr().out


@pytest.mark.parametrize(
    "action", ["validate", "stats", "merge", "resplit", "export", "restore", "filter", "rename", "edit"]
)
def test_every_action_has_a_help_of_its_own(action: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["dataset", action, "--help"])
    assert left.value.code == 0
    assert f"usage: python -m utils dataset {action}" in capsys.readouterr().out


def test_without_a_dataset_it_says_how_to_make_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words("dataset", "stats", output=tmp_path)) == 1
    assert "python -m utils prepare" in capsys.readouterr().err


@pytest.mark.slow
def test_ctrl_c_stops_a_preparation_and_resume_finishes_it(tmp_path: Path) -> None:
    subtitled(tmp_path / "in", 8, seconds=120)
    rest = words("prepare", str(tmp_path / "in"), "--workers", "1", output=tmp_path / "out")
    command = [sys.executable, "-m", "utils", *rest]
    with heard(command, ROOT) as process:
        assert process.stdout
        assert any(re.match(r"progress step=[1-7] ", line) for line in process.stdout)
        process.send_signal(signal.SIGINT)
        assert "ended status=stopped" in process.stdout.read()
    place = Project(tmp_path / "out" / "default")
    finished = len(load_dataset(place.dataset).recordings)
    assert 0 < finished < 8
    (run,) = runs.list_runs(place)
    assert main(words("runs", "resume", run.name, output=tmp_path / "out")) == 0
    assert len(load_dataset(place.dataset).recordings) == 8


@pytest.mark.slow
def test_what_nobody_wrote_down_is_transcribed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").mkdir()
    for number in range(2):
        recording(10, seed=number, speech=generated()).save(tmp_path / "in" / f"talk{number}.wav")
    whisper = ["--whisper-model", str(make_whisper(tmp_path / "whisper")), "--device", "cpu", "--min-confidence", "0"]
    command = words("prepare", str(tmp_path / "in"), *PREPARE, *whisper, output=tmp_path / "out")
    assert main(command) == 0
    clips = load_dataset(Project(tmp_path / "out" / "default").dataset).clips.values()
    assert clips
    assert all(clip.text and clip.scores.confidence is not None for clip in clips)
    assert "prepared added=2" in capsys.readouterr().out


@pytest.mark.slow
def test_a_model_that_is_not_there_is_said_and_nothing_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").mkdir()
    recording(10, speech=generated()).save(tmp_path / "in" / "talk.wav")
    place = ("--whisper-model", str(tmp_path / "nowhere"), "--device", "cpu")
    assert main(words("prepare", str(tmp_path / "in"), *PREPARE, *place, output=tmp_path / "out")) == 1
    assert "nowhere" in capsys.readouterr().out
    assert main(words("prepare", str(tmp_path / "in"), *PREPARE, "--no-transcribe", output=tmp_path / "out")) == 0
    assert len(load_dataset(Project(tmp_path / "out" / "default").dataset).recordings) == 1
