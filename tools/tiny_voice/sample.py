"""A recording to learn a speaker from: three minutes of one whom the small voice never heard, with subtitles."""

from pathlib import Path

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


def write_recording(folder: Path, speaker: Speaker) -> None:
    """Write the recording of a speaker, one sentence after the other until the time is full, and its subtitles."""
    random, pause = np.random.default_rng(SEED), np.zeros(round(PAUSE * RATE), np.float32)
    parts, cues, start = list[Samples](), list[Cue](), 0.0
    for text in evenly_spaced(read_sentences()["train"], DRAWN):
        samples = trimmed(say(text, speaker.varied(random)))
        end = start + samples.size / RATE
        if end + PAUSE > SECONDS:
            break
        parts += [samples, pause]
        cues.append(Cue(Span(start, end), text))
        start = end + PAUSE
    make_folder(folder)
    write_audio(folder / AUDIO_FILE, resample(np.concatenate(parts), RATE, OUTPUT_RATE), OUTPUT_RATE)
    write_atomically(folder / SUBTITLE_FILE, srt(cues))
