"""Voices on disk, so that a reference is listened to once: small files that anybody may delete at any time."""

import contextlib
import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from utils.core.errors import StorageError
from utils.core.paths import VOICES
from utils.core.storage import PARTIAL, atomic_writer, make_folder

logger = logging.getLogger(__name__)

MOST, MOST_BYTES = 512, 128 << 20  # a voice of the published model takes 133 KB
LEFT_SECONDS = 3600.0  # after which a half-written file has nobody who writes it
SUFFIX = ".safetensors"

Shapes = Mapping[str, tuple[int, ...]]


class VoiceCache:
    """A folder of voices; those used longest ago go first.

    Args:
        folder: Where; None: output/.cache/voices.
        most: Voices kept.
        most_bytes: Bytes kept.
    """

    def __init__(self, folder: Path | None = None, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        self.folder = folder or VOICES
        self.most = most
        self.most_bytes = most_bytes

    def get(self, key: str, shapes: Shapes) -> dict[str, Tensor] | None:
        """Return what is kept under a key; None where nothing is, or not what it should be."""
        from safetensors import SafetensorError
        from safetensors.torch import load

        path = self._path(key)
        try:
            found = load(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, SafetensorError, ValueError, KeyError) as error:
            logger.warning("%s is damaged (%s) and is made anew.", path, error)
            return None
        sound = {name: tuple(tensor.shape) for name, tensor in found.items()} == dict(shapes)
        if not sound or not all(bool(torch.isfinite(tensor).all()) for tensor in found.values()):
            logger.warning("%s is not the voice it should be and is made anew.", path)
            return None
        with contextlib.suppress(OSError):  # a folder that cannot be written keeps its order
            os.utime(path)
        return found

    def put(self, key: str, tensors: Mapping[str, Tensor]) -> None:
        """Keep a voice; a disk that takes nothing costs time the next time, and nothing else."""
        from safetensors.torch import save

        try:
            make_folder(self.folder)
            with atomic_writer(self._path(key)) as file:
                file.write(save({name: tensor.contiguous() for name, tensor in tensors.items()}))
        except StorageError as error:
            logger.warning("The voice is not kept: %s", error)
            return
        self._sweep()

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{SUFFIX}"

    def _sweep(self) -> None:
        """Delete what was used longest ago, and what a kill has left half written."""
        files = sorted(self._files(), reverse=True)
        held = 0
        for number, (_, size, path) in enumerate(files):
            held += size
            if number and (number >= self.most or held > self.most_bytes):  # the newest always stays
                _forget(path)
        for path in self.folder.glob(f".*{PARTIAL}"):
            with contextlib.suppress(OSError):  # somebody else was faster
                if time.time() - path.stat().st_mtime > LEFT_SECONDS:
                    _forget(path)

    def _files(self) -> list[tuple[int, int, Path]]:
        """List when each was used, its size and its path."""
        found = []
        for path in self.folder.glob(f"*{SUFFIX}"):
            with contextlib.suppress(OSError):  # another process deletes too
                state = path.stat()
                found.append((state.st_mtime_ns, state.st_size, path))
        return found


def _forget(path: Path) -> None:
    with contextlib.suppress(OSError):  # it is gone, or Windows has it open: the next sweep takes it
        path.unlink(missing_ok=True)
