"""Scores of checkpoints: known damage lowers the right one, and what is not measured is left out."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.dataset.recordings import generated, recording
from utils.dataset.recognisers import Transcript
from utils.evaluation import voice_scores
from utils.evaluation.voice_scores import TranscriptJudge, VoiceScorer, composite
from utils.media import audio
from utils.media.audio import Samples, resample
from utils.media.rates import OUTPUT_RATE
from utils.training.checkpoint_samples import SpokenSentence

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
    sentences = []
    for number, text in enumerate(TEXTS):
        known = recording(4.0, seed=number, speech=generated())
        path = known.save(folder / f"{number}.wav")
        sentences.append(SpokenSentence(text, audio.load(path, OUTPUT_RATE), folder / "0.wav", path))
    return sentences


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
    for name, sentences in damaged.items():
        assert scores(sentences)[name] < whole[name] - 0.1, name
    assert scores([sentence._replace(samples=noise) for sentence in spoken])["similarity"] < whole["similarity"] - 0.1
    looped = scores([sentence._replace(flags=("loop: 3 times",)) for sentence in spoken])
    assert looped["endings"] == 0
    for sentences in (*damaged.values(), shuffled):
        assert (composite(scores(sentences), 1.0, 2.0) or 0) < (composite(whole, 1.0, 2.0) or 0)


def test_what_is_not_measured_is_left_out(spoken: list[SpokenSentence]) -> None:
    alone = VoiceScorer("am")([spoken[0]._replace(recording=None)])
    assert alone == {"endings": 1.0}
    assert composite(alone, 1.0, 2.0) is None  # nothing tells this from noise
    assert composite({"intelligibility": 0.5}, 1.0, None) == 0.5
    assert composite({"intelligibility": 0.5, "endings": 1.0}, 1.0, 2.0) == pytest.approx(0.45 / 0.7, abs=1e-4)
