"""What is done with a finished dataset: merge, export, check, count."""

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
from utils.dataset import editor, statistics
from utils.dataset.bulk_edits import merge
from utils.dataset.clip import Clip, Scores, Source, Span
from utils.dataset.export import export
from utils.dataset.metadata import check, write_lists
from utils.dataset.store import Dataset, Store, load_dataset
from utils.xtts.tokenizer import prepare_tokenizer
from utils.xtts.vocabulary import Vocabulary

RATE = 22_050


def dataset(folder: Path, names: tuple[str, ...] = ("r0", "r1"), each: int = 3) -> Path:
    """Write a dataset of tones; the last clip of each recording is excluded."""
    (folder / "wavs").mkdir(parents=True)
    store = Store(folder)
    for side, name in zip(("train", "eval", "train", "train"), names, strict=False):
        clips = [clip(number, recording=name, text=f"ሰላም {name} {number}", split=side) for number in range(each)]
        clips[-1] = dataclasses.replace(clips[-1].excluded("noisy"), split="")
        for number, row in enumerate(clips):
            tone = 0.1 * np.sin(np.arange(4 * RATE) * (0.01 + 0.001 * number))
            soundfile.write(folder / row.audio, tone, RATE, subtype="PCM_16")
        store.add(Source(name, f"/in/{name}.wav", 10, 20, 10.0 * each), clips)
    write_lists(folder, "am")
    return folder


def texts(folder: Path, side: str) -> list[str]:
    with (folder / f"metadata_{side}.csv").open(newline="", encoding="utf-8") as file:
        return [row["text"] for row in csv.DictReader(file, delimiter="|")]


# Merging


def test_a_merge_adds_what_is_new_and_keeps_its_split_and_a_dry_run_only_says_so(tmp_path: Path) -> None:
    mine, other = dataset(tmp_path / "a"), dataset(tmp_path / "b", ("r1", "r2"))
    before = sorted((path.name, path.stat().st_mtime_ns) for path in mine.rglob("*"))
    plan = merge(mine, other, dry_run=True)
    assert str(plan).startswith("1 new recordings with 3 clips (0.1 min in use). 1 recordings already exist")
    assert sorted((path.name, path.stat().st_mtime_ns) for path in mine.rglob("*")) == before
    expected = {name: row for name, row in load_dataset(other).clips.items() if row.recording == "r2"}
    expected |= load_dataset(mine).clips
    assert merge(mine, other, dry_run=False).known == 1
    assert load_dataset(mine).clips == expected
    assert all((mine / row.audio).is_file() for row in expected.values())
    assert texts(mine, "eval") == ["ሰላም r1 0", "ሰላም r1 1", "ሰላም r2 0", "ሰላም r2 1"]
    assert merge(mine, other, dry_run=False).recordings == ()


def test_a_merge_excludes_a_known_sound_and_leaves_out_a_clip_without_its_file(tmp_path: Path) -> None:
    mine, other = dataset(tmp_path / "a"), dataset(tmp_path / "b", ("r2",))
    Store(other).put([dataclasses.replace(load_dataset(other).clips["r2-0"], content="c-r0-0")])
    (other / "wavs" / "r2-1.wav").unlink()
    plan = merge(mine, other, dry_run=False)
    assert (plan.duplicates, plan.missing) == (1, ("wavs/r2-1.wav",))
    assert load_dataset(mine).clips["r2-0"].reason == "duplicate"
    assert "r2-1" not in load_dataset(mine).clips


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
    assert load_dataset(tmp_path / "b").kept == load_dataset(folder).kept
    assert list(check(tmp_path / "b", 11.6, "am")) == []


