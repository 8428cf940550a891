"""Finds a voice by name or computes it from audio files; computed voices are cached on disk."""

import contextlib
import difflib
import hashlib
import logging
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from utils.config import DEFAULT_VOICE, SEPARATOR
from utils.core.errors import AudioError, ConfigError, StorageError
from utils.core.paths import VOICES
from utils.core.storage import PARTIAL, atomic_writer, make_folder
from utils.speech.loaded_model import LoadedModel
from utils.speech.speaker_conditioning import ConditioningSettings, encode_speaker, latent_shapes
from utils.speech.types import Voice
from utils.xtts.codec import read_tensors_only
from utils.xtts.files import SPEAKERS_FILE, ModelFileError
from utils.xtts.model import RELOAD_HINT

logger = logging.getLogger(__name__)

MAX_SHOWN = 8  # names in a message
MAX_VOICES, MAX_BYTES = 512, 128 << 20  # of the cache; a voice of the published model takes 133 KB
STALE_SECONDS = 3600.0  # after which nobody writes a half-written file any more
SUFFIX = ".safetensors"

Shapes = Mapping[str, tuple[int, ...]]


def voice_named(model: LoadedModel, name: str = "", cache: Path | None = None) -> Voice:
    """Return a voice.

    Args:
        model: The model.
        name: Audio files of one speaker, separated by |, or the name of a voice of the model; empty: its default.
        cache: Folder of cached voices; None: output/.cache/voices.
    """
    name = name.strip()
    if not name or name.casefold() == DEFAULT_VOICE:
        return _default(model, cache)
    own = _speakers(model)
    if known := {speaker.casefold(): speaker for speaker in own}.get(name.casefold()):
        return _voice(model, known, own[known])
    paths = [Path(part.strip()).expanduser() for part in name.split(SEPARATOR) if part.strip()]
    for path in paths:
        if not _exists(path):
            raise ConfigError(f"There is no audio file and no voice {str(path)[:200]!r}.", hint=_advice(str(path), own))
    if not paths:
        raise ConfigError(f"{name!r} is not a voice.", hint=_advice(name, own))
    return voice_from(model, paths, cache)


def own_names(model: LoadedModel) -> list[str]:
    """List the voices of a model, its default first, without computing any."""
    return ([DEFAULT_VOICE] if model.reference else []) + list(_speakers(model))


def voice_from(model: LoadedModel, references: Sequence[Path | str], cache: Path | None = None) -> Voice:
    """Compute the voice of one speaker from one or several audio files."""
    paths = [Path(path) for path in references]
    settings = ConditioningSettings.of(model.folder)
    key = _key(model, settings, paths)
    voices = VoiceCache(cache)
    tensors = voices.get(key, latent_shapes(model))
    if tensors is None:
        tensors = encode_speaker(model, paths, settings)
        voices.put(key, tensors)
    name = paths[0].stem + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")
    return Voice(tensors["prompt"], tensors["embedding"], name, key)


def _default(model: LoadedModel, cache: Path | None) -> Voice:
    """Return the voice that a model was trained for, or its first speaker."""
    if model.reference:
        return replace(voice_from(model, [model.reference], cache), name=DEFAULT_VOICE)
    for name, latents in _speakers(model).items():
        return _voice(model, name, latents)
    raise ConfigError(f"{model.name} has no voice of its own.", hint="Use an audio file of the voice as reference.")


def _key(model: LoadedModel, settings: ConditioningSettings, paths: Sequence[Path]) -> str:
    """Hash everything that a voice depends on."""
    digest = hashlib.blake2b(f"1 {model.fingerprint} {asdict(settings)}".encode(), digest_size=16)
    for path in paths:
        if path.is_dir():
            raise AudioError(f"{path} is a folder, not an audio file.", hint="List its files, separated by |.")
        try:
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "blake2b").digest())
        except OSError as error:
            raise AudioError(f"{path} cannot be read: {error.strerror}.", hint="Check the path.") from error
    return digest.hexdigest()


