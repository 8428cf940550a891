"""Match subtitle files with recordings by name, without suffix and language."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from utils.core.errors import UnknownLanguageError
from utils.core.languages import canonical
from utils.dataset.subtitle_formats import SUFFIXES

KIND = re.compile(r"(?i)[._-](?:forced|sdh|cc|default|auto|subs?|subtitles?|captions?)$")
LANGUAGE = re.compile(r"(.+)[._-]([A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*|[A-Za-z]{4,12})")
PREFERRED = (".srt", ".vtt", ".ass", ".ssa")


class SubtitleFile(NamedTuple):
    """A subtitle file and the language in its name; empty if it names none."""

    path: Path
    language: str = ""


class Pairs(NamedTuple):
    """The subtitles of each recording, and those without a recording."""

    subtitles: dict[Path, list[SubtitleFile]]
    unmatched: tuple[Path, ...] = ()


def pair(media: Iterable[Path], subtitles: Iterable[Path]) -> Pairs:
    """Find the recording of each subtitle file: in its folder, or the only one of that name elsewhere.

    One recording and one subtitle file belong together whatever their names.
    """
    media, subtitles = list(media), list(subtitles)
    by_folder: dict[tuple[Path, str], list[Path]] = defaultdict(list)
    by_name: dict[str, list[Path]] = defaultdict(list)
    for path in media:
        for name in {name_key(path.stem), name_key(path.name)}:
            by_folder[path.parent, name].append(path)
            by_name[name].append(path)
    pairs: dict[Path, list[SubtitleFile]] = defaultdict(list)
    unmatched = []
    for path in subtitles:
        names = list(possible_names(path))
        same = next(((files, code) for name, code in names if (files := by_folder.get((path.parent, name)))), None)
        far = next(((files, code) for name, code in names if len(files := by_name.get(name, [])) == 1), None)
        match = same or far
        if match is None:
            unmatched.append(path)
            continue
        files, language = match
        for file in files:
            pairs[file].append(SubtitleFile(path, language))
    if len(media) == len(subtitles) == len(unmatched) == 1:
        return Pairs({media[0]: [SubtitleFile(unmatched[0])]})
    return Pairs(dict(pairs), tuple(unmatched))


def possible_names(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the names that the recording of a subtitle file may have, each with the language left over."""
    plain = KIND.sub("", path.stem)
    for stem in dict.fromkeys((path.stem, plain)):
        yield name_key(stem), ""
    if match := LANGUAGE.fullmatch(plain):
        try:
            yield name_key(KIND.sub("", match[1])), canonical(match[2])
        except UnknownLanguageError:
            return


def name_key(name: str) -> str:
    """Return a name without differences in case and Unicode form."""
    return unicodedata.normalize("NFC", name).casefold()


def is_subtitle(path: Path) -> bool:
    """Return whether a path has the suffix of a subtitle file."""
    return path.suffix.lower() in SUFFIXES


def by_preference(subtitles: Iterable[SubtitleFile], language: str) -> list[SubtitleFile]:
    """Return the files in a language, or without one in their name, best first."""
    usable = [subtitle for subtitle in subtitles if subtitle.language in {"", language}]
    return sorted(
        usable,
        key=lambda subtitle: (subtitle.language != language, _format_rank(subtitle.path), subtitle.path.name),
    )


def _format_rank(path: Path) -> int:
    suffix = path.suffix.lower()
    return PREFERRED.index(suffix) if suffix in PREFERRED else len(PREFERRED)
