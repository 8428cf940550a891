"""What a dataset holds: hours, speakers, durations, pace, noise and phonemes, counted from its table of clips."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from utils.core.languages import AMHARIC, canonical
from utils.core.storage import atomic_writer
from utils.dataset import lengths
from utils.dataset.ledger import Ledger
from utils.dataset.store import Dataset, Store

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from utils.dataset.clip import Clip

COMMONEST_WORDS = 20_000  # the rest adds no phoneme and takes most of the time
FEW = 20  # a phoneme that occurs less often is hardly learned
BINS = 40


@dataclass(frozen=True)
class Statistics:
    """Counts over the kept clips.

    Attributes:
        recordings: Number of recordings with clips.
        clips: Number of clips by side of the split.
        speakers: Seconds by speaker, the longest first.
        seconds: Duration of each clip.
        pace: Letters per second of each clip, where measured.
        snr: Signal-to-noise ratio of each clip, where measured.
        excluded: Excluded seconds by reason, the longest first.
        phonemes: How often each occurs; empty for languages other than Amharic.
    """

    recordings: int
    clips: dict[str, int]
    speakers: dict[str, float]
    seconds: tuple[float, ...]
    pace: tuple[float, ...]
    snr: tuple[float, ...]
    excluded: dict[str, float]
    phonemes: dict[str, int]

    @property
    def missing(self) -> list[str]:
        """Return the phonemes that do not occur."""
        return [phone for phone, count in self.phonemes.items() if not count]

    @property
    def rare(self) -> dict[str, int]:
        """Return the phonemes that hardly occur."""
        return {phone: count for phone, count in self.phonemes.items() if 0 < count < FEW}


def count(store: Store, language: str) -> Statistics:
    """Count what a dataset holds."""
    table = store.table()
    kept = table[table["status"] == "kept"]
    return Statistics(
        recordings=int(table["recording"].nunique()),
        clips=dict(Counter(kept["split"])),
        speakers=_seconds_by(kept, "speaker"),
        seconds=tuple(kept["seconds"]),
        pace=tuple(kept["chars_per_second"].dropna()),
        snr=tuple(kept["snr_db"].dropna()),
        excluded=_seconds_by(table[table["status"] == "excluded"], "reason"),
        phonemes=count_phonemes(kept["text"], language),
    )


def split_counts(store: Store) -> dict[str, str]:
    """Describe each side of the split: its clips, recordings and duration."""
    table = store.table()
    sides = {}
    for side in ("train", "eval"):
        clips = table[(table["status"] == "kept") & (table["split"] == side)]
        minutes = clips["seconds"].sum() / 60
        sides[side] = f"{len(clips)} clips of {clips['recording'].nunique()} recordings, {minutes:.1f} min"
    return sides


def account(dataset: Dataset) -> Ledger:
    """Account for every second of every recording, and for every file that gave no clips."""
    clips: defaultdict[str, list[Clip]] = defaultdict(list)
    for clip in dataset.clips.values():
        clips[clip.recording].append(clip)
    ledger = Ledger()
    for name, source in dataset.recordings.items():
        ledger.add(source.path, source.seconds, clips[name])
    for source in dataset.failed:
        ledger.fail(source.path, source.reason)
    return ledger


def count_phonemes(texts: Iterable[str], language: str) -> dict[str, int]:
    """Count the phonemes of Amharic texts, including those that do not occur."""
    if canonical(language) != AMHARIC.code:
        return {}
    from utils.amharic import normalize, phonemize
    from utils.amharic.alphabet import PHONES

    words = Counter(word for text in texts for word in text.split())
    phone = re.compile("|".join(sorted(PHONES, key=len, reverse=True)))
    counts: Counter[str] = Counter()
    for word, times in words.most_common(COMMONEST_WORDS):
        for symbol in phone.findall(phonemize(normalize(word))):
            counts[symbol] += times
    return {symbol: counts[symbol] for symbol in PHONES}


def report(statistics: Statistics) -> str:
    """Format the counts as lines of text."""
    lines = [
        f"recordings           {statistics.recordings}",
        f"clips in use         {len(statistics.seconds)}, {sum(statistics.seconds) / 3600:.2f} h",
        f"split                {_join(statistics.clips, str) or 'none'}",
        f"speakers             {_join(statistics.speakers, _minutes)}",
        f"excluded             {_join(statistics.excluded, _minutes) or 'nothing'}",
    ]
    if statistics.pace:
        lines.append(f"characters/s         {_spread(statistics.pace)}")
    if statistics.snr:
        lines.append(f"SNR (dB)             {_spread(statistics.snr)}")
    if total := len(statistics.phonemes):
        lines.append(f"phonemes             {total - len(statistics.missing)} of {total}")
    if statistics.missing:
        lines.append(f"missing              {' '.join(statistics.missing)}")
    if statistics.rare:
        lines.append(f"fewer than {FEW}        {_join(statistics.rare, str)}")
    if statistics.seconds:
        lines.append(lengths.report(lengths.Lengths(statistics.seconds)))
    return "\n".join(lines)


def draw(statistics: Statistics, path: Path) -> None:
    """Draw durations, pace, noise and phonemes into a PNG file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 7), layout="constrained")
    (seconds, pace), (snr, phonemes) = figure.subplots(2, 2)
    _histogram(seconds, statistics.seconds, "Clip length", "seconds")
    _histogram(pace, statistics.pace, "Speaking rate", "characters per second")
    _histogram(snr, statistics.snr, "Noise", "SNR in dB")
    phonemes.set(title="Phonemes", ylabel="occurrences", yscale="symlog")
    phonemes.bar(range(len(statistics.phonemes)), list(statistics.phonemes.values()))
    phonemes.set_xticks(range(len(statistics.phonemes)), list(statistics.phonemes), rotation=90, fontsize=8)
    with atomic_writer(path) as file:
        figure.savefig(file, format="png", dpi=120)


def _histogram(axes: "Axes", values: Sequence[float], title: str, unit: str) -> None:
    axes.set(title=title, xlabel=unit, ylabel="clips")
    if values:
        axes.hist(values, bins=BINS)
    else:
        axes.text(0.5, 0.5, "not measured", ha="center", transform=axes.transAxes)


def _seconds_by(clips: "pd.DataFrame", column: str) -> dict[str, float]:
    sums = clips.groupby(column)["seconds"].sum().sort_values(ascending=False, kind="stable")
    return {str(name): float(seconds) for name, seconds in sums.items()}


def _join(values: Mapping[str, float], write: Callable[[float], str]) -> str:
    return ", ".join(f"{name or 'none yet'} {write(value)}" for name, value in list(values.items())[:12])


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f} min"


def _spread(values: Sequence[float]) -> str:
    low, middle, high = (lengths.percentile(values, share) for share in (5, 50, 95))
    return f"median {middle:.1f}, 90 % between {low:.1f} and {high:.1f}"
