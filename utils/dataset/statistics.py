"""What a dataset holds: hours, speakers, lengths, pace, noise and phonemes, and where every second of it went.

Lengths are read from the headers of the files; nothing is decoded.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from utils.config import MODEL_TOKENS
from utils.core import wording
from utils.core.languages import AMHARIC, canonical
from utils.dataset.clip import MAX_SECONDS, Clip, Source, group_clips, total_seconds
from utils.dataset.errors import DatasetError
from utils.dataset.facts import Bad, Ledger, LengthGap, Reason, ReasonTotal, SideTotal, Split
from utils.dataset.metadata import header_seconds, list_files, read_list
from utils.dataset.store import Dataset, Store
from utils.dataset.text_files import MetadataRow
from utils.recognition.spans import Span

COMMONEST_WORDS = 20_000  # the rest adds no phoneme and takes most of the time
FEW = 20  # a phoneme that occurs less often is hardly learned
SHARES = (50, 90, 95, 99, 99.5, 100)
SUGGESTED_SHARE = 99.5
WIDTH = 40  # characters of the longest bar
SECONDS, TOKENS = (0, 2, 4, 6, 8, 10, 12, 15, 20), (0, 20, 50, 100, 150, 200, 300)  # from which lengths are counted
SHORT_SECONDS, SHORT_SHARE = 2.0, 0.02  # with fewer short clips, short texts end badly
LONG_SECONDS = 10.0  # a sentence of ordinary prose


@dataclass(frozen=True)
class Statistics:
    """Counts over the kept clips."""

    recordings: int
    clips: dict[str, int]  # by side of the split
    speakers: dict[str, float]  # seconds, the longest first
    seconds: tuple[float, ...]  # of each clip
    pace: tuple[float, ...]  # letters per second of each clip, where measured
    snr: tuple[float, ...]  # of each clip, where measured
    loudness: tuple[float, ...]  # LUFS of each clip as recorded, where measured
    repeated: int  # texts of more than one clip
    phonemes: dict[str, int]  # empty for languages other than Amharic

    @property
    def missing(self) -> list[str]:
        return [phone for phone, count in self.phonemes.items() if not count]

    @property
    def rare(self) -> dict[str, int]:
        """The phonemes that hardly occur."""
        return {phone: count for phone, count in self.phonemes.items() if 0 < count < FEW}


def count(store: Store, language: str) -> Statistics:
    table = store.table()
    kept = table[table["status"] == "kept"]
    speakers = kept.groupby("speaker")["seconds"].sum().sort_values(ascending=False, kind="stable")
    return Statistics(
        recordings=int(table["recording"].nunique()),
        clips=dict(Counter(kept["split"])),
        speakers={str(name): seconds for name, seconds in speakers.items()},
        seconds=tuple(kept["seconds"]),
        pace=tuple(kept["chars_per_second"].dropna()),
        snr=tuple(kept["snr_db"].dropna()),
        loudness=tuple(kept["loudness_lufs"].dropna()),
        repeated=sum(count > 1 for count in Counter(kept["text"]).values()),
        phonemes=_count_phonemes(kept["text"], language),
    )


def split_totals(kept: Sequence[Clip]) -> Split:
    """Count the clips, recordings and seconds of each side of the split."""
    sides = []
    for side in ("train", "eval"):
        clips = [clip for clip in kept if clip.split == side]
        sides.append(SideTotal(len(clips), len({clip.recording for clip in clips}), total_seconds(clips)))
    return Split(*sides)


def _count_phonemes(texts: Iterable[str], language: str) -> dict[str, int]:
    """Count the phonemes of Amharic texts, including those that do not occur."""
    if canonical(language) != AMHARIC.code:
        return {}
    from utils.amharic.alphabet import PHONES
    from utils.dataset.prompts import sounds

    words = Counter(word for text in texts for word in text.split())
    counts: Counter[str] = Counter()
    for word, times in words.most_common(COMMONEST_WORDS):
        for symbol in sounds(word):
            counts[symbol] += times
    return {symbol: counts[code] for symbol, code in PHONES.items()}


def report(statistics: Statistics) -> str:
    missing = statistics.missing
    total = len(statistics.phonemes)
    values = {
        "recordings": str(statistics.recordings),
        "clips in use": f"{len(statistics.seconds)}, {sum(statistics.seconds) / 3600:.2f} h",
        "split": _join(statistics.clips, str) or "none",
        "speakers": _join(statistics.speakers, _minutes) or "none",
        "characters/s": _spread(statistics.pace),
        "SNR (dB)": _spread(statistics.snr),
        "loudness (LUFS)": _spread(statistics.loudness),
        "repeated texts": str(statistics.repeated),
        "phonemes": f"{total - len(missing)} of {total}" if total else "",
        "missing": " ".join(missing),
        f"fewer than {FEW}": _join(statistics.rare, str),
    }
    lines = [f"{name:<20} {value}" for name, value in values.items() if value]
    return "\n".join(filter(None, [*lines, DatasetLengths(statistics.seconds).render()]))


def _join(values: Mapping[str, float], write: Callable[[float], str]) -> str:
    return ", ".join(f"{name or 'none yet'} {write(value)}" for name, value in list(values.items())[:12])


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f} min"


def _spread(values: Sequence[float]) -> str:
    if not values:
        return ""
    low, middle, high = (percentile(values, share) for share in (5, 50, 95))
    return f"median {middle:.1f}, 90 % between {low:.1f} and {high:.1f}"


@dataclass(frozen=True)
class DatasetLengths:
    """Lengths of many clips."""

    seconds: tuple[float, ...]
    unreadable: tuple[MetadataRow, ...] = ()
    tokens: tuple[int, ...] = ()  # of each text, if a vocabulary is given

    def render(self) -> str:
        """Describe the lengths in lines of text, with a histogram in steps of a second."""
        lines = []
        if self.seconds:
            lines.append(f"clips                {len(self.seconds)}, {sum(self.seconds) / 3600:.2f} h")
        for name, values, form in (("seconds", self.seconds, ".2f"), ("tokens", self.tokens, ".0f")):
            if values:
                shares = (f"{share:g} % {percentile(values, share):{form}}" for share in SHARES)
                lines.append(f"{name:<21}" + ", ".join(shares))
        if self.unreadable:
            names = ", ".join(f"{row.list.name}:{row.line}" for row in self.unreadable[:5])
            lines.append(f"unreadable           {len(self.unreadable)}: {names}{' …' * (len(self.unreadable) > 5)}")
        return "\n".join([*lines, *(self._describe_seconds() if self.seconds else [])])

    def _describe_seconds(self) -> Iterator[str]:
        """Yield a histogram, and what follows from it."""
        counts = np.bincount(np.asarray(self.seconds).astype(int)).tolist()
        for second, count in enumerate(counts):
            yield f"{second:>7} s            {'█' * math.ceil(WIDTH * count / max(counts))} {count}"
        yield f"suggested            --max-audio-length {suggested_max_length(self.seconds):g}"
        if over := sum(value > MAX_SECONDS for value in self.seconds):
            yield f"over {MAX_SECONDS} s         {over} clips, which XTTS cannot use"
        yield from (f"gap                  {wording.describe(gap)}" for gap in self.gaps())

    def counts(self) -> dict[str, dict[str, int]]:
        """Count the clips by their length in seconds, and by tokens if those are known."""
        parts = {"seconds": (self.seconds, (*SECONDS, 28)), "tokens": (self.tokens, (*TOKENS, MODEL_TOKENS))}
        return {name: _count_between(values, edges) for name, (values, edges) in parts.items() if values}

    def gaps(self) -> list[LengthGap]:
        """Return the lengths that a model trained on these clips will speak badly, because it never sees them."""
        count = len(self.seconds)
        longest = max(self.seconds)
        short = sum(value < SHORT_SECONDS for value in self.seconds)
        found = []
        if short < SHORT_SHARE * count:
            found.append(LengthGap("short", f"{short} / {count}"))
        if longest < LONG_SECONDS:
            found.append(LengthGap("long", f"{longest:.1f}"))
        lowest = max(SHORT_SECONDS, min(self.seconds))
        for (name, number), low in zip(self.counts()["seconds"].items(), SECONDS, strict=True):
            if not number and lowest <= low < longest:
                found.append(LengthGap("between", name))
        return found


def _count_between(values: Sequence[float], edges: Sequence[int]) -> dict[str, int]:
    """Count values from one edge to the next; those above the last edge count as it."""
    counts = np.histogram(np.minimum(values, edges[-1]), edges)[0].tolist()
    return {f"{low}-{high}": count for (low, high), count in zip(pairwise(edges), counts, strict=True)}


def measure_lengths(path: Path) -> tuple[list[MetadataRow], DatasetLengths]:
    """Read the headers of all clips of a dataset folder or of one list."""
    rows = [row for file in list_files(path) for row in read_list(file)]
    if not rows:
        raise DatasetError(path, "no_rows")
    seconds = [header_seconds(row.path) for row in rows]
    unreadable = tuple(row for row, value in zip(rows, seconds, strict=True) if value is None)
    return rows, DatasetLengths(tuple(value for value in seconds if value is not None), unreadable)


def suggested_max_length(seconds: Sequence[float]) -> float:
    """Return a max_audio_length that keeps 99.5 % of the clips: rounded up to a tenth, within what XTTS can hold."""
    tenths = math.ceil(round(10 * percentile(seconds, SUGGESTED_SHARE), 6))
    return min(MAX_SECONDS, max(1.0, tenths / 10))


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that this share of all does not exceed; always one that occurs."""
    return float(np.percentile(values, share, method="higher"))


