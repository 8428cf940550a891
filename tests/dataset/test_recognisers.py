"""The real recognisers, small and with random weights: everything but the sense of what they say."""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.dataset.tiny_whisper import make_whisper
from utils.dataset.clip import Span
from utils.dataset.recognisers import CTC, RATE, WHISPER, RecogniserSpec, RecognitionError, Transcript, Word
from utils.dataset.recognisers.ctc import ctc_words
from utils.dataset.recognisers.isolated import IsolatedRecogniser
from utils.media.audio import Samples

if TYPE_CHECKING:
    from utils.dataset.recognisers.whisper import Whisper

pytestmark = pytest.mark.slow

LETTERS = ["<pad>", "<s>", "</s>", "<unk>", "|", *"ሀለሐመሠረሰሸቀበ"]


@pytest.fixture(scope="module")
def whisper_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_whisper(tmp_path_factory.mktemp("whisper"))


@pytest.fixture(scope="module")
def clips() -> list[Samples]:
    """Sounds that differ in length, pitch and noise; one lasts 5 ms."""
    kinds = [(1.13, 0.1, 0.1), (2.345, 0.01, 0.001), (0.005, 0.3, 0.0), (5.0, 0.001, 0.5), (0.29, 0.5, 0.0)]
    random = np.random.default_rng(0)
    return [
        (np.sin(np.arange(round(RATE * seconds)) * pitch) + noise * random.standard_normal(round(RATE * seconds)))
        .clip(-1, 1)
        .astype(np.float32)
        for seconds, pitch, noise in kinds
    ]


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


def test_whisper_uses_the_language_and_detects_unknown_ones(whisper: IsolatedRecogniser, clips: list[Samples]) -> None:
    amharic, english, tigrinya = (texts(whisper.transcribe(clips, name)) for name in ("amh_ET", "en", "Tigrinya"))
    assert amharic != english
    assert all(tigrinya)


def test_word_times_lie_inside_their_clip(whisper: IsolatedRecogniser, clips: list[Samples]) -> None:
    transcripts = whisper.transcribe(clips, "am")
    for transcript, clip in zip(transcripts, clips, strict=True):
        assert " ".join(word.text for word in transcript.words) == transcript.text
        assert all(0 <= word.span.start <= word.span.end <= clip.size / RATE for word in transcript.words)
    last = max(word.span.end for word in transcripts[3].words)
    assert last > 2.5, "times count from the start of the clip, over all of it"


@pytest.mark.parametrize(
    ("compute_type", "language", "seconds", "message"),
    [
        ("float16", "am", 1.0, "does not support float16"),
        ("auto", "Klingonish", 1.0, "Klingonish"),
        ("auto", "am", 30.1, "30.1 s is too long"),
    ],
)
def test_whisper_reports_what_it_cannot_do(
    whisper_folder: Path, compute_type: str, language: str, seconds: float, message: str
) -> None:
    spec = RecogniserSpec(str(whisper_folder), "cpu", compute_type)
    with IsolatedRecogniser(spec) as recogniser, pytest.raises(RecognitionError) as caught:
        recogniser.transcribe([np.zeros(round(seconds * RATE), np.float32)], language)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("tokenizer.json", "", r"no tokenizer.json.*ct2-transformers-converter"),
        ("preprocessor_config.json", json.dumps({"feature_size": 128}), "80 mel bands"),
    ],
)
def test_an_incomplete_model_folder_is_reported(
    whisper_folder: Path, tmp_path: Path, name: str, content: str, message: str
) -> None:
    folder = Path(shutil.copytree(whisper_folder, tmp_path / "copy"))
    if content:
        (folder / name).write_text(content, encoding="utf-8")
    else:
        (folder / name).unlink()
    with pytest.raises(RecognitionError, match=message):
        IsolatedRecogniser(RecogniserSpec(str(folder))).start()


@pytest.mark.parametrize(
    ("model", "factory", "message"),
    [
        ("larg-v3", WHISPER, "Did you mean large-v3?"),
        ("/no/such/folder", WHISPER, "there is no such folder"),
        ("somebody/whisper", WHISPER, "the folder of a model on this machine"),
        ("somebody/ctc", CTC, "the folder of a model on this machine"),
    ],
)
def test_a_missing_model_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, factory: str, message: str
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(RecognitionError) as caught:
        IsolatedRecogniser(RecogniserSpec(model, factory=factory)).start()
    assert message in str(caught.value)


def test_a_text_that_fills_the_output_is_transcribed_in_halves_with_no_confidence(
    tmp_path: Path, clips: list[Samples]
) -> None:
    folder = make_whisper(tmp_path, endless=True)
    with IsolatedRecogniser(RecogniserSpec(str(folder), "cpu")) as recogniser:
        short, long = recogniser.transcribe([clips[1], clips[3]], "am")
    assert len(short.words) == pytest.approx(224, abs=3)
    assert len(long.words) == pytest.approx(448, abs=6)
    assert short.confidence == long.confidence == 0.0
    assert [word.span.start for word in long.words] == sorted(word.span.start for word in long.words)


