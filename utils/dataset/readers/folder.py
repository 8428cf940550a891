"""The files of the inputs of a scan: which have sound, which have text, and where a written name leads.

Files from an archive stand below the path of the archive, wherever they were unpacked.
"""

import contextlib
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from utils.core.errors import DataError, UnknownLanguageError
from utils.core.languages import canonical
from utils.dataset.readers.facts import Missing
from utils.dataset.text_files import BOMS, name_key, read_any_encoding

if TYPE_CHECKING:
    from utils.core.facts import Fact

MEDIA = frozenset(
    f".{suffix}"
    for suffix in (
        "wav wave mp3 flac ogg oga opus m4a m4b aac wma aif aiff aifc caf amr ac3 eac3 ape wv mka mp2 au snd spx tta "
        "mp4 m4v mkv webm mov avi wmv flv mpg mpeg ts m2ts mts 3gp 3g2 ogv vob mxf"
    ).split()
)
ARCHIVES = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar", ".zip")
TABLES = frozenset({".parquet", ".arrow"})
DOCUMENTS = frozenset({".epub", ".docx", ".pdf", ".xlsx", ".xls", ".odt", ".ods", ".doc"})
PROGRAMS = frozenset(
    ".py .sh .bat .yaml .yml .toml .cfg .ini .css .js .log .m3u .m3u8 .sha256 .md5 .url .pth .pt .npz .ckpt".split()
)
PACKED = (b"PK\3\4", b"PAR1", b"ARROW1", b"\xff\xff\xff\xff", b"%PDF", b"\x1f\x8b")  # how such files begin
ABOUT = re.compile(r"(?i)(?:readme|licen[cs]e|notice|credits|changelog|copying|citation|lang\.txt$|.+\.info\.json$)")
KIND = re.compile(r"(?i)[._-](?:forced|sdh|cc|default|auto|subs?|subtitles?|captions?|labels?)$")
LANGUAGE = re.compile(r"(.+)[._-]([A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*|[A-Za-z]{4,12})")
NO_SPEAKER = re.compile(  # folders that are not a person's
    r"(?i)(?:(?!(?:speaker|spk|reader|person)).*\d.*|\W*|(?:train|test|eval|val|dev|valid)(?:ing|ation)?|"
    r"(?:wav|mp3|flac|clip|audio|sound|recording|segment|voice|file|data|raw|clean|other|new|old)s?)"
)
UPLOADED = re.compile(r"[0-9a-f]{8}-(?=.)")  # Label Studio puts this before the name of an upload
SAMPLE_BYTES = 4096  # by which text is told from other data
SAMPLE_TEXT, SAMPLE_LINES = 20_000, 50  # by which a layout is recognised
PREFERRED = (".wav", ".flac", ".mp3", ".ogg", ".opus", ".m4a", ".webm")  # where a list leaves out the suffix


def is_media(path: Path) -> bool:
    return path.suffix.lower() in MEDIA


def is_archive(path: Path) -> bool:
    return path.name.lower().endswith(ARCHIVES)


def has_text(path: Path, file: Path) -> bool:
    """Return whether a file may hold text to speak, by its name or its first bytes."""
    suffix = path.suffix.lower()
    if suffix in TABLES | DOCUMENTS:
        return not path.name.startswith("cache-")
    if suffix in MEDIA | PROGRAMS or is_archive(path) or ABOUT.match(path.name) or not file.is_file():
        return False
    try:
        with file.open("rb") as opened:
            sample = opened.read(SAMPLE_BYTES)
    except OSError:
        return True  # the error is reported when it is read
    if any(sample.startswith(mark) for mark, _ in BOMS):
        return True
    controls = sum(byte < 9 or 13 < byte < 32 for byte in sample)
    zeros = max(sample[0::2].count(0), sample[1::2].count(0))  # UTF-16 without a mark has half of them
    return bool(sample.strip()) and (controls * 20 < len(sample) or zeros * 4 > len(sample))


