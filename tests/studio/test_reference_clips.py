"""Reference clips: those of a dataset, also while it is edited, and those that the user adds."""

from pathlib import Path

import numpy as np
import pytest

from tests.dataset.building import clip
from utils.core.errors import AudioError, DataError
from utils.dataset import editor
from utils.dataset.store import Store
from utils.media import audio
from utils.media.rates import OUTPUT_RATE
from utils.studio import projects, reference_clips
from utils.studio.paths import Project


def write_sound(path: Path, seconds: float = 4.0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    audio.save(path, np.full(round(seconds * OUTPUT_RATE), 0.1, np.float32), OUTPUT_RATE)
    return path


def test_a_project_copied_during_an_edit_has_the_state_before_it(tmp_path: Path) -> None:
    project = projects.create("voice", tmp_path)
    store = Store(project.dataset)
    store.put([clip(1, text="ሰላም")])
    with store.transaction():
        store.put([clip(1, text="ዛሬ")])
        copy = projects.duplicate(project, "copy", tmp_path)
    assert [clip.text for clip in Store(copy.dataset).read().kept] == ["ሰላም"]
    assert [clip.text for clip in Store(project.dataset).read().kept] == ["ዛሬ"]


def test_candidates_are_the_clips_of_suitable_duration_that_are_not_excluded(tmp_path: Path) -> None:
    project = Project(tmp_path)
    with pytest.raises(DataError, match="no dataset yet"):
        reference_clips.candidates(project)
    for number, seconds in ((1, 4.0), (2, 4.0), (3, 1.0)):
        path = write_sound(project.dataset / "wavs" / f"{number}.wav", seconds)
        Store(project.dataset).put([clip(number, split="train", audio=f"wavs/{path.name}", text=f"text {number}")])
    editor.exclude(project.dataset, [clip(1).id], "noise")
    assert [text for _, text in reference_clips.candidates(project)] == ["text 2"]


def test_an_added_clip_is_stored_once(tmp_path: Path) -> None:
    project, sound = Project(tmp_path / "p"), write_sound(tmp_path / "እኔ ነኝ.wav")
    stored = reference_clips.add(project, sound)
    assert stored == reference_clips.add(project, sound)
    assert stored.name.startswith("እኔ_ነኝ-")
    assert reference_clips.choices(project, ["default"]) == [("default", "default"), (stored.stem, str(stored))]
    (tmp_path / "no.wav").write_text("no", encoding="utf-8")
    with pytest.raises(AudioError):
        reference_clips.add(project, tmp_path / "no.wav")
