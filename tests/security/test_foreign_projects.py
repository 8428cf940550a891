"""A dataset or project from somebody else whose names and links lead out of its folder."""

import sys
from pathlib import Path

import pytest

from tests.dataset.building import clip
from utils.core.errors import DataError, StorageError
from utils.dataset.bulk_edits import merge
from utils.dataset.clip import Source
from utils.dataset.export import export
from utils.dataset.metadata import LANGUAGE_FILE, WAVS
from utils.dataset.store import Store
from utils.studio import projects
from utils.studio.paths import Project
from utils.studio.runs import find_run

AUDIO_OUTSIDE = ["../../secret.wav", "/etc/passwd", "wavs/../../../secret.wav", "..\\..\\secret.wav", "C:/secret.wav"]
NAMES_OUTSIDE = ["../../planted", "/tmp/planted", "..\\planted", "C:planted"]


def make_dataset(folder: Path, **changes: str) -> Path:
    """A dataset of one clip, as its author wants it."""
    (folder / WAVS).mkdir(parents=True)
    (folder / WAVS / "r0-0.wav").write_bytes(b"sound")
    (folder / LANGUAGE_FILE).write_text("am", encoding="utf-8")
    Store(folder).add(Source("r0", "/in/r0.wav"), [clip(0, **changes)])
    return folder


@pytest.mark.parametrize("audio", AUDIO_OUTSIDE)
def test_a_clip_cannot_have_another_file_read_or_packed(tmp_path: Path, audio: str) -> None:
    (tmp_path / "secret.wav").write_text("secret", encoding="utf-8")
    theirs, mine = make_dataset(tmp_path / "theirs" / "dataset", audio=audio), make_dataset(tmp_path / "mine")
    for action in (lambda: merge(mine, theirs, dry_run=False), lambda: export(theirs, tmp_path / "out.zip", "zip")):
        with pytest.raises(DataError, match="is outside the dataset"):
            action()
    assert not (tmp_path / "out.zip").exists()
    assert {path.name for path in (mine / WAVS).iterdir()} == {"r0-0.wav"}


@pytest.mark.parametrize("name", NAMES_OUTSIDE)
def test_a_clip_cannot_have_another_file_written(tmp_path: Path, name: str) -> None:
    theirs = make_dataset(tmp_path / "theirs", id=name)
    with pytest.raises(DataError, match="is outside the dataset"):
        export(theirs, tmp_path / "out" / "lj", "ljspeech")
    assert list(tmp_path.rglob("*planted*")) == []


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with links to a folder beside the projects."""
    if sys.platform == "win32":
        pytest.skip("links need a right there")
    (tmp_path / "outside" / "runs" / "r1").mkdir(parents=True)
    (tmp_path / "outside" / "file.txt").write_text("stays", encoding="utf-8")
    project = projects.create("mine", tmp_path / "output")
    project.runs.mkdir()
    (project.root / "link").symlink_to(tmp_path / "outside")
    (project.root / "file").symlink_to(tmp_path / "outside" / "file.txt")
    (project.runs / "r1").symlink_to(tmp_path / "outside" / "runs" / "r1")
    return project


def test_deleting_a_project_leaves_what_its_links_point_to(tmp_path: Path, project: Project) -> None:
    projects.delete(project, tmp_path / "output")
    projects.empty_trash(tmp_path / "output")
    assert list((tmp_path / "output" / projects.TRASH).iterdir()) == []
    assert (tmp_path / "outside" / "file.txt").read_text(encoding="utf-8") == "stays"


def test_no_link_is_followed_out_of_a_foreign_project(tmp_path: Path, project: Project) -> None:
    copy = projects.duplicate(project, "copy", tmp_path / "output")
    assert (copy.root / "link").is_symlink()
    with pytest.raises(StorageError, match="outside"):
        find_run(project, "r1")
