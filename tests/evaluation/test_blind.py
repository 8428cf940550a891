"""Blind pairs: balanced, hidden, the same each time; votes that survive, and what they say together."""

from collections import Counter
from math import comb
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
from utils.evaluation.utterance import Utterance


def report(*names: str, count: int = 10) -> EvaluationReport:
    spoken = tuple(
        Utterance(f"{name}-{number}", name, f"sentence {number}", "am", "", f"s{number}", wav=f"{name}/{number}.wav")
        for name in names
        for number in range(count)
    )
    return EvaluationReport(Path("folder"), spoken, names)


@pytest.mark.parametrize(("names", "count", "pairs"), [(("A", "B"), 10, 10), (("A", "B", "C"), 10, 30), (("A",), 9, 0)])
def test_every_sentence_pairs_every_two_models(names: tuple[str, ...], count: int, pairs: int) -> None:
    assert len(blind_pairs(report(*names, count=count), seed=1)) == pairs


def test_each_model_stands_on_the_left_as_often() -> None:
    found = blind_pairs(report("A", "B", "C", count=20), seed=3)
    sides = Counter((pair.left_is, pair.right_is) for pair in found)
    assert set(sides.values()) == {10}


def test_the_order_is_random_and_comes_again() -> None:
    first, again, other = (blind_pairs(report("A", "B"), seed) for seed in (1, 1, 2))
    assert first == again
    assert [pair.text for pair in first] != [pair.text for pair in other]
    assert "".join(pair.left_is for pair in first) not in {"A" * 5 + "B" * 5, "AB" * 5, "BA" * 5}


def test_a_pair_is_two_sounds_of_one_sentence_and_its_token_tells_nothing() -> None:
    for pair in blind_pairs(report("A", "B"), seed=1):
        assert pair.left.name == pair.right.name
        assert pair.left.parent.name == pair.left_is != pair.right_is == pair.right.parent.name
        assert pair.token.isalnum()
        assert int(pair.token, 16)


def test_what_has_no_sound_is_not_paired() -> None:
    both = report("A", "B", count=2)
    silent = Utterance("x", "B", "sentence 3", "am", "", "s3", fault="It cannot be spoken.")
    assert len(blind_pairs(EvaluationReport(both.folder, (*both.utterances, silent), both.checkpoints), 1)) == 2


def test_votes_are_kept_with_the_names_behind_them(tmp_path: Path) -> None:
    path = tmp_path / "votes.jsonl"
    pairs = blind_pairs(report("A", "B"), seed=1)
    save_vote(path, pairs[0], "left", "Abebe")
    save_vote(path, pairs[1], "same", "Abebe")
    save_vote(path, pairs[0], "right", "Almaz")
    with path.open("ab") as file:
        file.write(b'{"kind": "vote", "tok')  # a page that was killed
    save_vote(path, pairs[2], "right", "Abebe")
    votes = read_votes(path)
    assert [one.winner for one in votes] == [pairs[0].left_is, "", pairs[0].right_is, pairs[2].right_is]
    assert remaining_pairs(pairs, votes, "Abebe") == pairs[3:]
    assert remaining_pairs(pairs, votes, "Almaz") == pairs[1:]


def test_whoever_changes_their_mind_votes_once(tmp_path: Path) -> None:
    path = tmp_path / "votes.jsonl"
    (pair, *_) = blind_pairs(report("A", "B"), seed=1)
    save_vote(path, pair, "left")
    save_vote(path, pair, "same")
    (only,) = read_votes(path)
    assert only.winner == ""


def test_an_unknown_choice_is_refused(tmp_path: Path) -> None:
    (pair, *_) = blind_pairs(report("A", "B"), seed=1)
    with pytest.raises(DataError, match="left, right, same"):
        save_vote(tmp_path / "votes.jsonl", pair, "both")  # type: ignore[arg-type]


def test_no_votes_are_no_file(tmp_path: Path) -> None:
    assert read_votes(tmp_path / "votes.jsonl") == []


@pytest.mark.parametrize(
    ("wins", "losses", "chance"),
    [(0, 0, 1.0), (5, 5, 1.0), (1, 0, 1.0), (6, 0, 2 / 64), (9, 1, 2 * 11 / 1024), (15, 5, 0.0414)],
)
def test_chance_is_that_of_coin_tosses(wins: int, losses: int, chance: float) -> None:
    assert binomial_p_value(wins, losses) == pytest.approx(chance, abs=1e-4)
    assert binomial_p_value(losses, wins) == binomial_p_value(wins, losses)


def test_chance_is_exact() -> None:
    probabilities = [comb(30, heads) / 2**30 for heads in range(31)]
    assert binomial_p_value(22, 8) == pytest.approx(
        sum(one for one in probabilities if one <= probabilities[8] + 1e-12)
    )


@pytest.mark.parametrize(
    ("wins", "losses", "alike", "sentence"),
    [
        (9, 1, 3, "A is preferred to B (9 to 1, 3 alike; p = 0.021)."),
        (1, 9, 0, "B is preferred to A (1 to 9, 0 alike; p = 0.021)."),
        (6, 4, 0, "A and B: no preference beyond chance (6 to 4, 0 alike; p = 0.75)."),
        (0, 0, 5, "A and B: no preference beyond chance (0 to 0, 5 alike; p = 1)."),
    ],
)
def test_votes_say_together(wins: int, losses: int, alike: int, sentence: str) -> None:
    winners = ["A"] * wins + ["B"] * losses + [""] * alike
    (found,) = tally(Vote(f"t{number}", "", "A", "B", winner) for number, winner in enumerate(winners))
    assert str(found) == sentence
