"""The demonstration: its recording, and the whole way from it to a page."""

import re
from pathlib import Path

import pytest

from tools.tiny_voice.corpus import read_sentences
from utils.__main__ import main
from utils.cli import demo
from utils.cli.demo import PAGE
from utils.config import TrainConfig
from utils.core.errors import RunError
from utils.dataset.subtitles import read_cues
from utils.media import audio
from utils.workspace import projects, sample_project


def test_the_recording_is_three_minutes_of_sentences_that_judge_nothing() -> None:
    cues = read_cues(sample_project.DATA / sample_project.SUBTITLE_FILE).cues
    assert {cue.text for cue in cues} <= set(read_sentences()["train"])
    assert 170 < audio.duration(sample_project.DATA / sample_project.AUDIO_FILE) < 181
    assert cues[-1].span.end < audio.duration(sample_project.DATA / sample_project.AUDIO_FILE)
    assert (sample_project.DATA / sample_project.AUDIO_FILE).stat().st_size < 3_000_000


def test_what_it_says_was_never_learnt_from() -> None:
    assert not set(demo.SENTENCES) & set(read_sentences()["train"])


def test_a_project_of_that_name_that_is_no_demonstration_is_left_alone(tmp_path: Path) -> None:
    own = projects.create(demo.NAME, tmp_path)
    with pytest.raises(RunError, match="a project of your own") as caught:
        demo.new_project(tmp_path)
    assert caught.value.hint
    assert own.root.is_dir()


@pytest.mark.slow
def test_one_command_runs_the_whole_workflow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "SENTENCES", demo.SENTENCES[:1])
    settings = tmp_path / "short.yaml"
    short = TrainConfig(version="tiny", num_epochs=1, max_audio_length=3.0, sample_texts="-")
    settings.write_text(short.to_yaml(), encoding="utf-8")
    words = ["demo", "--output", str(tmp_path / "output"), "--settings", str(settings)]
    assert main(words) == 0
    folder = tmp_path / "output" / "demo"
    page = (folder / PAGE).read_text(encoding="utf-8")
    assert str(folder / PAGE) in capsys.readouterr().out
    # the reference, and a sentence of both models; the curve, and two spectrograms
    assert [page.count(part) for part in ("<audio", "<img", 'src="data:')] == [3, 3, 6]
    assert not re.search(r"https?://", page)
    assert demo.SENTENCES[0] in page
    assert audio.duration(folder / "sentence-1.wav") > 0.1
    assert demo.new_project(tmp_path / "output").root == folder
    assert not (folder / PAGE).exists()  # the earlier one lies in the trash
