"""Sentences spoken by espeak-ng, trimmed, at equal loudness."""

import numpy as np

from tools.tiny_voice.speakers import Speaker, speak
from utils.core.languages import AMHARIC
from utils.media.audio import Samples
from utils.media.loudness import LARGEST_PEAK, TARGET_LUFS
from utils.media.rates import RATE
from utils.xtts.language_packs import pack_for

MARGIN = round(0.06 * RATE)  # silence kept on both sides
SHORTEST = round(0.6 * RATE)  # training drops what is shorter than half a second
QUIET = 10 ** (-50 / 20)  # below the loudest sample: what synthetic speech has around it


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
