"""Lists whose texts belong to other clips: noticed, repaired when a person says so, and undone."""

import csv
import os
import random
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from tests.dataset.building import SETTINGS, clip
from utils.config import DatasetConfig
from utils.core.facts import Fact
from utils.dataset import editor
from utils.dataset.clip import Clip, Recording
from utils.dataset.facts import Prepared, TextsFitOtherClips
from utils.dataset.list_check import as_listed
from utils.dataset.prepare import prepare
from utils.dataset.store import Dataset, Store, load_dataset
from utils.recognition.aligner import Rows
from utils.recognition.pairing import TextIndex, pair
from utils.recognition.units import units_of

HUMAN_SPEECH = Path(os.environ.get("HUMAN_SPEECH", "../shared/human_speech"))
SPEECH = HUMAN_SPEECH / "amharic"
PEOPLE = SPEECH / "one_speaker"
needs_people = pytest.mark.skipif(not PEOPLE.is_dir(), reason="needs recordings of people: HUMAN_SPEECH=FOLDER")
CLIPS = 60
REPAIRED = 0.85 * CLIPS  # the others are excluded, because the reader repeats a word or swallows it


def heard(units: Sequence[int], noise: np.random.Generator) -> Rows:
    """Return the rows of a sound in which a fifth of the units is heard as another one."""
    units = [int(noise.integers(1, 30)) if noise.random() < 0.2 else unit for unit in units]
    rows = np.full((3 * len(units) + 6, 31), -8.0, np.float32)
    rows[:, 0] = -0.5
    rows[np.arange(len(units)) * 3 + 3, units] = -0.1
    return rows


@pytest.mark.parametrize("step", [0, 1, 17])
def test_each_clip_gets_the_text_that_is_heard(step: int) -> None:
    noise = np.random.default_rng(0)
    texts = [noise.integers(1, 30, size).tolist() for size in noise.integers(15, 60, 60)]
    index = TextIndex(texts)
    clips = [index.scores(heard(texts[(at + step) % 60], noise), at) for at in range(60)]
    assert pair(clips, texts) == {at: (at + step) % 60 for at in range(60)}


def test_texts_of_another_recording_fit_no_clip() -> None:
    noise = np.random.default_rng(0)
    texts = [noise.integers(1, 30, 40).tolist() for _ in range(60)]
    index = TextIndex(texts)
    clips = [index.scores(heard(noise.integers(1, 30, 40).tolist(), noise), at) for at in range(60)]
    assert len(pair(clips, texts)) < 6


@pytest.fixture
def doubted(tmp_path: Path) -> Path:
    """A dataset of three recordings whose texts are held to be those of other clips."""
    store = Store(tmp_path / "dataset")
    clips = [clip(number, recording=f"r{number % 3}") for number in range(30)]
    pairs = [as_listed(each, "ሌላ ጽሑፍ") for each in clips]
    store.put(changed for changed, _ in pairs)
    store.propose({changed.id: repair for changed, repair in pairs})
    return store.folder


def test_a_repair_keeps_a_text_that_a_person_typed(doubted: Path) -> None:
    editor.set_text(doubted, "r0-0", "የተጻፈ ጽሑፍ")
    editor.repair_list(doubted)
    assert (load_dataset(doubted).clips["r0-0"].text, len(load_dataset(doubted).kept)) == ("የተጻፈ ጽሑፍ", 29)


def test_a_repair_splits_as_the_settings_say(doubted: Path) -> None:
    settings = SETTINGS.model_copy(update={"repair_list": True, "eval_share": 0.5, "split_by": "time"})
    facts = list[Fact]()
    contents = prepare([], doubted, settings, facts.append)
    held_out = [clip.recording for clip in contents.kept if clip.split == "eval"]
    assert [held_out.count(f"r{number}") for number in range(3)] == [5, 5, 5]
    assert [fact.clips for fact in facts if isinstance(fact, Prepared)] == [30]


