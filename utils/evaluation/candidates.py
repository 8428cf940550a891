"""Models on disk as the ones to be judged: one at a time in memory, each told from the others by its files."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from utils.config import SpeechConfig
from utils.core.paths import OUTPUT
from utils.evaluation.models import Candidate, Model, Vector
from utils.media.audio import Samples, resample
from utils.media.rates import OUTPUT_RATE
from utils.speech.model_lookup import locate
from utils.speech.synthesizer import Synthesizer
from utils.speech.types import Speech
from utils.xtts.checkpoints import PREFIX
from utils.xtts.memory import free_memory

ENCODER_RATE = 16_000


class Loaded:
    """A synthesizer, and the speaker encoder that comes with it.

    Args:
        synthesizer: The model.
    """

    def __init__(self, synthesizer: Synthesizer) -> None:
        self._synthesizer = synthesizer
        self._encoder: Any = synthesizer.model.vocoder.get_submodule("speaker_encoder")
        self.encoder = _fingerprint(self._encoder)

    def speak(self, text: str, config: SpeechConfig) -> Speech:
        """Speak a text."""
        return self._synthesizer.speak(text, config)

    def voice(self, reference: str) -> Vector:
        """Return what the vocoder is given of a voice."""
        embedding = self._synthesizer.voice(reference).embedding.detach().float().cpu().numpy().reshape(-1)
        return np.asarray(embedding / max(float(np.linalg.norm(embedding)), 1e-9), np.float32)

    def voice_of(self, samples: Samples) -> Vector:
        """Return the voice that is heard in a sound at 24 kHz."""
        weight = next(self._encoder.parameters())
        sound = torch.from_numpy(resample(samples, OUTPUT_RATE, ENCODER_RATE))[None].to(weight.device, weight.dtype)
        with torch.no_grad():
            found = self._encoder(sound, l2_norm=True)
        return np.asarray(found.float().cpu().numpy().reshape(-1), np.float32)


def candidates(places: Sequence[str], config: SpeechConfig, output: Path = OUTPUT) -> list[Candidate]:
    """Name the models in some places; nothing is loaded, and what is not there is told at once.

    Args:
        places: As for ``Synthesizer.load``.
        config: Where and in which precision they compute.
        output: Where the projects lie.
    """
    found = list(dict.fromkeys(locate(place, output).resolve() for place in places))
    return [
        Candidate(name, _files(path), partial(_loaded, path, config))
        for name, path in zip(names(found), found, strict=True)
    ]


def names(paths: Sequence[Path]) -> list[str]:
    """Name models after their run and step, or their project; the same name twice gets a number."""
    made: list[str] = []
    for path in paths:
        name = base = _name(path)
        number = 2
        while name in made:
            name, number = f"{base} ({number})", number + 1
        made.append(name)
    return made


def _name(path: Path) -> str:
    if path.name.startswith(PREFIX) and len(path.parts) > 3:
        return f"{path.parent.parent.name} {path.name}"
    return path.parent.name if path.name == "ready" else path.stem if path.is_file() else path.name


@contextmanager
def _loaded(path: Path, config: SpeechConfig) -> Iterator[Model]:
    model = Loaded(Synthesizer.load(path, config.device, config.precision))
    try:
        yield model
    finally:
        model.__dict__.clear()  # whoever still holds it, a traceback for one, must not keep gigabytes
        free_memory()


def _files(path: Path) -> str:
    """Hash names, sizes and times of the files of a model, which is enough to notice that one was replaced."""
    folder = path if path.is_dir() else path.parent
    told = [(one.name, one.stat().st_size, one.stat().st_mtime_ns) for one in sorted(folder.iterdir()) if one.is_file()]
    return hashlib.blake2b(repr((path.name, told)).encode(), digest_size=12).hexdigest()


def _fingerprint(module: torch.nn.Module) -> str:
    """Hash the weights of a module."""
    digest = hashlib.blake2b(digest_size=8)
    for name, weight in module.state_dict().items():
        digest.update(name.encode())
        digest.update(weight.detach().float().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
