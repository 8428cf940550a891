"""What training reads of each clip: audio codes, token ids and the mel frames of the reference, made once and kept.

``features/audio-<fingerprint>`` holds a row for each content hash, ``features/text-<fingerprint>`` one for each text.
The fingerprints are those of the DVAE with its mels, and of the vocabulary with its front end: another model makes
tables of its own, and a changed transcript makes a new text row only. Nothing here is ever changed, so work that was
interrupted goes on where it was; at most the rows of one shard are lost.
"""

import hashlib
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from utils.core.batching import batched, prefetch
from utils.core.errors import AmharicTtsError, DataError
from utils.core.paths import ROOT, resolve_inside
from utils.core.storage import file_lock
from utils.dataset.clip import Clip
from utils.dataset.shards import Array, Shards
from utils.media import audio
from utils.media.audio import Samples

if TYPE_CHECKING:
    from utils.xtts.codec import AudioEncoder
    from utils.xtts.tokenizer import Tokenizer

FOLDER = "features"
BANDS = 80
AUDIO = {"samples": pa.int32(), "codes": pa.list_(pa.int16()), "mel": pa.list_(pa.float16())}
TEXT = {"ids": pa.list_(pa.int32())}
AUDIO_ROWS = 512  # clips a shard: what a kill loses is 15 s of work on two cores
TEXT_ROWS = 4096
READERS = ("packs.py", "subwords.py", "tokenizer.py", "vocabulary.py")  # what texts go through beside utils/amharic
BATCH_SECONDS = 60.0  # sound encoded at once, padding included


@dataclass(frozen=True)
class ClipFeatures:
    """Views of what is stored of one clip.

    Attributes:
        samples: Length of its sound at 22 050 Hz.
        codes: Audio codes, one for every 1024 samples and one for the rest.
        mel: Frames of the reference, 80 bands each; a crop of it is read alone.
        ids: What the model reads, language token first, without start and stop.
    """

    samples: int
    codes: npt.NDArray[np.int16]
    mel: npt.NDArray[np.float16]
    ids: npt.NDArray[np.int32]


class Lengths(NamedTuple):
    """How long the parts of one clip are."""

    samples: int
    codes: int
    frames: int
    ids: int


@dataclass(frozen=True)
class Step:
    """How far the work is.

    Attributes:
        part: Which table is being made.
        done: Clips done, those found included.
        total: Clips in all.
        percent: Share of the missing work that is done.
        seconds_left: What the rest of this part will take.
        problems: What could not be encoded in this step, in sentences.
    """

    part: str
    done: int
    total: int
    percent: float
    seconds_left: float
    problems: tuple[str, ...] = ()


class Features:
    """The two tables that belong to one encoder and one way of reading.

    Args:
        dataset: The dataset folder.
        audio_key: Fingerprint of the audio encoder.
        text_key: Fingerprint of the vocabulary and its front end.
    """

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
        columns, row = self.audio.find(clip.content)
        words, line = self.text.find(text_hash(clip.text))
        mel = columns["mel"].row(row).reshape(-1, BANDS)
        return ClipFeatures(int(columns["samples"].row(row)[0]), columns["codes"].row(row), mel, words["ids"].row(line))

    def lengths(self, clip: Clip) -> Lengths:
        """Return how long the parts of a clip are, without reading them."""
        columns, row = self.audio.find(clip.content)
        words, line = self.text.find(text_hash(clip.text))
        frames = columns["mel"].length(row) // BANDS
        return Lengths(
            int(columns["samples"].row(row)[0]), columns["codes"].length(row), frames, words["ids"].length(line)
        )


