"""The voices that a caller may name: those in the model, and sound files in one folder. A name is never a path."""

from collections.abc import Sequence
from pathlib import Path

from utils.config import DEFAULT_VOICE, SEPARATOR
from utils.core.errors import ConfigError
from utils.server.errors import RefusedError

SOUNDS = frozenset(".wav .flac .mp3 .ogg .opus .m4a .aac .wma .webm".split())


class Voices:
    """Finds what a name stands for; the folder is read each time, so a new file is a new voice at once.

    Args:
        folder: Each sound file in it is a voice, and each folder of sound files; None: only the model has voices.
    """

    def __init__(self, folder: Path | None) -> None:
        if folder is not None and not folder.is_dir():
            raise ConfigError(f"There is no folder {folder}.", hint="Name the folder of voices with --voices.")
        self.folder = folder

    def known(self, own: Sequence[str]) -> dict[str, str]:
        """Map each name to the reference that the model is given; a file goes before a voice of the model."""
        return {DEFAULT_VOICE: ""} | {name: name for name in own} | self._files()

    def reference(self, name: str, own: Sequence[str]) -> str:
        """Return the reference for a name, or say which names there are."""
        known = self.known(own)
        if name not in known:
            few = ", ".join(list(known)[:8])
            message = f"There is no voice {name[:60]!r}; there are {few}{', …' if len(known) > 8 else ''}."
            raise RefusedError(400, "unknown_voice", message, param="voice")
        return known[name]

    def _files(self) -> dict[str, str]:
        entries = sorted(self.folder.iterdir()) if self.folder else []
        found = {path.name if path.is_dir() else path.stem: _sounds(path) for path in entries}
        return {
            name: SEPARATOR.join(map(str, sounds))
            for name, sounds in found.items()
            if sounds and name.isprintable() and not any(SEPARATOR in str(sound) for sound in sounds)
        }


def _sounds(path: Path) -> list[Path]:
    if path.name.startswith("."):
        return []
    within = sorted(path.iterdir()) if path.is_dir() else [path]
    return [sound for sound in within if sound.suffix.lower() in SOUNDS and sound.is_file()]
