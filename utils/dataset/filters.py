"""Judge clips by their measurements: which are left out, and why."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from utils.config import DatasetConfig
from utils.dataset.clip import Clip, changed_fields, with_fields
from utils.dataset.facts import Reason
from utils.recognition.levels import letters

EPSILON = 1e-3  # seconds: a clip of exactly the limit, rounded to samples, is within it


def _below(score: float | None, limit: float) -> bool:
    return score is not None and score < limit


def _above(score: float | None, limit: float) -> bool:
    return score is not None and score > limit


# What was not measured is not judged. The first rule that applies gives the reason, so the table begins with what no
# setting would correct.
RULES: dict[Reason, Callable[[Clip, DatasetConfig], bool]] = {
    "too short": lambda clip, limits: clip.span.seconds < limits.min_seconds - EPSILON,
    "too long": lambda clip, limits: clip.span.seconds > limits.max_seconds + EPSILON,
    "no speech": lambda clip, limits: _below(clip.scores.speech_ratio, limits.min_speech_ratio),
    "clipped": lambda clip, limits: _above(clip.scores.clipping, limits.max_clipping),
    "noisy": lambda clip, limits: _below(clip.scores.snr_db, limits.min_snr_db),
    "empty text": lambda clip, _: not letters(clip.text),
    "too fast": lambda clip, limits: _above(clip.scores.chars_per_second, limits.max_chars_per_second),
    "too slow": lambda clip, limits: _below(clip.scores.chars_per_second, limits.min_chars_per_second),
    "low confidence": lambda clip, limits: _below(clip.scores.confidence, limits.min_confidence),
    # a person's text has no confidence, and no machine outvotes it
    "recognisers disagree": lambda clip, limits: (
        clip.scores.confidence is not None and _above(clip.scores.second_cer, limits.max_second_cer)
    ),
}


def without_copies(clips: Iterable[Clip], sounds: set[str]) -> list[Clip]:
    """Exclude clips whose exact audio is among ``sounds``, and add the audio of the others to it."""
    judged = []
    for clip in clips:
        is_copy = clip.status == "kept" and clip.content in sounds
        judged.append(clip.excluded("duplicate") if is_copy else clip)
        if clip.status == "kept":
            sounds.add(clip.content)
    return judged


def judge(clip: Clip, settings: DatasetConfig) -> Reason | None:
    """Return why a clip is excluded; None when it is kept."""
    return next((reason for reason, applies in RULES.items() if applies(clip, settings)), None)


def filtered(clip: Clip, reason: Reason | None) -> Clip:
    """Return a clip as the rules leave it: excluded for a reason, or as it was before they excluded it."""
    if not reason:
        return replace(with_fields(clip, clip.before or '{"status": "kept", "reason": ""}'), before="")
    excluded = clip.excluded(reason)
    before = clip.before if clip.reason in RULES else changed_fields(clip, excluded)[0]
    return replace(excluded, before=before or "")
