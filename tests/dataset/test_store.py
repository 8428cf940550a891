"""The store of a dataset: what is written is read, changes are whole, and datasets of version 1.0 open."""

import contextlib
import dataclasses
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.dataset.building import clip
from utils.core.errors import DataError, StorageError
from utils.dataset.clip import Clip, Scores, Source, Span
from utils.dataset.metadata import list_files, read_list, write_lists
from utils.dataset.store import DATABASE, MANIFEST, RECORDINGS, Store, load_dataset

R0 = Source("r0", "/in/r0.wav", 10, 123, 60.0, warnings=("one", "two, with a comma"))
R1 = Source("r1", "/in/r1.wav", 11, 124, 61.5)
EXCLUDED = clip(1, text='a|b\nc\\n"d"\r', status="excluded", reason="noisy, very")


def two_recordings(folder: Path) -> Store:
    store = Store(folder)
    store.add(R0, [clip(0), EXCLUDED])
    store.add(R1, [clip(0, recording="r1", scores=Scores())])
    return store


def test_what_is_written_is_read(tmp_path: Path) -> None:
    dataset = two_recordings(tmp_path / "a").read()
    assert list(dataset.clips.values()) == [clip(0), EXCLUDED, clip(0, recording="r1", scores=Scores())]
    assert dataset.recordings == {"r0": R0, "r1": R1}
    assert [[clip.id for clip in clips] for clips in (dataset.kept, dataset.excluded)] == [["r0-0", "r1-0"], ["r0-1"]]
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert load_dataset(tmp_path / "b") == dataset


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


def test_every_file_has_its_latest_state_and_a_copy_is_the_same_recording(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.note(Source("", "/in/r0.wav", reason="It is empty."))
    assert [source.reason for source in store.read().failed] == ["It is empty."]
    store.add(R0, [clip(0)])
    store.note(dataclasses.replace(R0, path="/in/copy.wav"))
    dataset = store.read()
    assert dataset.failed == []
    assert dataset.recordings["r0"].path == "/in/r0.wav"
    assert set(dataset.files) == {"/in/r0.wav", "/in/copy.wav"}


def test_a_folder_without_a_dataset_is_empty_or_refused(tmp_path: Path) -> None:
    assert Store(tmp_path).read().clips == {}
    with pytest.raises(DataError, match="utils prepare"):
        load_dataset(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ("UPDATE clips SET status = 'lost' WHERE id = 'r0-0'", "status 'lost'"),
        ("UPDATE clips SET start = 'ten'", "is damaged"),
        ("DROP TABLE sources", "is damaged"),
        ("PRAGMA user_version = 99", "format 99"),
    ],
)
def test_damage_is_reported(tmp_path: Path, damage: str, reason: str) -> None:
    two_recordings(tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / DATABASE, isolation_level=None)) as db:
        db.execute(damage)
    with pytest.raises(DataError, match=reason):
        load_dataset(tmp_path)
    (tmp_path / DATABASE).write_bytes(b"no database" * 1000)
    with pytest.raises(DataError, match="is damaged"):
        load_dataset(tmp_path)


def test_a_full_disk_is_reported_and_changes_nothing(small_disk: Path) -> None:
    store = two_recordings(small_disk)
    before = store.read()
    with pytest.raises(StorageError, match="full"):
        store.put([clip(number, text="ሰላም" * 2000) for number in range(2000)])
    assert store.read() == before
    store.put([clip(0, text="አዲስ")])
    assert store.read().clips["r0-0"].text == "አዲስ"


