"""A dataset or project from somebody else whose names and links lead out of its folder."""

import sys
from pathlib import Path

import pytest

from tests.dataset.building import clip
from utils.core.errors import DataError, StorageError
from utils.dataset.clip import Source
from utils.dataset.export import export
from utils.dataset.merge import merge
from utils.dataset.metadata import LANGUAGE_FILE, WAVS
from utils.dataset.store import Store
from utils.runs import find_run
from utils.workspace import projects

LEAD_OUT = ["../../secret.wav", "/etc/passwd", "wavs/../../../secret.wav", "..\\..\\secret.wav", "C:/secret.wav"]
NAMES_OUT = ["../../planted", "/tmp/planted", "..\\planted", "C:planted"]


def made(folder: Path, **changes: str) -> Path:
    """A dataset of one clip, as its maker wants it."""
    (folder / WAVS).mkdir(parents=True)
    (folder / WAVS / "r0-0.wav").write_bytes(b"sound")
    (folder / LANGUAGE_FILE).write_text("am", encoding="utf-8")
    Store(folder).add(Source("r0", "/in/r0.wav"), [clip(0, **changes)])
    return folder


@pytest.mark.parametrize("audio", LEAD_OUT)
def test_a_clip_cannot_have_another_file_read_or_packed(tmp_path: Path, audio: str) -> None:
    (tmp_path / "secret.wav").write_text("secret", encoding="utf-8")
    theirs, mine = made(tmp_path / "theirs" / "dataset", audio=audio), made(tmp_path / "mine")
    for action in (lambda: merge(mine, theirs, dry_run=False), lambda: export(theirs, tmp_path / "out.zip", "zip")):
        with pytest.raises(DataError, match="is outside the dataset"):
            action()
    assert not (tmp_path / "out.zip").exists()
    assert {path.name for path in (mine / WAVS).iterdir()} == {"r0-0.wav"}


@pytest.mark.parametrize("name", NAMES_OUT)
def test_a_clip_cannot_have_another_file_written(tmp_path: Path, name: str) -> None:
    theirs = made(tmp_path / "theirs", id=name)
    with pytest.raises(DataError, match="is outside the dataset"):
        export(theirs, tmp_path / "out" / "lj", "ljspeech")
    assert list(tmp_path.rglob("*planted*")) == []


needs_links = pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside the projects with something in it that shall stay."""
    (tmp_path / "outside" / "runs" / "r1").mkdir(parents=True)
    (tmp_path / "outside" / "kept.txt").write_text("kept", encoding="utf-8")
    return tmp_path / "outside"


@pytest.fixture
def output(tmp_path: Path, outside: Path) -> Path:
    (tmp_path / "output").mkdir()
    return tmp_path / "output"


@needs_links
def test_deleting_a_project_leaves_what_its_links_point_to(output: Path, outside: Path) -> None:
    place = projects.create("mine", output)
    (place.root / "link").symlink_to(outside)
    (place.root / "file").symlink_to(outside / "kept.txt")
    projects.delete(place, output)
    projects.empty_trash(output)
    assert list((output / projects.TRASH).iterdir()) == []
    assert (outside / "kept.txt").read_text(encoding="utf-8") == "kept"


@needs_links
def test_a_copy_keeps_links_and_copies_nothing_through_them(output: Path, outside: Path) -> None:
    place = projects.create("mine", output)
    (place.root / "link").symlink_to(outside)
    copy = projects.duplicate(place, "copy", output)
    assert (copy.root / "link").is_symlink()


@needs_links
def test_a_run_that_is_a_link_to_elsewhere_is_none(output: Path, outside: Path) -> None:
    place = projects.create("mine", output)
    place.runs.mkdir()
    (place.runs / "r1").symlink_to(outside / "runs" / "r1")
    with pytest.raises(StorageError, match="outside"):
        find_run(place, "r1")
