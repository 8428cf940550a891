"""Judging a finished dataset again, and giving its speakers other names."""

import csv
import dataclasses
import re
from pathlib import Path

import pytest

from tests.dataset.building import SETTINGS, built, clip, recordings
from utils.config import DatasetConfig
from utils.core.errors import DataError
from utils.core.paths import Project
from utils.dataset import editing
from utils.dataset.clip import APPROVED, Clip, Scores
from utils.dataset.coqui_lists import write_lists
from utils.dataset.filtering import LIMITS, refilter
from utils.dataset.manifest import MANIFEST, Manifest, Source, opened

STRICT = DatasetConfig(min_snr_db=20)


def dataset(folder: Path, *clips: Clip) -> Path:
    """Write a dataset without any audio behind it."""
    book = Manifest(folder)
    for name in dict.fromkeys(one.recording for one in clips):
        book.add(Source(name, f"/in/{name}.wav", 10, 20, 60.0), [one for one in clips if one.recording == name])
    write_lists(folder, book.read().clips.values(), "am")
    return folder


def noisy(number: int, snr_db: float, **changes: object) -> Clip:
    return dataclasses.replace(clip(number, scores=Scores(snr_db=snr_db), split="train"), **changes)  # type: ignore[arg-type]


def mixed(folder: Path) -> Path:
    """Write clips of every standing: the first stays, the second fails 20 dB, the others are aside."""
    return dataset(
        folder,
        noisy(0, 30.0),
        noisy(1, 15.0),
        noisy(2, 25.0, split="").aside("noisy"),
        noisy(3, 5.0, split="").aside("noisy"),
        noisy(4, 30.0, split="").aside("a cough"),
        noisy(5, 30.0, split="").aside("duplicate"),
        noisy(6, 30.0, split="", audio="").aside("too short"),
        noisy(7, 30.0, split="", text="?").aside("too slow"),
    )


def standing(folder: Path) -> dict[str, str]:
    return {one.id.removeprefix("r0-"): one.reason or one.status for one in opened(folder).clips.values()}


def speakers(folder: Path) -> list[str]:
    with (folder / "metadata_train.csv").open(newline="", encoding="utf-8") as file:
        return [row["speaker_name"] for row in csv.DictReader(file, delimiter="|")]


def test_a_dry_run_counts_by_reason_and_changes_nothing(tmp_path: Path) -> None:
    folder = mixed(tmp_path)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert str(refilter(folder, STRICT, apply=False)).splitlines() == [
        "to be set aside           1 clips, 4.0 s",
        "  noisy                   1 clips, 4.0 s",
        "to come back              1 clips, 4.0 s",
        "  noisy                   1 clips, 4.0 s",
        "aside for another reason  1 clips, 4.0 s",
        "  empty text              1 clips, 4.0 s",
        "kept then                 2 clips, 8.0 s",
    ]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_what_fails_is_set_aside_and_what_a_rule_set_aside_comes_back(tmp_path: Path) -> None:
    folder = mixed(tmp_path)
    rows = (folder / MANIFEST).read_bytes()
    refilter(folder, STRICT, apply=True)
    after = {"0": "kept", "1": "noisy", "2": "kept", "3": "noisy", "4": "a cough", "5": "duplicate", "6": "too short"}
    assert standing(folder) == after | {"7": "empty text"}
    assert (folder / MANIFEST).read_bytes().startswith(rows)
    assert opened(folder).clips["r0-2"].split == "train"
    assert len(speakers(folder)) == 2
    rows = (folder / MANIFEST).read_bytes()
    assert refilter(folder, STRICT, apply=True).after == ()
    assert (folder / MANIFEST).read_bytes() == rows


def test_what_a_person_approved_stays_in_use_and_approved(tmp_path: Path) -> None:
    folder = dataset(tmp_path, noisy(0, 30.0), noisy(1, 5.0, reason=APPROVED), noisy(2, 5.0))
    refilter(folder, STRICT, apply=True)
    assert standing(folder) == {"0": "kept", "1": APPROVED, "2": "noisy"}
    assert opened(folder).clips["r0-1"].status == "kept"


def test_a_filter_is_undone_for_one_clip_or_by_the_earlier_limits(tmp_path: Path) -> None:
    folder = mixed(tmp_path)
    before = opened(folder).clips
    refilter(folder, STRICT, apply=True)
    assert editing.undo(folder, "r0-1") == before["r0-1"]
    assert editing.undo(folder, "r0-2").reason == "noisy"
    refilter(folder, STRICT, apply=True)
    refilter(folder, DatasetConfig(min_snr_db=10), apply=True)
    assert opened(folder).clips["r0-1"] == before["r0-1"]


def test_of_two_clips_with_the_same_sound_one_comes_back(tmp_path: Path) -> None:
    same = [noisy(number, 15.0, content="c", split="").aside("noisy") for number in range(2)]
    folder = dataset(tmp_path, *same)
    refilter(folder, DatasetConfig(), apply=True)
    assert standing(folder) == {"0": "kept", "1": "duplicate"}


