"""What a prepared dataset looks like to other programs, and what its commands change."""

import csv
import sqlite3
import wave
import zipfile
from pathlib import Path

import pandas as pd
import pytest

from utils.__main__ import main


@pytest.fixture
def dataset(output: Path) -> Path:
    return output / "project" / "dataset"


@pytest.mark.parametrize("split", ["train", "eval"])
def test_a_list_is_read_by_stock_tools(split: str, dataset: Path) -> None:
    with (dataset / f"metadata_{split}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="|"))
    assert rows
    assert {tuple(row) for row in rows} == {("audio_file", "text", "speaker_name")}


@pytest.mark.parametrize("split", ["train", "eval"])
def test_a_list_is_read_by_pandas(split: str, dataset: Path) -> None:
    table = pd.read_csv(dataset / f"metadata_{split}.csv", sep="|")
    assert list(table.columns) == ["audio_file", "text", "speaker_name"]


def test_clips_are_mono_wav_files_of_the_rate_of_xtts(dataset: Path) -> None:
    for path in (dataset / "wavs").glob("*.wav"):
        with wave.open(str(path)) as file:
            assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 22_050)


@pytest.mark.parametrize("column", "id recording start end speaker text status reason split audio".split())
def test_the_database_has_the_columns_of_1_1(column: str, dataset: Path) -> None:
    with sqlite3.connect(f"file:{dataset / 'clips.db'}?mode=ro", uri=True) as db:
        assert column in {row[1] for row in db.execute("PRAGMA table_info(clips)")}


def test_every_clip_of_a_list_exists(dataset: Path) -> None:
    lines = (dataset / "metadata_train.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert all((dataset / line.partition("|")[0]).is_file() for line in lines)


def command(output: Path, *words: str) -> int:
    return main(["dataset", *words, "--project", "project", "--output", str(output)])


def test_an_edit_reaches_the_list_and_is_undone(output: Path, dataset: Path) -> None:
    path = dataset / "metadata_train.csv"
    before = path.read_text(encoding="utf-8")
    clip = Path(before.splitlines()[1].partition("|")[0]).stem
    assert command(output, "edit", clip, "--text", "ሌላ።") == 0
    assert "|ሌላ።|" in path.read_text(encoding="utf-8")
    assert command(output, "undo") == 0
    assert path.read_text(encoding="utf-8") == before


@pytest.mark.parametrize(("shape", "name"), [("zip", "d.zip"), ("ljspeech", "d"), ("parquet", "d")])
def test_a_dataset_is_exported(shape: str, name: str, output: Path, tmp_path: Path) -> None:
    assert command(output, "export", shape, str(tmp_path / name)) == 0
    if shape == "zip":
        assert "metadata_train.csv" in {Path(entry).name for entry in zipfile.ZipFile(tmp_path / name).namelist()}
    elif shape == "ljspeech":
        assert (tmp_path / name / "metadata.csv").is_file()
    else:
        assert list((tmp_path / name).rglob("*.parquet"))
