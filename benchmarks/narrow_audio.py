"""What recordings that end early do to a voice: python -m benchmarks.narrow_audio RECORDING... [--sentences 4].

Each recording is used as it is and at lower sample rates, by the embedded voice: what the codec makes of it, and how
the voice speaks that has it as its reference. Similarity to the recording as it is needs the package resemblyzer.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import numpy as np

from utils.config import SpeechConfig
from utils.core.paths import TINY_MODEL
from utils.evaluation.voice_scores import speaker_encoder
from utils.media import audio
from utils.media.audio import Samples
from utils.media.rates import OUTPUT_RATE, RATE
from utils.recognition import signal_checks
from utils.speech.synthesizer import Synthesizer, open_voice, speak
from utils.xtts.codec import AudioEncoder

RATES = (RATE, 16_000, 11_025, 8_000)
SENTENCES = ("ሰላም ለዓለም፣ እንደምን አላችሁ?", "ዛሬ አዲስ አበባ ውስጥ ዝናብ ጣለ።", "ቡና እንጠጣ ወይስ ሻይ?", "ልጆቹ በትምህርት ቤት ይማራሉ።")


class Row(NamedTuple):
    """Means over the recordings."""

    rate: int
    ends: float  # kHz, of the recordings
    codec: float  # dB lost by the codec
    codes: float  # share of the codes that are those of the recording as it is
    speech_ends: float  # kHz, of speech in their voice
    similarity: float  # of that speech to the recording as it is
    own: float  # of the recording itself to itself as it is


def limited(samples: Samples, rate: int) -> Samples:
    """Return what a recorder at a lower rate would have kept."""
    return audio.resample(audio.resample(samples, RATE, rate), rate, RATE) if rate != RATE else samples


def ends(samples: Samples, rate: int) -> float:
    return signal_checks.band_limit(audio.resample(samples, rate, signal_checks.RATE)) / 1000


def speech_in_voice(voice: Synthesizer, samples: Samples, sentences: Sequence[str], seed: int) -> Samples:
    """Return sentences spoken in the voice of a recording."""
    with tempfile.TemporaryDirectory() as folder:
        reference = Path(folder, "reference.wav")
        audio.save(reference, samples, RATE)
        settings = SpeechConfig(reference=str(reference), seed=seed, language="am", tries=1)
        return np.concatenate([speak(voice, text, settings).samples for text in sentences])


def measure(paths: Sequence[Path], sentences: Sequence[str]) -> list[Row]:
    """Measure the recordings at every rate."""
    encoder, voice, encode_voice = (
        AudioEncoder.load(TINY_MODEL),
        open_voice(TINY_MODEL, device="cpu"),
        speaker_encoder(),
    )
    if encode_voice is None:
        sys.exit("Similarity needs resemblyzer: python -m pip install resemblyzer")
    rows = []
    for rate in RATES:
        values = []
        for number, path in enumerate(paths):
            whole = audio.load(path, RATE)
            samples = limited(whole, rate)
            codes, wide = (encoder.encode([part])[0].codes for part in (samples, whole))
            spoken = speech_in_voice(voice, samples, sentences, number)
            target, own = (encode_voice(audio.resample(part, RATE, OUTPUT_RATE)) for part in (whole, samples))
            same, similarity = float((codes == wide).mean()), float(encode_voice(spoken) @ target)
            lost, own_similarity = encoder.error_db(samples), float(own @ target)
            values.append((ends(samples, RATE), lost, same, ends(spoken, OUTPUT_RATE), similarity, own_similarity))
        rows.append(Row(rate, *map(mean, zip(*values, strict=True))))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", type=Path, nargs="+")
    parser.add_argument("--sentences", type=int, default=len(SENTENCES))
    arguments = parser.parse_args()
    rows = measure(arguments.recordings, SENTENCES[: arguments.sentences])
    sys.stdout.write("  ".join(f"{name:>11}" for name in Row._fields) + "\n")
    for row in rows:
        sys.stdout.write("  ".join(f"{value:>11.2f}" for value in row) + "\n")


if __name__ == "__main__":
    main()
