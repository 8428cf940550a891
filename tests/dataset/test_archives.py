"""Archives of strangers are unpacked within limits, and every failure is a typed error."""

import zipfile
from pathlib import Path

import pytest

from tests.dataset.layouts import pack_tar, sound
from utils.dataset.readers import archives
from utils.dataset.readers.archives import unpack
from utils.dataset.readers.facts import ForeignFileError
from utils.dataset.sources import find_recordings


def refused(path: Path, workspace: Path) -> str:
    with pytest.raises(ForeignFileError) as caught:
        unpack(path, workspace)
    return caught.value.fault


def test_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "FREE_BYTES", 1 << 20)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", bytes(30 << 20))
    pack_tar(tmp_path / "b.tar.gz", {"a.txt": bytes(30 << 20)})
    assert [refused(tmp_path / name, tmp_path / "w") for name in ("a.zip", "b.tar.gz")] == ["bomb"] * 2


def test_an_archive_with_too_many_members_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_MEMBERS", 3)
    pack_tar(tmp_path / "a.tar", {f"{number}.wav": b"x" for number in range(4)})
    assert refused(tmp_path / "a.tar", tmp_path / "w") == "many_members"


@pytest.mark.parametrize("name", ["../out.wav", "a/../../out.wav"])
def test_a_member_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    pack_tar(tmp_path / "a.tar", {name: b"x"})
    assert refused(tmp_path / "a.tar", tmp_path / "w") == "damaged"
    assert not list(tmp_path.rglob("out.wav"))


def test_a_damaged_archive_among_the_inputs_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"PK no archive")
    (problem,) = find_recordings([tmp_path], language="am", workspace=tmp_path / "w").problems[:1]
    assert "is damaged" in str(problem.reason)


def test_a_list_of_millions_of_lines_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("utils.dataset.text_files.MAX_LINES", 1000)
    (tmp_path / "list.csv").write_text("a.wav|ሰላም\n" * 1001, encoding="utf-8")
    (tmp_path / "a.wav").write_bytes(sound("a"))
    scan = find_recordings([tmp_path], language="am")
    assert [problem.path.name for problem in scan.problems] == ["list.csv"]
