"""Where a model begins that is trained from nothing: places of text and sound that belong together look alike."""

import pytest
import torch

from utils.xtts.from_scratch import LOUD, Size, begun_gpt, new_config, waves
from utils.xtts.random_vocabulary import small_vocabulary


@pytest.mark.parametrize("pace", [0.5, 0.8, 1.3])
def test_a_code_is_most_like_the_place_in_the_text_that_it_belongs_to(pace: float) -> None:
    text, sound = waves(200, 64, 1.0), waves(100, 64, pace)
    nearest = (sound @ text.T).argmax(dim=1)
    assert (nearest - torch.arange(100) * pace).abs().max() < 0.51


def test_tokens_and_places_begin_equally_loud() -> None:
    vocabulary = small_vocabulary()
    weights = begun_gpt(new_config(Size(2, 64, 4, 32, 1), vocabulary), vocabulary, 0.6)
    names = (
        "text_embedding.weight",
        "mel_embedding.weight",
        "text_pos_embedding.emb.weight",
        "mel_pos_embedding.emb.weight",
    )
    for name in names:
        assert float(weights[name].square().mean().sqrt()) == pytest.approx(LOUD, rel=0.1), name
