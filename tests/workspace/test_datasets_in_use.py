"""What reads the dataset of a project while it is edited sees one consistent, current state."""

from pathlib import Path

import numpy as np

from tests.dataset.building import clip
from utils.dataset import editor
from utils.dataset.store import Store
from utils.media import audio
from utils.media.rates import OUTPUT_RATE
from utils.workspace import projects, reference_clips


def test_a_copy_made_during_an_edit_has_the_state_before_it(tmp_path: Path) -> None:
    project = projects.create("voice", tmp_path)
    store = Store(project.dataset)
    store.put([clip(1, text="ሰላም")])
    with store.transaction():
        store.put([clip(1, text="ዛሬ")])
        copy = projects.duplicate(project, "copy", tmp_path)
    assert [clip.text for clip in Store(copy.dataset).read().kept] == ["ሰላም"]
    assert [clip.text for clip in Store(project.dataset).read().kept] == ["ዛሬ"]


def test_reference_clips_are_those_of_the_edited_dataset(tmp_path: Path) -> None:
    project = projects.create("voice", tmp_path)
    for number in (1, 2):
        made = clip(number, split="train", audio=f"wavs/{number}.wav", text=f"text {number}")
        Store(project.dataset).put([made])
        (project.dataset / "wavs").mkdir(exist_ok=True)
        audio.save(project.dataset / made.audio, np.full(4 * OUTPUT_RATE, 0.1, np.float32), OUTPUT_RATE)
    assert len(reference_clips.candidates(project)) == 2
    editor.exclude(project.dataset, [clip(1).id], "noise")
    assert [text for _, text in reference_clips.candidates(project)] == ["text 2"]
