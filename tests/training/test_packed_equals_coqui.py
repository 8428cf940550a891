"""Our way through coqui's GPT against coqui's own: the same loss and the same gradients, and two faults of upstream."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from tests.training.small_gpt import small_gpt
from utils.training.packing import Example, PackedGpt, SpecialTokens, pack

TEXT_WEIGHT = 0.01
LENGTHS = [(1, 12), (17, 40), (60, 130), (7, 252)]  # ids, codes


@pytest.fixture(scope="module")
def gpt() -> Any:
    return small_gpt().eval()  # no dropout


def example(ids: int, codes: int, *, frames: int = 60, seed: int = 0) -> Example:
    random = np.random.default_rng([seed, ids, codes])
    mel = random.standard_normal((frames, 80)).astype(np.float16)
    return Example(random.integers(1, 99, ids), random.integers(0, 1024, codes).astype(np.int16), mel)


def coqui(gpt: Any, clips: list[Example], cond_idxs: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Call coqui's forward as its GPTTrainer does; a clip of n codes has a little less than 1024 n samples."""

    def padded(rows: list[Any]) -> Tensor:
        return torch.nn.utils.rnn.pad_sequence([torch.from_numpy(row).long() for row in rows], batch_first=True)

    mel = torch.from_numpy(np.stack([clip.mel.T for clip in clips])).float()
    text, mel_loss, logits = gpt(
        padded([clip.ids for clip in clips]),
        torch.tensor([len(clip.ids) for clip in clips]),
        padded([clip.codes for clip in clips]),
        torch.tensor([1024 * len(clip.codes) - 300 for clip in clips]),
        cond_mels=mel[:, None],
        cond_idxs=cond_idxs,
    )
    return text, mel_loss, logits


def ours(gpt: Any, clips: list[Example], masked: list[tuple[int, int]] | None = None, smoothing: float = 0) -> Tensor:
    batch = pack(clips, SpecialTokens.from_model(gpt), masked=np.array(masked) if masked else None)
    sums = PackedGpt(gpt, smoothing)(batch)
    return torch.stack([sums.text / batch.text_count, sums.audio / batch.audio_count])


def gradients(gpt: Any, loss: Tensor) -> dict[str, Tensor]:
    gpt.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    return {name: weight.grad.clone() for name, weight in gpt.named_parameters() if weight.grad is not None}


def assert_same_learning(gpt: Any, theirs: Tensor, mine: Tensor) -> None:
    torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=0)
    expected, found = gradients(gpt, theirs), gradients(gpt, mine)
    assert expected.keys() == found.keys()
    assert {name.split(".")[0] for name in found} >= {
        "conditioning_encoder",
        "conditioning_perceiver",
        "gpt",
        "mel_head",
    }
    for name, gradient in expected.items():
        apart = float((found[name] - gradient).norm() / gradient.norm().clamp(min=1e-12))
        assert apart < 1e-4, f"{name}: {apart}"


@pytest.mark.parametrize(("ids", "codes"), LENGTHS)
def test_loss_and_every_gradient_are_those_of_coqui(gpt: Any, ids: int, codes: int) -> None:
    clip = example(ids, codes)
    text, audio, _ = coqui(gpt, [clip])
    mine = ours(gpt, [clip])
    torch.testing.assert_close(mine, torch.stack([text, audio]), rtol=1e-5, atol=0)
    assert_same_learning(gpt, TEXT_WEIGHT * text + audio, TEXT_WEIGHT * mine[0] + mine[1])


@pytest.mark.parametrize(("first", "last"), [(0, 20), (7, 30), (20, 40)])
def test_they_are_the_same_with_a_masked_reference(gpt: Any, first: int, last: int) -> None:
    """The samples are divided by 4 first, so that coqui masks the codes that lie under the reference."""
    clip = example(17, 40)
    text, audio, _ = coqui(gpt, [clip], torch.tensor([[256 * first, 256 * last]]))
    mine = ours(gpt, [clip], [(first, last)])
    assert_same_learning(gpt, TEXT_WEIGHT * text + audio, TEXT_WEIGHT * mine[0] + mine[1])


def test_a_batch_is_the_same_as_in_coqui_where_nothing_is_masked(gpt: Any) -> None:
    clips = [example(ids, codes, seed=1) for ids, codes in LENGTHS]
    text, audio, _ = coqui(gpt, clips)
    mine = ours(gpt, clips)
    assert_same_learning(gpt, TEXT_WEIGHT * text + audio, TEXT_WEIGHT * mine[0] + mine[1])


def without(logits: Tensor, clips: list[Example], masked: dict[int, range]) -> Tensor:
    """Return the mean loss over coqui's logits where these codes of these clips do not count."""
    targets = torch.full(logits.shape[::2], -1)
    for row, clip in enumerate(clips):
        said = torch.cat([torch.from_numpy(clip.codes).long(), torch.full((4,), 1025)])
        targets[row, : len(said)] = said
        targets[row, list(masked.get(row, []))] = -1
    return cross_entropy(logits, targets, ignore_index=-1)


def test_upstream_masks_four_times_too_far_because_it_counts_frames_where_targets_are_codes(gpt: Any) -> None:
    clip = example(10, 100)
    reference = torch.tensor([[1024 * 10, 1024 * 20]])  # samples, as get_prompt_slice gives them: codes 10 to 20
    _, loss, logits = coqui(gpt, [clip], reference)
    torch.testing.assert_close(loss, without(logits, [clip], {0: range(40, 80)}))
    torch.testing.assert_close(ours(gpt, [clip], [(10, 20)])[1], without(logits, [clip], {0: range(10, 20)}))
