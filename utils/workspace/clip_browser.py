"""The datasets that are on show: read once, kept until the manifest changes, sorted and cut into pages.

A table of 50 000 clips takes a second to read, so it is not read for a page. What counting takes longer than a poll may
is done beside everything else; until it is there the page says so.
"""

import statistics as numbers
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from utils.core.errors import AmharicTtsError
from utils.dataset import statistics
from utils.dataset.clip import APPROVED, Clip
from utils.dataset.coqui_lists import read_language
from utils.dataset.corrections import REPLACED
from utils.dataset.ledger import Ledger
from utils.dataset.manifest import Contents, Manifest, Signature, signed

PAGE = 20  # clips
MOST_DATASETS = 3
MOST_VIEWS = 8  # orders and filters kept of each
PATIENCE = 5.0  # while a dataset grows, reading it takes a sixth of the time at most
GOOD_SNR = 30.0  # dB; better is not better to the ear
UNMEASURED = 1e9


class View(NamedTuple):
    """Which clips are shown, and in which order.

    Attributes:
        status: all, kept, approved or aside.
        reason: Why they were set aside; empty for any reason.
        search: Words of the text or the recording.
        order: worst, recording, longest, shortest or noisiest first.
    """

    status: str = "kept"
    reason: str = ""
    search: str = ""
    order: str = "worst"


class Page(NamedTuple):
    """Some clips of a view.

    Attributes:
        clips: Those on the page.
        number: Of the page, from 1.
        pages: How many there are.
        total: Clips of the view.
    """

    clips: list[Clip]
    number: int
    pages: int
    total: int


