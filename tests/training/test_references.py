"""References from other clips: the same speaker, never what is learned, and the same however the work is split."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dataset.building import clip as made_clip
from tests.training.made_clips import epoch_of, made_lengths
from utils.config import TrainConfig
from utils.dataset.clip import Clip
from utils.recognition.spans import Span
from utils.training.batches import BatchSpec, UpdatePlan
from utils.training.clips import HALF_SECOND_FRAMES, ClipLengths
from utils.training.data_loader import eval_groups
from utils.training.references import ReferencePairs

LENGTHS = made_lengths(203, seconds=(0.6, 11.0))


def clips_of(lengths: ClipLengths) -> list[Clip]:
    """Give each clip a speaker in turn; the last speaker has one clip alone."""
    last = len(lengths.samples) - 1
    names = [f"s{number % 3}" if number < last else "alone" for number in range(last + 1)]
    return [dataclasses.replace(made_clip(number), speaker=name) for number, name in enumerate(names)]


CLIPS = clips_of(LENGTHS)


def plan_of(reference: str, **values: object) -> UpdatePlan:
    config = TrainConfig.parse({"reference": reference, "batch_size": 8, "grad_acumm": 2, "seed": 5, **values})
    return UpdatePlan.from_config(config, LENGTHS, 1, CLIPS)


@given(
    speakers=st.lists(st.sampled_from("abc"), min_size=1, max_size=30),
    seed=st.integers(0, 2**32 - 1),
    epoch=st.integers(0, 1000),
)
def test_a_partner_is_another_clip_of_the_speaker_and_list(speakers: list[str], seed: int, epoch: int) -> None:
    clips = [dataclasses.replace(made_clip(number), speaker=name) for number, name in enumerate(speakers)]
    partners = ReferencePairs(clips, np.arange(len(clips)) + 50).draw(seed, epoch)
    assert set(partners.tolist()) <= set(range(len(clips)))  # evaluation clips are in another list
    for number, partner in enumerate(partners.tolist()):
        assert clips[partner].speaker == clips[number].speaker
        assert (partner != number) == (speakers.count(speakers[number]) > 1)


def test_a_clip_that_overlaps_the_target_is_no_partner() -> None:
    whole = dataclasses.replace(made_clip(0), recording="r", span=Span(0, 9))
    part = dataclasses.replace(made_clip(1), recording="r", span=Span(8, 10))
    later = dataclasses.replace(made_clip(2), recording="r", span=Span(10, 12))
    for epoch in range(9):
        partners = ReferencePairs([whole, part, later], np.array([90, 20, 20])).draw(0, epoch)
        assert partners.tolist() in ([2, 2, 0], [2, 2, 1])


@pytest.mark.parametrize("reference", ["same_clip", "auto", "other_clip"])
def test_references_lie_in_their_clip(reference: str) -> None:
    seen = set()
    for update in epoch_of(plan_of(reference)):
        assert (update.starts >= 0).all()
        assert (update.starts + update.frames <= LENGTHS.frames[update.references]).all()
        seen.add(update.frames // HALF_SECOND_FRAMES)
        other = update.references != update.clips
        assert not update.masked[other].any()
        assert update.audio_count == (LENGTHS.codes[update.clips] + 4).sum() - np.diff(update.masked).sum()
    assert seen <= set(range(1, 13))
    assert (1 in seen) == (reference == "other_clip")


def test_auto_takes_another_clip_where_masking_cannot_protect_the_target() -> None:
    """Whatever a clip hears of itself is masked; only the clip of a speaker without others is not."""
    own, other = 0, 0
    for update in epoch_of(plan_of("auto")):
        is_own = update.references == update.clips
        own, other = own + is_own.sum(), other + (~is_own).sum()
        unprotected = update.clips[is_own & (np.diff(update.masked)[:, 0] == 0)]
        assert set(unprotected.tolist()) <= {202}
    assert own > 10
    assert other > 10
    assert all((update.references != update.clips).sum() for update in epoch_of(plan_of("auto", mask_reference=False)))


def test_the_shares_tell_what_is_heard_and_learned() -> None:
    shares = {name: plan_of(name).reference_shares() for name in ("same_clip", "auto", "other_clip")}
    assert shares["same_clip"]["other_clip"] == 0
    assert shares["same_clip"]["heard_unmasked"] > 0.1
    assert shares["auto"]["masked"] > 0.05
    assert shares["auto"]["heard_unmasked"] < 0.02
    assert shares["other_clip"]["other_clip"] > 0.99
    assert shares["other_clip"]["masked"] < 0.01  # the clip without a partner


def test_an_evaluation_hears_other_clips_of_its_own_list() -> None:
    partners = ReferencePairs(CLIPS, LENGTHS.frames).draw(0, 0)
    crops = []
    for size in (1, 7):
        groups = eval_groups(LENGTHS, BatchSpec(size), partners)
        crops.append(
            {
                (clip, reference, group.frames)
                for group in groups
                for clip, reference in zip(group.clips.tolist(), group.references.tolist(), strict=True)
            }
        )
        assert all((LENGTHS.frames[group.references] >= group.frames).all() for group in groups)
    assert crops[0] == crops[1]
    assert {(clip, reference) for clip, reference, _ in crops[0]} == set(enumerate(partners.tolist()))


@pytest.mark.parametrize(("batch_size", "grad_acumm", "processes"), [(16, 1, 1), (4, 4, 1), (8, 1, 2)])
def test_references_do_not_depend_on_how_an_update_is_split(batch_size: int, grad_acumm: int, processes: int) -> None:
    config = TrainConfig(reference="other_clip", batch_size=batch_size, grad_acumm=grad_acumm, seed=5)
    plan = UpdatePlan.from_config(config, LENGTHS, processes, CLIPS)
    assert len(plan) == len(plan_of("other_clip"))
    for one, other in zip(epoch_of(plan), epoch_of(plan_of("other_clip")), strict=True):
        assert all(np.array_equal(*part) for part in zip(vars(one).values(), vars(other).values(), strict=True))
