"""The models to evaluate: what they can do, how they are named, and how they are loaded one at a time."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from utils.config import SpeechConfig
from utils.core.paths import OUTPUT
from utils.media.audio import Samples, resample
from utils.media.rates import OUTPUT_RATE
from utils.speech.models import find_model
from utils.speech.synthesizer import Synthesizer
from utils.speech.types import Speech
from utils.xtts.checkpoints import PREFIX
from utils.xtts.device import free_memory

ENCODER_RATE = 16_000

Vector = npt.NDArray[np.float32]


class LoadedModel:
    """A synthesizer with its speaker encoder.

    Attributes:
        encoder: Fingerprint of the speaker encoder.
    """

    def __init__(self, synthesizer: Synthesizer) -> None:
        self._synthesizer = synthesizer
        self._encoder: Any = synthesizer.model.vocoder.get_submodule("speaker_encoder")
        self.encoder = _weights_fingerprint(self._encoder)

    def speak(self, text: str, config: SpeechConfig) -> Speech:
        """Speak a text."""
        return self._synthesizer.speak(text, config)

    def voice(self, reference: str) -> Vector:
        """Return the speaker embedding of a reference: audio files separated by |, a speaker name, or the default."""
        embedding = self._synthesizer.voice(reference).embedding.detach().float().cpu().numpy().reshape(-1)
        return np.asarray(embedding / max(float(np.linalg.norm(embedding)), 1e-9), np.float32)

    def voice_of(self, samples: Samples) -> Vector:
        """Return the speaker embedding of 24 kHz audio, with length 1."""
        weight = next(self._encoder.parameters())
        audio = torch.from_numpy(resample(samples, OUTPUT_RATE, ENCODER_RATE))[None].to(weight.device, weight.dtype)
        with torch.no_grad():
            embedding = self._encoder(audio, l2_norm=True)
        return np.asarray(embedding.float().cpu().numpy().reshape(-1), np.float32)


@dataclass(frozen=True)
class Candidate:
    """A model that can be loaded.

    Attributes:
        name: Unique display name.
        fingerprint: Changes when a file of the model changes.
        load: Context manager that loads the model and frees it.
    """

    name: str
    fingerprint: str
    load: Callable[[], AbstractContextManager[LoadedModel]]


def candidates(models: Sequence[str], config: SpeechConfig, output: Path = OUTPUT) -> list[Candidate]:
    """Find models without loading them; a model that does not exist raises.

    Args:
        models: Models as ``Synthesizer.load`` takes them.
        config: Device and precision.
        output: Folder of the projects.
    """
    paths = list(dict.fromkeys(find_model(model, output).resolve() for model in models))
    return [
        Candidate(name, _files_fingerprint(path), partial(_load, path, config))
        for name, path in zip(unique_names(paths), paths, strict=True)
    ]


def unique_names(paths: Sequence[Path]) -> list[str]:
    """Name models after their run and step, or their project; duplicates get a number."""
    names: list[str] = []
    for path in paths:
        name = base = _name(path)
        number = 2
        while name in names:
            name, number = f"{base} ({number})", number + 1
        names.append(name)
    return names


def _name(path: Path) -> str:
    if path.name.startswith(PREFIX) and len(path.parts) > 3:
        return f"{path.parent.parent.name} {path.name}"
    return path.parent.name if path.name == "ready" else path.stem if path.is_file() else path.name


@contextmanager
def _load(path: Path, config: SpeechConfig) -> Iterator[LoadedModel]:
    model = LoadedModel(Synthesizer.load(path, config.device, config.precision))
    try:
        yield model
    finally:
        model.__dict__.clear()  # anything that still holds the model, such as a traceback, must not hold gigabytes
        free_memory()


def _files_fingerprint(path: Path) -> str:
    """Hash names, sizes and times of the model files."""
    folder = path if path.is_dir() else path.parent
    stats = [(file.name, file.stat()) for file in sorted(folder.iterdir()) if file.is_file()]
    files = [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]
    return hashlib.blake2b(repr((path.name, files)).encode(), digest_size=12).hexdigest()


def _weights_fingerprint(module: torch.nn.Module) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for name, weight in module.state_dict().items():
        digest.update(name.encode())
        digest.update(weight.detach().float().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
