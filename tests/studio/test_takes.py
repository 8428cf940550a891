"""Takes and comparisons on disk."""

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from utils.config import SpeechConfig
from utils.core.errors import DataError, StorageError
from utils.media.rates import OUTPUT_RATE
from utils.speech.facts import Flag, WordsFound
from utils.speech.tasks import SpeechStart
from utils.speech.types import Sentence, Utterance
from utils.studio import comparisons, takes
from utils.studio.facts import InputError
from utils.studio.paths import Project
from utils.studio.takes import Take
from utils.xtts.tokenizer import TokenizedText


def spoken(text: str, seconds: float = 0.5, seed: int = 0, pause: float = 0.25) -> Utterance:
    tone = np.sin(np.arange(round(seconds * OUTPUT_RATE)) * 0.05).astype(np.float32) * 0.5
    reading = TokenizedText(text, text, "səlam", "səlam", ("[am]", "s"), (1, 2), ())
    return Utterance(Sentence(reading, seed, pause=pause), tone, np.zeros(0, np.int64), ended=True)


def make_take(project: Project, *texts: str, **changes: object) -> Take:
    started, sentences = SpeechStart(len(texts), "m", "v"), [spoken(text) for text in texts]
    take, samples = takes.new_take("speech", " ".join(texts), SpeechConfig(seed=5), started, sentences)
    return takes.save(project, replace(take, **changes), samples)  # type: ignore[arg-type]


def test_a_take_is_read_as_it_was_saved(tmp_path: Path) -> None:
    project = Project(tmp_path)
    saved = make_take(project, "ሰላም።", "ዛሬ።")
    take = takes.load(project, saved.name)
    assert take == saved
    assert [round(piece.start, 2) for piece in take.pieces] == [0.0, 0.75]
    assert SpeechConfig.parse(take.settings) == SpeechConfig(seed=5)


def test_a_take_says_which_words_are_not_found(tmp_path: Path) -> None:
    project, flag = Project(tmp_path), Flag("unheard", words=("ዛሬ",))
    sentences = [replace(spoken("ሰላም።"), words=1), replace(spoken("ዛሬ ነው።"), words=2, flags=(flag,))]
    saved = takes.save(project, *takes.new_take("speech", "", SpeechConfig(), SpeechStart(2, "m", "v"), sentences))
    take = takes.load(project, saved.name)
    assert (WordsFound.of(take.pieces), take.flags) == (WordsFound(2, 3), ((2, flag),))
    assert WordsFound.of(takes.load_sentences(project, take)) == WordsFound(2, 3)


def test_a_sentence_is_replaced(tmp_path: Path) -> None:
    project = Project(tmp_path)
    old = make_take(project, "ሰላም።", "ዛሬ።", "ነገ።")
    new = takes.replace_sentence(project, old, 1, [spoken("ትናንት።", 1.0, seed=9, pause=9.0)])
    assert [piece.reading.written for piece in new.pieces] == ["ሰላም።", "ትናንት።", "ነገ።"]
    assert new.text == "ሰላም። ትናንት። ነገ።"
    assert new.pieces[1].pause == 0.25
    assert new.seconds == pytest.approx(old.seconds + 0.5, abs=0.01)
    before, after = (takes.load_sentences(project, take) for take in (old, takes.load(project, old.name)))
    assert np.abs(before[0].samples[200:-200] - after[0].samples[200:-200]).max() < 1e-3


def test_a_deleted_take_is_restored(tmp_path: Path) -> None:
    project = Project(tmp_path)
    saved = make_take(project, "ሰላም።")
    takes.delete(project, saved.name)
    assert takes.names(project) == []
    assert takes.restore(project) == saved.name
    assert takes.load(project, saved.name) == saved
    with pytest.raises(DataError):
        takes.restore(project)


def test_the_newest_take_comes_first(tmp_path: Path) -> None:
    project = Project(tmp_path)
    made = [make_take(project, "ሰላም።", made=1000 + number / 100) for number in range(9)]
    assert [take.name for take in takes.newest(project)] == [take.name for take in reversed(made)]


def test_a_damaged_take_hides_no_other(tmp_path: Path) -> None:
    whole, damaged = (make_take(Project(tmp_path), "ሰላም።", made=made) for made in (1000, 1001))
    (tmp_path / takes.FOLDER / damaged.name / takes.METADATA).write_text("{", encoding="utf-8")
    assert takes.newest(Project(tmp_path))[0].name == whole.name


@pytest.mark.parametrize("name", ["../up", None, "nothing-here"])
def test_no_take_outside_the_project_can_be_named(tmp_path: Path, name: object) -> None:
    with pytest.raises((StorageError, DataError)):
        takes.load(Project(tmp_path), name)


def test_silence_is_not_saved(tmp_path: Path) -> None:
    silence = takes.new_take("speech", "", SpeechConfig(), SpeechStart(0, "m", "v"), [])
    with pytest.raises(InputError):
        takes.save(Project(tmp_path), *silence)


@pytest.mark.parametrize(
    ("models", "text", "problem"),
    [
        (["a", "a"], "ሰላም", "number_of_models"),
        (list("abcde"), "ሰላም", "number_of_models"),
        (["a", "b"], " # ", "no_sentences"),
    ],
)
def test_invalid_comparison(tmp_path: Path, models: list[str], text: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        comparisons.create_comparison(Project(tmp_path), models, text)
    assert caught.value.problem == problem


def test_comparisons_started_at_the_same_time_have_their_own_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: 1000.0)
    for text in ("ሰላም።", "ዛሬ።"):
        folder = comparisons.create_comparison(Project(tmp_path), ["a", "b"], text)
        assert (folder / comparisons.SENTENCES).read_text(encoding="utf-8") == f"{text}\n"
    assert len(list(folder.parent.iterdir())) == 2
    config = SpeechConfig(model="x", seed=3, reference="me.wav")
    words = comparisons.evaluate_arguments(["a", "b"], folder, config, tmp_path)
    assert words[:7] == ["--reference", "me.wav", "--seed", "3", "--checkpoints", "a", "b"]
