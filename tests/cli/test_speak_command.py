"""`python -m utils speak`, as a person types it, with a small model of random weights."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from tests.speech import amharic_model
from utils.__main__ import main
from utils.media.rates import OUTPUT_RATE

Speak = Callable[..., int]


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return amharic_model.build(tmp_path_factory.mktemp("spoken"))


@pytest.fixture
def speak(ready: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Speak:
    """The command, with a model that says half a second of each sentence."""
    monkeypatch.setattr("utils.speech.synthesizer.max_codes", lambda *_: 12)
    monkeypatch.setattr("utils.speech.voices.VOICES", tmp_path / "voices")
    monkeypatch.chdir(tmp_path)
    usual = ["--model", str(ready), "--precision", "fp32", "--tries", "1", "--no-trim"]
    return lambda *words: main(["speak", *words, *usual])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hello.wav", "hello.mp3"])
def test_a_text_becomes_a_sound_file(speak: Speak, tmp_path: Path, name: str) -> None:
    assert speak("ሰላም ለዓለም", "--out", name) == 0
    assert soundfile.info(tmp_path / name).duration == pytest.approx(12 * 1024 / 22_050, abs=0.1)


@pytest.mark.slow
def test_a_file_becomes_sound_captions_and_chapters(
    speak: Speak, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "book.txt").write_text("# ምዕራፍ አንድ\n\nሰላም ለዓለም። እንዴት ነህ?\n\n🙂", encoding="utf-8")
    words = ["--file", "book.txt", "--out", "book.wav", "--captions", "book.srt", "--chapters", "book.json"]
    assert speak(*words) == 0
    said = capsys.readouterr()
    assert "book.wav: " in said.out
    assert "3/3" in said.err
    assert "Skipped" in said.err
    assert (tmp_path / "book.srt").read_text(encoding="utf-8").count("-->") == 3
    assert "ምዕራፍ አንድ" in (tmp_path / "book.json").read_text(encoding="utf-8")


@pytest.mark.slow
def test_subtitles_become_sound_of_their_length(speak: Speak, tmp_path: Path) -> None:
    (tmp_path / "in.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nሰላም\n", encoding="utf-8")
    assert speak("--srt", "in.srt", "--out", "dub.wav") == 0
    sound, rate = soundfile.read(tmp_path / "dub.wav")
    assert (len(sound), rate) == (2 * OUTPUT_RATE, OUTPUT_RATE)
    assert not sound[: round(0.9 * OUTPUT_RATE)].any()


@pytest.mark.slow
@pytest.mark.parametrize(("words", "header"), [([], 44), (["--raw"], 0)])
def test_a_stream_goes_to_the_standard_output(
    speak: Speak, monkeypatch: pytest.MonkeyPatch, words: list[str], header: int
) -> None:
    pipe = io.BytesIO()
    monkeypatch.setattr("sys.stdout", Terminal(pipe))
    assert speak("ሰላም", "--stream", *words) == 0
    samples = np.frombuffer(pipe.getvalue()[header:], "<i2")
    assert len(samples) == pytest.approx(12 * 1024 * OUTPUT_RATE / 22_050, abs=OUTPUT_RATE * 0.01)
    assert pipe.getvalue()[:4] == b"RIFF" or not header


@pytest.mark.slow
def test_a_closed_pipe_is_told_and_ends_the_work(
    speak: Speak, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout", Terminal(Closed()))
    assert speak("ሰላም", "--stream") == 1
    assert "closed the pipe" in capsys.readouterr().err


@pytest.mark.slow
def test_what_was_said_before_ctrl_c_is_written(
    speak: Speak, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: Any) -> Iterator[Any]:
        yield from original(*_)
        raise KeyboardInterrupt

    from utils.speech.synthesizer import Synthesizer

    original = Synthesizer.utterances
    monkeypatch.setattr(Synthesizer, "utterances", interrupted)
    assert speak("ሰላም", "--out", "half.wav") == 130
    assert soundfile.info(tmp_path / "half.wav").duration > 0
    assert "interrupted" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "text is empty"),
        (["ሰላም", "--out", "x.xyz"], "x.xyz"),
        (["ሰላም", "--model", "nowhere"], "nowhere"),
        (["--file", "missing.txt"], "missing.txt"),
        (["ሰላም", "--speed", "9"], "speed"),
    ],
)
def test_what_is_wrong_is_one_sentence_before_any_work(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["speak", *words]) == 1
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error


@pytest.mark.slow
def test_the_precision_is_compared_with_fp32(
    ready: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("utils.speech.synthesizer.max_codes", lambda *_: 12)
    monkeypatch.setattr("utils.speech.voices.VOICES", tmp_path / "voices")
    main(["check-precision", "ሰላም ለዓለም", "--model", str(ready), "--precision", "int8"])
    assert "int8" in capsys.readouterr().out


class Terminal(io.TextIOWrapper):
    """Stands for the standard output."""


class Closed(io.BytesIO):
    """A pipe whose reader has gone."""

    def write(self, _: Any) -> int:
        raise BrokenPipeError
