"""The sentences to be read hold every sound early, and none is asked for twice."""

import pytest

from utils.amharic.alphabet import PHONES
from utils.dataset import prompts


def test_the_shipped_sentences_hold_every_sound_and_so_do_the_first_ten_chosen() -> None:
    shipped = prompts.shipped()
    assert len(shipped) == len(set(shipped)) == 250
    assert all(text == text.strip() for text in shipped)
    assert prompts.coverage(shipped).missing == prompts.coverage(prompts.choose(10)).missing == ()


def test_as_many_chosen_ones_hold_more_pairs_than_the_first_in_the_list() -> None:
    def pairs(texts: list[str]) -> int:
        return len({unit for text in texts for unit in prompts._units(text) if len(unit) == 2})

    assert pairs(prompts.choose(40)) > 1.2 * pairs(list(prompts.shipped()[:40]))


def test_sentences_that_were_read_are_not_chosen_again() -> None:
    first = prompts.choose(20)
    assert first == prompts.choose(20)
    assert set(prompts.choose(20, read=first)).isdisjoint(first)
    assert len(prompts.choose(300, read=first)) == 230


@pytest.mark.parametrize(("text", "sounds"), [("ሰላም", {"s", "ə", "l", "a", "m"}), ("…", set()), ("3", {"s", "o"})])
def test_sounds_are_counted(text: str, sounds: set[str]) -> None:
    coverage = prompts.coverage([text])
    assert sounds <= set(coverage.counts)
    assert set(coverage.counts) | set(coverage.missing) == set(PHONES)
    assert len(prompts.choose(250, [text])) == bool(sounds)
