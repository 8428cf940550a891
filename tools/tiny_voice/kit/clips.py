"""Lets espeak-ng speak the takes, moves their periods to the grid, and encodes them, on all cores."""

import hashlib
import json
import multiprocessing
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
import torch

from tools.tiny_voice.espeak import RATE, Espeak
from tools.tiny_voice.grid import CODE, move_to_grid
from tools.tiny_voice.kit.codec import Codec
from tools.tiny_voice.pitch import track_pitch

TAKES, CODEC, LIBRARY = "takes.jsonl", "codec.pt", "espeak"
QUIET = 10 ** (-50 / 20)  # below the loudest sample: silence
MARGIN, PADDING = 0.06, 0.15  # seconds of silence kept at both ends, and added at most
LEVEL = 10 ** (-23 / 20)  # of what is not silence
PEAK = 10 ** (-1 / 20)
FULL = 32767

Sound = npt.NDArray[np.float32]

Integers = npt.NDArray[np.int16]


@dataclass(frozen=True)
class Take:
    """What is spoken, and how.

    Attributes:
        speaker: Row of the prompts and embeddings.
        phones: As ``phonemize`` writes them.
        ids: Tokens of the text.
        unseen: Whether it is only measured.
        heard: Whether it is one of the voices that the vocoder learns most from.
        block: Codes that hold a whole number of periods.
        warp: Factor of all frequencies.
    """

    name: str
    speaker: int
    phones: str
    ids: list[int]
    variant: str
    pitch: int
    pace: int
    range: int
    warp: float = 1.0
    block: int = 1
    unseen: bool = False
    heard: bool = False

    def line(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)


@dataclass(frozen=True)
class Clips:
    """All clips one after another.

    Attributes:
        takes: One for each clip.
        sound: 1,024 samples a code, 16 bits each.
        codes: Of all clips.
        first: Of each clip its first code, and the end of the last.
    """

    takes: Sequence[Take]
    sound: Integers
    codes: Integers
    first: npt.NDArray[np.int64]

    @classmethod
    def load(cls, pack: Path, work: Path, amount: int | None) -> Self:
        """Read the clips of a pack from the work folder; render them first if they are not there."""
        lines = (pack / TAKES).read_text("utf-8").splitlines()[:amount]
        takes = [Take(**json.loads(line)) for line in lines]
        digest = hashlib.blake2b("\n".join(lines).encode(), digest_size=8).hexdigest()
        names = [work / f"{name}-{digest}.npy" for name in ("sound", "codes", "first")]
        if not names[-1].is_file():
            sounds, codes = zip(*_render(pack, takes), strict=True)
            first = np.cumsum([0, *map(len, codes)])
            for path, array in zip(names, (np.concatenate(sounds), np.concatenate(codes), first), strict=True):
                np.save(path, array)
        return cls(takes, *(np.load(path, mmap_mode="r") for path in names))

    def codes_of(self, number: int) -> Integers:
        return self.codes[self.first[number] : self.first[number + 1]]

    def select(self, *, unseen: bool = False, heard: bool | None = None) -> npt.NDArray[np.int64]:
        """Return the numbers of clips."""
        fitting = [take.unseen == unseen and (heard is None or take.heard == heard) for take in self.takes]
        return np.flatnonzero(fitting)


def speak(take: Take, espeak: Espeak) -> Sound:
    """Return a take as espeak-ng says it, between silence, with a whole number of codes."""
    random = np.random.default_rng(int.from_bytes(hashlib.blake2b(take.name.encode(), digest_size=8).digest()))
    pace = round(take.pace / take.warp)
    spoken = espeak.speak(take.phones, take.variant, pitch=take.pitch, pace=pace, range=take.range)
    sound = trimmed(_slower(spoken, take.warp))
    before, after = (round(random.uniform(0, PADDING) * RATE) for _ in range(2))
    size = before + len(sound) + after
    return np.pad(sound, (before, after + -size % CODE))


def to_grid(sound: Sound, take: Take) -> Sound:
    """Move a take to the grid."""
    return move_to_grid(sound, track_pitch(sound, RATE), take.block)


def _render(pack: Path, takes: Sequence[Take]) -> Iterator[tuple[Integers, Integers]]:
    context = multiprocessing.get_context("spawn")  # each process has an espeak-ng of its own
    with context.Pool(None, _begin, (pack,)) as pool:  # on all cores
        for done, rendered in enumerate(pool.imap(_render_one, takes, chunksize=20), 1):
            yield rendered
            if done % 1000 == 0 or done == len(takes):
                print(f"{done:,} of {len(takes):,} clips", flush=True)


class _Worker:
    """What a process keeps."""

    espeak: Espeak
    codec: Codec


def _begin(pack: Path) -> None:
    torch.set_num_threads(1)
    _Worker.espeak = Espeak(pack / LIBRARY if (pack / LIBRARY).is_dir() else None)
    _Worker.codec = Codec(torch.load(pack / CODEC, weights_only=True))


def _render_one(take: Take) -> tuple[Integers, Integers]:
    sound = to_grid(speak(take, _Worker.espeak), take)
    return np.round(sound.clip(-1, 1) * FULL).astype(np.int16), _Worker.codec.encode(sound)


def trimmed(sound: Sound) -> Sound:
    """Cut off the silence at both ends but for a little, and bring what is left to one level."""
    loudest = max(float(np.abs(sound).max(initial=0)), 1e-9)
    loud = np.flatnonzero(np.abs(sound) > QUIET * loudest)
    margin = round(MARGIN * RATE)
    power = float(np.sqrt(np.mean(np.square(sound[loud])))) if loud.size else 1.0
    if loud.size:
        sound = sound[max(0, loud[0] - margin) : loud[-1] + margin]
    return sound * np.float32(min(LEVEL / max(power, 1e-6), PEAK / loudest))


def _slower(sound: Sound, factor: float) -> Sound:
    """Multiply all frequencies and the pace."""
    if factor == 1:
        return sound
    spectrum, size = np.fft.rfft(sound), round(len(sound) / factor)
    kept = np.zeros(size // 2 + 1, complex)
    shared = min(len(kept), len(spectrum))
    kept[:shared] = spectrum[:shared]
    return (np.fft.irfft(kept, size) * size / len(sound)).astype(np.float32)
