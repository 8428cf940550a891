"""Files are replaced whole or not at all; a full disk is one clear error."""

import errno
import json
import multiprocessing
import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable
from multiprocessing.pool import ThreadPool
from pathlib import Path

import pytest

from tests.waiting import wait_for
from utils.core import storage
from utils.core.errors import StorageError
from utils.core.paths import TINY_MODEL
from utils.core.storage import (
    file_lock,
    link_or_copy,
    link_or_copy_atomically,
    make_unique_folder,
    read_json,
    storage_error,
    timestamp_name,
    write_atomically,
)


def raising(code: int, *, leaving: bytes = b"") -> Callable[[Path, Path], None]:
    def fail(_: Path, target: Path) -> None:
        if leaving:
            target.write_bytes(leaving)
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize(
    ("number", "hint"),
    [(errno.EACCES, "permissions"), (errno.ENOSPC, "Free some space"), (errno.ENAMETOOLONG, "the path")],
)
def test_the_hint_of_a_failed_write_fits_its_reason(number: int, hint: str) -> None:
    assert hint in storage_error(Path("file"), OSError(number, "reason")).hint


def test_a_disk_that_may_not_be_written_is_not_a_full_one(small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with pytest.raises(StorageError, match="Read-only file system") as caught:
        write_atomically(small_disk / "state.json", "new")
    assert "permissions" in caught.value.hint


def test_a_file_is_replaced_whole_or_not_at_all(small_disk: Path) -> None:
    path = small_disk / "state.json"
    write_atomically(path, "old")
    write_atomically(path, "ሰላም")
    with pytest.raises(StorageError, match="No space left on device"):
        write_atomically(path, "x" * 2_000_000)
    assert path.read_text(encoding="utf-8") == "ሰላም"
    assert [child.name for child in small_disk.iterdir()] == ["state.json"]


def test_a_new_folder_is_nobody_elses(tmp_path: Path) -> None:
    wanted = tmp_path / "made" / "folder"
    assert [make_unique_folder(wanted).name for _ in range(3)] == ["folder", "folder-2", "folder-3"]
    (tmp_path / "made" / "folder-4").touch()
    with ThreadPool(8) as pool:
        names = {folder.name for folder in pool.map(make_unique_folder, [wanted] * 40)}
    assert names == {f"folder-{number}" for number in range(5, 45)}
    with pytest.raises(StorageError, match="cannot be written"):
        make_unique_folder(tmp_path / "made" / "folder-4" / "in a file")


def test_later_times_have_later_names() -> None:
    names = [timestamp_name(1_800_000_000 + seconds) for seconds in (0, 0.002, 0.999, 1, 61, 86_400)]
    assert names == sorted(set(names))


def test_a_lock_is_held_by_one_thread_at_a_time(tmp_path: Path) -> None:
    holders: list[int] = []

    def count_holders(number: int) -> int:
        with file_lock(tmp_path / ".lock"):
            holders.append(number)
            time.sleep(0.01)
            count = len(holders)
            holders.remove(number)
        return count

    with ThreadPool(8) as pool:
        assert pool.map(count_holders, range(8)) == [1] * 8


def hold_for_ever(path: Path, ready: str) -> None:
    with file_lock(path):
        Path(ready).touch()
        time.sleep(60)


def test_a_lock_is_free_once_its_holder_is_killed(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    holder = multiprocessing.get_context("spawn").Process(target=hold_for_ever, args=(tmp_path / ".lock", str(ready)))
    holder.start()
    wait_for(ready.exists, 60)
    holder.kill()
    holder.join()
    began = time.monotonic()
    with file_lock(tmp_path / ".lock"):
        assert time.monotonic() - began < 5


@pytest.mark.parametrize("can_link", [True, False])
def test_a_file_is_linked_or_copied_with_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, can_link: bool
) -> None:
    if not can_link:
        monkeypatch.setattr(os, "link", raising(errno.EPERM))
    source, target = tmp_path / "a.wav", tmp_path / "b.wav"
    source.write_bytes(b"sound")
    os.utime(source, (1, 1))
    link_or_copy(source, target)
    assert target.samefile(source) == can_link
    assert (target.read_bytes(), target.stat().st_mtime) == (b"sound", 1)


def test_files_of_the_program_are_copied_not_linked(tmp_path: Path) -> None:
    link_or_copy(TINY_MODEL / "about.json", tmp_path / "about.json")
    assert not (tmp_path / "about.json").samefile(TINY_MODEL / "about.json")


def test_a_copy_that_fails_half_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = tmp_path / "a.wav", tmp_path / "copies" / "a.wav"
    source.write_bytes(b"sound")
    target.parent.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(os, "link", raising(errno.EXDEV))
        patch.setattr(shutil, "copyfile", raising(errno.ENOSPC, leaving=b"so"))
        with pytest.raises(StorageError, match="No space left"):
            link_or_copy_atomically(source, target)
        assert list(target.parent.iterdir()) == []
    for _ in range(2):  # an existing link to the same file is no error
        link_or_copy_atomically(source, target)
    assert [(path.name, path.read_bytes()) for path in target.parent.iterdir()] == [("a.wav", b"sound")]


@pytest.mark.parametrize("content", [b"{", b"\xff", b"[" * 100_000, b"9" * 5000])
def test_whatever_is_wrong_with_json_is_a_value_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "odd.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"."):
        read_json(tmp_path / "odd.json")


DOCUMENT = {"step": 3, "name": "ሰላም", "clips": [["a", 1.5, None], ["b", 2.0, True]]}


def test_one_changed_byte_of_a_document_is_found(tmp_path: Path) -> None:
    path, rng = tmp_path / "document.json", random.Random(1)
    storage.write_document(path, DOCUMENT)
    content, refused = path.read_bytes(), 0
    for _ in range(1000):
        changed = bytearray(content)
        changed[rng.randrange(len(content))] ^= rng.randrange(1, 256)
        path.write_bytes(changed)
        try:
            assert storage.read_document(path) == DOCUMENT  # between two values, bytes mean nothing
        except ValueError:
            refused += 1
    assert refused > 900


@pytest.mark.parametrize("key", ["digest", "content"])
def test_a_document_without_one_of_its_parts_is_refused(key: str, tmp_path: Path) -> None:
    path = tmp_path / "document.json"
    storage.write_document(path, DOCUMENT)
    stored = json.loads(path.read_text(encoding="utf-8"))
    del stored[key]
    path.write_text(json.dumps(stored), encoding="utf-8")
    with pytest.raises(ValueError, match="has changed"):
        storage.read_document(path)


def test_a_document_of_1_1_is_read_unverified(tmp_path: Path) -> None:
    path = tmp_path / "document.json"
    path.write_text(json.dumps(DOCUMENT), encoding="utf-8")
    assert storage.read_document(path) == DOCUMENT
