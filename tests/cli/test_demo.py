"""The demonstration: its recording, and the whole way from it to a page."""

import re
from pathlib import Path

import pytest

from utils.__main__ import main
from utils.cli import demo
from utils.cli.demo import PAGE
from utils.config import TrainConfig
from utils.media import audio
from utils.studio import projects
from utils.studio.facts import ProjectError


def test_a_project_of_the_same_name_that_is_no_demonstration_is_left_alone(tmp_path: Path) -> None:
    own = projects.create(demo.NAME, tmp_path)
    with pytest.raises(ProjectError, match="a project of your own"):
        demo.new_project(tmp_path)
    assert own.root.is_dir()


@pytest.mark.long
def test_one_command_runs_the_whole_workflow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "SENTENCES", demo.SENTENCES[:2])
    settings = tmp_path / "short.yaml"
    short = TrainConfig(version="tiny", num_epochs=1, max_audio_length=3.0, sample_texts="-")
    settings.write_text(short.to_yaml(), encoding="utf-8")
    assert main(["demo", "--output", str(tmp_path / "output"), "--settings", str(settings)]) == 0
    folder = tmp_path / "output" / "demo"
    page = (folder / PAGE).read_text(encoding="utf-8")
    assert str(folder / PAGE) in capsys.readouterr().out
    # the reference, and two sentences of both models; the curve, and four spectrograms
    assert [page.count(part) for part in ("<audio", "<img", 'src="data:')] == [5, 5, 10]
    assert not re.search(r"https?://", page)
    assert demo.SENTENCES[0] in page
    assert audio.duration(folder / "sentence-1.wav") > 0.1
    assert demo.new_project(tmp_path / "output").root == folder
    assert not (folder / PAGE).exists()  # the earlier one lies in the trash
