"""Whether the codec of a model can represent the clips of a run, and that the run keeps its codec.

What the codec loses, the model cannot learn: it never hears the clips themselves, only their codes.
"""

import json
from collections.abc import Sequence

import numpy as np

from utils.core.batching import evenly_spaced
from utils.core.errors import RunError
from utils.core.paths import SAMPLE_SPEECH
from utils.core.storage import read_json, write_atomically
from utils.dataset.clip import Clip
from utils.dataset.features import Features
from utils.dataset.metadata import ClipLists
from utils.media import audio
from utils.media.rates import RATE
from utils.runs.job import Job
from utils.xtts.codec import AudioEncoder

FILE = "codec.json"  # in the run folder
CLIPS, SAMPLE_SECONDS = 8, 8.0  # that are encoded and decoded
WORSE = 1.5  # times the error on the sample speech; a choice, not a measurement


def audit_codec(job: Job, encoder: AudioEncoder, clips: ClipLists, features: Features) -> None:
    """Report once per run how well the codec represents the clips; refuse another codec when the run is resumed."""
    path = job.run.folder / FILE
    if path.is_file():
        if read_json(path).get("codec") != encoder.fingerprint:
            raise RunError(
                "The codec (dvae.pth) of the base model is not the one that this run started with.", hint="Restore it."
            )
        return
    stored = [clip for clip in clips.train if clip in features]
    audited: dict[str, object] = {"codec": encoder.fingerprint}
    if stored and encoder.decoder is not None:
        chosen = evenly_spaced(stored, CLIPS)
        error = float(np.mean([encoder.error_db(audio.load(clips.folder / clip.audio, RATE)) for clip in chosen]))
        expected = encoder.error_db(audio.load(SAMPLE_SPEECH, RATE, end=SAMPLE_SECONDS))
        used, perplexity = code_usage(features, stored, encoder.codebook.n_embed)
        audited |= {"error_db": round(error, 2), "sample_error_db": round(expected, 2), "codes_used": round(used, 4)}
        message = (
            f"Codec error: {error:.1f} dB on the clips ({expected:.1f} dB on the sample speech). "
            f"The clips use {used:.0%} of its codes."
        )
        job.events.emit("codec", message=message, perplexity=round(perplexity, 1), **audited)
        if error > WORSE * expected:
            warning = f"{message} It represents this audio badly: look for noise, music or a narrow frequency band."
            job.events.emit("warning", message=warning)
    write_atomically(path, json.dumps(audited))


def code_usage(features: Features, clips: Sequence[Clip], codes: int) -> tuple[float, float]:
    """Return the share of the codes that some clips use, and how many equally frequent codes that would be."""
    counts = np.zeros(codes, np.int64)
    for clip in evenly_spaced(clips, 2000):
        counts += np.bincount(features[clip].codes, minlength=codes)
    shares = counts[counts > 0] / counts.sum()
    return float((counts > 0).mean()), float(np.exp(-(shares * np.log(shares)).sum()))
