"""What the page shows of a dataset: filters, pages, orders and counts."""

import dataclasses
from pathlib import Path

import pytest

from tests.ui.data_folders import example_clip
from utils.dataset import editor, queries
from utils.dataset.clip import APPROVED, SPLIT, Clip, Scores, Source
from utils.dataset.queries import PAGE_SIZE, Total, View
from utils.dataset.store import Store


def stored(folder: Path, clips: list[Clip]) -> Store:
    store = Store(folder)
    store.add(Source("0" * 16, "/in/talk.wav"), clips)
    store.rank()
    return store


@pytest.fixture(scope="module")
def fifty(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Fifty clips, of which every tenth is excluded."""
    return stored(tmp_path_factory.mktemp("fifty"), [example_clip(number) for number in range(50)])


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (View(), 45),
        (View("all"), 50),
        (View("excluded"), 5),
        (View("all", "noisy"), 5),
        (View("all", "", "ቡና"), 10),
        (View("all", "", "0000"), 50),
        (View("all", "", "%"), 0),
    ],
)
def test_clips_are_filtered(fifty: Store, view: View, expected: int) -> None:
    assert queries.page(fifty, view, 1).total == expected


def test_the_pages_hold_every_clip_once(fifty: Store) -> None:
    pages = [queries.page(fifty, View("all"), number) for number in (1, 2, 3)]
    assert [page.number for page in pages] == [1, 2, 3]
    assert len({clip.id for page in pages for clip in page.clips}) == 50
    assert queries.page(fifty, View("all"), 99).number == pages[0].pages == -(-50 // PAGE_SIZE)


@pytest.mark.parametrize(("order", "first"), [("noisiest", "0-0"), ("recording", "0-0"), ("worst", "-9")])
def test_orders(fifty: Store, order: str, first: str) -> None:
    assert queries.page(fifty, View("all", order=order), 1).clips[0].id.endswith(first)


@pytest.mark.parametrize(
    ("score", "better", "worse"),
    [
        ("snr_db", 40, 12),
        ("confidence", 0.9, 0.4),
        ("chars_per_second", 12, 23),
        ("second_cer", 0.0, 0.4),
        ("speech_ratio", 0.9, 0.35),
    ],
)
def test_suspicious_clips_come_first(tmp_path: Path, score: str, better: float, worse: float) -> None:
    scores = [Scores(**{score: better}), Scores(**{score: worse}), *[Scores(chars_per_second=12)] * 3]
    clips = [dataclasses.replace(example_clip(number), scores=each) for number, each in enumerate(scores)]
    assert queries.page(stored(tmp_path, clips), View(), 1).clips[0].id == example_clip(1).id


def test_excluded_clips_are_most_suspicious_and_replaced_and_approved_ones_least(tmp_path: Path) -> None:
    clips = [
        example_clip(0),
        dataclasses.replace(example_clip(1), reason=APPROVED),
        example_clip(2).excluded("noise"),
        example_clip(3).excluded(SPLIT),
    ]
    page = queries.page(stored(tmp_path, clips), View("all"), 1)
    assert [clip.id[-1] for clip in page.clips] == ["2", "0", "1", "3"]


def test_counts_follow_an_edit(tmp_path: Path) -> None:
    store = stored(tmp_path, [example_clip(number) for number in range(50)])
    editor.exclude(tmp_path, [example_clip(0).id], "a cough")
    assert queries.reasons(store) == {"noisy": 5, "a cough": 1}
    assert queries.totals(store)["excluded"] == Total(6, 24.0)
    assert queries.totals(store)["train"].clips == 44
    assert queries.count_recordings(store) == 1
