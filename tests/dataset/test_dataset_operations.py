"""What is done with a finished dataset: count, check, edit, merge, export."""

import csv
import dataclasses
import json
import random
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.dataset.building import clip
from tests.xtts.small_vocabulary import write_vocabulary
from utils.core.errors import DataError, StorageError
from utils.dataset import editor, lengths, statistics
from utils.dataset.clip import Scores, Span
from utils.dataset.export import export
from utils.dataset.merge import merge
from utils.dataset.metadata import write_lists
from utils.dataset.records import Source
from utils.dataset.store import Store, load_dataset
from utils.dataset.validate import check
from utils.xtts.tokenizer import prepare_tokenizer
from utils.xtts.vocabulary import Vocabulary

RATE = 22_050


def dataset(folder: Path, names: tuple[str, ...] = ("r0", "r1"), each: int = 3) -> Path:
    """Write a dataset of tones; the last clip of each recording is set aside."""
    (folder / "wavs").mkdir(parents=True)
    book = Store(folder)
    for side, name in zip(("train", "eval", "train", "train"), names, strict=False):
        clips = [clip(number, recording=name, text=f"ሰላም {name} {number}", split=side) for number in range(each)]
        clips[-1] = dataclasses.replace(clips[-1].excluded("noisy"), split="")
        for number, one in enumerate(clips):
            tone = 0.1 * np.sin(np.arange(4 * RATE) * (0.01 + 0.001 * number))
            soundfile.write(folder / one.audio, tone, RATE, subtype="PCM_16")
        book.add(Source(name, f"/in/{name}.wav", 10, 20, 10.0 * each), clips)
    write_lists(folder, "am")
    return folder


def rows(folder: Path, side: str) -> list[str]:
    with (folder / f"metadata_{side}.csv").open(newline="", encoding="utf-8") as file:
        return [row["text"] for row in csv.DictReader(file, delimiter="|")]


# Merging


def test_a_dry_run_of_a_merge_changes_nothing_and_says_what_would(tmp_path: Path) -> None:
    mine, other = dataset(tmp_path / "a"), dataset(tmp_path / "b", ("r1", "r2"))
    before = sorted((path.name, path.stat().st_mtime_ns) for path in mine.rglob("*"))
    plan = merge(mine, other, dry_run=True)
    assert str(plan).startswith("1 new recordings with 3 clips (0.1 min in use). 1 recordings already exist")
    assert sorted((path.name, path.stat().st_mtime_ns) for path in mine.rglob("*")) == before


def test_a_merge_adds_what_is_new_and_keeps_its_split(tmp_path: Path) -> None:
    mine, other = dataset(tmp_path / "a"), dataset(tmp_path / "b", ("r1", "r2"))
    kept = load_dataset(mine).clips
    plan = merge(mine, other, dry_run=False)
    contents = load_dataset(mine)
    assert {name: contents.clips[name] for name in kept} == kept
    assert {name: one for name, one in contents.clips.items() if name not in kept} == {
        name: one for name, one in load_dataset(other).clips.items() if one.recording == "r2"
    }
    assert all((mine / one.audio).is_file() for one in contents.clips.values())
    assert rows(mine, "eval") == ["ሰላም r1 0", "ሰላም r1 1", "ሰላም r2 0", "ሰላም r2 1"]
    assert plan.known == 1
    assert merge(mine, other, dry_run=False).recordings == ()


def test_a_sound_that_is_there_already_comes_in_set_aside(tmp_path: Path) -> None:
    mine, other = dataset(tmp_path / "a"), dataset(tmp_path / "b", ("r2",))
    Store(other).put([dataclasses.replace(load_dataset(other).clips["r2-0"], content="c-r0-0")])
    assert merge(mine, other, dry_run=False).duplicates == 1
    assert load_dataset(mine).clips["r2-0"].reason == "duplicate"


def test_a_clip_without_its_file_is_left_out_of_a_merge(tmp_path: Path) -> None:
    mine, other = dataset(tmp_path / "a"), dataset(tmp_path / "b", ("r2",))
    (other / "wavs" / "r2-0.wav").unlink()
    assert merge(mine, other, dry_run=False).missing == ("wavs/r2-0.wav",)
    assert "r2-0" not in load_dataset(mine).clips


