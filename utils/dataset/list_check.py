"""Notice that the texts of a list belong to other clips, and find the right ones. Nothing is changed here."""

import functools
import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from utils.config import DatasetConfig
from utils.core.errors import AmharicTtsError
from utils.core.facts import Report, ShouldStop, counted
from utils.core.storage import write_atomically
from utils.dataset.clip import Clip, Recording, changed_fields
from utils.dataset.facts import ListPattern, TextsFitOtherClips
from utils.media import audio
from utils.recognition.aligner import emit
from utils.recognition.pairing import Scores, TextIndex, pair
from utils.recognition.phone_recogniser import EMBEDDED, RATE, PhoneRecogniser, load_recogniser
from utils.recognition.thresholds import SMALL
from utils.recognition.units import units_in, units_of

DETAILS = "list_check.tsv"  # in the dataset
SAMPLE = 60  # clips that are looked at before all are
MIN_CLIPS = 12  # fewer say nothing about a list
MANY = 0.1  # share of texts that fit other clips, from which on the list is doubted
MOSTLY = 0.8  # share of the clips that follow a pattern
# A list of other recordings: a few of its texts fit so well that the recogniser knows the voice, but most clips have
# none, and their own text is not the likeliest either.
FEW = 4
FOREIGN = 0.5
LIKELIEST = 0.2
LIKELIER = 0.4  # by how much another text must fit a clip better in a small project; no right clip has such a text

Given = Sequence[tuple[Recording, str]]  # with content hashes
Pairs = Mapping[int, int]  # from a clip to the text that fits it, by their numbers


class ListComparison(NamedTuple):
    """What some clips, by their numbers, say about the texts of a list."""

    pairs: Pairs
    moved: Pairs  # those with another text than their own
    is_foreign: bool  # most clips have no text in the list, although the recogniser hears them well


class Pairing(NamedTuple):
    """Texts that fit recordings better than their own, and recordings that surely have a wrong one, by content hash."""

    fitting: Mapping[str, str] = {}
    wrong: Set[str] = frozenset()
    found: TextsFitOtherClips | None = None


# Long because a sample, and then all clips, go through the same comparison.
def find_fitting_texts(
    given: Given,
    folder: Path,
    settings: DatasetConfig,
    report: Report,
    should_stop: ShouldStop,
    pronunciations: Path | None = None,
) -> Pairing:
    """Compare the texts of a list with all its clips, if a sample of them gives reason to.

    Only recordings that are one clip are compared. A few texts that fit other clips are left alone, except in a small
    project, where the check of single texts finds few wrong ones.
    """
    listed = [(recording, content) for recording, content in given if recording.text and not recording.cues]
    if len(listed) < MIN_CLIPS:
        return Pairing()
    recordings = [recording for recording, _ in listed]
    units = units_of(settings.language, pronunciations)
    texts = [units_in(units.words(recording.text)) for recording in recordings]
    scores_of = _scorer(recordings, TextIndex(texts), load_recogniser(EMBEDDED, units), settings.max_seconds)
    sample = np.random.default_rng(0).permutation(len(listed))[:SAMPLE].tolist()
    for numbers in (sample, range(len(listed))):
        scores = {number: scores_of(number) for number in counted(numbers, report, "pair_texts", should_stop)}
        compared = _compare(scores, texts)
        if len(compared.moved) < max(FEW, MANY * len(numbers)) and not compared.is_foreign:
            return Pairing(wrong=_unlikely(listed, scores, texts) if len(listed) < SMALL else frozenset())
    return _pairing(listed, compared, folder / DETAILS)


def _scorer(
    recordings: Sequence[Recording], index: TextIndex, model: PhoneRecogniser, max_seconds: float
) -> Callable[[int], Scores]:
    """Return what scores the texts on a clip; each clip is listened to once."""

    @functools.cache
    def scores_of(number: int) -> Scores:
        path = recordings[number].path
        try:
            if audio.duration(path) > max_seconds:
                return {}
            return index.scores(emit(model, audio.load(path, RATE)), number)
        except AmharicTtsError:  # reported when the recording is processed
            return {}

    return scores_of


def _unlikely(listed: Given, scores: Mapping[int, Scores], texts: Sequence[Sequence[int]]) -> Set[str]:
    """Return the recordings, by content hash, that another text of the list fits clearly better."""
    unlikely = set()
    for clip, of_clip in scores.items():
        others = [score for at, score in of_clip.items() if texts[at] != texts[clip]]
        if others and clip in of_clip and max(others) - of_clip[clip] > LIKELIER:
            unlikely.add(listed[clip][1])
    return unlikely


def _pairing(listed: Given, compared: ListComparison, details: Path) -> Pairing:
    """Write what fits, and return it with a summary."""
    pairs, moved, is_foreign = compared
    recordings = [recording for recording, _ in listed]
    written = {recording.text for recording in recordings}
    unused = written - {recordings[at].text for at in pairs.values()}
    _write(recordings, pairs, unused, details)
    found = TextsFitOtherClips(
        texts=len(moved),
        clips=len(recordings),
        pattern="foreign" if is_foreign else _pattern(recordings, moved),
        repeated=len(recordings) - len(written),
        unused=len(unused),
        without=len(recordings) - len(pairs),
        details=details,
    )
    fitting = {listed[clip][1]: recordings[at].text for clip, at in moved.items()}
    wrong = {content for clip, (_, content) in enumerate(listed) if clip not in pairs} if is_foreign else set()
    return Pairing(fitting, wrong, found)


def _compare(scores: Mapping[int, Scores], texts: Sequence[Sequence[int]]) -> ListComparison:
    numbers = [*scores]
    pairs = {numbers[row]: at for row, at in pair([*scores.values()], texts).items()}
    moved = {clip: at for clip, at in pairs.items() if texts[clip] != texts[at]}
    heard = {clip: of_clip for clip, of_clip in scores.items() if of_clip}
    rest = [max(of_clip, key=of_clip.__getitem__) == clip for clip, of_clip in heard.items() if clip not in pairs]
    is_foreign = len(pairs) >= FEW and len(rest) >= FOREIGN * len(heard) and sum(rest) <= LIKELIEST * len(rest)
    return ListComparison(pairs, moved, is_foreign)


def as_listed(clip: Clip, text: str) -> tuple[Clip, str]:
    """Return a clip that was made with the text that fits as its list has it, and the change that repairs it."""
    doubted = replace(clip, text=text, other_text=clip.text).excluded("text does not match")
    return doubted, changed_fields(doubted, clip)[1]


def _pattern(recordings: Sequence[Recording], moved: Pairs) -> ListPattern:
    steps = [at - clip for clip, at in moved.items()]
    if max(steps.count(1), steps.count(-1)) >= MOSTLY * len(steps):
        return "shifted"
    groups = [re.sub(r"\d+$", "", str(recording.path.with_suffix(""))) for recording in recordings]
    within = sum(groups[clip] == groups[at] for clip, at in moved.items())
    return "groups" if len(set(groups)) > 1 and within >= MOSTLY * len(moved) else "mixed"


def _write(recordings: Sequence[Recording], pairs: Pairs, unused: Set[str], path: Path) -> None:
    """List every clip with its text and the one that fits, then the texts that fit no clip."""
    rows = [
        (str(recording.path), recording.text, recordings[pairs[number]].text if number in pairs else "")
        for number, recording in enumerate(recordings)
    ]
    table = [("audio", "text", "text that fits"), *rows, *(("", text, "") for text in sorted(unused))]
    write_atomically(path, "".join("\t".join(row) + "\n" for row in table))
