"""Models with known differences are evaluated; nothing is measured twice."""

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.dataset.recordings import babble
from tests.evaluation.fake_models import FakeModel, FakeRecogniser, candidate
from utils.__main__ import main
from utils.config import SpeechConfig
from utils.core.errors import DataError
from utils.core.facts import Fact, Progress, Stop, StopRequested
from utils.evaluation.evaluate import Candidate, evaluate
from utils.evaluation.facts import ReportNote
from utils.evaluation.report import JSON, EvaluationReport, badness, load, summary, text
from utils.evaluation.sentences import EvaluationSentence
from utils.media import audio
from utils.recognition.facts import RecogniserError
from utils.recognition.recognisers import RecogniserSpec
from utils.speech.facts import Flag

TEXTS = [
    "ሰላም ለሁላችሁም ዛሬ ጥሩ ቀን ነው",
    "እናቴ ገበያ ሄዳ ቲማቲም ገዛች",
    "ልጆቹ በትምህርት ቤት ይማራሉ",
    "ውሃው በጣም ቀዝቃዛ ነው",
]
SENTENCES = [EvaluationSentence(sentence, "am") for sentence in TEXTS]
CONFIG = SpeechConfig()


def test_models_are_measured(tmp_path: Path) -> None:
    good, slow = FakeModel(), FakeModel(pace=2.0, likeness=0.5, flags=(Flag("long", 4.0, 20),))
    facts: list[Fact] = []
    models = [candidate("good", good), candidate("slow", slow)]
    report = evaluate(models, SENTENCES, tmp_path, CONFIG, report=facts.append)
    steps = [fact for fact in facts if isinstance(fact, Progress)]
    assert [step.step for step in steps] == [0, 1, 2, 3, 4, 4, 5, 6, 7, 8]
    assert (steps[-1].part, steps[-1].total) == ("slow", 8)
    first, second = summary(report.of("good")), summary(report.of("slow"))
    assert first["duration_error"] == pytest.approx(0.0, abs=0.06)
    assert second["duration_error"] == pytest.approx(1.0, abs=0.06)
    assert [first["similarity"], second["similarity"]] == pytest.approx([0.9, 0.5])
    assert (first["flags"], second["flags"]) == (0, 1)
    assert first["real_time_factor"] == pytest.approx(0.5)
    assert first["cer"] is None
    assert [result.checkpoint for result in report.utterances[:4]] == ["slow"] * 4
    assert report.notes[:2] == (ReportNote("no_recogniser"), ReportNote("no_recordings"))
    assert load(tmp_path).notes == report.notes


def test_transcripts_are_compared_without_a_model(tmp_path: Path) -> None:
    loaded: list[str] = []
    models = [candidate("one", FakeModel(), loaded.append)]
    evaluate(models, SENTENCES, tmp_path, CONFIG)
    recogniser = FakeRecogniser(TEXTS[0])
    for _ in range(2):
        report = evaluate(models, SENTENCES, tmp_path, CONFIG, recogniser)
    assert (loaded, recogniser.clips) == (["one"], 4)
    by_text = {result.text: result for result in report.utterances}
    assert by_text[TEXTS[0]].cer == 0
    assert (by_text[TEXTS[1]].cer or 0) > 0.5
    assert ReportNote("no_recogniser") not in report.notes
    later = evaluate(models, SENTENCES, tmp_path, CONFIG)  # without a recogniser the transcripts are still used
    assert summary(later.of("one"))["cer"] == summary(report.of("one"))["cer"]


def test_transcripts_survive_a_recogniser_that_fails(tmp_path: Path) -> None:
    many = [EvaluationSentence(f"{sentence} {word}", "am") for sentence in TEXTS for word in ("ዛሬ", "ነገ", "ትናንት")]
    recogniser = FakeRecogniser(TEXTS[0], fails_after=10)
    report = evaluate([candidate("one", FakeModel())], many, tmp_path, CONFIG, recogniser)
    assert sum(result.cer is not None for result in report.utterances) == 8
    (note,) = [note for note in report.notes if isinstance(note, ReportNote) and note.detail]
    assert note.reason == "not_transcribed"
    assert "out of memory" in note.detail


