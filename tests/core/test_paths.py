"""Names of folders: safe on every system, and nothing leaves the project folders."""

from pathlib import Path

import pytest

from utils.core.errors import NameNotAllowedError, OutsideFolderError, StorageError
from utils.core.paths import expand_home, resolve_inside, validate_name
from utils.studio.paths import list_others, list_projects, project


@pytest.mark.parametrize("name", ["default", "ፕሮጀክት 1", "a.b-c_d", "9 lives"])
def test_ordinary_names_are_taken(name: str) -> None:
    assert validate_name(f" {name} ") == name


@pytest.mark.parametrize(
    "name",
    [
        "", " ", "..", ".hidden", "a/b", "a\\b", "/etc", "C:", "con", "NUL.txt", "a\0b", "a\nb", "a\n", "end.", "-rf",
        "x" * 65, "\U00010280" * 64, "\ud800", None, 5,
    ],
)  # fmt: skip
def test_names_that_could_do_harm_are_refused(name: object) -> None:
    with pytest.raises(StorageError, match=r"cannot be a folder name|name is empty"):
        validate_name(name)


@pytest.mark.parametrize("part", ["../secret", "a/../../secret", "/etc/passwd", "link/secret"])
def test_no_path_leaves_the_folder(tmp_path: Path, part: str) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    with pytest.raises(StorageError, match="outside"):
        resolve_inside(folder, part)
    assert resolve_inside(tmp_path, "a", "b.wav") == tmp_path.resolve() / "a" / "b.wav"


def test_a_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert expand_home("~/a.wav") == tmp_path / "a.wav"


@pytest.mark.parametrize("name", ["~nosuch/a.wav", "~\0/a.wav", "~\ud800/a.wav"])
def test_the_tilde_of_an_unknown_user_stays(name: str) -> None:
    assert expand_home(name) == Path(name)


def test_projects_are_listed_by_name(tmp_path: Path) -> None:
    output = tmp_path / "output"
    for name in ("b", "a", ".models"):
        (output / name).mkdir(parents=True)
    (output / "file").touch()
    assert list_projects(output) == ["a", "b"]
    assert list_projects(tmp_path / "none") == []
    (output / "sly").symlink_to(tmp_path)
    assert list_projects(output) == ["a", "b"]
    assert [type(error) for error in list_others(output)] == [OutsideFolderError]
    with pytest.raises(StorageError, match="outside"):
        project("sly", output)


@pytest.mark.parametrize(
    "name", ["<img src=x onerror=alert(1)>", "my (new) project", ".hidden", "aux", "a" * 80, "a\nb", " mine", "mine "]
)
def test_a_folder_with_an_odd_name_is_no_project(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / "mine").mkdir()
    assert list_projects(tmp_path) == ["mine"]
    assert list_others(tmp_path) == ([] if name == ".hidden" else [NameNotAllowedError(name)])


@pytest.mark.parametrize("part", ["a\nb", "sub/a\rb.wav", "\x1b[2J", "\0", "a\x85b"])
def test_no_path_of_a_user_holds_control_characters(part: str, tmp_path: Path) -> None:
    with pytest.raises(NameNotAllowedError):
        resolve_inside(tmp_path, part)


def test_a_name_that_differs_only_in_capital_letters_opens_no_second_project(tmp_path: Path) -> None:
    (tmp_path / "Linda").mkdir()
    with pytest.raises(StorageError, match="linda and Linda differ only in capital letters"):
        project("linda", tmp_path)
