"""A recording to learn a speaker from: three minutes of one whom the small voice never heard, with subtitles."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tools.tiny_voice.corpus import read_sentences
from tools.tiny_voice.kit.clips import trimmed
from tools.tiny_voice.speakers import Speaker, say
from utils.core.batching import evenly_spaced
from utils.core.storage import make_folder, write_atomically
from utils.media.audio import Samples, resample
from utils.media.encoding import write_audio
from utils.media.rates import OUTPUT_RATE, RATE
from utils.recognition.spans import Cue, Span
from utils.speech.subtitles import srt
from utils.studio.sample_project import AUDIO_FILE, SUBTITLE_FILE

SECONDS = 180.0
PAUSE = 0.7  # seconds after each sentence
DRAWN = 60  # sentences, spread over all kinds; as many of them are spoken as there is time for
SEED = 7


def write_recording(folder: Path, speaker: Speaker) -> dict[str, Any]:
    """Write the recording of a speaker and its subtitles."""
    make_folder(folder)
    spoken = list(_spoken(speaker))
    pause = np.zeros(round(PAUSE * RATE), np.float32)
    sound = np.concatenate([part for _, samples in spoken for part in (samples, pause)])
    write_audio(folder / AUDIO_FILE, resample(sound, RATE, OUTPUT_RATE), OUTPUT_RATE)
    write_atomically(folder / SUBTITLE_FILE, srt(_cues(spoken)))
    return {"clips": len(spoken), "length": round(sound.size / RATE, 1), "bytes": (folder / AUDIO_FILE).stat().st_size}


def _spoken(speaker: Speaker) -> Iterator[tuple[str, Samples]]:
    """Speak one sentence after the other until the time is full."""
    random = np.random.default_rng(SEED)
    left = SECONDS
    for text in evenly_spaced(read_sentences()["train"], DRAWN):
        samples = trimmed(say(text, speaker.varied(random)))
        left -= samples.size / RATE + PAUSE
        if left < 0:
            return
        yield text, samples


def _cues(spoken: list[tuple[str, Samples]]) -> list[Cue]:
    lengths = [samples.size / RATE for _, samples in spoken]
    ends = itertools.accumulate(length + PAUSE for length in lengths)
    return [
        Cue(Span(end - PAUSE - length, end - PAUSE), text)
        for (text, _), length, end in zip(spoken, lengths, ends, strict=True)
    ]
