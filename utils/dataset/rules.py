"""Why a clip is set aside: a table of rules, each of which gives its reason or nothing.

A reason is always the same words, so that the ledger can add up what each rule costs. What was not measured is not
judged. The first rule that applies gives the reason, so the table begins with what no other setting would mend.
"""

from collections.abc import Callable

from utils.config import DatasetConfig
from utils.dataset.clip import Clip
from utils.dataset.scores import letters

Rule = Callable[[Clip, DatasetConfig], bool]
EPSILON = 1e-3  # seconds: a clip of exactly the limit, rounded to samples, is within it


def judge(clip: Clip, settings: DatasetConfig) -> str:
    """Return why a clip is set aside, or nothing when it is kept."""
    return next((reason for reason, applies in RULES if applies(clip, settings)), "")


def _too_short(clip: Clip, settings: DatasetConfig) -> bool:
    return clip.span.seconds < settings.min_seconds - EPSILON


def _too_long(clip: Clip, settings: DatasetConfig) -> bool:
    return clip.span.seconds > settings.max_seconds + EPSILON


def _no_speech(clip: Clip, settings: DatasetConfig) -> bool:
    return _below(clip.scores.speech_ratio, settings.min_speech_ratio)


def _clipped(clip: Clip, settings: DatasetConfig) -> bool:
    return _above(clip.scores.clipping, settings.max_clipping)


def _noisy(clip: Clip, settings: DatasetConfig) -> bool:
    return _below(clip.scores.snr_db, settings.min_snr_db)


def _empty_text(clip: Clip, settings: DatasetConfig) -> bool:  # noqa: ARG001  # the signature of a rule
    return not letters(clip.text)


def _too_fast(clip: Clip, settings: DatasetConfig) -> bool:
    return _above(clip.scores.chars_per_second, settings.max_chars_per_second)


def _too_slow(clip: Clip, settings: DatasetConfig) -> bool:
    return _below(clip.scores.chars_per_second, settings.min_chars_per_second)


def _low_confidence(clip: Clip, settings: DatasetConfig) -> bool:
    return _below(clip.scores.confidence, settings.min_confidence)


def _recognisers_disagree(clip: Clip, settings: DatasetConfig) -> bool:
    return _above(clip.scores.second_cer, settings.max_second_cer)


def _below(score: float | None, limit: float) -> bool:
    return score is not None and score < limit


def _above(score: float | None, limit: float) -> bool:
    return score is not None and score > limit


RULES: tuple[tuple[str, Rule], ...] = (
    ("too short", _too_short),
    ("too long", _too_long),
    ("no speech", _no_speech),
    ("clipped", _clipped),
    ("noisy", _noisy),
    ("empty text", _empty_text),
    ("too fast", _too_fast),
    ("too slow", _too_slow),
    ("low confidence", _low_confidence),
    ("recognisers disagree", _recognisers_disagree),
)
REASONS = frozenset(reason for reason, _ in RULES)