WRITE_FOREVER = """
import sys
from pathlib import Path
from tests.dataset.building import clip
from utils.dataset.store import Store
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


def test_lists_follow_the_store_and_are_left_alone_while_they_are_current(tmp_path: Path) -> None:
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


# Version 1.0. The lines were written by its code: two versions of one clip, an excluded one, one of a recording that
# was not finished, and a line that a crash cut off.

MANIFEST_1_0 = (
    "id,recording,source,start,end,speaker,text,speech_ratio,snr_db,clipping,loudness_lufs,chars_per_second,confidence,"
    "second_cer,status,reason,content,split,audio\n"
    'aaaa-00000000-00004000,aaaa,"/in/talk, one.wav",0.0,4.0,አበበ,"ሰላም ""ለሁላችሁም""",0.9,30.5,0.0,-23.0,12.0,0.9,,kept,,'
    "c1,train,wavs/aaaa-00000000-00004000.wav\n"
    'aaaa-00005000-00009000,aaaa,"/in/talk, one.wav",5.0,9.0,አበበ,one\\nb\\\\n|c,,,,,,,,aside,noisy,c2,eval,'
    "wavs/aaaa-00005000-00009000.wav\n"
    'aaaa-00000000-00004000,aaaa,"/in/talk, one.wav",0.0,4.0,አበበ,"አዲስ ""ቃል""",0.9,30.5,0.0,-23.0,12.0,0.9,,kept,'
    "approved,c1,train,wavs/aaaa-00000000-00004000.wav\n"
    'zzzz-1,zzzz,"/in/other.wav",0.0,4.0,አበበ,"ሰላም",0.9,30.5,0.0,-23.0,12.0,0.9,,kept,,c1,train,wavs/zzzz-1.wav\n'
    "aaaa-00000000-00004000,aaaa,/in/ta"
)
RECORDINGS_1_0 = (
    "recording,path,size,changed,seconds,reason,warnings\n"
    'aaaa,"/in/talk, one.wav",10,123,60.0,,"w1\\nw2, x"\n'
    ",/in/bad.wav,0,0,0.0,It is empty.,\n"
)
CLIPS_1_0 = [
    Clip(
        *("aaaa-00000000-00004000", "aaaa", "/in/talk, one.wav", Span(0.0, 4.0), "አበበ", 'አዲስ "ቃል"'),
        *("wavs/aaaa-00000000-00004000.wav", "c1", Scores(0.9, 30.5, 0.0, -23.0, 12.0, 0.9)),
        *("train", "kept", "approved"),
    ),
    Clip(
        *("aaaa-00005000-00009000", "aaaa", "/in/talk, one.wav", Span(5.0, 9.0), "አበበ", "one\nb\\n|c"),
        *("wavs/aaaa-00005000-00009000.wav", "c2", Scores(), "eval", "excluded", "noisy"),
    ),
]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    (tmp_path / MANIFEST).write_text(MANIFEST_1_0, encoding="utf-8")
    (tmp_path / RECORDINGS).write_text(RECORDINGS_1_0, encoding="utf-8")
    return tmp_path


def test_a_dataset_of_1_0_is_converted_once_and_its_files_stay(old: Path, caplog: pytest.LogCaptureFixture) -> None:
    dataset = load_dataset(old)
    assert list(dataset.clips.values()) == CLIPS_1_0
    assert dataset.recordings == {"aaaa": Source("aaaa", "/in/talk, one.wav", 10, 123, 60.0, "", ("w1", "w2, x"))}
    assert [source.path for source in dataset.failed] == ["/in/bad.wav"]
    assert (old / MANIFEST).read_text(encoding="utf-8") == MANIFEST_1_0
    assert "2 clips of version 1.0" in caplog.text
    Store(old).put([dataclasses.replace(CLIPS_1_0[0], text="ሰላም")])
    assert load_dataset(old).clips["aaaa-00000000-00004000"].text == "ሰላም"


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_dataset_of_1_0_is_read(old: Path) -> None:
    old.chmod(0o555)
    assert list(load_dataset(old).clips.values()) == CLIPS_1_0


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("id,recording", "name,recording", "manifest.csv:1"),
        (",kept,", ",lost,", "status 'lost'"),
        (",0.0,4.0,", ",ten,4.0,", "is damaged"),
        (",c1,train,", ",train,", "manifest.csv:2"),
        ('"ሰላም ""', '"ሰላም "', "manifest.csv:2"),
    ],
)
def test_damage_in_a_dataset_of_1_0_is_reported(old: Path, before: str, after: str, reason: str) -> None:
    text = "".join(MANIFEST_1_0.splitlines(keepends=True)[:3])
    (old / MANIFEST).write_text(text.replace(before, after, 1), encoding="utf-8")
    with pytest.raises(DataError, match=reason):
        load_dataset(old)
    assert not (old / DATABASE).exists()
