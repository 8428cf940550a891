"""The sentences that models are evaluated with."""

from pathlib import Path

import pytest

from tests.dataset.recordings import babble
from utils.core.errors import AmharicTtsError
from utils.evaluation.sentences import built_in_sentences, sentences_from_clips, sentences_from_file
from utils.media import audio
from utils.xtts.language_packs import pack_for


def texts(language: str) -> list[str]:
    return [sentence.text for sentence in built_in_sentences(language)]


def test_other_languages_have_the_samples_of_their_pack() -> None:
    assert texts("en") == list(pack_for("en").samples)
    with pytest.raises(AmharicTtsError, match="Tigrinya"):
        built_in_sentences("ti")


def test_a_file_is_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "sentences.txt"
    path.write_text("# greetings\nሰላም\n\n  ደህና ሁን  \r\nሰላም\n", encoding="utf-16")
    sentences = sentences_from_file(path, "amh_ET")
    assert [(sentence.text, sentence.language) for sentence in sentences] == [("ሰላም", "am"), ("ደህና ሁን", "am")]


@pytest.mark.parametrize("content", [None, "# none\n"])
def test_a_file_without_sentences_is_refused(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "sentences.txt"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(AmharicTtsError, match=r"sentences\.txt"):
        sentences_from_file(path, "am")


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """Abebe and Almaz speak; Almaz only in the evaluation list, once."""
    lists = {
        "train": [("1.wav", "አንድ", "Abebe", 5.0), ("2.wav", "ሁለት", "Abebe", 1.0), ("9.wav", "ዘጠኝ", "Abebe", 20.0)],
        "eval": [("3.wav", "ሦስት", "Abebe", 2.0), ("4.wav", "አራት", "Almaz", 4.0), ("gone.wav", "የለም", "Abebe", 0.0)],
    }
    for side, rows in lists.items():
        lines = ["audio_file|text|speaker_name", *(f"{name}|{text}|{speaker}" for name, text, speaker, _ in rows)]
        (tmp_path / f"metadata_{side}.csv").write_text("\n".join(lines), encoding="utf-8")
        for name, _, _, seconds in rows:
            if seconds:
                audio.save(tmp_path / name, babble(seconds), 16_000)
    return tmp_path


def test_clips_come_with_their_recording_and_another_clip_of_their_speaker(dataset: Path) -> None:
    path = dataset / "metadata_eval.csv"
    first, second = sentences_from_clips(path, "am")
    assert (first.text, first.voice, Path(first.recording).name) == ("ሦስት", "Abebe", "3.wav")
    assert Path(first.reference).name == "1.wav"
    assert (second.text, second.voice, second.reference) == ("አራት", "Almaz", "")  # she has no other clip
    assert sentences_from_file(path, "am") == [first, second]  # its header tells what it is


def test_a_project_without_clips_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AmharicTtsError, match="metadata_eval"):
        sentences_from_clips(tmp_path / "metadata_eval.csv", "am")
