"""The report on a dataset: what it finds, and its page."""

import re
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.dataset.building import built, clip
from tests.dataset.recordings import generated, recording
from utils.core.facts import Fact
from utils.dataset.clip import Recording, ScanResult, Source
from utils.dataset.facts import PhonesRare, SpeakersConcerned, TextsDoubted, TextsRepeated
from utils.dataset.metadata import write_lists
from utils.dataset.report import describe_dataset
from utils.dataset.store import Store
from utils.recognition.facts import Hum, NarrowBand
from utils.recognition.spans import Cue
from utils.studio.paths import Project
from utils.ui.dataset_report import page

HOSTILE = "ሰላም <script>alert(1)</script>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A dataset with two clips of one text, one of another, and one whose text is not what is said."""
    (tmp_path / "wavs").mkdir()
    texts = ("ሰላም ለዓለም", "ሰላም ለዓለም", "ልጆቹ ይማራሉ", HOSTILE)
    clips = [clip(number, text=text) for number, text in enumerate(texts)]
    clips[3] = clips[3].excluded("text does not match", "ሰላም")
    for each in clips:
        soundfile.write(tmp_path / each.audio, 0.1 * np.sin(np.arange(88_200) * 0.05), 22_050)
    Store(tmp_path).add(Source("r0", "/in/r0.wav", 10, 20, 40.0), clips)
    write_lists(tmp_path, "am")
    return tmp_path


def advice(folder: Path, kind: type[Fact]) -> list[Fact]:
    return [fact for fact in describe_dataset(folder).advice if isinstance(fact, kind)]


def test_the_first_advice_is_to_listen_to_doubted_texts(folder: Path) -> None:
    assert describe_dataset(folder).advice[0] == TextsDoubted(1, 4.0)


def test_texts_of_several_clips_are_counted(folder: Path) -> None:
    assert advice(folder, TextsRepeated) == [TextsRepeated(1)]


def test_sentences_with_the_rare_phonemes_are_recommended(folder: Path) -> None:
    (rare,) = advice(folder, PhonesRare)
    assert isinstance(rare, PhonesRare)
    assert "pʼ" in rare.phones
    assert len(describe_dataset(folder).sentences) == 10


def test_a_dataset_without_clips_has_a_report(tmp_path: Path) -> None:
    Store(tmp_path).add(Source("r0", "/in/r0.wav", 10, 20, 40.0), [clip(0).excluded("noisy")])
    assert "100 %" in page(describe_dataset(tmp_path), tmp_path, "empty")


def narrow(folder: Path, hum: float = 0.0) -> Path:
    """Prepare a recording at 16 kHz, beside the mains if asked."""
    known = recording(25, pauses=(0.6, 1.0), noise_db=-75, speech=generated())
    path = known.save(folder / "talk.wav")
    samples, rate = soundfile.read(path)
    soundfile.write(
        path, samples + hum * np.std(samples) * np.sin(2 * np.pi * 50 * np.arange(samples.size) / rate), rate
    )
    cues = tuple(Cue(span, "ሰላም ለሁላችሁም ዛሬ") for span in known.utterances)
    project = Project(folder / "project")
    assert built(ScanResult((Recording(path, "almaz", cues=cues),)), project).contents.kept
    return project.dataset


def test_recordings_at_16_khz_are_said_to_be_narrow(tmp_path: Path) -> None:
    (found,) = advice(narrow(tmp_path), NarrowBand)
    assert isinstance(found, NarrowBand)
    assert 6 < found.kilohertz <= 8


def test_what_recordings_lost_is_said_with_the_speaker(tmp_path: Path) -> None:
    (found,) = advice(narrow(tmp_path, hum=1.0), SpeakersConcerned)
    assert isinstance(found, SpeakersConcerned)
    assert found.speakers == ("almaz",)
    assert isinstance(found.about, Hum)


@pytest.mark.parametrize("language", ["en", "am"])
def test_the_page_needs_no_other_file(folder: Path, language: str) -> None:
    sources = re.findall(r'(?:src|href)="([^"]*)"', page(describe_dataset(folder), folder, "mine", language))
    assert sources
    assert all(source.startswith("data:audio/mpeg;base64,") for source in sources)


def test_the_page_escapes_texts(folder: Path) -> None:
    shown = page(describe_dataset(folder), folder, "mine")
    assert "<script>alert" not in shown
    assert "&lt;script&gt;alert" in shown


def test_a_clip_whose_audio_is_lost_has_no_player(folder: Path) -> None:
    before = page(describe_dataset(folder), folder, "mine").count("<audio")
    (folder / "wavs" / "r0-3.wav").unlink()
    assert page(describe_dataset(folder), folder, "mine").count("<audio") == before - 1
