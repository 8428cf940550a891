"""Voices: finds one by name, or computes it from clips with the numbers of coqui's ``get_conditioning_latents``.

The settings are those of config.json, as ``Xtts.synthesize`` uses them. The attention is fused, and chunks of the same
length are encoded together. Computed voices are cached on disk.
"""

import contextlib
import difflib
import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from utils.config import DEFAULT_VOICE, SEPARATOR
from utils.core.errors import StorageError
from utils.core.facts import FileIgnored, NotStored, log_fact
from utils.core.paths import expand_home
from utils.core.storage import PARTIAL, atomic_writer, make_folder, read_json
from utils.media import audio
from utils.media.facts import AudioFileError
from utils.media.rates import RATE
from utils.speech.facts import VoiceNotFoundError
from utils.speech.loading import LoadedModel
from utils.speech.types import Voice
from utils.xtts.codec import REFERENCE_FFT, mel_spectrogram, read_tensors_only
from utils.xtts.facts import ModelFileError
from utils.xtts.files import CONFIG_FILE, SPEAKERS_FILE
from utils.xtts.model import read_config

MIN_SECONDS = 1.0
SILENT = 10 ** (-60 / 20)  # a peak below -60 dB
MIN_CHUNK_SECONDS = 0.33  # coqui leaves out a shorter tail
EMBEDDING_RATE = 16_000
EMBEDDING_WIDTH = 512
TAIL = 1.0  # seconds that are read beyond what is used, for the resampling filter
MAX_SHOWN = 8  # names in a message
MAX_BYTES = 128 << 20  # of the cache; a voice of the published model takes 133 KB
STALE_SECONDS = 3600.0  # after which nobody writes a half-written file any more
SUFFIX = ".safetensors"
DIGEST_BYTES = 32  # of SHA-256, before the tensors

Shapes = Mapping[str, tuple[int, ...]]


def voice_named(model: LoadedModel, name: str, cache: Path | None) -> Voice:
    """Return a voice by its name in the model, or from audio files of one speaker, separated by |; empty: the default.

    Computed voices are cached in a folder, if one is given.
    """
    name = name.strip()
    if not name or name.casefold() == DEFAULT_VOICE:
        return _default(model, cache)
    own = _speakers(model)
    if known := {speaker.casefold(): speaker for speaker in own}.get(name.casefold()):
        return _own_voice(model, known, own[known])
    paths = [expand_home(part.strip()) for part in name.split(SEPARATOR) if part.strip()]
    for path in paths:
        try:
            exists = path.exists()
        except OSError:  # a name that is too long for a file
            exists = False
        if not exists:
            raise _unknown(str(path)[:200], own)
    if not paths:
        raise _unknown(name, own)
    return voice_from(model, paths, cache)


def own_names(model: LoadedModel) -> list[str]:
    """List the voices of a model, its default first, without computing any."""
    return ([DEFAULT_VOICE] if model.reference else []) + list(_speakers(model))


def voice_from(model: LoadedModel, references: Sequence[Path | str], cache: Path | None) -> Voice:
    """Compute the voice of one speaker from one or several audio files."""
    paths = [Path(path) for path in references]
    settings = ConditioningSettings.of(model.folder)
    key = _key(model, settings, paths)
    voices = VoiceCache(cache) if cache else None
    tensors = voices.get(key, _shapes(model)) if voices else None
    if tensors is None:
        tensors = encode_speaker(model, paths, settings)
        if voices:
            voices.put(key, tensors)
    name = paths[0].stem + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")
    return Voice(tensors["prompt"], tensors["embedding"], name, key)


def _default(model: LoadedModel, cache: Path | None) -> Voice:
    if model.reference:
        return replace(voice_from(model, [model.reference], cache), name=DEFAULT_VOICE)
    for name, latents in _speakers(model).items():
        return _own_voice(model, name, latents)
    raise VoiceNotFoundError(model.name, "no_default")


def _own_voice(model: LoadedModel, name: str, latents: tuple[Tensor, Tensor]) -> Voice:
    prompt, embedding = (latent.float() for latent in latents)
    return Voice(prompt, embedding, name, hashlib.blake2b(f"{model.fingerprint} {name}".encode()).hexdigest()[:32])


