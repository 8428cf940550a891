"""Speech with planted errors: voices and sentences that the recogniser never learnt, in four kinds of recordings."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tools.phone_recogniser import RATE, by_telephone, coloured_noise, in_room, mixed, people, render
from tools.tiny_voice.corpus import read_sentences
from tools.tiny_voice.espeak import Espeak
from tools.tiny_voice.speakers import HELD_OUT, Speaker
from utils.media import audio
from utils.media.audio import Samples
from utils.recognition.units import units_of

SHORTEST = 4  # units of a word that is left out or planted
KINDS = ("clean", "music", "telephone", "reverb")
OTHERS = tuple(
    Speaker(name, name, pitch, pace)
    for name, pitch, pace in (("klatt5", 45, 150), ("travis", 40, 165), ("antonio", 60, 140))
)
VOICES = (*HELD_OUT, *OTHERS)  # none of them is in the training


@dataclass(frozen=True)
class PlantedClip:
    """A clip, what is really said in it, and the text that came with it."""

    samples: Samples  # at 16 kHz
    said: str
    text: str
    error: str = ""  # swapped, missing (a word that is said), extra (a word that is not), or nothing
    kind: str = "clean"
    voice: str = ""


@functools.cache
def _espeak() -> Espeak:
    return Espeak()


def project(
    count: int, *, seed: int = 0, swapped: float = 0.2, missing: float = 0.1, extra: float = 0.1
) -> list[PlantedClip]:
    """Return clips of a project, of which these shares have a wrong text."""
    random = np.random.default_rng(seed)
    texts = _texts(random, count)
    clips = [_clip(text, number, random) for number, text in enumerate(texts)]
    return plant(clips, random, (swapped, missing, extra))


def read_aloud(folder: Path, count: int, seed: int, fold: int) -> list[PlantedClip]:
    """Return clips of people whom a recogniser of this fold never heard, as many of each, with planted errors."""
    random = np.random.default_rng(seed)
    readers = people(folder, fold)
    chosen = []
    for name, clips in readers.items():
        for number in random.permutation(len(clips))[: -(-count // len(readers))]:
            path, text = clips[number]
            chosen.append(PlantedClip(audio.load(path, RATE), text, text, kind=name, voice=name))
    return plant(chosen, random, (0.2, 0.1, 0.1))


def plant(
    clips: Sequence[PlantedClip], random: np.random.Generator, shares: tuple[float, float, float]
) -> list[PlantedClip]:
    """Swap the texts of a share of the clips, leave a word out of others, and put one too many into others."""
    planted, texts = list(clips), [clip.said for clip in clips]
    order = random.permutation(len(clips))
    a, b, c = np.cumsum([round(share * len(clips)) for share in shares])
    for number in order[:a]:
        planted[number] = replace(clips[number], text=_similar(number, texts, random), error="swapped")
    for number in order[a:c]:
        error = "missing" if number in set(order[a:b].tolist()) else "extra"
        text = _with_error(clips[number].said, error, texts, random)
        planted[number] = replace(clips[number], text=text, error=error)
    return planted


def _texts(random: np.random.Generator, count: int) -> list[str]:
    """Draw sentences of four words and more that are held out from the training; more than there are get mixed."""
    sentences = [text for text in read_sentences()["eval"] if len(text.split()) >= 4]
    texts = [sentences[number] for number in random.permutation(len(sentences))[:count]]
    while len(texts) < count:
        first, second = (sentences[int(random.integers(len(sentences)))].split() for _ in range(2))
        texts.append(" ".join([*first[: len(first) // 2 + 1], *second[len(second) // 2 :]]))
    return texts


def _clip(text: str, number: int, random: np.random.Generator) -> PlantedClip:
    voice, kind = VOICES[number % len(VOICES)], KINDS[number // len(VOICES) % len(KINDS)]
    sound, _ = render(_espeak(), text, voice.varied(random))
    return PlantedClip(
        recorded(np.pad(sound, round(0.15 * RATE)), kind, random), text, text, kind=kind, voice=voice.name
    )


def recorded(sound: Samples, kind: str, random: np.random.Generator) -> Samples:
    """Return the sound as this kind of recording has it, always with a little noise."""
    if kind == "reverb":
        sound = in_room(sound, 0.6, 0.6, random)
    if kind == "music":
        sound = mixed(sound, melody(sound.size, random), 10)
    sound = mixed(sound, coloured_noise(sound.size, random), 30)
    sound = by_telephone(sound) if kind == "telephone" else sound
    return sound * np.float32(0.5 / np.abs(sound).max())


def melody(size: int, random: np.random.Generator) -> Samples:
    """Return a tune with a bass and drums, unlike the chords of the training."""
    music = np.zeros(size + RATE, np.float32)
    beat, scale, note = round(0.28 * RATE), (0, 2, 4, 7, 9, 12, 14, 16), 3
    ticks = np.arange(beat) / RATE
    for number, start in enumerate(range(0, size, beat)):
        note = int(np.clip(note + random.integers(-2, 3), 0, 7))
        for pitch, level in ((440 * 2 ** (scale[note] / 12), 1.0), (110 if number % 4 < 2 else 146.8, 0.8)):
            saw = sum(np.sin(2 * np.pi * pitch * k * ticks) / k for k in range(1, 9))
            music[start : start + beat] += (level * saw * np.minimum(1, ticks * 60) * np.exp(-2 * ticks)).astype(
                np.float32
            )
        if number % 2:
            music[start : start + beat // 4] += (
                random.standard_normal(beat // 4) * np.exp(-np.arange(beat // 4) / 300)
            ).astype(np.float32)
    return music[:size]


def _similar(number: int, texts: Sequence[str], random: np.random.Generator) -> str:
    """Return another text of about as many units."""
    lengths = np.array([_length(text) for text in texts])
    near = np.argsort(np.abs(lengths - lengths[number]) + random.random(len(texts)))
    return next(text for other in near if (text := texts[int(other)]) != texts[number])


@functools.cache
def _length(text: str) -> int:
    return sum(len(word.units) for word in units_of("am").words(text))


def _with_error(said: str, error: str, texts: Sequence[str], random: np.random.Generator) -> str:
    """Return the text without a word of four units or more, or with one more."""
    words = [word.text for word in units_of("am").words(said)]
    if error == "missing":
        places = [number for number, word in enumerate(words) if _length(word) >= SHORTEST]
        if not places:
            return said
        del words[places[int(random.integers(len(places)))]]
        return " ".join(words)
    while True:
        other = texts[int(random.integers(len(texts)))].split()
        word = other[int(random.integers(len(other)))]
        if _length(word) >= SHORTEST and word not in words:
            words.insert(int(random.integers(len(words) + 1)), word)
            return " ".join(words)