def text_hash(text: str) -> str:
    """Return the key of a text."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def text_fingerprint(tokenizer: "Tokenizer", language: str) -> str:
    """Hash everything that the ids of a text depend on; making them anew is cheap, so this errs to that side."""
    pack = tokenizer.pack(language)
    settings = tokenizer.settings.model_dump_json() if tokenizer.settings else ""
    parts = [tokenizer.vocabulary.hash, settings, pack.name, pack.code, version("coqui-tts"), _front_end()]
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=8).hexdigest()


@cache
def _front_end() -> str:
    """Hash the programs and word lists that texts go through."""
    digest = hashlib.blake2b(digest_size=8)
    rules = [path for path in sorted((ROOT / "utils" / "amharic").rglob("*")) if path.suffix != ".pyc"]
    for path in (*rules, *(ROOT / "utils" / "xtts" / name for name in READERS)):
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()


def build(
    dataset: Path,
    clips: Sequence[Clip],
    encoder: "AudioEncoder",
    tokenizer: "Tokenizer",
    language: str,
    *,
    thorough: bool = False,
) -> Generator[Step, None, None]:
    """Encode what is missing, step by step; whoever closes this early loses nothing that was encoded.

    Args:
        dataset: The dataset folder, which the audio paths of the clips start from.
        clips: All clips that are in use.
        encoder: Makes codes and mel frames.
        tokenizer: Makes token ids.
        language: Language of the texts.
        thorough: Hash the mel frames of what is there too; it means reading all of it.
    """
    if nameless := next((clip.id for clip in clips if not clip.content), ""):
        raise DataError(
            f"Clip {nameless} has no content hash.", hint="Create the dataset with: python -m utils prepare."
        )
    features = Features(dataset, encoder.fingerprint, text_fingerprint(tokenizer, language))
    features.folder.mkdir(parents=True, exist_ok=True)
    with file_lock(features.folder / ".lock"):
        for part, shards in (("text", features.text), ("audio", features.audio)):
            if removed := shards.mend(thorough=thorough):
                yield Step(part, len(shards), len(clips), 0.0, 0.0, tuple(removed))
        yield from _texts(features.text, clips, lambda text: tokenizer.encode(text, language))
        yield from _sounds(features.audio, clips, dataset, encoder)


def _texts(shards: Shards, clips: Sequence[Clip], encode: Callable[[str], list[int]]) -> Iterator[Step]:
    """Encode every text that is not there."""
    texts = {text_hash(clip.text): clip for clip in clips}
    missing = [(key, clip) for key, clip in texts.items() if key not in shards]
    meter = _Meter("text", len(texts), len(missing), float(len(missing)))
    for window in batched(missing, TEXT_ROWS):
        ids: dict[str, Array] = {}
        problems = []
        for key, clip in window:
            try:
                ids[key] = np.array(encode(clip.text), np.int32)
            except AmharicTtsError as error:
                problems.append(f"{clip.id}: {error}")
        if ids:
            shards.append(list(ids), {"ids": list(ids.values())})
        yield meter.step(len(window), float(len(window)), problems)


def _sounds(shards: Shards, clips: Sequence[Clip], dataset: Path, encoder: "AudioEncoder") -> Iterator[Step]:
    """Encode every sound that is not there, clips of similar length together."""
    sounds = {clip.content: clip for clip in clips}
    missing = [clip for content, clip in sounds.items() if content not in shards]
    meter = _Meter("audio", len(sounds), len(missing), sum(clip.span.seconds for clip in missing))
    for window in batched(missing, AUDIO_ROWS):
        rows: dict[str, tuple[int, Array, Array]] = {}
        try:
            for batch in prefetch(lambda clips: _read(clips, dataset, encoder), _batches(window)):
                encoded = encoder.encode([*batch.waves.values()])
                for (content, wave), made in zip(batch.waves.items(), encoded, strict=True):
                    rows[content] = (wave.size, made.codes, made.mel.ravel())
                yield meter.step(len(batch.clips), sum(clip.span.seconds for clip in batch.clips), batch.problems)
        finally:  # also when the work is stopped between two batches
            if rows:
                shards.append(list(rows), dict(zip(AUDIO, zip(*rows.values(), strict=True), strict=True)))


class _Batch(NamedTuple):
    """Clips that are encoded together: their sound, and why some have none."""

    clips: list[Clip]
    waves: dict[str, Samples]
    problems: list[str]


def _batches(clips: Iterable[Clip]) -> Iterator[list[Clip]]:
    """Group clips by length such that a batch, filled up to its longest clip, has a bounded length."""
    batch: list[Clip] = []
    for clip in sorted(clips, key=lambda clip: clip.span.seconds):
        if batch and (len(batch) + 1) * clip.span.seconds > BATCH_SECONDS:
            yield batch
            batch = []
        batch.append(clip)
    if batch:
        yield batch


def _read(clips: list[Clip], dataset: Path, encoder: "AudioEncoder") -> _Batch:
    """Read the sound of clips; what cannot be used becomes a sentence."""
    batch = _Batch(clips, {}, [])
    for clip in clips:
        try:
            wave = audio.load(resolve_inside(dataset, clip.audio), encoder.rate)
        except AmharicTtsError as error:
            batch.problems.append(f"{clip.id}: {error}")
            continue
        if wave.size >= encoder.min_samples and bool(np.isfinite(wave).all()):
            batch.waves[clip.content] = wave
        else:
            batch.problems.append(f"{clip.id}: {clip.audio} is too short, or contains invalid samples.")
    return batch


class _Meter:
    """Counts clips, and guesses the time that is left from the share of the work that is done."""

    def __init__(self, part: str, total: int, missing: int, work: float) -> None:
        self.part, self.total, self.done, self.work, self.worked = part, total, total - missing, work, 0.0
        self.began = time.monotonic()

    def step(self, clips: int, work: float, problems: Sequence[str]) -> Step:
        """Count what was done since the last step."""
        self.done, self.worked = self.done + clips, self.worked + work
        share = min(1.0, self.worked / self.work) if self.worked else 1.0
        left = (time.monotonic() - self.began) * (1 - share) / share
        return Step(self.part, self.done, self.total, round(100 * share, 1), round(left, 1), tuple(problems))
