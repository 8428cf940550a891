"""The audio stage: every clip spoken by espeak-ng, trimmed, at equal loudness, and listed as a dataset."""

import hashlib
import multiprocessing
import os
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from tools.tiny_voice.corpus import Kind, Take
from tools.tiny_voice.speakers import BY_NAME, Speaker, speak
from tools.tiny_voice.stages import Progress
from utils.core.languages import AMHARIC
from utils.core.storage import make_folder, write_atomically
from utils.dataset.clip import Split
from utils.dataset.metadata import HEADER, format_row, header_seconds
from utils.media import audio
from utils.media.audio import Samples
from utils.media.loudness import LARGEST_PEAK, TARGET_LUFS
from utils.media.rates import RATE
from utils.xtts.language_packs import pack_for

WAVS, ENDING = "wavs", ".flac"
MARGIN = round(0.06 * RATE)  # silence kept on both sides
SHORTEST = round(0.6 * RATE)  # training drops what is shorter than half a second
QUIET = 10 ** (-50 / 20)  # below the loudest sample: what synthetic speech has around it
NOISY, NOISE = 0.1, (-65.0, -50.0)  # share of takes with noise, and its level in dB
REVERBERANT, ECHO = 0.1, (0.05, 0.12)  # share of takes in a small room, and seconds until its sound has fallen by 60 dB
PADDING = 0.15  # seconds of further silence on each side, at most: data preparation leaves that much
WET = 0.25  # level of the room's sound


def render_all(takes: Sequence[Take], folder: Path, progress: Progress) -> float:
    """Speak every take that has no file yet and return the seconds of all."""
    make_folder(folder / WAVS)
    context = multiprocessing.get_context("spawn")  # each process has an espeak-ng of its own
    with context.Pool(os.cpu_count()) as pool:
        seconds = pool.imap_unordered(partial(_record, folder=folder), takes, chunksize=50)
        return sum(progress.over(seconds, len(takes)))


def write_list(folder: Path, name: str, takes: Iterable[Take]) -> Path:
    """Write a list of clips as plain coqui-tts reads it."""
    lines = [format_row(f"{WAVS}/{take.name}{ENDING}", take.text, take.speaker) for take in takes]
    write_atomically(folder / name, "\n".join([HEADER, *lines, ""]))
    return folder / name


def select(takes: Iterable[Take], kind: Kind, split: Split) -> list[Take]:
    """Return the takes of a kind and side."""
    return [take for take in takes if (take.kind, take.split) == (kind, split)]


def render(text: str, speaker: Speaker) -> Samples:
    """Speak a text with espeak-ng as our front end reads it, trimmed and at the loudness of every clip."""
    pack = pack_for(AMHARIC.code)
    return normalize_loudness(trim_silence(speak(pack.phonemize(pack.normalize(text)), speaker).samples))


def trim_silence(sound: Samples) -> Samples:
    """Cut off the silence at both ends but for a little, and fill up what is very short."""
    loud = np.flatnonzero(np.abs(sound) > QUIET * np.abs(sound).max(initial=1e-9))
    if loud.size:
        sound = sound[max(0, loud[0] - MARGIN) : loud[-1] + MARGIN]
    lacking = max(0, SHORTEST - sound.size)
    return np.pad(sound, (lacking // 2, lacking - lacking // 2))


def normalize_loudness(sound: Samples) -> Samples:
    """Bring the mean power of what is not silence to one level; BS.1770 has no loudness of a single word."""
    heard = sound[np.abs(sound) > QUIET * np.abs(sound).max(initial=1e-9)]
    power = float(np.sqrt(np.mean(np.square(heard)))) if heard.size else 1.0
    gain = min(10 ** (TARGET_LUFS / 20) / max(power, 1e-6), LARGEST_PEAK / float(np.abs(sound).max(initial=1e-6)))
    return sound * np.float32(gain)


def vary_recording(sound: Samples, random: np.random.Generator) -> Samples:
    """Add a small room to some sounds and noise to some."""
    if random.random() < REVERBERANT:
        size = round(random.uniform(*ECHO) * RATE)
        room = random.standard_normal(size) * 10 ** (-3 * np.arange(size) / size)
        echo = np.convolve(sound, room / np.linalg.norm(room))[: sound.size]
        sound = sound + np.float32(WET) * echo.astype(np.float32)
    if random.random() < NOISY:
        level = 10 ** (random.uniform(*NOISE) / 20)
        sound = sound + np.float32(level) * random.standard_normal(sound.size).astype(np.float32)
    return sound


def _record(take: Take, folder: Path) -> float:
    """Speak a take unless its file is there; return its seconds."""
    path = folder / WAVS / f"{take.name}{ENDING}"
    if not path.is_file():
        random = np.random.default_rng(int.from_bytes(hashlib.blake2b(take.name.encode(), digest_size=8).digest()))
        sound = render(take.text, BY_NAME[take.speaker].varied(random))
        before, after = (round(random.uniform(0, PADDING) * RATE) for _ in range(2))
        audio.save(path, vary_recording(np.pad(sound, (before, after)), random), RATE)
    return header_seconds(path) or audio.duration(path)