def _key(model: LoadedModel, settings: "ConditioningSettings", paths: Sequence[Path]) -> str:
    digest = hashlib.blake2b(f"1 {model.fingerprint} {asdict(settings)}".encode(), digest_size=16)
    for path in paths:
        if path.is_dir():
            raise AudioFileError(path, "folder")
        try:
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "blake2b").digest())
        except OSError as error:
            raise AudioFileError(path, "unreadable", str(error.strerror)) from error
    return digest.hexdigest()


def _speakers(model: LoadedModel) -> dict[str, tuple[Tensor, Tensor]]:
    """Read speakers_xtts.pth: prompt and embedding by name; a model need not have it."""
    path = model.folder / SPEAKERS_FILE
    if not path.is_file():
        return {}
    stored: Any = read_tensors_only(path)
    try:
        speakers = {str(name): (each["gpt_cond_latent"], each["speaker_embedding"]) for name, each in stored.items()}
    except (AttributeError, KeyError, TypeError, IndexError) as error:
        raise ModelFileError(path, "unreadable", repr(error)) from error
    wanted = tuple(_shapes(model).values())
    for name, latents in speakers.items():
        if tuple(tuple(latent.shape) for latent in latents) != wanted:
            raise ModelFileError(path, "other_model", name)
    return speakers


def _shapes(model: LoadedModel) -> dict[str, tuple[int, ...]]:
    count, width = model.gpt.get_submodule("conditioning_perceiver").get_parameter("latents").shape
    return {"prompt": (1, count, width), "embedding": (1, EMBEDDING_WIDTH, 1)}


def _unknown(name: str, own: Mapping[str, object]) -> VoiceNotFoundError:
    lower = {speaker.casefold(): speaker for speaker in own}
    near = [lower[match] for match in difflib.get_close_matches(name.casefold(), lower, n=3, cutoff=0.5)]
    if near:
        return VoiceNotFoundError(name, "similar", tuple(near))
    shown = (*list(own)[:MAX_SHOWN], *["..."] * (len(own) > MAX_SHOWN))
    return VoiceNotFoundError(name, "unknown" if own else "no_own", shown)


# --- the encoders ---


@dataclass(frozen=True)
class ConditioningSettings:
    """How references are encoded, with coqui's names."""

    gpt_cond_len: int  # seconds of all clips together that the GPT gets; 0 or less: all
    gpt_cond_chunk_len: int  # seconds of a chunk
    max_ref_len: int  # seconds of each clip that are used
    sound_norm_refs: bool = False  # whether each clip is normalized to a peak of 0.75

    @classmethod
    def of(cls, folder: Path) -> "ConditioningSettings":
        """Read them from the config.json of a model; coqui's defaults fill the gaps."""
        defaults = read_config(folder)  # reports what is wrong with the file
        config: dict[str, Any] = read_json(folder / CONFIG_FILE)
        values = {name: config.get(name, defaults[name]) for name in cls.__dataclass_fields__}
        lengths = [values[name] for name in ("gpt_cond_chunk_len", "max_ref_len")]
        if not all(isinstance(value, int) for value in values.values()) or min(lengths) < 1:
            raise ModelFileError(folder / CONFIG_FILE, "unreadable", str(values))
        return cls(**values)


@torch.no_grad()
def encode_speaker(model: LoadedModel, paths: Sequence[Path], settings: ConditioningSettings) -> dict[str, Tensor]:
    clips = [_load_clip(path, settings) for path in paths]
    return {"prompt": _prompt(model, torch.cat(clips, dim=1), settings), "embedding": _embedding(model, clips)}


def _load_clip(path: Path, settings: ConditioningSettings) -> Tensor:
    """Return the used part of a clip, of shape (1, samples) at 22 050 Hz, resampled as coqui does it."""
    from torchaudio.functional import resample

    rate = audio.probe(path).rate
    samples = torch.from_numpy(audio.load(path, rate, end=settings.max_ref_len + TAIL))[None]
    clip: Tensor = resample(samples, rate, RATE).clip(-1, 1)[:, : RATE * settings.max_ref_len]
    if clip.shape[1] < MIN_SECONDS * RATE:
        raise AudioFileError(path, "too_short", f"{clip.shape[1] / RATE:.2f}")
    peak = float(clip.abs().max())
    if peak < SILENT:
        raise AudioFileError(path, "silent")
    return clip / peak * 0.75 if settings.sound_norm_refs else clip