class Account(NamedTuple):
    """Where every second went: the sum of all recordings, each of them, and the files that could not be used."""

    total: Ledger
    recordings: list[Ledger]
    failed: list[Bad]


def account(dataset: Dataset) -> Account:
    """Account for every second of every recording, and for every file that gave no clips."""
    clips = group_clips(dataset.clips.values(), "recording")
    entries = [_divide(source, clips[name]) for name, source in dataset.recordings.items()]
    excluded: defaultdict[Reason | str, float] = defaultdict(float)
    for part in (part for entry in entries for part in entry.excluded):
        excluded[part.reason] += part.seconds
    longest_first = sorted(excluded.items(), key=lambda item: -item[1])
    total = Ledger(
        "",
        sum(entry.seconds for entry in entries),
        sum(entry.kept for entry in entries),
        sum(entry.between for entry in entries),
        tuple(ReasonTotal(*item) for item in longest_first),
    )
    return Account(total, entries, [source.bad for source in dataset.failed if source.bad])


def _divide(recording: Source, clips: Iterable[Clip]) -> Ledger:
    """Divide a recording among its clips; a second that lies in two clips counts once, for the one that is kept."""
    groups: dict[Reason | None, list[Span]] = {None: []}  # those without a reason are kept
    for clip in sorted(clips, key=lambda clip: clip.span.start):
        groups.setdefault(clip.reason if clip.status == "excluded" else None, []).append(clip.span)
    spans = []
    covered = 0.0
    seconds = dict[Reason | None, float]()
    for reason, others in groups.items():
        spans += others
        before = covered
        covered = _covered(spans, recording.seconds)
        seconds[reason] = covered - before
    kept = seconds.pop(None)
    excluded = tuple(ReasonTotal(reason, part) for reason, part in seconds.items() if reason)
    return Ledger(recording.path, recording.seconds, kept, recording.seconds - covered, excluded)


def _covered(spans: Iterable[Span], seconds: float) -> float:
    """Return how much of a recording some spans cover; where they overlap counts once."""
    total = reached = 0.0
    for start, end in sorted((max(0.0, span.start), min(seconds, span.end)) for span in spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total
