"""Blind pairs are balanced, hidden and repeatable; votes survive a crash and are counted."""

import dataclasses
from collections import Counter
from pathlib import Path

import pytest

from utils.core.errors import DataError
from utils.evaluation.blind_test import (
    Vote,
    binomial_p_value,
    blind_pairs,
    read_votes,
    remaining_pairs,
    save_vote,
    tally,
)
from utils.evaluation.report import EvaluationReport
from utils.evaluation.results import EvaluatedUtterance


def report(*names: str, count: int = 10) -> EvaluationReport:
    utterances = tuple(
        EvaluatedUtterance(f"{name}-{n}", name, f"sentence {n}", "am", "", f"s{n}", wav=f"{name}/{n}.wav")
        for name in names
        for n in range(count)
    )
    return EvaluationReport(Path("folder"), utterances, names)


def test_every_sentence_pairs_every_two_models_and_sides_are_balanced() -> None:
    pairs = blind_pairs(report("A", "B", "C", count=20), seed=3)
    assert len(pairs) == 60
    assert set(Counter((pair.left_is, pair.right_is) for pair in pairs).values()) == {10}
    assert blind_pairs(report("A"), seed=1) == []
    for pair in pairs:
        assert pair.left.name == pair.right.name
        assert pair.left.parent.name == pair.left_is != pair.right_is == pair.right.parent.name
        assert int(pair.token, 16), "the token hides the models"


def test_the_order_is_random_and_depends_on_the_seed_alone() -> None:
    first, again, other = (blind_pairs(report("A", "B"), seed) for seed in (1, 1, 2))
    assert first == again
    assert [pair.text for pair in first] != [pair.text for pair in other]
    assert "".join(pair.left_is for pair in first) not in {"A" * 5 + "B" * 5, "AB" * 5, "BA" * 5}


def test_a_failed_sentence_is_not_paired() -> None:
    both = report("A", "B", count=2)
    failed = EvaluatedUtterance("x", "B", "sentence 3", "am", "", "s3", error="It cannot be spoken.")
    assert len(blind_pairs(dataclasses.replace(both, utterances=(*both.utterances, failed)), 1)) == 2


def test_votes_survive_a_crash(tmp_path: Path) -> None:
    path = tmp_path / "votes.jsonl"
    assert read_votes(path) == []
    pairs = blind_pairs(report("A", "B"), seed=1)
    save_vote(path, pairs[0], "left", "Abebe")
    save_vote(path, pairs[1], "same", "Abebe")
    save_vote(path, pairs[0], "right", "Almaz")
    with path.open("ab") as file:
        file.write(b'{"kind": "vote", "tok')
    save_vote(path, pairs[2], "right", "Abebe")
    votes = read_votes(path)
    assert [vote.winner for vote in votes] == [pairs[0].left_is, "", pairs[0].right_is, pairs[2].right_is]
    assert remaining_pairs(pairs, votes, "Abebe") == pairs[3:]
    assert remaining_pairs(pairs, votes, "Almaz") == pairs[1:]
    save_vote(path, pairs[0], "same", "Abebe")  # the last vote on a pair counts
    assert [vote.winner for vote in read_votes(path)] == ["", "", pairs[0].right_is, pairs[2].right_is]
    with pytest.raises(DataError, match="'both'"):
        save_vote(path, pairs[0], "both")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wins", "losses", "p_value"),
    [(0, 0, 1.0), (5, 5, 1.0), (6, 0, 2 / 64), (15, 5, 0.0414)],
)
def test_the_p_value_is_that_of_coin_tosses(wins: int, losses: int, p_value: float) -> None:
    assert binomial_p_value(wins, losses) == pytest.approx(p_value, abs=1e-4)
    assert binomial_p_value(losses, wins) == binomial_p_value(wins, losses)


@pytest.mark.parametrize(
    ("wins", "losses", "ties", "start"),
    [
        (9, 1, 3, "A is preferred to B (9 to 1, 3 ties"),
        (1, 9, 0, "B is preferred to A (1 to 9"),
        (0, 0, 5, "A and B: no significant preference"),
    ],
)
def test_votes_are_counted(wins: int, losses: int, ties: int, start: str) -> None:
    winners = ["A"] * wins + ["B"] * losses + [""] * ties
    (result,) = tally(Vote(f"t{number}", "", "A", "B", winner) for number, winner in enumerate(winners))
    assert str(result).startswith(start)