def test_only_other_settings_are_measured_again(tmp_path: Path) -> None:
    loaded: list[str] = []
    models = [candidate("one", FakeModel(), loaded.append)]
    evaluate(models, SENTENCES, tmp_path, CONFIG)
    # the sentences and the candidates decide the reference and the model
    evaluate(models, SENTENCES, tmp_path, CONFIG.model_copy(update={"reference": "", "model": "other"}))
    assert loaded == ["one"]
    for change in ({"temperature": 0.5}, {"seed": 3}):
        evaluate(models, SENTENCES, tmp_path, CONFIG.model_copy(update=change))
    assert loaded == ["one"] * 3


def test_an_interrupted_evaluation_continues(tmp_path: Path) -> None:
    model = FakeModel(stop_after=2)
    with pytest.raises(KeyboardInterrupt):
        evaluate([candidate("one", model)], SENTENCES, tmp_path, CONFIG)
    half = load(tmp_path)
    assert (len(half.utterances), half.missing) == (2, 2)
    model.stop_after = 1000
    report = evaluate([candidate("one", model)], SENTENCES, tmp_path, CONFIG)
    assert report.missing == 0
    assert sorted(model.spoken) == sorted(TEXTS)
    (tmp_path / report.utterances[0].wav).unlink()  # deleted audio is spoken again
    evaluate([candidate("one", model)], SENTENCES, tmp_path, CONFIG)
    assert model.spoken[4:] == [report.utterances[0].text]


def test_a_request_to_stop_leaves_a_report(tmp_path: Path) -> None:
    spoken: list[Fact] = []
    stop = lambda: Stop.SAVE if len(spoken) > 2 else Stop.NO  # noqa: E731
    with pytest.raises(StopRequested):
        evaluate([candidate("one", FakeModel())], SENTENCES, tmp_path, CONFIG, None, spoken.append, stop)
    assert load(tmp_path).missing == 2


def test_a_sentence_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    sentences = [*SENTENCES, EvaluationSentence("ለምን?", "am")]
    report = evaluate([candidate("one", FakeModel())], sentences, tmp_path, CONFIG)
    assert str(report.utterances[0].error) == "No questions. Leave it out."
    assert load(tmp_path) == report
    assert sum(not result.error for result in report.utterances) == 4
    assert "5, 1 failed" in text(report)


def names_almaz(folder: Path) -> bool:
    return any(b"almaz" in path.read_bytes() for path in folder.iterdir() if path.is_file())


def test_a_report_names_no_folder_of_a_reference_that_cannot_be_read(tmp_path: Path) -> None:
    home = tmp_path / "home of almaz"
    (home / "voice.wav").mkdir(parents=True)
    sentence = replace(SENTENCES[0], reference=str(home / "voice.wav"))
    model = FakeModel()
    model.voice = lambda reference: audio.load(Path(reference), 24_000)  # type: ignore[method-assign]
    report = evaluate([candidate("one", model)], [sentence], tmp_path / "out", CONFIG)
    assert str(report.utterances[0].error).startswith("voice.wav is a folder")
    assert not names_almaz(tmp_path / "out")


def test_a_report_names_no_folder_of_a_recogniser(tmp_path: Path) -> None:
    spec = RecogniserSpec(str(tmp_path / "home of almaz" / "whisper"))
    error = RecogniserError(spec.model, "missing", f"not found: {spec.model}")
    recogniser = FakeRecogniser("", name=spec.name, fails_with=error)
    report = evaluate([candidate("one", FakeModel())], SENTENCES, tmp_path / "out", CONFIG, recogniser)
    assert "Whisper whisper (" in text(report)
    assert not names_almaz(tmp_path / "out")


