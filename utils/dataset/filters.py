"""Judge clips by their measurements: which are left out, and why."""

from collections.abc import Callable

from utils.config import DatasetConfig
from utils.dataset.clip import Clip
from utils.recognition.levels import letters

EPSILON = 1e-3  # seconds: a clip of exactly the limit, rounded to samples, is within it


def _below(score: float | None, limit: float) -> bool:
    return score is not None and score < limit


def _above(score: float | None, limit: float) -> bool:
    return score is not None and score > limit


# A reason is always the same words, so that the statistics can add up what each rule costs. What was not measured is
# not judged. The first rule that applies gives the reason, so the table begins with what no setting would correct.
RULES: dict[str, Callable[[Clip, DatasetConfig], bool]] = {
    "too short": lambda clip, limits: clip.span.seconds < limits.min_seconds - EPSILON,
    "too long": lambda clip, limits: clip.span.seconds > limits.max_seconds + EPSILON,
    "no speech": lambda clip, limits: _below(clip.scores.speech_ratio, limits.min_speech_ratio),
    "clipped": lambda clip, limits: _above(clip.scores.clipping, limits.max_clipping),
    "noisy": lambda clip, limits: _below(clip.scores.snr_db, limits.min_snr_db),
    "empty text": lambda clip, _: not letters(clip.text),
    "too fast": lambda clip, limits: _above(clip.scores.chars_per_second, limits.max_chars_per_second),
    "too slow": lambda clip, limits: _below(clip.scores.chars_per_second, limits.min_chars_per_second),
    "low confidence": lambda clip, limits: _below(clip.scores.confidence, limits.min_confidence),
    "recognisers disagree": lambda clip, limits: _above(clip.scores.second_cer, limits.max_second_cer),
}
REASONS = frozenset(RULES)


def judge(clip: Clip, settings: DatasetConfig) -> str:
    """Return why a clip is excluded; empty when it is kept."""
    return next((reason for reason, applies in RULES.items() if applies(clip, settings)), "")
