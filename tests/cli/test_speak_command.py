"""`python -m utils speak`, as a person types it, with a small model of random weights."""

import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from utils.__main__ import main
from utils.media.rates import OUTPUT_RATE
from utils.speech.synthesizer import Caches, Synthesizer

Speak = Callable[..., int]
Capture = pytest.CaptureFixture[str]

pytestmark = pytest.mark.slow


@pytest.fixture
def speak(speaking_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Speak:
    """The command, with a model that says half a second of each sentence."""
    monkeypatch.setattr("utils.speech.synthesizer.max_codes", lambda *_: 12)
    monkeypatch.setattr("utils.studio.loading.caches", lambda _: Caches(tmp_path / "voices"))
    monkeypatch.chdir(tmp_path)
    usual = ["--model", str(speaking_folder), "--precision", "fp32", "--tries", "1", "--no-trim"]
    return lambda *words: main(["speak", *words, *usual])


@pytest.mark.skipif(sys.platform != "linux", reason="Linux has a file that is always full")
def test_a_text_is_spoken_even_if_messages_cannot_be_written(
    speak: Speak, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, Path("/dev/full").open("wb", buffering=0) as full:
        patch.setattr("sys.stderr", io.TextIOWrapper(full, write_through=True))
        assert speak("ሰላም ለዓለም", "--out", "hello.wav") == 0
    assert soundfile.info(tmp_path / "hello.wav").frames


@pytest.mark.parametrize("name", ["hello.wav", "hello.mp3"])
def test_a_text_becomes_a_sound_file(speak: Speak, tmp_path: Path, name: str) -> None:
    assert speak("ሰላም ለዓለም", "--out", name) == 0
    assert soundfile.info(tmp_path / name).duration == pytest.approx(12 * 1024 / 22_050, abs=0.1)


def test_a_full_disk_is_told_by_the_file_that_was_asked_for(speak: Speak, small_disk: Path, capsys: Capture) -> None:
    (small_disk / "filler").write_bytes(bytes(500 * 1024))
    assert speak("ሰላም ለዓለም", "--out", str(small_disk / "hello.wav")) == 1
    assert f"DiskFullError: {small_disk / 'hello.wav'} cannot be written" in capsys.readouterr().err


def test_the_newest_model_is_looked_for_among_the_projects_that_are_named(tmp_path: Path, capsys: Capture) -> None:
    assert main(["speak", "ሰላም", "--output", str(tmp_path)]) == 1
    assert f"{tmp_path} has no finished model" in capsys.readouterr().err


def test_a_sound_file_is_no_folder_with_projects(tmp_path: Path, capsys: Capture) -> None:
    assert main(["speak", "ሰላም", "--output", str(tmp_path / "hello.wav")]) == 1
    assert f"Use --out {tmp_path / 'hello.wav'}." in capsys.readouterr().err
    assert not (tmp_path / "hello.wav").exists()


def test_a_file_becomes_sound_captions_and_chapters(speak: Speak, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "book.md").write_text("# ምዕራፍ አንድ\n\nሰላም ለዓለም። እንዴት ነህ?\n\n🙂", encoding="utf-8")
    words = ["--file", "book.md", "--out", "book.wav", "--captions", "book.srt", "--chapters", "book.json"]
    assert speak(*words) == 0
    output = capsys.readouterr()
    assert "book.wav: " in output.out
    assert "3/3" in output.err
    assert "Skipped" in output.err
    assert (tmp_path / "book.srt").read_text(encoding="utf-8").count("-->") == 3
    assert "ምዕራፍ አንድ" in (tmp_path / "book.json").read_text(encoding="utf-8")


def test_a_report_tells_what_was_checked(speak: Speak, tmp_path: Path) -> None:
    assert speak("ሰላም ለዓለም። እንዴት ነህ?", "--out", "hello.wav", "--report", "report.json") == 0
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert [each["text"] for each in report["sentences"]] == ["ሰላም ለዓለም።", "እንዴት ነህ?"]
    assert "endless" in [flag["kind"] for flag in report["sentences"][0]["flags"]]
    assert report["found"] <= report["total"]


def test_subtitles_become_sound_of_their_length(speak: Speak, tmp_path: Path) -> None:
    (tmp_path / "in.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nሰላም\n", encoding="utf-8")
    assert speak("--srt", "in.srt", "--out", "dub.wav") == 0
    sound, rate = soundfile.read(tmp_path / "dub.wav")
    assert (len(sound), rate) == (2 * OUTPUT_RATE, OUTPUT_RATE)
    assert not sound[: round(0.9 * OUTPUT_RATE)].any()


class ClosedPipe(io.BytesIO):
    def write(self, _: Any) -> int:
        raise BrokenPipeError


@pytest.mark.parametrize(("words", "header"), [([], 44), (["--raw"], 0)])
def test_a_stream_goes_to_the_standard_output(
    speak: Speak, monkeypatch: pytest.MonkeyPatch, capsys: Capture, words: list[str], header: int
) -> None:
    pipe = io.BytesIO()
    monkeypatch.setattr("sys.stdout", output := io.TextIOWrapper(pipe))
    assert speak("ሰላም", "--stream", *words) == 0
    samples = np.frombuffer(pipe.getvalue()[header:], "<i2")
    assert len(samples) == pytest.approx(12 * 1024 * OUTPUT_RATE / 22_050, abs=OUTPUT_RATE * 0.01)
    assert pipe.getvalue()[:4] == b"RIFF" or not header
    output.detach()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(ClosedPipe()))
    assert speak("ሰላም", "--stream", *words) == 1
    assert "closed the pipe" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("batch", "difference"),
    [("1", 0.0), ("2", 1 / 32768)],  # products of one and of several rows are rounded in another order
)
def test_the_same_command_continues_after_ctrl_c(
    batch: str, difference: float, speak: Speak, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    words = ["ሰላም። እንዴት ነህ? ደህና ነኝ።", "--batch-size", batch, "--out"]
    assert speak(*words, "whole.wav") == 0
    original, spoken = Synthesizer.utterances, list[str]()

    def interrupted(*arguments: Any) -> Iterator[Any]:
        for utterance in original(*arguments):
            spoken.append(utterance.sentence.text)
            yield utterance
            if len(spoken) == 2:
                raise KeyboardInterrupt

    monkeypatch.setattr(Synthesizer, "utterances", interrupted)
    assert speak(*words, "half.wav") == 130
    assert 0 < soundfile.info(tmp_path / "half.wav").duration < soundfile.info(tmp_path / "whole.wav").duration
    assert "interrupted" in capsys.readouterr().out
    assert speak(*words, "half.wav") == 0
    assert len(spoken) == 3  # the third sentence alone was missing
    half, whole = (soundfile.read(tmp_path / name)[0] for name in ("half.wav", "whole.wav"))
    assert half.shape == whole.shape
    assert np.abs(half - whole).max() <= difference
    assert not list(tmp_path.glob(".half*"))
