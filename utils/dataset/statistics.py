"""What a dataset holds, from its manifest alone: hours, speakers, lengths, pace, noise and phonemes."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from utils.core.languages import AMHARIC, canonical
from utils.dataset import lengths
from utils.dataset.clip import Clip
from utils.dataset.ledger import Ledger
from utils.dataset.store import Dataset

COMMONEST_WORDS = 20_000  # the rest adds no phoneme and takes most of the time
FEW = 20  # a phoneme that occurs less often is hardly learned


@dataclass(frozen=True)
class Statistics:
    """Counts over the kept clips.

    Attributes:
        recordings: Finished recordings.
        clips: Kept clips by split; those without one under the empty name.
        speakers: Seconds of each speaker, most first.
        seconds: Length of each clip.
        pace: Letters a second of each clip where it was measured.
        snr: Signal-to-noise ratio of each clip where it was measured.
        aside: Seconds set aside by reason, most first.
        phonemes: How often each occurs; empty for a language whose sounds we do not know.
    """

    recordings: int
    clips: dict[str, int]
    speakers: dict[str, float]
    seconds: tuple[float, ...]
    pace: tuple[float, ...]
    snr: tuple[float, ...]
    aside: dict[str, float]
    phonemes: dict[str, int]

    @property
    def missing(self) -> list[str]:
        """Return the phonemes that occur nowhere."""
        return [phone for phone, count in self.phonemes.items() if not count]

    @property
    def rare(self) -> dict[str, int]:
        """Return the phonemes that hardly occur."""
        return {phone: count for phone, count in self.phonemes.items() if 0 < count < FEW}


def count(contents: Dataset, language: str) -> Statistics:
    """Count what a dataset holds."""
    kept = contents.kept
    return Statistics(
        recordings=len(contents.recordings),
        clips=dict(Counter(clip.split for clip in kept)),
        speakers=_seconds_by(kept, lambda clip: clip.speaker),
        seconds=tuple(clip.span.seconds for clip in kept),
        pace=tuple(clip.scores.chars_per_second for clip in kept if clip.scores.chars_per_second is not None),
        snr=tuple(clip.scores.snr_db for clip in kept if clip.scores.snr_db is not None),
        aside=_seconds_by(
            (clip for clip in contents.clips.values() if clip.status == "excluded"), lambda clip: clip.reason
        ),
        phonemes=count_phonemes((clip.text for clip in kept), language),
    )


def split_counts(contents: Dataset) -> dict[str, str]:
    """Say for each side of the split how many clips of how many recordings it has, and how long they are."""
    sides: dict[str, str] = {}
    for side in ("train", "eval"):
        clips = [clip for clip in contents.kept if clip.split == side]
        minutes = sum(clip.span.seconds for clip in clips) / 60
        sides[side] = f"{len(clips)} clips of {len({clip.recording for clip in clips})} recordings, {minutes:.1f} min"
    return sides


def account(contents: Dataset) -> Ledger:
    """Account for every second of every recording, and for every file of which nothing came."""
    clips: defaultdict[str, list[Clip]] = defaultdict(list)
    for clip in contents.clips.values():
        clips[clip.recording].append(clip)
    ledger = Ledger()
    for name, source in contents.recordings.items():
        ledger.add(source.path, source.seconds, clips[name])
    for source in contents.failed:
        ledger.fail(source.path, source.reason)
    return ledger


def count_phonemes(texts: Iterable[str], language: str) -> dict[str, int]:
    """Count the phonemes of Amharic texts, those that never occur included."""
    if canonical(language) != AMHARIC.code:
        return {}
    from utils.amharic import normalize, phonemize
    from utils.amharic.alphabet import PHONES

    words = Counter(word for text in texts for word in text.split())
    phone = re.compile("|".join(sorted(PHONES, key=len, reverse=True)))
    found: Counter[str] = Counter()
    for word, times in words.most_common(COMMONEST_WORDS):
        for symbol in phone.findall(phonemize(normalize(word))):
            found[symbol] += times
    return {symbol: found[symbol] for symbol in PHONES}


def report(found: Statistics) -> str:
    """Write the counts as lines for a person."""
    lines = [
        f"recordings           {found.recordings}",
        f"clips kept           {len(found.seconds)}, {sum(found.seconds) / 3600:.2f} h",
        f"split                {_listed(found.clips, str) or 'none'}",
        f"speakers             {_listed(found.speakers, _minutes)}",
        f"set aside            {_listed(found.aside, _minutes) or 'nothing'}",
    ]
    if found.pace:
        lines.append(f"letters a second     {_middle(found.pace)}")
    if found.snr:
        lines.append(f"SNR (dB)             {_middle(found.snr)}")
    if found.phonemes:
        lines.append(f"phonemes             {len(found.phonemes) - len(found.missing)} of {len(found.phonemes)}")
    if found.missing:
        lines.append(f"missing              {' '.join(found.missing)}")
    if found.rare:
        lines.append(f"fewer than {FEW}        {_listed(found.rare, str)}")
    if found.seconds:
        lines.append(lengths.report(lengths.Lengths(found.seconds)))
    return "\n".join(lines)


def _seconds_by(clips: Iterable[Clip], key: Callable[[Clip], str]) -> dict[str, float]:
    sums: Counter[str] = Counter()
    for clip in clips:
        sums[key(clip)] += clip.span.seconds  # type: ignore[assignment]  # a Counter of seconds
    return dict(sums.most_common())


def _listed(values: dict[str, float] | dict[str, int], write: Callable[[float], str]) -> str:
    return ", ".join(f"{name or 'none yet'} {write(value)}" for name, value in list(values.items())[:12])


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f} min"


def _middle(values: Sequence[float]) -> str:
    low, middle, high = (lengths.percentile(values, share) for share in (5, 50, 95))
    return f"{middle:.1f} in the middle, 90 % between {low:.1f} and {high:.1f}"
