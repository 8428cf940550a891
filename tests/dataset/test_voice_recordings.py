"""Sentences read into a microphone become recordings with their text."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from tests.dataset.building import SETTINGS, built
from tests.dataset.recordings import babble
from utils.core.errors import AudioError
from utils.dataset import prompts, sources, voice_recordings
from utils.media import audio
from utils.media.audio import Samples
from utils.studio.paths import Project

RATE = 16_000
SENTENCES = ("ሰላም ለሁላችሁም", "ቡና እንጠጣ")


def spoken(seconds: float = 2.0, *, loud: float = 1.0) -> Samples:
    quiet = np.zeros(RATE // 2, np.float32)
    return np.concatenate([quiet, babble(seconds, seed=3) * np.float32(loud), quiet])


def test_a_preparation_makes_a_clip_of_each_take_with_its_text(tmp_path: Path) -> None:
    project = Project(tmp_path)
    for number, sentence in enumerate(SENTENCES):
        voice_recordings.save_take(project.recordings, f" {sentence} ", spoken(2 + number), RATE)
    scan = sources.find_recordings([str(project.recordings / voice_recordings.FOLDER)], language="am")
    named = {recording.path.name: recording.text for recording in scan.recordings}
    assert named == {"take-0001.flac": SENTENCES[0], "take-0002.flac": SENTENCES[1]}
    report = built(scan, project, SETTINGS.model_copy(update={"min_snr_db": -20}))
    assert sorted(clip.text for clip in report.contents.kept) == sorted(SENTENCES)


@pytest.mark.parametrize(
    ("samples", "reason"),
    [
        *[(np.zeros(size, np.float32), "recording is silent") for size in (RATE, 0)],
        (spoken(0.2), "too short"),
        (spoken(13.0), "the maximum is"),
    ],
)
def test_a_take_of_which_no_clip_would_come_is_refused(tmp_path: Path, samples: Samples, reason: str) -> None:
    with pytest.raises(AudioError, match=reason):
        voice_recordings.save_take(tmp_path, SENTENCES[0], samples, RATE)
    assert voice_recordings.takes(tmp_path) == []


def test_takes_are_kept_until_they_are_undone(tmp_path: Path) -> None:
    project = Project(tmp_path)
    first = voice_recordings.save_take(project.recordings, SENTENCES[0], spoken(), RATE)
    loud = voice_recordings.save_take(project.recordings, SENTENCES[1], np.clip(spoken(loud=8), -1, 1), RATE)
    assert np.abs(audio.load(first.path, RATE) - spoken()).max() < 1e-4
    assert loud.is_too_loud
    assert voice_recordings.takes(project.recordings) == [first, dataclasses.replace(loud, is_too_loud=False)]
    assert voice_recordings.undo_last(project.recordings).text == SENTENCES[1]
    assert voice_recordings.takes(project.recordings) == [first]
    voice_recordings.undo_last(project.recordings)
    with pytest.raises(AudioError, match="nothing to delete"):
        voice_recordings.undo_last(project.recordings)
    assert [
        path.name for path in (project.recordings / voice_recordings.FOLDER).iterdir() if path.name != ".lock"
    ] == []


def test_suggested_sentences_add_sounds() -> None:
    read: list[str] = []
    sounds = []
    for _ in range(4):
        read.append(voice_recordings.next_sentence(read))
        takes = [voice_recordings.RecordedTake(Path("x"), text, 1.0) for text in read]
        sounds.append(voice_recordings.progress(takes).sounds)
    assert len(set(read)) == 4
    assert sounds == sorted(sounds)
    assert sounds[-1] > sounds[0]
    assert voice_recordings.next_sentence([], read[:1]) not in {read[0], ""}
    assert voice_recordings.next_sentence(prompts.shipped()) == ""