def test_ljspeech_names_each_file_of_its_folder_and_overwrites_nothing(tmp_path: Path) -> None:
    folder = dataset(tmp_path / "a")
    target = export(folder, tmp_path / "lj", "ljspeech")
    lines = (target / "metadata.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "r0-0|ሰላም r0 0|ሰላም r0 0"
    assert sorted(path.stem for path in (target / "wavs").iterdir()) == [line.partition("|")[0] for line in lines]
    with pytest.raises(StorageError, match="already exists"):
        export(folder, target, "ljspeech")
    (folder / "wavs" / "r0-1.wav").unlink()
    with pytest.raises(StorageError):
        export(folder, tmp_path / "half", "ljspeech")
    assert {path.name for path in tmp_path.iterdir()} == {"a", "lj"}


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


# Checking


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("wavs/gone.wav|ሰላም|s", "No such audio file: wavs/gone.wav."),
        ("wavs/broken.wav|ሰላም|s", "wavs/broken.wav is not a readable audio file."),
        ("wavs/r0-2.wav|  |s", "The text is empty."),
        ("wavs/r0-2.wav|ሰላም", "2 cells instead of 3."),
        ("wavs/r0-0.wav|ሰላም|s", "wavs/r0-0.wav is already in metadata_train.csv:2."),
        ("wavs/long.wav|ሰላም|s", "wavs/long.wav lasts 12.00 s, over 11.6."),
        ("wavs/r0-2.wav|ሰላም r1 0|speaker", "metadata_eval.csv:2: The same text is in metadata_train.csv:4."),
        ("../outside.wav|ሰላም|s", "../outside.wav lies outside"),
    ],
)
def test_a_problem_is_named_with_its_line(tmp_path: Path, line: str, sentence: str) -> None:
    folder = dataset(tmp_path / "a")
    soundfile.write(tmp_path / "outside.wav", np.zeros(RATE), RATE)
    soundfile.write(folder / "wavs" / "long.wav", np.zeros(12 * RATE), RATE)
    (folder / "wavs" / "broken.wav").write_bytes(b"RIFF")
    path = folder / "metadata_train.csv"
    path.write_text(path.read_text(encoding="utf-8") + line + "\n", encoding="utf-8")
    problems = list(check(folder, 11.6, "am"))
    assert len(problems) == 1, problems
    assert sentence in problems[0]


def test_a_file_that_was_cut_off_and_an_empty_list_are_problems(tmp_path: Path) -> None:
    folder = dataset(tmp_path, ("r0",))
    wav = folder / "wavs" / "r0-1.wav"
    wav.write_bytes(wav.read_bytes()[:50_000])
    empty, cut = sorted(check(folder, 11.6, "am"))
    assert empty.endswith("metadata_eval.csv:1: The list is empty.")
    assert "metadata_train.csv:3: wavs/r0-1.wav lasts" in cut


def test_what_a_vocabulary_cannot_hold_is_named(tmp_path: Path) -> None:
    folder = dataset(tmp_path / "a")
    editor.set_text(folder, "r0-0", "ሰላም 日")
    editor.set_text(folder, "r0-1", "ሰላም ለሁላችሁም " * 40)
    tokenizer = prepare_tokenizer(Vocabulary.load(write_vocabulary(tmp_path)), "am")
    first, second = check(folder, 11.6, "am", tokenizer)
    assert "metadata_train.csv:2: The vocabulary has no symbol for 日 ([UNK])." in first
    assert "tokens, over 200." in second


# Counting


