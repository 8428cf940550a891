"""What a new training takes over from an earlier voice."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tools.random_model import small_vocabulary
from tools.tiny_voice import continuing
from tools.tiny_voice.gpt import initial_gpt
from tools.tiny_voice.stages import Progress
from tools.tiny_voice.training_loop import TrainingLoop, load_trained
from tools.untrained import GptSize, new_config

CODES = 32
VOCABULARY = small_vocabulary()
CONFIG = new_config(GptSize(2, 64, 4, CODES, 1), VOCABULARY)


@pytest.fixture(scope="module")
def weights() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    return initial_gpt(CONFIG, VOCABULARY, 0.6)


def test_a_gpt_knows_its_codes_again_under_new_numbers(weights: dict[str, torch.Tensor]) -> None:
    random = np.random.default_rng(0)
    order = random.permutation(CODES)
    old = [random.integers(0, CODES, 4_000).astype(np.int16) for _ in range(3)]
    moved = continuing.transfer_codes(weights, [(codes, order[codes].astype(np.int16)) for codes in old], CODES)
    for name in (*continuing.CODE_ROWS, "mel_head.bias"):
        assert torch.allclose(moved[name][order], weights[name][:CODES], atol=0.02), name
        assert torch.equal(moved[name][-2:], weights[name][-2:])


def test_a_code_that_is_split_keeps_its_meaning_and_shares_its_probability(weights: dict[str, torch.Tensor]) -> None:
    old = np.arange(CODES, dtype=np.int16).repeat(400)
    new = old * 2 + np.tile([0, 1], len(old) // 2).astype(np.int16)
    moved = continuing.transfer_codes(weights, [(old, new)], 2 * CODES)
    assert len(moved["mel_embedding.weight"]) == 2 * CODES + 2
    assert torch.allclose(moved["mel_embedding.weight"][:-2:2], weights["mel_embedding.weight"][:-2], atol=0.02)
    halved = weights["mel_head.bias"][:-2] + np.log(0.5)
    assert torch.allclose(moved["mel_head.bias"][:-2:2], halved, atol=0.02)


def test_without_steps_a_part_of_the_earlier_voice_stays(tmp_path: Path) -> None:
    part = torch.nn.Linear(2, 2)
    before = part.weight.clone()
    loop = TrainingLoop(tmp_path, {"part": part}, 0, 1e-3, 1, Progress("part", lambda _: None))
    figures = loop.run(lambda *_: iter(()), lambda: {"distance": 0.5})
    assert (figures["step"], figures["distance"]) == (0, 0.5)
    assert torch.equal(load_trained(torch.nn.Linear(2, 2), tmp_path, "part").get_parameter("weight"), before)
