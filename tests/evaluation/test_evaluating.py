"""Evaluating models that are known to differ: the report says so, and nothing is done twice."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.dataset.recordings import babble
from tests.evaluation.fake_models import FakeModel, FakeRecogniser, candidate
from utils.config import SpeechConfig
from utils.core.errors import DataError
from utils.evaluation.evaluate import EvaluationProgress, Hearing, evaluate
from utils.evaluation.report import JSON, EvaluationReport, badness, load, summary, text
from utils.evaluation.utterance import TestSentence
from utils.media import audio

TEXTS = [
    "ሰላም ለሁላችሁም ዛሬ ጥሩ ቀን ነው",
    "እናቴ ገበያ ሄዳ ቲማቲም ገዛች",
    "ልጆቹ በትምህርት ቤት ይማራሉ",
    "ውሃው በጣም ቀዝቃዛ ነው",
]
SENTENCES = [TestSentence(said, "am") for said in TEXTS]
CONFIG = SpeechConfig()


@pytest.fixture(autouse=True)
def _no_picture(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if "picture" not in request.node.name:
        monkeypatch.setattr("utils.evaluation.evaluate.draw", lambda _report: None)


def test_models_are_measured(tmp_path: Path) -> None:
    good, slow = FakeModel(), FakeModel(pace=2.0, likeness=0.5, flags=("long: 4.0 s for 20 sounds",))
    report = evaluate([candidate("good", good), candidate("slow", slow)], SENTENCES, tmp_path, CONFIG)
    first, second = summary(report.of("good")), summary(report.of("slow"))
    assert first["duration_error"] == pytest.approx(0.0, abs=0.06)
    assert second["duration_error"] == pytest.approx(1.0, abs=0.06)
    assert [first["similarity"], second["similarity"]] == pytest.approx([0.9, 0.5])
    assert (first["flags"], second["flags"]) == (0, 1)
    assert first["real_time_factor"] == pytest.approx(0.5)
    assert [one.checkpoint for one in report.utterances[:4]] == ["slow"] * 4
    assert report.utterances[0].flags == ("1: long: 4.0 s for 20 sounds",)


def test_without_a_recogniser_the_column_is_empty_and_says_why(tmp_path: Path) -> None:
    report = evaluate([candidate("one", FakeModel())], SENTENCES, tmp_path, CONFIG)
    assert summary(report.of("one"))["cer"] is None
    assert any(note.startswith("CER and WER are empty: No recogniser was named") for note in report.notes)
    assert any(note.startswith("MCD is empty") for note in report.notes)


def test_what_was_heard_counts(tmp_path: Path) -> None:
    recogniser = FakeRecogniser(lambda _size: TEXTS[0])
    report = evaluate([candidate("one", FakeModel())], SENTENCES, tmp_path, CONFIG, Hearing(recogniser))
    by_text = {one.text: one for one in report.utterances}
    assert by_text[TEXTS[0]].cer == 0
    assert (by_text[TEXTS[1]].cer or 0) > 0.5
    assert not any("CER" in note for note in report.notes)


def test_a_recogniser_can_listen_later_and_no_model_is_loaded_again(tmp_path: Path) -> None:
    opened: list[str] = []
    models = [candidate("one", FakeModel(), opened.append)]
    evaluate(models, SENTENCES, tmp_path, CONFIG)
    recogniser = FakeRecogniser(lambda _size: TEXTS[0])
    for _ in range(2):
        report = evaluate(models, SENTENCES, tmp_path, CONFIG, Hearing(recogniser))
    assert opened == ["one"]
    assert recogniser.heard == 4
    assert summary(report.of("one"))["cer"] is not None
    kept = evaluate(models, SENTENCES, tmp_path, CONFIG)  # nobody listens now, but what was heard stays known
    assert summary(kept.of("one"))["cer"] == summary(report.of("one"))["cer"]


def test_a_recogniser_that_gives_up_leaves_what_it_heard(tmp_path: Path) -> None:
    many = [TestSentence(f"{said} {word}", "am") for said in TEXTS for word in ("ዛሬ", "ነገ", "ትናንት")]
    recogniser = FakeRecogniser(lambda _size: TEXTS[0], gives_up_after=10)
    report = evaluate([candidate("one", FakeModel())], many, tmp_path, CONFIG, Hearing(recogniser))
    assert sum(one.cer is not None for one in report.utterances) == 8
    assert any("CER and WER are incomplete: Fake could not listen" in note for note in report.notes)
    assert any("out of memory" in note for note in report.notes)


@pytest.mark.parametrize(
    ("change", "again"),
    [
        ({}, []),
        ({"reference": "", "model": "other"}, []),  # told by the sentences and the models themselves
        ({"temperature": 0.5}, ["one"]),
        ({"seed": 3}, ["one"]),
    ],
)
def test_only_other_settings_are_spoken_again(tmp_path: Path, change: dict[str, object], again: list[str]) -> None:
    opened: list[str] = []
    models = [candidate("one", FakeModel(), opened.append)]
    evaluate(models, SENTENCES, tmp_path, CONFIG)
    evaluate(models, SENTENCES, tmp_path, CONFIG.model_copy(update=change))
    assert opened[1:] == again


def test_a_sound_that_was_deleted_is_spoken_again(tmp_path: Path) -> None:
    model = FakeModel()
    report = evaluate([candidate("one", model)], SENTENCES, tmp_path, CONFIG)
    (tmp_path / report.utterances[0].wav).unlink()
    evaluate([candidate("one", model)], SENTENCES, tmp_path, CONFIG)
    assert model.spoken[4:] == [report.utterances[0].text]


def test_whoever_is_interrupted_finds_a_report_and_goes_on(tmp_path: Path) -> None:
    model = FakeModel(stop_after=2)
    with pytest.raises(KeyboardInterrupt):
        evaluate([candidate("one", model)], SENTENCES, tmp_path, CONFIG)
    half = load(tmp_path)
    assert (len(half.utterances), half.missing) == (2, 2)
    assert "2 sentences were not spoken yet" in text(half)
    model.stop_after = 1000
    whole = evaluate([candidate("one", model)], SENTENCES, tmp_path, CONFIG)
    assert sorted(model.spoken) == sorted(TEXTS)
    assert whole.missing == 0


def test_a_sentence_that_cannot_be_spoken_is_told_and_the_others_are_measured(tmp_path: Path) -> None:
    report = evaluate([candidate("one", FakeModel())], [*SENTENCES, TestSentence("ለምን?", "am")], tmp_path, CONFIG)
    assert report.utterances[0].fault == "It does not ask. Leave it out."
    assert sum(not one.fault for one in report.utterances) == 4
    assert "5, 1 failed" in text(report)


def test_recordings_are_compared_and_heard_as_a_yardstick(tmp_path: Path) -> None:
    recording = tmp_path / "recording.wav"
    audio.save(recording, babble(3.0, seed=3), 16_000)
    sentence = replace(SENTENCES[0], recording=str(recording))
    recogniser = FakeRecogniser(lambda _size: TEXTS[0])
    report = evaluate([candidate("one", FakeModel())], [sentence], tmp_path / "out", CONFIG, Hearing(recogniser))
    (one,) = report.utterances
    assert one.expected == pytest.approx(3.0, abs=0.1)
    assert (one.distance or 0) > 1
    assert report.yardstick == {"cer": 0.0, "wer": 0.0}
    assert "(the recordings)" in text(report)


def test_different_speaker_encoders_are_not_compared(tmp_path: Path) -> None:
    models = [candidate("one", FakeModel()), candidate("two", FakeModel(encoder="another"))]
    report = evaluate(models, SENTENCES, tmp_path, CONFIG)
    assert all(one.similarity is None for one in report.utterances)
    assert any("different speaker encoders" in note for note in report.notes)


def test_progress_is_told(tmp_path: Path) -> None:
    seen: list[EvaluationProgress] = []
    evaluate([candidate("one", FakeModel())], SENTENCES, tmp_path, CONFIG, tell=seen.append)
    assert [(one.step, one.total) for one in seen] == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]
    assert seen[-1].text == TEXTS[-1]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> EvaluationReport:
    folder = tmp_path_factory.mktemp("two")
    models = [candidate("good", FakeModel()), candidate("slow", FakeModel(pace=2.0))]
    sentences = [replace(one, voice=voice) for one in SENTENCES for voice in ("Abebe", "Almaz")]
    return evaluate(models, sentences, folder, CONFIG, Hearing(FakeRecogniser(lambda _size: TEXTS[0])))


def test_a_report_is_read_as_it_was_written(two: EvaluationReport) -> None:
    assert load(two.folder) == two


def test_a_spoiled_report_is_told(tmp_path: Path) -> None:
    (tmp_path / JSON).write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match="Run the evaluation again"):
        load(tmp_path)


def test_the_files_can_be_read_by_others(two: EvaluationReport) -> None:
    data = json.loads((two.folder / JSON).read_text(encoding="utf-8"))
    assert data["summary"]["slow"]["duration_error"] == pytest.approx(1.0, abs=0.06)
    assert any(one["sentence"].startswith("Length: good is better") for one in data["differences"])
    rows = list(csv.DictReader((two.folder / "report.csv").read_text(encoding="utf-8-sig").splitlines()))
    assert len(rows) == 16
    assert rows[0]["checkpoint"] == "slow"
    assert float(rows[0]["duration_error"]) == pytest.approx(1.0, abs=0.06)
    assert all((two.folder / row["wav"]).is_file() for row in rows)


def test_the_table_shows_models_voices_differences_and_the_worst_first(two: EvaluationReport) -> None:
    shown = text(two)
    header, good, slow = shown.splitlines()[:3]
    assert header.split() == ["model", "sentences", "CER", "WER", "Voice", "Length", "MCD", "Flags", "RTF"]
    assert good.split()[:2] == ["good", "8"]
    assert slow.split()[:2] == ["slow", "8"]
    assert "slow, Almaz" in shown
    assert "Length: good is better than slow by" in shown
    assert shown.index("Worst first:") < shown.index("Note:")
    worst = shown[shown.index("Worst first:") :].splitlines()[1]
    assert worst.startswith("  slow: ")
    assert [badness(one) for one in two.utterances] == sorted(map(badness, two.utterances), reverse=True)


def test_a_picture_is_drawn(tmp_path: Path) -> None:
    evaluate([candidate("one", FakeModel())], SENTENCES, tmp_path, CONFIG)
    assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG")
