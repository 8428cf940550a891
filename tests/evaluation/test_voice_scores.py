"""Scores of checkpoints: known damage lowers the right one, and what is not measured is left out."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.dataset.recordings import generated, recording, sentences
from utils.dataset.text_check import FOLDER, LIMITS
from utils.evaluation import voice_scores
from utils.evaluation.voice_scores import SpokenSentence, TranscriptJudge, VoiceScorer, composite, find_phone_judge
from utils.media import audio
from utils.media.audio import Samples, resample
from utils.media.rates import OUTPUT_RATE
from utils.recognition.recognisers import Transcript
from utils.recognition.thresholds import Limits
from utils.speech.facts import Flag

TEXTS = ("ሰላም ለሁላችሁም", "ቡና እንጠጣ", "ልጆቹ በትምህርት ቤት ይማራሉ")


class Knows:
    """A recogniser that hears the texts in their order."""

    name = "knows"

    def transcribe(self, clips: Sequence[Samples], language: str) -> list[Transcript]:  # noqa: ARG002
        return [Transcript(text, 0.9) for text in TEXTS[: len(clips)]]


def spectrum(samples: Samples) -> Any:
    """Return a voice as its mean spectrum: enough to tell the made voices apart."""
    frames = samples[: samples.size // 512 * 512].reshape(-1, 512)
    mean = np.log1p(np.abs(np.fft.rfft(frames)).mean(0))
    centred = mean - mean.mean()
    return centred / np.linalg.norm(centred)


@pytest.fixture(scope="module")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> list[SpokenSentence]:
    """Speech that is the recording itself: perfect by every score."""
    folder = tmp_path_factory.mktemp("spoken")
    paths = [recording(4.0, seed=seed, speech=generated()).save(folder / f"{seed}.wav") for seed in range(len(TEXTS))]
    return [
        SpokenSentence(text, audio.load(path, OUTPUT_RATE), paths[0], path)
        for text, path in zip(TEXTS, paths, strict=True)
    ]


def scores(spoken: Sequence[SpokenSentence]) -> dict[str, float]:
    return VoiceScorer("am", TranscriptJudge(Knows()))(spoken)


def cut(sentence: SpokenSentence) -> SpokenSentence:
    return sentence._replace(samples=sentence.samples[: sentence.samples.size // 2])


def other_voice(sentence: SpokenSentence) -> SpokenSentence:
    """Shift all formants, and keep the length."""
    squeezed = resample(sentence.samples, OUTPUT_RATE, OUTPUT_RATE * 2 // 3)
    return sentence._replace(samples=np.resize(squeezed, sentence.samples.size))


def test_known_damage_lowers_the_right_score(spoken: list[SpokenSentence], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voice_scores, "speaker_encoder", lambda: spectrum)
    whole = scores(spoken)
    assert (whole["intelligibility"], whole["endings"], whole["duration"]) == (1, 1, 1)
    shuffled = [sentence._replace(text=text) for sentence, text in zip(spoken, reversed(TEXTS), strict=True)]
    noise = np.random.default_rng(0).standard_normal(OUTPUT_RATE).astype(np.float32)
    damaged = {
        "endings": [cut(sentence) for sentence in spoken],
        "duration": [cut(sentence) for sentence in spoken],
        "intelligibility": shuffled,
        "similarity": [other_voice(sentence) for sentence in spoken],
    }
    for name, bad in damaged.items():
        assert scores(bad)[name] < whole[name] - 0.1, name
    assert scores([sentence._replace(samples=noise) for sentence in spoken])["similarity"] < whole["similarity"] - 0.1
    looped = scores([sentence._replace(flags=(Flag("loop", 1.0, 3),)) for sentence in spoken])
    assert looped["endings"] == 0
    for bad in damaged.values():
        assert (composite(scores(bad), 1.0, 2.0) or 0) < (composite(whole, 1.0, 2.0) or 0)


def test_what_is_not_measured_is_left_out(spoken: list[SpokenSentence]) -> None:
    alone = VoiceScorer("am")([spoken[0]._replace(recording=None)])
    assert alone == {"endings": 1.0}
    assert composite(alone, 1.0, 2.0) is None  # nothing tells this from noise
    assert composite({"intelligibility": 0.5}, 1.0, None) == 0.5
    assert composite({"intelligibility": 0.5, "endings": 1.0}, 1.0, 2.0) == pytest.approx(0.45 / 0.7, abs=1e-4)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> list[SpokenSentence]:
    """Sentences of the sample project, with a copy as their recording."""
    folder, found = tmp_path_factory.mktemp("sample"), []
    for number, (text, sound) in enumerate(sentences(OUTPUT_RATE)[:12]):
        audio.save(folder / f"{number}.wav", sound, OUTPUT_RATE)
        found.append(SpokenSentence(text, sound, folder / "0.wav", folder / f"{number}.wav"))
    return found


@pytest.mark.parametrize(
    ("damage", "bounds"),
    [
        (lambda sentence: sentence, (0.85, 1.0)),
        (cut, (0.3, 0.65)),
        (lambda sentence: sentence._replace(samples=with_noise(sentence.samples)), (0.2, 0.75)),
        (lambda sentence: sentence._replace(samples=with_noise(0 * sentence.samples)), (0.0, 0.25)),
    ],
    ids=["whole", "cut", "noisy", "noise alone"],
)
def test_the_embedded_recogniser_hears_damage(
    sample: list[SpokenSentence],
    damage: Callable[[SpokenSentence], SpokenSentence],
    bounds: tuple[float, float],
    tmp_path: Path,
) -> None:
    judge = find_phone_judge("Amharic", tmp_path)
    assert judge is not None
    damaged = [damage(sentence) for sentence in sample]
    assert bounds[0] <= VoiceScorer("am", judge)(damaged)["intelligibility"] <= bounds[1]


def test_the_embedded_recogniser_hears_shuffled_texts(sample: list[SpokenSentence], tmp_path: Path) -> None:
    """And the numbers that a training draws next are the same whether it judged or not."""
    numbers = torch.random.get_rng_state()
    texts = reversed([sentence.text for sentence in sample])
    shuffled = [sentence._replace(text=text) for sentence, text in zip(sample, texts, strict=True)]
    assert VoiceScorer("am", find_phone_judge("am", tmp_path))(shuffled)["intelligibility"] < 0.25
    assert torch.equal(torch.random.get_rng_state(), numbers)


def test_another_language_has_a_judge_only_where_its_texts_were_checked(tmp_path: Path) -> None:
    assert find_phone_judge("ti", tmp_path) is None
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / LIMITS).write_text(json.dumps(asdict(Limits(-3.0, -4.0, 5.0, 0.1, 0.2))))
    judge = find_phone_judge("ti", tmp_path)
    assert judge is not None
    assert judge.weights.parent == tmp_path / FOLDER


def with_noise(samples: Samples) -> Samples:
    noise = np.random.default_rng(0).standard_normal(samples.size).astype(np.float32)
    return samples + noise * float(np.sqrt((samples**2).mean()) or 0.1)