def rows_of_people(folder: str = "one_speaker") -> list[dict[str, str]]:
    with (SPEECH / folder / "texts.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="|", quoting=csv.QUOTE_NONE))[:CLIPS]


def prepared(folder: Path, texts: Sequence[str], **settings: object) -> tuple[Dataset, list[TextsFitOtherClips]]:
    facts: list[TextsFitOtherClips] = []

    def report(fact: Fact) -> None:
        if isinstance(fact, TextsFitOtherClips):
            facts.append(fact)

    rows = rows_of_people()
    recordings = [Recording(PEOPLE / row["file"], "man", text) for row, text in zip(rows, texts, strict=True)]
    contents = prepare(recordings, folder, DatasetConfig(workers=1, **settings), report)
    return contents, facts


def right(contents: Dataset) -> tuple[int, int]:
    """Return how many clips in use have the text that is said, by its units, and how many have another."""
    said = {Path(row["file"]).name: spelled(row["text"]) for row in rows_of_people()}
    matches = [spelled(clip.text) == said[Path(clip.source).name] for clip in contents.kept]
    return sum(matches), len(matches) - sum(matches)


def spelled(text: str) -> list[int]:
    return [unit for word in units_of("am").words(text) for unit in word.units]


@needs_people
@pytest.mark.slow
def test_a_shifted_list_is_repaired_only_when_asked(tmp_path: Path) -> None:
    texts = [row["text"] for row in rows_of_people()]
    contents, (fact,) = prepared(tmp_path, [*texts[1:], texts[0]])
    assert fact.texts >= 0.95 * CLIPS
    assert fact.pattern == "shifted"
    assert not contents.kept
    editor.repair_list(tmp_path)
    good, wrong = right(load_dataset(tmp_path))
    assert (good >= REPAIRED, wrong) == (True, 0)
    editor.undo(tmp_path)
    assert not load_dataset(tmp_path).kept


@needs_people
@pytest.mark.slow
def test_clips_that_no_text_of_a_foreign_list_fits_are_excluded(tmp_path: Path) -> None:
    own = [row["text"] for row in rows_of_people()][:12]
    contents, (fact,) = prepared(tmp_path, own + [row["text"] for row in rows_of_people("many_speakers")][12:])
    assert fact.pattern == "foreign"
    assert fact.without >= 0.9 * (CLIPS - 12)
    assert contents.kept
    assert right(contents)[1] == 0


@needs_people
@pytest.mark.slow
@pytest.mark.parametrize("max_seconds", [11.6, 5.0])  # most clips are too long to be compared
def test_an_intact_list_is_not_repaired(tmp_path: Path, max_seconds: float) -> None:
    texts = [row["text"] for row in rows_of_people()]
    contents, facts = prepared(tmp_path, texts, repair_list=True, max_seconds=max_seconds)
    assert not facts
    assert contents.kept
    assert max_seconds < 11.6 or right(contents)[1] == 0


@needs_people
@pytest.mark.slow
def test_a_list_that_is_shuffled_in_its_sessions_is_repaired_with_the_setting(tmp_path: Path) -> None:
    texts: list[str] = []
    for _, group in groupby(rows_of_people(), key=lambda row: row["session"]):
        inside = [row["text"] for row in group]
        texts += random.Random(0).sample(inside, len(inside))
    contents, (fact,) = prepared(tmp_path, texts, repair_list=True)
    assert fact.texts >= 0.9 * CLIPS
    good, wrong = right(contents)
    assert (good >= REPAIRED, wrong) == (True, 0)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> list[Clip]:
    """14 clips of one reader of English; the texts of the first two are swapped."""
    rows = [line.split("|") for line in (HUMAN_SPEECH / "lj" / "texts.csv").read_text("utf-8").splitlines()[1:15]]
    rows[0][1], rows[1][1] = rows[1][1], rows[0][1]
    recordings = [Recording(HUMAN_SPEECH / "lj" / f"{name}.wav", "lj", text) for name, text in rows]
    contents = prepare(recordings, tmp_path_factory.mktemp("small"), DatasetConfig(workers=1, language="en"))
    return sorted((clip for clip in contents.clips.values() if clip.text), key=lambda clip: clip.source)


@needs_people
@pytest.mark.slow
def test_swapped_texts_of_a_small_project_are_excluded(small: list[Clip]) -> None:
    assert [(clip.status, clip.reason) for clip in small[:2]] == [("excluded", "text does not match")] * 2


@needs_people
@pytest.mark.slow
def test_right_texts_of_a_small_project_that_are_doubted_stay_in_use(small: list[Clip]) -> None:
    assert {clip.status for clip in small[2:]} == {"kept"}
    assert any(clip.is_doubted for clip in small[2:])
