"""The real recognisers, small and with random weights: everything but the sense of what they say."""

import dataclasses
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from huggingface_hub import HfApi

from tests.recognition.tiny_ctc import LETTERS, make_ctc, make_w2v_bert
from tests.recognition.tiny_whisper import make_whisper, with_processor
from utils.media.audio import Samples
from utils.recognition.facts import RecognitionError
from utils.recognition.recognisers import CTC, RATE, TRANSFORMERS, WHISPER, RecogniserSpec, Transcript, second_cer
from utils.recognition.recognisers.choice import choose, recommended
from utils.recognition.recognisers.isolated import IsolatedRecogniser

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def whisper_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_whisper(tmp_path_factory.mktemp("whisper"))


@pytest.fixture(scope="module")
def clips() -> list[Samples]:
    """Sounds that differ in length, pitch and noise; one lasts 5 ms."""
    kinds = [(1.13, 0.1, 0.1), (2.345, 0.01, 0.001), (0.005, 0.3, 0.0), (5.0, 0.001, 0.5), (0.29, 0.5, 0.0)]
    random, sounds = np.random.default_rng(0), []
    for seconds, pitch, noise in kinds:
        times = np.arange(round(RATE * seconds))
        sound = np.sin(times * pitch) + noise * random.standard_normal(times.size)
        sounds.append(sound.clip(-1, 1).astype(np.float32))
    return sounds


def texts(transcripts: Sequence[Transcript]) -> list[str]:
    return [transcript.text for transcript in transcripts]


@pytest.fixture(scope="module")
def whisper(whisper_folder: Path) -> Iterator[IsolatedRecogniser]:
    with IsolatedRecogniser(RecogniserSpec(str(whisper_folder), "cpu")) as recogniser:
        yield recogniser


def test_whisper_transcribes_a_batch_like_single_clips(whisper: IsolatedRecogniser, clips: list[Samples]) -> None:
    together = whisper.transcribe(clips, "Amharic")
    alone = [whisper.transcribe([clip], "am")[0] for clip in clips]
    assert texts(together) == texts(alone)
    assert len(set(texts(together))) >= 4, "clips have to differ, else the order is not tested"
    confidences = [transcript.confidence for transcript in together]
    assert confidences == pytest.approx([transcript.confidence for transcript in alone], rel=0.05)
    assert all(0 < confidence < 1 for confidence in confidences)


def test_whisper_detects_only_unknown_languages(whisper: IsolatedRecogniser, clips: list[Samples]) -> None:
    amharic, english, tigrinya = (texts(whisper.transcribe(clips, name)) for name in ("amh_ET", "en", "Tigrinya"))
    assert amharic != english
    assert all(tigrinya)


