"""Packing: coqui's loss and gradients, whatever else is in a batch and however it is split."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.training.small_gpt import small_gpt
from utils.training.packing import Example, PackedBatch, PackedGpt, SpecialTokens, pack

TOKENS = SpecialTokens(start_text=99, stop_text=0, start_audio=1024, stop_audio=1025)
SIZES = [(5, 11), (20, 60), (3, 34), (9, 21), (12, 12)]
MASKED = np.array([[0, 0], [10, 35], [0, 17], [0, 0], [4, 9]])


@pytest.fixture(scope="module")
def model() -> PackedGpt:
    return PackedGpt(small_gpt()).eval()


def example(ids: int, codes: int, *, frames: int = 60, seed: int = 0) -> Example:
    random = np.random.default_rng([seed, ids, codes])
    mel = random.standard_normal((frames, 80)).astype(np.float16)
    return Example(random.integers(1, 99, ids), random.integers(0, 1024, codes).astype(np.int16), mel)


def examples() -> list[Example]:
    return [example(ids, codes, seed=1) for ids, codes in SIZES]


def learned(model: PackedGpt, batches: list[PackedBatch]) -> Tensor:
    """Return the sums of both losses and all gradients of their sum, in one row."""
    model.zero_grad()
    sums = [model(batch) for batch in batches]
    total = torch.stack([torch.stack(batch) for batch in sums]).sum(0)
    total.sum().backward()  # type: ignore[no-untyped-call]
    gradients = [weight.grad for weight in model.parameters()]
    return torch.cat([total.detach(), *(gradient.flatten() for gradient in gradients if gradient is not None)])


def assert_same(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual[:2], expected[:2], rtol=1e-5, atol=1e-5)
    assert float((actual - expected).norm() / expected.norm()) < 1e-5


def test_a_batch_is_the_sum_of_its_clips_and_of_its_halves(model: PackedGpt) -> None:
    whole = pack(examples(), TOKENS, masked=MASKED)
    expected = learned(model, [whole])
    alone = [pack([clip], TOKENS, masked=MASKED[row : row + 1]) for row, clip in enumerate(examples())]
    assert_same(learned(model, alone), expected)
    batches = [whole]
    while len(batches) < len(SIZES):
        batches = [half for batch in batches for half in (batch.halves() if batch.clips > 1 else [batch])]
        assert_same(learned(model, batches), expected)


def test_masks_of_other_clips_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        pack(examples(), TOKENS, masked=MASKED[1:])


def test_a_batch_without_clips_has_zero_loss_and_gradients(model: PackedGpt) -> None:
    empty = pack([], TOKENS)
    assert (empty.clips, empty.text_count, empty.audio_count, empty.positions) == (0, 0, 0, 0)
    row = learned(model, [empty])  # every weight has a gradient, which processes that wait for each other need
    assert len(row) == 2 + sum(weight.numel() for weight in model.parameters())
    assert not row.any()


def coqui(model: PackedGpt, clips: list[Example], cond_idxs: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Call coqui's forward as its GPTTrainer does; a clip of n codes has a little less than 1024 n samples."""

    def padded(rows: list[Any]) -> Tensor:
        return torch.nn.utils.rnn.pad_sequence([torch.from_numpy(row).long() for row in rows], batch_first=True)

    mel = torch.from_numpy(np.stack([clip.mel.T for clip in clips])).float()
    text, mel_loss, logits = model.gpt(
        padded([clip.ids for clip in clips]),
        torch.tensor([len(clip.ids) for clip in clips]),
        padded([clip.codes for clip in clips]),
        torch.tensor([1024 * len(clip.codes) - 300 for clip in clips]),
        cond_mels=mel[:, None],
        cond_idxs=cond_idxs,
    )
    return text, mel_loss, logits


def ours(model: PackedGpt, clips: list[Example], masked: list[tuple[int, int]] | None = None) -> Tensor:
    batch = pack(clips, SpecialTokens.from_model(model.gpt), masked=np.array(masked) if masked else None)
    sums = model(batch)
    return torch.stack([sums.text / batch.text_count, sums.audio / batch.audio_count])


def gradients(model: PackedGpt, losses: Tensor) -> dict[str, Tensor]:
    model.gpt.zero_grad()
    (0.01 * losses[0] + losses[1]).backward()  # type: ignore[no-untyped-call]
    return {name: weight.grad.clone() for name, weight in model.gpt.named_parameters() if weight.grad is not None}


@pytest.mark.parametrize(
    ("clips", "masked"),
    [
        *(([example(*sizes)], None) for sizes in ((1, 12), (60, 130), (7, 252), (200, 324), (402, 539))),
        *(([example(17, 40)], codes) for codes in ((0, 20), (7, 30))),
        (examples(), None),
    ],
)
def test_losses_and_every_gradient_are_those_of_coqui(
    model: PackedGpt, clips: list[Example], masked: tuple[int, int] | None
) -> None:
    """The samples of a reference are divided by 4, so that coqui masks the codes that lie under it."""
    *theirs, _ = coqui(model, clips, 256 * torch.tensor([masked]) if masked else None)
    mine = ours(model, clips, [masked] if masked else None)
    torch.testing.assert_close(mine, torch.stack(theirs), rtol=1e-5, atol=0)
    expected, actual = gradients(model, torch.stack(theirs)), gradients(model, mine)
    assert expected.keys() == actual.keys()
    modules = {name.split(".")[0] for name in actual}
    assert modules >= {"conditioning_encoder", "conditioning_perceiver", "gpt", "mel_head"}
    for name, gradient in expected.items():
        apart = float((actual[name] - gradient).norm() / gradient.norm().clamp(min=1e-12))
        assert apart < 1e-4, f"{name}: {apart}"


@pytest.mark.parametrize(("codes", "stops"), [(603, 4), (604, 4), (605, 3)])
def test_the_longest_clip_fills_the_positions_of_the_model(model: PackedGpt, codes: int, stops: int) -> None:
    batch = pack([example(402, codes)], TOKENS)
    assert batch.parts.audio_positions.max() == min(codes + 3, 607)
    assert (batch.audio_count, batch.text_count) == (codes + stops, 403)
    assert batch.parts.counted_targets[-stops:].tolist() == [1025] * stops
    with torch.no_grad():
        assert torch.isfinite(torch.stack(model(batch))).all()