def test_languages_are_not_mixed(tmp_path: Path) -> None:
    mine, other = dataset(tmp_path / "a"), dataset(tmp_path / "b", ("r2",))
    (other / "lang.txt").write_text("om\n", encoding="utf-8")
    with pytest.raises(DataError, match="'am'"):
        merge(mine, other, dry_run=True)


# Export


def test_a_zip_holds_a_dataset(tmp_path: Path) -> None:
    folder = dataset(tmp_path / "a")
    with zipfile.ZipFile(export(folder, tmp_path / "all.zip", "zip")) as archive:
        archive.extractall(tmp_path / "b")
    assert {one.id for one in load_dataset(tmp_path / "b").kept} == {one.id for one in load_dataset(folder).kept}
    assert list(check(tmp_path / "b", 11.6, "am")) == []


def test_ljspeech_has_its_shape(tmp_path: Path) -> None:
    target = export(dataset(tmp_path / "a"), tmp_path / "lj", "ljspeech")
    lines = (target / "metadata.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "r0-0|ሰላም r0 0|ሰላም r0 0"
    assert sorted(path.stem for path in (target / "wavs").iterdir()) == [line.partition("|")[0] for line in lines]


def test_parquet_holds_the_audio_and_says_so(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    folder = dataset(tmp_path / "a")
    target = export(folder, tmp_path / "hf", "parquet")
    names = sorted(path.name for path in (target / "data").iterdir())
    assert names == ["train-00000-of-00001.parquet", "validation-00000-of-00001.parquet"]
    table = parquet.read_table(target / "data" / names[0])
    assert json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]["audio"]["_type"] == "Audio"
    first = table.to_pylist()[0]
    assert first["audio"]["bytes"] == (folder / "wavs" / "r0-0.wav").read_bytes()
    assert (first["text"], first["speaker_name"], first["end"]) == ("ሰላም r0 0", "speaker", 4.0)


def test_an_export_overwrites_nothing_and_leaves_nothing_half_done(tmp_path: Path) -> None:
    folder = dataset(tmp_path / "a")
    with pytest.raises(StorageError, match="already exists"):
        export(folder, folder, "ljspeech")
    (folder / "wavs" / "r0-1.wav").unlink()
    with pytest.raises(StorageError):
        export(folder, tmp_path / "lj", "ljspeech")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


# Checking


def test_a_good_dataset_has_no_faults(tmp_path: Path) -> None:
    assert list(check(dataset(tmp_path), 11.6, "am")) == []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("wavs/gone.wav|ሰላም|s", "No such audio file: wavs/gone.wav."),
        ("|ሰላም|s", "No such audio file: the cell is empty."),
        ("wavs/broken.wav|ሰላም|s", "wavs/broken.wav is not a readable audio file."),
        ("wavs/r0-2.wav|  |s", "The text is empty."),
        ("wavs/r0-2.wav|ሰላም", "2 cells instead of 3."),
        ("wavs/r0-0.wav|ሰላም|s", "wavs/r0-0.wav is already in metadata_train.csv:2."),
        ("wavs/long.wav|ሰላም|s", "wavs/long.wav lasts 12.00 s, over 11.6."),
        ("wavs/r0-2.wav|ሰላም r1 0|speaker", "metadata_eval.csv:2: The same text is in metadata_train.csv:4."),
        ("../outside.wav|ሰላም|s", "../outside.wav lies outside"),
        ("{absolute}|ሰላም|s", "outside.wav lies outside"),
    ],
)
def test_a_fault_is_named_with_its_line(tmp_path: Path, line: str, said: str) -> None:
    folder = dataset(tmp_path / "a")
    soundfile.write(tmp_path / "outside.wav", np.zeros(RATE), RATE)
    soundfile.write(folder / "wavs" / "long.wav", np.zeros(12 * RATE), RATE)
    (folder / "wavs" / "broken.wav").write_bytes(b"RIFF")
    path = folder / "metadata_train.csv"
    line = line.replace("{absolute}", str(tmp_path / "outside.wav"))
    path.write_text(path.read_text(encoding="utf-8") + line + "\n", encoding="utf-8")
    faults = [str(fault) for fault in check(folder, 11.6, "am")]
    assert len(faults) == 1, faults
    assert said in faults[0]


