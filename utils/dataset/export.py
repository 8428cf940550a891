"""A dataset in the shape that other programs read: a zip, LJSpeech, or Parquet as Hugging Face lays it out."""

import json
import shutil
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from utils.core.batching import batched
from utils.core.errors import DataError, StorageError
from utils.core.storage import retry_while_in_use, storage_error, write_atomically
from utils.dataset.clip import Clip
from utils.dataset.metadata import FILES, LANGUAGE_FILE, plain, write_lists
from utils.dataset.records import COLUMNS
from utils.dataset.store import DATABASE, load_dataset, open_store

if TYPE_CHECKING:
    import pyarrow as pa

Shape = Literal["zip", "ljspeech", "parquet"]
ROWS_PER_GROUP = 200  # clips in memory at a time, about 50 MB
ROWS_PER_FILE = 2000  # about 500 MB, as the Hugging Face hub likes them
TABLE = "manifest.csv"  # of all kept clips, for other programs
HF_SPLITS = {"train": "train", "eval": "validation"}


def export(folder: Path, target: Path, shape: Shape) -> Path:
    """Write the kept clips of a dataset; return what was written.

    Args:
        folder: The dataset folder.
        target: A .zip for the shape zip, else a folder that is not there yet.
        shape: Which programs shall read it.
    """
    kept = load_dataset(folder).kept
    if not kept:
        raise DataError(f"{folder} has no clips in use.", hint="See why with: python -m utils dataset stats.")
    if target.exists():
        raise StorageError(f"{target} already exists.", hint="Choose another path; existing files are not overwritten.")
    temporary = target.with_name(f".{target.name}.partial")
    _remove(temporary)
    try:
        WRITERS[shape](folder, kept, temporary)
        retry_while_in_use(lambda: temporary.replace(target))
    except OSError as error:
        _remove(temporary)
        raise storage_error(target, error) from error
    return target


def _zip(folder: Path, kept: Sequence[Clip], target: Path) -> None:
    """Pack the database, the lists, a table of the kept clips, and their audio."""
    write_lists(folder)
    table = open_store(folder).table()
    names = [*FILES.values(), LANGUAGE_FILE, DATABASE, *(clip.audio for clip in kept)]
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:  # speech in PCM hardly shrinks
        archive.writestr(TABLE, table[table["status"] == "kept"].to_csv(index=False, columns=list(COLUMNS)))
        for name in names:
            archive.write(folder / name, name)


def _ljspeech(folder: Path, kept: Sequence[Clip], target: Path) -> None:
    """Write metadata.csv without header, ``id|text|text``, and wavs/."""
    (target / "wavs").mkdir(parents=True)
    for clip in kept:
        shutil.copyfile(folder / clip.audio, target / "wavs" / f"{clip.id}.wav")
    lines = ["|".join([clip.id, plain(clip.text), plain(clip.text)]) for clip in kept]
    write_atomically(target / "metadata.csv", "\n".join([*lines, ""]))


def _parquet(folder: Path, kept: Sequence[Clip], target: Path) -> None:
    """Write one Parquet file for each 2000 clips of a split, audio inside."""
    import pyarrow.parquet as pq

    (target / "data").mkdir(parents=True)
    for split, name in HF_SPLITS.items():
        clips = [clip for clip in kept if clip.split == split]
        files = list(batched(clips, ROWS_PER_FILE))
        for number, rows in enumerate(files):
            path = target / "data" / f"{name}-{number:05d}-of-{len(files):05d}.parquet"
            with pq.ParquetWriter(path, _schema()) as writer:
                for group in batched(rows, ROWS_PER_GROUP):
                    writer.write_table(_table(folder, group))


def _schema() -> "pa.Schema":
    """Return the columns, with the note by which `datasets` knows that one of them is audio."""
    import pyarrow as pa

    audio = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    texts = ("id", "text", "speaker_name", "source")
    numbers = ("start", "end")
    features: dict[str, object] = {"audio": {"sampling_rate": 22050, "_type": "Audio"}}
    features |= {name: {"dtype": "string", "_type": "Value"} for name in texts}
    features |= {name: {"dtype": "float64", "_type": "Value"} for name in numbers}
    columns = [("audio", audio), *((name, pa.string()) for name in texts), *((name, pa.float64()) for name in numbers)]
    return pa.schema(columns, metadata={"huggingface": json.dumps({"info": {"features": features}})})


def _table(folder: Path, clips: Sequence[Clip]) -> "pa.Table":
    import pyarrow as pa

    rows = [
        {
            "audio": {"bytes": (folder / clip.audio).read_bytes(), "path": Path(clip.audio).name},
            "id": clip.id,
            "text": clip.text,
            "speaker_name": clip.speaker,
            "source": clip.source,
            "start": clip.span.start,
            "end": clip.span.end,
        }
        for clip in clips
    ]
    return pa.Table.from_pylist(rows, schema=_schema())


def _remove(path: Path) -> None:
    """Remove what an export that failed left behind."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


WRITERS: dict[Shape, Callable[[Path, Sequence[Clip], Path], None]] = {
    "zip": _zip,
    "ljspeech": _ljspeech,
    "parquet": _parquet,
}