def test_a_clip_comes_back_when_the_other_with_its_sound_leaves(tmp_path: Path) -> None:
    folder = dataset(
        tmp_path, noisy(0, 15.0, content="c"), noisy(1, 30.0, content="c", split="").aside("low confidence")
    )
    refilter(folder, STRICT, apply=True)
    assert standing(folder) == {"0": "noisy", "1": "kept"}


def test_a_side_that_loses_all_its_clips_is_named(tmp_path: Path) -> None:
    folder = dataset(tmp_path, noisy(0, 30.0), noisy(1, 15.0, split="eval"))
    assert "No clip is left on the side eval." in str(refilter(folder, STRICT, apply=False))


def test_a_text_that_was_mended_is_judged_by_its_own_pace(tmp_path: Path) -> None:
    wrong = Scores(chars_per_second=40.0, confidence=0.1, second_cer=0.9)
    folder = dataset(tmp_path, clip(0), clip(1, scores=wrong).aside("too fast"))
    assert refilter(folder, DatasetConfig(), apply=False).after == ()
    editing.change_text(folder, "r0-1", "ሰላም ለሁላችሁም")
    refilter(folder, DatasetConfig(), apply=True)
    assert opened(folder).clips["r0-1"].status == "kept"
    assert opened(folder).clips["r0-1"].scores == Scores(chars_per_second=9 / 4)


def test_by_hand_a_clip_is_not_set_aside_in_the_words_of_a_rule(tmp_path: Path) -> None:
    folder = mixed(tmp_path)
    with pytest.raises(DataError, match="'noisy' is what a rule says"):
        editing.set_aside(folder, "r0-0", "noisy")
    assert standing(folder)["0"] == "kept"


def test_the_limits_of_the_build_change_nothing_and_none_is_missing(tmp_path: Path) -> None:
    place = Project(tmp_path / "project")
    built(recordings(tmp_path / "in", 2), place)
    assert refilter(place.dataset, SETTINGS, apply=False).after == ()
    limits = {"min_pause_seconds", "min_speech_seconds"} | set(LIMITS)  # those two decide where is cut
    assert {name for name in DatasetConfig.model_fields if re.match("min_|max_", name)} == limits
    longest = max(one.span.seconds for one in opened(place.dataset).kept)
    shorter = SETTINGS.model_copy(update={"max_seconds": longest - 0.01})
    assert {one.reason for one in refilter(place.dataset, shorter, apply=True).after} == {"too long"}
    refilter(place.dataset, SETTINGS, apply=True)
    assert max(one.span.seconds for one in opened(place.dataset).kept) == longest


# Names


def voices(folder: Path) -> Path:
    names = ("Abebe", "abebe", "ሰላም", "Abebe")
    clips = [clip(number, speaker=name, split="train") for number, name in enumerate(names)]
    return dataset(folder, *clips[:-1], dataclasses.replace(clips[-1].aside("noisy"), split=""))


@pytest.mark.parametrize(
    ("names", "count", "after"),
    [
        ({"abebe": "Abebe"}, {"abebe": 1}, ["Abebe", "Abebe", "ሰላም"]),
        ({"Abebe": "abebe", "ሰላም": "Selam"}, {"Abebe": 2, "ሰላም": 1}, ["abebe", "abebe", "Selam"]),
        ({"abebe": "Abebe", "Abebe": "abebe"}, {"abebe": 1, "Abebe": 2}, ["abebe", "Abebe", "ሰላም"]),
        ({"ሰላም": "ሰላም"}, {"ሰላም": 0}, ["Abebe", "abebe", "ሰላም"]),
    ],
)
def test_speakers_are_renamed_all_at_once(
    tmp_path: Path, names: dict[str, str], count: dict[str, int], after: list[str]
) -> None:
    folder = voices(tmp_path)
    before = opened(folder).clips
    assert editing.rename_speakers(folder, names) == count
    assert speakers(folder) == after
    assert opened(folder).clips["r0-3"].speaker == names.get("Abebe", "Abebe")
    same = {name: dataclasses.replace(one, speaker=before[name].speaker) for name, one in opened(folder).clips.items()}
    assert same == before


def test_a_name_is_taken_back_for_one_clip(tmp_path: Path) -> None:
    folder = voices(tmp_path)
    editing.rename_speakers(folder, {"abebe": "Abebe"})
    assert editing.undo(folder, "r0-1").speaker == "abebe"
    assert speakers(folder) == ["Abebe", "abebe", "ሰላም"]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ({"abebe": "Abebe", "nobody": "x"}, "There is no speaker 'nobody'"),
        ({"abebe": ""}, "cannot be the name"),
        ({"abebe": "a|b"}, "cannot be the name"),
        ({"abebe": 'a"b'}, "cannot be the name"),
        ({"abebe": "a  b"}, "cannot be the name"),
        ({"abebe": "a\nb"}, "cannot be the name"),
    ],
)
def test_a_name_that_cannot_be_is_refused_and_nothing_changes(tmp_path: Path, names: dict[str, str], said: str) -> None:
    folder = voices(tmp_path)
    rows = (folder / MANIFEST).read_bytes()
    with pytest.raises(DataError, match=said):
        editing.rename_speakers(folder, names)
    assert (folder / MANIFEST).read_bytes() == rows