def test_a_file_that_was_cut_off_differs_from_the_manifest(tmp_path: Path) -> None:
    folder = dataset(tmp_path)
    wav = folder / "wavs" / "r1-1.wav"
    wav.write_bytes(wav.read_bytes()[:50_000])
    (fault,) = check(folder, 11.6, "am")
    assert "metadata_eval.csv:3: wavs/r1-1.wav lasts" in str(fault)
    assert "instead of 4.00" in str(fault)


def test_what_a_vocabulary_cannot_hold_is_named(tmp_path: Path) -> None:
    folder = dataset(tmp_path / "a")
    editor.set_text(folder, "r0-0", "ሰላም 日")
    editor.set_text(folder, "r0-1", "ሰላም ለሁላችሁም " * 40)
    tokenizer = prepare_tokenizer(Vocabulary.load(write_vocabulary(tmp_path)), "am")
    first, second = check(folder, 11.6, "am", tokenizer)
    assert "metadata_train.csv:2: The vocabulary has no symbol for 日 ([UNK])." in str(first)
    assert "tokens, over 200." in str(second)


def test_an_empty_list_is_a_fault(tmp_path: Path) -> None:
    folder = dataset(tmp_path, ("r0",))
    assert [fault.sentence for fault in check(folder, 11.6, "am")] == ["The list is empty."]


# Counting


def test_a_dataset_is_counted(tmp_path: Path) -> None:
    found = statistics.count(Store(dataset(tmp_path)), "am")
    assert found.clips == {"train": 2, "eval": 2}
    assert (found.recordings, found.speakers, found.excluded) == (2, {"speaker": 16.0}, {"noisy": 8.0})
    assert found.phonemes["ə"] >= 4
    assert "pʼ" in found.missing
    text = statistics.report(found)
    assert all(part in text for part in ("clips in use         4", "missing", "--max-audio-length 4", "noisy 0.1 min"))


def test_the_pictures_are_drawn(tmp_path: Path) -> None:
    found = statistics.count(Store(dataset(tmp_path / "a")), "am")
    statistics.draw(found, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "plot.png"]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ([5.0], 5.0),
        ([5.01], 5.1),
        ([1.0] * 999 + [9.0], 1.0),
        ([1.0] * 99 + [9.04], 9.1),
        ([0.5], 1.0),
        ([30.0], 11.6),
    ],
)
def test_the_suggested_length_is_rounded_up_within_what_xtts_can_hold(seconds: list[float], expected: float) -> None:
    assert lengths.suggested(seconds) == expected


def test_lengths_come_from_headers_alone(tmp_path: Path) -> None:
    folder = dataset(tmp_path)
    for wav in (folder / "wavs").iterdir():
        wav.write_bytes(wav.read_bytes()[:44] + bytes(4 * RATE * 2))
    (folder / "wavs" / "r0-0.wav").write_bytes(b"")
    rows_found, found = lengths.measure(folder)
    assert len(rows_found) == 4
    assert found.seconds == (4.0, 4.0, 4.0)
    assert [row.audio for row in found.unreadable] == ["wavs/r0-0.wav"]
    bars = [line.split()[0] + line[-2:] for line in lengths.report(found).splitlines() if " s    " in line]
    assert bars == ["0 0", "1 0", "2 0", "3 0", "4 3"]


@pytest.mark.slow
def test_fifty_thousand_clips_are_counted_and_accounted_for_in_ten_seconds(tmp_path: Path) -> None:
    chance = random.Random(0)
    syllables = [chr(0x1208 + 8 * row + column) for row in range(20) for column in range(6)]
    words = ["".join(chance.choices(syllables, k=chance.randint(2, 6))) for _ in range(60_000)]
    book = Store(tmp_path)
    for number in range(500):
        clips = [
            clip(
                one,
                recording=f"r{number}",
                text=" ".join(chance.choices(words, k=8)),
                span=Span(one * 8.0, one * 8 + chance.uniform(1, 8)),
                scores=Scores(0.8, chance.gauss(30, 5), 0.0, -23.0, chance.gauss(14, 3), 0.9),
            )
            for one in range(100)
        ]
        book.add(Source(f"r{number}", f"/in/{number}.wav", 1, 1, 800.0), [*clips[:-1], clips[-1].excluded("noisy")])
    begin = time.perf_counter()
    contents = load_dataset(tmp_path)
    text = statistics.report(statistics.count(book, "am")) + statistics.account(contents).render()
    took = time.perf_counter() - begin
    assert len(contents.clips) == 50_000
    assert "noisy" in text
    assert took < 10, took
