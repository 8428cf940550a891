"""From rows to recordings, and the account of every text: used, or named with the reason.

The first source that gives a recording a text is used; readers are asked in the order of their confidence, and what a
recogniser wrote comes last. Another source may say the same; one that says something else is named, and shown with it.
"""

import math
import os
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from utils.core.errors import AmharicTtsError, AudioError
from utils.dataset.clip import Recording, ScanResult, Turn, abbreviate
from utils.dataset.facts import Bad
from utils.dataset.readers.archives import foreign
from utils.dataset.readers.facts import (
    AudioNotListed,
    AudioWithoutText,
    FoldersAreSpeakers,
    ForeignFileError,
    LayoutFound,
    LinesRepeated,
    LineUnreadable,
    ListedAudioMissing,
    TextMightExist,
    TextNotUsed,
    TextsConflict,
)
from utils.dataset.readers.folder import DOCUMENTS, Folder
from utils.dataset.readers.protocol import Item, Match, Note, Reader, Row, Spare
from utils.dataset.subtitles import fit_cues
from utils.media import audio
from utils.recognition.spans import Cue, Span

if TYPE_CHECKING:
    from utils.core.facts import Fact

UNNAMED = "speaker"  # where neither a text nor a person says who talks
WHOLE = 0.95  # of a recording: the times of its only row are its own
LETTERS = re.compile(r"[^\W_]+")
NAMES = 5  # in a fact about many files
CONTEXT = 6  # words that are shown where two texts begin to differ
HOLDS_BACK = frozenset({"unknown", "no_audio", "chapters", "garbled", "packed", "document"})


class Collection:
    """What the readers of a folder found."""

    def __init__(self, folder: Folder, speaker: str) -> None:
        self.folder = folder
        self.speaker = speaker
        self.speakers = folder.speakers() if speaker == UNNAMED else {}
        self.rows: dict[Path, dict[Path, list[Row]]] = defaultdict(lambda: defaultdict(list))  # by audio and source
        self.problems: list[Bad] = []
        self.notes: list[Fact] = []
        self.warnings: dict[Path, list[Fact]] = defaultdict(list)  # by source
        self.spare: dict[Path, Fact] = {}
        self.lists: dict[Path, set[Path]] = {}  # the audio of each list
        self.claimed: set[Path] = set()
        self.used: set[Path] = set()
        self.named: set[Path] = set()  # in problems

    def add_match(self, reader: Reader, match: Match) -> None:
        """Read the files of a match that no surer reader has read."""
        files = [path for path in match.files if path not in self.claimed]
        for bad in match.unused:
            if bad.path not in self.claimed:
                self.add(bad)
        self.claimed.update(files, match.others, (bad.path for bad in match.unused))
        self.used.update(match.others)
        if files:
            self.notes.append(LayoutFound(reader.NAME, match.reason, len(files)))
        self.lists |= {path: set() for path in files if reader.IS_LIST}
        for path in files:
            try:
                with foreign(path):
                    for item in reader.read(self.folder, path):
                        self.add(item)
            except AmharicTtsError as error:
                self.add(Bad(path, error))

    def add(self, item: Item) -> None:
        if isinstance(item, Bad):
            self.problems.append(item)
            self.named.add(item.path)
        elif isinstance(item, Spare):
            self.spare[item.audio] = item.fact
        elif isinstance(item, Note):
            self.warnings[item.source].append(item.fact)
        elif isinstance(item, Row):
            self._add_row(item)
        else:
            self.notes.append(item)

    def result(self) -> ScanResult:
        order = {path: number for number, path in enumerate(self.folder.media)}
        with_text = sorted(self.rows, key=lambda path: order.get(path, len(order)))
        recordings = [*map(self._recording, with_text), *self._without_text()]
        self._name_unused()
        if any(recording.speaker in self.speakers.values() for recording in recordings):
            self.notes.append(FoldersAreSpeakers(tuple(sorted(self.speakers.values()))))
        self.notes += dict.fromkeys(self.spare.values())
        return ScanResult(tuple(recordings), tuple(self.problems), tuple(self.notes))

    def _add_row(self, row: Row) -> None:
        found = row.audio if isinstance(row.audio, Path) else self.folder.locate(row.audio, row.source)
        if found is None:
            name = str(row.audio)
            if row.line or row.source not in self.named:
                self.add(Bad(row.source, ListedAudioMissing(row.line, name, self.folder.why_missing(name, row.source))))
            return
        self.rows[found][row.source].append(row._replace(text=" ".join(row.text.split())))
        if row.source in self.lists:
            self.lists[row.source].add(found)

    def _recording(self, path: Path) -> Recording:
        """Make a recording of the rows of one source."""
        source, rows, other = self._choose(path)
        file = self._file(path)
        speaker, *more = dict.fromkeys(row.speaker for row in rows if row.speaker) or [self._speaker(path)]
        warnings = self.warnings[source]
        timed = [row for row in rows if row.span]
        if not timed or (source in self.lists and _is_whole(file, timed)):
            return Recording(file, speaker, self._text(path, source, rows), warnings=tuple(warnings), other=other)
        cues, repairs = fit_cues(self._cues(source, rows), _seconds(file), source.name)
        names = [(cue.span, name) for cue in cues for name in cue.speakers or (self._speaker(path),)]
        turns = tuple(Turn(span, name) for span, name in names if more)
        return Recording(file, speaker, "", tuple(cues), (*warnings, *repairs), turns, other)

    def _cues(self, source: Path, rows: list[Row]) -> list[Cue]:
        """Return the rows as cues in order, and report those without times; one with two speakers has two rows."""
        speakers: dict[tuple[Span, str], list[str]] = defaultdict(list)
        for row in rows:
            if row.span:
                speakers[row.span, row.text].append(row.speaker)
            elif row.text:
                self.add(Bad(source, LineUnreadable(row.line, "times", row.text)))
        cues = (Cue(span, text, tuple(filter(None, names))) for (span, text), names in speakers.items())
        return sorted(cues, key=lambda cue: cue.span.start)

    # Long because what is used, what is named and what is shown beside it follow from one comparison of the texts.
    def _choose(self, path: Path) -> tuple[Path, list[Row], tuple[Cue, ...]]:
        """Choose the source of a recording's text; name those that say something else, and return what one says."""
        of_source = self.rows[path]
        texts = {source: _words(rows) for source, rows in of_source.items()}
        heard = [texts[source] for source, rows in of_source.items() if rows[0].is_machine]
        source, *others = sorted(texts, key=lambda source: (not texts[source], texts[source] in heard))
        different = [other for other in others if texts[other] not in ([], texts[source])]
        self.used |= texts.keys() - different
        for other in different:
            if other not in self.named:
                self.add(Bad(other, _conflict(source, of_source[source], of_source[other])))
        if not different:
            return source, of_source[source], ()
        whole = Span(0.0, _seconds(self._file(path)))
        other_rows = of_source[different[0]]
        return source, of_source[source], tuple(Cue(row.span or whole, row.text) for row in other_rows if row.text)

    def _speaker(self, path: Path) -> str:
        """Return who talks in a recording if its text does not say it."""
        return self.speakers.get(path.parent, self.speaker)

    def _file(self, path: Path) -> Path:
        """Return the file on the disk; ``path`` may be a place in an archive."""
        return self.folder.files.get(path, path)

    def _text(self, path: Path, source: Path, rows: list[Row]) -> str:
        """Return the text of a whole recording, and report lines that repeat or contradict it."""
        first = next((row for row in rows if row.text), rows[0])
        if not first.text:
            self.add(Bad(source, LineUnreadable(first.line, "no_text", path.name)))
        different = [row.text for row in rows if row.text and row.text != first.text]
        if different:
            self.add(Bad(path, _conflict(source, [first], [row for row in rows if row.text in different])))
        elif len(rows) > 1:
            self.add(Bad(source, LinesRepeated(len(rows) - 1, (path.name,))))
        return first.text

    def _without_text(self) -> list[Recording]:
        """Return the recordings that nothing gives a text to; those beside a list that leaves them out are not used."""
        silent = [path for path in self.folder.media if path not in self.rows and path not in self.spare]
        for source, named in self.lists.items():
            if not named:
                continue
            scope = Path(
                os.path.commonpath([source.parent, *(path.parent for path in named if path in self.folder.files)])
            )
            if beside := [path for path in silent if path.is_relative_to(scope)]:
                silent = [path for path in silent if not path.is_relative_to(scope)]
                names = tuple(path.name for path in beside[:NAMES])
                self.add(Bad(scope, AudioNotListed(len(beside), names)))
        if silent:
            self.notes.append(AudioWithoutText(len(silent), tuple(path.name for path in silent[:NAMES])))
        return [Recording(self.folder.files[path], self._speaker(path)) for path in silent]

    def _name_unused(self) -> None:
        """Name every text that was not used, and what was repaired in those that were."""
        self.problems += [Bad(path, TextNotUsed("packed")) for path in self.folder.packed]
        for path in self.folder.texts:
            if path not in self.used and path not in self.named:
                is_known = path in self.claimed or path.suffix.lower() in {".srt", ".vtt", ".ass", ".txt", ".lab"}
                is_document = path.suffix.lower() in DOCUMENTS
                reason = TextNotUsed("no_audio" if is_known else "document" if is_document else "unknown")
                self.problems.append(Bad(path, reason))
            elif path in self.used:
                self.notes += self.folder.warnings.get(path, [])