def is_packed(path: Path, file: Path) -> bool:
    """Return whether a file is an archive, a table or a document without its suffix, so that no reader opens it."""
    if path.suffix.lower() in TABLES | DOCUMENTS | PROGRAMS | MEDIA or is_archive(path) or not file.is_file():
        return False
    with contextlib.suppress(OSError), file.open("rb") as opened:
        head = opened.read(262)
        return head.startswith(PACKED) or head.endswith(b"ustar")  # where a .tar says so
    return False


def possible_names(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the names that the recording of a text may have, each with the language left over."""
    plain = KIND.sub("", path.stem)
    for stem in dict.fromkeys((path.stem, plain)):
        yield name_key(stem), ""
    if match := LANGUAGE.fullmatch(plain):
        try:
            yield name_key(KIND.sub("", match[1])), canonical(match[2])
        except UnknownLanguageError:
            return


class Folder:
    """The files of the inputs; a path stands where the person sees it, and ``files`` has the file behind it."""

    def __init__(
        self,
        files: Mapping[Path, Path],
        nearby: Mapping[Path, Path] | None = None,
        *,
        language: str = "am",
        workspace: Path | None = None,
        columns: Mapping[str, str] | None = None,
    ) -> None:
        """``nearby`` are files that may be named, but need not be used."""
        self.inputs = files
        self.files = {**(nearby or {}), **files}
        self.language = language
        self.workspace = workspace
        self.columns = dict(columns or {})
        self.media = [path for path in files if is_media(path)]
        self.texts = [path for path, file in files.items() if not is_media(path) and has_text(path, file)]
        others = files.keys() - {*self.media, *self.texts}
        self.packed = sorted(path for path in others if is_packed(path, files[path]))
        self.warnings: dict[Path, list[Fact]] = {}  # about the encoding of texts
        self._read: dict[Path, str] = {}

    def speakers(self) -> dict[Path, str]:
        """Return who talks in each folder with recordings, if they are folders beside each other with names."""
        folders = {path.parent for path in self.media}
        names = [folder.name for folder in folders]
        are_beside = len(folders) > 1 and len({folder.parent for folder in folders}) == 1
        if not are_beside or any(map(NO_SPEAKER.fullmatch, names)):
            return {}
        return dict(zip(folders, names, strict=True))

    def add_media(self, path: Path) -> None:
        """Add a file as a recording whatever its suffix: the decoder decides."""
        if path not in self.media:
            self.media.append(path)
            self.texts = [other for other in self.texts if other != path]

    def text(self, path: Path) -> str:
        """Return the content of a text file with newlines as line ends; it is read once."""
        if path not in self._read:
            self._read[path], self.warnings[path] = read_any_encoding(self.files[path])
        return self._read[path]

    def sample(self, path: Path) -> list[str]:
        """Return the first lines of a text file that are not empty; none of a file that cannot be read."""
        if path.suffix.lower() in TABLES | DOCUMENTS:
            return []
        try:
            return [line for line in self.text(path)[:SAMPLE_TEXT].split("\n")[:SAMPLE_LINES] if line.strip()]
        except DataError:
            return []

    def lines(self, path: Path) -> Iterator[tuple[int, str]]:
        """Yield the lines of a text file that are not empty, with their numbers."""
        return ((number, line) for number, line in enumerate(self.text(path).split("\n"), 1) if line.strip())

    def texts_with(self, *suffixes: str) -> list[Path]:
        return [path for path in self.texts if path.suffix.lower() in suffixes]

    def texts_of_lines(self, line: re.Pattern[str], *suffixes: str) -> list[Path]:
        """Return the text files of which nearly every line looks like this."""
        found = []
        for path in self.texts_with(*suffixes) if suffixes else self.texts:
            lines = self.sample(path)
            if lines and sum(bool(line.fullmatch(each)) for each in lines) * 5 >= len(lines) * 4:
                found.append(path)
        return found

    @cached_property
    def _kinds(self) -> Counter[str]:
        return Counter(path.suffix.lower() for path in self.texts)

    @cached_property
    def _by_name(self) -> dict[str, list[Path]]:
        """The recordings by their names, with and without suffix."""
        known = defaultdict(list)
        for path in dict.fromkeys([*self.media, *filter(is_media, self.files)]):
            for name in {name_key(path.name), name_key(path.stem)}:
                known[name].append(path)
        return known

    def locate(self, written: str, near: Path) -> Path | None:
        """Return the recording that a text means: the nearest one of this name, with or without its suffix."""
        found = self._candidates(written, near)
        return found[0] if len(found) == 1 else None

    def why_missing(self, written: str, near: Path) -> Missing:
        """Return why a written name leads to no recording."""
        if not written.strip():
            return "no_name"
        if self._candidates(written, near):
            return "several"
        if "\0" in written or len(written) > 4000:
            return "no_file"
        target = near.parent / written.replace("\\", "/")
        root = near.parent.resolve()
        try:
            exists = os.path.lexists(target)
            is_outside = not target.resolve().is_relative_to(root)
        except (OSError, ValueError):
            return "no_file"
        return "outside" if is_outside and (exists or ".." in target.parts) else "no_file"

    def _candidates(self, written: str, near: Path) -> list[Path]:
        """Return the recordings that a written name may mean; several if none of them is nearer than the others."""
        if not written or "\0" in written:
            return []
        name = unquote(written.rpartition("?d=")[2]) if "?d=" in written else written
        wanted = [name_key(part) for part in re.split(r"[/\\]", name.strip()) if part not in {"", "."}]
        if not wanted:
            return []
        last = wanted[-1]
        names = (last, UPLOADED.sub("", last), Path(last).stem if is_media(Path(last)) else last)
        found = next(filter(None, (self._by_name.get(each, []) for each in names)), [])
        if len(found) < 2:
            return found
        ranks = {path: _rank(path, wanted, near) for path in found}
        best = min(ranks.values())
        return [path for path in found if ranks[path] == best]

    def are_names(self, words: Iterable[str], path: Path) -> bool:
        """Return whether the words that lines begin with name recordings; one may be the first word of a text."""
        found = {recording: word for word in words if (recording := self.locate(word, path))}
        if len(found) != 1:
            return bool(found)
        ((recording, word),) = found.items()
        if own := self.partners(path)[0]:
            return recording in own and not (word.isalpha() or word.isdecimal())
        return not word.isalpha()

    def partners(self, path: Path, *suffixes: str) -> tuple[list[Path], str]:
        """Find the recordings of a text, and the language in its name: in its folder, or the only one elsewhere.

        The only recording and the only text, of those with these suffixes, belong together whatever their names.
        """
        options = []
        for name, language in possible_names(path):
            named = self._by_name.get(name, [])
            beside = [other for other in named if other.parent == path.parent]
            if beside or len(named) == 1:
                options.append((not beside, beside or named, language))
        if options:
            return min(options, key=itemgetter(0))[1:]
        is_alone = len(self.media) == 1 and sum(self._kinds[suffix] for suffix in suffixes) < 2
        return (list(self.media) if is_alone else []), ""

    def partner(self, path: Path) -> Path | str:
        """Return the recording of a text, or the name that it would have."""
        return next(iter(self.partners(path)[0]), path.stem)


def _rank(path: Path, wanted: Sequence[str], near: Path) -> tuple[int, bool, int, int]:
    """Return how far a recording is from the one that the parts of a written name mean."""
    parts = [name_key(part) for part in path.parts][:-1][::-1]
    pairs = enumerate(zip(parts, wanted[-2::-1], strict=False))
    shared = next((number for number, (own, other) in pairs if own != other), 99)
    suffix = PREFERRED.index(path.suffix.lower()) if path.suffix.lower() in PREFERRED else len(PREFERRED)
    return -shared, not path.is_relative_to(near.parent), len(path.parts), suffix
