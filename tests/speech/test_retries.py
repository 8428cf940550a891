"""Doubtful takes are repeated, the best counts, and every sentence keeps its own random numbers."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch

from utils.config import SpeechConfig
from utils.core.batching import batched
from utils.media.audio import Samples
from utils.media.rates import OUTPUT_RATE
from utils.speech import guards
from utils.speech.decoder import Generated
from utils.speech.joining import placed
from utils.speech.planning import Piece
from utils.speech.retries import Line, Studio
from utils.xtts.random_model import synthetic_speech
from utils.xtts.tokenizer import TokenizedText

PHONES = "sɛlamnɛwtenastɨllɨɲ"
READING = TokenizedText("ሰላም", "ሰላም", PHONES, PHONES, ("s",), (1,), ())
SOUND = np.interp(
    np.arange(2 * OUTPUT_RATE) / OUTPUT_RATE, np.arange(2 * 22_050) / 22_050, synthetic_speech(2, 1)
).astype(np.float32)


class Fake:
    """Says nothing at all for some seeds, and something usual for the others."""

    def __init__(self, mute: Sequence[int] = ()) -> None:
        self.mute = mute
        self.batches: list[list[int]] = []

    def generate(self, lines: Sequence[Line]) -> list[Generated]:
        self.batches.append([line.seed for line in lines])
        return [self._said(line) for line in lines]

    def _said(self, line: Line) -> Generated:
        count = 1 if line.seed in self.mute else 40
        codes = torch.arange(count) + line.seed % 100
        return Generated(codes=codes, latents=torch.zeros(count, 4), ended=True, logprob=-1.0)

    def sound(self, said: Sequence[Generated]) -> list[Samples]:
        return [SOUND.copy() for _ in said]


def studio(fake: Fake, **settings: object) -> Studio:
    config = SpeechConfig.parse({"trim": False, **settings})
    return Studio(fake.generate, fake.sound, config, guards.Limits())


def line(seed: int) -> Line:
    return Line(Piece(READING, 0, 0.3), seed)


@pytest.mark.parametrize(
    ("mute", "tries", "spoken", "silent"),
    [
        ([], 3, 1, False),
        ([5], 3, 2, False),
        ([5, guards.next_seed(5, 1)], 3, 3, False),
        ([5, guards.next_seed(5, 1), guards.next_seed(5, 2)], 3, 3, True),
        ([5], 1, 1, True),
    ],
)
def test_what_is_in_doubt_is_spoken_again_until_the_tries_are_used(
    mute: list[int], tries: int, spoken: int, silent: bool
) -> None:
    (found,) = studio(Fake(mute), tries=tries).record([line(5)])
    assert (found.tries, any(flag.startswith("nothing") for flag in found.flags)) == (spoken, silent)


def test_only_the_doubtful_sentences_of_a_batch_are_repeated() -> None:
    fake = Fake([7])
    found = list(studio(fake).record([line(6), line(7), line(8)]))
    assert fake.batches == [[6, 7, 8], [guards.next_seed(7, 1)]]
    assert [one.tries for one in found] == [1, 2, 1]
    assert found[1].seed == guards.next_seed(7, 1)


def test_of_several_candidates_the_best_is_taken() -> None:
    fake = Fake([guards.next_seed(3, 0), guards.next_seed(3, 2)])
    (found,) = studio(fake, candidates=3).record([line(3)])
    assert fake.batches == [[guards.next_seed(3, number) for number in range(3)]]
    assert found.seed == guards.next_seed(3, 1)
    assert not any(flag.startswith("nothing") for flag in found.flags)


@pytest.mark.parametrize(("count", "size", "batches"), [(5, 2, [2, 2, 1]), (4, 8, [4]), (3, 1, [1, 1, 1])])
def test_lines_are_spoken_in_batches_of_the_asked_size(count: int, size: int, batches: list[int]) -> None:
    fake = Fake()
    list(studio(fake, batch_size=size).record([line(10 + number) for number in range(count)]))
    assert [len(batch) for batch in fake.batches] == batches


def test_a_batch_is_given_before_the_next_one_is_begun() -> None:
    fake = Fake()
    found = studio(fake, batch_size=1).record([line(1), line(2)])
    next(found)
    assert fake.batches == [[1]]


def test_pieces_begin_after_the_pause_of_the_one_before() -> None:
    pieces = placed(studio(Fake()).record([line(1), line(2)]))
    assert [round(piece.start, 6) for piece in pieces] == [0.0, round(len(SOUND) / OUTPUT_RATE + 0.3, 6)]


def test_a_speed_changes_the_length_and_nothing_else() -> None:
    (usual,), (fast,) = (list(studio(Fake(), speed=speed).record([line(1)])) for speed in (1.0, 1.25))
    assert fast.seconds == pytest.approx(usual.seconds / 1.25, rel=0.01)
    assert fast.codes.tolist() == usual.codes.tolist()


def test_a_text_may_take_longer_than_usual_but_not_for_ever() -> None:
    limits = guards.Limits()
    assert 40 < line(0).limit(limits) < 200


def test_batches_hold_everything_once() -> None:
    assert [list(part) for part in batched([1, 2, 3], 2)] == [[1, 2], [3]]
