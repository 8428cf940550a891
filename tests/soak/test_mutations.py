"""Damage is done by chance that can be repeated, and it is damage."""

import json
import random

import pytest

from tests.soak.mutations import DEEP, LARGEST, MUTATIONS, mutant

TEXT = b'{"a": 1, "b": [2, "three", null]}\n{"a": -4.5, "c": {"d": []}}\n' * 40
SOUND = random.Random(0).randbytes(3000)


def test_the_same_seed_does_the_same_damage() -> None:
    assert [mutant(TEXT, f"7/{n}") for n in range(50)] == [mutant(TEXT, f"7/{n}") for n in range(50)]


def test_another_seed_does_other_damage() -> None:
    assert len({mutant(TEXT, f"{seed}/0").content for seed in range(50)}) > 45


@pytest.mark.parametrize("content", [TEXT, SOUND, b"", b"x"], ids=["text", "sound", "empty", "a letter"])
@pytest.mark.parametrize("mutation", MUTATIONS[:-1], ids=lambda one: one.__name__)
def test_any_file_can_be_damaged_in_any_way(mutation: object, content: bytes) -> None:
    assert callable(mutation)
    made = [mutation(content, random.Random(seed)) for seed in range(30)]
    assert all(isinstance(one, bytes) for one in made)
    assert len(content) < 2 or any(one != content for one in made)


def test_nearly_every_mutant_differs_from_the_whole_file() -> None:
    assert sum(mutant(TEXT, str(seed)).content != TEXT for seed in range(200)) > 190


def test_one_mutation_of_several_can_be_done_alone() -> None:
    seed = next(str(seed) for seed in range(100) if len(mutant(TEXT, str(seed)).done) == 3)
    whole = mutant(TEXT, seed)
    assert [mutant(TEXT, seed, only).done for only in range(4)] == [*((name,) for name in whole.done), ()]


def test_a_value_of_another_type_leaves_json_readable() -> None:
    whole = json.dumps({"a": [1, {"b": "c"}], "d": None}).encode()
    mutation = next(one for one in MUTATIONS if one.__name__ == "other_type")
    found = {str(json.loads(mutation(whole, random.Random(seed)))) for seed in range(30)}
    assert len(found) > 15


def test_a_mutant_grows_within_bounds() -> None:
    assert max(len(mutant(TEXT, str(seed)).content) for seed in range(300)) <= len(TEXT) + LARGEST
    assert DEEP * len(b'{"a":') < LARGEST