def _speakers(model: LoadedModel) -> dict[str, tuple[Tensor, Tensor]]:
    """Read speakers_xtts.pth: prompt and embedding by name; a model need not have it."""
    path = model.folder / SPEAKERS_FILE
    if not path.is_file():
        return {}
    stored: Any = read_tensors_only(path)
    try:
        speakers = {str(name): (one["gpt_cond_latent"], one["speaker_embedding"]) for name, one in stored.items()}
    except (AttributeError, KeyError, TypeError, IndexError) as error:
        raise ModelFileError(f"{path} contains no voices.", hint=RELOAD_HINT) from error
    wanted = tuple(latent_shapes(model).values())
    for name, latents in speakers.items():
        if tuple(tuple(latent.shape) for latent in latents) != wanted:
            raise ModelFileError(f"The voice {name!r} in {path} belongs to another model.", hint=RELOAD_HINT)
    return speakers


def _voice(model: LoadedModel, name: str, latents: tuple[Tensor, Tensor]) -> Voice:
    prompt, embedding = (latent.float() for latent in latents)
    return Voice(prompt, embedding, name, hashlib.blake2b(f"{model.fingerprint} {name}".encode()).hexdigest()[:32])


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name that is too long for a file
        return False


def _advice(name: str, own: Mapping[str, object]) -> str:
    """Suggest the nearest voices, or list some."""
    lower = {speaker.casefold(): speaker for speaker in own}
    near = [lower[match] for match in difflib.get_close_matches(name.casefold(), lower, n=3, cutoff=0.5)]
    if near:
        return f"Did you mean {' or '.join(near)}?"
    shown = ", ".join(list(own)[:MAX_SHOWN]) + (", ..." if len(own) > MAX_SHOWN else "")
    return f"Use an audio file, or one of: {shown}." if own else "Use an audio file."


class VoiceCache:
    """A folder of voices that may be deleted at any time; those used longest ago go first.

    Args:
        folder: The folder; None: output/.cache/voices.
        max_voices: Maximum number of voices.
        max_bytes: Maximum size.
    """

    def __init__(self, folder: Path | None = None, max_voices: int = MAX_VOICES, max_bytes: int = MAX_BYTES) -> None:
        self.folder = folder or VOICES
        self.max_voices = max_voices
        self.max_bytes = max_bytes

    def get(self, key: str, shapes: Shapes) -> dict[str, Tensor] | None:
        """Return a voice, or None if it is missing or damaged."""
        from safetensors import SafetensorError
        from safetensors.torch import load

        path = self._path(key)
        try:
            tensors = load(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, SafetensorError, ValueError, KeyError) as error:
            logger.warning("%s is damaged (%s) and is computed again.", path, error)
            return None
        fits = {name: tuple(tensor.shape) for name, tensor in tensors.items()} == dict(shapes)
        if not fits or not all(bool(torch.isfinite(tensor).all()) for tensor in tensors.values()):
            logger.warning("%s is not a voice of this model and is computed again.", path)
            return None
        with contextlib.suppress(OSError):  # a read-only folder keeps its order
            os.utime(path)
        return tensors

    def put(self, key: str, tensors: Mapping[str, Tensor]) -> None:
        """Write a voice; a failure costs nothing but time."""
        from safetensors.torch import save

        try:
            make_folder(self.folder)
            with atomic_writer(self._path(key)) as file:
                file.write(save({name: tensor.contiguous() for name, tensor in tensors.items()}))
        except StorageError as error:
            logger.warning("The voice is not cached: %s", error)
            return
        self._sweep()

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{SUFFIX}"

    def _sweep(self) -> None:
        """Delete what was used longest ago, and half-written files of killed processes."""
        total = 0
        for number, (_, size, path) in enumerate(sorted(self._files(), reverse=True)):
            total += size
            if number and (number >= self.max_voices or total > self.max_bytes):  # the newest always stays
                _delete(path)
        for path in self.folder.glob(f".*{PARTIAL}"):
            with contextlib.suppress(OSError):  # another process deletes too
                if time.time() - path.stat().st_mtime > STALE_SECONDS:
                    _delete(path)

    def _files(self) -> list[tuple[int, int, Path]]:
        """Return the time of the last use, the size and the path of each voice."""
        files = []
        for path in self.folder.glob(f"*{SUFFIX}"):
            with contextlib.suppress(OSError):  # another process deletes too
                stat = path.stat()
                files.append((stat.st_mtime_ns, stat.st_size, path))
        return files


def _delete(path: Path) -> None:
    with contextlib.suppress(OSError):  # it is gone, or Windows has it open: the next sweep takes it
        path.unlink(missing_ok=True)