@pytest.mark.parametrize(
    ("spec", "language", "seconds", "message"),
    [
        (RecogniserSpec("", "cpu", "float16"), "am", 1.0, "does not support the number format"),
        (RecogniserSpec("", "cpu"), "Klingonish", 1.0, "Klingonish"),
        (RecogniserSpec("", "cpu"), "am", 30.1, "30.1 s is too long"),
        (RecogniserSpec("larg-v3"), "am", 1.0, "Choose from: large-v3."),
        (RecogniserSpec("/no/such/folder"), "am", 1.0, "is neither a Whisper model nor a folder"),
        (RecogniserSpec("somebody/whisper"), "am", 1.0, "enter the folder of a model on this computer"),
        (RecogniserSpec("somebody/ctc", factory=CTC), "am", 1.0, "enter the folder of a model on this computer"),
    ],
)
def test_what_a_recogniser_cannot_do_is_reported(
    whisper_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    spec: RecogniserSpec,
    language: str,
    seconds: float,
    message: str,
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    spec = dataclasses.replace(spec, model=spec.model or str(whisper_folder))
    with IsolatedRecogniser(spec) as recogniser, pytest.raises(RecognitionError) as caught:
        recogniser.transcribe([np.zeros(round(seconds * RATE), np.float32)], language)
    assert message in str(caught.value)


def test_a_model_folder_of_another_model_or_without_a_file_is_reported(
    whisper_folder: Path, tmp_path: Path, clips: list[Samples]
) -> None:
    folder = Path(shutil.copytree(whisper_folder, tmp_path / "copy"))
    recogniser = IsolatedRecogniser(RecogniserSpec(str(folder)))
    (folder / "preprocessor_config.json").write_text('{"feature_size": 128}', encoding="utf-8")
    with pytest.raises(RecognitionError, match="80 / 128 mel bands"):
        recogniser.transcribe(clips, "am")
    (folder / "tokenizer.json").unlink()
    recogniser.close()  # it does not try the same folder again for every batch
    with pytest.raises(RecognitionError, match=r"no tokenizer.json.*ct2-transformers-converter"):
        recogniser.transcribe(clips, "am")


def test_a_text_that_fills_the_output_is_transcribed_in_halves_with_no_confidence(
    tmp_path: Path, clips: list[Samples]
) -> None:
    folder = make_whisper(tmp_path, endless=True)
    with IsolatedRecogniser(RecogniserSpec(str(folder), "cpu")) as recogniser:
        short, long = recogniser.transcribe([clips[1], clips[3]], "am")
    assert len(short.text.split()) == pytest.approx(224, abs=3)
    assert len(long.text.split()) == pytest.approx(448, abs=6)
    assert short.confidence == long.confidence == 0.0


def test_out_of_memory_halves_the_batch(
    whisper_folder: Path, clips: list[Samples], monkeypatch: pytest.MonkeyPatch
) -> None:
    from utils.recognition.recognisers.whisper import Whisper

    whisper, sizes = Whisper(RecogniserSpec(str(whisper_folder), "cpu")), []
    transcribe = whisper._batch

    def transcribe_few(batch: Sequence[Samples], code: str | None) -> list[Transcript]:
        sizes.append(len(batch))
        if len(batch) > 2:
            raise RuntimeError("CUDA failed with error out of memory")
        return transcribe(batch, code)

    expected = texts(whisper.transcribe(clips, "am"))
    monkeypatch.setattr(whisper, "_batch", transcribe_few)
    assert texts(whisper.transcribe(clips, "am")) == expected
    assert sizes == [5, 2, 3, 1, 2]


@pytest.mark.parametrize(
    ("first", "second", "share"),
    [
        ("ሰላም ለዓለም።", "ሰላምለዓለም", 0.0),  # spaces and punctuation do not count
        ("ሠላም ዓለም", "ሰላም አለም", 0.0),  # letters of the same sound
        ("Selam", "selam!", 0.0),
        ("ሰላ", "ሰላም", 1 / 3),
        ("", "። !", 0.0),
    ],
)
def test_disagreement_is_the_share_of_different_letters(first: str, second: str, share: float) -> None:
    assert second_cer(first, second) == pytest.approx(share)


@pytest.mark.parametrize("adapters", [False, True])
def test_a_ctc_model_gives_a_second_opinion(tmp_path: Path, clips: list[Samples], adapters: bool) -> None:
    from utils.recognition.recognisers.transformers_models import Ctc

    recogniser = Ctc(RecogniserSpec(str(make_ctc(tmp_path, adapters=adapters)), "cpu"))
    transcripts = recogniser.transcribe(clips, "am")
    assert texts(recogniser.transcribe(clips[::-1], "amh")) == texts(transcripts)[::-1]
    if adapters:
        with pytest.raises(RecognitionError, match=r"has no adapter for Tigrinya \(tir\)"):
            recogniser.transcribe(clips, "ti")
    assert any(transcript.text for transcript in transcripts)
    for transcript in transcripts:
        assert set(transcript.text) <= {*LETTERS[5:], " "}
        assert 0 <= transcript.confidence <= 1


@pytest.mark.parametrize(
    "kind",
    [
        "w2v-BERT",
        pytest.param("wav2vec2", marks=pytest.mark.long),
        pytest.param("transformers-Whisper", marks=pytest.mark.long),
        "CTranslate2-Whisper",
    ],
)
def test_every_kind_of_model_is_loaded_from_its_folder(
    kind: str, tmp_path: Path, whisper_folder: Path, clips: list[Samples]
) -> None:
    make: dict[str, Callable[[], Path]] = {
        "w2v-BERT": lambda: make_w2v_bert(tmp_path),
        "wav2vec2": lambda: make_ctc(tmp_path, adapters=False),
        "transformers-Whisper": lambda: with_processor(whisper_folder.parent / "original", tmp_path / "copy"),
        "CTranslate2-Whisper": lambda: whisper_folder,
    }
    spec = choose("auto", str(make[kind]()), "am", device="cpu", compute_type="float32")
    with IsolatedRecogniser(spec) as recogniser:
        together = recogniser.transcribe(clips, "am")
        assert texts(together[:2]) == texts(recogniser.transcribe(clips[:2], "amh"))
    assert any(transcript.text for transcript in together)
    assert all(0 <= transcript.confidence <= 1 for transcript in together)


def test_without_a_model_the_best_that_is_here_or_on_the_hub_is_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.file_exists", HfApi(endpoint="http://127.0.0.1:9").file_exists)  # no hub
    best, second, *_ = recommended("am")
    assert choose("auto", "", "am", device="cpu").model == best.model  # the error will say that it is missing
    snapshot = tmp_path / f"models--{second.model.replace('/', '--')}" / "snapshots" / "0" / "config.json"
    snapshot.parent.mkdir(parents=True)
    snapshot.write_text("{}")
    (snapshot.parents[2] / "refs").mkdir()
    (snapshot.parents[2] / "refs" / "main").write_text("0")
    assert choose("auto", "", "amh", device="cpu").model == second.model
    assert choose("whisper", "", "am", device="cpu") == RecogniserSpec("large-v3", "cpu")
    assert choose("ctc", "", "ti", device="cpu").factory == CTC
    assert best.word_error in best.label


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("large-v3", ("openai/whisper-large-v3", "auto", TRANSFORMERS)),
        ("somebody/faster-whisper-am", ("somebody/faster-whisper-am", "cpu", WHISPER)),
        ("somebody/whisper-am", ("somebody/whisper-am", "auto", TRANSFORMERS)),
        ("somebody/w2v-bert-am", ("somebody/w2v-bert-am", "auto", CTC)),
    ],
)
def test_transformers_runs_whisper_where_ctranslate2_lacks_its_gpu_library(
    model: str, expected: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("utils.recognition.recognisers.choice.missing_gpu_library", lambda: "libcublas.so.12")
    warnings: list[object] = []
    spec = choose("auto", model, "am", report=warnings.append)
    assert (spec.model, spec.device, spec.factory) == expected
    assert all("libcublas.so.12" in str(warning) for warning in warnings)
    assert bool(warnings) == (spec.device == "cpu" or "/" not in model)