def test_a_dataset_is_counted_and_drawn(tmp_path: Path) -> None:
    counts = statistics.count(Store(dataset(tmp_path / "a")), "am")
    assert counts.clips == {"train": 2, "eval": 2}
    assert (counts.recordings, counts.speakers, counts.excluded) == (2, {"speaker": 16.0}, {"noisy": 8.0})
    assert counts.phonemes["ə"] >= 4
    assert "pʼ" in counts.missing
    text = statistics.report(counts)
    assert all(part in text for part in ("clips in use         4", "missing", "--max-audio-length 4", "noisy 0.1 min"))
    statistics.draw(counts, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def span(start: float, end: float, reason: str = "") -> Clip:
    row = clip(0, id=f"{start}-{end}", span=Span(start, end))
    return row.excluded(reason) if reason else row


def account(*clips: Clip, seconds: float = 10.0) -> statistics.Ledger:
    rows = {str(number): row for number, row in enumerate(clips)}
    return statistics.account(Dataset(rows, {"r0": Source("r0", "a.wav", seconds=seconds)}))


@pytest.mark.parametrize(
    ("clips", "kept", "excluded"),
    [
        ([span(1, 3), span(4, 6, "noisy"), span(7, 7.5, "too short")], 2, {"noisy": 2, "too short": 0.5}),
        ([span(1, 3, "noisy"), span(2, 5)], 3, {"noisy": 1}),
        ([span(1, 3), span(2, 5)], 4, {}),
        ([span(8, 12), span(-1, 1)], 3, {}),
    ],
    ids=[
        "excluded by reason",
        "a second in two clips counts for the kept one",
        "or once",
        "only within the recording",
    ],
)
def test_every_second_is_accounted_for_once(clips: list[Clip], kept: float, excluded: dict[str, float]) -> None:
    ledger = account(*clips)
    assert ledger.kept == pytest.approx(kept)
    assert ledger.excluded == pytest.approx(excluded)
    assert ledger.between == pytest.approx(10 - kept - sum(excluded.values()))


@pytest.mark.parametrize(
    ("seconds", "expected"), [([5.01], 5.1), ([1.0] * 999 + [9.0], 1.0), ([0.5], 1.0), ([30.0], 11.6)]
)
def test_the_suggested_length_is_rounded_up_within_what_xtts_can_hold(seconds: list[float], expected: float) -> None:
    assert statistics.suggested_max_length(seconds) == expected


def test_lengths_come_from_headers_alone(tmp_path: Path) -> None:
    folder = dataset(tmp_path)
    for wav in (folder / "wavs").iterdir():
        wav.write_bytes(wav.read_bytes()[:44] + bytes(4 * RATE * 2))
    (folder / "wavs" / "r0-0.wav").write_bytes(b"")
    rows, measured = statistics.measure_lengths(folder)
    assert len(rows) == 4
    assert measured.seconds == (4.0, 4.0, 4.0)
    assert [row.audio for row in measured.unreadable] == ["wavs/r0-0.wav"]
    bars = [line.split()[0] + line[-2:] for line in measured.render().splitlines() if " s    " in line]
    assert bars == ["0 0", "1 0", "2 0", "3 0", "4 3"]


@pytest.mark.slow
def test_fifty_thousand_clips_are_counted_and_accounted_for_in_ten_seconds(tmp_path: Path) -> None:
    chance = random.Random(0)
    syllables = [chr(0x1208 + 8 * row + column) for row in range(20) for column in range(6)]
    words = ["".join(chance.choices(syllables, k=chance.randint(2, 6))) for _ in range(60_000)]
    store = Store(tmp_path)
    with store.transaction():
        for number in range(500):
            clips = [
                clip(
                    index,
                    recording=f"r{number}",
                    text=" ".join(chance.choices(words, k=8)),
                    span=Span(index * 8.0, index * 8 + chance.uniform(1, 8)),
                    scores=Scores(0.8, chance.gauss(30, 5), 0.0, -23.0, chance.gauss(14, 3), 0.9),
                )
                for index in range(99)
            ]
            excluded = clip(99, recording=f"r{number}").excluded("noisy")
            store.add(Source(f"r{number}", f"/in/{number}.wav", 1, 1, 1000.0), [*clips, excluded])
    begin = time.perf_counter()
    contents = load_dataset(tmp_path)
    text = statistics.report(statistics.count(store, "am")) + statistics.account(contents).render()
    took = time.perf_counter() - begin
    assert len(contents.clips) == 50_000
    assert "noisy" in text
    assert took < 10, took
