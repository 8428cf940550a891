"""Voices: what the model hears of a speaker, from sound files or from those that it brings along.

What was heard once is kept on disk, under a hash of the sounds, the model and its settings.
"""

import difflib
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from utils.config import DEFAULT_VOICE, SEPARATOR
from utils.core.errors import AudioError, ConfigError
from utils.speech.loading import LoadedModel
from utils.speech.speaker_conditioning import Hearing, hear, shapes
from utils.speech.types import Voice
from utils.speech.voice_cache import VoiceCache
from utils.xtts.codec import read_tensors_only
from utils.xtts.files import SPEAKERS_FILE, ModelFileError
from utils.xtts.state_dict import RELOAD_HINT

SHOWN = 8  # names in a message


def voice_named(opened: LoadedModel, text: str = "", cache: Path | None = None) -> Voice:
    """Find the voice that a person means.

    Args:
        opened: The model.
        text: Sound files of one speaker, divided by |, or the name of a voice in the model; empty: its own.
        cache: As in ``voice_from``.
    """
    text = text.strip()
    if not text or text.casefold() == DEFAULT_VOICE:
        return _default(opened, cache)
    own = _speakers(opened)
    if known := {name.casefold(): name for name in own}.get(text.casefold()):
        return _voice(opened, known, own[known])
    named = [Path(name.strip()).expanduser() for name in text.split(SEPARATOR) if name.strip()]
    for path in named:
        if not _exists(path):
            raise ConfigError(f"There is no sound file and no voice {str(path)[:200]!r}.", hint=_advice(str(path), own))
    if not named:
        raise ConfigError(f"{text!r} names no voice.", hint=_advice(text, own))
    return voice_from(opened, named, cache)


def own_names(opened: LoadedModel) -> list[str]:
    """List the voices that a model brings, its own first, without computing any."""
    return ([DEFAULT_VOICE] if opened.reference else []) + list(_speakers(opened))


def voice_from(opened: LoadedModel, references: Sequence[Path | str], cache: Path | None = None) -> Voice:
    """Hear one speaker in one or several clips.

    Args:
        opened: The model; of its GPT the parts that listen are enough.
        references: Sound files of any format.
        cache: Folder that keeps what was heard; None: output/.cache/voices.
    """
    paths = [Path(path) for path in references]
    if not paths:
        raise AudioError("No reference was named.", hint="Name at least one sound file.")
    hearing = Hearing.of(opened.folder)
    key = _key(opened, hearing, paths)
    name = paths[0].stem + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")
    kept = VoiceCache(cache)
    found = kept.get(key, shapes(opened))
    if found is None:
        found = hear(opened, paths, hearing)
        kept.put(key, found)
    return Voice(found["prompt"], found["embedding"], name, key)


def _default(opened: LoadedModel, cache: Path | None) -> Voice:
    """Return the voice that a model was trained for, or else the first of those that it brings."""
    if opened.reference:
        return replace(voice_from(opened, [opened.reference], cache), name=DEFAULT_VOICE)
    for name, latents in _speakers(opened).items():
        return _voice(opened, name, latents)
    raise ConfigError(f"{opened.name} has no voice of its own.", hint="Name a sound file of the voice as reference.")


def _key(opened: LoadedModel, hearing: Hearing, paths: Sequence[Path]) -> str:
    """Hash all that a voice depends on."""
    digest = hashlib.blake2b(f"1 {opened.fingerprint} {asdict(hearing)}".encode(), digest_size=16)
    for path in paths:
        digest.update(_content(path))
    return digest.hexdigest()


def _content(path: Path) -> bytes:
    if path.is_dir():
        raise AudioError(f"{path} is a folder, not a sound file.", hint="Name the files in it, divided by |.")
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "blake2b").digest()
    except OSError as error:
        raise AudioError(f"{path} cannot be read: {error.strerror}.", hint="Check the name and the folder.") from error


def _speakers(opened: LoadedModel) -> dict[str, tuple[Tensor, Tensor]]:
    """Read speakers_xtts.pth: what the GPT and what the vocoder hear, by name; a model need not have one."""
    path = opened.folder / SPEAKERS_FILE
    if not path.is_file():
        return {}
    stored: Any = read_tensors_only(path)
    try:
        read = {str(name): (one["gpt_cond_latent"], one["speaker_embedding"]) for name, one in stored.items()}
    except (AttributeError, KeyError, TypeError, IndexError) as error:
        raise ModelFileError(f"{path} holds no voices.", hint=RELOAD_HINT) from error
    wanted = tuple(shapes(opened).values())
    for name, latents in read.items():
        if tuple(tuple(latent.shape) for latent in latents) != wanted:
            raise ModelFileError(f"The voice {name!r} in {path} is one of another model.", hint=RELOAD_HINT)
    return read


def _voice(opened: LoadedModel, name: str, latents: tuple[Tensor, Tensor]) -> Voice:
    prompt, embedding = (latent.float() for latent in latents)
    return Voice(prompt, embedding, name, hashlib.blake2b(f"{opened.fingerprint} {name}".encode()).hexdigest()[:32])


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name that is too long for a file
        return False


def _advice(wanted: str, own: Mapping[str, object]) -> str:
    """Name the nearest voices, or some that there are."""
    lower = {name.casefold(): name for name in own}
    near = [lower[name] for name in difflib.get_close_matches(wanted.casefold(), lower, n=3, cutoff=0.5)]
    if near:
        return f"Did you mean {' or '.join(near)}?"
    some = ", ".join(list(own)[:SHOWN]) + (", ..." if len(own) > SHOWN else "")
    return f"Name a sound file, or one of: {some}." if own else "Name a sound file."
