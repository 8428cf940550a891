"""The files that plain coqui-tts reads, made anew from the manifest whenever it has changed."""

from collections.abc import Iterable
from pathlib import Path

from utils.core.storage import read_text, write_atomically
from utils.dataset.clip import Clip, Split

HEADER = "audio_file|text|speaker_name"
LANGUAGE_FILE, WAVS = "lang.txt", "wavs"
FILES: dict[Split, str] = {"train": "metadata_train.csv", "eval": "metadata_eval.csv"}


def write_lists(folder: Path, clips: Iterable[Clip], language: str) -> None:
    """Write the lists of the kept clips and the language; what is as it should be is left alone."""
    clips = [clip for clip in clips if clip.status == "kept"]
    for split, name in FILES.items():
        lines = [row(clip.audio, clip.text, clip.speaker) for clip in clips if clip.split == split]
        _replace(folder / name, "\n".join([HEADER, *lines, ""]))
    _replace(folder / LANGUAGE_FILE, f"{language}\n")


def row(audio: str, text: str, speaker: str) -> str:
    """Write one line that every reader of such lists takes apart in the same way."""
    return "|".join(map(plain, (audio, text, speaker)))


def plain(text: str) -> str:
    """Leave out what would break the line.

    Plain coqui-tts reads the lists with quoting on and removes the straight quotes from the text later anyway.
    """
    return " ".join(text.replace("|", " ").replace('"', "").split())


def read_language(folder: Path) -> str:
    """Return the language of a dataset, Amharic where it does not say."""
    path = folder / LANGUAGE_FILE
    return read_text(path).strip() if path.is_file() else "am"


def _replace(path: Path, text: str) -> None:
    if not path.is_file() or path.read_bytes() != text.encode():
        write_atomically(path, text)
