"""Comparing models: only what is more than chance is called better."""

import numpy as np
import pytest

from utils.evaluation.significance import FEWEST, compare, difference, interval
from utils.evaluation.utterance import METRICS, Utterance

BY_NAME = {metric.name: metric for metric in METRICS}


def spoken(name: str, values: list[float | None], **fixed: float) -> list[Utterance]:
    return [
        Utterance(f"{name}{number}", name, "ሰላም", "am", "", f"s{number}", cer=value, **fixed)  # type: ignore[arg-type]
        for number, value in enumerate(values)
    ]


def drawn(mean: float, seed: int, count: int = 40) -> list[float | None]:
    return [float(value) for value in np.random.default_rng(seed).normal(mean, 0.05, count)]


@pytest.mark.parametrize(
    ("first", "second", "winner"),
    [
        (drawn(0.30, 1), drawn(0.20, 2), "B"),
        (drawn(0.20, 1), drawn(0.30, 2), "A"),
        (drawn(0.25, 1), drawn(0.25, 2), ""),
        (drawn(0.30, 1, FEWEST - 1), drawn(0.10, 2, FEWEST - 1), ""),
        ([0.2] * 20, [0.2] * 20, ""),
    ],
)
def test_only_what_is_more_than_chance_is_better(
    first: list[float | None], second: list[float | None], winner: str
) -> None:
    found = difference(spoken("A", first) + spoken("B", second), BY_NAME["cer"], "A", "B")
    assert found is not None
    assert found.winner == winner
    assert found.low <= found.mean <= found.high


def test_the_sentence_says_who_how_much_and_how_sure() -> None:
    worse, better = spoken("step_100", drawn(0.30, 1)), spoken("step_200", drawn(0.20, 2))
    (cer, *_) = compare(worse + better)
    assert str(cer).startswith("CER: step_200 is better than step_100 by 10.0 points; ")
    assert "with 95 % certainty" in str(cer)
    assert "40 sentences" in str(cer)


def test_higher_similarity_is_better() -> None:
    one = [*spoken("A", drawn(0.2, 1), similarity=0.4), *spoken("B", drawn(0.2, 1), similarity=0.6)]
    found = difference(one, BY_NAME["similarity"], "A", "B")
    assert found is not None
    assert found.winner == "B"


def test_only_sentences_that_both_spoke_are_compared() -> None:
    found = difference(spoken("A", [0.1, None, 0.1, 0.1]) + spoken("B", [0.2, 0.2, None])[:3], BY_NAME["cer"], "A", "B")
    assert found is not None
    assert found.pairs == 1
    assert "too few to compare" in str(found)


def test_models_that_share_nothing_are_not_compared() -> None:
    assert difference(spoken("A", [None, 0.1]) + spoken("B", [0.1, None]), BY_NAME["cer"], "A", "B") is None


def test_three_models_make_three_pairs() -> None:
    found = compare([*spoken("A", [0.1]), *spoken("B", [0.1]), *spoken("C", [0.1])])
    pairs = {(one.first, one.second) for one in found if one.metric == "cer"}
    assert pairs == {("A", "B"), ("A", "C"), ("B", "C")}


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(0)
    hits = 0
    for number in range(60):
        low, high = interval(random.normal(0.1, 1, 30), seed=number)
        hits += low <= 0.1 <= high
    assert 51 <= hits <= 60
