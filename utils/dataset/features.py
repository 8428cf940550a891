"""What training reads of each clip: audio codes, token ids and the mel frames of the reference, encoded once.

``features/audio-<fingerprint>`` holds a row for each content hash, ``features/text-<fingerprint>`` one for each text.
The fingerprints are those of the DVAE with its mels, and of the vocabulary with its front end: another model makes
tables of its own, and a changed transcript makes a new text row only. Tables only grow, so interrupted work continues
where it was; at most the rows of one shard are lost.
"""

import hashlib
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from utils.core.batching import batched, grouped, prefetch
from utils.core.errors import AmharicTtsError
from utils.core.facts import Fact, Progress, Report, ShouldStop, ignore, never_stop, raise_if_stopped
from utils.core.paths import resolve_inside
from utils.core.storage import (
    PARTIAL,
    atomic_writer,
    file_lock,
    file_version,
    hash_text,
    make_folder,
    read_object,
    write_document,
)
from utils.dataset.clip import Clip, total_seconds
from utils.dataset.errors import DamagedFeaturesError, DatasetError
from utils.dataset.facts import ClipNotEncoded, FeaturesRemoved
from utils.media import audio
from utils.media.arrays import Float16Array, Int16Array
from utils.media.audio import Samples
from utils.media.facts import AudioFileError

if TYPE_CHECKING:
    from utils.xtts.codec import AudioEncoder
    from utils.xtts.tokenizer import Tokenizer

FOLDER = "features"
BANDS = 80
AUDIO = {"samples": pa.int32(), "codes": pa.list_(pa.int16()), "mel": pa.list_(pa.float16())}
TEXT = {"ids": pa.list_(pa.int32())}
AUDIO_ROWS = 512  # clips a shard: what a kill loses is 15 s of work on two cores
TEXT_ROWS = 4096
READERS = ("language_packs.py", "tokenizer.py", "vocabulary.py")  # what texts go through besides utils/amharic
BATCH_SECONDS = 60.0  # sound encoded at once, padding included
KEY = "key"
SUFFIX = ".arrow"
VERIFIED = "verified.json"  # sizes and times of files that were hashed as a whole

Array = npt.NDArray[Any]
Steps = Generator[Fact, None, None]


@dataclass(frozen=True)
class ClipFeatures:
    """Views of what is stored of one clip."""

    samples: int  # length at 22 050 Hz
    codes: Int16Array  # one for every 1024 samples and one for the rest
    mel: Float16Array  # frames of the reference, 80 bands each
    ids: npt.NDArray[np.int32]  # language token first, without start and stop


class FeatureStore:
    """The two tables that belong to the fingerprints of an audio encoder, and of a vocabulary with its front end."""

    def __init__(self, dataset: Path, audio_key: str, text_key: str) -> None:
        self.folder = dataset / FOLDER
        self.audio = Shards(self.folder / f"audio-{audio_key}", AUDIO, bulky=["mel"])
        self.text = Shards(self.folder / f"text-{text_key}", TEXT)

    @classmethod
    def open(cls, dataset: Path, audio_key: str, text_key: str) -> Self:
        """Open what ``build`` made, verified; what is damaged is an error."""
        features = cls(dataset, audio_key, text_key)
        features.audio.open()
        features.text.open()
        return features

    def __contains__(self, clip: Clip) -> bool:
        return clip.content in self.audio and text_hash(clip.text) in self.text

    def __getitem__(self, clip: Clip) -> ClipFeatures:
        codes, mel = (self.audio.row(clip.content, name) for name in ("codes", "mel"))
        samples = self.audio.number(clip.content, "samples")
        return ClipFeatures(samples, codes, mel.reshape(-1, BANDS), self.text.row(text_hash(clip.text), "ids"))

    def lengths(self, clip: Clip) -> tuple[int, int, int, int]:
        """Return the samples, codes, mel frames and token ids of a clip, without reading the last three."""
        samples = self.audio.number(clip.content, "samples")
        codes, mel = (self.audio.length(clip.content, name) for name in ("codes", "mel"))
        return samples, codes, mel // BANDS, self.text.length(text_hash(clip.text), "ids")