def test_out_of_memory_halves_the_batch(
    whisper_folder: Path, clips: list[Samples], monkeypatch: pytest.MonkeyPatch
) -> None:
    from utils.dataset.recognisers.whisper import Whisper

    whisper, sizes = Whisper(RecogniserSpec(str(whisper_folder), "cpu")), []
    whole: Callable[[Whisper, Sequence[Samples], str | None], list[Transcript]] = Whisper._batch

    def small(self: "Whisper", some: Sequence[Samples], code: str | None) -> list[Transcript]:
        sizes.append(len(some))
        if len(some) > 2:
            raise RuntimeError("CUDA failed with error out of memory")
        return whole(self, some, code)

    expected = texts(whisper.transcribe(clips, "am"))
    monkeypatch.setattr(Whisper, "_batch", small)
    assert texts(whisper.transcribe(clips, "am")) == expected
    assert sizes == [5, 2, 3, 1, 2]


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        ("__", []),
        ("_ሰሰ_ላ_", [("ሰላ", 0.1, 0.5)]),
        ("ሰ_ሰ", [("ሰሰ", 0.0, 0.3)]),
        ("|ሰላ||_ም_|", [("ሰላ", 0.1, 0.3), ("ም", 0.6, 0.7)]),
    ],
)
def test_ctc_frames_become_words(frames: str, words: list[tuple[str, float, float]]) -> None:
    symbols = [({"_": "", "|": " "}.get(letter, letter), 0.5) for letter in frames]
    clip = np.zeros(RATE, np.float32)
    found = list(ctc_words(symbols, 0.1, clip))
    assert found == [Word(text, Span(start, end), 0.5) for text, start, end in words]


def make_ctc(folder: Path, *, adapters: bool) -> Path:
    """Write a tiny Wav2Vec2 with random weights; with adapters it is laid out like MMS."""
    import torch
    from safetensors.torch import save_file
    from transformers import (
        Wav2Vec2Config,
        Wav2Vec2CTCTokenizer,
        Wav2Vec2FeatureExtractor,
        Wav2Vec2ForCTC,
        Wav2Vec2Processor,
    )

    torch.manual_seed(0)
    letters = {letter: number for number, letter in enumerate(LETTERS)}
    vocabulary = folder / "vocab.json"
    vocabulary.write_text(json.dumps({"eng": letters, "amh": letters} if adapters else letters), encoding="utf-8")
    tokenizer = Wav2Vec2CTCTokenizer(str(vocabulary), target_lang="eng" if adapters else None)  # type: ignore[no-untyped-call]
    extractor = Wav2Vec2FeatureExtractor(return_attention_mask=True)  # type: ignore[no-untyped-call]
    Wav2Vec2Processor(extractor, tokenizer).save_pretrained(folder)  # type: ignore[no-untyped-call]
    config = Wav2Vec2Config(
        vocab_size=len(LETTERS),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        conv_dim=(8,) * 7,
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=2,
        initializer_range=1.0,
        feat_extract_norm="layer",
        do_stable_layer_norm=True,
        adapter_attn_dim=4 if adapters else None,
    )
    model = Wav2Vec2ForCTC(config)
    model.save_pretrained(folder)
    if adapters:
        weights = {name: torch.randn_like(weight) for name, weight in model._get_adapters().items()}  # type: ignore[no-untyped-call]
        save_file(weights, folder / "adapter.amh.safetensors")
    return folder


@pytest.mark.parametrize("adapters", [False, True])
def test_a_ctc_model_gives_a_second_opinion(tmp_path: Path, clips: list[Samples], adapters: bool) -> None:
    from utils.dataset.recognisers.ctc import Ctc

    recogniser = Ctc(RecogniserSpec(str(make_ctc(tmp_path, adapters=adapters)), "cpu"))
    transcripts = recogniser.transcribe(clips, "am")
    assert texts(recogniser.transcribe(clips[::-1], "amh")) == texts(transcripts)[::-1]
    if adapters:
        with pytest.raises(RecognitionError, match=r"cannot be set to Tigrinya \(tir\)"):
            recogniser.transcribe(clips, "ti")
    assert any(transcript.text for transcript in transcripts)
    for transcript, clip in zip(transcripts, clips, strict=True):
        assert set(transcript.text) <= {*LETTERS[5:], " "}
        assert all(0 <= word.span.start <= word.span.end <= clip.size / RATE for word in transcript.words)
        assert 0 <= transcript.confidence <= 1
