"""The store of a dataset: what is written is read, changes are whole, what the page shows."""

import contextlib
import dataclasses
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

from tests.dataset.building import clip
from tests.ui.data_folders import example_clip
from tests.waiting import wait_for
from utils.core.errors import DataError, StorageError
from utils.core.facts import Unrecognised
from utils.dataset import background_counts, editor, statistics
from utils.dataset.clip import Clip, Source
from utils.dataset.errors import DatasetError
from utils.dataset.facts import Bad, CueDiffers
from utils.dataset.metadata import list_files, read_list, write_lists
from utils.dataset.seal import SEAL
from utils.dataset.store import PAGE_SIZE, Dataset, Store, Total, View, load_dataset
from utils.media.facts import AudioFileError
from utils.recognition.facts import BandLimited
from utils.recognition.levels import ClipScores

R0 = Source("r0", "/in/r0.wav", 10, 123, 60.0, warnings=(CueDiffers(1.5, "empty", "a\u2028b\nc"), BandLimited(4000.0)))
R1 = Source("r1", "/in/r1.wav", 11, 124, 61.5)
EXCLUDED = clip(1, text='a|b\nc\\n"d"\r', status="excluded", reason="noisy", note="very")


def two_recordings(folder: Path) -> Store:
    store = Store(folder)
    store.add(R0, [clip(0), EXCLUDED])
    store.add(R1, [clip(0, recording="r1", scores=ClipScores())])
    return store


def test_what_is_written_is_read(tmp_path: Path) -> None:
    dataset = two_recordings(tmp_path / "a").read()
    assert list(dataset.clips.values()) == [clip(0), EXCLUDED, clip(0, recording="r1", scores=ClipScores())]
    assert dataset.recordings == {"r0": R0, "r1": R1}
    assert [[clip.id for clip in clips] for clips in (dataset.kept, dataset.excluded)] == [["r0-0", "r1-0"], ["r0-1"]]
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert load_dataset(tmp_path / "b") == dataset


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE clips SET text = 'ሰላም ነው!' WHERE id = 'r0-0'",
        "DELETE FROM sources",
        "UPDATE meta SET value = 9 WHERE name = 'pace'",
    ],
)
def test_a_changed_database_is_refused(tmp_path: Path, statement: str) -> None:
    store = two_recordings(tmp_path)
    write_lists(tmp_path)
    before = store.path.read_bytes()
    with contextlib.closing(sqlite3.connect(store.path)) as db:
        db.execute(statement)
        db.commit()
    changed = bytearray(store.path.read_bytes())
    for part in (slice(24, 28), slice(92, 96)):  # a damaged disk does not count its changes
        changed[part] = before[part]
    store.path.write_bytes(changed)
    with pytest.raises(DatasetError) as error:
        store.read()
    assert error.value.problem == "changed"
    with pytest.raises(DatasetError):
        store.put([clip(5)])
    (tmp_path / SEAL).unlink()
    store.read()


def test_a_database_that_another_program_has_changed_is_read(tmp_path: Path) -> None:
    store = two_recordings(tmp_path)
    write_lists(tmp_path)
    with contextlib.closing(sqlite3.connect(store.path)) as db:
        db.execute("UPDATE clips SET text = 'ሰላም' WHERE id = 'r0-0'")
        db.commit()
    assert store.read().clips["r0-0"].text == "ሰላም"


def test_what_version_1_1_stored_as_sentences_is_read(tmp_path: Path) -> None:
    store = two_recordings(tmp_path)
    with store.transaction() as db:
        db.execute("UPDATE sources SET warnings = 'It is loud.', reason = 'It is damaged.' WHERE recording = 'r1'")
        db.execute("UPDATE clips SET reason = 'a cough', note = '' WHERE id = 'r0-1'")
    dataset = store.read()
    assert [(source.bad, source.warnings) for source in dataset.failed] == [
        (Bad(Path("/in/r1.wav"), "It is damaged."), (Unrecognised("warning", "It is loud."),))
    ]
    assert (dataset.clips["r0-1"].reason, dataset.clips["r0-1"].note) == ("other", "a cough")
    assert store.reasons() == {"a cough": 1}
    assert store.page(View("all", "a cough"), 1).total == 1