def _prompt(model: LoadedModel, sound: Tensor, settings: ConditioningSettings) -> Tensor:
    if settings.gpt_cond_len > 0:
        sound = sound[:, : RATE * settings.gpt_cond_len]
    chunks = torch.split(sound, RATE * settings.gpt_cond_chunk_len, dim=1)
    used = [chunk for chunk in chunks if chunk.shape[1] >= RATE * MIN_CHUNK_SECONDS]
    encoder = model.gpt.get_submodule("conditioning_encoder")
    perceiver = model.gpt.get_submodule("conditioning_perceiver")
    device = next(encoder.parameters()).device
    parts = []
    for _, same in groupby(used, key=lambda chunk: chunk.shape[1]):  # all but the last have the same length
        power: Tensor = mel_spectrogram(REFERENCE_FFT)(torch.cat(list(same)))  # as coqui's ``wav_to_mel_cloning``
        frames = torch.log(power.clamp(min=1e-5)) / model.mel_stats.cpu()[:, None]
        parts.append(perceiver(encoder(frames.to(device)).mT))
    mean = torch.cat(parts).float().mean(dim=0, keepdim=True)
    return mean.cpu()


def _embedding(model: LoadedModel, clips: Sequence[Tensor]) -> Tensor:
    from torchaudio.functional import resample

    encoder: Any = model.vocoder.get_submodule("speaker_encoder")
    device = next(encoder.parameters()).device
    embeddings = [encoder(resample(clip, RATE, EMBEDDING_RATE).to(device), l2_norm=True) for clip in clips]
    mean = torch.stack(embeddings).float().mean(dim=0)
    return mean.unsqueeze(-1).cpu()


# --- the cache ---


def _verified(content: bytes) -> bytes:
    """Return the tensors of a cached voice without their digest."""
    digest = content[:DIGEST_BYTES]
    tensors = content[DIGEST_BYTES:]
    if hashlib.sha256(tensors).digest() != digest:
        raise ValueError("it has changed since it was written")
    return tensors


class VoiceCache:
    """A folder of voices that may be deleted at any time; those used longest ago go first."""

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        self.folder = folder
        self.max_bytes = max_bytes

    def get(self, key: str, shapes: Shapes) -> dict[str, Tensor] | None:
        from safetensors import SafetensorError
        from safetensors.torch import load

        path = self.folder / f"{key}{SUFFIX}"
        try:
            tensors = load(_verified(path.read_bytes()))
        except FileNotFoundError:
            return None
        except (OSError, SafetensorError, ValueError, KeyError) as error:
            log_fact(FileIgnored(path, str(error)))
            return None
        fits = {name: tuple(tensor.shape) for name, tensor in tensors.items()} == dict(shapes)
        if not fits or not all(bool(torch.isfinite(tensor).all()) for tensor in tensors.values()):
            log_fact(FileIgnored(path, "tensors of another model"))
            return None
        with contextlib.suppress(OSError):  # a read-only folder keeps its order
            os.utime(path)
        return tensors

    def put(self, key: str, tensors: Mapping[str, Tensor]) -> None:
        """Write a voice; a failure costs nothing but time."""
        from safetensors.torch import save

        try:
            make_folder(self.folder)
            with atomic_writer(self.folder / f"{key}{SUFFIX}") as file:
                content = save({name: tensor.contiguous() for name, tensor in tensors.items()})
                file.write(hashlib.sha256(content).digest() + content)
        except StorageError as error:
            log_fact(NotStored(error))
            return
        self._sweep()

    def _sweep(self) -> None:
        """Delete what was used longest ago, and half-written files of killed processes."""
        files = []
        for path in self.folder.glob(f"*{SUFFIX}"):
            with contextlib.suppress(OSError):  # another process deletes too
                stat = path.stat()
                files.append((stat.st_mtime_ns, stat.st_size, path))
        total = 0
        for number, (_, size, path) in enumerate(sorted(files, reverse=True)):
            total += size
            if number and total > self.max_bytes:  # the newest always stays
                with contextlib.suppress(OSError):  # Windows has it open: the next sweep deletes it
                    path.unlink(missing_ok=True)
        for path in self.folder.glob(f".*{PARTIAL}"):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > STALE_SECONDS:
                    path.unlink(missing_ok=True)
