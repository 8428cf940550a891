"""Archives of strangers are unpacked within limits, and every failure is a typed error."""

import contextlib
import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.dataset.layouts import pack_tar, sound
from utils.core.errors import AmharicTtsError
from utils.dataset.readers import archives
from utils.dataset.readers.archives import unpack
from utils.dataset.readers.facts import FileFault, ForeignFileError
from utils.dataset.sources import find_recordings


def refused(path: Path, workspace: Path) -> FileFault:
    with pytest.raises(ForeignFileError) as caught:
        unpack(path, workspace)
    return caught.value.fault


def test_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "FREE_BYTES", 1 << 20)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", bytes(30 << 20))
    pack_tar(tmp_path / "b.tar.gz", {"a.txt": bytes(30 << 20)})
    assert [refused(tmp_path / name, tmp_path / "w") for name in ("a.zip", "b.tar.gz")] == [FileFault.BOMB] * 2


def test_an_archive_with_too_many_members_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_MEMBERS", 3)
    pack_tar(tmp_path / "a.tar", {f"{number}.wav": b"x" for number in range(4)})
    assert refused(tmp_path / "a.tar", tmp_path / "w") is FileFault.MANY_MEMBERS


@pytest.mark.parametrize("name", ["../out.wav", "a/../../out.wav"])
def test_a_member_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    pack_tar(tmp_path / "a.tar", {name: b"x"})
    assert refused(tmp_path / "a.tar", tmp_path / "w") is FileFault.DAMAGED
    assert not list(tmp_path.rglob("out.wav"))


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz", "tar.bz2", "tar.xz"])
def test_a_damaged_archive_is_a_typed_error_whatever_byte_is_changed(tmp_path: Path, kind: str) -> None:
    random = np.random.default_rng(7)
    file = io.BytesIO()
    files = {"a.wav": sound("a"), "a.txt": "ሰላም".encode() * 40}
    if kind == "zip":
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
    else:
        with tarfile.open(fileobj=file, mode=f"w:{kind.partition('.')[2]}") as packed:  # type: ignore[call-overload]
            for name, content in files.items():
                about = tarfile.TarInfo(name)
                about.size = len(content)
                packed.addfile(about, io.BytesIO(content))
    whole = file.getvalue()
    for number in range(60):
        damaged = bytearray(whole)
        for at in random.integers(0, len(whole), 1 + number % 4):
            damaged[at] = int(random.integers(256))
        path = tmp_path / f"{number}.{kind}"
        path.write_bytes(damaged if number % 3 else damaged[: int(random.integers(1, len(whole)))])
        with contextlib.suppress(AmharicTtsError):
            unpack(path, tmp_path / "w")


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