def test_several_changes_are_made_together_or_not_at_all(tmp_path: Path) -> None:
    store = two_recordings(tmp_path)
    before, revision = store.read(), store.meta("revision")
    with pytest.raises(DataError), store.transaction():  # noqa: PT012
        store.put([clip(0, text="አዲስ")])
        store.note(dataclasses.replace(R0, path="/in/copy.wav"))
        load_dataset(tmp_path / "nowhere")
    assert (store.read(), store.meta("revision")) == (before, revision)
    store.put([clip(0, text="አዲስ")])
    assert next(iter(store.read().clips.values())).text == "አዲስ"  # it keeps its position
    assert store.meta("revision") == revision + 1


def test_every_file_has_its_latest_state(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.read().clips == {}
    with pytest.raises(DataError, match="utils prepare"):
        load_dataset(tmp_path)
    assert list(tmp_path.iterdir()) == []  # reading creates nothing
    empty = Bad(Path("/in/r0.wav"), AudioFileError(Path("/in/r0.wav"), "empty"))
    store.note(Source("", "/in/r0.wav", bad=empty))
    assert [source.bad for source in store.read().failed] == [empty]
    store.add(R0, [clip(0)])
    store.note(dataclasses.replace(R0, path="/in/copy.wav"))
    dataset = store.read()
    assert dataset.failed == []
    assert dataset.recordings["r0"].path == "/in/r0.wav"
    assert set(dataset.files) == {"/in/r0.wav", "/in/copy.wav"}


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ("UPDATE clips SET status = 'lost' WHERE id = 'r0-0'", "status 'lost'"),
        ("UPDATE clips SET start = 'ten'", "is damaged"),
        ("DROP TABLE sources", "is damaged"),
        ("PRAGMA user_version = 99", "format 99"),
        (b"no database" * 1000, "is damaged"),
    ],
)
def test_damage_is_reported(tmp_path: Path, damage: str | bytes, reason: str) -> None:
    store = two_recordings(tmp_path)
    if isinstance(damage, bytes):
        store.path.write_bytes(damage)
    else:
        with contextlib.closing(sqlite3.connect(store.path, isolation_level=None)) as db:
            db.execute(damage)
    with pytest.raises(DataError, match=reason):
        load_dataset(tmp_path)


def test_a_full_disk_changes_nothing(small_disk: Path) -> None:
    store = two_recordings(small_disk)
    before = store.read()
    with pytest.raises(StorageError, match="full"):
        store.put([clip(number, text="ሰላም" * 2000) for number in range(2000)])
    assert store.read() == before
    store.put([clip(0, text="አዲስ")])
    assert store.read().clips["r0-0"].text == "አዲስ"


