"""Clips of other languages in a run: their share of every update, whoever splits it, and the loss on them."""

import dataclasses
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dataset.building import clip as made_clip
from tests.training.made_clips import epoch_of, made_lengths
from tests.training.running import events, figures, resume, same, trained, weights
from tests.training.trainable import write_dataset
from utils.config import TrainConfig
from utils.core.errors import ConfigError
from utils.training.batches import ReplayClips, UpdatePlan
from utils.xtts import checkpoints
from utils.xtts.vocabulary import Vocabulary

OWN, SIZES = 100, (30, 9)
LENGTHS = made_lengths(OWN + sum(SIZES), seed=4)
CLIPS = [
    dataclasses.replace(made_clip(number), speaker="own" if number < OWN else f"other{number >= OWN + SIZES[0]}")
    for number in range(OWN + sum(SIZES))
]


def plan_of(share: float, weights: tuple[float, float] = (2, 1), **changes: object) -> UpdatePlan:
    config = TrainConfig.parse({"reference": "other_clip", "batch_size": 8, "grad_acumm": 2, "seed": 5, **changes})
    replay = ReplayClips.of_share(share, OWN, SIZES, weights)
    return UpdatePlan.from_config(config, LENGTHS, 1, CLIPS, replay)


@given(share=st.floats(0.01, 0.9), weights=st.tuples(st.floats(0.1, 9), st.floats(0.1, 9)), seed=st.integers(0, 999))
def test_every_update_has_its_share_of_other_languages(share: float, weights: tuple[float, float], seed: int) -> None:
    plan = plan_of(share, weights, seed=seed)
    for epoch in range(3):
        updates = epoch_of(plan, epoch)
        seen = Counter(clip for update in updates for clip in update.clips.tolist())
        assert {clip for clip in seen if clip < OWN} == set(range(OWN))
        assert all(seen[clip] == 1 for clip in range(OWN))
        counts = [sum(seen[clip] for clip in part) for part in (range(OWN, OWN + 30), range(OWN + 30, OWN + 39))]
        assert tuple(counts) == plan.replay.counts
        for update in updates:
            others = int((update.clips >= OWN).sum())
            assert abs(others - share * update.clips.size) <= 1.5
            assert all(
                CLIPS[one].speaker == CLIPS[two].speaker
                for one, two in zip(update.clips, update.references, strict=True)
            )
    drawn = Counter(clip for number in range(3 * len(plan)) for clip in plan[number].clips.tolist() if clip >= OWN)
    for part in (range(OWN, OWN + 30), range(OWN + 30, OWN + 39)):
        times = [drawn[clip] for clip in part]
        assert max(times) - min(times) <= 1


@pytest.mark.parametrize(("data", "message"), [("a=0", "positive"), ("a|b=-1", "positive"), ("a=much", "much")])
def test_a_weight_that_is_none_is_refused(data: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TrainConfig.parse({"replay_data": data})


def test_datasets_are_named_with_their_weights() -> None:
    assert TrainConfig(replay_data="a|b c = 2 |").replay_weights == {Path("a"): 1, Path("b c"): 2}


@pytest.mark.slow
def test_a_run_of_two_languages_is_exact(tmp_path: Path, dataset: Path) -> None:
    other = write_dataset(tmp_path / "other" / "dataset", train=5, held_back=2, seed=9)
    (other / "lang.txt").write_text("ti\n")
    changes = {"replay_data": str(other.parent), "replay_share": 0.3, "reference": "other_clip", "dropout": 0}
    whole = trained(tmp_path / "whole", dataset, **changes)
    losses = [event["languages"]["ti"] for event in events(whole, "evaluation")]  # type: ignore[index]
    assert losses[-1] < losses[0]
    assert losses == figures(whole, "loss_other_languages", "evaluation")
    vocabulary = Vocabulary.load(checkpoints.find(whole.folder, "best").folder / "vocab.json")
    assert {"[am]", "[ti]"} <= vocabulary.ids.keys()
    (event,) = events(whole, "replay")
    assert event["counts"] == {"am": 12, "ti": 5}

    run = trained(tmp_path / "half", dataset, **changes, max_steps=3, lr_scheduler="constant", warmup_steps=0)
    plain = trained(tmp_path / "plain", dataset, **changes, lr_scheduler="constant", warmup_steps=0)
    (other / "metadata_train.csv").unlink()  # the run has its own list
    resume(run, TrainConfig.load(run.config).model_copy(update={"max_steps": 6}))
    assert same(weights(run), weights(plain))


@pytest.mark.slow
def test_without_a_share_the_other_language_is_only_evaluated(tmp_path: Path, dataset: Path) -> None:
    other = write_dataset(tmp_path / "other", train=2, held_back=2, seed=9)
    run = trained(tmp_path / "run", dataset, replay_data=str(other), replay_share=0, max_steps=2)
    alone = trained(tmp_path / "alone", dataset, max_steps=2)
    assert same(weights(run), weights(alone))
    assert [list(event["languages"]) for event in events(run, "evaluation")] == [["am"], ["am"]]  # type: ignore[call-overload]
