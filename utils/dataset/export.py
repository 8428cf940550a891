"""A dataset in the shape that other programs read: a zip, LJSpeech, or Parquet as Hugging Face lays it out."""

import json
import re
import shutil
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from utils.core.batching import batched
from utils.core.folders import replace_folder
from utils.core.storage import replacing, storage_errors, write_atomically
from utils.dataset.clip import COLUMNS, Clip
from utils.dataset.database import DATABASE
from utils.dataset.errors import DatasetError, StoreError
from utils.dataset.metadata import FILES, LANGUAGE_FILE, WAVS, plain, write_lists
from utils.dataset.store import Store, load_dataset, open_store

if TYPE_CHECKING:
    import pyarrow as pa

Shape = Literal["zip", "ljspeech", "parquet"]
ROWS_PER_GROUP = 200  # clips in memory at a time, about 50 MB
ROWS_PER_FILE = 2000  # about 500 MB, as the Hugging Face hub likes them
TABLE = "manifest.csv"  # of all kept clips, for other programs
HF_SPLITS = {"train": "train", "eval": "validation"}


def export(folder: Path, target: Path, shape: Shape) -> Path:
    """Write the kept clips of a dataset to a new .zip or folder; return it."""
    kept = load_dataset(folder).kept
    if not kept:
        raise DatasetError(folder, "empty")
    if target.exists():
        raise StoreError(target, "exists")
    if shape == "zip":
        with storage_errors(target), replacing(target) as partial:
            _write_zip(folder, kept, partial)
        return target
    with replace_folder(target) as partial:
        (_write_ljspeech if shape == "ljspeech" else _write_parquet)(folder, kept, partial)
    return target


def _write_zip(folder: Path, kept: Sequence[Clip], target: Path) -> None:
    """Pack the clips without the paths of this machine, the lists, a table of the kept clips, and their audio."""
    write_lists(folder)
    names = [*FILES.values(), LANGUAGE_FILE, *(clip.audio for clip in kept)]
    with (
        tempfile.TemporaryDirectory() as place,
        zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive,  # speech in PCM hardly shrinks
    ):
        table = _store_for_strangers(folder, Path(place)).table()
        archive.write(Path(place) / DATABASE, DATABASE)
        archive.writestr(TABLE, table[table["status"] == "kept"].to_csv(index=False, columns=list(COLUMNS)))
        for name in names:
            archive.write(folder / name, name)


def _store_for_strangers(folder: Path, target: Path) -> Store:
    """Copy the clips and their recordings with bare file names; edits and warnings, which name paths, stay here."""
    contents = open_store(folder).read()
    store = Store(target)
    with store.transaction():
        store.put(replace(clip, source=bare_name(clip.source)) for clip in contents.clips.values())
        for source in contents.recordings.values():
            store.note(replace(source, path=bare_name(source.path), warnings=()))
        store.rank()
    return store


def bare_name(path: str) -> str:
    return re.split(r"[/\\]", path)[-1]


def _write_ljspeech(folder: Path, kept: Sequence[Clip], target: Path) -> None:
    """Write metadata.csv without header, ``id|text|text``, and wavs/."""
    (target / WAVS).mkdir()
    for clip in kept:
        shutil.copyfile(folder / clip.audio, target / WAVS / f"{clip.id}.wav")
    lines = ["|".join([clip.id, plain(clip.text), plain(clip.text)]) for clip in kept]
    write_atomically(target / "metadata.csv", "\n".join([*lines, ""]))


def _write_parquet(folder: Path, kept: Sequence[Clip], target: Path) -> None:
    """Write one Parquet file for each 2000 clips of a split, audio inside."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = _parquet_schema()
    (target / "data").mkdir()
    for split, name in HF_SPLITS.items():
        files = list(batched([clip for clip in kept if clip.split == split], ROWS_PER_FILE))
        for number, clips in enumerate(files):
            path = target / "data" / f"{name}-{number:05d}-of-{len(files):05d}.parquet"
            with pq.ParquetWriter(path, schema) as writer:
                for group in batched(clips, ROWS_PER_GROUP):
                    rows = [_parquet_row(folder, clip) for clip in group]
                    writer.write_table(pa.Table.from_pylist(rows, schema=schema))


def _parquet_row(folder: Path, clip: Clip) -> dict[str, object]:
    return {
        "audio": {"bytes": (folder / clip.audio).read_bytes(), "path": Path(clip.audio).name},
        "id": clip.id,
        "text": clip.text,
        "speaker_name": clip.speaker,
        "source": bare_name(clip.source),
        "start": clip.span.start,
        "end": clip.span.end,
    }


def _parquet_schema() -> "pa.Schema":
    """Return the columns, with the note by which `datasets` knows that one of them is audio."""
    import pyarrow as pa

    kinds = dict.fromkeys(("id", "text", "speaker_name", "source"), "string")
    kinds |= dict.fromkeys(("start", "end"), "float64")
    audio = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    features = {"audio": {"sampling_rate": 22050, "_type": "Audio"}}
    features |= {name: {"dtype": kind, "_type": "Value"} for name, kind in kinds.items()}
    columns = {"audio": audio} | {name: pa.type_for_alias(kind) for name, kind in kinds.items()}
    return pa.schema(columns, metadata={"huggingface": json.dumps({"info": {"features": features}})})