def test_recordings_are_compared_and_transcribed(tmp_path: Path) -> None:
    recording = tmp_path / "recording.wav"
    audio.save(recording, babble(3.0, seed=3), 16_000)
    sentence = replace(SENTENCES[0], recording=str(recording))
    models = [candidate("one", FakeModel())]
    report = evaluate(models, [sentence], tmp_path / "out", CONFIG, FakeRecogniser(TEXTS[0]))
    (result,) = report.utterances
    assert result.expected == pytest.approx(3.0, abs=0.1)
    assert (result.distance or 0) > 1
    assert report.recording_error_rates == {"cer": 0.0, "wer": 0.0}


def test_similarity_by_different_speaker_encoders_is_not_compared(tmp_path: Path) -> None:
    models = [candidate("one", FakeModel()), candidate("two", FakeModel(encoder="another"))]
    report = evaluate(models, SENTENCES, tmp_path, CONFIG)
    assert all(result.similarity is None for result in report.utterances)
    assert ReportNote("other_encoders") in report.notes


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> EvaluationReport:
    models = [candidate("good", FakeModel()), candidate("slow", FakeModel(pace=2.0))]
    sentences = [replace(sentence, voice=voice) for sentence in SENTENCES for voice in ("Abebe", "Almaz")]
    return evaluate(models, sentences, tmp_path_factory.mktemp("two"), CONFIG, FakeRecogniser(TEXTS[0]))


def test_json_and_csv_hold_the_results(two: EvaluationReport) -> None:
    data = json.loads((two.folder / JSON).read_text(encoding="utf-8"))
    assert data["summary"]["slow"]["duration_error"] == pytest.approx(1.0, abs=0.06)
    rows = list(csv.DictReader((two.folder / "report.csv").read_text(encoding="utf-8-sig").splitlines()))
    assert len(rows) == 16
    assert rows[0]["checkpoint"] == "slow"
    assert float(rows[0]["duration_error"]) == pytest.approx(1.0, abs=0.06)
    assert all((two.folder / row["wav"]).is_file() for row in rows)


# The command


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Replace the models of the command line by fakes; return the names that are asked for."""

    def install(**models: FakeModel) -> list[str]:
        requested: list[str] = []

        def candidates(paths: Sequence[Path], _open: object) -> list[Candidate]:
            requested.extend(map(str, paths))
            return [candidate(name, model) for name, model in models.items()]

        monkeypatch.setattr("utils.evaluation.evaluate.candidates", candidates)
        monkeypatch.setattr("utils.cli.evaluate.find_model", lambda name, _output: Path(name))
        return requested

    return install


@pytest.fixture
def texts(tmp_path: Path) -> str:
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(TEXTS[1:]), encoding="utf-8")
    return str(path)


def command(tmp_path: Path, *words: str) -> int:
    return main(["evaluate", "--output", str(tmp_path), *words])


def test_ctrl_c_prints_what_is_finished(
    tmp_path: Path, fake: Callable[..., list[str]], texts: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fake(slow=FakeModel(stop_after=1))
    assert command(tmp_path, "--sentences", texts) == 130
    assert "2 sentences are not spoken yet" in capsys.readouterr().out


@pytest.mark.slow
def test_a_recogniser_that_cannot_be_loaded_leaves_its_column_empty(
    tmp_path: Path, fake: Callable[..., list[str]], texts: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fake(one=FakeModel())
    assert command(tmp_path, "--sentences", texts, "--asr", str(tmp_path / "nothing" / "here")) == 0
    assert "CER and WER are empty" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (("--checkpoints", "a", "--model", "b"), "--checkpoints"),
        (("--count", "0"), "--count"),
        (("--sentences", "nothing.txt"), "nothing.txt"),
        (("--project", "none"), "metadata_eval.csv"),
        (("--language", "ti"), "Tigrinya"),
    ],
)
def test_wrong_arguments_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], key: str
) -> None:
    assert command(tmp_path, *words) == 1
    assert key in capsys.readouterr().err


def test_a_report_is_read_back(two: EvaluationReport, tmp_path: Path) -> None:
    assert load(two.folder) == two
    assert [badness(result) for result in two.utterances] == sorted(map(badness, two.utterances), reverse=True)
    (tmp_path / JSON).write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match=JSON):
        load(tmp_path)