@dataclass
class Shelved:
    """A dataset as it was read.

    Attributes:
        signature: Of its files, when they were read.
        contents: All of it.
        language: What is spoken.
        doubts: How doubtful each clip is, by its id.
        seconds: How long the reading took.
    """

    signature: Signature
    contents: Contents
    language: str
    seconds: float = 0.0
    doubts: dict[str, float] = field(default_factory=dict)
    _views: OrderedDict[View, list[Clip]] = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        self.doubts = doubts(self.contents.clips.values())

    def clips(self, view: View) -> list[Clip]:
        """Return the clips of a view in its order."""
        found = self._views.pop(view, None)
        if found is None:
            search = view.search.strip().casefold()
            wanted = (clip for clip in self.contents.clips.values() if _fits(clip, view, search))
            found = sorted(wanted, key=self._key(view.order))
        self._views[view] = found
        while len(self._views) > MOST_VIEWS:
            self._views.popitem(last=False)
        return found

    def page(self, view: View, number: int) -> Page:
        """Return one page of a view; a number that is too high is the last one."""
        found = self.clips(view)
        pages = max(1, -(-len(found) // PAGE))
        number = min(max(1, number), pages)
        return Page(found[(number - 1) * PAGE : number * PAGE], number, pages, len(found))

    def reasons(self) -> dict[str, int]:
        """Count the reasons for which clips were set aside, the commonest first."""
        return dict(
            Counter(clip.reason for clip in self.contents.clips.values() if clip.status == "aside").most_common()
        )

    def _key(self, order: str) -> Callable[[Clip], Any]:
        """Return what clips are sorted by; those that are alike stay in the order of the manifest."""
        if order == "recording":
            return lambda clip: (clip.source, clip.span.start)
        if order == "longest":
            return lambda clip: -clip.span.seconds
        if order == "shortest":
            return lambda clip: clip.span.seconds
        if order == "noisiest":
            return lambda clip: UNMEASURED if clip.scores.snr_db is None else clip.scores.snr_db
        return lambda clip: -self.doubts[clip.id]


@dataclass(frozen=True)
class Counted:
    """What takes longer to count than a poll may."""

    signature: Signature
    statistics: statistics.Statistics
    ledger: Ledger


class Shelf:
    """Reads datasets for every visitor of the page."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Path, tuple[Shelved, float]] = OrderedDict()
        self._counted: dict[Path, Counted] = {}
        self._counting: set[Path] = set()
        self._lock = threading.Lock()

    def look(self, folder: Path, *, fresh: bool = False) -> Shelved | None:
        """Return a dataset; None when there is none yet.

        Args:
            folder: Its folder.
            fresh: Take no older state, although the dataset is growing.
        """
        signature = signed(folder)
        if not signature[0][1]:
            return None
        with self._lock:
            known, read_at = self._kept.pop(folder, (None, 0.0))
            young = known is not None and time.monotonic() - read_at < PATIENCE * known.seconds
            if known is None or (known.signature != signature and (fresh or not young)):
                known, read_at = _read(folder, signature), time.monotonic()
            self._kept[folder] = known, read_at
            while len(self._kept) > MOST_DATASETS:
                self._counted.pop(self._kept.popitem(last=False)[0], None)
            return known

    def counted(self, folder: Path, shelved: Shelved) -> Counted | None:
        """Return what was counted last, and begin to count anew when it is out of date."""
        with self._lock:
            known = self._counted.get(folder)
            if (known is None or known.signature != shelved.signature) and folder not in self._counting:
                self._counting.add(folder)
                threading.Thread(target=self._count, args=(folder, shelved), name="counts", daemon=True).start()
        return known

    def _count(self, folder: Path, shelved: Shelved) -> None:
        try:
            found = count(shelved)
            with self._lock:
                self._counted[folder] = found
        finally:
            with self._lock:
                self._counting.discard(folder)


def count(shelved: Shelved) -> Counted:
    """Count what a dataset holds and account for every second."""
    found = statistics.count(shelved.contents, shelved.language)
    return Counted(shelved.signature, found, statistics.account(shelved.contents))


def doubts(clips: Iterable[Clip]) -> dict[str, float]:
    """Judge how doubtful each clip is: what was set aside most of all, what a person approved not at all."""
    clips = list(clips)
    paces = [clip.scores.chars_per_second for clip in clips if clip.scores.chars_per_second]
    pace = numbers.median(paces) if paces else 0.0
    return {clip.id: doubt(clip, pace) for clip in clips}


def doubt(clip: Clip, pace: float) -> float:
    """Add up what speaks against a clip, each between 0 and 1.

    Args:
        clip: The clip.
        pace: Letters a second that are usual in its dataset.
    """
    if clip.status == "aside" and clip.reason in REPLACED:
        return -1.0
    if clip.status == "kept" and clip.reason == APPROVED:
        return 0.0
    scores = clip.scores
    against = [
        0.0 if scores.snr_db is None else (GOOD_SNR - scores.snr_db) / GOOD_SNR,
        0.0 if scores.confidence is None else 1 - scores.confidence,
        scores.second_cer or 0.0,
        0.0 if not pace or scores.chars_per_second is None else abs(scores.chars_per_second / pace - 1),
        100 * (scores.clipping or 0.0),
        0.0 if scores.speech_ratio is None else 2 * (0.5 - scores.speech_ratio),
        0.0 if clip.text.strip() else 1.0,
    ]
    return sum(min(1.0, max(0.0, one)) for one in against) + (len(against) if clip.status == "aside" else 0)


def _fits(clip: Clip, view: View, search: str) -> bool:
    if view.status == "approved" and (clip.status != "kept" or clip.reason != APPROVED):
        return False
    if view.status in {"kept", "aside"} and clip.status != view.status:
        return False
    if view.reason and (clip.status != "aside" or clip.reason != view.reason):
        return False
    return not search or search in clip.text.casefold() or search in clip.source.casefold() or search in clip.id


def _read(folder: Path, signature: Signature) -> Shelved:
    began = time.monotonic()
    found = Shelved(signature, Manifest(folder).read(), _language(folder))
    found.clips(View())  # what is shown first
    found.seconds = time.monotonic() - began
    return found


def _language(folder: Path) -> str:
    try:
        return read_language(folder)
    except (AmharicTtsError, OSError):  # it only decides whether sounds are counted
        return "am"
