"""Which subtitles belong to which recording: by the name without its ending and without the language."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from utils.core.errors import UnknownLanguageError
from utils.core.languages import canonical
from utils.dataset.subtitle_blocks import SUFFIXES as SUBTITLES

KIND = re.compile(r"(?i)[._-](?:forced|sdh|cc|default|auto|subs?|subtitles?|captions?)$")
LANGUAGE = re.compile(r"(.+)[._-]([A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*|[A-Za-z]{4,12})")
ORDER = (".srt", ".vtt", ".ass", ".ssa")  # of several that say the same, the plainest is read


@dataclass(frozen=True, slots=True)
class Subtitle:
    """A subtitle file and the language in its name; empty when none is told."""

    path: Path
    language: str = ""


@dataclass(frozen=True, slots=True)
class Pairs:
    """The subtitles of each recording, and those that belong to none."""

    of: dict[Path, list[Subtitle]]
    alone: tuple[Path, ...] = ()


def pair(media: Iterable[Path], subtitles: Iterable[Path]) -> Pairs:
    """Find the recording of each subtitle: in its folder, or the only one of that name elsewhere.

    Where there is one of each, they were meant for each other.
    """
    media, subtitles = list(media), list(subtitles)
    nearby: dict[tuple[Path, str], list[Path]] = defaultdict(list)
    anywhere: dict[str, list[Path]] = defaultdict(list)
    for path in media:
        for name in {key(path.stem), key(path.name)}:
            nearby[path.parent, name].append(path)
            anywhere[name].append(path)
    pairs, alone = Pairs(defaultdict(list)), []
    for path in subtitles:
        names = list(readings(path))
        same = next(((files, code) for name, code in names if (files := nearby.get((path.parent, name)))), None)
        far = next(((files, code) for name, code in names if len(files := anywhere.get(name, [])) == 1), None)
        if not (found := same or far):
            alone.append(path)
            continue
        for file in found[0]:
            pairs.of[file].append(Subtitle(path, found[1]))
    if len(media) == len(subtitles) == len(alone) == 1:
        return Pairs({media[0]: [Subtitle(alone[0])]})
    return Pairs(dict(pairs.of), tuple(alone))


def readings(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the names that a recording of these subtitles may have, each with the language that is then told."""
    plain = KIND.sub("", path.stem)
    for stem in dict.fromkeys((path.stem, plain)):
        yield key(stem), ""
    if match := LANGUAGE.fullmatch(plain):
        try:
            yield key(KIND.sub("", match[1])), canonical(match[2])
        except UnknownLanguageError:
            return


def key(name: str) -> str:
    """Return what two names have in common that a person takes for the same."""
    return unicodedata.normalize("NFC", name).casefold()


def is_subtitle(path: Path) -> bool:
    """Tell subtitles by their ending."""
    return path.suffix.lower() in SUBTITLES


def by_preference(subtitles: Iterable[Subtitle], language: str) -> list[Subtitle]:
    """Return those in the asked language, or of which no language is told, the best first."""
    wanted = [subtitle for subtitle in subtitles if subtitle.language in {"", language}]
    return sorted(
        wanted, key=lambda subtitle: (subtitle.language != language, _rank(subtitle.path), subtitle.path.name)
    )


def _rank(path: Path) -> int:
    suffix = path.suffix.lower()
    return ORDER.index(suffix) if suffix in ORDER else len(ORDER)
