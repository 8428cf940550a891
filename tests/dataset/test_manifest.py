"""The manifest grows, survives being cut off at any byte, and remembers."""

import dataclasses
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dataset.building import clip
from utils.core.errors import DataError, StorageError
from utils.dataset.append_table import Table, escape, unescape
from utils.dataset.clip import Scores
from utils.dataset.manifest import MANIFEST, RECORDINGS, Manifest, Source, opened

R0 = Source("r0", "/in/r0.wav", 10, 123, 60.0, warnings=("one", "two, with a comma"))
R1 = Source("r1", "/in/r1.wav", 11, 124, 61.5)


def two_recordings(folder: Path) -> Manifest:
    book = Manifest(folder)
    book.add(R0, [clip(0), clip(1, text='a|b\nc\\n"d"\r', status="aside", reason="noisy, very")])
    book.add(R1, [clip(0, recording="r1", scores=Scores())])
    return book


def test_what_is_written_is_read(tmp_path: Path) -> None:
    contents = two_recordings(tmp_path).read()
    assert list(contents.clips.values()) == [
        clip(0),
        clip(1, text='a|b\nc\\n"d"\r', status="aside", reason="noisy, very"),
        clip(0, recording="r1", scores=Scores()),
    ]
    assert contents.recordings == {"r0": R0, "r1": R1}
    assert [found.id for found in contents.kept] == ["r0-0", "r1-0"]


def test_a_row_is_one_line(tmp_path: Path) -> None:
    two_recordings(tmp_path)
    assert len((tmp_path / MANIFEST).read_bytes().splitlines()) == 4


@given(st.text())
def test_any_text_survives_a_cell(text: str) -> None:
    assert unescape(escape(text)) == text
    assert "\n" not in escape(text)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=2, max_size=2))
def test_any_row_survives_a_table(tmp_path_factory: pytest.TempPathFactory, cells: list[str]) -> None:
    table = Table(tmp_path_factory.mktemp("table") / "t.csv", ["a", "b"])
    table.append([cells])
    assert [line.cells for line in table.read()] == [cells]


def test_the_last_row_of_a_clip_counts_and_the_others_are_its_history(tmp_path: Path) -> None:
    book = two_recordings(tmp_path)
    book.change([clip(0, text="አዲስ")])
    assert book.read().clips["r0-0"].text == "አዲስ"
    assert [version.text for version in book.history("r0-0")] == ["ሰላም 0", "አዲስ"]


def test_clips_of_an_unfinished_recording_do_not_count_and_are_cut_off(tmp_path: Path) -> None:
    book = two_recordings(tmp_path)
    before = (tmp_path / MANIFEST).read_bytes()
    book.change([clip(0, recording="r2"), clip(1, recording="r2")])
    assert set(book.read().clips) == {"r0-0", "r0-1", "r1-0"}
    assert book.repair() == book.read()
    assert (tmp_path / MANIFEST).read_bytes() == before


@pytest.mark.parametrize("name", [MANIFEST, RECORDINGS])
def test_a_file_cut_off_at_any_byte_is_read_and_grows_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    book = two_recordings(tmp_path)
    files = {path: path.read_bytes() for path in (tmp_path / MANIFEST, tmp_path / RECORDINGS)}
    monkeypatch.setattr(os, "fsync", lambda _: None)  # hundreds of times, and the disk is not on trial
    for size in range(len(files[tmp_path / name])):
        for path, content in files.items():
            path.write_bytes(content[:size] if path.name == name else content)
        book.repair()
        book.add(dataclasses.replace(R1, recording="r3"), [clip(0, recording="r3")])
        assert "r3-0" in book.read().clips


def test_a_file_with_the_same_content_elsewhere_is_the_same_recording(tmp_path: Path) -> None:
    book = two_recordings(tmp_path)
    book.note(dataclasses.replace(R0, path="/in/copy.wav"))
    contents = book.read()
    assert contents.recordings["r0"].path == "/in/r0.wav"
    assert set(contents.files) == {"/in/r0.wav", "/in/r1.wav", "/in/copy.wav"}


def test_a_bad_file_is_remembered_until_it_is_good(tmp_path: Path) -> None:
    book = Manifest(tmp_path)
    book.note(Source("", "/in/r0.wav", reason="It is empty."))
    assert [source.reason for source in book.read().bad] == ["It is empty."]
    book.add(R0, [clip(0)])
    assert book.read().bad == []


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda text: text.replace("id,recording", "name,recording"), "manifest.csv:1: its columns"),
        (lambda text: text.replace(",kept,", ",lost,", 1), "has status 'lost'"),
        (lambda text: text.replace(",10.0,", ",ten,", 1), "is damaged"),
        (lambda text: text + "just,three,cells\n", "manifest.csv:5: 3 cells instead of 19"),
    ],
)
def test_damage_is_named_with_its_place(tmp_path: Path, damage: object, said: str) -> None:
    book = two_recordings(tmp_path)
    path = tmp_path / MANIFEST
    path.write_bytes(damage(path.read_text(encoding="utf-8")).encode())  # type: ignore[operator]
    with pytest.raises(DataError) as caught:
        book.read()
    assert said in str(caught.value)


def test_windows_line_ends_and_a_mark_from_an_editor_are_read(tmp_path: Path) -> None:
    book = two_recordings(tmp_path)
    before = book.read().clips
    path = tmp_path / MANIFEST
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert book.read().clips == before


def test_a_folder_without_a_dataset_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="utils prepare"):
        opened(tmp_path)


def test_a_full_disk_is_said_and_leaves_the_dataset_readable(small_disk: Path) -> None:
    book = two_recordings(small_disk)
    before = book.read().clips
    with pytest.raises(StorageError, match="No space left"):
        book.change([clip(number, text="ሰላም" * 200) for number in range(1000)])
    assert book.read().clips == before
    book.change([clip(0, text="አዲስ")])
    assert book.read().clips["r0-0"].text == "አዲስ"