def text_hash(text: str) -> str:
    """Return the key of a text."""
    return hash_text(text, 16)


def text_fingerprint(tokenizer: "Tokenizer", language: str) -> str:
    """Hash everything that the ids of a text depend on; encoding again is cheap, so this errs to that side."""
    pack = tokenizer.pack(language)
    settings = tokenizer.settings.model_dump_json() if tokenizer.settings else ""
    parts = [tokenizer.vocabulary.hash, settings, pack.name, pack.code, version("coqui-tts"), _front_end()]
    return hash_text("\n".join(parts), 8)


@cache
def _front_end() -> str:
    """Hash the programs and word lists that texts go through."""
    digest = hashlib.blake2b(digest_size=8)
    utils = Path(__file__).parent.parent
    rules = sorted((utils / "amharic").rglob("*"))
    rules = [path for path in rules if path.is_file() and path.suffix != ".pyc"]
    for path in (*rules, *(utils / "xtts" / name for name in READERS)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def build(  # noqa: PLR0913  # data, models, and the two calls back
    dataset: Path,
    clips: Sequence[Clip],
    encoder: "AudioEncoder",
    tokenizer: "Tokenizer",
    language: str,
    report: Report = ignore,
    should_stop: ShouldStop = never_stop,
    *,
    thorough: bool = False,
) -> int:
    """Encode what is missing, and return how many clips cannot be; stopping early loses nothing that was encoded.

    A thorough build verifies stored mel frames too, which means reading all of them.
    """
    if nameless := next((clip.id for clip in clips if not clip.content), ""):
        raise DatasetError(dataset, "no_hash", nameless)
    features = FeatureStore(dataset, encoder.fingerprint, text_fingerprint(tokenizer, language))
    make_folder(features.folder)
    with file_lock(features.folder / ".lock"):
        for shards in (features.text, features.audio):
            for damage in shards.repair(thorough=thorough):
                report(FeaturesRemoved(damage))
        texts = _encode_texts(features.text, clips, lambda text: tokenizer.encode(text, language))
        audio_steps = _encode_audio(features.audio, clips, dataset, encoder)
        problems = 0
        for steps in (texts, audio_steps):
            with closing(steps):  # what was encoded is stored, also when this ends early
                for fact in steps:
                    problems += isinstance(fact, ClipNotEncoded)
                    report(fact)
                    raise_if_stopped(should_stop)
    return problems


def _encode_texts(shards: "Shards", clips: Sequence[Clip], encode: Callable[[str], list[int]]) -> Steps:
    texts = {text_hash(clip.text): clip for clip in clips}
    missing = [(key, clip) for key, clip in texts.items() if key not in shards]
    meter = _Meter("text", len(texts), len(missing), len(missing))
    for window in batched(missing, TEXT_ROWS):
        ids, problems = {}, list[ClipNotEncoded]()
        for key, clip in window:
            try:
                ids[key] = np.array(encode(clip.text), np.int32)
            except AmharicTtsError as error:
                problems.append(ClipNotEncoded(clip.id, error))
        if ids:
            shards.append(list(ids), {"ids": list(ids.values())})
        yield from problems  # once the others are stored: a stop ends here
        yield meter.step(len(window), len(window))


def _encode_audio(shards: "Shards", clips: Sequence[Clip], dataset: Path, encoder: "AudioEncoder") -> Steps:
    """Encode all missing audio, clips of similar length together."""
    sounds = {clip.content: clip for clip in clips}
    missing = [clip for content, clip in sounds.items() if content not in shards]
    meter = _Meter("audio", len(sounds), len(missing), total_seconds(missing))
    for window in batched(missing, AUDIO_ROWS):
        rows = {}
        try:
            read = partial(_read, dataset=dataset, encoder=encoder)
            for batch, waves, problems in prefetch(read, _batches(window)):
                for (content, wave), made in zip(waves.items(), encoder.encode([*waves.values()]), strict=True):
                    rows[content] = (wave.size, made.codes, made.mel.ravel())
                yield from problems
                yield meter.step(len(batch), total_seconds(batch))
        finally:  # also when the work is stopped between two batches
            if rows:
                shards.append(list(rows), dict(zip(AUDIO, zip(*rows.values(), strict=True), strict=True)))


def _batches(clips: Iterable[Clip]) -> Iterator[list[Clip]]:
    """Group clips by length such that a batch, filled up to its longest clip, has a bounded length."""
    by_length = sorted(clips, key=lambda clip: clip.span.seconds)
    return grouped(by_length, lambda batch, clip: (len(batch) + 1) * clip.span.seconds <= BATCH_SECONDS)


def _read(
    clips: list[Clip], dataset: Path, encoder: "AudioEncoder"
) -> tuple[list[Clip], dict[str, Samples], list[ClipNotEncoded]]:
    """Read the audio of clips; return them with it, by content hash."""
    waves = {}
    problems = []
    for clip in clips:
        path = resolve_inside(dataset, clip.audio)
        try:
            wave = audio.load(path, encoder.rate)
            if wave.size < encoder.min_samples:
                raise AudioFileError(path, "too_short", f"{wave.size / encoder.rate:.2f}")
            if not np.isfinite(wave).all():
                raise AudioFileError(path, "invalid_sample", "?")
            waves[clip.content] = wave
        except AmharicTtsError as error:
            problems.append(ClipNotEncoded(clip.id, error))
    return clips, waves, problems


class _Meter:
    """Counts clips, and estimates the time that is left from the share of the work that is done."""

    def __init__(self, part: str, total: int, missing: int, work: float) -> None:
        self.part = part
        self.total = total
        self.done = total - missing
        self.work = work
        self.worked = 0.0
        self.started = time.monotonic()

    def step(self, clips: int, work: float) -> Progress:
        self.done += clips
        self.worked += work
        share = min(1.0, self.worked / self.work) if self.worked else 1.0
        left = (time.monotonic() - self.started) * (1 - share) / share
        return Progress(self.done, self.total, self.part, round(100 * share, 1), round(left, 1))


class Shards:
    """A table of arrays that only grows: Arrow files, each written whole or not at all, and mapped into memory.

    A row has a key and some columns: numbers, or lists of numbers. Rows are read as NumPy views of the mapped file, so
    a table may be far larger than memory, and columns that are not used are not read. Bulky columns are too large to be
    hashed at every opening: ``repair`` hashes those of files whose size or time is new to it, a thorough one all.
    """

    def __init__(self, folder: Path, columns: Mapping[str, pa.DataType], bulky: Collection[str] = ()) -> None:
        self.folder = folder
        self.columns = columns
        self.bulky = bulky
        self.schema = pa.schema([(KEY, pa.string()), *columns.items()])
        self._shards: list[pa.RecordBatch] = []
        self._positions: dict[str, int] = {}  # shard and row in one number: a tuple takes three times the memory

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to another process as a folder to map there, never as the data."""
        return _open_shards, (self.folder, self.columns, self.bulky)

    def __len__(self) -> int:
        return len(self._positions)

    def __contains__(self, key: str) -> bool:
        return key in self._positions

    def row(self, key: str, name: str) -> Array:
        """Return a view of one row of a column with lists."""
        row: Array = self._find(key, name).values.to_numpy()
        return row

    def length(self, key: str, name: str) -> int:
        """Return how many numbers a row of a column with lists has, without reading them."""
        return len(self._find(key, name))

    def number(self, key: str, name: str) -> int:
        """Return one number of a column without lists."""
        return int(self._find(key, name).as_py())

    def _find(self, key: str, name: str) -> pa.Scalar:
        if (position := self._positions.get(key)) is None:
            raise DatasetError(self.folder, "no_features", key)
        shard, number = divmod(position, 1 << 32)
        return self._shards[shard].column(name)[number]

    def open(self) -> Self:
        """Map every shard; one that is damaged is an error."""
        for path in self._paths():
            self._map(path)
        return self

    def repair(self, *, thorough: bool = False) -> list[DamagedFeaturesError]:
        """Map every shard that is whole; delete the others, and what a killed writer left. Return what was deleted."""
        removed = []
        verified = read_object(self.folder / VERIFIED)
        for path in self._paths():
            try:
                self._map(path, thorough=thorough or verified.get(path.name) != list(file_version(path)))
            except DamagedFeaturesError as error:
                removed.append(error)
                path.unlink()
        for path in self.folder.glob(f".*{PARTIAL}"):
            path.unlink()
        self._note_verified()
        return removed

    def _note_verified(self) -> None:
        if paths := self._paths():
            write_document(self.folder / VERIFIED, {path.name: file_version(path) for path in paths})

    def append(self, keys: Sequence[str], columns: Mapping[str, Sequence[Array] | Array]) -> None:
        """Write rows as one new shard, all or none, and map it."""
        arrays = [pa.array(keys, pa.string()), *(_arrow(columns[name], kind) for name, kind in self.columns.items())]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        batch = batch.replace_schema_metadata(
            {name: _digest(batch.column(name)) for name in self.columns}
            | {"rows": str(len(keys)), KEY: text_hash("\n".join(keys))}
        )
        number = 1 + max((int(path.stem) for path in self._paths()), default=-1)
        path = self.folder / f"{number:06d}{SUFFIX}"
        make_folder(self.folder)
        with atomic_writer(path) as file, pa.ipc.new_file(file, batch.schema) as writer:
            writer.write_batch(batch)
        self._map(path)
        self._note_verified()

    def _paths(self) -> list[Path]:
        return sorted(self.folder.glob(f"[0-9]*{SUFFIX}"))

    def _map(self, path: Path, *, thorough: bool = False) -> None:
        """Map a shard whose rows and hashes are those that its writer noted."""
        batch, keys, noted = _read_batch(path)
        checked = (name for name in self.columns if thorough or name not in self.bulky)
        is_whole = batch.schema.equals(self.schema) and noted.get("rows") == str(len(keys))
        is_whole = is_whole and noted.get(KEY) == text_hash("\n".join(keys))
        if not is_whole or any(noted.get(name) != _digest(batch.column(name)) for name in checked):
            raise DamagedFeaturesError(path)
        first = len(self._shards) << 32
        self._shards.append(batch)
        self._positions.update((key, first + row) for row, key in enumerate(keys))


def _read_batch(path: Path) -> tuple[pa.RecordBatch, list[str], dict[str, str]]:
    """Map the rows of a shard; also return their keys, and what its writer noted."""
    try:
        with pa.memory_map(str(path)) as source:  # the map outlives the open file
            reader = pa.ipc.open_file(source)
            batch = reader.get_batch(0)
        batch.validate()
        noted = {name.decode(): value.decode() for name, value in (reader.schema.metadata or {}).items()}
        return batch, batch.column(KEY).to_pylist(), noted
    except (pa.ArrowException, OSError, ValueError, LookupError, SystemError) as error:  # of a length below 0
        raise DamagedFeaturesError(path, str(error)) from error


def _open_shards(folder: Path, columns: Mapping[str, pa.DataType], bulky: Collection[str]) -> Shards:
    return Shards(folder, columns, bulky).open()


def _digest(column: pa.Array) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in (column.values, column.offsets) if pa.types.is_list(column.type) else (column,):
        digest.update(part.to_numpy().data)
    return digest.hexdigest()


def _arrow(rows: Sequence[Array] | Array, kind: pa.DataType) -> pa.Array:
    """Put the rows of one column behind one another."""
    if not pa.types.is_list(kind):
        return pa.array(np.asarray(rows), kind)
    offsets = np.cumsum([0, *map(len, rows)], dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.concatenate(rows), kind.value_type), type=kind)
