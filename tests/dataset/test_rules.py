import dataclasses

import pytest

from utils.config import DatasetConfig
from utils.dataset.clip import Clip, Scores, Span
from utils.dataset.scores import judge

SCORES = Scores(0.9, 40.0, 0.0, -20.0, 8.0, 0.9, 0.05)
GOOD = Clip("a", "b", "c.wav", Span(0, 4), "d", "አበበ በሶ በላ", scores=SCORES)


@pytest.mark.parametrize(
    ("changes", "scores", "reason"),
    [
        ({}, {}, ""),
        ({"span": Span(0, 0.99)}, {}, "too short"),
        ({"span": Span(0, 1.0)}, {}, ""),
        ({"span": Span(5, 16.6)}, {}, ""),
        ({"span": Span(5, 16.7)}, {}, "too long"),
        ({}, {"speech_ratio": 0.1}, "no speech"),
        ({}, {"clipping": 0.01}, "clipped"),
        ({}, {"snr_db": 3.0}, "noisy"),
        ({"text": " ።"}, {}, "empty text"),
        ({}, {"chars_per_second": 30.0}, "too fast"),
        ({}, {"chars_per_second": 0.5}, "too slow"),
        ({}, {"confidence": 0.1}, "low confidence"),
        ({}, {"second_cer": 0.5}, "recognisers disagree"),
        ({"span": Span(0, 0.5)}, {"snr_db": 3.0}, "too short"),
        ({}, dataclasses.asdict(Scores()), ""),  # what was not measured is not judged
    ],
)
def test_the_first_rule_that_applies_gives_the_reason(
    changes: dict[str, object], scores: dict[str, float], reason: str
) -> None:
    clip = dataclasses.replace(GOOD, scores=dataclasses.replace(SCORES, **scores), **changes)  # type: ignore[arg-type]
    assert judge(clip, DatasetConfig()) == reason


@pytest.mark.parametrize(
    ("setting", "value", "reason"),
    [
        ("min_snr_db", 50.0, "noisy"),
        ("min_speech_ratio", 0.95, "no speech"),
        ("max_seconds", 3.0, "too long"),
        ("min_seconds", 5.0, "too short"),
        ("max_chars_per_second", 5.0, "too fast"),
        ("min_chars_per_second", 9.0, "too slow"),
        ("min_confidence", 0.95, "low confidence"),
        ("max_second_cer", 0.01, "recognisers disagree"),
    ],
)
def test_the_limits_are_settings(setting: str, value: float, reason: str) -> None:
    assert judge(GOOD, DatasetConfig.parse({setting: value})) == reason