WRITE_FOREVER = """
import sys
import time
from pathlib import Path
from tests.dataset.building import clip
from utils.dataset.seal import SEAL
from utils.dataset.store import PAGE_SIZE, Store, Total, View
store = Store(Path(sys.argv[1]))
for count in range(1, 1_000_000):
    store.put([clip(number, text=str(count)) for number in range(50)])
    print(count, flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_killed_writer_leaves_every_change_that_it_reported(tmp_path: Path) -> None:
    for _ in range(5):
        words = [sys.executable, "-c", WRITE_FOREVER, str(tmp_path)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            lines = [writer.stdout.readline() for _ in range(20)]
            os.kill(writer.pid, signal.SIGKILL)
            lines += writer.stdout.readlines()
        done = max(int(line) for line in lines if line.endswith("\n"))
        (text,) = {clip.text for clip in Store(tmp_path).read().clips.values()}
        assert int(text) in (done, done + 1)


def test_lists_follow_the_store(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.add(R0, [clip(0, split="train"), EXCLUDED])
    write_lists(tmp_path, "am")
    (train, _) = list_files(tmp_path)
    train.write_text(f"{train.read_text(encoding='utf-8')}wavs/by-hand.wav|ሰላም|speaker\n", encoding="utf-8")
    write_lists(tmp_path)
    assert [row.audio for row in read_list(train)] == ["wavs/r0-0.wav", "wavs/by-hand.wav"]
    store.put([clip(0, text='"አዲስ|ቃል"\nዛሬ', speaker="a|b", split="train")])
    write_lists(tmp_path)
    assert [(row.text, row.speaker) for row in read_list(train)] == [("አዲስ ቃል ዛሬ", "a b")]


def stored(folder: Path, clips: list[Clip]) -> Store:
    store = Store(folder)
    store.add(Source("0" * 16, "/in/talk.wav"), clips)
    store.rank()
    return store


def test_a_page_has_the_clips_that_were_asked_for(tmp_path: Path) -> None:
    fifty = stored(tmp_path, [example_clip(number) for number in range(50)])  # every tenth is excluded
    totals = {View(): 45, View("all"): 50, View("excluded"): 5, View("all", "noisy"): 5}
    totals |= {View("all", search="ቡና"): 10, View("all", search="0000"): 50, View("all", search="%"): 0}
    assert {view: fifty.page(view, 1).total for view in totals} == totals
    for order, first in {"noisiest": "0-0", "recording": "0-0", "worst": "-9"}.items():
        assert fifty.page(View("all", order=order), 1).clips[0].id.endswith(first)
    pages = [fifty.page(View("all"), number) for number in (1, 2, 3)]
    assert [page.number for page in pages] == [1, 2, 3]
    assert len({clip.id for page in pages for clip in page.clips}) == 50
    assert fifty.page(View("all"), 99).number == pages[0].pages == -(-50 // PAGE_SIZE)
    editor.exclude(fifty.folder, [example_clip(0).id], "a cough")
    assert fifty.reasons() == {"noisy": 5, "a cough": 1}
    assert (fifty.totals()["excluded"], fifty.totals()["train"].clips) == (Total(6, 24.0), 44)
    assert fifty.count_recordings() == 1


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (ClipScores(snr_db=40), ClipScores(snr_db=12)),
        (ClipScores(confidence=0.9), ClipScores(confidence=0.4)),
        (ClipScores(second_cer=0.0), ClipScores(second_cer=0.4)),
        (ClipScores(speech_ratio=0.9), ClipScores(speech_ratio=0.35)),
        (ClipScores(text_match=-0.5), ClipScores(text_match=-3.0)),
        (ClipScores(chars_per_second=12), ClipScores(chars_per_second=23)),
    ],
)
def test_suspicious_clips_come_first(tmp_path: Path, better: ClipScores, worse: ClipScores) -> None:
    scores = [better, worse, *[ClipScores(chars_per_second=12)] * 3]
    store = stored(tmp_path, [clip(number, scores=each) for number, each in enumerate(scores)])
    assert store.page(View(), 1).clips[0].id == "r0-1"


def test_only_an_approved_clip_loses_its_rank(tmp_path: Path) -> None:
    clips = [clip(number, scores=ClipScores(snr_db=10.0 + number)) for number in range(3)]
    store = stored(tmp_path, clips)

    def order() -> list[str]:
        return [clip.id for clip in store.page(View(), 1).clips]

    store.put([dataclasses.replace(clips[1], text="አዲስ", scores=ClipScores())])
    assert order() == ["r0-0", "r0-1", "r0-2"]
    store.put([dataclasses.replace(clips[0], reason="approved")])
    assert order() == ["r0-1", "r0-2", "r0-0"]


def test_an_edit_does_not_wait_for_the_statistics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, account = stored(tmp_path, [example_clip(1)]), statistics.account
    background = background_counts.BackgroundCounts()

    def edit_meanwhile(dataset: Dataset) -> statistics.Account:
        editor.exclude(store.folder, [example_clip(1).id], "a cough")  # would wait in vain for a reader that it stops
        return account(dataset)

    monkeypatch.setattr(statistics, "account", edit_meanwhile)
    counts = wait_for(lambda: background.latest(store))
    assert counts.revision < store.meta("revision")  # so they are counted again


def test_a_dataset_in_the_place_of_another_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    background = background_counts.BackgroundCounts()
    monkeypatch.setattr(background_counts, "PAUSE", 0.0)

    def has(store: Store, clips: int) -> bool:
        counts = background.latest(store)
        return counts is not None and len(counts.statistics.seconds) == clips

    for clips in (1, 2):
        (tmp_path / "dataset").mkdir()
        store = stored(tmp_path / "dataset", [clip(number) for number in range(clips)])
        wait_for(partial(has, store, clips))
        shutil.rmtree(store.folder)


@pytest.mark.slow
def test_a_dataset_that_is_deleted_before_it_is_counted_again_stays_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dataset").mkdir()
    store, background = stored(tmp_path / "dataset", [example_clip(1)]), background_counts.BackgroundCounts()
    monkeypatch.setattr(background_counts, "PAUSE", 0.2)
    wait_for(lambda: background.latest(store))
    editor.exclude(store.folder, [example_clip(1).id], "a cough")
    background.latest(store)
    store.folder.rename(tmp_path / "trash")  # as a project is deleted
    wait_for(lambda: "counts" not in {thread.name for thread in threading.enumerate()})
    assert not store.clips()
    assert not store.folder.exists()