def hold_back(scan: ScanResult) -> ScanResult:
    """Leave out the recordings without text while a text was not used: it may be theirs, and no machine replaces it."""

    def may_hold_text(bad: Bad) -> bool:
        is_unused = isinstance(bad.reason, TextNotUsed) and bad.reason.why in HOLDS_BACK
        return is_unused or isinstance(bad.reason, ForeignFileError)

    names = abbreviate(dict.fromkeys(bad.path.name for bad in filter(may_hold_text, scan.problems)))
    if not names:
        return scan
    ready = tuple(each for each in scan.recordings if each.text or each.cues)
    held = (Bad(each.path, TextMightExist(names)) for each in scan.recordings if not (each.text or each.cues))
    return ScanResult(ready, (*scan.problems, *held), scan.notes)


def _words(rows: list[Row]) -> list[str]:
    return [word.casefold() for row in rows for word in LETTERS.findall(row.text)]


def _conflict(source: Path, rows: list[Row], others: list[Row]) -> TextsConflict:
    """Return two texts of a recording from where they begin to differ."""
    used, unused = (" ".join(row.text for row in each).split() for each in (rows, others))
    pairs = enumerate(zip(used, unused, strict=False))
    at = next((number for number, (one, other) in pairs if one != other), min(len(used), len(unused)))
    return TextsConflict(source.name, *(" ".join(words[max(0, at - 1) : at + CONTEXT]) for words in (used, unused)))


def _is_whole(file: Path, rows: list[Row]) -> bool:
    """Return whether the only times are those of the whole file, or of a recording of which the file is a part."""
    span, *more = (row.span for row in rows)
    seconds = math.inf if more else _seconds(file)
    return span is not None and (span.seconds >= WHOLE * seconds or span.start >= seconds)


def _seconds(file: Path) -> float:
    try:
        return audio.duration(file)
    except AudioError:  # reported when the audio itself is needed
        return math.inf
