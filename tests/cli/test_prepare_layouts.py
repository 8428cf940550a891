"""`prepare` of whole layouts: clips, or the reason with exit code 1."""

from pathlib import Path

import pytest

from tests.dataset.layouts import BY_NAME, TEXTS, clips, lines, pack_zip, write
from utils.__main__ import main
from utils.dataset.store import load_dataset
from utils.studio import uploads
from utils.studio.paths import Project
from utils.studio.uploads import preview

pytestmark = pytest.mark.slow
QUICK = (
    "--segmenter energy --workers 1 --no-check-texts --min-snr-db -20 --min-speech-ratio 0 --recogniser none".split()
)
Capture = pytest.CaptureFixture[str]


def prepare(output: Path, *words: object) -> int:
    return main(["prepare", *map(str, words), *QUICK, "--output", str(output)])


def test_each_clip_has_the_speaker_of_its_turn(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    BY_NAME["kaldi_segments"].build(tmp_path / "in")
    assert prepare(tmp_path, tmp_path / "in") == 0
    clips_by_text = {clip.text: clip.speaker for clip in load_dataset(Project(tmp_path / "default").dataset).kept}
    assert clips_by_text == {text: f"sp_{name}" for name, text in TEXTS.items()}


def test_a_layout_that_nobody_knows_ends_with_exit_code_1(tmp_path: Path, capsys: Capture) -> None:
    clips(tmp_path / "in")
    write(tmp_path / "in", "texts.xyz", lines("{text}"))
    assert prepare(tmp_path, tmp_path / "in") == 1
    shown = capsys.readouterr()
    assert "texts.xyz" in shown.out + shown.err
    assert "--columns" in shown.out + shown.err


def test_no_clip_in_use_is_an_error_with_the_next_command(tmp_path: Path, capsys: Capture) -> None:
    clips(tmp_path / "in")
    assert prepare(tmp_path, tmp_path / "in") == 1
    shown = capsys.readouterr()
    assert "python -m utils dataset stats --project default" in shown.out + shown.err
    assert "empty text" in shown.out + shown.err


@pytest.mark.parametrize(
    "name", ["kaldi", "txt_in_another_folder", "csv_with_times", "video_with_subtitles", "huggingface_audiofolder"]
)
def test_a_layout_is_prepared_from_an_upload(tmp_path: Path, name: str) -> None:
    """A zip of a layout goes through what the page does with an upload."""
    (tmp_path / "in").mkdir()
    BY_NAME[name].build(tmp_path / "in")
    project = Project(tmp_path / "out" / "mine")
    packed = pack_zip(tmp_path / "in", tmp_path / "upload.zip")
    saved = uploads.save_uploads(project, [str(packed)], uploads.LISTS)
    assert saved.errors == ()
    (uploaded,) = uploads.read_inputs(project)
    path = uploads.absolute_input(project, uploaded)
    assert preview(path).has_tables
    assert prepare(tmp_path / "out", path, "--project", "mine") == 0
    found = load_dataset(project.dataset)
    texts = " ".join(clip.text for clip in found.clips.values())
    assert [text for text in TEXTS.values() if text not in texts] == []
