"""Reading ahead: the right clips, nothing of what is skipped, the same for every split, in little memory."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.dataset.building import clip as made_clip
from tests.training.made_clips import MadeClips, made_lengths
from utils.core.errors import DataError
from utils.dataset.clip import Clip
from utils.dataset.features import FeatureStore, text_hash
from utils.training.batches import BatchSpec, UpdatePlan, compile_lengths
from utils.training.clips import ClipLimits, FeatureSource, select_clips
from utils.training.data_loader import Update, UpdateLoader, eval_batches, eval_groups
from utils.training.packing import PackedBatch, SpecialTokens

pytestmark = pytest.mark.slow

TOKENS = SpecialTokens(start_text=99, stop_text=0, start_audio=1024, stop_audio=1025)
LENGTHS = made_lengths(45, seconds=(0.5, 2.5))


def loader(spec: BatchSpec, *, workers: int = 0) -> tuple[UpdateLoader, MadeClips]:
    source = MadeClips(LENGTHS)
    return UpdateLoader(source, UpdatePlan(LENGTHS, 8), TOKENS, spec, workers=workers), source


def values(batch: PackedBatch) -> tuple[object, ...]:
    return batch.mel.tolist(), batch.numbers.tolist(), batch.rows, batch.length


def content(updates: list[Update]) -> list[tuple[object, ...]]:
    return [(*update[1:], *map(values, update.batches)) for update in updates]


@pytest.mark.parametrize("world", [1, 3])
def test_the_processes_of_an_epoch_share_its_clips(world: int) -> None:
    readers = [loader(BatchSpec(3, rank=rank, world=world)) for rank in range(world)]
    runs = [list(reading.run(0, len(reading.plan))) for reading, _ in readers]
    assert sorted(clip for _, source in readers for clip in source.read_clips) == list(range(45))
    assert [[update.number for update in updates] for updates in runs] == [list(range(6))] * world
    for shared in zip(*runs, strict=True):
        assert len({len(update.batches) for update in shared}) == 1
        assert len({update[1:] for update in shared}) == 1
        batches = [batch for update in shared for batch in update.batches]
        assert sum(batch.clips for batch in batches) == shared[0].clips
        assert sum(batch.text_count for batch in batches) == shared[0].text_count
        assert sum(batch.audio_count for batch in batches) == shared[0].audio_count
        assert max(batch.clips for batch in batches) <= 3


def test_only_one_update_is_read_ahead() -> None:
    reading, source = loader(BatchSpec(4))
    updates = reading.run(0, 6)
    assert source.read_clips == []
    clips = next(updates).clips + next(updates).clips
    assert len(source.read_clips) <= clips + 8
    updates.close()  # type: ignore[attr-defined]


def test_a_read_error_is_raised_where_the_update_is_used() -> None:
    reading, source = loader(BatchSpec(4))
    source.lengths = LENGTHS.select(np.arange(3))
    with pytest.raises(IndexError):
        list(reading.run(0, 6))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_resumed_run_reads_the_same_clips(workers: int) -> None:
    state = torch.get_rng_state()
    everything = list(loader(BatchSpec(4))[0].run(0, 14))
    reading, source = loader(BatchSpec(4), workers=workers)
    rest = list(reading.run(9, 14))
    assert content(rest) == content(everything[9:])
    assert torch.equal(torch.get_rng_state(), state)
    assert len(source.read_clips) == (0 if workers else sum(update.clips for update in rest))


@pytest.mark.parametrize("budget", [0, 300])
def test_fixed_lengths_give_few_shapes(budget: int) -> None:
    reading, source = loader(BatchSpec(4, token_budget=budget, grid=compile_lengths(LENGTHS, 3)))
    batches = [batch for update in reading.run(0, 6) for batch in update.batches]
    assert len({(batch.mel.shape[0], batch.length) for batch in batches}) <= 3
    assert sorted(source.read_clips) == list(range(45))


def test_an_evaluation_is_the_same_every_time_and_for_every_batch_size() -> None:
    lengths = made_lengths(60, seed=2)
    crops = []
    for size in (1, 5, 16):
        groups = eval_groups(lengths, BatchSpec(size))
        crops.append({clip: group.frames for group in groups for clip in group.clips.tolist()})
        assert sorted(clip for group in groups for clip in group.clips.tolist()) == list(range(60))
        assert not any(group.masked.any() or group.starts.any() for group in groups)
    assert crops[0] == crops[1] == crops[2]
    for clip, frames in crops[0].items():
        assert frames == min(9, int(lengths.frames[clip]) // 43) * 43
    batches = [[values(batch) for batch in eval_batches(MadeClips(LENGTHS), TOKENS, BatchSpec(7))] for _ in range(2)]
    assert batches[0] == batches[1]


# --- the feature store ---


def fill(store: FeatureStore, clips: list[Clip], samples: list[int], codes: list[int]) -> None:
    """Write features without any model; every number of a clip is its own."""
    frames = [count // 256 + 1 for count in samples]
    store.audio.append(
        [clip.content for clip in clips],
        {
            "samples": np.array(samples),
            "codes": [np.full(count, row, np.int16) for row, count in enumerate(codes)],
            "mel": [np.repeat(np.arange(count), 80).astype(np.float16) for count in frames],
        },
    )
    texts = {text_hash(clip.text): row for row, clip in enumerate(clips)}
    store.text.append(list(texts), {"ids": [np.full(5 + row, 3, np.int32) for row in texts.values()]})


@pytest.fixture
def store(tmp_path: Path) -> FeatureStore:
    store = FeatureStore(tmp_path, "a", "t")
    fill(store, [made_clip(row) for row in range(4)], [22_050, 300_000, 40 * 1024, 5000], [22, 293, 41, 5])
    return store


def test_the_store_reads_the_requested_crop(store: FeatureStore) -> None:
    source = FeatureSource(store, [made_clip(row) for row in range(4)])
    clip = source.read(2, 2, 30, 86)
    assert clip.mel[:, 0].tolist() == list(range(30, 116))
    assert clip.mel.shape == (86, 80)
    assert (clip.ids.size, clip.codes.size) == (7, 40)
    assert not clip.mel.flags.owndata
    assert [part.tolist() for part in source.lengths] == [
        [22_050, 300_000, 40_960, 5000],
        [22, 293, 40, 5],  # a code too many for a length that is a multiple of 1024 is left out, as coqui does it
        [87, 1172, 161, 20],
        [5, 6, 7, 8],
    ]


def test_a_clip_is_trained_on_or_has_a_reason(store: FeatureStore) -> None:
    clips = [made_clip(row) for row in range(5)]
    source, excluded = select_clips(store, clips, ClipLimits(seconds=11.6))
    assert [clip.id for clip in source.clips] == ["r0-0", "r0-2"]
    assert source.lengths.codes.tolist() == [22, 40]
    assert [(clip.clip, clip.reason, clip.limit) for clip in excluded] == [
        (clips[4].audio, "no_features", 0),
        (clips[3].audio, "too_short", 0.5),
        (clips[1].audio, "too_long", 11.6),
    ]
    assert select_clips(store, clips[4:], ClipLimits())[0].lengths.samples.size == 0
    with pytest.raises(DataError, match="has no features"):
        FeatureSource(store, clips)
